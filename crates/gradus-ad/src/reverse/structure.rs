//! Reversal of region ops.
//!
//! - `if`, `switch`: the same branch; each arm reverses the corresponding primal arm.
//! - `for`: a `for` with a reversed index.
//! - `loop`: a `for` over the trip count that the forward pass saved.
//!
//! A reversed region receives the adjoints of outer values that its primal uses, accumulates into them, and
//! passes them on: through the yields of a branch, or as carried values of a loop. The adjoint of a carried
//! value is carried. The results of a `loop` come from its last iteration. Their adjoints enter the first
//! reversed iteration, and zeros enter all others.

use crate::analysis::body_facts::loop_info::{LoopParts, loop_parts};
use crate::analysis::forward_value::Node;
use crate::context::iteration::IterationState;
use crate::emit::builder::Lanes;
use crate::reverse::reverse_pass::{ReversePass, Task};
use crate::tape::segments::choose;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{IntPredicate, Op, OpKind, Region, TypeId, Value};

/// An `if` or `switch` under reversal.
#[derive(Debug)]
pub(super) struct OpenBranch {
    op: Op,
    reversed: Op,
    outside: (Region, Option<Op>),
    results: Vec<(usize, Lanes)>,
    outer: Vec<Value>,
    incoming: Vec<Option<Lanes>>,
}

/// A loop under reversal.
#[derive(Debug)]
pub(super) struct OpenLoop {
    pub(super) op: Op,
    pub(super) reversed: Op,
    outside: (Region, Option<Op>),
    outer: Vec<Value>,
    /// Carried values with adjoints, by index.
    carried: Vec<usize>,
    /// Number of results of a `loop` with adjoints.
    results: usize,
    frame: Option<Value>,
    /// Inverted inductions: values before the iteration under reversal.
    inverted: Vec<Value>,
}

impl ReversePass<'_, '_, '_, '_> {
    fn lane_types(&self, values: impl Iterator<Item = Value>) -> Vec<TypeId> {
        let width = self.facts.width;
        values
            .flat_map(|v| std::iter::repeat_n(self.facts.body.ty(v), width))
            .collect()
    }

    /// Splits a flat list into batches, one per value.
    fn split_into_batches(&self, flat: &[Value]) -> Vec<Lanes> {
        flat.chunks(self.facts.width)
            .map(|c| c.iter().copied().collect())
            .collect()
    }

    // ---- branches --------------------------------------------------------------------------

    pub(super) fn open_branch(&mut self, op: Op) {
        let body = self.facts.body;
        let selector = match self.exit_selector(op) {
            Some(selector) => selector,
            None => self.primal(body.operand(op, 0)),
        };
        let outer = self.facts.outer_active(op).to_vec();
        let types = self.lane_types(outer.iter().copied());
        let kind = body.kind(op).clone();
        let arms = body.op_regions(op).len();
        let results: Vec<(usize, Lanes)> = (0..body.results(op).len())
            .filter_map(|i| Some((i, self.take_adjoint(body.results(op)[i])?)))
            .collect();
        let mirror = self.out.build().op(kind, &[selector], &types, arms);
        let incoming = outer
            .iter()
            .map(|v| self.adjoints.get(v).cloned())
            .collect();
        let outside = self.out.insertion_point;
        self.merges.push(OpenBranch {
            op,
            reversed: mirror,
            outside,
            results,
            outer,
            incoming,
        });
        if !is_planted(Mutant::MergeLeftOpen) {
            self.tasks.push(Task::EndBranch);
        }
        for arm in (0..arms).rev() {
            self.tasks.push(Task::EndArm);
            self.tasks.push(Task::BeginArm(arm));
        }
    }

    /// Returns the condition of a branch that may leave a loop under reversal. The branch continues in every
    /// iteration except the last one of the primal, which is reversed first.
    fn exit_selector(&mut self, op: Op) -> Option<Value> {
        let exit = gradus_edit::exit_branch(self.out.unit, self.facts.body, op)?;
        let open = self.loops.iter().rev().find(|open| open.op == exit.lp)?;
        let region = self.out.body.op_regions(open.reversed)[0];
        let reversed = self.out.body.region_params(region)[0];
        let last = exit.exit_condition.map(|value| self.primal(value));
        let ty = self.out.body.ty(reversed);
        let mut b = self.out.build();
        let zero = b.int(ty, 0);
        let goes_on = b.bool(exit.continuing_arm == 0);
        let leaves = match last {
            Some(last) => last,
            None => b.bool(exit.continuing_arm != 0),
        };
        let is_last = b.icmp(gradus_ir::IntPredicate::Eq, reversed, zero);
        Some(b.select(is_last, leaves, goes_on))
    }

    pub(super) fn begin_arm(&mut self, number: usize) {
        let Some(open) = self.merges.last() else {
            return self.ice(None, "a branch arm begins outside of a branch");
        };
        let body = self.facts.body;
        let arm = body.op_regions(open.op)[number];
        let mirrors = self.out.body.op_regions(open.reversed);
        let mirror = match is_planted(Mutant::ArmsSwapped) && mirrors.len() == 2 {
            true => mirrors[1 - number],
            false => mirrors[number],
        };
        self.out.insertion_point = (mirror, None);
        self.mirrors.add(arm, mirror);
        for (value, lanes) in open.outer.iter().zip(&open.incoming) {
            match lanes {
                Some(lanes) => self.adjoints.insert(*value, lanes.clone()),
                None => self.adjoints.remove(value),
            };
        }
        let Some(end) = body.last(arm) else {
            let op = open.op;
            return self.ice(Some(op), "a branch arm has no terminator");
        };
        if !matches!(body.kind(end), OpKind::Yield) {
            // Not an error: the arm does not return, and no run of the derivative enters its reversal.
            return;
        }
        let seeds: Vec<(Value, Lanes)> = open
            .results
            .iter()
            .map(|(i, lanes)| (body.operand(end, *i), lanes.clone()))
            .collect();
        for (value, lanes) in seeds {
            self.accumulate_adjoint(value, lanes);
        }
        self.tasks.push(Task::Reverse(body.prev(end)));
    }

    pub(super) fn end_arm(&mut self) {
        let Some(open) = self.merges.pop() else {
            return self.ice(None, "a branch arm ends outside of a branch");
        };
        let totals: Vec<Value> = open.outer.iter().flat_map(|v| self.adjoint(*v)).collect();
        self.out.build().yield_(&totals);
        self.merges.push(open);
    }

    pub(super) fn end_branch(&mut self) {
        let Some(open) = self.merges.pop() else {
            return self.ice(None, "the end of a branch has no start");
        };
        self.out.insertion_point = open.outside;
        let results = self.out.body.results(open.reversed).to_vec();
        for (value, lanes) in open.outer.iter().zip(self.split_into_batches(&results)) {
            self.adjoints.insert(*value, lanes);
        }
        self.release_arrays(open.op);
    }

    // ---- loops -----------------------------------------------------------------------------

    pub(super) fn open_loop(&mut self, op: Op) {
        let body = self.facts.body;
        let counted = matches!(body.kind(op), OpKind::For { .. });
        let parts = loop_parts(body, op);
        let trips = self.iterations(op);
        let outer = self.facts.outer_active(op).to_vec();
        let carried: Vec<usize> = (0..parts.params.len())
            .filter(|&i| {
                // The last value of a `for` is its result, even if no iteration reads it.
                let result = counted && self.facts.is_active(body.results(op)[i]);
                result || self.facts.is_active(parts.params[i])
            })
            .collect();
        let mut seeds: Vec<Value> = Vec::new();
        for &i in &carried {
            let lanes = match counted {
                true => body.results(op)[i],
                false => parts.params[i],
            };
            seeds.extend(self.adjoint(lanes));
        }
        let live: Vec<usize> = match counted {
            true => Vec::new(),
            false => (0..parts.results.len())
                .filter(|&i| self.facts.is_active(body.results(op)[i]))
                .collect(),
        };
        for &i in &live {
            seeds.extend(self.adjoint(body.results(op)[i]));
        }
        for &value in &outer {
            seeds.extend(self.adjoint(value));
        }
        let frame = self.frames_of(op);
        if let Some(last) = frame {
            seeds.push(last);
        }
        let backwards = self.inverted_carried(op, &parts);
        seeds.extend(backwards.iter().flat_map(|(_, end)| end));
        let entry = self.enter_recomputed_loop(op);
        let (mirror, region) = self.out.build().for_(trips, &seeds);
        if let OpKind::For { trip_max } | OpKind::Loop { trip_max } = *body.kind(op) {
            self.out.body.ops[mirror].kind = OpKind::For { trip_max };
        }
        if body.is_independent(op) && frame.is_none() {
            self.mark_parallel(op, mirror);
        }
        let outside = std::mem::replace(&mut self.out.insertion_point, (region, None));
        let mut params = self.out.body.region_params(region)[1..].to_vec();
        let tail: usize = backwards.iter().map(|(_, end)| end.len()).sum();
        let after = params.split_off(params.len() - tail);
        self.begin_iteration(op, region, trips, entry);
        let mut lanes =
            self.split_into_batches(&params[..params.len() - usize::from(frame.is_some())]);
        let outer_lanes = lanes.split_off(carried.len() + live.len());
        let result_lanes = lanes.split_off(carried.len());
        for (value, lanes) in outer.iter().zip(outer_lanes) {
            self.adjoints.insert(*value, lanes);
        }
        for &i in &carried {
            self.adjoints.remove(&parts.params[i]);
        }
        for (&i, lanes) in carried.iter().zip(lanes) {
            self.accumulate_adjoint(parts.next[i], lanes);
        }
        for (&i, lanes) in live.iter().zip(result_lanes) {
            self.accumulate_adjoint(parts.results[i], lanes);
        }
        let frame = frame.and(params.last().copied());
        if let Some(frame) = frame {
            self.mirrors.set_frame(op, frame);
        }
        let nodes = backwards.iter().map(|(node, _)| *node);
        let backwards = self.invert_iteration(nodes, &after);
        let results = live.len();
        self.loops.push(OpenLoop {
            op,
            reversed: mirror,
            outside,
            outer,
            carried,
            results,
            frame,
            inverted: backwards,
        });
        self.tasks.push(Task::EndLoop);
        let end = body.last(body.op_regions(op)[0]);
        self.tasks
            .push(Task::Reverse(end.and_then(|end| body.prev(end))));
    }

    /// Returns the trip count of a loop.
    fn iterations(&mut self, op: Op) -> Value {
        if matches!(self.facts.body.kind(op), OpKind::For { .. }) {
            return self.primal(self.facts.body.operand(op, 0));
        }
        let count = self.recall(Node::TripCount(op))[0];
        if !is_planted(Mutant::IterationLost) {
            return count;
        }
        let ty = self.out.body.ty(count);
        let one = self.out.build().int(ty, 1);
        self.out.build().sub(count, one)
    }

    /// Returns the frame of the last iteration, if iterations have frames.
    fn frames_of(&mut self, op: Op) -> Option<Value> {
        let has_frames = match &self.recall {
            crate::reverse::restore::Recall::Replay(replay) => replay.plan.frames.contains_key(&op),
            crate::reverse::restore::Recall::Record { .. } => false,
        };
        has_frames.then(|| self.recall(Node::LastFrame(op))[0])
    }

    /// Emits the primal's index of a reversed iteration, and the recomputation of the iteration if requested.
    fn begin_iteration(
        &mut self,
        op: Op,
        region: Region,
        trips: Value,
        entry: Option<IterationState>,
    ) {
        let body = self.facts.body;
        let inside = body.op_regions(op)[0];
        let reversed = self.out.body.region_params(region)[0];
        self.mirrors.add(inside, region);
        if !matches!(body.kind(op), OpKind::For { .. }) {
            return;
        }
        let ty = self.out.body.ty(trips);
        let one = self.out.build().int(ty, 1);
        let last = self.out.build().sub(trips, one);
        let index = match is_planted(Mutant::IndexNotReversed) {
            true => reversed,
            false => self.out.build().sub(last, reversed),
        };
        if let crate::reverse::restore::Recall::Replay(replay) = &mut self.recall {
            let node = Node::Primal(body.region_params(inside)[0]);
            replay
                .available
                .insert(node, std::iter::once(index).collect());
        }
        if let Some(entry) = entry {
            self.recompute_iteration(op, index, entry);
        }
    }

    pub(super) fn end_loop(&mut self) {
        let Some(open) = self.loops.pop() else {
            return self.ice(None, "the end of a loop has no start");
        };
        let parts = loop_parts(self.facts.body, open.op);
        let mut next: Vec<Value> = Vec::new();
        for &i in &open.carried {
            let lanes = self.adjoint(parts.params[i]);
            self.adjoints.remove(&parts.params[i]);
            next.extend(lanes);
        }
        for i in 0..open.results {
            let ty = self.out.body.ty(self.out.body.region_params(self.region())
                [1 + (open.carried.len() + i) * self.facts.width]);
            let zero = self.out.build().zero(ty);
            if is_planted(Mutant::ResultInEveryIteration) {
                let at = 1 + (open.carried.len() + i) * self.facts.width;
                let params = self.out.body.region_params(self.region());
                next.extend(&params[at..at + self.facts.width]);
                continue;
            }
            next.extend(std::iter::repeat_n(zero, self.facts.width));
        }
        for &value in &open.outer {
            next.extend(self.adjoint(value));
        }
        if let Some(frame) = open.frame {
            next.extend(self.pop_frame(frame));
        }
        next.extend(&open.inverted);
        self.out.build().yield_(&next);
        self.out.insertion_point = open.outside;
        self.set_outer_adjoints(&open, &parts);
        self.leave_recomputed_loop(open.op);
        self.release_arrays(open.op);
    }

    /// Releases a frame and returns the previous one.
    fn pop_frame(&mut self, frame: Value) -> Option<Value> {
        let crate::reverse::restore::Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run has no frames.
            return None;
        };
        let previous = replay.layout.previous_frame(self.out, frame);
        replay.layout.release(self.out, frame);
        Some(previous)
    }

    /// Sets, after a loop, the adjoints of initial values and of outer values.
    fn set_outer_adjoints(&mut self, open: &OpenLoop, parts: &LoopParts) {
        let body = self.facts.body;
        let results = self.out.body.results(open.reversed).to_vec();
        let tail = usize::from(open.frame.is_some()) + open.inverted.len();
        let flat = &results[..results.len() - tail];
        let mut lanes = self.split_into_batches(flat);
        let outer = lanes.split_off(open.carried.len() + open.results);
        lanes.truncate(open.carried.len());
        for (value, lanes) in open.outer.iter().zip(outer) {
            if !is_planted(Mutant::OuterAdjointLost) {
                self.adjoints.insert(*value, lanes);
            }
        }
        for result in body.results(open.op) {
            self.adjoints.remove(result);
        }
        for (&i, lanes) in open.carried.iter().zip(lanes) {
            if !is_planted(Mutant::InitialAdjointLost) {
                self.accumulate_adjoint(parts.initial[i], lanes);
            }
        }
    }

    /// Releases the arrays and snapshots that were allocated just before a loop.
    pub(super) fn release_arrays(&mut self, op: Op) {
        let crate::reverse::restore::Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run has no plan, and allocates no arrays.
            return;
        };
        let plan = replay.plan;
        for &number in plan.snapshots_at(op).iter().rev() {
            if plan.array_of(number).is_some() {
                continue;
            }
            let block = self.recall(Node::SnapshotBlock(number))[0];
            self.release_memory(plan.snapshot_on_heap(self.facts, number), block);
        }
        for &number in plan
            .anchored
            .get(&op)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .rev()
        {
            let base = self.recall(Node::ArrayBase(number))[0];
            match plan.has_tail_slot(number) {
                true => {
                    let room = self.recall(Node::Room(number))[0];
                    self.free_if_outside_slot(room, base);
                }
                false => self.release_memory(plan.arrays[number].on_heap, base),
            }
        }
    }

    /// Frees an array that does not lie in its tail slot.
    fn free_if_outside_slot(&mut self, room: Value, base: Value) {
        let free = gradus_edit::declare_free(self.out.unit);
        let mut b = self.out.build();
        let outside = b.icmp(IntPredicate::Ne, base, room);
        choose(&mut b, outside, &[], |b, outside| {
            if outside {
                b.call(free, &[base]);
            }
            None
        });
    }

    fn release_memory(&mut self, on_heap: bool, base: Value) {
        let crate::reverse::restore::Recall::Replay(replay) = &self.recall else {
            return self.ice(None, "a dry run releases memory");
        };
        match on_heap {
            true => {
                let free = gradus_edit::declare_free(self.out.unit);
                self.out.build().call(free, &[base]);
            }
            false => replay.layout.release(self.out, base),
        }
    }
}
