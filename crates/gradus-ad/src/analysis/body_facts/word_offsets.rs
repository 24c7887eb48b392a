//! Words of a variable that do not begin at its start: LLVM splits `struct { int; union { double; … }; }` into the integer
//! and a variable of twelve bytes, whose double lies at offset four.
//!
//! Copies of words count them by the addresses of the shadows. The shadow of such a variable is therefore placed so that
//! its doubles begin at multiples of eight bytes.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use gradus_ir::{Body, Op, OpKind};
use std::collections::{BTreeSet, HashMap};

/// Size of a word in bytes: an address or a `double`.
pub(crate) const WORD_BYTES: i64 = 8;

impl FactsBuilder<'_> {
    /// Returns the variables of the body whose words begin at another offset than zero, modulo the size of a word.
    pub(super) fn word_offsets(&self, body: &Body) -> HashMap<Op, u32> {
        let offset = |op: Op| Some((op, self.word_offset(body, op)?));
        body.walk(body.root()).filter_map(offset).collect()
    }

    fn word_offset(&self, body: &Body, op: Op) -> Option<u32> {
        let OpKind::Alloca(info) = body.kind(op) else {
            // Not an error: only variables of the stack are placed.
            return None;
        };
        let is_one = body.as_int(self.unit, body.operand(op, 0)) == Some(1);
        if !is_one || i64::from(info.align_bytes) >= WORD_BYTES {
            // Not an error: the words begin at the start.
            return None;
        }
        let memory = &self.closure.memory;
        let [place] = *memory.targets(self.variant.func, body.result(op)) else {
            // Not an error: several objects have no common offset.
            return None;
        };
        let floats = self.closure.memory_cells.float_offsets(place.class);
        let words = floats.map(|at| (at - place.offset_bytes).rem_euclid(WORD_BYTES));
        let distinct: BTreeSet<i64> = words.collect();
        let mut all = distinct.into_iter();
        match (all.next(), all.next()) {
            // The other accesses of the variable keep their alignment.
            (Some(offset @ 1..), None) if offset % i64::from(info.align_bytes.max(1)) == 0 => {
                u32::try_from(offset).ok()
            }
            _ => None,
        }
    }
}

impl BodyFacts<'_> {
    /// Returns the offset at which the words of a variable begin, if it is not zero.
    pub fn word_offset(&self, op: Op) -> Option<u32> {
        self.word_offsets.get(&op).copied()
    }
}
