//! Conditional tasks (`if` clause) before differentiation: versions the task and the code up to the next sync.
//!
//! ```text
//! spawn if %c { A }  B  sync   →   if %c { spawn { A }  B  sync } else { A  B }
//! ```
//!
//! If the condition holds, the tasks may be arms of a fork ([`crate::prepare_ad::tasks_as_loops`]). Otherwise the tasks run
//! undeferred, and subsequent code may rely on completion. Tasks with a different condition value stay
//! unchanged: each combination would need a version.
//!
//! A final task runs its child tasks undeferred, too; functions reachable from a final task therefore keep
//! their tasks in order.

use crate::prepare_ad::tasks_as_loops::{ops_of_kind, task_scope};
use gradus_analysis::CallGraph;
use gradus_edit::{ValueMap, clone_op_within, inline_region};
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, TypeId, Unit, Use, Value};
use std::collections::HashSet;

/// A part with more ops is not versioned.
const VERSIONED_OPS_MAX: usize = 2000;

/// A conditional task and the ops up to the sync.
struct ConditionalPart {
    ops: Vec<Op>,
    /// True if `ops` ends with the sync.
    ends_with_sync: bool,
    /// The tasks in `ops` with an equal condition.
    tasks: Vec<Op>,
}

/// Versions each conditional task, with the code concurrent to the task, by the condition.
pub(crate) fn version_conditional_tasks(unit: &mut Unit, body: &mut Body) {
    let mut done: HashSet<Op> = HashSet::new();
    for task in ops_of_kind(body, is_conditional) {
        if done.contains(&task) {
            continue;
        }
        let Some(part) = ConditionalPart::of(body, task) else {
            continue;
        };
        done.extend(&part.tasks);
        part.version(&mut Builder::new(unit, body), task);
    }
}

fn is_conditional(kind: &OpKind) -> bool {
    let conditional = OpKind::Spawn {
        has_condition: true,
        has_final: false,
    };
    *kind == conditional
}

impl ConditionalPart {
    fn of(body: &Body, task: Op) -> Option<ConditionalPart> {
        let scope = task_scope(body, task)?;
        let behind = std::iter::successors(Some(task), |op| body.next(*op));
        let mut ops: Vec<Op> = behind
            .take_while(|op| {
                !matches!(body.kind(*op), OpKind::Sync) && !body.kind(*op).is_terminator()
            })
            .collect();
        let end = body.next(*ops.last()?)?;
        let waits = matches!(body.kind(end), OpKind::Sync);
        if waits {
            ops.push(end);
        } else if body.parent(task) != Some(scope) || !matches!(body.kind(end), OpKind::Yield) {
            return None;
        }
        let all = nested_ops(body, &ops);
        let when = body.operand(task, 0);
        let has_condition = |op: &Op| {
            is_conditional(body.kind(*op))
                && body.operand(*op, 0) == when
                && task_scope(body, *op) == Some(scope)
        };
        let tasks: Vec<Op> = all.iter().copied().filter(has_condition).collect();
        let ends = |task: &Op| {
            let end = body.last(body.op_regions(*task)[0]);
            end.is_some_and(|end| matches!(body.kind(end), OpKind::Yield))
        };
        let fits = all.len() <= VERSIONED_OPS_MAX && tasks.iter().all(ends);
        fits.then_some(ConditionalPart {
            ops,
            ends_with_sync: waits,
            tasks,
        })
    }

    fn version(&self, b: &mut Builder<'_>, task: Op) {
        let spawns = spawns(b.body, &self.ops);
        let used = self.live_out_values(b.body);
        let types: Vec<TypeId> = used.iter().map(|v| b.body.ty(*v)).collect();
        let when = b.body.operand(task, 0);
        b.set_insertion_before(task);
        b.loc = b.body.ops[task].loc;
        let (choice, deferred, at_once) = b.if_(when, &types);
        b.set_insertion_end(deferred);
        let mut map = ValueMap::new();
        let copies = self.ops.iter().map(|op| clone_op_within(*op, b, &mut map));
        let copies: Vec<Op> = copies.collect();
        if !self.ends_with_sync {
            b.op(OpKind::Sync, &[], &[], 0);
        }
        let given: Vec<Value> = used.iter().map(|v| map.get_or_same(*v)).collect();
        b.yield_(&given);
        for (spawn, copy) in spawns.into_iter().zip(self::spawns(b.body, &copies)) {
            if self.tasks.contains(&spawn) {
                b.body.set_operands(copy, &[]);
                b.body.ops[copy].kind = OpKind::Spawn {
                    has_condition: false,
                    has_final: false,
                };
            }
        }
        for (value, new) in used.iter().zip(b.body.results(choice).to_vec()) {
            for at in self.uses_after(b.body, *value) {
                b.body.set_operand(at.op, at.index as usize, new);
            }
        }
        for &op in &self.ops {
            b.body.move_op(op, at_once);
        }
        b.set_insertion_end(at_once);
        b.yield_(&used);
        for &task in &self.tasks {
            b.set_insertion_before(task);
            let region = b.body.op_regions(task)[0];
            inline_region(b, task, region, &[]);
        }
    }

    /// Returns the results of `ops` used after `ops`.
    fn live_out_values(&self, body: &Body) -> Vec<Value> {
        let results = self.ops.iter().flat_map(|op| body.results(*op).to_vec());
        let used = results.filter(|value| !self.uses_after(body, *value).is_empty());
        used.collect()
    }

    fn uses_after(&self, body: &Body, value: Value) -> Vec<Use> {
        let inside: HashSet<Op> = nested_ops(body, &self.ops).into_iter().collect();
        let uses = body.uses(value);
        uses.filter(|at| !inside.contains(&at.op)).collect()
    }
}

/// Returns `ops` and all nested ops.
fn nested_ops(body: &Body, ops: &[Op]) -> Vec<Op> {
    let inside = |op: &Op| {
        let nested = body.op_regions(*op).iter().flat_map(|r| body.walk(*r));
        std::iter::once(*op).chain(nested).collect::<Vec<Op>>()
    };
    ops.iter().flat_map(inside).collect()
}

fn spawns(body: &Body, ops: &[Op]) -> Vec<Op> {
    let all = nested_ops(body, ops).into_iter();
    let spawns = all.filter(|op| matches!(body.kind(*op), OpKind::Spawn { .. }));
    spawns.collect()
}

/// Returns the functions reachable from final tasks.
pub(crate) fn reachable_from_final_tasks(unit: &Unit) -> HashSet<FuncId> {
    let mut called = Vec::new();
    let bodies = unit.functions.iter().filter_map(|(_, f)| f.body.as_deref());
    for body in bodies {
        let is_final = |kind: &OpKind| {
            matches!(
                kind,
                OpKind::Spawn {
                    has_final: true,
                    ..
                }
            )
        };
        for task in ops_of_kind(body, is_final) {
            let inside = body.walk(body.op_regions(task)[0]);
            called.extend(inside.filter_map(|op| unit.callee(body, op)));
        }
    }
    let closure = CallGraph::of(unit, &called);
    closure.functions().iter().copied().collect()
}
