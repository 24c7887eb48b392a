//! Stores of integers to memory that holds floats.

use crate::checks::finding::Finding;
use crate::checks::float_bits::float_bits_diagnostic;
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::types::lattice;
use gradus_ir::{Op, Value};

/// Refuses stores of integers that become part of a float in memory.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_accesses(|op, access| {
        let ValueAccess::Store { ptr, value } = access else {
            // Not an error: a load writes no memory.
            return None;
        };
        variant
            .is_integer_over_float(op, ptr, value)
            .then(|| float_bits_diagnostic(variant.facts.unit, variant.func, variant.body, op))
    })
}

impl VariantFacts<'_> {
    /// Returns true for a store of an integer that becomes part of a float in memory. A store to a named integer member
    /// is exempt, unless the value was computed from float bits: no later load reads a float there.
    fn is_integer_over_float(&self, op: Op, ptr: Value, value: Value) -> bool {
        let facts = self.facts;
        let number = facts.unit.types.int_bits(self.body.ty(value)).is_some()
            && facts.words.lanes(self.func, value).is_empty();
        if !number {
            // Not an error: the value is no plain integer.
            return false;
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
            && facts.words.is_conflicting(self.func, value);
        if !scrambled && !is_word && facts.words.integer_in_words(facts.unit, facts.memory, site) {
            // Not an error: the derivative clears the shadow of the word.
            return false;
        }
        targets.iter().any(|place| {
            (reaches_shadow || scrambled && self.classes.is_useful(place.class))
                && facts.words.overlaps_floats(facts.memory, *place, bytes)
        })
    }
}
