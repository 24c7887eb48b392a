//! Raising of parallel intrinsics of `gradus/parallel.h`.
//!
//! An intrinsic returns a number used in a condition; the marked statement is the arm for 1. With 1 for every
//! intrinsic, the program is its serial projection. An intrinsic becomes 1 if its statement is not recognised:
//! control leaves the statement, or an optimiser has transformed the condition.
//!
//! - `Spawning`: the arm becomes a `spawn`. Values live-out of the arm go through memory and are reloaded after
//!   the next sync; an earlier use gets a sync in front.
//! - `SpawningCall`: likewise for the last call of the arm and the uses of its result. Arguments and the
//!   result's address are computed before the spawn.
//! - `Looping`: the loop becomes an independent `for`. Carried values must be reductions; the conversion to
//!   `par.for` checks them.
//! - `Scoping`: the arm becomes a `scope`. `Syncing` becomes a `sync`.

mod spawn_statements;

use crate::Raised;
use crate::intrinsics::spawn_statements::{
    hoist_arguments, hoist_common_values, move_store_into_arm, raise_spawn,
};
use crate::regions::{settle, wrap_ops};
use crate::report::{Construct, Outcome, Reason, RegionRecord};
use crate::{loop_bail_reason, task_scopes};
use gradus_edit::loop_to_for;
use gradus_ir::externals::{ExternalFn, ParallelIntrinsic};
use gradus_ir::integers::{fold_cast, fold_icmp, int_value};
use gradus_ir::{
    AllocaStorage, BinaryOp, Body, Builder, Flags, FuncId, Op, OpKind, Region, Unit, Use, Value,
};
use std::collections::HashSet;

/// Raises all parallel intrinsics of a unit; none is left.
pub(crate) fn raise(unit: &mut Unit) -> Raised {
    let mut raised = Raised::default();
    let ids: Vec<FuncId> = unit.functions.ids().collect();
    for func in ids {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        if !intrinsics_of_body(unit, &body).is_empty() {
            let name = unit.functions[func].source_name.clone();
            let name = name.unwrap_or_else(|| unit.functions[func].name.clone());
            raised
                .regions
                .extend(raise_function(unit, &mut body, &name));
            raised.changed.push(func);
        }
        unit.functions[func].body = Some(body);
    }
    raised
}

/// Returns the intrinsics of a body in program order, outer statements first.
fn intrinsics_of_body(unit: &Unit, body: &Body) -> Vec<(Op, ParallelIntrinsic)> {
    let known = |op| match unit.known_callee(body, op) {
        Some(ExternalFn::Fork(id)) => Some((op, id)),
        _ => None,
    };
    body.walk(body.root()).filter_map(known).collect()
}

/// Returns the source name of an intrinsic.
fn source_name(id: ParallelIntrinsic) -> &'static str {
    match id {
        ParallelIntrinsic::Spawning => "gr_spawn",
        ParallelIntrinsic::SpawningCall => "cilk_spawn",
        ParallelIntrinsic::Looping => "gr_for",
        ParallelIntrinsic::Scoping => "gr_scope",
        ParallelIntrinsic::Syncing => "gr_sync",
    }
}

/// Raises the intrinsics of a function: syncs first, because values are reloaded after a sync; inner loops
/// before outer loops, which are rebuilt; outer tasks before inner tasks.
fn raise_function(unit: &mut Unit, body: &mut Body, name: &str) -> Vec<RegionRecord> {
    let mut records = Vec::new();
    let mut constructs = Vec::new();
    let mut open_scope = false;
    let steps: [(&[ParallelIntrinsic], bool); 4] = [
        (&[ParallelIntrinsic::Syncing], false),
        (&[ParallelIntrinsic::Looping], true),
        (&[ParallelIntrinsic::Scoping], false),
        (
            &[ParallelIntrinsic::Spawning, ParallelIntrinsic::SpawningCall],
            false,
        ),
    ];
    for (ids, inner_first) in steps {
        loop {
            let mut found = intrinsics_of_body(unit, body).into_iter();
            let next = match inner_first {
                true => found.rfind(|(_, id)| ids.contains(id)),
                false => found.find(|(_, id)| ids.contains(id)),
            };
            let Some((op, id)) = next else {
                break;
            };
            let span = unit.span(body.ops[op].loc);
            let spawns = matches!(
                id,
                ParallelIntrinsic::Spawning | ParallelIntrinsic::SpawningCall
            );
            let why = match open_scope && spawns {
                true => {
                    fold_intrinsic_to_one(unit, body, op);
                    let text = "a `gr_scope` in this function is not recognised";
                    Some((text, None))
                }
                false => raise_statement(unit, body, op, id),
            };
            open_scope |= id == ParallelIntrinsic::Scoping && why.is_some();
            if let Some((why, at)) = why {
                records.push(RegionRecord {
                    function: name.to_string(),
                    span: span.clone(),
                    outcome: Outcome::Serial(Reason {
                        text: format!("`{}`: {why}", source_name(id)),
                        span: at.and_then(|op| unit.span(body.ops[op].loc)),
                    }),
                    constructs: Vec::new(),
                });
            }
            let name = source_name(id);
            constructs.push(Construct { name, span });
        }
    }
    task_scopes::insert_scopes(unit, body);
    task_scopes::drop_idle_syncs(body);
    constructs.sort_by_key(|c| c.span.as_ref().map(|s| (s.line, s.column)));
    records.insert(
        0,
        RegionRecord {
            function: name.to_string(),
            span: constructs.first().and_then(|c| c.span.clone()),
            outcome: Outcome::Orphan,
            constructs,
        },
    );
    records
}

/// The reason why a statement runs serially, and the op responsible.
pub(crate) type SerialReason = (&'static str, Option<Op>);

/// Raises the statement of an intrinsic and erases the intrinsic; returns the reason if the statement stays
/// serial.
fn raise_statement(
    unit: &mut Unit,
    body: &mut Body,
    marker: Op,
    id: ParallelIntrinsic,
) -> Option<SerialReason> {
    let (sides, mut why) = match marked_arms(unit, body, marker) {
        Some(sides) => (sides, None),
        None => {
            let text = "an optimiser rewrote the condition of the statement";
            (Vec::new(), Some((text, None)))
        }
    };
    for (branch, side) in sides {
        let raised = match id {
            ParallelIntrinsic::Syncing => Ok(()),
            ParallelIntrinsic::Looping => raise_loop(unit, body, branch, side),
            ParallelIntrinsic::Scoping => raise_scope(unit, body, branch, side),
            ParallelIntrinsic::Spawning => {
                hoist_common_values(unit, body, branch, side);
                raise_spawn(unit, body, branch, side)
            }
            ParallelIntrinsic::SpawningCall => {
                // The other condition of the branch may guard the computation of the arguments.
                if !tests_another_condition(body, branch) {
                    hoist_arguments(unit, body, branch, side);
                }
                move_store_into_arm(unit, body, branch, side);
                hoist_common_values(unit, body, branch, side);
                raise_spawn(unit, body, branch, side)
            }
        };
        why = why.or(raised.err());
    }
    if id == ParallelIntrinsic::Syncing {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(marker);
        b.loc = b.body.ops[marker].loc;
        b.op(OpKind::Sync, &[], &[], 0);
    }
    fold_intrinsic_to_one(unit, body, marker);
    why
}

/// Replaces the intrinsic by 1: the statement is raised, or runs serially.
fn fold_intrinsic_to_one(unit: &mut Unit, body: &mut Body, marker: Op) {
    if let Some(&value) = body.results(marker).first() {
        settle(unit, body, value, 1);
    }
    body.erase(marker);
}

/// Returns the branches on an intrinsic's number, each with its arm for 1; `None` for any other use.
fn marked_arms(unit: &Unit, body: &Body, marker: Op) -> Option<Vec<(Op, Region)>> {
    let mut sides = Vec::new();
    let number = body.results(marker).first();
    let mut open: Vec<(Value, u128)> = number.map(|&v| (v, 1)).into_iter().collect();
    while let Some((value, is)) = open.pop() {
        for used in body.uses(value) {
            let op = used.op;
            if matches!(body.kind(op), OpKind::If) && used.index == 0 {
                sides.push((op, body.op_regions(op)[usize::from(is == 0)]));
            } else {
                open.push((
                    *body.results(op).first()?,
                    value_if_marked(unit, body, used, is)?,
                ));
            }
        }
    }
    Some(sides)
}

/// Returns true if the branch tests a further condition besides the number.
fn tests_another_condition(body: &Body, branch: Op) -> bool {
    let mut at = body.def_op(body.operand(branch, 0));
    while let Some(op) = at {
        match body.kind(op) {
            OpKind::Binary(BinaryOp::And | BinaryOp::Or) | OpKind::Select => return true,
            OpKind::Binary(_) | OpKind::ICmp(_) | OpKind::Cast(_) => {
                at = body.def_op(body.operand(op, 0));
            }
            _ => return false,
        }
    }
    false
}

/// Returns the value of an op in terms of an operand that is `is` if the number is 1. An optimiser merges the
/// condition with that of a nested branch that is the entire arm: the value is then the one that selects the
/// arm of the nested branch.
fn value_if_marked(unit: &Unit, body: &Body, used: Use, is: u128) -> Option<u128> {
    let (op, index) = (used.op, used.index as usize);
    let bits = unit.types.int_bits(body.ty(body.operand(op, index)))?;
    let constant = |index: usize| Some(int_value(unit, body, body.operand(op, index))?.0);
    let condition = bits == 1;
    match *body.kind(op) {
        OpKind::ICmp(predicate) => {
            let other = constant(1 - index)?;
            Some(u128::from(match index {
                0 => fold_icmp(predicate, bits, is, other),
                _ => fold_icmp(predicate, bits, other, is),
            }))
        }
        OpKind::Cast(cast) => {
            let width = unit.types.int_bits(body.ty(body.result(op)))?;
            fold_cast(cast, bits, width, is)
        }
        OpKind::Binary(BinaryOp::Xor) => Some(is ^ constant(1 - index)?),
        OpKind::Binary(BinaryOp::And) => (condition && is == 1).then_some(1),
        OpKind::Binary(BinaryOp::Or) => (condition && is == 0).then_some(0),
        // `and` and `or` as `first ? second : false` and `first ? true : second`.
        OpKind::Select if condition => {
            let both = is == 1 && index < 2 && constant(2) == Some(0);
            let either = is == 0 && index != 1 && constant(1) == Some(1);
            (both || either).then_some(is)
        }
        _ => None,
    }
}

/// Returns the other arm of a branch.
pub(crate) fn other_arm(body: &Body, branch: Op, side: Region) -> Option<Region> {
    let mut regions = body.op_regions(branch).iter();
    regions.find(|r| **r != side).copied()
}

/// Turns the loop of an arm into an independent `for`.
fn raise_loop(unit: &mut Unit, body: &mut Body, _: Op, side: Region) -> Result<(), SerialReason> {
    let loops = body.ops_in(side).filter(|op| body.kind(*op).is_loop());
    let loops: Vec<Op> = loops.collect();
    let marked = loops.iter().copied();
    let marked: Vec<Op> = marked
        .filter(|op| body.ops[*op].flags.has(Flags::HAS_PARALLEL_INTRINSIC))
        .collect();
    let [only] = marked[..] else {
        return match (loops.is_empty(), marked.is_empty()) {
            (true, _) => Ok(()),
            // The remaining loops were nested in the marked loop.
            (_, true) => Err(("an optimiser removed the loop of the statement", None)),
            _ => Err(("the statement contains several marked loops", None)),
        };
    };
    let made = match body.kind(only) {
        OpKind::For { .. } => Some(only),
        _ => loop_to_for(unit, body, only),
    };
    let Some(made) = made.filter(|op| matches!(body.kind(*op), OpKind::For { .. })) else {
        return Err(loop_bail_reason::bail_reason(unit, body, only));
    };
    let region = body.op_regions(made)[0];
    if let Some(why) = loop_bail_reason::abnormal_exit(unit, body, region) {
        return Err(why);
    }
    let flags = &mut body.ops[made].flags;
    *flags = flags
        .without(Flags::HAS_PARALLEL_INTRINSIC)
        .with(Flags::INDEPENDENT);
    privatize_allocations(body, region);
    let tasks = intrinsics_of_body(unit, body).into_iter().any(|(op, id)| {
        matches!(
            id,
            ParallelIntrinsic::Spawning | ParallelIntrinsic::SpawningCall
        ) && body.is_nested_in(op, region)
    });
    let waits = body
        .walk(region)
        .any(|op| matches!(body.kind(op), OpKind::Sync));
    if tasks || waits {
        wrap_in_scope(unit, body, region);
    }
    Ok(())
}

/// Wraps a region without its terminator and its leading private slots into a scope. Variable-length arrays
/// stay between their markers.
fn wrap_in_scope(unit: &mut Unit, body: &mut Body, region: Region) {
    let is_own = |op: &Op| {
        matches!(body.kind(*op), OpKind::Alloca(_)) && body.as_const(body.operand(*op, 0)).is_some()
    };
    let ops = body.ops_in(region).skip_while(is_own);
    let ops: Vec<Op> = ops.filter(|op| !body.kind(*op).is_terminator()).collect();
    if !ops.is_empty() {
        wrap_ops(&mut Builder::new(unit, body), &ops, OpKind::Scope);
    }
}

fn raise_scope(unit: &mut Unit, body: &mut Body, _: Op, side: Region) -> Result<(), SerialReason> {
    let ends = |op: Op| matches!(body.kind(op), OpKind::Yield);
    if !body.last(side).is_some_and(ends) {
        return Err(("control does not reach the end of the scope", None));
    }
    wrap_in_scope(unit, body, side);
    Ok(())
}

/// Moves allocations used only in `region` into `region`: each execution has private memory.
pub(crate) fn privatize_allocations(body: &mut Body, region: Region) {
    let inside: HashSet<Op> = body.walk(region).collect();
    let own = |op: &Op| {
        let OpKind::Alloca(info) = body.kind(*op) else {
            return false;
        };
        let constant = body.as_const(body.operand(*op, 0)).is_some();
        let address = body.result(*op);
        let used = body.has_uses(address) && body.uses(address).all(|u| inside.contains(&u.op));
        // Also private memory of an iteration, whose tasks are raised afterwards.
        let given = matches!(info.storage, AllocaStorage::Frame | AllocaStorage::Private);
        given && constant && used && !inside.contains(op)
    };
    let allocas: Vec<Op> = body.walk(body.root()).filter(own).collect();
    for op in allocas {
        if let OpKind::Alloca(info) = &mut body.ops[op].kind {
            info.storage = AllocaStorage::Private;
        }
        body.detach(op);
        match body.first(region) {
            Some(first) => body.insert_before(first, op),
            None => body.append(region, op),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Orphans, raise};
    use gradus_ir::{Body, Op, OpKind, Symbol, parse};

    /// Returns the body of a function with a scope whose only task depends on the condition `c`, and the number
    /// of remarks.
    fn raised(condition: &str) -> (Body, usize) {
        let text = format!(
            "declare @__gr_scoping() -> i32
             declare @__gr_spawning() -> i32
             declare @work(ptr) -> void
             func @f(%p: ptr, %c: i1) -> i64 {{
               %m = call @__gr_scoping()
               %is = icmp ne %m, i32 0
               %not = icmp eq %m, i32 0
               {condition} {{
                 %s = call @__gr_spawning()
                 %t = icmp ne %s, i32 0
                 if %t {{ call @work(%p) yield }} else {{ yield }}
                 yield
               }} else {{ yield }}
               %x = load %p -> i64
               return %x
             }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let said = raise(&mut unit, &Orphans::Raise).remarks().len();
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        (
            unit.functions[f]
                .body
                .as_deref()
                .expect("it has code")
                .clone(),
            said,
        )
    }

    /// Returns true if the task completes before the load.
    fn waits_in_time(body: &Body) -> bool {
        let find =
            |kind: fn(&OpKind) -> bool| body.walk(body.root()).find(|op| kind(body.kind(*op)));
        let task = find(|kind| matches!(kind, OpKind::Spawn { .. })).expect("a task");
        let load = find(|kind| matches!(kind, OpKind::Load(_))).expect("a load");
        let scope = body
            .ancestors(task)
            .find(|op| matches!(body.kind(*op), OpKind::Scope))
            .expect("a scope");
        !body.is_ancestor(scope, load)
    }

    #[test]
    fn merged_condition_keeps_scope_end() {
        for condition in [
            "%both = and %is, %c if %both",
            "%both = and %c, %is if %both",
            "%both = select %is, %c, false if %both",
            "%both = select %c, %is, false if %both",
            "%both = select %not, true, %c %in = xor %both, true if %in",
            "%either = or %not, %c %in = xor %either, true if %in",
        ] {
            let (body, said) = raised(condition);
            assert!(waits_in_time(&body), "{condition}");
            assert_eq!(said, 0, "{condition}");
        }
    }

    #[test]
    fn guarded_arguments_are_not_hoisted() {
        let text = "declare @__gr_spawning_call() -> i32
             declare @work(i64) -> void
             func @f(%p: ptr, %c: i1) {
               %m = call @__gr_spawning_call()
               %is = icmp ne %m, i32 0
               %both = and %is, %c
               if %both { %x = load %p -> i64 call @work(%x) yield } else { yield }
               return
             }";
        let mut unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        raise(&mut unit, &Orphans::Raise);
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let load = body
            .walk(body.root())
            .find(|op| matches!(body.kind(*op), OpKind::Load(_)))
            .expect("a load");
        let mut owners = body.ancestors(load);
        assert!(owners.any(|op| matches!(body.kind(op), OpKind::If)));
    }

    #[test]
    fn common_values_are_hoisted() {
        let text = "declare @__gr_spawning() -> i32
             declare @work(i64)
             func @f(%n: i64) -> i64 {
               %m = call @__gr_spawning()
               %not = icmp eq %m, i32 0
               %half = if %not -> i64 {
                 %a = lshr %n, 1 yield %a
               } else {
                 %b = lshr %n, 1 call @work(%b) yield %b
               }
               %rest = sub %n, %half
               return %rest
             }";
        let mut unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        assert_eq!(raise(&mut unit, &Orphans::Raise).remarks().len(), 0);
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let is = |kind: fn(&OpKind) -> bool| move |op: &Op| kind(body.kind(*op));
        let spawns = body
            .walk(body.root())
            .filter(is(|k| matches!(k, OpKind::Spawn { .. })));
        assert_eq!(spawns.count(), 1);
        // No sync for the task, and no load of a value it stores.
        let waits = is(|k| matches!(k, OpKind::Sync | OpKind::Load(_)));
        assert_eq!(body.walk(body.root()).filter(waits).count(), 0);
    }

    #[test]
    fn tasks_are_serial_without_scope() {
        for condition in [
            "%odd = or %is, %c if %odd",
            "%n = add %m, 1 %odd = icmp ugt %n, i32 1 if %odd",
        ] {
            let (body, said) = raised(condition);
            let spawns = |op: Op| matches!(body.kind(op), OpKind::Spawn { .. });
            assert!(!body.walk(body.root()).any(spawns), "{condition}");
            assert_eq!(said, 2, "{condition}");
        }
    }
}
