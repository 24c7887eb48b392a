//! Synchronisation constructs: `critical`, `single`, `master`, `masked`, the combination of reductions,
//! barriers and `flush`.
//!
//! Compilers emit a begin call and an end call. Both must be in one region; the ops in between become the
//! region of an op.

use crate::openmp::thread_num;
use crate::reductions::REDUCTION_LOCK;
use crate::regions::{ops_between, settle, wrap_ops};
use crate::report::{RaiseResult, reason};
use crate::runtime_calls::{RuntimeCalls, global_value};
use gradus_edit::inline_region_body;
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{
    Atomicity, BarrierScope, Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, Unit, Value,
};

/// Raises the synchronisation constructs of a body.
pub(super) fn raise(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) -> RaiseResult {
    for (op, id) in calls.list(unit, body) {
        if body.parent(op).is_none() {
            continue;
        }
        match id {
            OpenMpFn::Reduce | OpenMpFn::ReduceNowait => reduction(unit, body, calls, op, id)?,
            OpenMpFn::Critical => critical(unit, body, calls, op)?,
            OpenMpFn::Single => single(unit, body, calls, op)?,
            OpenMpFn::Master => raise_masked(unit, body, calls, op, None)?,
            OpenMpFn::Masked => {
                let wanted = unit.call_args(body, op).get(2).copied();
                raise_masked(unit, body, calls, op, wanted)?;
            }
            OpenMpFn::Barrier => replace(unit, body, op, OpKind::Barrier(BarrierScope::Team)),
            OpenMpFn::Flush => {
                let fence = OpKind::Fence {
                    order: Atomicity::SequentiallyConsistent,
                    sync_scope: 1,
                };
                replace(unit, body, op, fence);
            }
            _ => {}
        }
    }
    Ok(())
}

fn replace(unit: &mut Unit, body: &mut Body, op: Op, kind: OpKind) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    b.op(kind, &[], &[], 0);
    body.erase(op);
}

/// Returns the next call of `id` after `start` in its region, and the ops in between.
fn matching_end(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    start: Op,
    id: OpenMpFn,
) -> Option<(Op, Vec<Op>)> {
    let mut at = body.next(start);
    while let Some(op) = at {
        if calls.id(unit, body, op) == Some(id) {
            return Some((op, ops_between(body, start, op)?));
        }
        at = body.next(op);
    }
    None
}

// ---- locks -------------------------------------------------------------------------------------

fn critical(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls, start: Op) -> RaiseResult {
    let lock = unit.call_args(body, start).get(2).copied();
    let name = lock
        .and_then(|v| global_value(unit, body, v))
        .map(|g| lock_name(&unit.globals[g].name));
    let Some(name) = name else {
        return Err(reason(
            unit,
            body,
            start,
            "the lock of this critical section is unknown",
        ));
    };
    raise_locked(unit, body, calls, start, OpenMpFn::EndCritical, name)
}

/// Returns the source name of a critical section from the symbol of its lock.
fn lock_name(symbol: &str) -> String {
    let inner = symbol
        .strip_prefix(".gomp_critical_user_")
        .and_then(|s| s.strip_suffix(".var"));
    inner.unwrap_or(symbol).to_string()
}

fn raise_locked(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
    end: OpenMpFn,
    name: String,
) -> RaiseResult {
    let Some((end, ops)) = matching_end(unit, body, calls, start, end) else {
        let text = "the end of this critical section or reduction is not found";
        return Err(reason(unit, body, start, text));
    };
    if !ops.is_empty() {
        let mut b = Builder::new(unit, body);
        let op = wrap_ops(&mut b, &ops, OpKind::Critical(name.into()));
        body.ops[op].loc = body.ops[start].loc;
    }
    body.erase(start);
    body.erase(end);
    Ok(())
}

/// Every thread combines under the lock, the first method that the compiler offers.
fn reduction(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
    id: OpenMpFn,
) -> RaiseResult {
    let answer = body.result(start);
    settle(unit, body, answer, 1);
    let waits = id == OpenMpFn::Reduce;
    let end = match waits {
        true => OpenMpFn::EndReduce,
        false => OpenMpFn::EndReduceNowait,
    };
    let behind = matching_end(unit, body, calls, start, end).map(|(op, _)| op);
    if let Some(end) = behind.filter(|_| waits) {
        let mut b = Builder::new(unit, body);
        b.loc = b.body.ops[end].loc;
        let barrier = b
            .body
            .new_op(OpKind::Barrier(BarrierScope::Team), &[], &[], 0);
        body.insert_after(end, barrier);
    }
    raise_locked(unit, body, calls, start, end, REDUCTION_LOCK.into())
}

// ---- single, master, masked ---------------------------------------------------------------------

/// Returns the branch taken by threads with a non-zero `answer`, if the else-arm only yields.
fn selected_branch(unit: &Unit, body: &mut Body, answer: Value) -> Option<Op> {
    let (test, branch) = zero_test_and_branch(unit, body, answer)?;
    let turned = matches!(body.kind(test), OpKind::ICmp(IntPredicate::Eq));
    let other = *body.op_regions(branch).get(usize::from(!turned))?;
    if body.first(other) != body.last(other) {
        return None;
    }
    if turned {
        swap_arms(body, test, branch);
    }
    Some(branch)
}

/// Returns the comparison of `answer` with zero and the branch, in the region of the call, if both have a
/// single use.
pub(super) fn zero_test_and_branch(unit: &Unit, body: &Body, answer: Value) -> Option<(Op, Op)> {
    let mut uses = body.uses(answer);
    let test = uses.next()?.op;
    let alone = uses.next().is_none();
    let is_test = matches!(
        body.kind(test),
        OpKind::ICmp(IntPredicate::Ne | IntPredicate::Eq)
    ) && body.as_int(unit, body.operand(test, 1)) == Some(0);
    let mut users = body.uses(*body.results(test).first()?);
    let branch = users.next()?.op;
    let fits = alone
        && is_test
        && users.next().is_none()
        && matches!(body.kind(branch), OpKind::If)
        && body.parent(branch) == body.parent(body.def_op(answer)?);
    fits.then_some((test, branch))
}

/// Normalises a branch on equality with zero to a branch on inequality.
fn swap_arms(body: &mut Body, test: Op, branch: Op) {
    body.ops[test].kind = OpKind::ICmp(IntPredicate::Ne);
    let (yes, no) = (body.op_regions(branch)[0], body.op_regions(branch)[1]);
    let between = body.new_op(OpKind::Scope, &[], &[], 1);
    let aside = body.op_regions(between)[0];
    body.move_ops(yes, aside);
    body.move_ops(no, yes);
    body.move_ops(aside, no);
}

fn single(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls, start: Op) -> RaiseResult {
    let answer = body.result(start);
    let fail = |unit: &Unit, body: &Body, text: &str| Err(reason(unit, body, start, text));
    let Some(branch) = selected_branch(unit, body, answer) else {
        return fail(
            unit,
            body,
            "the branch of this `single` construct is not recognised",
        );
    };
    let arms = [body.op_regions(branch)[0], body.op_regions(branch)[1]];
    let ends: Vec<Op> = body
        .ops_in(arms[0])
        .filter(|&op| calls.id(unit, body, op) == Some(OpenMpFn::EndSingle))
        .collect();
    let yields = |last: Op| matches!(body.kind(last), OpKind::Yield);
    let (Some(yes), Some(no)) = (body.last(arms[0]), body.last(arms[1])) else {
        return fail(
            unit,
            body,
            "control does not reach the end of this `single` construct",
        );
    };
    if ends.len() != 1 || !yields(yes) || !yields(no) {
        return fail(
            unit,
            body,
            "the end of this `single` construct is not found",
        );
    }
    body.erase(ends[0]);
    let copies = copyprivate_calls(unit, body, calls, branch);
    if !copies.is_empty() {
        return copy_private(unit, body, branch, &copies);
    }
    let others: Vec<Value> = body.operands(no).collect();
    let types: Vec<_> = body.results(branch).iter().map(|r| body.ty(*r)).collect();
    let kind = OpKind::Single {
        nowait: true,
        copy: false,
    };
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(branch);
    b.loc = b.body.ops[start].loc;
    let op = b.op(kind, &others, &types, 1);
    let into = b.body.op_regions(op)[0];
    b.body.move_ops(arms[0], into);
    for (old, new) in b
        .body
        .results(branch)
        .to_vec()
        .into_iter()
        .zip(b.body.results(op).to_vec())
    {
        b.body.replace_uses(old, new);
    }
    body.erase(branch);
    erase_test(body, start);
    Ok(())
}

fn erase_test(body: &mut Body, start: Op) {
    let users: Vec<Op> = body.uses(body.result(start)).map(|u| u.op).collect();
    users.into_iter().for_each(|op| body.erase(op));
    body.erase(start);
}

/// Returns the calls after a `single` that broadcast its values: clang emits a single call, flang a call per
/// variable.
fn copyprivate_calls(unit: &Unit, body: &Body, calls: &RuntimeCalls, branch: Op) -> Vec<Op> {
    let mut copies: Vec<Op> = Vec::new();
    let did = |copy: Op| unit.call_args(body, copy).get(5).copied();
    let mut at = body.next(branch);
    while let Some(op) = at {
        match calls.id(unit, body, op) {
            Some(OpenMpFn::CopyPrivate) if copies.first().is_none_or(|&c| did(c) == did(op)) => {
                copies.push(op);
            }
            // flang queries the thread number again.
            Some(OpenMpFn::GlobalThread) | None => {}
            Some(_) => break,
        }
        at = body.next(op);
    }
    copies
}

/// A copyprivate call: the thread's list of addresses, and the function that copies from list to list.
struct CopyprivateCall {
    call: Op,
    list: Value,
    copier: FuncId,
}

impl CopyprivateCall {
    fn of(unit: &Unit, body: &Body, call: Op) -> RaiseResult<CopyprivateCall> {
        let &[_, _, _, list, copier, ..] = &*unit.call_args(body, call) else {
            let text = "the `copyprivate` list is not recognised";
            return Err(reason(unit, body, call, text));
        };
        match body.as_function(unit, copier) {
            Some(copier) => Ok(CopyprivateCall { call, list, copier }),
            None => {
                let text = "the copy function of `copyprivate` is unknown";
                Err(reason(unit, body, call, text))
            }
        }
    }

    /// Emits the copy from the list `from`, if of another thread, between two barriers.
    fn emit_copy(&self, b: &mut Builder, from: Value) {
        b.set_insertion_before(self.call);
        // The list is stored after the single region.
        b.op(OpKind::Barrier(BarrierScope::Team), &[], &[], 0);
        let other = b.icmp(IntPredicate::Ne, from, self.list);
        let (_, yes, no) = b.if_(other, &[]);
        b.set_insertion_end(no);
        b.yield_(&[]);
        b.set_insertion_end(yes);
        let call = b.call(self.copier, &[self.list, from]);
        b.yield_(&[]);
        if let Some(code) = b.unit.functions[self.copier].body.clone() {
            // Code that cannot be inlined is called.
            let _ = inline_region_body(b.unit, b.body, call, self.copier, &code);
        }
        b.set_insertion_before(self.call);
        b.op(OpKind::Barrier(BarrierScope::Team), &[], &[], 0);
        b.body.erase(self.call);
    }
}

/// Broadcasts the addresses of the selected thread's lists, from which every thread copies.
fn copy_private(unit: &mut Unit, body: &mut Body, branch: Op, calls: &[Op]) -> RaiseResult {
    let copies = calls
        .iter()
        .map(|call| CopyprivateCall::of(unit, body, *call));
    let copies = copies.collect::<RaiseResult<Vec<CopyprivateCall>>>()?;
    let lists: Vec<Value> = copies.iter().map(|copy| copy.list).collect();
    let mut results = body.results(branch).iter();
    let used = results.any(|r| body.uses(*r).any(|u| !calls.contains(&u.op)));
    let defines_list = |op: Op| body.results(op).iter().any(|r| lists.contains(r));
    let late = body.ops_after(branch).any(defines_list);
    if let Some(&first) = calls.first().filter(|_| used || late) {
        let text = "the `copyprivate` list is not recognised";
        return Err(reason(unit, body, first, text));
    }
    let arm = body.op_regions(branch)[0];
    let answer = body
        .def_op(body.operand(branch, 0))
        .map(|t| body.operand(t, 0));
    let start = answer.and_then(|a| body.def_op(a));
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(branch);
    b.loc = calls.first().and_then(|call| b.body.ops[*call].loc);
    let types: Vec<_> = lists.iter().map(|list| b.body.ty(*list)).collect();
    let kind = OpKind::Single {
        nowait: false,
        copy: true,
    };
    let op = b.op(kind, &[], &types, 1);
    let into = b.body.op_regions(op)[0];
    b.body.move_ops(arm, into);
    if let Some(end) = b.body.last(into) {
        b.body.set_operands(end, &lists);
    }
    let given = b.body.results(op).to_vec();
    for (copy, from) in copies.iter().zip(given) {
        copy.emit_copy(&mut b, from);
    }
    body.erase(branch);
    if let Some(start) = start {
        erase_test(body, start);
    }
    Ok(())
}

/// Raises `master` and `masked` to a comparison with the rank.
fn raise_masked(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
    wanted: Option<Value>,
) -> RaiseResult {
    let answer = body.result(start);
    let ty = body.ty(answer);
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(start);
    b.loc = b.body.ops[start].loc;
    let rank = thread_num::emit_rank_query(&mut b);
    let wanted = match wanted {
        Some(value) => value,
        None => b.int(ty, 0),
    };
    let own = b.icmp(IntPredicate::Eq, rank, wanted);
    let own = b.cast(CastOp::ZExt, own, ty);
    body.replace_uses(answer, own);
    body.erase(start);
    for (op, id) in calls.list(unit, body) {
        if matches!(id, OpenMpFn::EndMaster | OpenMpFn::EndMasked) {
            body.erase(op);
        }
    }
    Ok(())
}
