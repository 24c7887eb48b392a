//! Integer arithmetic on the bits of active floats (GRD0008).

pub(crate) mod fraction;
pub(super) mod stored_formats;

use crate::checks::finding::at;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Unit};

/// Returns the diagnostic for integer arithmetic on the bits of an active float.
pub(crate) fn float_bits_diagnostic(unit: &Unit, func: FuncId, body: &Body, op: Op) -> Diagnostic {
    let message = "integer arithmetic on the bits of an active floating-point number";
    at(unit, func, body, op, Code::FloatBits, message)
        .help("compute with floating-point operations, or register a derivative for the function")
}
