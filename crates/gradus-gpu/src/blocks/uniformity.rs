//! Uniformity analysis of a block: uniform values, and ops that run once per block.
//!
//! Place: after the skeleton, before the storage plan. A value is *uniform* if computed once for the block;
//! in the code, *common*. An op of a skeleton region runs once if three conditions hold: the op writes
//! nothing, all operands are uniform, and its loads are steady or early ([`crate::blocks::kernel_reads`]). Every other op
//! runs per thread, and its results are per-thread values. A branch or loop of the skeleton is *divergent*
//! if its condition is a per-thread value.
//!
//! A worklist computes the greatest solution: every value is uniform until a per-thread value reaches the
//! value.

use crate::blocks::kernel_reads::KernelReads;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::sync_ops::SyncScope;
use gradus_edit::is_pure;
use gradus_ir::{AllocaStorage, Body, EffectClass, Op, OpKind, Unit, Use, Value};
use std::collections::HashSet;

/// Uniformity of a block's values and ops.
#[derive(Debug, Default)]
pub(crate) struct Uniformity {
    /// Per-thread values.
    per_thread_values: HashSet<Value>,
    /// Ops of skeleton regions that run per thread.
    per_thread: HashSet<Op>,
    /// Divergent branches and loops of the skeleton.
    divergent: HashSet<Op>,
}

impl Uniformity {
    /// Computes the uniformity of a block.
    pub fn of(unit: &Unit, body: &Body, spine: &Skeleton, reads: &KernelReads) -> Uniformity {
        let mut found = UniformityAnalysis {
            unit,
            body,
            spine,
            levels: Uniformity::default(),
            open: Vec::new(),
        };
        let dims = body.operand_count(spine.block);
        for &rank in &body.region_params(spine.root)[..dims] {
            found.mark_value_per_thread(rank);
        }
        for &region in spine.regions() {
            for op in body.ops_in(region) {
                found.seed(op, reads);
            }
        }
        found.run();
        found.levels
    }
    /// Returns whether a value is per-thread.
    pub fn is_per_thread_value(&self, value: Value) -> bool {
        self.per_thread_values.contains(&value)
    }
    /// Returns whether an op of a skeleton region runs per thread.
    pub fn is_per_thread(&self, op: Op) -> bool {
        self.per_thread.contains(&op)
    }
    /// Returns whether a structural op is divergent.
    pub fn is_divergent(&self, op: Op) -> bool {
        self.divergent.contains(&op)
    }
}

struct UniformityAnalysis<'a> {
    unit: &'a Unit,
    body: &'a Body,
    spine: &'a Skeleton,
    levels: Uniformity,
    open: Vec<Value>,
}

impl UniformityAnalysis<'_> {
    fn mark_value_per_thread(&mut self, value: Value) {
        if self.levels.per_thread_values.insert(value) {
            self.open.push(value);
        }
    }

    fn seed(&mut self, op: Op, reads: &KernelReads) {
        if self.body.kind(op).is_terminator() {
            return;
        }
        if self.spine.is_structural(op) {
            return;
        }
        if !self.may_run_once(op, reads) {
            self.mark_op_per_thread(op);
        }
    }

    /// Returns whether an op, with nested ops, may run once per block if all operands are uniform.
    fn may_run_once(&self, op: Op, reads: &KernelReads) -> bool {
        let body = self.body;
        let steady = |op: Op| reads.steady.contains(&op);
        let quiet = |op: Op| match body.kind(op) {
            OpKind::Alloca(info) => info.storage == AllocaStorage::Shared,
            OpKind::Load(_) => steady(op) || reads.is_early(self.spine, op),
            OpKind::Call(_) => steady(op) || is_pure(self.unit, body, op),
            OpKind::If | OpKind::Switch(_) | OpKind::Loop { .. } | OpKind::For { .. } => true,
            OpKind::Yield | OpKind::Repeat => true,
            _ => is_pure(self.unit, body, op),
        };
        quiet(op) && body.op_regions(op).iter().all(|r| body.walk(*r).all(quiet))
    }

    fn mark_op_per_thread(&mut self, op: Op) {
        if self.levels.per_thread.insert(op) {
            self.mark_results_per_thread(op);
        }
    }

    fn mark_results_per_thread(&mut self, op: Op) {
        for &result in self.body.results(op) {
            self.mark_value_per_thread(result);
        }
    }

    fn run(&mut self) {
        while let Some(value) = self.open.pop() {
            for used in self.body.uses(value) {
                let Some(anchor) = self.spine.anchor(used.op) else {
                    continue;
                };
                if anchor != used.op || !self.is_in_skeleton(anchor) {
                    self.mark_op_per_thread(anchor);
                } else {
                    self.propagate_operand(used);
                }
            }
        }
    }

    /// Returns whether an anchor is structural, or terminates a skeleton region.
    fn is_in_skeleton(&self, anchor: Op) -> bool {
        self.spine.is_structural(anchor) || self.body.kind(anchor).is_terminator()
    }

    fn mark_divergent(&mut self, op: Op) {
        if self.levels.divergent.insert(op) {
            self.mark_results_per_thread(op);
        }
    }

    /// Propagates a per-thread operand of a structural op or of a skeleton region's terminator: along the control
    /// edges. An operand on no edge is a condition or a trip count.
    fn propagate_operand(&mut self, at: Use) {
        let body = self.body;
        let targets = body.flow_targets(at);
        let branch = match body.kind(at.op).is_terminator() {
            true => body.parent_op(at.op),
            false => Some(at.op),
        };
        match branch {
            Some(op) if targets.is_empty() => self.mark_divergent(op),
            _ => targets
                .into_iter()
                .for_each(|v| self.mark_value_per_thread(v)),
        }
    }
}

/// The first block-wide barrier in each region of an op.
pub(crate) fn barriers_in_arms(body: &Body, op: Op, splits: &[(Op, SyncScope)]) -> Vec<Op> {
    let mut found: Vec<Op> = Vec::new();
    for &region in body.op_regions(op) {
        let inside = |at: Op| body.is_nested_in(at, region);
        let meets = splits
            .iter()
            .find(|(at, split)| *split == SyncScope::Barrier && inside(*at));
        found.extend(meets.map(|(at, _)| *at));
    }
    found
}

/// Limit of ops inspected by [`depends_on_rank`].
const MAX_INSPECTED_OPS: usize = 64;

/// Returns whether a value depends on ranks without passing through memory.
pub(crate) fn depends_on_rank(body: &Body, spine: &Skeleton, value: Value) -> bool {
    let dims = body.operand_count(spine.block);
    let ranks = &body.region_params(spine.root)[..dims];
    let mut open = vec![value];
    for _ in 0..MAX_INSPECTED_OPS {
        let Some(value) = open.pop() else {
            return false;
        };
        if ranks.contains(&value) {
            return true;
        }
        let maker = body.def_op(value);
        let plain = |op: &Op| {
            matches!(
                body.kind(*op).effects(),
                EffectClass::Pure | EffectClass::Traps
            )
        };
        open.extend(
            maker
                .filter(plain)
                .into_iter()
                .flat_map(|op| body.operands(op)),
        );
    }
    false
}
