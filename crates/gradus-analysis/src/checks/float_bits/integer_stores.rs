//! Stores of integers to memory that holds floats.

use crate::checks::finding::Finding;
use crate::checks::float_bits::finding;
use crate::checks::float_bits::reasons::Reason;
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::points_to::alias_sets::CellRef;
use crate::type_analysis::type_map::LaneKind;
use crate::types::lattice;
use gradus_ir::{Op, OpKind, Value};

/// Refuses stores of integers that become part of a float in memory.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_accesses(|op, access| {
        let ValueAccess::Store { ptr, value } = access else {
            // Not an error: a load writes no memory.
            return None;
        };
        let over_float = variant.integer_over_float(op, ptr, value);
        let reason = over_float.or_else(|| {
            let is_number = variant.is_float_under_integer_name(op, ptr, value);
            is_number.then_some(Reason::FloatUnderIntegerName)
        });
        reason.map(|reason| finding(variant, op, reason))
    })
}

impl VariantFacts<'_> {
    /// Returns the reason to refuse a store of an integer that becomes part of a float in memory. A store to a named
    /// integer member is exempt, unless the value was computed from float bits: no later load reads a float there.
    fn integer_over_float(&self, op: Op, ptr: Value, value: Value) -> Option<Reason> {
        let facts = self.facts;
        let is_integer = facts.unit.types.int_bits(self.body.ty(value)).is_some();
        if is_integer
            && facts.words.is_conflicting(self.func, value)
            && self.classes.may_be_float_bits(self.func, value)
            && self.points_to_active(ptr)
            && self.may_move_words(ptr, value)
        {
            return Some(Reason::WordAsInteger);
        }
        let number = is_integer && facts.words.lanes(self.func, value).is_empty();
        if !number {
            // Not an error: the value is no plain integer.
            return None;
        }
        let scrambled = self.classes.is_bitwise_tainted(self.func, value);
        let named = lattice::is_integer_member(facts.unit, self.body, op)
            && !self.stores_own_floats_at(op, ptr, value)
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
        // Where the program stores integers, too, arithmetic on their words is no arithmetic on numbers as a rule. The
        // derivative of a number that the program reads from the result is unknown, and the run says so.
        let is_integer_word =
            || (targets.iter()).all(|place| self.classes.receives_integers(facts, *place));
        let is_clear = !scrambled || is_integer_word();
        if is_clear && !is_word && facts.words.integer_in_words(facts.unit, facts.memory, site) {
            // Not an error: the derivative clears the shadow of the word.
            return None;
        }
        let is_refused = targets.iter().any(|place| {
            (reaches_shadow || scrambled && self.classes.is_useful(place.class))
                && facts.words.overlaps_floats(facts.memory, *place, bytes)
        });
        is_refused.then_some(match (scrambled, is_word) {
            (true, _) => Reason::Arithmetic,
            (false, true) => Reason::WordAsInteger,
            (false, false) => Reason::IntegerOverFloat,
        })
    }

    /// Returns true if the program's own memory holds floats at the very place of a store, not only at other offsets of a
    /// fold: members that hold the halves of a number.
    fn stores_own_floats_at(&self, op: Op, ptr: Value, value: Value) -> bool {
        let (memory, words) = (self.facts.memory, self.facts.words);
        let unit = self.facts.unit;
        let bytes = unit.layout.store_bytes(unit, self.body.ty(value));
        let is_own = |place: &CellRef| !words.is_visible(place.class);
        let mut targets = memory.targets(self.func, ptr).iter();
        matches!(self.body.kind(op), OpKind::Store(_))
            && targets.any(|place| is_own(place) && words.has_floats_at(*place, bytes))
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

    /// Returns true for a store of the bits of a varied float, under the name of an integer, to memory that others
    /// access: the analysis believes such names there, and the derivative would end. In memory of the program's own it
    /// follows the bits.
    fn is_float_under_integer_name(&self, op: Op, ptr: Value, value: Value) -> bool {
        let words = self.facts.words;
        let mut lanes = words.lanes(self.func, value).iter();
        let is_integer = self
            .facts
            .unit
            .types
            .int_bits(self.body.ty(value))
            .is_some();
        is_integer
            && lanes.any(|lane| matches!(lane.kind, LaneKind::Float(_)))
            && self.classes.value_varied(self.func, value)
            && lattice::access_type(self.facts.unit, self.body, op).has_integer()
            && self.may_point_into(ptr, |class| words.is_visible(class))
    }
}
