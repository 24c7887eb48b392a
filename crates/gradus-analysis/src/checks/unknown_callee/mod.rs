//! Functions without a body and without a known derivative (GRD0005).

pub(super) mod external_writes;
pub(super) mod flang_advice;

use crate::call_graph::Callee;
use crate::calls::printf_formats;
use crate::checks::external_calls::functions_without_derivative;
use crate::checks::finding::{Finding, name_of};
use crate::checks::request::RequestFacts;
use crate::checks::unshadowed_stores::Destination;
use crate::checks::unsupported_control::is_strict_float_function;
use crate::checks::variant::{CallFacts, VariantFacts};
use flang_advice::flang_advice;
use gradus_ir::externals::{ExternalFn, SystemFn, blas_advice, may_be_user_defined};
use gradus_ir::{Code, Diagnostic, FuncId, TypeId, Value};

/// Refuses active values in memory from a function that may be an allocator.
pub(super) fn allocators(request: &RequestFacts<'_>) -> Vec<Finding> {
    let unit = request.facts.unit;
    request.at_unshadowed_stores(|store| {
        let Destination::Allocator(site, callee) = store.destination else {
            // Not an error: the store has another code.
            return None;
        };
        let name = name_of(unit, callee);
        let message =
            format!("active values are stored in memory from `{name}`, an external function");
        let error = store.error_at_allocation(unit, site, Code::UnknownCallee, message);
        Some(error.help(format!(
            "compile the file that defines `{name}` together with this one, or register `{name}` as an allocator with `__enzyme_allocation_like`"
        )))
    })
}

/// Refuses calls of a function with active arguments of other types than the parameters.
pub(super) fn signatures(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| {
        let Callee::Inside(callee) = call.callee else {
            // Not an error: the check is about functions with a body.
            return None;
        };
        let works = call.active || call.shadowed;
        let is_refused = works && !matches_signature(variant, callee, &call.args);
        is_refused.then(|| {
            let name = name_of(variant.facts.unit, callee);
            let message =
                format!("`{name}` is called with argument types that differ from the definition");
            variant
                .error(call.op, Code::UnknownCallee, message)
                .help(format!("declare `{name}` with the types of the definition"))
        })
    })
}

/// Returns true if the arguments have the parameter types of a function.
fn matches_signature(variant: &VariantFacts<'_>, callee: FuncId, args: &[Value]) -> bool {
    let unit = variant.facts.unit;
    let types = unit.param_types(unit.functions[callee].ty);
    let same = |(arg, ty): (&Value, &TypeId)| variant.body.ty(*arg) == *ty;
    types.len() <= args.len() && std::iter::zip(args, types).all(same)
}

/// Refuses calls of functions without a body and without a known derivative that work on active values.
pub(super) fn calls(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_calls(|call| {
        let callees = functions_without_derivative(variant, call).into_iter();
        let callees =
            callees.filter(|callee| !is_strict_float_function(variant.facts.unit, *callee));
        callees
            .map(|callee| unknown_derivative(variant, call, callee))
            .collect::<Vec<_>>()
    })
}

fn unknown_derivative(variant: &VariantFacts<'_>, call: &CallFacts, callee: FuncId) -> Diagnostic {
    let unit = variant.facts.unit;
    let name = name_of(unit, callee);
    let error = |message: String| variant.error(call.op, Code::UnknownCallee, message);
    if let Some(ExternalFn::System(SystemFn::Qsort | SystemFn::Bsearch)) = unit.known(callee) {
        let message = format!("`{name}` calls a comparison function that works on active values");
        return error(message).help("do not modify outer variables in the comparison function, or search or sort with an explicit loop");
    }
    let error = error(format!(
        "`{name}` works on active values and has no known derivative"
    ));
    let symbol = &unit.functions[callee].name;
    if let Some(help) = flang_advice(symbol).or_else(|| blas_advice(symbol)) {
        return error.help(help);
    }
    let or = match may_be_user_defined(symbol) {
        true => "include <math.h> to use the C library's function",
        false => "register a derivative for the function",
    };
    error.help(format!(
        "compile the file that defines `{name}` together with this one, or {or}"
    ))
}

/// Refuses `%n` in formats of `printf`.
pub(super) fn character_counts(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let (unit, body) = (variant.facts.unit, variant.body);
    variant.at_known_calls(|call, known| {
        let prints = matches!(
            known,
            ExternalFn::System(SystemFn::Print | SystemFn::PrintToMemory)
        );
        let is_refused = prints && printf_formats::has_count_conversion(unit, body, call.op);
        is_refused.then(|| {
            let message = "`%n` writes a character count to memory, and the analysis does not follow this write";
            let error = variant.error(call.op, Code::UnknownCallee, message);
            [error.help("use the character count that the call returns")]
        })
    })
}
