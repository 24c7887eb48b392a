//! Loop unrotation: loops that request their next chunk at the end of a trip.
//!
//! Compilers emit `while (next()) round`; loop rotation turns the loop into `if (next()) do round while
//! (next())`. Unrotation restores the single shape that raising recognises.

use crate::openmp::sync_constructs::zero_test_and_branch;
use crate::runtime_calls::RuntimeCalls;
use gradus_edit::is_speculatable;
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{Body, Builder, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

/// Unrotates the loop after `start`, if rotated.
pub(super) fn unrotate(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls, start: Op) {
    if let Some(found) = RotatedLoop::find(unit, body, calls, start) {
        found.unrotate_loop(unit, body);
    }
}

struct RotatedLoop {
    /// The request for the first chunk, and the branch taken if a chunk exists.
    first: Op,
    branch: Op,
    /// The ops before the loop in the branch.
    before: Vec<Op>,
    lp: Op,
    /// The request for the next chunk and the loop condition: the last ops of the loop.
    asks: Vec<Op>,
    /// For each result of the branch: its value after a trip, and without a chunk.
    results: Vec<(Value, Value)>,
}

impl RotatedLoop {
    fn find(unit: &Unit, body: &Body, calls: &RuntimeCalls, start: Op) -> Option<RotatedLoop> {
        let is_next = |op: &Op| calls.id(unit, body, *op) == Some(OpenMpFn::DispatchNext);
        let first = body.ops_after(start).find(is_next)?;
        let (test, branch) = zero_test_and_branch(unit, body, body.result(first))?;
        let turned = matches!(body.kind(test), OpKind::ICmp(IntPredicate::Eq));
        let [yes, no] = body.op_regions(branch)[..] else {
            return None;
        };
        let (arm, other) = if turned { (no, yes) } else { (yes, no) };
        let mut ops: Vec<Op> = body.ops_in(arm).collect();
        let (end, lp) = (ops.pop()?, ops.pop()?);
        let nothing = body
            .last(other)
            .filter(|op| body.first(other) == Some(*op))?;
        let ends = [end, nothing];
        let yields = |op: &Op| matches!(body.kind(*op), OpKind::Yield);
        let is_loop = matches!(body.kind(lp), OpKind::Loop { .. });
        if !is_loop
            || !ends.iter().all(yields)
            || !ops.iter().all(|op| is_speculatable(unit, body, *op))
        {
            return None;
        }
        let asks = request_at_end(unit, body, body.op_regions(lp)[0], is_next)?;
        Some(RotatedLoop {
            first,
            branch,
            before: ops,
            lp,
            asks,
            results: branch_results(body, lp, ends, arm)?,
        })
    }

    fn unrotate_loop(self, unit: &mut Unit, body: &mut Body) {
        let old = body.op_regions(self.lp)[0];
        let params = body.region_params(old).to_vec();
        for op in self.before {
            body.detach(op);
            body.insert_before(self.first, op);
        }
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(self.first);
        b.loc = b.body.ops[self.lp].loc;
        let initial: Vec<Value> = b.body.operands(self.lp).collect();
        let others = self.results.iter().map(|(_, other)| *other);
        let initial: Vec<Value> = initial.into_iter().chain(others).collect();
        let types: Vec<TypeId> = initial.iter().map(|v| b.body.ty(*v)).collect();
        let (lp, region) = b.loop_(&initial, &types[params.len()..]);
        let carried = b.body.region_params(region).to_vec();
        b.body.detach(self.first);
        b.body.append(region, self.first);
        b.set_insertion_end(region);
        let answer = b.body.result(self.first);
        let ty = b.body.ty(answer);
        let zero = b.int(ty, 0);
        let some = b.icmp(IntPredicate::Ne, answer, zero);
        let (round, yes, no) = b.if_(some, &types);
        b.set_insertion_end(no);
        b.yield_(&carried);
        for (param, value) in std::iter::zip(&params, &carried) {
            b.body.replace_uses(*param, *value);
        }
        b.body.move_ops(old, yes);
        let handed: Vec<Value> = b
            .body
            .last(yes)
            .into_iter()
            .flat_map(|end| b.body.operands(end))
            .collect();
        let handed = handed[1..=params.len()].iter().copied();
        let given = self.results.iter().map(|(given, _)| *given);
        let values: Vec<Value> = handed.chain(given).collect();
        for op in self.asks.into_iter().rev() {
            b.body.erase(op);
        }
        b.set_insertion_end(yes);
        b.yield_(&values);
        b.set_insertion_end(region);
        let next = b.body.results(round).to_vec();
        b.repeat(some, &next, &next[params.len()..]);
        let results = b.body.results(self.branch).to_vec();
        for (index, result) in results.into_iter().enumerate() {
            let value = b.body.results(lp)[index];
            b.body.replace_uses(result, value);
        }
        let test = b.body.def_op(b.body.operand(self.branch, 0));
        b.body.erase(self.branch);
        if let Some(test) = test {
            b.body.erase(test);
        }
    }
}

/// Returns the last ops of a loop's region, if they are a request for a chunk, its test, and a repeat on
/// success.
fn request_at_end(
    unit: &Unit,
    body: &Body,
    region: Region,
    is_next: impl Fn(&Op) -> bool,
) -> Option<Vec<Op>> {
    let ops: Vec<Op> = body.ops_in(region).collect();
    let at = ops.iter().position(is_next)?;
    let asks = ops[at..].to_vec();
    let [next, test, .., end] = asks[..] else {
        return None;
    };
    let zero = body.as_int(unit, *body.operands(test).collect::<Vec<_>>().get(1)?) == Some(0);
    let asked = body.operand(test, 0) == body.result(next) && zero;
    let again = body.operand(end, 0);
    let goes_on = match (body.kind(test), asks.len()) {
        (OpKind::ICmp(IntPredicate::Ne), 3) => again == body.result(test),
        (OpKind::ICmp(IntPredicate::Eq), 4) => {
            let not = asks[2];
            let is_not = matches!(body.kind(not), OpKind::Binary(gradus_ir::BinaryOp::Xor));
            is_not
                && body.operand(not, 0) == body.result(test)
                && body
                    .as_int(unit, body.operand(not, 1))
                    .is_some_and(|n| n != 0)
                && again == body.result(not)
        }
        _ => false,
    };
    let own: HashSet<Op> = asks.iter().copied().collect();
    let used_here = |op: &Op| {
        let results = body.results(*op).iter();
        results
            .flat_map(|r| body.uses(*r))
            .all(|at| own.contains(&at.op))
    };
    let repeats = matches!(body.kind(end), OpKind::Repeat);
    let used_once = asks[1..].iter().chain([&next]).all(used_here)
        && body
            .operands(end)
            .skip(1)
            .all(|value| value != again && value != body.result(next));
    (asked && goes_on && repeats && used_once).then_some(asks)
}

/// Returns, for each value yielded by `ends`, its value after a trip, and without a chunk.
fn branch_results(body: &Body, lp: Op, ends: [Op; 2], arm: Region) -> Option<Vec<(Value, Value)>> {
    let last = body.last(body.op_regions(lp)[0])?;
    let carried = body.operand_count(lp);
    let given = |value: Value| match body.results(lp).iter().position(|r| *r == value) {
        Some(index) => Some(body.operand(last, 1 + carried + index)),
        None => (body.region_of(value) != Some(arm)).then_some(value),
    };
    let pairs = std::iter::zip(body.operands(ends[0]), body.operands(ends[1]));
    pairs
        .map(|(taken, other)| Some((given(taken)?, other)))
        .collect()
}
