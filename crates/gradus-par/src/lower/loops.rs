//! Lowering of parallel loops: outlines a range function and emits its calls.
//!
//! A loop becomes `f.gr_range(lo, hi, total…, captured…) → totals` with plain arguments; a loop too small for a
//! fork calls the range function directly. For the runtime, a wrapper with the runtime's signature loads the
//! captured values from a context block.

use crate::Options;
use crate::cost::decision::{ForkDecision, ForkThreshold};
use crate::emit::abi;
use crate::emit::abi::Entry;
use crate::emit::reduction_combine;
use crate::emit::reduction_combine::{Reduction, copied_value};
use crate::emit::serial::{copied_yields, is_independent};
use crate::lower::Lowering;
use crate::lower::column_interchange::ColumnLoop;
use crate::lower::{exceptions, tasks};
use crate::opt::tsan_atomics::is_tsan_instrumented;
use gradus_edit::{
    ValueMap, block_type, captured_values, clone_op, clone_ops, entry_alloca, load_fields,
    store_fields, to_i64, to_index_type,
};
use gradus_ir::{
    BinaryOp, Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value,
};

/// The lowering plan of a `par.for`.
pub(crate) struct LoopPlan {
    pub(crate) region: Region,
    extents: Vec<Value>,
    initial: Vec<Value>,
    reductions: Vec<Reduction>,
    /// Values used from outside, including extents of inner dimensions.
    captured: Vec<Value>,
    grain: Option<u64>,
    /// True if iterations are declared conflict-free.
    race_free: bool,
    /// The column form, if column interchange applies.
    columns: Option<ColumnLoop>,
    /// The slot for an iteration's exception, if an exception may leave an iteration. Runtime entry functions
    /// find the slot's address after the captured values.
    exception_slot: Option<Value>,
}

impl LoopPlan {
    fn of(unit: &Unit, body: &Body, op: Op, options: &Options) -> Option<Self> {
        let OpKind::ParFor { dims, grain, .. } = body.kind(op) else {
            return None;
        };
        let operands: Vec<Value> = body.operands(op).collect();
        let (extents, initial) = operands.split_at(*dims as usize);
        let mut outside: Vec<Value> = Vec::new();
        let inner = extents
            .iter()
            .skip(1)
            .filter(|v| body.as_const(**v).is_none());
        let used = body
            .op_regions(op)
            .iter()
            .flat_map(|r| captured_values(body, *r));
        for value in inner.copied().chain(used) {
            if !outside.contains(&value) {
                outside.push(value);
            }
        }
        Some(LoopPlan {
            region: body.op_regions(op)[0],
            extents: extents.to_vec(),
            initial: initial.to_vec(),
            reductions: reduction_combine::reductions(unit, body, op),
            captured: outside,
            grain: *grain,
            race_free: options.race_free,
            columns: None,
            exception_slot: None,
        })
    }

    /// Returns true if the program declares each iteration a task.
    fn has_task_per_iteration(&self) -> bool {
        self.grain == Some(1)
    }

    /// Returns the types of loop-carried values: the partial results, plus a validity flag if a user-defined
    /// reduction has no identity.
    fn carried_types(&self, unit: &mut Unit) -> Vec<TypeId> {
        let mut types: Vec<TypeId> = self.reductions.iter().map(|r| r.ty).collect();
        if self.has_validity_flag() {
            types.push(unit.types.int(64));
        }
        types
    }

    /// Returns the constant trip count, if known.
    fn known_trip_count(&self, unit: &Unit, body: &Body) -> Option<u64> {
        let extents = self.extents.iter();
        let known = extents.map(|e| u64::try_from(body.as_int(unit, *e)?).ok());
        known.reduce(|a, b| a?.checked_mul(b?)).flatten()
    }

    /// Returns the values in the context block of runtime calls.
    fn context_values(&self) -> Vec<Value> {
        self.captured
            .iter()
            .copied()
            .chain(self.exception_slot)
            .collect()
    }

    fn has_validity_flag(&self) -> bool {
        let unknown = |r: &Reduction| r.region.is_some() && r.bounded.is_none();
        self.reductions.iter().any(unknown)
    }
}

impl Lowering<'_> {
    /// Lowers a `par.for`.
    pub(crate) fn lower_par_for(&mut self, body: &mut Body, op: Op) {
        let Some(mut plan) = LoopPlan::of(self.unit, body, op, self.options) else {
            unreachable!("a parallel loop has a plan");
        };
        plan.columns = self.column_form(body, op);
        let range = self.range_function("range", body, &plan);
        let before = 2 + plan.carried_types(self.unit).len();
        self.attach_pointer_facts(body, range, before, &plan.captured);
        let alone = self.serial_range_function(body, &plan);
        if self.outlined_may_throw(range) {
            let b = &mut Builder::new(self.unit, body);
            let ty = exceptions::exception_group_type(b.unit);
            plan.exception_slot = Some(entry_alloca(b, ty));
        }
        let entry = match plan.reductions.is_empty() {
            true => self.loop_entry(body, &plan, range),
            false => self.reduce_entry(body, &plan, range),
        };
        let work = self.costs.region(self.unit, body, plan.region);
        // With a serial fallback the plain estimate decides. Otherwise loops of unknown trip counts count as
        // unbounded work.
        let work = if alone.is_some() {
            work
        } else {
            work.with_unbounded()
        };
        let enough = self.costs.break_even_threads(self.unit, body, plan.region);
        let options = *self.options;
        let known = plan.known_trip_count(self.unit, body);
        self.forks.push(ForkDecision {
            loc: body.ops[op].loc,
            size: match plan.has_task_per_iteration() {
                true => ForkThreshold::from(known, 2, 2),
                false => ForkThreshold::of(&work, known, !plan.reductions.is_empty(), &options),
            },
            interchanged: plan.columns.is_some(),
        });
        let combine = (!plan.reductions.is_empty()).then(|| self.combine_function(body, &plan));
        let b = &mut Builder::new(self.unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let trips = trip_count(b, &plan.extents);
        let (all, one) = work.values(b, trips);
        let (size, limit) = match plan.has_task_per_iteration() {
            true => (trips, b.i64(1)),
            false => (all, serial_threshold(b, &plan, &options)),
        };
        let mut is_small = b.icmp(IntPredicate::Ule, size, limit);
        if alone.is_some() {
            is_small = unless_few_workers(b, is_small, enough);
        }
        let is_small = unless_forced(b, is_small, work.calls);
        let types: Vec<TypeId> = plan.reductions.iter().map(|r| r.ty).collect();
        let (choice, direct, forked) = b.if_(is_small, &types);
        b.set_insertion_end(direct);
        let entered = work.calls.then(|| tasks::emit_enter(b));
        let results = direct_call(b, &plan, alone.unwrap_or(range), trips, entered);
        if let Some(entered) = entered {
            tasks::emit_leave(b, entered);
        }
        b.yield_(&results);
        b.set_insertion_end(forked);
        let task = b.i64(i64::try_from(options.task_work).unwrap_or(i64::MAX));
        let enough = b.binary(BinaryOp::UDiv, task, one);
        let enough = min_chunk(b, enough, work.calls);
        let grain = match plan.has_task_per_iteration() {
            true => b.i64(1),
            false => min_with_stated_chunk(b, enough, plan.grain),
        };
        let results = forked_call(b, &plan, entry, combine, trips, grain);
        b.yield_(&results);
        let given = b.body.results(choice).to_vec();
        let old = b.body.results(op).to_vec();
        for (result, value) in old.into_iter().zip(given) {
            b.body.replace_uses(result, value);
        }
        b.body.erase(op);
    }

    /// Returns the column form of a loop if column interchange applies.
    fn column_form(&self, body: &Body, op: Op) -> Option<ColumnLoop> {
        let free = self.options.race_free && !is_tsan_instrumented(self.unit, self.func);
        ColumnLoop::of(self.unit, self.func, body, op, self.effects).filter(|_| free)
    }

    /// Outlines the range function `(lo, hi, carried…, captured…) → carried`.
    pub(crate) fn range_function(&mut self, suffix: &str, body: &Body, plan: &LoopPlan) -> FuncId {
        let long = self.unit.types.int(64);
        let carried = plan.carried_types(self.unit);
        let mut params = vec![long, long];
        params.extend(&carried);
        params.extend(Self::types(body, &plan.captured));
        let result = match carried[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(self.unit.types.tuple(carried.clone())),
        };
        self.outline(suffix, result, &params, |b| {
            let given = b.body.params().to_vec();
            let split = 2 + carried.len();
            let map = ValueMap::zip(&plan.captured, &given[split..]);
            let mut copy = RangeCopy {
                source: body,
                plan,
                map,
            };
            let range = [given[0], given[1]];
            let results = match (&plan.columns, plan.extents.len()) {
                (Some(columns), _) => {
                    copy.columns(b, columns, range);
                    Vec::new()
                }
                (None, 1) => copy.emit_row(b, range, &[], &given[2..split]),
                _ => copy.emit_rows(b, range, &given[2..split]),
            };
            let value = pack_results(b, &results);
            b.return_(value);
        })
    }

    /// Emits the runtime's entry function `(lo, hi, context)`.
    fn loop_entry(&mut self, body: &Body, plan: &LoopPlan, range: FuncId) -> FuncId {
        let (long, ptr) = (self.unit.types.int(64), self.unit.types.ptr());
        let block = block_type(self.unit, body, &plan.context_values());
        self.outline("loop", None, &[long, long, ptr], |b| {
            let given = b.body.params().to_vec();
            let mut args = vec![given[0], given[1]];
            args.extend(load_fields(b, block, given[2]));
            range_call(b, plan, range, args, |_, _| {});
            b.return_(None);
        })
    }

    /// Emits the runtime's entry function `(lo, hi, partial, context)`, which accumulates a range into a
    /// partial result.
    fn reduce_entry(&mut self, body: &Body, plan: &LoopPlan, range: FuncId) -> FuncId {
        let (long, ptr) = (self.unit.types.int(64), self.unit.types.ptr());
        let block = block_type(self.unit, body, &plan.context_values());
        let carried = plan.carried_types(self.unit);
        let partial = self.unit.types.tuple(carried.clone());
        self.outline("reduce", None, &[long, long, ptr, ptr], |b| {
            let given = b.body.params().to_vec();
            let mut args = vec![given[0], given[1]];
            args.extend(load_fields(b, partial, given[2]));
            args.extend(load_fields(b, block, given[3]));
            range_call(b, plan, range, args, |b, result| {
                let results = unpack_results(b, result, carried.len());
                store_fields(b, partial, given[2], &results);
            });
            b.return_(None);
        })
    }

    /// Emits `(into, from, context)`, which combines two partial results. Both are non-empty: the runtime
    /// combines no empty ranges.
    fn combine_function(&mut self, body: &Body, plan: &LoopPlan) -> FuncId {
        let ptr = self.unit.types.ptr();
        let block = block_type(self.unit, body, &plan.captured);
        let carried = plan.carried_types(self.unit);
        let partial = self.unit.types.tuple(carried);
        self.outline("combine", None, &[ptr, ptr, ptr], |b| {
            let given = b.body.params().to_vec();
            let (into, from) = (
                load_fields(b, partial, given[0]),
                load_fields(b, partial, given[1]),
            );
            let captured = load_fields(b, block, given[2]);
            let mut map = ValueMap::zip(&plan.captured, &captured);
            let mut results = into.clone();
            for (i, reduction) in plan.reductions.iter().enumerate() {
                results[i] = reduction.combine(b, body, &mut map, into[i], from[i]);
            }
            store_fields(b, partial, given[0], &results);
            b.return_(None);
        })
    }
}

/// Emits the call of the range function in a runtime entry function. `args` ends with the exception slot if an
/// exception may occur; `returned` emits the code after the call.
fn range_call(
    b: &mut Builder<'_>,
    plan: &LoopPlan,
    range: FuncId,
    mut args: Vec<Value>,
    returned: impl FnOnce(&mut Builder<'_>, Option<Value>),
) {
    if plan.exception_slot.is_some()
        && let Some(group) = args.pop()
    {
        return exceptions::call_with_catch_all(b, range, &args, group, returned);
    }
    let call = b.call(range, &args);
    let result = b.body.results(call).first().copied();
    returned(b, result);
}

/// Packs values into one: none, the value itself, or a struct.
pub(crate) fn pack_results(b: &mut Builder<'_>, values: &[Value]) -> Option<Value> {
    if values.len() < 2 {
        return values.first().copied();
    }
    let types = values.iter().map(|v| b.body.ty(*v)).collect();
    let ty = b.unit.types.tuple(types);
    let mut all = b.poison(ty);
    for (index, &value) in (0..).zip(values) {
        all = b.insert(all, value, &[index]);
    }
    Some(all)
}

/// Unpacks the result of [`pack_results`].
pub(crate) fn unpack_results(
    b: &mut Builder<'_>,
    result: Option<Value>,
    count: usize,
) -> Vec<Value> {
    match result {
        Some(one) if count == 1 => vec![one],
        Some(all) => (0..count).map(|i| b.extract(all, &[i as u32])).collect(),
        None => Vec::new(),
    }
}

/// Emits the trip count.
fn trip_count(b: &mut Builder<'_>, extents: &[Value]) -> Value {
    let mut all = b.i64(1);
    for (i, &extent) in extents.iter().enumerate() {
        let extent = to_i64(b, extent);
        all = if i == 0 { extent } else { b.mul(all, extent) };
    }
    all
}

/// Emits the work threshold below which the loop runs serially. A reduction's threshold must not depend on
/// awake workers, because the combination order depends on the decision.
fn serial_threshold(b: &mut Builder<'_>, plan: &LoopPlan, options: &Options) -> Value {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let small = b.i64(number(options.small_work));
    if !plan.reductions.is_empty() {
        return small;
    }
    let word = b.unit.types.int(32);
    let awake = abi::idle_workers_address(b);
    let awake = b.load(word, awake);
    let nobody = b.zero(word);
    let nobody = b.icmp(IntPredicate::Eq, awake, nobody);
    let less = b.i64(number(options.small_work.min(options.small_work_awake)));
    b.select(nobody, small, less)
}

/// Emits `small`, or the test for at most `few` workers.
fn unless_few_workers(b: &mut Builder<'_>, small: Value, few: u64) -> Value {
    let workers = Entry::Workers.declare(b.unit);
    let call = b.call(workers, &[]);
    let workers = b.body.result(call);
    let workers = to_i64(b, workers);
    let few = b.i64(i64::try_from(few).unwrap_or(i64::MAX));
    let are_few = b.icmp(IntPredicate::Ule, workers, few);
    b.binary(BinaryOp::Or, small, are_few)
}

/// Emits `small`, masked by the runtime's switches for forced forks.
fn unless_forced(b: &mut Builder<'_>, small: Value, calls: bool) -> Value {
    let free = is_serial_allowed(b, calls);
    b.binary(BinaryOp::And, small, free)
}

/// Emits the minimum number of iterations of a chunk. If the runtime forces loops with unknown calls to fork,
/// the minimum is one.
fn min_chunk(b: &mut Builder<'_>, enough: Value, calls: bool) -> Value {
    if !calls {
        return enough;
    }
    let free = is_serial_allowed(b, calls);
    let one = b.i64(1);
    b.select(free, enough, one)
}

/// Emits the chunk size if the program states a chunk size, too. A stated size is an upper bound: programs
/// choose a large size against the overhead of a chunk queue, and few large chunks balance badly.
fn min_with_stated_chunk(b: &mut Builder<'_>, enough: Value, named: Option<u64>) -> Value {
    let Some(named) = named else {
        return enough;
    };
    let named = b.i64(i64::try_from(named).unwrap_or(i64::MAX));
    let fewer = b.icmp(IntPredicate::Ult, named, enough);
    b.select(fewer, named, enough)
}

pub(crate) fn is_serial_allowed(b: &mut Builder<'_>, calls: bool) -> Value {
    let byte = b.unit.types.int(8);
    let forced = abi::always_fork_address(b, calls);
    let forced = b.load(byte, forced);
    let zero = b.zero(byte);
    b.icmp(IntPredicate::Eq, forced, zero)
}

/// Emits the direct call of all iterations.
fn direct_call(
    b: &mut Builder<'_>,
    plan: &LoopPlan,
    range: FuncId,
    trips: Value,
    entered: Option<Value>,
) -> Vec<Value> {
    let mut args = vec![b.i64(0), trips];
    args.extend(&plan.initial);
    if plan.has_validity_flag() {
        args.push(b.i64(1));
    }
    args.extend(&plan.captured);
    let call = match entered.filter(|_| plan.exception_slot.is_some()) {
        Some(entered) => {
            exceptions::call_with_cleanup(b, range, &args, |b| tasks::emit_leave(b, entered))
        }
        None => b.call(range, &args),
    };
    let result = b.body.results(call).first().copied();
    let carried = plan.reductions.len() + usize::from(plan.has_validity_flag());
    let mut results = unpack_results(b, result, carried);
    results.truncate(plan.reductions.len());
    results
}

/// Emits the runtime call that forks the iterations.
fn forked_call(
    b: &mut Builder<'_>,
    plan: &LoopPlan,
    entry: FuncId,
    combine: Option<FuncId>,
    trips: Value,
    grain: Value,
) -> Vec<Value> {
    let values = plan.context_values();
    let block = block_type(b.unit, b.body, &values);
    let context = entry_alloca(b, block);
    store_fields(b, block, context, &values);
    if let Some(kept) = plan.exception_slot {
        let ty = exceptions::exception_group_type(b.unit);
        let nothing = b.zero(ty);
        b.store(nothing, kept);
    }
    let (zero, entry) = (b.i64(0), b.func(entry));
    let Some(combine) = combine else {
        let run = Entry::For.declare(b.unit);
        b.call(run, &[zero, trips, grain, entry, context]);
        if let Some(kept) = plan.exception_slot {
            exceptions::rethrow(b, kept);
        }
        return Vec::new();
    };
    let carried = plan.carried_types(b.unit);
    let partial = b.unit.types.tuple(carried);
    let (identity, result) = (entry_alloca(b, partial), entry_alloca(b, partial));
    let (mut neutral, mut initial) = (Vec::new(), plan.initial.clone());
    for reduction in &plan.reductions {
        let value = reduction
            .identity(b)
            .unwrap_or_else(|| b.zero(reduction.ty));
        neutral.push(value);
    }
    if plan.has_validity_flag() {
        neutral.push(b.i64(0));
        initial.push(b.i64(1));
    }
    store_fields(b, partial, identity, &neutral);
    store_fields(b, partial, result, &initial);
    let size = b.unit.layout.size_bytes(b.unit, partial);
    let size = b.i64(i64::try_from(size).unwrap_or(i64::MAX));
    let (combine, run) = (b.func(combine), Entry::Reduce.declare(b.unit));
    let args = [
        zero, trips, grain, entry, combine, identity, result, size, context,
    ];
    b.call(run, &args);
    if let Some(kept) = plan.exception_slot {
        exceptions::rethrow(b, kept);
    }
    let mut results = load_fields(b, partial, result);
    results.truncate(plan.reductions.len());
    results
}

/// Copies a loop's region into the range function.
pub(crate) struct RangeCopy<'a> {
    pub(crate) source: &'a Body,
    pub(crate) plan: &'a LoopPlan,
    /// The copies of the captured values.
    pub(crate) map: ValueMap,
}

impl RangeCopy<'_> {
    /// Emits a loop over the last index, from `range[0]` to `range[1]`, with fixed `outer` indices.
    pub(crate) fn emit_row(
        &mut self,
        b: &mut Builder<'_>,
        range: [Value; 2],
        outer: &[Value],
        carried: &[Value],
    ) -> Vec<Value> {
        let trips = b.binary(BinaryOp::Sub, range[1], range[0]);
        b.set_flags(trips, Flags::NUW.with(Flags::NSW));
        let carried = self.bounded_initial(b, trips, carried);
        let (nest, region) = b.for_(trips, &carried);
        let params = b.body.region_params(region).to_vec();
        let back = b.set_insertion_end(region);
        let index = b.add(range[0], params[0]);
        b.set_flags(index, Flags::NUW.with(Flags::NSW));
        let own = self.source.region_params(self.plan.region);
        for (&param, &index) in own.iter().zip(outer.iter().chain([&index])) {
            let index = to_index_type(b, index, self.source.ty(param));
            self.map.set(param, index);
        }
        clone_ops(self.source, self.plan.region, b, &mut self.map);
        match copied_yields(b, self.source, &self.map, self.plan.region) {
            Some(given) => {
                let next = self.accumulate(b, &params[1..], &given);
                b.yield_(&next);
            }
            None => {
                if let Some(end) = self.source.last(self.plan.region) {
                    clone_op(self.source, end, b, &mut self.map);
                }
            }
        }
        b.restore_insertion_point(back);
        if self.plan.race_free && is_independent(self.source, self.plan.region) {
            b.body.ops[nest].flags = Flags::INDEPENDENT;
        }
        b.body.results(nest).to_vec()
    }

    /// Returns the carried values at row entry: a bounded partial result is combined with its bound, unless the
    /// row is empty.
    fn bounded_initial(
        &mut self,
        b: &mut Builder<'_>,
        trips: Value,
        carried: &[Value],
    ) -> Vec<Value> {
        let mut carried = carried.to_vec();
        for (total, reduction) in carried.iter_mut().zip(&self.plan.reductions) {
            let Some(bounded) = reduction.bounded else {
                continue;
            };
            let bound = bounded.bound(b);
            let combined = reduction.combine(b, self.source, &mut self.map, *total, bound);
            let zero = b.i64(0);
            let some = b.icmp(IntPredicate::Ne, trips, zero);
            *total = b.select(some, combined, *total);
        }
        carried
    }

    /// Combines an iteration's contributions into the carried values.
    fn accumulate(
        &mut self,
        b: &mut Builder<'_>,
        carried: &[Value],
        given: &[Value],
    ) -> Vec<Value> {
        if !self.plan.has_validity_flag() {
            return self.combine_contributions(b, carried, given);
        }
        let flag = carried[carried.len() - 1];
        let zero = b.i64(0);
        let some = b.icmp(IntPredicate::Ne, flag, zero);
        let types: Vec<TypeId> = given.iter().map(|v| b.body.ty(*v)).collect();
        let (choice, later, first) = b.if_(some, &types);
        let back = b.set_insertion_end(later);
        let both = self.combine_contributions(b, carried, given);
        b.yield_(&both);
        b.set_insertion_end(first);
        b.yield_(given);
        b.restore_insertion_point(back);
        let mut next = b.body.results(choice).to_vec();
        next.push(b.i64(1));
        next
    }

    fn combine_contributions(
        &mut self,
        b: &mut Builder<'_>,
        carried: &[Value],
        given: &[Value],
    ) -> Vec<Value> {
        let mut next = Vec::new();
        for (reduction, (total, value)) in
            self.plan.reductions.iter().zip(carried.iter().zip(given))
        {
            next.push(match reduction.bounded {
                Some(bounded) => bounded.accumulate_unbounded(b, self.source, &self.map, *total),
                None => reduction.combine(b, self.source, &mut self.map, *total, *value),
            });
        }
        next
    }

    /// Emits iterations `lo .. hi` of a multi-dimensional loop, last index fastest: a loop over the rows
    /// touched, with a plain loop per row. No iteration divides.
    fn emit_rows(
        &mut self,
        b: &mut Builder<'_>,
        range: [Value; 2],
        carried: &[Value],
    ) -> Vec<Value> {
        let types: Vec<TypeId> = carried.iter().map(|v| b.body.ty(*v)).collect();
        let some = b.icmp(IntPredicate::Ult, range[0], range[1]);
        let (choice, run, none) = b.if_(some, &types);
        let back = b.set_insertion_end(none);
        b.yield_(carried);
        b.set_insertion_end(run);
        let extents: Vec<Value> = self.plan.extents[1..].to_vec();
        let extents: Vec<Value> = extents
            .into_iter()
            .map(|e| self.extent_value(b, e))
            .collect();
        let length = extents[extents.len() - 1];
        let one = b.i64(1);
        let first = b.binary(BinaryOp::UDiv, range[0], length);
        let last = b.binary(BinaryOp::Sub, range[1], one);
        let last = b.binary(BinaryOp::UDiv, last, length);
        let rows = b.binary(BinaryOp::Sub, last, first);
        let rows = b.add(rows, one);
        let (nest, region) = b.for_(rows, carried);
        let params = b.body.region_params(region).to_vec();
        b.set_insertion_end(region);
        let row = b.add(first, params[0]);
        let start = b.mul(row, length);
        let from = self.select_by(b, range[0], start, IntPredicate::Ugt);
        let end = b.add(start, length);
        let to = self.select_by(b, range[1], end, IntPredicate::Ult);
        let from = b.binary(BinaryOp::Sub, from, start);
        let to = b.binary(BinaryOp::Sub, to, start);
        let outer = delinearize(b, row, &extents[..extents.len() - 1]);
        let results = self.emit_row(b, [from, to], &outer, &params[1..]);
        b.yield_(&results);
        b.set_insertion_end(run);
        let results = b.body.results(nest).to_vec();
        b.yield_(&results);
        b.restore_insertion_point(back);
        b.body.results(choice).to_vec()
    }

    fn extent_value(&self, b: &mut Builder<'_>, extent: Value) -> Value {
        let extent = copied_value(b, self.source, &self.map, extent);
        to_i64(b, extent)
    }

    /// Emits the maximum or minimum of two values.
    fn select_by(&self, b: &mut Builder<'_>, a: Value, x: Value, first: IntPredicate) -> Value {
        let first = b.icmp(first, a, x);
        b.select(first, a, x)
    }
}

/// Delinearises a row number into indices; `extents` are all but the first.
fn delinearize(b: &mut Builder<'_>, row: Value, extents: &[Value]) -> Vec<Value> {
    let mut indices = Vec::new();
    let mut rest = row;
    for &extent in extents.iter().rev() {
        indices.push(b.binary(BinaryOp::URem, rest, extent));
        rest = b.binary(BinaryOp::UDiv, rest, extent);
    }
    indices.push(rest);
    indices.reverse();
    indices
}

#[cfg(test)]
mod tests {
    use crate::lower::lowered;
    use gradus_ir::{IntPredicate, Op, OpKind, Unit};

    /// Lowers a function `f` with a loop of the stated `grain`.
    fn with_grain(grain: &str) -> Unit {
        let text = format!(
            "func @f(%p: ptr, %n: i64) {{
               par.for {grain} %i < %n {{
                 %a = addr f64, %p, %i %x = load %a -> f64 %y = fmul %x, %x store %y, %a yield
               }}
               return }}"
        );
        lowered(&text)
    }

    /// Returns the op that defines the minimum chunk size passed to the runtime.
    fn lowered_min_chunk(grain: &str) -> OpKind {
        let unit = with_grain(grain);
        let f = unit.function("f").expect("it is there");
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let run = unit.function("gr_for").expect("it is declared");
        let runs = |op: &Op| unit.callee(body, *op) == Some(run);
        let call = body.walk(body.root()).find(runs).expect("the loop's call");
        let least = unit.call_args(body, call)[2];
        let least = body.def_op(least).expect("an operation");
        body.kind(least).clone()
    }

    /// Returns true if a loop forks from two iterations, whatever their cost.
    fn forks_from_two(grain: &str) -> bool {
        let unit = with_grain(grain);
        let f = unit.function("f").expect("it is there");
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let (trips, is_small) = (body.params()[1], OpKind::ICmp(IntPredicate::Ule));
        body.walk(body.root()).any(|op| {
            let two = || [body.operand(op, 0), body.operand(op, 1)];
            *body.kind(op) == is_small
                && two()[0] == trips
                && body.as_int(&unit, two()[1]) == Some(1)
        })
    }

    #[test]
    fn grain_one_forks_from_two_iterations() {
        assert!(forks_from_two("grain 1"));
        assert!(!forks_from_two("grain 2"));
        assert!(!forks_from_two(""));
    }

    /// A stated chunk size is an upper bound: two workers share 1,500 iterations in chunks of 1,000 evenly.
    #[test]
    fn stated_chunk_is_upper_bound() {
        assert!(matches!(lowered_min_chunk(""), OpKind::Binary(..)));
        assert_eq!(lowered_min_chunk("grain 1000"), OpKind::Select);
    }
}
