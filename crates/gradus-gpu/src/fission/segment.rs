//! Emission of a segment as a loop over threads: values from other segments, the segment's ops, stores of
//! live-out values, and masks for the following branches.

use crate::blocks::thread_storage::is_cheap;
use crate::fission::emit::{Frame, SplitEmitter};
use crate::fission::thread_loops::{Slot, Thread, ThreadOrder};
use gradus_edit::{ValueMap, clone_op_within, is_removable};
use gradus_ir::{
    AllocaStorage, BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, TypeId, Value,
};
use std::collections::HashSet;

/// Outputs of a segment besides the effects of the ops.
#[derive(Debug, Default)]
pub(crate) struct SegmentOutputs {
    /// Values stored per thread.
    pub stores: Vec<(Slot, Value)>,
    /// Masks: the slot receives the result of the test for each thread, and false for inactive threads.
    pub masks: Vec<(Slot, Test)>,
    /// Value whose maximum over the active threads is requested.
    pub maximum: Option<Value>,
}

/// Predicate evaluated per thread.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    /// True for each active thread.
    Always,
    /// The value is true.
    Is(Value),
    /// The value is false.
    Not(Value),
    /// The value equals the case.
    Case(Value, u128),
    /// The value equals none of the cases.
    Default(Value, Box<[u128]>),
    /// The first value (uniform) is less than the second (per thread), unsigned.
    Below(Value, Value),
}

impl Test {
    /// The test for entering region `index` of a branch on `condition`.
    pub fn of_arm(body: &Body, op: Op, condition: Value, index: usize) -> Test {
        match body.kind(op) {
            OpKind::Switch(cases) => match cases.get(index) {
                Some(&case) => Test::Case(condition, case),
                None => Test::Default(condition, cases.clone()),
            },
            _ if index == 0 => Test::Is(condition),
            _ => Test::Not(condition),
        }
    }

    fn uses(&self) -> Option<Value> {
        match self {
            Test::Always => None,
            Test::Is(v) | Test::Not(v) | Test::Case(v, _) | Test::Default(v, _) => Some(*v),
            Test::Below(_, v) => Some(*v),
        }
    }

    /// Emits the test; `local` maps values to the copies of the current thread.
    pub fn value(&self, b: &mut Builder<'_>, local: &ValueMap) -> Value {
        let own = self.uses().map(|v| local.get_or_same(v));
        match (self, own) {
            (Test::Is(_), Some(own)) => own,
            (Test::Not(_), Some(own)) => {
                let yes = b.bool(true);
                b.binary(BinaryOp::Xor, own, yes)
            }
            (Test::Case(_, case), Some(own)) => compare_with_case(b, own, *case, IntPredicate::Eq),
            (Test::Default(_, cases), Some(own)) => {
                let mut all = b.bool(true);
                for (number, &case) in cases.iter().enumerate() {
                    let other = compare_with_case(b, own, case, IntPredicate::Ne);
                    all = match number {
                        0 => other,
                        _ => b.binary(BinaryOp::And, all, other),
                    };
                }
                all
            }
            (Test::Below(common, _), Some(own)) => b.icmp(IntPredicate::Ult, *common, own),
            _ => b.bool(true),
        }
    }
}

fn compare_with_case(
    b: &mut Builder<'_>,
    value: Value,
    case: u128,
    predicate: IntPredicate,
) -> Value {
    let ty = b.body.ty(value);
    let case = b.int(ty, case as i128);
    b.icmp(predicate, value, case)
}

impl SplitEmitter<'_> {
    /// Emits the pending ops as a loop over the threads. Returns, for each mask, whether any thread passed,
    /// followed by the requested maximum.
    pub(crate) fn flush(
        &self,
        b: &mut Builder<'_>,
        frame: &mut Frame,
        mut outs: SegmentOutputs,
    ) -> Vec<Value> {
        let ops = std::mem::take(&mut frame.pending);
        for &op in &ops {
            for &result in b.body.results(op) {
                let slot = self.stored.get(&result);
                outs.stores.extend(slot.map(|slot| (*slot, result)));
            }
        }
        let lasting = |op: &Op| !is_removable(b.unit, b.body, *op);
        let nothing = outs.stores.is_empty() && outs.masks.is_empty() && outs.maximum.is_none();
        if nothing && !ops.iter().any(lasting) {
            return Vec::new();
        }
        let captured = self.captured(b.body, &ops, &outs);
        let segment = Segment {
            cut: self,
            ops: &ops,
            captured,
            outs: &outs,
            mask: frame.mask,
        };
        let initial = segment.initial_carried(b);
        let run = self.thread_order(b, &segment);
        self.threads
            .for_each_thread(b, &initial, run, |b, thread, carried| {
                segment.emit_thread(b, thread, carried)
            })
    }

    /// Chooses the thread order of a segment.
    fn thread_order(&self, b: &Builder<'_>, segment: &Segment) -> ThreadOrder {
        if let Some(dim) = self.dim_with_rank_zero_only(b, segment) {
            return ThreadOrder::RankZero(dim);
        }
        let at_once = self.plan.options.race_free
            && self.is_independent(b.body, segment)
            && !self.is_sparse_search(b.body, segment);
        match at_once {
            true => ThreadOrder::Parallel,
            false => ThreadOrder::Serial,
        }
    }

    /// The dimension in which only rank 0 has effects: every op with an effect is guarded by
    /// `if (rank == 0)`.
    fn dim_with_rank_zero_only(&self, b: &Builder<'_>, segment: &Segment) -> Option<usize> {
        if !segment.outs.stores.is_empty() || !segment.outs.masks.is_empty() {
            return None;
        }
        let body = &*b.body;
        let lasting = |op: &Op| !is_removable(b.unit, body, *op);
        let mut first = None;
        for &op in segment.ops.iter().filter(|op| lasting(op)) {
            let [_, other] = *body.op_regions(op) else {
                return None;
            };
            let dim = self.dim_compared_with_zero(b, body.operand(op, 0))?;
            let idle = body
                .ops_in(other)
                .all(|op| !lasting(&op) || body.kind(op).is_terminator());
            let same = first.is_none_or(|known| known == dim);
            (matches!(body.kind(op), OpKind::If) && idle && same).then_some(())?;
            first = Some(dim);
        }
        first.filter(|_| segment.outs.maximum.is_none())
    }

    /// The dimension whose rank `condition` compares with 0.
    fn dim_compared_with_zero(&self, b: &Builder<'_>, condition: Value) -> Option<usize> {
        let body = &*b.body;
        let test = body.def_op(condition)?;
        let is_test = matches!(body.kind(test), OpKind::ICmp(IntPredicate::Eq))
            && body.as_int(b.unit, body.operand(test, 1)) == Some(0);
        let mut rank = is_test.then(|| body.operand(test, 0))?;
        if let Some(cast) = body.def_op(rank) {
            // Truncation to 16 or more bits preserves a rank.
            let whole = b
                .unit
                .types
                .int_bits(body.ty(rank))
                .is_some_and(|bits| bits >= 16);
            let is_cut = whole && matches!(body.kind(cast), OpKind::Cast(CastOp::Trunc));
            rank = is_cut.then(|| body.operand(cast, 0))?;
        }
        self.threads.ranks.iter().position(|own| *own == rank)
    }

    /// The values used but not defined by a segment, in order of use.
    fn captured(&self, body: &Body, ops: &[Op], outs: &SegmentOutputs) -> Vec<Value> {
        let mut known: HashSet<Value> = HashSet::new();
        let mut used = Vec::new();
        for &op in ops {
            let inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
            for op in std::iter::once(op).chain(inner) {
                known.extend(body.results(op));
                for &region in body.op_regions(op) {
                    known.extend(body.region_params(region));
                }
                used.extend(body.operands(op));
            }
        }
        used.extend(outs.stores.iter().map(|(_, value)| *value));
        used.extend(outs.masks.iter().filter_map(|(_, test)| test.uses()));
        used.extend(outs.maximum);
        used.retain(|value| body.as_const(*value).is_none() && known.insert(*value));
        used
    }

    /// Returns whether threads may run a segment in parallel, judged by the kinds of ops: no volatile
    /// access, no critical section, and no private memory reused by successive threads.
    fn is_independent(&self, body: &Body, segment: &Segment) -> bool {
        let shared = |op: Op| !self.rows.contains_key(&op);
        let disturbs = |op: Op| match body.kind(op) {
            OpKind::Load(access) | OpKind::Store(access) => access.volatile,
            OpKind::Alloca(_) => shared(op),
            OpKind::Critical(_) => true,
            _ => false,
        };
        let inner = segment.ops.iter().flat_map(|op| body.op_regions(*op));
        let inner = inner.flat_map(|region| body.walk(*region));
        let own = segment
            .captured
            .iter()
            .filter(|v| self.plan.levels.is_per_thread_value(**v));
        let makers = own.filter_map(|v| body.def_op(*v));
        let taken = |op: Op| matches!(body.kind(op), OpKind::Alloca(_)) && shared(op);
        !segment.ops.iter().copied().chain(inner).any(disturbs) && !makers.into_iter().any(taken)
    }

    /// Returns whether threads only search, and the few that succeed store to a uniform address. A
    /// vectorised store would be a scatter; serial threads rarely reach the store.
    fn is_sparse_search(&self, body: &Body, segment: &Segment) -> bool {
        if !segment.outs.stores.is_empty() || !segment.outs.masks.is_empty() {
            return false;
        }
        let plain = |op: Op| match body.kind(op) {
            OpKind::Load(_) | OpKind::If | OpKind::Yield | OpKind::Addr { .. } => true,
            OpKind::Binary(op) => !op.is_float(),
            OpKind::ICmp(_) | OpKind::Cast(_) | OpKind::Select => true,
            _ => false,
        };
        let levels = self.plan.levels;
        let is_common = |value: Value| {
            let made = body.def_op(value);
            let inside = made.is_some_and(|op| self.plan.spine.anchor(op).is_some_and(|a| a != op));
            !inside && !levels.is_per_thread_value(value)
        };
        let mut found = false;
        let mut is_found = |op: Op| {
            let store = matches!(body.kind(op), OpKind::Store(_));
            found |= store;
            store && is_common(body.operand(op, 1))
        };
        let inner = segment.ops.iter().flat_map(|op| body.op_regions(*op));
        let mut inner = inner.flat_map(|region| body.walk(*region));
        segment.ops.iter().all(|op| plain(*op))
            && inner.all(|op| plain(op) || is_found(op))
            && found
    }
}

struct Segment<'a> {
    cut: &'a SplitEmitter<'a>,
    ops: &'a [Op],
    captured: Vec<Value>,
    outs: &'a SegmentOutputs,
    mask: Option<Slot>,
}

impl Segment<'_> {
    /// Initial loop-carried values: false for each mask, zero for the maximum.
    fn initial_carried(&self, b: &mut Builder<'_>) -> Vec<Value> {
        let mut initial: Vec<Value> = self.outs.masks.iter().map(|_| b.bool(false)).collect();
        if let Some(most) = self.outs.maximum {
            let ty = b.body.ty(most);
            initial.push(b.zero(ty));
        }
        initial
    }

    /// Emits the code of a thread, guarded by the mask of the segment.
    fn emit_thread(&self, b: &mut Builder<'_>, thread: &Thread, carried: &[Value]) -> Vec<Value> {
        let given = match self.mask {
            None => self.emit_active_thread(b, thread),
            Some(mask) => {
                let here = mask.load(b, thread);
                let types: Vec<TypeId> = carried.iter().map(|v| b.body.ty(*v)).collect();
                let (choice, yes, no) = b.if_(here, &types);
                let place = b.set_insertion_end(yes);
                let given = self.emit_active_thread(b, thread);
                b.yield_(&given);
                b.set_insertion_end(no);
                let initial = self.initial_carried(b);
                b.yield_(&initial);
                b.restore_insertion_point(place);
                b.body.results(choice).to_vec()
            }
        };
        let mut next = Vec::new();
        for (index, (&before, &own)) in carried.iter().zip(&given).enumerate() {
            if let Some((slot, _)) = self.outs.masks.get(index) {
                slot.store(b, thread, own);
                next.push(b.binary(BinaryOp::Or, before, own));
            } else {
                let more = b.icmp(IntPredicate::Ugt, own, before);
                next.push(b.select(more, own, before));
            }
        }
        next
    }

    /// Emits the code of an active thread.
    fn emit_active_thread(&self, b: &mut Builder<'_>, thread: &Thread) -> Vec<Value> {
        let mut local = ValueMap::zip(&self.cut.threads.ranks, &thread.ranks);
        for &value in &self.captured {
            self.materialise(b, value, thread, &mut local);
        }
        for &op in self.ops {
            match b.body.kind(op) {
                OpKind::Alloca(_) => self.materialise_alloca(b, op, thread, &mut local),
                _ => {
                    clone_op_within(op, b, &mut local);
                }
            }
        }
        for &(slot, value) in &self.outs.stores {
            let value = local.get_or_same(value);
            slot.store(b, thread, value);
        }
        let mut given = Vec::new();
        for (_, test) in &self.outs.masks {
            given.push(test.value(b, &local));
        }
        given.extend(self.outs.maximum.map(|v| local.get_or_same(v)));
        given
    }

    /// Makes a value of another segment available: a uniform copy, a load from the slot, or a recomputation.
    fn materialise(
        &self,
        b: &mut Builder<'_>,
        value: Value,
        thread: &Thread,
        local: &mut ValueMap,
    ) {
        let mut open = vec![value];
        while let Some(&value) = open.last() {
            if local.get(value).is_some() || b.body.as_const(value).is_some() {
                open.pop();
                continue;
            }
            if !self.cut.plan.levels.is_per_thread_value(value) {
                local.set(value, self.cut.map.get_or_same(value));
                continue;
            }
            if let Some(slot) = self.cut.slots.get(&value) {
                let loaded = slot.load(b, thread);
                local.set(value, loaded);
                continue;
            }
            let Some(op) = b.body.def_op(value) else {
                open.pop();
                continue;
            };
            if matches!(b.body.kind(op), OpKind::Alloca(_)) {
                self.materialise_alloca(b, op, thread, local);
                continue;
            }
            let missing: Vec<Value> = b
                .body
                .operands(op)
                .filter(|v| local.get(*v).is_none() && b.body.as_const(*v).is_none())
                .collect();
            if !missing.is_empty() {
                open.extend(missing);
                continue;
            }
            let steady = self.cut.plan.steady;
            assert!(
                is_cheap(b.unit, b.body, op, steady),
                "a value without storage can be recomputed"
            );
            clone_op_within(op, b, local);
        }
    }

    /// Makes private memory of a thread available: the thread's row, or a fresh private allocation.
    fn materialise_alloca(
        &self,
        b: &mut Builder<'_>,
        op: Op,
        thread: &Thread,
        local: &mut ValueMap,
    ) {
        let result = b.body.result(op);
        if local.get(result).is_some() {
            return;
        }
        if let Some(rows) = self.cut.rows.get(&op) {
            let at = rows.at(b, thread);
            local.set(result, at);
            return;
        }
        let copy = clone_op_within(op, b, local);
        if let OpKind::Alloca(info) = &mut b.body.ops[copy].kind {
            info.storage = AllocaStorage::Private;
        }
    }
}
