//! Merges branches on one condition if the first branch allocates memory that the last one frees.
//!
//! `p = c ? malloc(n) : undef; …; if (c) { …; free(p); }` is typical of functions that use private arrays
//! only with several threads. Alias analysis then cannot prove that the allocation dominates its uses or
//! lives in a single arm. The derivative would keep the shadow allocated from the forward pass to the reverse
//! pass. The pass clones the ops between both branches into the arms of a single branch. Most of these ops
//! test the same condition, hence each copy retains one arm.

use gradus_analysis::PassContext;
use gradus_edit::{ValueMap, clone_op_within, clone_ops_within};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Limits: ops duplicated in both arms, and ops inspected.
const DUPLICATED_OPS_MAX: usize = 200;
const OPS_MAX: usize = 8000;

/// Merges all such branches of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let is_branch = |op: &Op| matches!(body.kind(*op), OpKind::If);
    let branches: Vec<Op> = body.walk(body.root()).filter(is_branch).collect();
    let mut changed = false;
    // Inner branches first, so clones of enclosing code contain merged branches.
    for first in branches.into_iter().rev() {
        if body.parent(first).is_none() {
            continue;
        }
        if let Some(all) = mergeable_ops(unit, body, first) {
            merge_branches(unit, body, &all);
            changed = true;
        }
    }
    changed
}

/// Returns `first`, the last branch on the same condition that frees an allocation of `first`, and all ops in
/// between.
fn mergeable_ops(unit: &Unit, body: &Body, first: Op) -> Option<Vec<Op>> {
    let condition = body.operand(first, 0);
    body.as_const(condition).is_none().then_some(())?;
    let blocks = allocated_results(unit, body, first);
    let same = |op: Op| matches!(body.kind(op), OpKind::If) && body.operand(op, 0) == condition;
    let home = body.parent(first)?;
    let frees = blocks
        .iter()
        .flat_map(|block| body.uses(*block))
        .filter(|at| {
            let freed = unit.known_callee(body, at.op);
            freed == Some(ExternalFn::Memory(MemoryFn::Free)) && at.index == 1
        });
    let mut ends: HashSet<Op> = HashSet::new();
    for free in frees {
        ends.extend(body.ancestor_in(home, free.op));
    }
    ends.retain(|op| same(*op));
    let after = std::iter::once(first).chain(body.ops_after(first));
    let mut all: Vec<Op> = after.take(OPS_MAX).collect();
    let end = all.iter().rposition(|op| ends.contains(op))?;
    all.truncate(end + 1);
    // Both branches must yield in each arm.
    let gives =
        |arm: &Region| (body.last(*arm)).is_some_and(|end| matches!(body.kind(end), OpKind::Yield));
    let complete = |op: Op| body.op_regions(op).iter().all(gives);
    (complete(first) && complete(all[end])).then_some(())?;
    (can_duplicate(body, condition, &all)).then_some(all)
}

/// Returns the results of a branch that its first arm allocates.
fn allocated_results(unit: &Unit, body: &Body, branch: Op) -> Vec<Value> {
    let yes = body.op_regions(branch)[0];
    let Some(end) = body.last(yes) else {
        return Vec::new();
    };
    let is_made = |value: Value| {
        let op = body
            .def_op(value)
            .filter(|op| body.parent(*op) == Some(yes));
        let known = op.and_then(|op| unit.known_callee(body, op));
        matches!(known, Some(ExternalFn::Memory(function)) if function.allocation().is_some())
    };
    let given = std::iter::zip(body.results(branch), body.operands(end));
    let blocks = given.filter(|(_, value)| is_made(*value));
    blocks.map(|(result, _)| *result).collect()
}

/// Returns whether the ops may be cloned, and whether few ops remain in both arms after folding the known
/// condition.
fn can_duplicate(body: &Body, condition: Value, all: &[Op]) -> bool {
    let (mut twice, mut seen) = (0, 0);
    let mut work: Vec<(Op, bool)> = all.iter().map(|op| (*op, true)).collect();
    while let Some((op, in_both)) = work.pop() {
        let kind = body.kind(op);
        seen += 1;
        twice += usize::from(in_both);
        let fixed = matches!(
            kind,
            OpKind::Alloca(_) | OpKind::Foreign(_) | OpKind::Invoke(_)
        );
        if fixed || kind.is_parallel() || twice > DUPLICATED_OPS_MAX || seen > OPS_MAX {
            return false;
        }
        let asks = matches!(kind, OpKind::If) && body.operand(op, 0) == condition;
        for region in body.op_regions(op) {
            work.extend(body.ops_in(*region).map(|op| (op, in_both && !asks)));
        }
    }
    true
}

/// Moves a sequence of ops, whose first and last are branches on one condition, into the arms of a single
/// branch.
fn merge_branches(unit: &mut Unit, body: &mut Body, all: &[Op]) {
    let (first, last) = (all[0], all[all.len() - 1]);
    let condition = body.operand(first, 0);
    let inside: HashSet<Op> = all.iter().copied().collect();
    let home = body.parent(first);
    let is_used_after = |value: &Value| {
        body.uses(*value).any(|at| {
            let there = home.and_then(|home| body.ancestor_in(home, at.op));
            there.is_none_or(|op| !inside.contains(&op))
        })
    };
    let results = all.iter().flat_map(|op| body.results(*op).iter().copied());
    let given: Vec<Value> = results.filter(is_used_after).collect();
    let types: Vec<_> = given.iter().map(|value| body.ty(*value)).collect();
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[first].loc;
    b.set_insertion_before(first);
    let (joined, yes, no) = b.if_(condition, &types);
    for (arm, region) in [yes, no].into_iter().enumerate() {
        let place = b.set_insertion_end(region);
        let mut map = ValueMap::new();
        for &op in all {
            if op == first || op == last {
                clone_arm(&mut b, op, arm, &mut map);
            } else {
                clone_op_within(op, &mut b, &mut map);
            }
        }
        let values: Vec<Value> = given.iter().map(|value| map.get_or_same(*value)).collect();
        b.yield_(&values);
        b.restore_insertion_point(place);
    }
    let joined = b.body.results(joined).to_vec();
    for (old, new) in std::iter::zip(given, joined) {
        b.body.replace_uses(old, new);
    }
    for op in all.iter().rev() {
        b.body.erase(*op);
    }
}

/// Clones an arm of a branch and maps the branch's results to the yielded values.
fn clone_arm(b: &mut Builder<'_>, branch: Op, arm: usize, map: &mut ValueMap) {
    let region = b.body.op_regions(branch)[arm];
    clone_ops_within(region, b, map);
    let results = b.body.results(branch).to_vec();
    if let Some(end) = b.body.last(region) {
        let values: Vec<Value> = b.body.operands(end).collect();
        for (result, value) in std::iter::zip(results, values) {
            let value = map.get_or_same(value);
            map.set(result, value);
        }
    }
}
