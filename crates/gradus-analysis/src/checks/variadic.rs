//! Variadic arguments with active values (GRD0034).

use crate::call_graph::Callee;
use crate::calls::varargs;
use crate::checks::finding::{Finding, name_of};
use crate::checks::variant::{CallFacts, VariantFacts};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn};
use gradus_ir::{Code, FuncId, Value};

/// Refuses calls with active variadic arguments, unless the callee only formats them as text.
pub(super) fn arguments(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| {
        let Callee::Inside(callee) = call.callee else {
            // Not an error: a function without a body receives values by its own rules.
            return None;
        };
        has_active_arguments(variant, call, callee).then(|| {
            let callee = name_of(variant.facts.unit, callee);
            let message = format!("variadic arguments of `{callee}` are active");
            variant
                .error(call.op, Code::Variadic, message)
                .help("pass the values as named arguments")
        })
    })
}

fn has_active_arguments(variant: &VariantFacts<'_>, call: &CallFacts, callee: FuncId) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    let inner = unit.functions[callee].body.as_deref();
    let count = inner.map_or(0, |body| body.params().len());
    let is_active = |v: &&Value| variant.activity.active(**v) || variant.points_to_active(**v);
    let is_printed = || varargs::varargs_are_only_formatted(unit, variant.facts.closure, callee);
    let may_be_structure = |v: &Value| varargs::may_be_structure(unit.types.get(body.ty(*v)));
    let mut extra = call.args.iter().skip(count).filter(is_active);
    extra.any(|v| may_be_structure(v) || !is_printed())
        || passes_varied_structure(variant, call, count)
}

/// Returns true if a call passes a structure with varied floats in memory (`byval`) behind its first `named`
/// arguments: the callee reads a copy, to which no float flows.
fn passes_varied_structure(variant: &VariantFacts<'_>, call: &CallFacts, named: usize) -> bool {
    let info = variant.body.kind(call.op).call_info();
    let attrs = info.and_then(|info| info.attrs);
    let attrs = attrs.map(|id| variant.facts.unit.attrs(id));
    let mut args = call.args.iter().enumerate().skip(named);
    args.any(|(index, arg)| {
        attrs.is_some_and(|attrs| attrs.param(index, "byval").is_some())
            && variant.may_point_into(*arg, |class| variant.classes.is_varied(class))
    })
}

/// Refuses variadic arguments that are used for more than printing.
pub(super) fn uses(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let (unit, closure) = (variant.facts.unit, variant.facts.closure);
    variant.at_known_calls(|call, known| {
        let begins = known == ExternalFn::Marker(CompilerIntrinsic::VaStart);
        let site = (variant.func, call.op);
        let is_refused = begins && !varargs::va_list_is_only_formatted(unit, closure, site);
        is_refused.then(|| {
            let message = "a function that works on active values reads its variadic arguments";
            let error = variant.error(call.op, Code::Variadic, message);
            [error.help("pass the values as named arguments")]
        })
    })
}
