//! Tasks as loops: turns a task and the code concurrent to it into an independent loop of two iterations before
//! differentiation, and back afterwards.
//!
//! ```text
//! spawn { A }  B  sync   ⇄   for %k < 2 independent { if %k == 0 { A } else { B } }
//! ```
//!
//! The serial projection of a task runs the task at the spawn and loses its independence. An independent loop
//! is differentiated like any parallel loop: each arm saves to its own tape slots, and the reverse is again an
//! independent loop (decision 5). After differentiation the loops become tasks again, and recursions fork in
//! their upper levels only ([`crate::lower::fork_clones`]).
//!
//! A task becomes an arm of a fork under three conditions. The task is always deferrable ([`crate::prepare_ad::conditional_tasks`]).
//! The code after the task in its region reaches the sync. Neither arm may wait for the other by any means but
//! the sync. Values computed in the other arm and used after the fork go through memory.

use crate::emit::serial::may_wait;
use crate::prepare_ad::conditional_tasks;
use crate::thread_count::order_dependence::{functions_reaching, may_order_iterations};
use gradus_edit::{ValueMap, clone_op_within, combine, identity, inline_region, strand_alloca};
use gradus_ir::integers::{fold_binary, fold_cast, fold_icmp, int_value};
use gradus_ir::{
    AllocaStorage, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, ReduceOp, Region, Unit,
    Value,
};
use std::collections::HashSet;

/// Turns the tasks of `functions` into loops, and removes scopes without tasks.
pub(crate) fn tasks_to_loops(unit: &mut Unit, functions: &[FuncId]) {
    let ordered = functions_reaching(unit, &orders_beyond_tasks);
    let in_order = conditional_tasks::reachable_from_final_tasks(unit);
    let functions = functions.iter().filter(|func| !in_order.contains(func));
    for &func in functions {
        // A recursive function is inspected during the transformation, hence a clone.
        let Some(mut body) = unit.functions[func].body.clone() else {
            continue;
        };
        conditional_tasks::version_conditional_tasks(unit, &mut body);
        // Inner and later tasks first: the code after an earlier task includes the loops of later tasks.
        let mut spawns = ops_of_kind(&body, is_unconditional_spawn);
        spawns.reverse();
        for spawn in spawns {
            if let Some(rest) = concurrent_ops(unit, &body, spawn, &ordered) {
                spawn_to_loop(unit, &mut body, spawn, &rest);
            }
        }
        drop_empty_scopes(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
}

/// Returns the ops of a kind, in order.
pub(crate) fn ops_of_kind(body: &Body, is_one: impl Fn(&OpKind) -> bool) -> Vec<Op> {
    let ops = body.walk(body.root());
    ops.filter(|op| is_one(body.kind(*op))).collect()
}

fn is_unconditional_spawn(kind: &OpKind) -> bool {
    let free = OpKind::Spawn {
        has_condition: false,
        has_final: false,
    };
    *kind == free
}

/// Like [`may_order_iterations`], except that tasks alone impose no order.
fn orders_beyond_tasks(unit: &Unit, body: &Body, op: Op, ordered: &HashSet<FuncId>) -> bool {
    let of_tasks = matches!(
        body.kind(op),
        OpKind::Scope | OpKind::Spawn { .. } | OpKind::Sync
    );
    !of_tasks && may_order_iterations(unit, body, op, ordered)
}

/// Returns the ops concurrent to the task up to the sync, if the task and the ops can be arms of a fork.
fn concurrent_ops(
    unit: &Unit,
    body: &Body,
    spawn: Op,
    ordered: &HashSet<FuncId>,
) -> Option<Vec<Op>> {
    let region = body.parent(spawn)?;
    let owner = body.owner(region);
    let waits_at_end =
        owner.is_some_and(|op| matches!(body.kind(op), OpKind::Scope | OpKind::Spawn { .. }));
    let rest: Vec<Op> = body
        .ops_after(spawn)
        .take_while(|op| !matches!(body.kind(*op), OpKind::Sync) && !body.kind(*op).is_terminator())
        .collect();
    let end = body.next(*rest.last()?)?;
    let is_waited_for = match body.kind(end) {
        OpKind::Sync => true,
        OpKind::Yield => waits_at_end,
        _ => false,
    };
    let task = body.op_regions(spawn)[0];
    let ends = matches!(body.kind(body.last(task)?), OpKind::Yield);
    let inside = |op: &Op| {
        let nested = body.op_regions(*op).iter().flat_map(|r| body.walk(*r));
        nested.chain([*op]).collect::<Vec<Op>>()
    };
    let beside: Vec<Op> = rest.iter().flat_map(inside).collect();
    let own: Vec<Op> = body.walk(task).collect();
    let waits_again = beside.iter().any(|op| {
        matches!(body.kind(*op), OpKind::Sync) && task_scope(body, *op) == task_scope(body, spawn)
    });
    let side = |ops: &[Op]| {
        ops.iter().any(|op| may_be_worth_forking(unit, body, *op))
            && ops.iter().all(|op| {
                !may_leave_region(body, *op)
                    && !may_wait(body, *op)
                    && !orders_beyond_tasks(unit, body, *op, ordered)
                    && !is_shared_or_unsized_slot(body, *op)
            })
    };
    (is_waited_for && ends && !waits_again && side(&own) && side(&beside)).then_some(rest)
}

/// Returns the region of the scope or task that `op` belongs to.
pub(crate) fn task_scope(body: &Body, op: Op) -> Option<Region> {
    let mut region = body.parent(op)?;
    loop {
        let owner = body.owner(region)?;
        if matches!(body.kind(owner), OpKind::Scope | OpKind::Spawn { .. }) {
            return Some(region);
        }
        region = body.parent(owner)?;
    }
}

/// Returns true if `op` may be expensive enough for a fork.
fn may_be_worth_forking(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::For { .. } | OpKind::Loop { .. } | OpKind::ParFor { .. } => true,
        OpKind::Call(_) => {
            let callee = unit.callee(body, op);
            callee.is_some_and(|callee| unit.functions[callee].body.is_some())
        }
        _ => false,
    }
}

/// Returns true if control may not reach the code after `op`.
fn may_leave_region(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::Return | OpKind::Resume | OpKind::Invoke(_) | OpKind::LandingPad(_)
    )
}

/// Returns true for a slot that is shared or has no constant size.
fn is_shared_or_unsized_slot(body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Alloca(info) => {
            info.storage == AllocaStorage::Shared || body.as_const(body.operand(op, 0)).is_none()
        }
        _ => false,
    }
}

fn spawn_to_loop(unit: &mut Unit, body: &mut Body, spawn: Op, rest: &[Op]) {
    let task = body.op_regions(spawn)[0];
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[spawn].loc;
    b.set_insertion_before(spawn);
    let two = b.i64(2);
    let (fork, region) = b.for_(two, &[]);
    b.body.ops[fork].flags = Flags::INDEPENDENT;
    let side = b.body.region_params(region)[0];
    b.set_insertion_end(region);
    let zero = b.i64(0);
    let first = b.icmp(IntPredicate::Eq, side, zero);
    let (_, own, beside) = b.if_(first, &[]);
    b.yield_(&[]);
    b.body.move_ops(task, own);
    for &op in rest {
        b.body.move_op(op, beside);
    }
    b.set_insertion_end(beside);
    b.yield_(&[]);
    b.body.erase(spawn);
    for &op in rest {
        for result in b.body.results(op).to_vec() {
            demote_to_slot(b, fork, beside, result);
        }
    }
}

/// Passes a value of a fork's arm to its uses after the fork through a stack slot.
fn demote_to_slot(b: &mut Builder<'_>, fork: Op, side: Region, value: Value) {
    let outside = |at: &gradus_ir::Use| !b.body.is_nested_in(at.op, side);
    let uses: Vec<_> = b.body.uses(value).filter(outside).collect();
    let Some(end) = b.body.last(side).filter(|_| !uses.is_empty()) else {
        // Not an error: all uses of the value are in the arm.
        return;
    };
    let ty = b.body.ty(value);
    let slot = strand_alloca(b, fork, ty);
    b.set_insertion_before(end);
    b.store(value, slot);
    if let Some(behind) = b.body.next(fork) {
        b.set_insertion_before(behind);
    }
    let found = b.load(ty, slot);
    for at in uses {
        b.body.set_operand(at.op, at.index as usize, found);
    }
}

/// Removes scopes without tasks, and the syncs inside.
fn drop_empty_scopes(unit: &mut Unit, body: &mut Body) {
    let is_task = |kind: &OpKind| matches!(kind, OpKind::Spawn { .. });
    let scopes = ops_of_kind(body, |kind| *kind == OpKind::Scope);
    for scope in scopes.into_iter().rev() {
        let region = body.op_regions(scope)[0];
        if body.walk(region).any(|op| is_task(body.kind(op))) {
            continue;
        }
        let inside = body.walk(region);
        let syncs: Vec<Op> = inside
            .filter(|op| *body.kind(*op) == OpKind::Sync)
            .collect();
        for sync in syncs {
            body.erase(sync);
        }
        inline_region(&mut Builder::new(unit, body), scope, region, &[]);
    }
}

/// The role of a value carried from a fork's first iteration to its second.
#[derive(Clone, Copy)]
enum ForkCarried {
    /// The first iteration leaves the value unchanged.
    UnchangedByFirst,
    /// The second iteration does not use the value.
    UnusedBySecond,
    /// Both iterations accumulate into the value.
    Reduced(ReduceOp),
}

/// Returns true for an independent loop with two iterations and a call to a non-library function.
pub fn is_fork(unit: &Unit, body: &Body, op: Op) -> bool {
    let calls = |op: Op| {
        let callee = unit.callee(body, op);
        callee.is_some_and(|callee| unit.known(callee).is_none())
    };
    body.is_independent(op)
        && body.as_int(unit, body.operand(op, 0)) == Some(2)
        && body.walk(body.op_regions(op)[0]).any(calls)
}

/// A loop of two iterations with calls, as a fork.
pub(crate) struct ForkLoop {
    lp: Op,
    handed: Vec<ForkCarried>,
}

impl ForkLoop {
    /// Returns the loop as a fork, if neither iteration uses a value carried from the other. `reduced` states
    /// the carried values that are reductions.
    pub(crate) fn of(
        unit: &Unit,
        body: &Body,
        lp: Op,
        reduced: impl Fn(usize) -> Option<ReduceOp>,
    ) -> Option<ForkLoop> {
        if !is_fork(unit, body, lp) {
            return None;
        }
        let region = body.op_regions(lp)[0];
        let sides = [0, 1].map(|number| ForkArm::of(unit, body, lp, number));
        let params = body.region_params(region)[1..].iter().enumerate();
        let handed = params.map(|(index, &param)| {
            if let Some(op) = reduced(index) {
                return Some(ForkCarried::Reduced(op));
            }
            let kept = |side: &ForkArm| side.yields.get(index) == Some(&param);
            match &sides {
                [first, _] if kept(first) => Some(ForkCarried::UnchangedByFirst),
                [_, second] if kept(second) && !second.uses(body, param) => {
                    Some(ForkCarried::UnusedBySecond)
                }
                _ => None,
            }
        });
        let handed = handed.collect::<Option<Vec<ForkCarried>>>()?;
        Some(ForkLoop { lp, handed })
    }

    /// Turns the first iteration into a task concurrent to the second.
    pub(crate) fn to_task(&self, unit: &mut Unit, body: &mut Body) {
        let lp = self.lp;
        let starts: Vec<Value> = body.operands(lp).skip(1).collect();
        let results = body.results(lp).to_vec();
        let types: Vec<_> = results.iter().map(|v| body.ty(*v)).collect();
        let b = &mut Builder::new(unit, body);
        b.loc = b.body.ops[lp].loc;
        b.set_insertion_before(lp);
        let scope = b.op(OpKind::Scope, &[], &types, 1);
        let around = b.body.op_regions(scope)[0];
        b.set_insertion_end(around);
        let spawn = OpKind::Spawn {
            has_condition: false,
            has_final: false,
        };
        let spawn = b.op(spawn, &[], &[], 1);
        let mut begun = starts.clone();
        for (value, how) in begun.iter_mut().zip(&self.handed) {
            if let ForkCarried::Reduced(op) = *how {
                let ty = b.body.ty(*value);
                let Some(nothing) = identity(b, op, ty) else {
                    unreachable!("a `for` has no user-defined reduction");
                };
                *value = nothing;
            }
        }
        let task = b.body.op_regions(spawn)[0];
        b.set_insertion_end(task);
        let first = emit_iteration(b, lp, 0, &begun);
        let mut slots = Vec::new();
        for (value, how) in first.iter().zip(&self.handed) {
            if matches!(how, ForkCarried::UnchangedByFirst) {
                slots.push(None);
                continue;
            }
            let ty = b.body.ty(*value);
            let slot = strand_alloca(b, scope, ty);
            b.store(*value, slot);
            slots.push(Some((ty, slot)));
        }
        b.yield_(&[]);
        b.set_insertion_end(around);
        let mut totals = emit_iteration(b, lp, 1, &starts);
        b.op(OpKind::Sync, &[], &[], 0);
        for ((total, how), slot) in totals.iter_mut().zip(&self.handed).zip(slots) {
            let Some((ty, slot)) = slot else {
                continue;
            };
            let other = b.load(ty, slot);
            *total = match *how {
                ForkCarried::Reduced(op) => combine(b, op, other, *total),
                _ => other,
            };
        }
        b.yield_(&totals);
        for (result, total) in results.into_iter().zip(b.body.results(scope).to_vec()) {
            b.body.replace_uses(result, total);
        }
        b.body.erase(lp);
    }
}

/// The code that runs in the iteration of a given number.
struct ForkArm {
    ops: Vec<Op>,
    yields: Vec<Value>,
    /// The results of branches decided by the iteration number.
    given: ValueMap,
}

impl ForkArm {
    fn of(unit: &Unit, body: &Body, lp: Op, number: u128) -> ForkArm {
        let region = body.op_regions(lp)[0];
        let mut side = ForkArm {
            ops: Vec::new(),
            yields: Vec::new(),
            given: ValueMap::new(),
        };
        let index = (body.region_params(region)[0], number);
        side.yields = side.collect_ops(unit, body, region, index);
        side
    }

    /// Collects the ops of a region; returns the yielded values.
    fn collect_ops(
        &mut self,
        unit: &Unit,
        body: &Body,
        region: Region,
        index: (Value, u128),
    ) -> Vec<Value> {
        for op in body.ops_in(region) {
            let condition = match body.kind(op) {
                OpKind::If => fold_from_known(unit, body, body.operand(op, 0), &|value| {
                    (value == index.0).then_some(index.1)
                }),
                kind if kind.is_terminator() => continue,
                _ => None,
            };
            let Some(condition) = condition else {
                self.ops.push(op);
                continue;
            };
            let arm = body.op_regions(op)[usize::from(condition == 0)];
            let given = self.collect_ops(unit, body, arm, index);
            for (result, value) in body.results(op).iter().zip(given) {
                self.given.set(*result, value);
            }
        }
        let yielded = body
            .last(region)
            .into_iter()
            .flat_map(|end| body.operands(end));
        yielded.map(|value| self.given.get_or_same(value)).collect()
    }

    fn uses(&self, body: &Body, value: Value) -> bool {
        let inside = |op: &Op| {
            let nested = body.op_regions(*op).iter().flat_map(|r| body.walk(*r));
            nested.chain([*op]).collect::<Vec<Op>>()
        };
        let mut all = self.ops.iter().flat_map(inside);
        all.any(|op| {
            body.operands(op)
                .any(|used| self.given.get_or_same(used) == value)
        })
    }
}

/// Emits one iteration of a loop, with only the taken arm of branches decided by the iteration number. Returns
/// the yielded values.
fn emit_iteration(b: &mut Builder<'_>, lp: Op, number: i128, carried: &[Value]) -> Vec<Value> {
    let region = b.body.op_regions(lp)[0];
    let params = b.body.region_params(region).to_vec();
    let mut map = ValueMap::zip(&params[1..], carried);
    let ty = b.body.ty(params[0]);
    let number = b.int(ty, number);
    map.set(params[0], number);
    emit_region(b, region, &mut map)
}

/// Emits the ops of a region; returns the yielded values.
fn emit_region(b: &mut Builder<'_>, region: Region, map: &mut ValueMap) -> Vec<Value> {
    let ops: Vec<Op> = b.body.ops_in(region).collect();
    for op in ops {
        if b.body.kind(op).is_terminator() {
            continue;
        }
        let condition = match b.body.kind(op) {
            OpKind::If => {
                let (unit, body) = (&*b.unit, &*b.body);
                let number = |value| int_value(unit, body, map.get(value)?).map(|(n, _)| n);
                fold_from_known(unit, body, body.operand(op, 0), &number)
            }
            _ => None,
        };
        let Some(condition) = condition else {
            clone_op_within(op, b, map);
            continue;
        };
        let arm = b.body.op_regions(op)[usize::from(condition == 0)];
        let given = emit_region(b, arm, map);
        for (result, value) in b.body.results(op).to_vec().into_iter().zip(given) {
            map.set(result, value);
        }
    }
    let end = b.body.last(region);
    let yielded: Vec<Value> = end
        .into_iter()
        .flat_map(|end| b.body.operands(end))
        .collect();
    yielded
        .into_iter()
        .map(|value| map.get_or_same(value))
        .collect()
}

/// Constant-folds `value` from constants and `known` values.
fn fold_from_known(
    unit: &Unit,
    body: &Body,
    value: Value,
    known: &dyn Fn(Value) -> Option<u128>,
) -> Option<u128> {
    let number = || int_value(unit, body, value).map(|(number, _)| number);
    if let Some(number) = known(value).or_else(number) {
        return Some(number);
    }
    let op = body.def_op(value)?;
    let bits = |value: Value| unit.types.int_bits(body.ty(value));
    let operand = |index: usize| fold_from_known(unit, body, body.operand(op, index), known);
    match *body.kind(op) {
        OpKind::Binary(kind) => fold_binary(kind, bits(value)?, operand(0)?, operand(1)?),
        OpKind::ICmp(predicate) => {
            let bits = bits(body.operand(op, 0))?;
            let holds = fold_icmp(predicate, bits, operand(0)?, operand(1)?);
            Some(u128::from(holds))
        }
        OpKind::Cast(kind) => {
            let from = bits(body.operand(op, 0))?;
            fold_cast(kind, from, bits(value)?, operand(0)?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{ThreadCountAnswers, project, restore};
    use gradus_ir::{FuncId, OpKind, Symbol, Unit, parse, verify};

    const TASK: &str = "spawn { call @g(%p) yield }";

    /// Projects a function `f` with a scope; returns the unit and the number of loops made from tasks.
    fn loops(code: &str) -> (Unit, usize) {
        let text = format!(
            "func @g(%p: ptr) {{ store 1.0, %p return }}
             func @f(%p: ptr, %c: i1) {{ scope {{ {code} yield }} return }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let all: Vec<FuncId> = unit.functions.ids().collect();
        project(&mut unit, &all, ThreadCountAnswers::Exact);
        assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
        let count = count(&unit, |kind| matches!(kind, OpKind::For { .. }));
        (unit, count)
    }

    fn count(unit: &Unit, is_one: impl Fn(&OpKind) -> bool) -> usize {
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        body.walk(body.root())
            .filter(|op| is_one(body.kind(*op)))
            .count()
    }

    #[test]
    fn ops_until_sync_become_second_arm() {
        let other = "call @g(%p)";
        assert_eq!(loops(&format!("{TASK} {other} sync")).1, 1);
        assert_eq!(loops(&format!("{TASK} {other}")).1, 1);
        assert_eq!(loops(&format!("{TASK} {other} {TASK} {other} sync")).1, 2);
        assert_eq!(
            loops(&format!(
                "if %c {{ {TASK} {other} sync yield }} else {{ yield }}"
            ))
            .1,
            1
        );
        // Nothing concurrent, a sync in an outer region, a sync nested in a branch.
        assert_eq!(loops(&format!("{TASK} sync {other}")).1, 0);
        assert_eq!(
            loops(&format!(
                "if %c {{ {TASK} {other} yield }} else {{ yield }} sync"
            ))
            .1,
            0
        );
        let within = format!("if %c {{ sync yield }} else {{ yield }} {other}");
        assert_eq!(loops(&format!("{TASK} {within} sync")).1, 0);
    }

    /// If the condition is false, both arms are called in order.
    #[test]
    fn conditional_task_is_versioned() {
        let (unit, made) = loops("spawn when %c { call @g(%p) yield } call @g(%p) sync");
        assert_eq!(made, 1);
        assert_eq!(count(&unit, |kind| matches!(kind, OpKind::Call(_))), 4);
        assert_eq!(count(&unit, |kind| matches!(kind, OpKind::Spawn { .. })), 0);
    }

    #[test]
    fn acquire_or_lock_prevents_fork() {
        let other = "call @g(%p)";
        let waits = "%a = load acquire align 8 %p -> f64";
        assert_eq!(loops(&format!("{TASK} {waits} {other} sync")).1, 0);
        let locked = "critical \"\" { call @g(%p) yield }";
        assert_eq!(loops(&format!("{TASK} {locked} {other} sync")).1, 0);
    }

    #[test]
    fn fork_loop_is_restored_to_task() {
        let value = "%a = load %p -> f64 call @g(%p)";
        let used = format!("{TASK} {value} sync store %a, %p");
        let (mut unit, made) = loops(&used);
        assert_eq!(made, 1);
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let mut body = unit.functions[f].body.take().expect("it has code");
        assert!(restore(&mut unit, &mut body).is_empty());
        unit.functions[f].body = Some(body);
        assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
        assert_eq!(count(&unit, |kind| matches!(kind, OpKind::Spawn { .. })), 1);
        assert_eq!(count(&unit, |kind| matches!(kind, OpKind::Call(_))), 2);
    }
}
