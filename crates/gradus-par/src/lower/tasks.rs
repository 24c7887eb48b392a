//! Lowering of tasks: a spawn creates a task only if the runtime reports demand (`gr_hungry`: the worker has no
//! task left to steal); otherwise the task's code runs at the spawn.
//!
//! A task becomes `f.gr_task(context)`. Captured values are copied into the context, because the task may run
//! after the spawning code has continued. Exceptions are handled by [`crate::lower::exceptions`].

use crate::emit::abi::Entry;
use crate::emit::reduction_combine::copied_value;
use crate::lower::Lowering;
use crate::lower::exceptions;
use crate::lower::loops::{pack_results, unpack_results};
use crate::prepare_ad::orphaned_tasks;
use gradus_edit::{
    ValueMap, block_type, captured_values, clone_ops, entry_alloca, inline_region, load_fields,
    store_fields,
};
use gradus_ir::{Body, Builder, Flags, FuncId, Op, OpKind, Region, TypeId, Value};

/// The alignment in bytes of a task's context.
const TASK_ALIGN_BYTES: u64 = 16;

impl Lowering<'_> {
    /// Lowers a scope, its spawns and its syncs; nested scopes remain.
    pub(crate) fn lower_scope(&mut self, body: &mut Body, op: Op) {
        let region = body.op_regions(op)[0];
        let (spawns, syncs) = spawns_and_syncs(body, region);
        if spawns.is_empty() {
            for sync in syncs {
                body.erase(sync);
            }
            return inline_region(&mut Builder::new(self.unit, body), op, region, &[]);
        }
        let throws = self.may_throw(body, region);
        let unwaited = has_pending_tasks_at_end(body, region, &spawns);
        let calls = self.costs.region(self.unit, body, region).calls;
        let is_orphan = |spawn: &Op| body.ops[*spawn].flags.has(Flags::ORPHANED_TASK);
        let (orphan, all) = (spawns.iter().any(is_orphan), spawns.iter().all(is_orphan));
        let b = &mut Builder::new(self.unit, body);
        b.loc = b.body.ops[op].loc;
        let mut group = TaskGroup::new(b, op, throws);
        group.in_region = orphan.then(|| orphaned_tasks::is_in_region(b));
        let entered = calls.then(|| match group.in_region.filter(|_| all) {
            Some(inside) => query_if(b, inside, Entry::Enter),
            None => emit_enter(b),
        });
        for &spawn in &spawns {
            self.add_inner_scope(body, spawn);
            mark_final_task(&mut Builder::new(self.unit, body), spawn);
        }
        for sync in syncs {
            let b = &mut Builder::new(self.unit, body);
            b.set_insertion_before(sync);
            emit_sync(b, group);
            b.body.erase(sync);
        }
        for spawn in spawns {
            self.lower_spawn(body, spawn, group);
        }
        let b = &mut Builder::new(self.unit, body);
        if let Some(end) = b.body.last(region).filter(|_| unwaited) {
            b.set_insertion_before(end);
            emit_sync(b, group);
        }
        if throws {
            return self.outline_throwing_scope(body, op, group, entered);
        }
        if let Some((end, entered)) = b.body.last(region).zip(entered) {
            b.set_insertion_before(end);
            emit_leave(b, entered);
        }
        inline_region(b, op, region, &[]);
    }

    /// Outlines the region of a scope, so that any exception leaving the scope waits for the tasks at one call.
    fn outline_throwing_scope(
        &mut self,
        body: &mut Body,
        op: Op,
        group: TaskGroup,
        entered: Option<Value>,
    ) {
        let region = body.op_regions(op)[0];
        let outside = captured_values(body, region);
        let params = Self::types(body, &outside);
        let results = body.results(op).to_vec();
        let types = Self::types(body, &results);
        let result = match types[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(self.unit.types.tuple(types)),
        };
        let scope = self.outline("scope", result, &params, |b| {
            let mut map = ValueMap::zip(&outside, b.body.params());
            emit_region(body, region, b, &mut map);
        });
        self.outlined_may_throw(scope);
        let b = &mut Builder::new(self.unit, body);
        b.loc = b.body.ops[op].loc;
        b.set_insertion_before(op);
        let call = exceptions::call_with_cleanup(b, scope, &outside, |b| {
            let abandon = Entry::Abandon.declare(b.unit);
            b.call(abandon, &[group.at]);
            if let Some(entered) = entered {
                emit_leave(b, entered);
            }
        });
        let given = b.body.results(call).first().copied();
        let given = unpack_results(b, given, results.len());
        for (result, value) in results.into_iter().zip(given) {
            b.body.replace_uses(result, value);
        }
        if let Some(entered) = entered {
            emit_leave(b, entered);
        }
        b.body.erase(op);
    }

    /// Adds a scope to a task that spawns or syncs: the task waits for its child tasks, never for itself.
    fn add_inner_scope(&mut self, body: &mut Body, spawn: Op) {
        let region = body.op_regions(spawn)[0];
        let (spawns, syncs) = spawns_and_syncs(body, region);
        if spawns.is_empty() && syncs.is_empty() {
            return;
        }
        let scope = body.new_op(OpKind::Scope, &[], &[], 1);
        let inner = body.op_regions(scope)[0];
        body.move_ops(region, inner);
        body.append(region, scope);
        let b = &mut Builder::new(self.unit, body);
        b.set_insertion_end(region);
        b.yield_(&[]);
    }

    fn lower_spawn(&mut self, body: &mut Body, op: Op, group: TaskGroup) {
        let OpKind::Spawn {
            has_condition: when,
            ..
        } = *body.kind(op)
        else {
            unreachable!("only spawns are lowered to tasks");
        };
        let region = body.op_regions(op)[0];
        let mut outside = captured_values(body, region);
        let throws = group.throws && self.may_throw(body, region);
        if throws {
            outside.push(group.at);
        }
        let block = block_type(self.unit, body, &outside);
        if self.unit.layout.align_bytes(self.unit, block) > TASK_ALIGN_BYTES {
            let b = &mut Builder::new(self.unit, body);
            return inline_region(b, op, region, &[]);
        }
        let mut task = self.task_function(body, region, &outside, block);
        if throws {
            task = self.catching_task(task, block);
        }
        let b = &mut Builder::new(self.unit, body);
        b.loc = b.body.ops[op].loc;
        b.set_insertion_before(op);
        let in_region = group
            .in_region
            .filter(|_| b.body.ops[op].flags.has(Flags::ORPHANED_TASK));
        let mut wanted = match in_region {
            Some(inside) => query_if(b, inside, Entry::Hungry),
            None => {
                let hungry = Entry::Hungry.declare(b.unit);
                let call = b.call(hungry, &[]);
                b.body.result(call)
            }
        };
        if when {
            let condition = b.body.operand(op, 0);
            let no = b.bool(false);
            wanted = b.select(condition, wanted, no);
        }
        let (_, forked, here) = b.if_(wanted, &[]);
        b.set_insertion_end(forked);
        let context = entry_alloca(b, block);
        store_fields(b, block, context, &outside);
        let size = b.unit.layout.size_bytes(b.unit, block);
        let size = b.i64(i64::try_from(size).unwrap_or(i64::MAX));
        let (task, run) = (b.func(task), Entry::Spawn.declare(b.unit));
        b.call(run, &[group.at, task, context, size]);
        b.yield_(&[]);
        b.body.move_ops(region, here);
        b.body.erase(op);
    }

    fn task_function(
        &mut self,
        source: &Body,
        region: Region,
        outside: &[Value],
        block: TypeId,
    ) -> FuncId {
        let ptr = self.unit.types.ptr();
        self.outline("task", None, &[ptr], |b| {
            let given = b.body.params()[0];
            let values = load_fields(b, block, given);
            let mut map = ValueMap::zip(outside, &values);
            emit_region(source, region, b, &mut map);
        })
    }

    /// Emits a task that stores an exception of `tried` in the group, which is last in the context.
    fn catching_task(&mut self, tried: FuncId, block: TypeId) -> FuncId {
        self.outlined_may_throw(tried);
        let ptr = self.unit.types.ptr();
        self.outline("caught", None, &[ptr], |b| {
            let given = b.body.params()[0];
            let group = *load_fields(b, block, given)
                .last()
                .expect("it was packed last");
            exceptions::call_with_catch_all(b, tried, &[given], group, |_, _| {});
            b.return_(None);
        })
    }
}

/// The task group of a scope.
#[derive(Clone, Copy)]
struct TaskGroup {
    at: Value,
    /// True if the group may hold an exception.
    throws: bool,
    /// The result of the query for an enclosing region, if the scope has orphaned tasks, which run undeferred
    /// without a region.
    in_region: Option<Value>,
}

impl TaskGroup {
    /// Emits an empty group before `op`; the builder stays before `op`.
    fn new(b: &mut Builder<'_>, op: Op, throws: bool) -> TaskGroup {
        let ty = match throws {
            true => exceptions::exception_group_type(b.unit),
            false => b.unit.types.int(64),
        };
        let at = entry_alloca(b, ty);
        b.set_insertion_before(op);
        let nothing = b.zero(ty);
        b.store(nothing, at);
        TaskGroup {
            at,
            throws,
            in_region: None,
        }
    }
}

/// Emits the code of a region as a function body that returns the yielded values.
fn emit_region(source: &Body, region: Region, b: &mut Builder<'_>, map: &mut ValueMap) {
    clone_ops(source, region, b, map);
    match source.last(region).map(|end| source.kind(end)) {
        Some(OpKind::Unreachable) => {
            b.op(OpKind::Unreachable, &[], &[], 0);
        }
        _ => {
            let end = source.last(region);
            let yielded = end.into_iter().flat_map(|end| source.operands(end));
            let yielded: Vec<Value> = yielded.map(|v| copied_value(b, source, map, v)).collect();
            let value = pack_results(b, &yielded);
            b.return_(value);
        }
    }
}

/// Emits the entry into runtime-managed code: thread-number queries return the worker's number from here on,
/// because several workers may query at once. Returns the operand of [`emit_leave`].
pub(crate) fn emit_enter(b: &mut Builder<'_>) -> Value {
    let enter = Entry::Enter.declare(b.unit);
    let call = b.call(enter, &[]);
    b.body.result(call)
}

/// Emits `condition && entry()`.
fn query_if(b: &mut Builder<'_>, condition: Value, entry: Entry) -> Value {
    let truth = b.body.ty(condition);
    let (choice, asked, otherwise) = b.if_(condition, &[truth]);
    let place = b.set_insertion_end(asked);
    let entry = entry.declare(b.unit);
    let call = b.call(entry, &[]);
    let answer = b.body.result(call);
    b.yield_(&[answer]);
    b.set_insertion_end(otherwise);
    let no = b.bool(false);
    b.yield_(&[no]);
    b.restore_insertion_point(place);
    b.body.result(choice)
}

/// Emits the exit that corresponds to [`emit_enter`].
pub(crate) fn emit_leave(b: &mut Builder<'_>, entered: Value) {
    let leave = Entry::Leave.declare(b.unit);
    b.call(leave, &[entered]);
}

/// Emits the begin and end of a final task: child tasks, also in callees, run undeferred.
pub(crate) fn mark_final_task(b: &mut Builder<'_>, spawn: Op) {
    let OpKind::Spawn {
        has_final: true, ..
    } = *b.body.kind(spawn)
    else {
        // Not an error: only a spawn that may be final has an operand with the condition.
        return;
    };
    let is_final = b.body.operands(spawn).last().expect("it was verified");
    let region = b.body.op_regions(spawn)[0];
    let (Some(first), Some(end)) = (b.body.first(region), b.body.last(region)) else {
        unreachable!("a verified region has a terminator");
    };
    b.loc = b.body.ops[spawn].loc;
    b.set_insertion_before(first);
    let begin = Entry::Final.declare(b.unit);
    let begun = b.call(begin, &[is_final]);
    let before = b.body.result(begun);
    b.set_insertion_before(end);
    let end = Entry::FinalEnd.declare(b.unit);
    b.call(end, &[before]);
}

fn emit_sync(b: &mut Builder<'_>, group: TaskGroup) {
    let sync = Entry::Sync.declare(b.unit);
    b.call(sync, &[group.at]);
    if group.throws {
        exceptions::rethrow(b, group.at);
    }
}

/// Returns true if tasks of `spawns` may be running at the end of `region`: no sync on all paths follows the
/// last spawn.
fn has_pending_tasks_at_end(body: &Body, region: Region, spawns: &[Op]) -> bool {
    let mut at = body.last(region);
    while let Some(op) = at {
        let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
        if matches!(body.kind(op), OpKind::Sync) {
            return false;
        }
        if spawns.contains(&op) || inside.any(|op| spawns.contains(&op)) {
            return true;
        }
        at = body.prev(op);
    }
    false
}

/// Returns the spawns and syncs of the scope of `region`, without nested tasks and scopes.
fn spawns_and_syncs(body: &Body, region: Region) -> (Vec<Op>, Vec<Op>) {
    let (mut spawns, mut syncs) = (Vec::new(), Vec::new());
    let mut open = vec![body.first(region)];
    while let Some(next) = open.pop() {
        let Some(op) = next else {
            continue;
        };
        open.push(body.next(op));
        match body.kind(op) {
            OpKind::Spawn { .. } => spawns.push(op),
            OpKind::Sync => syncs.push(op),
            _ => {}
        }
        if !matches!(body.kind(op), OpKind::Scope | OpKind::Spawn { .. }) {
            open.extend(body.op_regions(op).iter().rev().map(|r| body.first(*r)));
        }
    }
    (spawns, syncs)
}

#[cfg(test)]
mod tests {
    use crate::lower::lowered;
    use gradus_ir::{OpKind, Symbol};

    /// Returns the number of `gr_sync` calls in `f` after lowering a scope with `code`.
    fn waits(code: &str) -> usize {
        let text = format!("func @f(%p: ptr, %c: i1) {{ scope {{ {code} yield }} return }}");
        let unit = lowered(&text);
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let is_wait = |op: &gradus_ir::Op| {
            matches!(body.kind(*op), OpKind::Call(_))
                && unit
                    .callee(body, *op)
                    .is_some_and(|callee| unit.functions[callee].name == "gr_sync")
        };
        body.walk(body.root()).filter(is_wait).count()
    }

    #[test]
    fn scope_end_syncs_pending_tasks_only() {
        let task = "spawn { store 1, %p yield }";
        assert_eq!(waits(task), 1);
        assert_eq!(waits(&format!("{task} sync")), 1);
        assert_eq!(
            waits(&format!("for %i < 9 {{ {task} yield }} sync store 2, %p")),
            1
        );
        assert_eq!(waits(&format!("{task} sync {task}")), 2);
        assert_eq!(
            waits(&format!("{task} if %c {{ sync yield }} else {{ yield }}")),
            2
        );
        assert_eq!(
            waits(&format!("sync if %c {{ {task} yield }} else {{ yield }}")),
            2
        );
    }
}
