//! Emission of a split block: one thread loop per segment, nested like the skeleton.
//!
//! A walk over the skeleton with a stack of open regions. Uniform ops are copied at the insertion point.
//! Per-thread ops are collected, and flushed as a loop over the threads at the end of the segment. Code
//! under a divergent branch has a *mask*: a truth value per thread, true for active threads.

use crate::Options;
use crate::blocks::arms::{is_empty_arm, is_unreachable, live_terminator};
use crate::blocks::skeleton::Skeleton;
use crate::blocks::thread_storage::{ThreadStorage, element_count};
use crate::blocks::uniformity::Uniformity;
use crate::fission::segment::{SegmentOutputs, Test};
use crate::fission::thread_loops::{Slot, ThreadRows, Threads, block_memory};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::{AllocaStorage, Body, Builder, Flags, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Analysis results for a block to be split.
#[derive(Clone, Copy)]
pub(crate) struct SplitPlan<'a> {
    pub spine: &'a Skeleton,
    pub levels: &'a Uniformity,
    pub homes: &'a ThreadStorage,
    /// Loads and calls with the same result at any place in the kernel.
    pub steady: &'a HashSet<Op>,
    pub options: &'a Options,
}

/// Replaces a block by loops over threads.
pub(crate) fn split_block(unit: &mut Unit, body: &mut Body, plan: &SplitPlan) {
    let op = plan.spine.block;
    let threads = Threads::of(unit, body, op, plan.options);
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let sizes: Vec<Value> = threads.extents().collect();
    let map = ValueMap::zip(&threads.sizes, &sizes);
    let mut cut = SplitEmitter {
        plan: *plan,
        threads,
        map,
        slots: HashMap::new(),
        stored: HashMap::new(),
        rows: HashMap::new(),
        open: Vec::new(),
    };
    cut.allocate_storage(b);
    cut.walk(b);
    b.body.erase(op);
}

/// A skeleton region during the walk.
#[derive(Debug)]
pub(crate) struct Frame {
    next: Option<Op>,
    place: InsertionPoint,
    /// Mask of active threads; `None` if all threads are active.
    pub mask: Option<Slot>,
    /// Per-thread ops to be run before the next split.
    pub pending: Vec<Op>,
}

/// Insertion point for the copy of a region.
#[derive(Clone, Copy, Debug)]
enum InsertionPoint {
    Before(Op),
    End(Region),
}

pub(crate) struct SplitEmitter<'a> {
    pub plan: SplitPlan<'a>,
    pub threads: Threads,
    /// Copies of uniform values.
    pub map: ValueMap,
    /// Slots of per-thread values, readable in every segment.
    pub slots: HashMap<Value, Slot>,
    /// Slots of values that are stored at the definition.
    pub stored: HashMap<Value, Slot>,
    /// Rows of allocations that live across segments.
    pub rows: HashMap<Op, ThreadRows>,
    open: Vec<Frame>,
}

impl SplitEmitter<'_> {
    // ---- memory ----------------------------------------------------------------------------

    fn allocate_storage(&mut self, b: &mut Builder<'_>) {
        let homes = self.plan.homes;
        for &op in &homes.live_allocas {
            let OpKind::Alloca(info) = *b.body.kind(op) else {
                unreachable!("only allocas are stored per thread");
            };
            let Some(count) = element_count(b.unit, b.body, op) else {
                unreachable!("blocks with live memory of unknown size are refused");
            };
            let rows = ThreadRows::new(b, &self.threads, &info, count);
            self.rows.insert(op, rows);
        }
        for &value in &homes.stored {
            let slot = self.slot(b, value);
            self.stored.insert(value, slot);
        }
        for &region in self.plan.spine.regions() {
            let ops: Vec<Op> = b.body.ops_in(region).collect();
            for op in ops {
                if self.plan.spine.is_structural(op) {
                    self.make_slots(b, op);
                }
            }
        }
    }

    /// The slot of a value, created on first use.
    fn slot(&mut self, b: &mut Builder<'_>, value: Value) -> Slot {
        if let Some(&slot) = self.slots.get(&value) {
            return slot;
        }
        let ty = b.body.ty(value);
        let slot = Slot::new(b, &self.threads, ty);
        self.slots.insert(value, slot);
        slot
    }

    /// Creates slots for the per-thread loop-carried values and results of a structural op. A result equal
    /// to the last carried value shares the carried value's slot.
    fn make_slots(&mut self, b: &mut Builder<'_>, op: Op) {
        let results = b.body.results(op).to_vec();
        let is_own = |value: &Value| self.plan.levels.is_per_thread_value(*value);
        let is_kept = |value: &Value| is_own(value) && b.body.has_uses(*value);
        let own: Vec<Value> = results.iter().copied().filter(is_kept).collect();
        if b.body.kind(op).is_loop() {
            let region = b.body.op_regions(op)[0];
            let params: Vec<Value> = b.body.region_params(region).to_vec();
            for &param in params.iter().filter(|p| is_own(p)) {
                let ty = b.body.ty(param);
                let slot = Slot::new(b, &self.threads, ty);
                self.slots.insert(param, slot);
            }
            for (index, &result) in results.iter().enumerate() {
                let carried = param_of_result(b.body, op, index);
                if let Some(&slot) = carried.and_then(|p| self.slots.get(&p)) {
                    self.slots.insert(result, slot);
                }
            }
        }
        for value in own {
            self.slot(b, value);
        }
    }

    // ---- the walk --------------------------------------------------------------------------

    fn walk(&mut self, b: &mut Builder<'_>) {
        let (block, root) = (self.plan.spine.block, self.plan.spine.root);
        self.open.push(Frame {
            next: b.body.first(root),
            place: InsertionPoint::Before(block),
            mask: None,
            pending: Vec::new(),
        });
        while let Some(mut frame) = self.open.pop() {
            set_insertion_point(b, frame.place);
            while let Some(op) = frame.next {
                frame.next = b.body.next(op);
                if b.body.kind(op).is_terminator() {
                    self.end_region(b, &mut frame, op);
                    break;
                }
                if self.plan.spine.is_structural(op) {
                    self.enter_structural_op(b, frame, op);
                    break;
                }
                match self.plan.levels.is_per_thread(op) {
                    true => frame.pending.push(op),
                    false => self.emit_uniform_op(b, op),
                }
            }
        }
    }

    /// Runs an op once per block.
    fn emit_uniform_op(&mut self, b: &mut Builder<'_>, op: Op) {
        match b.body.kind(op) {
            OpKind::Alloca(info) if info.storage == AllocaStorage::Shared => {
                let memory = block_memory(b, op, self.plan.options);
                self.map.set(b.body.result(op), memory);
            }
            _ => {
                clone_op_within(op, b, &mut self.map);
            }
        }
    }

    fn push_region(&mut self, b: &Builder<'_>, from: Region, into: Region, mask: Option<Slot>) {
        self.open.push(Frame {
            next: b.body.first(from),
            place: InsertionPoint::End(into),
            mask,
            pending: Vec::new(),
        });
    }

    /// Ends the segment and enters a structural op; the ops after it follow later.
    fn enter_structural_op(&mut self, b: &mut Builder<'_>, mut frame: Frame, op: Op) {
        b.loc = b.body.ops[op].loc;
        let divergent = self.plan.levels.is_divergent(op);
        match b.body.kind(op).clone() {
            OpKind::If | OpKind::Switch(_) if divergent => self.emit_divergent_branch(b, frame, op),
            OpKind::If | OpKind::Switch(_) => self.emit_uniform_branch(b, frame, op),
            OpKind::For { .. } => self.emit_counted_loop(b, frame, op),
            OpKind::Loop { .. } => self.emit_while_loop(b, frame, op),
            _ => {
                self.flush(b, &mut frame, SegmentOutputs::default());
                self.open.push(frame);
            }
        }
    }

    /// Stores the results of empty arms before the branch.
    fn store_empty_arm_results(&self, b: &Builder<'_>, op: Op, outs: &mut SegmentOutputs) {
        let body = &*b.body;
        for &arm in body.op_regions(op) {
            let Some(end) = body.last(arm).filter(|_| is_empty_arm(body, arm)) else {
                continue;
            };
            for (&result, value) in body.results(op).iter().zip(body.operands(end)) {
                self.store_to_slot(b, outs, result, value);
            }
        }
    }

    /// Emits a uniform branch.
    fn emit_uniform_branch(&mut self, b: &mut Builder<'_>, mut frame: Frame, op: Op) {
        let mut outs = SegmentOutputs::default();
        self.store_empty_arm_results(b, op, &mut outs);
        self.flush(b, &mut frame, outs);
        let condition = self.map.get_or_same(b.body.operand(op, 0));
        let kind = b.body.kind(op).clone();
        let arms = b.body.op_regions(op).to_vec();
        let (values, types) = self.common_results(b, op);
        let made = b.op(kind, &[condition], &types, arms.len());
        self.map_results(b, &values, made);
        let mask = frame.mask;
        self.open.push(frame);
        for (index, &arm) in arms.iter().enumerate().rev() {
            let into = b.body.op_regions(made)[index];
            self.push_region(b, arm, into, mask);
        }
    }

    /// Emits a divergent branch: the arms in sequence, each under its mask. Arms without a barrier come
    /// first: threads that exit in such an arm must exit before the barriers of another arm.
    fn emit_divergent_branch(&mut self, b: &mut Builder<'_>, mut frame: Frame, op: Op) {
        let condition = b.body.operand(op, 0);
        let arms = b.body.op_regions(op).to_vec();
        let truth = b.unit.types.int(1);
        let mut ways = Vec::new();
        let mut outs = SegmentOutputs::default();
        self.store_empty_arm_results(b, op, &mut outs);
        let holds_barrier = |arm: &Region| {
            let mut ops = b.body.ops_in(*arm);
            ops.any(|op| self.plan.spine.is_structural(op))
        };
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.sort_by_key(|index| holds_barrier(&arms[*index]));
        for index in order {
            let arm = arms[index];
            if is_empty_arm(b.body, arm) {
                continue;
            }
            let mask = Slot::new_before_block(b, self.plan.spine.block, &self.threads, truth);
            outs.masks
                .push((mask, Test::of_arm(b.body, op, condition, index)));
            ways.push((arm, mask));
        }
        let any = self.flush(b, &mut frame, outs);
        self.open.push(frame);
        let mut made = Vec::new();
        for (&(arm, mask), any) in ways.iter().zip(any) {
            let (_, some, none) = b.if_(any, &[]);
            let place = b.set_insertion_end(none);
            b.yield_(&[]);
            b.restore_insertion_point(place);
            made.push((arm, mask, some));
        }
        for (arm, mask, into) in made.into_iter().rev() {
            self.push_region(b, arm, into, Some(mask));
        }
    }

    /// Emits a counted loop.
    fn emit_counted_loop(&mut self, b: &mut Builder<'_>, mut frame: Frame, op: Op) {
        let region = b.body.op_regions(op)[0];
        let operands: Vec<Value> = b.body.operands(op).collect();
        let params = b.body.region_params(region).to_vec();
        let results = b.body.results(op).to_vec();
        let mut outs = SegmentOutputs::default();
        for (i, &initial) in operands[1..].iter().enumerate() {
            self.store_to_slot(b, &mut outs, params[i + 1], initial);
            if !self.is_same_slot(params[i + 1], results[i]) {
                self.store_to_slot(b, &mut outs, results[i], initial);
            }
        }
        let divergent = self.plan.levels.is_divergent(op);
        outs.maximum = divergent.then_some(operands[0]);
        let most = self.flush(b, &mut frame, outs).last().copied();
        let trips = match divergent {
            true => most,
            false => Some(self.map.get_or_same(operands[0])),
        };
        let Some(trips) = trips else {
            unreachable!("a divergent loop has a maximum trip count over the threads");
        };
        let mut initial = vec![trips];
        let mut carried = Vec::new();
        for (i, &param) in params.iter().enumerate().skip(1) {
            if !self.plan.levels.is_per_thread_value(param) {
                initial.push(self.map.get_or_same(operands[i]));
                carried.push(i);
            }
        }
        let (made, into) = b.for_(trips, &initial[1..]);
        self.copy_loop_attributes(b, op, made);
        let fresh = b.body.region_params(into).to_vec();
        self.map.set(params[0], fresh[0]);
        for (number, &i) in carried.iter().enumerate() {
            self.map.set(params[i], fresh[number + 1]);
            self.map.set(results[i - 1], b.body.results(made)[number]);
        }
        let mut mask = frame.mask;
        if divergent {
            let truth = b.unit.types.int(1);
            let active = Slot::new_before_block(b, self.plan.spine.block, &self.threads, truth);
            let mut inside = Frame {
                next: None,
                place: InsertionPoint::End(into),
                mask,
                pending: Vec::new(),
            };
            let back = b.set_insertion_end(into);
            let mut outs = SegmentOutputs::default();
            outs.masks
                .push((active, Test::Below(fresh[0], operands[0])));
            self.flush(b, &mut inside, outs);
            b.restore_insertion_point(back);
            mask = Some(active);
        }
        self.open.push(frame);
        self.push_region(b, region, into, mask);
    }

    /// Emits a bottom-tested loop.
    fn emit_while_loop(&mut self, b: &mut Builder<'_>, mut frame: Frame, op: Op) {
        let region = b.body.op_regions(op)[0];
        let operands: Vec<Value> = b.body.operands(op).collect();
        let params = b.body.region_params(region).to_vec();
        let mut outs = SegmentOutputs::default();
        for (&param, &initial) in params.iter().zip(&operands) {
            self.store_to_slot(b, &mut outs, param, initial);
        }
        let mut mask = frame.mask;
        if self.plan.levels.is_divergent(op) {
            let truth = b.unit.types.int(1);
            let active = Slot::new_before_block(b, self.plan.spine.block, &self.threads, truth);
            outs.masks.push((active, Test::Always));
            mask = Some(active);
        }
        self.flush(b, &mut frame, outs);
        let common: Vec<usize> = (0..params.len())
            .filter(|i| !self.plan.levels.is_per_thread_value(params[*i]))
            .collect();
        let initial: Vec<Value> = common
            .iter()
            .map(|i| self.map.get_or_same(operands[*i]))
            .collect();
        let (values, types) = self.common_results(b, op);
        let (made, into) = b.loop_(&initial, &types);
        self.copy_loop_attributes(b, op, made);
        self.map_results(b, &values, made);
        for (number, &i) in common.iter().enumerate() {
            self.map.set(params[i], b.body.region_params(into)[number]);
        }
        self.open.push(frame);
        self.push_region(b, region, into, mask);
    }

    // ---- ends of regions -------------------------------------------------------------------

    /// Ends a region: per-thread results go to slots, uniform results to the terminator of the copy. A
    /// region that ends in `unreachable` yields nothing, and neither does its copy.
    fn end_region(&mut self, b: &mut Builder<'_>, frame: &mut Frame, end: Op) {
        let region = b.body.parent(end);
        let owner = region.and_then(|region| b.body.owner(region));
        let Some(owner) = owner.filter(|op| *op != self.plan.spine.block) else {
            self.flush(b, frame, SegmentOutputs::default());
            return;
        };
        if is_unreachable(b.body, end) {
            self.flush(b, frame, SegmentOutputs::default());
            b.op(OpKind::Unreachable, &[], &[], 0);
            return;
        }
        let given: Vec<Value> = b.body.operands(end).collect();
        let results = b.body.results(owner).to_vec();
        match b.body.kind(owner) {
            OpKind::Loop { .. } => self.end_while_loop(b, frame, owner, &given),
            OpKind::For { .. } => {
                let params = region.map(|r| b.body.region_params(r).to_vec());
                let params = params.unwrap_or_default();
                let mut outs = SegmentOutputs::default();
                let mut common = Vec::new();
                for (i, &value) in given.iter().enumerate() {
                    self.store_to_slot(b, &mut outs, params[i + 1], value);
                    if !self.is_same_slot(params[i + 1], results[i]) {
                        self.store_to_slot(b, &mut outs, results[i], value);
                    }
                    if !self.plan.levels.is_per_thread_value(params[i + 1]) {
                        common.push(value);
                    }
                }
                self.flush(b, frame, outs);
                let common: Vec<Value> = common.iter().map(|v| self.map.get_or_same(*v)).collect();
                b.yield_(&common);
            }
            _ => {
                let idle = region.is_some_and(|region| is_empty_arm(b.body, region));
                let mut outs = SegmentOutputs::default();
                let mut common = Vec::new();
                for (&result, &value) in results.iter().zip(&given) {
                    match self.plan.levels.is_per_thread_value(result) {
                        true if idle => {}
                        true => self.store_to_slot(b, &mut outs, result, value),
                        false => common.push(value),
                    }
                }
                self.flush(b, frame, outs);
                let common: Vec<Value> = common.iter().map(|v| self.map.get_or_same(*v)).collect();
                b.yield_(&common);
            }
        }
    }

    fn end_while_loop(
        &mut self,
        b: &mut Builder<'_>,
        frame: &mut Frame,
        owner: Op,
        given: &[Value],
    ) {
        let region = b.body.op_regions(owner)[0];
        let params = b.body.region_params(region).to_vec();
        let results = b.body.results(owner).to_vec();
        let (again, rest) = (given[0], &given[1..]);
        let (next, last) = rest.split_at(params.len());
        let mut outs = SegmentOutputs::default();
        let mut carried = Vec::new();
        let mut leaving = Vec::new();
        for (&param, &value) in params.iter().zip(next) {
            match self.plan.levels.is_per_thread_value(param) {
                true => self.store_to_slot(b, &mut outs, param, value),
                false => carried.push(self.map.get_or_same(value)),
            }
        }
        for (index, (&result, &value)) in results.iter().zip(last).enumerate() {
            let carried = param_of_result(b.body, owner, index);
            let same = carried.is_some_and(|param| self.is_same_slot(param, result));
            match self.plan.levels.is_per_thread_value(result) {
                true if same => {}
                true => self.store_to_slot(b, &mut outs, result, value),
                false => leaving.push(self.map.get_or_same(value)),
            }
        }
        let divergent = self.plan.levels.is_divergent(owner);
        if let Some(active) = frame.mask.filter(|_| divergent) {
            outs.masks.push((active, Test::Is(again)));
        }
        let any = self.flush(b, frame, outs).first().copied();
        let again = match any {
            Some(any) if divergent => any,
            _ => self.map.get_or_same(again),
        };
        b.repeat(again, &carried, &leaving);
    }

    // ---- small steps -----------------------------------------------------------------------

    /// Stores a per-thread value to its slot; undef and poison are not stored.
    fn store_to_slot(&self, b: &Builder<'_>, outs: &mut SegmentOutputs, value: Value, what: Value) {
        if let Some(&slot) = self.slots.get(&value)
            && !b.body.is_undef_or_poison(b.unit, what)
        {
            outs.stores.push((slot, what));
        }
    }

    fn is_same_slot(&self, a: Value, b: Value) -> bool {
        match (self.slots.get(&a), self.slots.get(&b)) {
            (Some(a), Some(b)) => a.is_same_memory(b),
            _ => false,
        }
    }

    /// The uniform results of a structural op, with their types.
    fn common_results(&self, b: &Builder<'_>, op: Op) -> (Vec<Value>, Vec<TypeId>) {
        let results = b.body.results(op).iter().copied();
        let values: Vec<Value> = results
            .filter(|v| !self.plan.levels.is_per_thread_value(*v))
            .collect();
        let types = values.iter().map(|v| b.body.ty(*v)).collect();
        (values, types)
    }

    fn map_results(&mut self, b: &Builder<'_>, values: &[Value], made: Op) {
        for (&value, &copy) in values.iter().zip(b.body.results(made)) {
            self.map.set(value, copy);
        }
    }

    /// Copies the attributes of the original loop, except independence and source hints (`#pragma unroll`).
    /// Such a hint refers to the loop of a single thread; unrolling the new loop would duplicate every
    /// thread loop inside.
    fn copy_loop_attributes(&self, b: &mut Builder<'_>, op: Op, made: Op) {
        b.body.ops[made].kind = b.body.kind(op).clone();
        b.body.ops[made].flags = b.body.ops[op].flags.without(Flags::INDEPENDENT);
    }
}

fn set_insertion_point(b: &mut Builder<'_>, place: InsertionPoint) {
    match place {
        InsertionPoint::Before(op) => b.set_insertion_before(op),
        InsertionPoint::End(region) => b.set_insertion_end(region),
    };
}

/// The region parameter that equals result `index` when the loop exits.
fn param_of_result(body: &Body, op: Op, index: usize) -> Option<Value> {
    let region = body.op_regions(op)[0];
    let params = body.region_params(region);
    if matches!(body.kind(op), OpKind::For { .. }) {
        return params.get(index + 1).copied();
    }
    let given: Vec<Value> = body
        .operands(live_terminator(body, region)?)
        .skip(1)
        .collect();
    let (next, last) = given.split_at_checked(params.len())?;
    let number = next
        .iter()
        .position(|value| Some(value) == last.get(index))?;
    params.get(number).copied()
}
