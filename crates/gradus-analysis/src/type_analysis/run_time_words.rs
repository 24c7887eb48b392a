//! Memory whose words are pointers, doubles or integers, as only the run knows: unions, closures in buffers, arenas.
//!
//! The shadow of such a word tells its kind at run time. Four conditions hold: the program alone accesses the memory, the
//! analysis sees all accesses, floats are doubles, and no double or pointer straddles two words.

use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::{AliasSetId, AliasSets, CellRef, MemoryOrigin};
use crate::type_analysis::type_map::{FLOAT_BYTES_MAX, TypeMap};
use gradus_ir::{Entity, FloatKind, FuncId, Op, OpKind, Unit};
use std::ops::RangeInclusive;

/// Size of a word in bytes: a pointer or a `double`.
const WORD_BYTES: u32 = 8;

impl TypeMap {
    /// Marks the alias sets with accesses of doubles or pointers that may straddle two words.
    pub(super) fn mark_unaligned(&mut self, unit: &Unit, closure: &CallGraph, memory: &AliasSets) {
        for (func, body) in closure.bodies(unit) {
            for op in body.walk(body.root()) {
                let (ptr, value, access) = match body.kind(op) {
                    OpKind::Load(access) => (body.operand(op, 0), body.result(op), access),
                    OpKind::Store(access) => (body.operand(op, 1), body.operand(op, 0), access),
                    _ => continue,
                };
                let holds_words = self.carries_float(func, value)
                    || self.carries_pointer(func, value)
                    || unit.types.is_ptr(body.ty(value));
                if access.align_bytes < WORD_BYTES && holds_words {
                    for place in memory.targets(func, ptr) {
                        self.unaligned[place.class.index()] = true;
                    }
                }
            }
        }
    }

    /// Returns true if the memory at one end of a copy consists of words of its own, and the memory at the other end, if
    /// others access it, has accesses as doubles alone.
    pub(super) fn are_words(&self, memory: &AliasSets, ends: &[CellRef]) -> bool {
        let is_plain = |end: &CellRef| {
            let seen = self.types_of_set(end.class);
            let folds = &memory.get(end.class).folds;
            let aligned = end.offset_bytes.rem_euclid(i64::from(WORD_BYTES)) == 0
                && folds
                    .iter()
                    .all(|fold| fold.stride.is_multiple_of(u64::from(WORD_BYTES)));
            aligned && seen.is_single() && seen.float_kind() == Some(FloatKind::F64)
        };
        ends.iter().any(|end| self.has_words(*end))
            && ends.iter().all(|end| self.has_words(*end) || is_plain(end))
    }

    /// Returns true for a load or a store in words that may hold doubles at another time. The access covers whole words
    /// or a part of one word.
    pub fn integer_in_words(
        &self,
        unit: &Unit,
        memory: &AliasSets,
        (func, op): (FuncId, Op),
    ) -> bool {
        let Some(body) = unit.functions[func].body.as_deref() else {
            unreachable!("the function of an op has a body");
        };
        let (ptr, value, access) = match body.kind(op) {
            OpKind::Load(access) => (body.operand(op, 0), body.result(op), access),
            OpKind::Store(access) => (body.operand(op, 1), body.operand(op, 0), access),
            // Not an error: the op is another access.
            _ => return false,
        };
        let bytes = unit.layout.store_bytes(unit, body.ty(value));
        let word = u64::from(WORD_BYTES);
        let fits = (bytes.is_power_of_two() || bytes.is_multiple_of(word))
            && u64::from(access.align_bytes) >= bytes.min(word);
        let targets = memory.targets(func, ptr);
        let mut all = targets.iter();
        let whole = |place: &CellRef| {
            let mut origins = memory.get(place.class).origins.iter();
            self.has_words(*place) && origins.all(|origin| consists_of_words(unit, *origin))
        };
        fits && targets.iter().all(whole)
            && all.any(|place| self.overlaps_floats(memory, *place, bytes))
    }

    /// Returns true if a cell is the start of a word in all objects.
    pub(crate) fn begins_word(&self, memory: &AliasSets, place: CellRef) -> bool {
        let word = u64::from(WORD_BYTES);
        let mut folds = memory.get(place.class).folds_at(place.offset_bytes);
        place.offset_bytes.rem_euclid(i64::from(WORD_BYTES)) == 0
            && folds.all(|fold| fold.stride.is_multiple_of(word))
    }

    /// Returns the normalised offsets at which floats begin in an alias set.
    pub fn float_offsets(&self, set: AliasSetId) -> impl Iterator<Item = i64> {
        let cells = self.types[set.index()].iter();
        let floats = cells.filter(|(_, seen)| seen.has_float());
        floats.map(|(offset, _)| *offset)
    }

    /// Returns the normalised offsets in a range at which floats begin in an alias set.
    pub(crate) fn float_offsets_in(
        &self,
        set: AliasSetId,
        range: RangeInclusive<i64>,
    ) -> impl Iterator<Item = i64> {
        let cells = self.types[set.index()].range(range);
        let floats = cells.filter(|(_, seen)| seen.has_float());
        floats.map(|(offset, _)| *offset)
    }

    /// Returns true if a float begins at a normalised offset of an alias set.
    pub(crate) fn begins_float(&self, (set, offset): (AliasSetId, i64)) -> bool {
        let seen = self.types[set.index()].get(&offset);
        seen.is_some_and(|seen| seen.has_float())
    }

    /// Returns true if the program accesses floats that overlap `bytes` bytes at a location, at unreduced offsets.
    pub(crate) fn has_floats_at(&self, place: CellRef, bytes: u64) -> bool {
        let start = place.offset_bytes;
        let range = start - FLOAT_BYTES_MAX + 1..start.saturating_add(bytes as i64);
        let mut evidence = self.evidence[place.class.index()].range(range);
        evidence.any(|(&offset, seen)| {
            let mut floats = seen.effective().floats();
            floats.any(|kind| offset + i64::from(kind.bits() / 8) > start)
        })
    }

    fn has_words(&self, place: CellRef) -> bool {
        let seen = self.types_of_set(place.class);
        let mut floats = seen.floats();
        !self.is_visible(place.class)
            && !self.unaligned[place.class.index()]
            && floats.all(|kind| kind == FloatKind::F64)
    }
}

/// Returns true for an object without a word that is only in part its own: the shadow of such a word lies beyond the
/// shadow of the object. Blocks of the heap have room for whole words.
fn consists_of_words(unit: &Unit, origin: MemoryOrigin) -> bool {
    match origin {
        MemoryOrigin::Heap(..) => true,
        MemoryOrigin::Alloca(func, op) => {
            let body = unit.functions[func].body.as_deref();
            let Some(OpKind::Alloca(info)) = body.map(|body| body.kind(op)) else {
                unreachable!("the origin is an alloca");
            };
            let bytes = unit.layout.size_bytes(unit, info.ty);
            bytes.is_multiple_of(u64::from(WORD_BYTES)) && info.align_bytes >= WORD_BYTES
        }
        _ => false,
    }
}
