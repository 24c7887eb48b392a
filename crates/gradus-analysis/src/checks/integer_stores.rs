//! Stores of integers to memory that may hold floats (GRD0007, GRD0008).

use crate::checks::findings::Finder;
use crate::type_analysis::type_map::LaneKind;
use crate::types::lattice;
use gradus_ir::{BinaryOp, Code, Op, OpKind, Value};

impl Finder<'_> {
    /// Refuses stores of integers that become part of a float in memory. A store to a named integer member
    /// is exempt, unless the value was computed from float bits: no later load reads a float there.
    pub(super) fn check_integer_over_float(&mut self, op: Op, ptr: Value, value: Value) {
        let facts = self.facts;
        let is_integer = facts.unit.types.int_bits(self.body.ty(value)).is_some();
        if is_integer
            && facts.words.is_conflicting(self.func, value)
            && self.classes.may_be_float_bits(self.func, value)
            && self.points_to_active(ptr)
            && self.may_move_words(ptr, value)
        {
            return self.refuse_float_bits(op);
        }
        let number = is_integer && facts.words.lanes(self.func, value).is_empty();
        if !number {
            // Not an error: the value is no plain integer.
            return;
        }
        let scrambled = self.classes.is_bitwise_tainted(self.func, value);
        let named = lattice::is_integer_member(facts.unit, self.body, op)
            || lattice::is_next_to_pointers(facts.unit, self.body, op);
        let reaches_shadow = !named && self.points_to_active(ptr);
        let bytes = facts
            .unit
            .layout
            .store_bytes(facts.unit, self.body.ty(value));
        let targets = facts.memory.targets(self.func, ptr);
        let site = (self.func, op);
        // A word that may be a float or an address, moved as an integer, is no integer.
        let is_word = bytes >= u64::from(facts.unit.layout.pointer_bytes)
            && self.body.as_const(value).is_none()
            && (facts.words.is_conflicting(self.func, value)
                || self.classes.may_be_float_bits(self.func, value));
        if !scrambled && !is_word && facts.words.integer_in_words(facts.unit, facts.memory, site) {
            // Not an error: the derivative clears the shadow of the word.
            return;
        }
        if targets.iter().any(|place| {
            (reaches_shadow || scrambled && self.classes.is_useful(place.class))
                && facts.words.overlaps_floats(facts.memory, *place, bytes)
        }) {
            self.refuse_float_bits(op);
        }
    }
    /// Returns true if a value may be a number or an address, and the memory holds numbers and addresses: only the run
    /// knows which shadow to move.
    fn may_move_words(&self, ptr: Value, value: Value) -> bool {
        let (unit, memory, words) = (self.facts.unit, self.facts.memory, self.facts.words);
        let bytes = unit.layout.store_bytes(unit, self.body.ty(value));
        memory.targets(self.func, ptr).iter().any(|place| {
            let seen = words.type_at(memory, *place);
            seen.has_float() && seen.has_pointer() || words.overlaps_floats(memory, *place, bytes)
        })
    }
    /// Refuses stores of the bits of a varied float, under the name of an integer, to memory that others access: the
    /// analysis believes such names there, and the derivative would end. In memory of the program's own it follows the
    /// bits.
    pub(super) fn check_float_under_name(&mut self, op: Op, ptr: Value, value: Value) {
        let words = self.facts.words;
        let mut lanes = words.lanes(self.func, value).iter();
        let is_integer = self
            .facts
            .unit
            .types
            .int_bits(self.body.ty(value))
            .is_some();
        if is_integer
            && lanes.any(|lane| matches!(lane.kind, LaneKind::Float(_)))
            && self.classes.value_varied(self.func, value)
            && lattice::access_type(self.facts.unit, self.body, op).has_integer()
            && self.may_point_into(ptr, |class| words.is_visible(class))
        {
            self.refuse_float_bits(op);
        }
    }
    /// Refuses integer read-modify-write of memory with a shadow and without type evidence: the shadow
    /// would stay unchanged.
    pub(super) fn check_untyped_update(&mut self, op: Op, ptr: Value, value: Value) {
        let facts = self.facts;
        let number = facts.unit.types.scalar(self.body.ty(value));
        let wide = facts.unit.types.int_bits(number) >= Some(32);
        let named = lattice::has_tbaa_name(facts.unit, self.body, op);
        if wide
            && self.classes.is_bitwise_tainted(self.func, value)
            && !self.is_small_increment(value)
            && self.may_point_into(ptr, |class| {
                (!named || self.classes.contradicts_declaration(class))
                    && self.classes.is_unknown(class, self.names_accesses)
            })
        {
            let message =
                "integer arithmetic modifies memory with a shadow, and the memory may hold floats";
            let help =
                "access the memory through its own type, or pass integer memory without a shadow";
            self.refuse(op, Code::UnknownMemoryType, message, help);
        }
    }
    /// Returns true if a value is a loaded integer plus or minus a small constant. On a float, such a step
    /// changes a few last bits and leaves the adjoint unchanged.
    fn is_small_increment(&self, value: Value) -> bool {
        const SMALL_STEP_MAX: u64 = 1 << 16;
        let body = self.body;
        let Some(op) = body.def_op(value) else {
            return false;
        };
        let OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) = body.kind(op) else {
            return false;
        };
        let by = body.as_int(self.facts.unit, body.operand(op, 1));
        by.is_some_and(|by| by.unsigned_abs() < SMALL_STEP_MAX)
            && !self
                .classes
                .is_bitwise_tainted(self.func, body.operand(op, 0))
    }
}
