//! Optimises calls of derivatives in the program's own functions, after all derivatives are emitted.
//!
//! 1. A derivative with a run-time alias check is replaced by the version for disjoint memory if alias
//!    analysis of the caller proves the arguments disjoint, e.g. for a local array.
//! 2. Several calls of a derivative in a region, as for the rows of a Jacobian, are inlined; common
//!    subexpressions are then computed once. CSE finds them only here: by the call's alias scopes (axiom
//!    S1) adjoint stores do not clobber primal loads, hence loaded values survive until the next call.

use crate::reports::derivative_record::DerivativeRecord;
use crate::run::{StagePass, StageRun};
use gradus_ad::{Mode, Variant, Versions};
use gradus_analysis::{Alias, AliasOptions, Analyses, Effects, Stage};
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, Region, Unit};
use gradus_simplify::has_equal_target_attributes;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of inlined calls of a derivative per region, and maximum number of ops of the derivative.
const INLINED_CALLS_MAX: usize = 4;
const INLINED_OPS_MAX: usize = 1000;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "rewrite-call-sites",
    stage: Stage::Unit,
    switch: None,
    about: "optimises calls of derivatives in the program's own functions",
    run: StageRun::Step,
};

/// Rewrites the calls of derivatives in `callers`.
pub(crate) fn rewrite_derivative_calls(
    unit: &mut Unit,
    analyses: &mut Analyses,
    made: &[Vec<DerivativeRecord>],
    callers: &[FuncId],
) {
    if callers.is_empty() {
        return;
    }
    let tested: HashMap<FuncId, VersionedDerivative> = made
        .iter()
        .flat_map(|list| versioned_derivatives(list))
        .collect();
    let whole = |made: &&DerivativeRecord| made.variant.mode == Mode::Combined;
    let derivatives: Vec<FuncId> = (made.iter().flatten().filter(whole))
        .map(|made| made.func)
        .collect();
    let effects = analyses.effects(unit, callers);
    for &caller in callers {
        let Some(mut body) = unit.functions[caller].body.take() else {
            continue;
        };
        call_without_test(unit, (caller, &mut body), &effects, &tested);
        let inlined = inline_repeated_calls(unit, (caller, &mut body), &derivatives);
        unit.functions[caller].body = Some(body);
        if inlined {
            gradus_simplify::cse_inlined_calls(unit, analyses, caller);
        }
    }
}

/// A derivative with a run-time alias check.
struct VersionedDerivative<'a> {
    /// The pairs of parameters compared by the check.
    checked_pairs: &'a [(usize, usize)],
    /// The version for disjoint memory.
    disjoint: FuncId,
}

/// Returns the derivatives of a root with a run-time alias check.
fn versioned_derivatives(
    made: &[DerivativeRecord],
) -> impl Iterator<Item = (FuncId, VersionedDerivative<'_>)> {
    let tests = made.iter().filter(|made| !made.checked_pairs.is_empty());
    tests.filter_map(|test| {
        let disjoint = Variant {
            versions: Versions::Disjoint,
            ..test.variant.clone()
        };
        let version = made.iter().find(|made| made.variant == disjoint)?;
        let tested = VersionedDerivative {
            checked_pairs: &test.checked_pairs,
            disjoint: version.func,
        };
        Some((test.func, tested))
    })
}

/// Returns the calls of a body, each with the callee.
fn calls(unit: &Unit, body: &Body) -> Vec<(Op, FuncId)> {
    let calls = body.walk(body.root());
    let calls = calls.filter(|op| matches!(body.kind(*op), OpKind::Call(_)));
    calls
        .filter_map(|op| Some((op, unit.callee(body, op)?)))
        .collect()
}

fn call_without_test(
    unit: &mut Unit,
    (caller, body): (FuncId, &mut Body),
    effects: &Effects,
    tested: &HashMap<FuncId, VersionedDerivative<'_>>,
) {
    let mut calls = calls(unit, body);
    calls.retain(|(_, func)| tested.contains_key(func));
    if calls.is_empty() {
        return;
    }
    {
        let alias = Alias::new(unit, Some(caller), body, effects, &AliasOptions::default());
        calls.retain(|(op, func)| {
            let args = unit.call_args(body, *op);
            let mut pairs = tested[func].checked_pairs.iter();
            pairs.all(|(a, b)| !alias.pointees_may_alias(args[*a], args[*b]))
        });
    }
    for (op, func) in calls {
        let callee = Builder::new(unit, body).func(tested[&func].disjoint);
        body.set_operand(op, 0, callee);
    }
}

/// Inlines derivatives called several times in a region. Returns true if any call was inlined.
fn inline_repeated_calls(
    unit: &mut Unit,
    (caller, body): (FuncId, &mut Body),
    derivatives: &[FuncId],
) -> bool {
    let mut together: BTreeMap<(Region, FuncId), Vec<Op>> = BTreeMap::new();
    for (op, func) in calls(unit, body) {
        if let (Some(region), true) = (body.parent(op), derivatives.contains(&func)) {
            together.entry((region, func)).or_default().push(op);
        }
    }
    let mut any = false;
    for ((_, func), calls) in together {
        let Some(mut callee) = unit.functions[func].body.clone() else {
            continue;
        };
        // In the caller, a slot would live on across the calls.
        gradus_edit::promote_slots(unit, &mut callee);
        let short = callee.walk(callee.root()).take(INLINED_OPS_MAX + 1).count() <= INLINED_OPS_MAX;
        if !(2..=INLINED_CALLS_MAX).contains(&calls.len())
            || !short
            || !has_equal_target_attributes(unit, caller, func)
        {
            continue;
        }
        for call in calls {
            any |= gradus_edit::inline_call(unit, body, call, func, &callee).is_ok();
        }
    }
    any
}
