//! Tasks become `spawn`, `sync` and `scope`.
//!
//! A compiler allocates a task, stores the captures and enqueues the task. In raised form the task's memory is
//! in the spawned region, which stores the captures, because a region may use outer values. If a task captures
//! whole objects, its memory is a heap block filled before the spawn; destructors run after the task's code.
//!
//! OpenMP lets tasks outlive the creating function until the next barrier, whereas a `scope` waits at its end.
//! An earlier wait is always legal. Scopes extend from the first task to the last wait, if no task follows,
//! else to the end of the enclosing task, rank or function.

use crate::openmp::taskloop;
use crate::regions::{ops_between, wrap_ops};
use crate::report::{RaiseResult, reason};
use crate::runtime_calls::RuntimeCalls;
use crate::task_scopes::{has_unscoped_spawn, in_scope, insert_scopes, strand_region};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::externals::{ExternalFn, MemoryFn, OpenMpFn};
use gradus_ir::{
    AllocaInfo, AllocaStorage, BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind,
    Region, Unit, Value,
};
use std::collections::HashSet;

const FINAL: i64 = 2;
pub(super) const DESTRUCTORS: i64 = 8;
pub(super) const DETACHABLE: i64 = 64;
/// Captures start at byte 40 of a task, and compilers assume an alignment of 16.
const HEAP_SHIFT_BYTES: i64 = 8;
/// Raises all tasks of a body; `orphaned` if the tasks may be created outside of all regions. Returns the task
/// functions now called.
pub(super) fn raise(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    orphaned: bool,
) -> RaiseResult<Vec<FuncId>> {
    let mut entries = Vec::new();
    for op in calls.of_kind(unit, body, OpenMpFn::TaskAlloc) {
        let made = body.result(op);
        let looped = body.uses(made).map(|u| u.op);
        let looped = looped
            .filter(|&u| calls.id(unit, body, u) == Some(OpenMpFn::TaskLoop))
            .last();
        entries.push(match looped {
            Some(call) => taskloop::raise(unit, body, op, call, orphaned)?,
            None => raise_task(unit, body, calls, op)?,
        });
    }
    fuse_untied_parts(unit, body, calls);
    for op in calls.of_kind(unit, body, OpenMpFn::TaskGroup) {
        raise_taskgroup(unit, body, calls, op)?;
    }
    for op in calls.of_kind(unit, body, OpenMpFn::TaskYield) {
        body.erase(op);
    }
    raise_taskwaits(unit, body, calls)?;
    if orphaned {
        mark_orphans(body);
    }
    insert_scopes(unit, body);
    Ok(entries)
}

/// Marks all tasks of a body as orphans.
fn mark_orphans(body: &mut Body) {
    let spawns = |op: &Op| matches!(body.kind(*op), OpKind::Spawn { .. });
    let spawns: Vec<Op> = body.walk(body.root()).filter(spawns).collect();
    for spawn in spawns {
        body.ops[spawn].flags = Flags::ORPHANED_TASK;
    }
}

// ---- one task ----------------------------------------------------------------------------------

/// The enqueueing of a task.
struct TaskLaunch {
    /// The op that enqueues, which the `spawn` replaces.
    op: Op,
    /// The condition for deferral and its required value; `None` for always.
    when: Option<(Value, bool)>,
    /// True if the task is never deferred.
    at_once: bool,
}

/// A task allocation: the task's function, the size of the task, and the size of the shared block, in bytes.
#[derive(Clone, Copy)]
pub(super) struct TaskAllocation {
    pub entry: FuncId,
    pub size: i64,
    pub shared: i64,
}

pub(super) fn decode_allocation(unit: &Unit, body: &Body, alloc: Op) -> Option<TaskAllocation> {
    let args = unit.call_args(body, alloc);
    let number = |i: usize| body.as_int(unit, *args.get(i)?);
    Some(TaskAllocation {
        entry: body.as_function(unit, *args.get(5)?)?,
        size: number(3)?,
        shared: number(4)?,
    })
}

fn raise_task(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    alloc: Op,
) -> RaiseResult<FuncId> {
    let fail = |unit: &Unit, body: &Body, text: &str| Err(reason(unit, body, alloc, text));
    let Some(made) = decode_allocation(unit, body, alloc) else {
        let text = "the allocation of this task is not recognised";
        return fail(unit, body, text);
    };
    let flags = unit.call_args(body, alloc)[2];
    let known = body.as_int(unit, flags);
    if may_have_flags(unit, body, flags, DETACHABLE) {
        return fail(unit, body, "the task is detached");
    }
    let Some(launch) = find_launch(unit, body, calls, alloc, made.entry) else {
        let text = "the runtime call that starts this task is not recognised";
        return fail(unit, body, text);
    };
    if launch.at_once {
        let users: Vec<Op> = body.uses(body.result(alloc)).map(|u| u.op).collect();
        for op in users {
            if calls.id(unit, body, op).is_some() {
                body.erase(op);
            }
        }
    }
    let fill = initializing_ops(unit, body, alloc, launch.op);
    let plain = |fill: &Vec<Op>| fill.iter().all(|&op| is_plain_filling(unit, body, op));
    let objects = may_have_flags(unit, body, flags, DESTRUCTORS);
    let fill = fill.filter(|fill| !objects && plain(fill));
    let block = captures(unit, body, calls, alloc, launch.op);
    let destructor = block.as_ref().and_then(|block| block.destructor);
    if objects != destructor.is_some() || fill.is_none() && block.is_none() {
        return fail(
            unit,
            body,
            "the captured variables of this task are not recognised",
        );
    }
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(launch.op);
    b.loc = b.body.ops[alloc].loc;
    let serial = final_flag(&mut b, flags, known);
    let when = match launch.at_once {
        true => Some(b.bool(false)),
        false => launch.when.map(|(asked, wanted)| match wanted {
            true => asked,
            false => {
                let yes = b.bool(true);
                b.binary(BinaryOp::Xor, asked, yes)
            }
        }),
    };
    let conditions = (when, serial);
    match &fill {
        Some(fill) => spawn_filled(&mut b, alloc, &launch, made, conditions, fill),
        None => spawn_block(&mut b, alloc, &launch, made, conditions, destructor),
    }
    body.erase(launch.op);
    for &op in fill.iter().flatten().rev() {
        body.erase(op);
    }
    body.erase(alloc);
    Ok(made.entry)
}

/// Returns true if the flags of a task may contain one of `bits`: destructors of captures, or detached. A
/// `final` clause adds a flag at run time.
pub(super) fn may_have_flags(unit: &Unit, body: &Body, flags: Value, bits: i64) -> bool {
    let mut open = vec![flags];
    while let Some(flags) = open.pop() {
        if let Some(number) = body.as_int(unit, flags) {
            if number & bits != 0 {
                return true;
            }
            continue;
        }
        let Some(op) = body.def_op(flags) else {
            continue;
        };
        match body.kind(op) {
            OpKind::Binary(BinaryOp::Or | BinaryOp::Add) => open.extend(body.operands(op)),
            OpKind::Select => open.extend(body.operands(op).skip(1)),
            _ => {}
        }
    }
    false
}

/// The condition for deferral (`None`: always) and for final tasks (`None`: never).
pub(super) type SpawnConditions = (Option<Value>, Option<Value>);

/// Emits a `spawn` and moves the builder into its region.
pub(super) fn emit_spawn(b: &mut Builder, (when, serial): SpawnConditions) {
    let operands: Vec<Value> = when.into_iter().chain(serial).collect();
    let kind = OpKind::Spawn {
        has_condition: when.is_some(),
        has_final: serial.is_some(),
    };
    let spawn = b.op(kind, &operands, &[], 1);
    let region = b.body.op_regions(spawn)[0];
    b.set_insertion_end(region);
}

/// Emits a task that initialises its memory itself.
fn spawn_filled(
    b: &mut Builder,
    alloc: Op,
    launch: &TaskLaunch,
    made: TaskAllocation,
    conditions: SpawnConditions,
    fill: &[Op],
) {
    b.set_insertion_before(launch.op);
    emit_spawn(b, conditions);
    let (memory, _) = emit_initialized_task(b, alloc, made.size, made.shared, fill);
    call_task_function(b, made.entry, memory);
    b.yield_(&[]);
}

/// Emits a task whose memory is a heap block initialised before.
fn spawn_block(
    b: &mut Builder,
    alloc: Op,
    launch: &TaskLaunch,
    made: TaskAllocation,
    conditions: SpawnConditions,
    destructor: Option<FuncId>,
) {
    b.set_insertion_before(alloc);
    let block = heap(b, HEAP_SHIFT_BYTES + made.size + made.shared);
    let shift = b.i64(HEAP_SHIFT_BYTES);
    let memory = b.byte_addr(block, shift);
    replace_task_memory(b, alloc, memory, made.size, made.shared);
    b.set_insertion_before(launch.op);
    emit_spawn(b, conditions);
    call_task_function(b, made.entry, memory);
    if let Some(destructor) = destructor {
        call_task_function(b, destructor, memory);
    }
    free(b, block);
    b.yield_(&[]);
}

/// Returns the enqueueing of the task allocated by `alloc`: one call, an undeferred execution, or a branch
/// between the two.
fn find_launch(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    alloc: Op,
    entry: FuncId,
) -> Option<TaskLaunch> {
    let task = body.result(alloc);
    let home = body.parent(alloc)?;
    let users: Vec<Op> = body.uses(task).map(|u| u.op).collect();
    let given = |op: &Op| calls.id(unit, body, *op) == Some(OpenMpFn::Task);
    let handed: Vec<Op> = users.iter().copied().filter(given).collect();
    let begun = |op: &Op| calls.id(unit, body, *op) == Some(OpenMpFn::TaskBeginIf0);
    let at_once: Vec<Op> = users.iter().copied().filter(begun).collect();
    match (&handed[..], &at_once[..]) {
        ([op], []) if body.parent(*op) == Some(home) => Some(TaskLaunch {
            op: *op,
            when: None,
            at_once: false,
        }),
        ([given], [begin]) => {
            let (yes, no) = (body.parent(*given)?, body.parent(*begin)?);
            let branch = body.owner(yes)?;
            let arms = body.op_regions(branch);
            let alone = matches!(body.kind(branch), OpKind::If)
                && (arms == [yes, no] || arms == [no, yes])
                && body.parent(branch) == Some(home)
                && body.results(branch).iter().all(|r| !body.has_uses(*r));
            let own = |region: Region| {
                body.ops_in(region).all(|op| {
                    body.kind(op).is_terminator()
                        || users.contains(&op)
                        || is_untied_task_start(unit, body, op, task)
                        || calls.id(unit, body, op).is_some()
                        || unit.callee(body, op) == Some(entry)
                })
            };
            let here = own(no) || runs_task_inline(unit, body, calls, no, *begin);
            (alone && own(yes) && here).then(|| TaskLaunch {
                op: branch,
                when: Some((body.operand(branch, 0), arms[0] == yes)),
                at_once: false,
            })
        }
        ([], [begin]) if body.parent(*begin) == Some(home) => {
            let runs = |op: &&Op| unit.callee(body, **op) == Some(entry);
            let call = *users.iter().find(runs)?;
            (body.parent(call) == Some(home)).then_some(TaskLaunch {
                op: call,
                when: None,
                at_once: true,
            })
        }
        _ => None,
    }
}

/// Returns true if a region only runs a task between its begin and end calls: inlined code there is equivalent
/// to the task's function.
fn runs_task_inline(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    region: Region,
    begin: Op,
) -> bool {
    let is_end = |op: &Op| calls.id(unit, body, *op) == Some(OpenMpFn::TaskCompleteIf0);
    let own = |op: &Op| calls.id(unit, body, *op).is_some() || body.kind(*op).is_terminator();
    let ops: Vec<Op> = body.ops_in(region).collect();
    let first = ops.iter().position(|op| *op == begin);
    let last = ops.iter().position(is_end);
    first.zip(last).is_some_and(|(first, last)| {
        first < last && ops[..first].iter().chain(&ops[last..]).all(own)
    })
}

/// Returns true if the address is computed from the task's address alone, without a load of the shared block.
pub(super) fn is_derived_from(body: &Body, address: Value, task: Value) -> bool {
    let mut at = address;
    while at != task {
        match body.def_op(at) {
            Some(op) if matches!(body.kind(op), OpKind::Addr { .. }) => at = body.operand(op, 0),
            _ => return false,
        }
    }
    true
}

/// Returns true if `op` only sets the initial part number of an untied task.
fn is_untied_task_start(unit: &Unit, body: &Body, op: Op, task: Value) -> bool {
    let leads = |address: Value| is_derived_from(body, address, task);
    match body.kind(op) {
        OpKind::Addr { .. } => leads(body.result(op)),
        OpKind::Store(_) => {
            body.as_int(unit, body.operand(op, 0)) == Some(0) && leads(body.operand(op, 1))
        }
        _ => false,
    }
}

/// Returns the ops between a task's allocation and its launch that initialise the task, with ops computed only
/// for them; `None` if the task's address escapes.
pub(super) fn initializing_ops(unit: &Unit, body: &Body, alloc: Op, launch: Op) -> Option<Vec<Op>> {
    let between = ops_between(body, alloc, launch)?;
    let task = body.result(alloc);
    // Addresses of the task: the task, derived addresses, and the pointer to the shared block.
    let mut addresses: HashSet<Value> = HashSet::from([task]);
    let mut fill = Vec::new();
    for op in between {
        let touches = body.operands(op).any(|v| addresses.contains(&v));
        if !touches {
            let nested = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            let inside = nested
                .into_iter()
                .any(|o| body.operands(o).any(|v| addresses.contains(&v)));
            if inside {
                return None;
            }
            continue;
        }
        match body.kind(op) {
            OpKind::Addr { .. } if addresses.contains(&body.operand(op, 0)) => {
                addresses.insert(body.result(op));
            }
            OpKind::Load(_) if body.operand(op, 0) == task => {
                addresses.insert(body.result(op));
            }
            OpKind::Load(_) => {
                let own = |u: Op| fill.contains(&u) || is_part_of_launch(body, u, launch);
                if !body.uses(body.result(op)).all(|u| own(u.op)) {
                    return None;
                }
            }
            OpKind::Store(_) if !addresses.contains(&body.operand(op, 0)) => {}
            OpKind::Call(_) if unit.callee(body, op).is_some() => {}
            _ => return None,
        }
        fill.push(op);
    }
    let outside = |op: &Op| fill.contains(op) || is_part_of_launch(body, *op, launch);
    let all_seen = addresses
        .iter()
        .all(|&a| body.uses(a).all(|u| outside(&u.op)));
    all_seen.then_some(fill)
}

/// Captures in a block that arbitrary code between allocation and launch may initialise.
struct Firstprivates {
    /// The destructor thunk, which has the signature of the task's function.
    destructor: Option<FuncId>,
}

/// The offset of the destructor thunk in a task, in bytes.
const DESTRUCTOR_OFFSET_BYTES: i64 = 24;

/// Returns the captures of the task allocated by `alloc`; `None` if the address escapes other than to
/// initialising code.
fn captures(
    unit: &Unit,
    body: &Body,
    calls: &RuntimeCalls,
    alloc: Op,
    launch: Op,
) -> Option<Firstprivates> {
    let between = ops_between(body, alloc, launch)?;
    let nested = between
        .iter()
        .flat_map(|op| body.op_regions(*op))
        .flat_map(|region| body.walk(*region));
    let inside: HashSet<Op> = between.iter().copied().chain(nested).collect();
    let task = body.result(alloc);
    let mut taken = Firstprivates { destructor: None };
    let mut open = vec![(task, Some(0_i64))];
    while let Some((address, offset)) = open.pop() {
        for used in body.uses(address) {
            let op = used.op;
            if is_part_of_launch(body, op, launch) {
                continue;
            }
            let fills = match body.kind(op) {
                OpKind::Addr { .. } if used.index == 0 => {
                    let further = unit.layout.address(unit, body, op);
                    let further = further.filter(|a| a.terms.is_empty());
                    let at = further.and_then(|a| offset?.checked_add(a.offset));
                    open.push((body.result(op), at));
                    true
                }
                OpKind::Load(_) => {
                    if address == task {
                        open.push((body.result(op), None));
                    }
                    true
                }
                OpKind::Store(_) => {
                    let is_place = offset == Some(DESTRUCTOR_OFFSET_BYTES);
                    let stored = body
                        .as_function(unit, body.operand(op, 0))
                        .filter(|_| is_place);
                    taken.destructor = taken.destructor.or(stored);
                    used.index == 1
                }
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    unit.callee(body, op).is_some() && calls.id(unit, body, op).is_none()
                }
                _ => false,
            };
            if !fills || !inside.contains(&op) {
                return None;
            }
        }
    }
    Some(taken)
}

/// Returns true if `op` is the launch or lies directly in the launch.
fn is_part_of_launch(body: &Body, op: Op, launch: Op) -> bool {
    op == launch || body.parent_op(op) == Some(launch)
}

pub(super) fn is_plain_filling(unit: &Unit, body: &Body, op: Op) -> bool {
    !matches!(body.kind(op), OpKind::Call(_)) || zeroed_bits(unit, body, op).is_some()
}

/// Returns the bits of the integer cleared by a small `memset` to zero.
fn zeroed_bits(unit: &Unit, body: &Body, op: Op) -> Option<u32> {
    let known = unit.known_callee(body, op)?;
    let args = unit.call_args(body, op);
    let number = |i: usize| body.as_int(unit, *args.get(i)?);
    match (known, number(1), number(2)) {
        (
            ExternalFn::Memory(MemoryFn::Memset | MemoryFn::MemsetIntrinsic),
            Some(0),
            Some(bytes @ (1 | 2 | 4 | 8)),
        ) => Some(8 * bytes as u32),
        _ => None,
    }
}

/// Emits the condition for a final task.
pub(super) fn final_flag(b: &mut Builder, flags: Value, known: Option<i64>) -> Option<Value> {
    match known {
        Some(flags) if flags & FINAL == 0 => None,
        Some(_) => Some(b.bool(true)),
        None => {
            let ty = b.body.ty(flags);
            let (bit, zero) = (b.int(ty, i128::from(FINAL)), b.int(ty, 0));
            let masked = b.binary(BinaryOp::And, flags, bit);
            Some(b.icmp(IntPredicate::Ne, masked, zero))
        }
    }
}

/// Allocates private memory in the spawned region.
fn private_memory(b: &mut Builder, size: i64) -> Value {
    let byte = b.unit.types.int(8);
    let ty = b.unit.types.array(byte, size as u64);
    let one = b.i64(1);
    let ptr = b.unit.types.ptr();
    let info = AllocaInfo {
        ty,
        align_bytes: 16,
        storage: AllocaStorage::Private,
        inalloca: false,
    };
    b.value(OpKind::Alloca(info), &[one], ptr)
}

fn heap(b: &mut Builder, size: i64) -> Value {
    let malloc = gradus_edit::declare_malloc(b.unit);
    let size = b.i64(size);
    let call = b.call(malloc, &[size]);
    b.body.result(call)
}

fn free(b: &mut Builder, memory: Value) {
    let free = gradus_edit::declare_free(b.unit);
    b.call(free, &[memory]);
}

/// Replaces the task by `memory`; the shared block follows the task.
fn replace_task_memory(b: &mut Builder, alloc: Op, memory: Value, size: i64, shared: i64) {
    if shared > 0 {
        let offset = b.i64(size);
        let block = b.byte_addr(memory, offset);
        b.store(block, memory);
    }
    let task = b.body.result(alloc);
    b.body.replace_uses(task, memory);
}

/// Emits a task in memory of the builder's region, initialised by clones of `fill`; returns the memory and the
/// value map.
pub(super) fn emit_initialized_task(
    b: &mut Builder,
    alloc: Op,
    size: i64,
    shared: i64,
    fill: &[Op],
) -> (Value, ValueMap) {
    let memory = private_memory(b, size);
    if shared > 0 {
        let block = private_memory(b, shared);
        b.store(block, memory);
    }
    let mut map = ValueMap::new();
    map.set(b.body.result(alloc), memory);
    for &op in fill {
        match zeroed_bits(b.unit, b.body, op) {
            Some(bits) => {
                let ty = b.unit.types.int(bits);
                let zero = b.int(ty, 0);
                let at = b.unit.call_args(b.body, op)[0];
                b.store(zero, map.get_or_same(at));
            }
            None => {
                clone_op_within(op, b, &mut map);
            }
        }
    }
    (memory, map)
}

/// The offset of an untied task's part number, in bytes.
const PART_OFFSET_BYTES: i64 = 16;
/// The offset of padding after the part number, used as a flag that a part has re-enqueued the task. The number
/// alone is not enough: in a loop a part may be followed by the same part.
const REENQUEUED_OFFSET_BYTES: i64 = 20;

fn set_reenqueued(b: &mut Builder, task: Value, again: i128) {
    let int = b.unit.types.int(32);
    let offset = b.i64(REENQUEUED_OFFSET_BYTES);
    let at = b.byte_addr(task, offset);
    let again = b.int(int, again);
    b.store(again, at);
}

/// Fuses the parts of an untied task. Each part but the last ends by re-enqueueing the task, and the runtime
/// calls the function again for the next part. After fusion the function runs all parts, and child tasks are
/// waited for after the last part.
fn fuse_untied_parts(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) {
    let mut parted = None;
    for op in calls.of_kind(unit, body, OpenMpFn::Task) {
        let again = unit.call_args(body, op).get(2).copied();
        let own = again.filter(|task| body.params().contains(task));
        if let Some(task) = own.filter(|_| !body.has_uses(body.result(op))) {
            let mut b = Builder::new(unit, body);
            b.set_insertion_before(op);
            set_reenqueued(&mut b, task, 1);
            body.erase(op);
            parted = Some(task);
        }
    }
    let end = body.last(body.root());
    let end = end.filter(|&op| matches!(body.kind(op), OpKind::Return));
    if let (Some(task), Some(end)) = (parted, end) {
        loop_over_parts(&mut Builder::new(unit, body), task, end);
    }
}

/// Wraps all ops of a body, except `end`, into a loop over the parts of the task.
fn loop_over_parts(b: &mut Builder, task: Value, end: Op) {
    let root = b.body.root();
    let ops: Vec<Op> = b.body.ops_in(root).filter(|op| *op != end).collect();
    let given: Vec<Value> = b.body.operands(end).collect();
    let types: Vec<_> = given.iter().map(|v| b.body.ty(*v)).collect();
    let int = b.unit.types.int(32);
    b.set_insertion_before(end);
    b.loc = b.body.ops[end].loc;
    let first = b.int(int, 0);
    let offset = b.i64(PART_OFFSET_BYTES);
    let part = b.byte_addr(task, offset);
    b.store(first, part);
    let (parts, region) = b.loop_(&[], &types);
    let results = b.body.results(parts).to_vec();
    b.body.set_operands(end, &results);
    b.set_insertion_end(region);
    set_reenqueued(b, task, 0);
    for op in ops {
        b.body.detach(op);
        b.body.append(region, op);
    }
    let offset = b.i64(REENQUEUED_OFFSET_BYTES);
    let at = b.byte_addr(task, offset);
    let again = b.load(int, at);
    let zero = b.int(int, 0);
    let again = b.icmp(IntPredicate::Ne, again, zero);
    b.repeat(again, &[], &given);
}

/// Calls the task's function. flang's function lacks the task parameter if the task captures nothing.
pub(super) fn call_task_function(b: &mut Builder, entry: FuncId, memory: Value) {
    let int = b.unit.types.int(32);
    let thread = b.int(int, 0);
    let takes = b.unit.param_types(b.unit.functions[entry].ty).len();
    b.call(entry, &[thread, memory][..takes.min(2)]);
}

// ---- groups and waits --------------------------------------------------------------------------

fn raise_taskgroup(
    unit: &mut Unit,
    body: &mut Body,
    calls: &RuntimeCalls,
    start: Op,
) -> RaiseResult {
    let mut depth = 0;
    let mut at = body.next(start);
    while let Some(op) = at {
        match calls.id(unit, body, op) {
            Some(OpenMpFn::TaskGroup) => depth += 1,
            Some(OpenMpFn::EndTaskGroup) if depth > 0 => depth -= 1,
            Some(OpenMpFn::EndTaskGroup) => {
                let Some(ops) = ops_between(body, start, op) else {
                    unreachable!("the end of the taskgroup follows the start");
                };
                if ops.iter().any(|&op| has_unscoped_spawn(body, op)) {
                    let mut b = Builder::new(unit, body);
                    let scope = wrap_ops(&mut b, &ops, OpKind::Scope);
                    body.ops[scope].loc = body.ops[start].loc;
                }
                body.erase(op);
                body.erase(start);
                return Ok(());
            }
            _ => {}
        }
        at = body.next(op);
    }
    Err(reason(
        unit,
        body,
        start,
        "the end of this `taskgroup` is not found",
    ))
}

/// Turns waits into `sync`; waits without tasks are removed.
fn raise_taskwaits(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) -> RaiseResult {
    for op in calls.of_kind(unit, body, OpenMpFn::TaskWait) {
        let strand = strand_region(body, op);
        let grouped = in_scope(body, op);
        let outside = body.ops_in(strand).any(|o| has_unscoped_spawn(body, o));
        if grouped && outside {
            let text =
                "this `taskwait` also waits for tasks created outside the enclosing `taskgroup`";
            return Err(reason(unit, body, op, text));
        }
        if grouped || outside {
            let mut b = Builder::new(unit, body);
            b.set_insertion_before(op);
            b.loc = b.body.ops[op].loc;
            b.op(OpKind::Sync, &[], &[], 0);
        }
        body.erase(op);
    }
    Ok(())
}
