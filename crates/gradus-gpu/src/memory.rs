//! Which reads of a kernel give the same wherever in the kernel they stand: those of memory that the
//! kernel does not write.

use crate::Facts;
use gradus_analysis::{Alias, MemoryAccess};
use gradus_ir::{Body, Op, OpKind, Unit};
use std::collections::HashSet;

/// Pairs of accesses that are compared at most; with more of them no read counts as steady.
const PAIRS: usize = 1 << 20;

/// The loads and calls of blocks whose reads nothing in their block can change, whichever thread runs
/// it: what they read is written nowhere in it.
pub(crate) fn steady_reads(unit: &Unit, body: &Body, facts: &Facts, blocks: &[Op]) -> HashSet<Op> {
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let of_block = |block: &Op| steady_in(facts, &alias, *block);
    blocks.iter().flat_map(of_block).collect()
}

fn steady_in(facts: &Facts, alias: &Alias, kernel: Op) -> Vec<Op> {
    let (unit, body) = (alias.unit, alias.body);
    let mut reads: Vec<(Op, Vec<MemoryAccess>)> = Vec::new();
    let mut writes: Vec<MemoryAccess> = Vec::new();
    for &region in body.op_regions(kernel) {
        for op in body.walk(region) {
            let accesses = facts.effects.of_op(unit, body, op);
            let (written, read): (Vec<_>, Vec<_>) =
                accesses.into_iter().partition(MemoryAccess::destroys);
            if written.is_empty() && reads_only(unit, body, facts, op) {
                reads.push((op, read));
            }
            writes.extend(written);
        }
    }
    if reads.is_empty() || reads.len().saturating_mul(writes.len()) > PAIRS {
        return Vec::new();
    }
    let steady = |read: &MemoryAccess| {
        let met = |write: &MemoryAccess| alias.may_alias_any_iteration(read, write);
        !writes.iter().any(met)
    };
    let kept = reads.into_iter().filter(|(_, own)| own.iter().all(steady));
    kept.map(|(op, _)| op).collect()
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
