//! Partial floats: integers with the bits of a float, and short integer loads of a float's bytes.
//!
//! A partial float is loaded as an integer shorter than the float and carries no derivative. A float that
//! the program reassembles from partial floats, bytewise in memory or by shifts, would have a zero
//! derivative. The analysis reports such reassembly.

use crate::points_to::alias_sets::CellRef;
use crate::types::lattice;
use crate::view::View;
use gradus_ir::{Body, Op};

/// The flow-graph nodes of integers that hold bits of varied floats.
pub(crate) struct FloatBitNodes {
    /// All such integers.
    pub all: Vec<usize>,
    /// The partial floats among them.
    pub partial: Vec<usize>,
}

/// Returns true if an integer load of `bytes` bytes, from memory that may hold floats, reads part of a
/// float. A load that TBAA names an integer is not a partial float.
pub(crate) fn is_partial_float(facts: View<'_>, body: &Body, op: Op, at: (CellRef, u64)) -> bool {
    const SHORTEST: u64 = 4;
    let (place, bytes) = at;
    let floats = facts.words.types_of_set(place.class).floats();
    let shortest = floats.map(|kind| u64::from(kind.bits() / 8)).min();
    let overlaps = || shortest.is_none() || facts.words.overlaps_floats(facts.memory, place, bytes);
    bytes < shortest.unwrap_or(SHORTEST)
        && overlaps()
        && !lattice::access_type(facts.unit, body, op).has_integer()
}
