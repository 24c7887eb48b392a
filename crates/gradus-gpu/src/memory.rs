//! What a kernel's reads give: the same wherever in the kernel they stand, where the kernel does not write
//! that memory; or the same to all threads, where no thread writes it before its own read.

use crate::Facts;
use crate::spine::Spine;
use gradus_analysis::{Alias, MemoryAccess};
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, Unit};
use std::collections::{HashMap, HashSet};

/// Pairs of accesses that are compared at most; with more of them no read counts as steady.
const PAIRS: usize = 1 << 20;

/// What is known about the reads of blocks. Still true after edits elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// The loads and calls whose reads nothing in their block can change, whichever thread runs it: what
    /// they read is written nowhere in it.
    pub steady: HashSet<Op>,
    /// By other load: the ops of the block that may write what it reads, or behind which it must stay.
    after: HashMap<Op, Vec<Op>>,
}

impl Reads {
    /// Finds them in all blocks of a body.
    pub fn of(unit: &Unit, body: &Body, facts: &Facts, blocks: &[Op]) -> Reads {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let mut reads = Reads::default();
        for &block in blocks {
            reads.enter(facts, &alias, block);
        }
        reads
    }

    /// Whether a load at an address that all threads have in common may be made once for all of them, before
    /// the segment that it is in: threads may be run so that each comes to its load before any goes on, as
    /// nothing that a thread does before it in the segment writes there or is seen by others.
    pub fn is_early(&self, spine: &Spine, load: Op) -> bool {
        let (Some(after), Some(anchor)) = (self.after.get(&load), spine.anchor(load)) else {
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

    /// The ops that may write what a load that is not steady reads, or behind which it must stay; `None` where that
    /// was not looked into.
    pub fn behind(&self, load: Op) -> Option<&[Op]> {
        self.after.get(&load).map(Vec::as_slice)
    }

    fn enter(&mut self, facts: &Facts, alias: &Alias, kernel: Op) {
        let (unit, body) = (alias.unit, alias.body);
        let mut reads: Vec<(Op, Vec<MemoryAccess>)> = Vec::new();
        let mut writes: Vec<(Op, MemoryAccess)> = Vec::new();
        let mut fixed: Vec<Op> = Vec::new();
        for &region in body.op_regions(kernel) {
            for op in body.walk(region) {
                let accesses = facts.effects.of_op(unit, body, op);
                let (written, read): (Vec<_>, Vec<_>) =
                    accesses.into_iter().partition(MemoryAccess::destroys);
                if written.is_empty() && reads_only(unit, body, facts, op) {
                    reads.push((op, read));
                } else if is_seen(unit, body, op) {
                    fixed.push(op);
                }
                writes.extend(written.into_iter().map(|write| (op, write)));
            }
        }
        if reads.len().saturating_mul(writes.len() + fixed.len()) > PAIRS {
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
                self.after.insert(op, after);
            }
        }
    }
}

/// Whether others may see when an op runs: it is atomic, volatile, or a call that does something.
pub(crate) fn is_seen(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => !access.is_plain(),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } | OpKind::Fence { .. } => true,
        OpKind::Critical(_) => true,
        OpKind::Call(_) => !is_pure(unit, body, op),
        _ => false,
    }
}

/// Whether an op does nothing but read, and give a value of what it read.
fn reads_only(unit: &Unit, body: &Body, facts: &Facts, op: Op) -> bool {
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
