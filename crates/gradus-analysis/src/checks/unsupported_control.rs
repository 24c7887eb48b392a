//! Control flow and floating-point modes without derivatives (GRD0016).

use crate::checks::external_calls::functions_without_derivative;
use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use gradus_ir::externals::{ExternalFn, SystemFn};
use gradus_ir::{Code, FuncId, Unit};

/// Prefix of the intrinsics of the strict floating-point mode.
const STRICT_FP_PREFIX: &str = "llvm.experimental.constrained.";

/// Refuses calls of `setjmp` and `longjmp`.
pub(super) fn jumps(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_known_calls(|call, known| {
        let jumps = matches!(
            known,
            ExternalFn::System(SystemFn::Setjmp | SystemFn::Longjmp)
        );
        jumps.then(|| {
            let message = "the differentiated function calls `setjmp` or `longjmp`";
            let error = variant.error(call.op, Code::UnsupportedControl, message);
            [error.help("leave loops with `break` or `return`")]
        })
    })
}

/// Refuses active values in the strict floating-point mode.
pub(super) fn strict_floats(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| {
        let mut callees = functions_without_derivative(variant, call).into_iter();
        let is_strict = |callee| is_strict_float_function(variant.facts.unit, callee);
        callees.any(is_strict).then(|| {
            let message = "active values are computed in strict floating-point mode";
            variant.error(call.op, Code::UnsupportedControl, message).help(
                "compile this function without `#pragma STDC FENV_ACCESS` and `-ffp-model=strict`",
            )
        })
    })
}

/// Returns true for an intrinsic of the strict floating-point mode.
pub(super) fn is_strict_float_function(unit: &Unit, func: FuncId) -> bool {
    unit.functions[func].name.starts_with(STRICT_FP_PREFIX)
}
