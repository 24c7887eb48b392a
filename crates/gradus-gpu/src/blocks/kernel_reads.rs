//! Invariance of a kernel's loads. A *steady* load yields the same result anywhere in the kernel, because
//! the kernel does not write the memory. An *early* load yields the same result for all threads, because no
//! thread writes the memory before its own load.

use crate::blocks::skeleton::Skeleton;
use gradus_analysis::{Alias, MemoryAccess, PassContext};
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// Limit of compared access pairs; above the limit no load is steady.
const MAX_ACCESS_PAIRS: usize = 1 << 20;

/// Facts about the loads of kernels; valid after edits elsewhere.
#[derive(Debug, Default)]
pub(crate) struct KernelReads {
    /// Loads and calls that read only memory that the kernel does not write, for any thread.
    pub steady: HashSet<Op>,
    /// For other loads: the ops of the kernel that may write the loaded memory, or that the load may not
    /// move across.
    ordered_before: HashMap<Op, Vec<Op>>,
}

impl KernelReads {
    /// Analyses all given kernels of a body.
    pub fn of(unit: &Unit, body: &Body, facts: &PassContext, blocks: &[Op]) -> KernelReads {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let mut reads = KernelReads::default();
        for &block in blocks {
            reads.analyse_kernel(facts, &alias, block);
        }
        reads
    }

    /// Returns whether a load at a uniform address may run once for all threads, before its segment. Each
    /// thread may be scheduled to its load before any thread continues. The reason: no earlier op of the
    /// segment writes the memory or is observable.
    pub fn is_early(&self, spine: &Skeleton, load: Op) -> bool {
        let (Some(after), Some(anchor)) = (self.ordered_before.get(&load), spine.anchor(load))
        else {
            return false;
        };
        let segment = spine.segment(anchor);
        let earlier = |op: &Op| {
            let place = spine.anchor(*op);
            place == Some(anchor)
                || spine.segment_of(*op) == segment
                    && place.is_some_and(|place| spine.is_before(place, anchor))
        };
        !after.iter().any(earlier)
    }

    /// The ops that may write the memory of a load that is not steady, or that the load may not move across.
    /// `None` if not analysed.
    pub fn ops_ordered_with(&self, load: Op) -> Option<&[Op]> {
        self.ordered_before.get(&load).map(Vec::as_slice)
    }

    fn analyse_kernel(&mut self, facts: &PassContext, alias: &Alias, kernel: Op) {
        let (unit, body) = (alias.unit, alias.body);
        let mut reads: Vec<(Op, Vec<MemoryAccess>)> = Vec::new();
        let mut writes: Vec<(Op, MemoryAccess)> = Vec::new();
        let mut fixed: Vec<Op> = Vec::new();
        for &region in body.op_regions(kernel) {
            for op in body.walk(region) {
                let accesses = facts.effects.of_op(unit, body, op);
                let (written, read): (Vec<_>, Vec<_>) =
                    accesses.into_iter().partition(MemoryAccess::is_clobber);
                if written.is_empty() && reads_only(unit, body, facts, op) {
                    reads.push((op, read));
                } else if is_observable(unit, body, op) {
                    fixed.push(op);
                }
                writes.extend(written.into_iter().map(|write| (op, write)));
            }
        }
        if reads.len().saturating_mul(writes.len() + fixed.len()) > MAX_ACCESS_PAIRS {
            return;
        }
        for (op, own) in reads {
            let meets = |write: &MemoryAccess| {
                own.iter()
                    .any(|read| alias.may_alias_any_iteration(read, write))
            };
            let met = writes.iter().filter(|(_, write)| meets(write));
            let mut after: Vec<Op> = met.map(|(op, _)| *op).collect();
            if after.is_empty() {
                self.steady.insert(op);
            } else if matches!(body.kind(op), OpKind::Load(_)) {
                after.extend(&fixed);
                self.ordered_before.insert(op, after);
            }
        }
    }
}

/// Returns whether other threads may observe the execution of an op: atomics, volatile accesses, and calls
/// with side effects.
pub(crate) fn is_observable(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } | OpKind::Fence { .. } => true,
        OpKind::Critical(_) => true,
        OpKind::Call(_) => !is_pure(unit, body, op),
        _ => false,
    }
}

/// Returns whether an op only reads memory and computes a value from the result.
fn reads_only(unit: &Unit, body: &Body, facts: &PassContext, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) => access.is_plain(),
        OpKind::Call(_) => {
            let effects = facts.effects.of_call(unit, body, op);
            !effects.calls_unknown
                && !effects.returns_fresh
                && !effects.may_throw
                && !effects.may_not_return
        }
        _ => false,
    }
}
