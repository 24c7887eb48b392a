//! Memory with shadows whose type is unknown (GRD0007).

pub(super) mod untyped_updates;

use crate::checks::finding::Finding;
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::type_analysis::type_map::CopyKind;
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Code, Diagnostic, Op, Value};

/// Refuses byte copies of active memory whose cells have unknown types.
pub(super) fn copies(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let facts = variant.facts;
    variant.at_known_calls(|call, known| {
        let is_copy = matches!(
            known,
            ExternalFn::Memory(
                MemoryFn::Memcpy
                    | MemoryFn::MemcpyIntrinsic
                    | MemoryFn::Memmove
                    | MemoryFn::MemmoveIntrinsic
                    | MemoryFn::Mempcpy
                    | MemoryFn::Bcopy
            )
        );
        let kind = || {
            let (body, func) = (variant.body, variant.func);
            (facts.words).copy_kind(facts.unit, facts.memory, body, func, call.op)
        };
        let is_refused = is_copy && call.shadowed && kind() == CopyKind::Unknown;
        is_refused.then(|| [unknown_type(variant, call.op)])
    })
}

/// Refuses cells that are moved as integers through memory with shadows and may be floats.
pub(super) fn moves(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_accesses(|op, access| {
        let (ValueAccess::Load { ptr, value } | ValueAccess::Store { ptr, value }) = access;
        is_opaque_move(variant, ptr, value).then(|| unknown_type(variant, op))
    })
}

fn is_opaque_move(variant: &VariantFacts<'_>, ptr: Value, value: Value) -> bool {
    let facts = variant.facts;
    variant.points_to_active(ptr)
        && (facts.words).is_opaque(facts.memory, variant.func, ptr, value)
        && variant.body.as_int(facts.unit, value).is_none()
}

fn unknown_type(variant: &VariantFacts<'_>, op: Op) -> Diagnostic {
    let message = "cannot determine whether the copied bytes are floats, pointers or integers";
    variant.error(op, Code::UnknownMemoryType, message).help(
        "access the memory through its own type in the differentiated code, or copy member by member",
    )
}
