//! Plan of a reverse-mode derivative: dry run, tape plan, and further rounds for recomputed loops and early frees.
//!
//! Each round builds the facts for the choices of the round before, records the required forward values in a dry run
//! of the reverse pass, and plans the tape.

use crate::Options;
use crate::analysis::body_facts::{BodyFacts, PlanChoices, RecomputableLoop, forward_slice};
use crate::analysis::forward_value::{Node, defining_region};
use crate::context::inputs::Inputs;
use crate::reverse::dry_run;
use crate::tape::plan::{PlanOptions, TapePlan, fits_ssa_values, plan};
use crate::tape::save_selection::{execution_cost, saving_cost};
use crate::tape::unneeded_deferrals::unneeded_deferrals;
use crate::variant::{Mode, Variant};
use gradus_ir::{Diagnostic, Op, Unit, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Fraction of a loop's saving cost that recomputation avoids: the reversal of an iteration still saves
/// values for that iteration.
const AVOIDED_SAVING_FRACTION: f64 = 0.5;

/// Computes the facts and the plan of a reverse-mode derivative. The first plan recomputes no loops. Further
/// plans recompute the profitable loops, and drop loops whose unknown carried values the plan requires. A
/// last plan frees blocks early if their deferral is unneeded. `make` builds the facts for given choices.
///
/// # Errors
/// Diagnostics for a function that cannot be differentiated.
pub(crate) fn plan_with_recomputation<'b>(
    unit: &mut Unit,
    variant: &Variant,
    options: &Options,
    make: impl Fn(&Unit, PlanChoices) -> Result<BodyFacts<'b>, Vec<Diagnostic>>,
) -> Result<(BodyFacts<'b>, TapePlan), Vec<Diagnostic>> {
    let planned = |unit: &mut Unit, replayed: &BTreeMap<Op, RecomputableLoop>, freed_at_once| {
        let chosen = PlanChoices {
            recomputed_loops: replayed.clone(),
            freed_early: freed_at_once,
        };
        let facts = make(unit, chosen)?;
        let plan = make_plan(unit, &facts, variant, options);
        Ok::<_, Vec<Diagnostic>>((facts, plan))
    };
    let none = BTreeMap::new();
    let (mut facts, mut plan) = planned(unit, &none, BTreeSet::new())?;
    let mut replayed = choose_recomputed_loops(unit, &facts, variant, options, &plan);
    while !replayed.is_empty() {
        let (again, by) = planned(unit, &replayed, BTreeSet::new())?;
        let before = replayed.len();
        replayed.retain(|_, repeatable| is_not_required(&by, &repeatable.unknown_values));
        if replayed.len() == before {
            (facts, plan) = (again, by);
            break;
        }
    }
    let blocks = unneeded_deferrals(&facts, &plan);
    if options.early_frees && !blocks.is_empty() {
        let (again, by) = planned(unit, &replayed, blocks)?;
        if replayed
            .values()
            .all(|repeatable| is_not_required(&by, &repeatable.unknown_values))
        {
            return Ok((again, by));
        }
    }
    Ok((facts, plan))
}

/// Plans the tape of a reverse-mode derivative.
fn make_plan(
    unit: &mut Unit,
    facts: &BodyFacts<'_>,
    variant: &Variant,
    options: &Options,
) -> TapePlan {
    let signature = variant.signature(unit);
    let (mut needs, mut findings) = (Vec::new(), Vec::new());
    let mut inputs = Inputs {
        facts,
        cleared: &[],
        global_pointers: &[],
        checked_pointers: &[],
        owned_blocks: &[],
        variant,
        options,
        needs: &mut needs,
        findings: &mut findings,
    };
    let needed = dry_run(unit, &mut inputs, &signature);
    let options = PlanOptions {
        ssa_outermost: variant.mode == Mode::Combined && fits_ssa_values(facts.body),
        width: variant.width,
        variance_cost: options.loop_variance_cost,
        recompute: options.recompute,
        conditions: options.save_conditions,
        shadow_pointers: options.shadow_pointers,
        segment_stack: options.segmented_tape,
    };
    let mut plan = plan(unit, facts, &needed, options);
    plan.skipped_loops = skippable_loops(unit, facts, variant, &plan);
    plan
}

/// Returns the loops to recompute. The plan saves values of each such loop. In addition, the forward pass can
/// omit the loop, or the iterations cost less than the saves.
fn choose_recomputed_loops(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    variant: &Variant,
    options: &Options,
    plan: &TapePlan,
) -> BTreeMap<Op, RecomputableLoop> {
    let pays = |lp: Op, repeatable: &RecomputableLoop| {
        let kept = saved_per_iteration(facts, plan, lp);
        let costs = kept
            .iter()
            .map(|node| saving_cost(unit, facts, *node, variant.width));
        let saved = AVOIDED_SAVING_FRACTION * costs.sum::<f64>();
        !kept.is_empty()
            && is_not_required(plan, &repeatable.unknown_values)
            && (!options.recompute_loops_cost
                || may_skip_in_forward_pass(unit, facts, variant, plan, lp)
                || execution_cost(unit, facts, lp) < saved)
    };
    let all = facts.recomputable_loops().iter();
    all.filter(|(lp, repeatable)| pays(**lp, repeatable))
        .map(|(lp, repeatable)| (*lp, repeatable.clone()))
        .collect()
}

/// Returns the recomputed loops that the forward pass can omit.
fn skippable_loops(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    variant: &Variant,
    plan: &TapePlan,
) -> HashSet<Op> {
    let all = facts.recomputed_loops().keys().copied();
    all.filter(|lp| may_skip_in_forward_pass(unit, facts, variant, plan, *lp))
        .collect()
}

fn is_not_required(plan: &TapePlan, values: &HashSet<Value>) -> bool {
    let asked = |value: &Value| {
        plan.required.contains(&Node::Primal(*value))
            || plan.required.contains(&Node::Shadow(*value))
    };
    !values.iter().any(asked)
}

/// Returns true if no required value depends on the results of a loop, and its iterations write nothing that
/// is read elsewhere. In split mode, the caller may read the result.
fn may_skip_in_forward_pass(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    variant: &Variant,
    plan: &TapePlan,
    lp: Op,
) -> bool {
    let results = facts.body.results(lp);
    let unreturned = variant.mode == Mode::Combined && !variant.primal_result;
    variant.mode == Mode::Combined
        && !results.iter().any(|v| facts.has_shadow(*v))
        && forward_slice(unit, facts.body, results, None, unreturned)
            .is_some_and(|values| is_not_required(plan, &values))
}

/// Returns the forward values of a loop that are saved once per iteration.
fn saved_per_iteration(facts: &BodyFacts<'_>, plan: &TapePlan, lp: Op) -> Vec<Node> {
    let inside = facts.body.op_regions(lp)[0];
    let is_inside = |node: &&Node| {
        defining_region(facts, **node).is_some_and(|home| facts.body.is_inside(home, inside))
            && facts.varying_loops(**node).contains(&lp)
    };
    plan.saved.iter().filter(is_inside).copied().collect()
}
