//! Shadows of addresses in integers (Note [Address words] in gradus-analysis).
//!
//! The shadow of arithmetic with one address lies as far from the shadow of the address as the result lies from the address:
//! this holds for sums, alignment masks and tag bits. The shadow of the sum, the difference or the exclusive or of two words
//! with addresses is the same op on the shadows: a list that is linked by exclusive ors, a distance between two blocks.

use super::ForwardPass;
use crate::emit::builder::Lanes;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, IntPredicate, Op, Value};

impl ForwardPass<'_, '_, '_, '_> {
    /// Emits the shadow of integer arithmetic with addresses.
    pub(super) fn address_arithmetic(&mut self, op: Op, binary: BinaryOp) {
        let body = self.facts.body;
        let (result, a, b) = (body.result(op), body.operand(op, 0), body.operand(op, 1));
        let has_address = |value: Value| {
            self.facts.holds_pointer(self.out.unit, value) && self.facts.has_shadow(value)
        };
        let lanes = match (has_address(a), has_address(b)) {
            (true, false) => self.at_same_distance(a, result),
            (false, true) if binary != BinaryOp::Sub => self.at_same_distance(b, result),
            (false, false) => Lanes::from_elem(self.value(result), self.facts.width),
            _ => self.on_shadows(binary, [a, b]),
        };
        self.companions.insert(result, lanes);
    }

    /// Emits `shadow(address) + (result - address)`.
    fn at_same_distance(&mut self, address: Value, result: Value) -> Lanes {
        let shadows = self.companion(address);
        let (start, end) = (self.value(address), self.value(result));
        let mut b = self.out.build();
        let distance = match is_planted(Mutant::AddressDistanceLost) {
            true => b.i64(0),
            false => b.sub(end, start),
        };
        let moved = shadows.into_iter().map(|shadow| b.add(shadow, distance));
        moved.collect()
    }

    /// Emits the op on the shadows of its terms; a term without a shadow is its own shadow.
    fn on_shadows(&mut self, binary: BinaryOp, terms: [Value; 2]) -> Lanes {
        let [a, b] = terms.map(|term| match self.has_companion(term) {
            true => self.companion(term),
            false => Lanes::from_elem(self.value(term), self.facts.width),
        });
        let pairs = a.into_iter().zip(b);
        let mut build = self.out.build();
        pairs.map(|(a, b)| build.binary(binary, a, b)).collect()
    }

    /// Emits the shadow of a loaded word: the word itself if the loaded shadow is zero.
    pub(super) fn own_shadow_if_zero(&mut self, word: Value, shadow: Value) -> Value {
        if !self.facts.is_address_word(word) {
            return shadow;
        }
        let own = self.value(word);
        let ty = self.facts.body.ty(word);
        let mut b = self.out.build();
        let zero = b.zero(ty);
        let is_integer = b.icmp(IntPredicate::Eq, shadow, zero);
        b.select(is_integer, own, shadow)
    }
}
