//! Code without a derivative that works on active values (GRD0006): address arithmetic on integers, LLVM instructions,
//! weak aliases, modified copies of structures.

use crate::checks::finding::{Finding, name_of};
use crate::checks::variant::VariantFacts;
use crate::memory::value_accesses::ValueAccess;
use crate::scev::poly;
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{BinaryOp, CastOp, Code, ConstKind, Diagnostic, Op, OpKind, Value};

/// Action for code without a derivative.
pub(super) const HELP_INACTIVE: &str =
    "move this code out of the differentiated function, or register a derivative for the function";

/// Refuses `byval` structures with active floats that the function modifies: the copy would need its own shadow.
pub(super) fn by_value_parameters(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let unit = variant.facts.unit;
    let function = &unit.functions[variant.func];
    let is_modified = |(index, param): (usize, &Value)| {
        let changed = variant.may_point_into(*param, |class| {
            variant.classes.holds_active_floats(class) && variant.classes.is_written(class)
        });
        changed && unit.attrs(function.attrs).param(index, "byval").is_some()
    };
    let params = variant.body.params().iter().enumerate();
    let modified = params.filter(|param| is_modified(*param));
    let finding = |_| {
        let message =
            "the function modifies a structure that is passed by value, and the copy has no shadow";
        let error = Diagnostic::error(Code::NoDerivative, message)
            .in_function(name_of(unit, variant.func))
            .at(function.span.clone(), "in this function")
            .help("pass the structure by address, or copy the structure to a local variable first");
        Finding {
            position: 0,
            diagnostic: error,
        }
    };
    modified.map(finding).collect()
}

/// Refuses address arithmetic that would map the shadow's address to a different place.
pub(super) fn address_arithmetic(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        let mut results = variant.body.results(op).iter();
        let is_refused =
            results.any(|value| is_assembled(variant, *value)) || computes_address(variant, op);
        is_refused.then(|| {
            let message = "integer arithmetic computes an address of active memory";
            variant
                .error(op, Code::NoDerivative, message)
                .help("compute the address with pointers, or from one address by sums, differences and masks")
        })
    })
}

/// Returns true for a pointer that is assembled from bits of an address of active memory: nobody assembles the shadow.
fn is_assembled(variant: &VariantFacts<'_>, pointer: Value) -> bool {
    let memory = variant.facts.memory;
    memory.is_assembled(variant.func, pointer)
        && memory.unknown_memory().is_some_and(|(unknown, escaped)| {
            let mut classes = escaped.into_iter().chain([unknown]);
            classes.any(|class| variant.reaches_floats(class))
        })
}

/// Returns true if an op computes an address of active memory from integers.
fn computes_address(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (unit, body) = (variant.facts.unit, variant.body);
    match body.kind(op) {
        OpKind::Addr { .. } => {
            poly::is_address_without_object(unit, body, body.operand(op, 0))
                && variant.may_point_into(body.result(op), |class| variant.reaches_floats(class))
        }
        OpKind::Cast(CastOp::IntToPtr) => {
            let from = body.operand(op, 0);
            let words = variant.facts.words;
            body.def_op(from)
                .is_some_and(|from| matches!(body.kind(from), OpKind::Binary(_)))
                && !words.has_address_terms(body, variant.func, from)
                && variant.points_to_active(body.result(op))
        }
        OpKind::Binary(_)
            if variant
                .facts
                .words
                .carries_pointer(variant.func, body.result(op)) =>
        {
            !has_shadow_rule(variant, op) && variant.points_to_active(body.result(op))
        }
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let masks = unit.known_callee(body, op) == Some(ExternalFn::Integer(IntFn::Ptrmask));
            let mut args = unit.call_args(body, op).into_iter();
            masks && args.any(|arg| variant.points_to_active(arg))
        }
        _ => false,
    }
}

/// Returns true if the shadow of an address follows from the shadows of the terms: one term with an address, or the sum, the
/// difference or the exclusive or of two. Bits of two addresses are no address.
fn has_shadow_rule(variant: &VariantFacts<'_>, op: Op) -> bool {
    let (body, words) = (variant.body, variant.facts.words);
    let has_address = |value: &Value| words.carries_pointer(variant.func, *value);
    let is_sum = matches!(
        body.kind(op),
        OpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor)
    );
    match body.operands(op).filter(has_address).count() {
        0 => false,
        1 => true,
        _ => {
            is_sum
                || !words.is_address_word(variant.facts.unit, body, variant.func, body.result(op))
        }
    }
}

/// Refuses LLVM instructions without an op of their own.
pub(super) fn instructions(variant: &VariantFacts<'_>) -> Vec<Finding> {
    variant.at_ops(|op| {
        let OpKind::Foreign(_) = variant.body.kind(op) else {
            // Not an error: the op has a derivative, or another check.
            return None;
        };
        let mut operands = variant.body.operands(op).into_iter();
        let reached = operands.any(|v| variant.activity.varied(v) || variant.points_to_active(v));
        reached.then(|| {
            let message = "an LLVM instruction without a derivative works on active values";
            variant
                .error(op, Code::NoDerivative, message)
                .help(HELP_INACTIVE)
        })
    })
}

/// Refuses float accesses through an interposable alias: the target variable, and its activity, are unknown.
pub(super) fn weak_aliases(variant: &VariantFacts<'_>) -> Vec<Finding> {
    let (unit, body) = (variant.facts.unit, variant.body);
    variant.at_accesses(|op, access| {
        let (ValueAccess::Load { ptr, value } | ValueAccess::Store { ptr, value }) = access;
        let base = body.const_kind(unit, body.address_base(ptr));
        let is_refused = matches!(base, Some(ConstKind::Foreign(_)))
            && variant.facts.words.carries_float(variant.func, value);
        is_refused.then(|| {
            let message = "floats are accessed through a weak alias, and the linker may bind the alias to another variable";
            variant
                .error(op, Code::NoDerivative, message)
                .help("access the variable by its own name, or make the alias a strong symbol")
        })
    })
}
