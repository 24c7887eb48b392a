//! Integer arithmetic that modifies memory of unknown type.

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::types::lattice;
use gradus_ir::{BinaryOp, Code, Op, OpKind, Value};

/// Refuses integer read-modify-write of memory with a shadow and without type evidence: the shadow would stay
/// unchanged.
pub(crate) fn check(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_accesses(|op, access| {
        let ValueAccess::Store { ptr, value } = access else {
            // Not an error: a load modifies no memory.
            return None;
        };
        variant.is_untyped_update(op, ptr, value).then(|| {
            let message =
                "integer arithmetic modifies memory with a shadow, and the memory may hold floats";
            variant.error(op, Code::UnknownMemoryType, message).help(
                "access the memory through its own type, or pass integer memory without a shadow",
            )
        })
    })
}

impl VariantFacts<'_> {
    /// Returns true for an integer read-modify-write of memory with a shadow and without type evidence.
    fn is_untyped_update(&self, op: Op, ptr: Value, value: Value) -> bool {
        let facts = self.facts;
        let number = facts.unit.types.scalar(self.body.ty(value));
        let wide = facts.unit.types.int_bits(number) >= Some(32);
        let named = lattice::has_tbaa_name(facts.unit, self.body, op);
        wide && self.classes.is_bitwise_tainted(self.func, value)
            && !self.is_small_increment(value)
            && self.may_point_into(ptr, |class| {
                (!named || self.classes.contradicts_declaration(class))
                    && self.classes.is_unknown(class, self.names_accesses)
            })
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
