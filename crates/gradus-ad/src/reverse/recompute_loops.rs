//! Loop recomputation in the reverse pass: selects the recomputed loops, and emits the recomputation of an
//! iteration.

use super::make_plan;
use crate::Options;
use crate::analysis::body_facts::snapshots::SnapshotExtent;
use crate::analysis::body_facts::{BodyFacts, PlanChoices, RecomputableLoop, forward_slice};
use crate::analysis::forward_value::{Node, defining_region};
use crate::emit::builder::Lanes;
use crate::forward::{ForwardPass, IterationState, TapeWriter};
use crate::reverse::restore::{Recall, missing_value_error};
use crate::reverse::reverse_pass::ReversePass;
use crate::tape::layout::TapeLayout;
use crate::tape::plan::{ArrayElement, TAIL_SLOT_BYTES, TapePlan};
use crate::tape::save_selection::{execution_cost, saving_cost};
use crate::tape::unneeded_deferrals::unneeded_deferrals;
use crate::variant::{Mode, Variant};
use gradus_ir::{Diagnostic, Op, Unit, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
pub(super) fn skippable_loops(
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

impl ReversePass<'_, '_, '_, '_> {
    /// Requests, before a recomputed loop, the values that an iteration uses from outside, and allocates the
    /// arrays of the iterations' tape. Returns `None` if the loop is not recomputed.
    pub(super) fn enter_recomputed_loop(&mut self, op: Op) -> Option<IterationState> {
        let repeatable = self.facts.recomputed_loop(op)?;
        let (mut values, mut shadows) = (HashMap::new(), HashMap::new());
        let more = self.facts.snapshot_inputs(op);
        for &value in repeatable.inputs.iter().chain(&more) {
            values.insert(value, self.primal(value));
            if self.facts.has_shadow(value) {
                shadows.insert(value, self.shadows_of(value));
            }
        }
        Some(IterationState {
            values,
            shadows,
            arrays: self.allocate_hoisted_arrays(op),
        })
    }

    fn allocate_hoisted_arrays(&mut self, op: Op) -> HashMap<Node, Lanes> {
        let mut made = HashMap::new();
        let Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run allocates no arrays.
            return made;
        };
        let (plan, layout) = (replay.plan, replay.layout);
        for &number in plan.hoisted.get(&op).map_or(&[][..], Vec::as_slice) {
            let array = &plan.arrays[number];
            let mut trips = Vec::new();
            for length in &array.lengths {
                let count = self.hoisted_trip_count(op, length.of);
                trips.push(layout.length(self.out, count, *length));
            }
            let bytes = match array.element {
                ArrayElement::Value(ty) => {
                    let one = layout.value_bytes(self.out, ty);
                    layout.array_bytes(self.out, one, &trips)
                }
                ArrayElement::Snapshot(number) => self.all_copies_bytes(op, number, layout, &trips),
                ArrayElement::Room => {
                    let one = self.out.build().i64(TAIL_SLOT_BYTES);
                    layout.array_bytes(self.out, one, &trips)
                }
            };
            let base = crate::emit::libc::private_block(&mut self.out.build(), bytes);
            let base = Lanes::from_elem(base, 1);
            made.insert(Node::ArrayBase(number), base);
        }
        made
    }

    /// Emits the size in bytes of all copies of a snapshot in loops with the given trip counts, within a
    /// recomputed loop.
    fn all_copies_bytes(
        &mut self,
        replayed: Op,
        number: usize,
        layout: &TapeLayout,
        trips: &[Value],
    ) -> Value {
        let snapshot = &self.facts.snapshots[number];
        let bytes = match snapshot.extent {
            SnapshotExtent::Block(size) => self.primal(size),
            SnapshotExtent::Bytes(bytes) => self.out.build().i64(bytes as i64),
            SnapshotExtent::Addresses(_) => {
                self.findings
                    .push(missing_value_error(Node::Snapshot(number)));
                self.out.build().i64(0)
            }
        };
        let one = layout.copy_stride_bytes(self.out, bytes);
        let all = layout.array_bytes(self.out, one, trips);
        self.zero_if_unreached(all, replayed, snapshot.anchor)
    }

    /// Emits the trip count of a loop within a recomputed loop, before the latter. The trip count is 0 if
    /// control does not reach the inner loop, because the count may be meaningless.
    fn hoisted_trip_count(&mut self, replayed: Op, at: Op) -> Value {
        let trips = self.primal(self.facts.body.operand(at, 0));
        self.zero_if_unreached(trips, replayed, at)
    }

    /// Emits `number`, or zero if control does not reach `at` within a recomputed loop, as far as the guards
    /// are known beforehand.
    fn zero_if_unreached(&mut self, number: Value, replayed: Op, at: Op) -> Value {
        let body = self.facts.body;
        let inside = body.op_regions(replayed)[0];
        let mut number = number;
        for (condition, when) in self.facts.guards_known_at(at, replayed) {
            let home = body.region_of(condition);
            if home.is_some_and(|home| body.is_inside(home, inside)) {
                continue;
            }
            let condition = self.primal(condition);
            let ty = self.out.body.ty(number);
            let none = self.out.build().zero(ty);
            number = match when {
                true => self.out.build().select(condition, number, none),
                false => self.out.build().select(condition, none, number),
            };
        }
        number
    }

    /// Emits the recomputation of an iteration at the start of its reversal; the iteration's values are
    /// available from there on.
    pub(super) fn recompute_iteration(&mut self, op: Op, index: Value, entry: IterationState) {
        let Recall::Replay(replay) = &mut self.recall else {
            // Not an error: the dry run recomputes no iteration.
            return;
        };
        let tape = TapeWriter {
            plan: replay.plan,
            layout: replay.layout,
            frames: HashMap::new(),
        };
        replay.available.extend(entry.arrays.clone());
        let mut pass = ForwardPass::for_iteration(
            self.facts,
            self.variant,
            self.out,
            (tape, entry),
            self.needs,
            self.findings,
        );
        pass.run_iteration(op, index);
        let inside = self.facts.body.op_regions(op)[0];
        let direct = replay.plan.ssa_values_in(self.facts, inside);
        let at_hand = pass.available_values(direct.into_iter());
        replay.available.extend(at_hand);
    }

    /// Frees the arrays of the iterations' tape after the loop.
    pub(super) fn leave_recomputed_loop(&mut self, op: Op) {
        let Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run allocates no arrays.
            return;
        };
        let bases: Vec<Value> = (replay.plan.hoisted.get(&op).into_iter().flatten())
            .filter_map(|number| replay.available.get(&Node::ArrayBase(*number)))
            .map(|lanes| lanes[0])
            .collect();
        for base in bases {
            let free = crate::emit::libc::free_function(self.out.unit);
            self.out.build().call(free, &[base]);
        }
    }
}
