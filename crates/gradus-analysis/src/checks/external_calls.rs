//! Calls of external functions without a derivative that work on active values.

use crate::call_graph::Callee;
use crate::calls::printf_formats;
use crate::checks::callbacks;
use crate::checks::variant::{CallFacts, VariantFacts};
use gradus_ir::externals::{CompilerIntrinsic, Effects, ExternalFn, GpuFn, SystemFn};
use gradus_ir::{AttrSet, AttrValue, FuncId, OpKind};

/// Returns the possible callees of a call that have no body and no known derivative, if the call works on active
/// values. Functions with a check of their own are left out.
pub(super) fn functions_without_derivative(
    variant: &VariantFacts<'_>,
    call: &CallFacts,
) -> Vec<FuncId> {
    match call.callee {
        Callee::Outside(callee) if lacks_derivative(variant, call, callee) => vec![callee],
        Callee::Indirect(_) if call.active || call.shadowed => {
            let callees = variant.facts.memory.callees(variant.func, call.op).iter();
            let lacking = callees.filter(|callee| target_lacks_derivative(variant, call, **callee));
            lacking.copied().collect()
        }
        Callee::Outside(_) | Callee::Indirect(_) | Callee::Inside(_) | Callee::Foreign => {
            Vec::new()
        }
    }
}

/// Returns true if a possible target of an indirect call has no derivative.
fn target_lacks_derivative(variant: &VariantFacts<'_>, call: &CallFacts, callee: FuncId) -> bool {
    let unit = variant.facts.unit;
    let known = unit.known_effects(callee).is_some_and(|e| e.inactive);
    // A plain call is preceded by a test of its pointer against these functions.
    let asked = matches!(variant.body.kind(call.op), OpKind::Call(info)
        if info.bundles.is_empty() && info.signature == unit.functions[callee].ty);
    let by_name = asked
        && unit
            .known(callee)
            .is_some_and(ExternalFn::needs_direct_call);
    unit.functions[callee].body.is_none() && !known && !by_name
}

fn lacks_derivative(variant: &VariantFacts<'_>, call: &CallFacts, callee: FuncId) -> bool {
    let unit = variant.facts.unit;
    let Some(known) = unit.known(callee) else {
        return may_access_active_values(variant, call, callee)
            || callbacks::change_active_memory(variant, call);
    };
    if has_own_check(variant, call, known) {
        return false;
    }
    let effects = unit.known_effects(callee).unwrap_or(Effects::UNKNOWN);
    if effects.has_callbacks && callbacks::change_active_memory(variant, call) {
        return true;
    }
    let result = variant.body.call_result(call.op);
    let gives = result.is_some_and(|r| variant.activity.active(r));
    let hits = gives || call.active && !effects.inactive || call.shadowed && writes(effects);
    !effects.inactive && hits && !effects.is_pure()
}

/// Returns true for functions with a derivative, and for functions that another check refuses.
fn has_own_check(variant: &VariantFacts<'_>, call: &CallFacts, known: ExternalFn) -> bool {
    match known {
        ExternalFn::Memory(_)
        | ExternalFn::Masked(_)
        | ExternalFn::Math(_)
        | ExternalFn::MathOut(_)
        | ExternalFn::Complex(_)
        | ExternalFn::Reduce(_)
        | ExternalFn::Integer(_)
        | ExternalFn::Marker(
            CompilerIntrinsic::VaStart | CompilerIntrinsic::VaEnd | CompilerIntrinsic::VaCopy,
        )
        | ExternalFn::Kernel(GpuFn::Reset)
        | ExternalFn::System(SystemFn::Setjmp | SystemFn::Longjmp) => true,
        ExternalFn::OpenMp(_) | ExternalFn::Fork(_) | ExternalFn::Mpi | ExternalFn::Gpu => {
            call.works_on_active_values()
        }
        ExternalFn::System(SystemFn::Print | SystemFn::PrintToMemory) => {
            printf_formats::has_count_conversion(variant.facts.unit, variant.body, call.op)
        }
        // Every other function needs a derivative if it works on active values.
        _ => false,
    }
}

/// Returns true if an unknown function may access active values or modify their memory.
fn may_access_active_values(variant: &VariantFacts<'_>, call: &CallFacts, callee: FuncId) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    let info = body.kind(call.op).call_info();
    let stated = [
        Some(unit.functions[callee].attrs),
        info.and_then(|i| i.attrs),
    ];
    let only_reads = stated
        .into_iter()
        .flatten()
        .any(|id| only_reads(unit.attrs(id)));
    let words = variant.facts.words;
    let gives = body.call_result(call.op).is_some_and(|r| {
        words.carries_float(variant.func, r) && body.has_uses(r)
            || words.carries_pointer(variant.func, r)
    });
    call.works_on_active_values() && (gives || !only_reads)
}

fn writes(effects: Effects) -> bool {
    effects.writes.any || effects.writes.arguments != 0
}

/// Returns true if attributes state that a function writes no memory.
fn only_reads(attrs: &AttrSet) -> bool {
    let by_flag = ["readnone", "readonly"];
    let flag = by_flag.iter().any(|name| attrs.function(name).is_some());
    // LLVM's encoding of `memory`: two bits (reads, writes) per location.
    let memory = match attrs.function("memory") {
        Some(AttrValue::Int(bits)) => bits & 0xaaaa_aaaa == 0,
        _ => false,
    };
    flag || memory
}
