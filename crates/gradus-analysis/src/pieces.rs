//! Integers that are bits of floats, and among them pieces: bytes that are loaded as integers too short to
//! hold a float.
//!
//! A piece carries no derivative. Numbers that are put together again from pieces, byte by byte in memory
//! or by shifts, would have the derivative zero: where pieces become part of a float, that is told.

use crate::activity::Facts;
use crate::memory::MemoryPlace;
use crate::seen;
use gradus_ir::{Body, Code, Diagnostic, FuncId, Op, Unit};

/// The flow's nodes of integers that are bits of varied floats.
pub(crate) struct FloatBits {
    /// All of them.
    pub whole: Vec<usize>,
    /// Those that are pieces.
    pub pieces: Vec<usize>,
}

/// Whether so many bytes, that an op loads as an integer from memory which may hold floats, are a piece of one.
/// What the front end names an integer is none.
pub(crate) fn is_piece(facts: Facts<'_>, body: &Body, op: Op, at: (MemoryPlace, u64)) -> bool {
    const SHORTEST: u64 = 4;
    let (place, bytes) = at;
    let floats = facts.words.seen_anywhere(place.class).floats();
    let shortest = floats.map(|kind| u64::from(kind.bits() / 8)).min();
    let overlaps = || shortest.is_none() || facts.words.overlaps_floats(facts.memory, place, bytes);
    bytes < shortest.unwrap_or(SHORTEST)
        && overlaps()
        && !seen::of_access(facts.unit, body, op).has_integer()
}

/// Refuses integer arithmetic on the bits of an active float.
pub(crate) fn refused(unit: &Unit, func: FuncId, body: &Body, op: Op) -> Diagnostic {
    let message = "integer arithmetic on the bits of an active floating-point number";
    let function = &unit.functions[func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    Diagnostic::error(Code::FloatBits, message)
        .in_function(name.clone())
        .at(unit.span(body.ops[op].loc), "here")
        .help(
            "compute with floating-point operations, or give the function a derivative of its own",
        )
}
