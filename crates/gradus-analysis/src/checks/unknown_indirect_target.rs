//! Indirect calls without a known target (GRD0018).

use crate::call_graph::Callee;
use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use crate::checks::variant::{CallFacts, VariantFacts};
use gradus_ir::{Code, Diagnostic, Value};

/// Refuses active values in memory that an indirect call without a known target returns.
pub(super) fn allocators(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::IndirectAllocator(site) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let message =
            "active values are stored in memory from an indirect call without a known target";
        let error = store.error_at_allocation(unit, site, Code::UnknownIndirectTarget, message);
        Some(error.help("compile the file that defines the target together with this one, or directly call an allocator that is registered with `__enzyme_allocation_like`"))
    })
}

/// Refuses indirect calls that work on active values and have no known target, or pass pointers as integers.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| match call.callee {
        Callee::Indirect(_) if call.active || call.shadowed => indirect_call(variant, call),
        Callee::Indirect(_) | Callee::Inside(_) | Callee::Outside(_) | Callee::Foreign => None,
    })
}

fn indirect_call(variant: &VariantFacts<'_>, call: &CallFacts) -> Option<Diagnostic> {
    let memory = variant.facts.memory;
    if memory.callees(variant.func, call.op).is_empty() {
        let message = "an indirect call works on active values and has no known target";
        let help = "compile the file that defines the target together with this one; if a function outside the differentiated code stores the target in a variable beforehand, use a constant table, or pass the target as an argument";
        let error = || variant.error(call.op, Code::UnknownIndirectTarget, message);
        let has_target = memory.may_call_unknown(variant.func, call.op);
        return has_target.then(|| error().help(help));
    }
    let in_bits = |v: &Value| {
        let number = variant.facts.unit.types.int_bits(variant.body.ty(*v));
        number.is_some() && variant.activity.shadow(*v).is_some()
    };
    call.args.iter().any(in_bits).then(|| {
        let message = "an indirect call passes pointers to active memory as integers";
        variant
            .error(call.op, Code::UnknownIndirectTarget, message)
            .help("pass the values with their own types, or call the function directly")
    })
}
