//! Copies arrays that a loop reads through index arrays, to avoid saving the loaded values for the reverse
//! pass. Example: the elements of a mesh read the coordinates of their corners, eight times per node.
//!
//! The copy covers the index range of the loop, is made before the loop and read in its place. The copy is
//! private memory that no op overwrites. AD rereads the copy and saves none of its values. The stores of the
//! loop may alias the array, hence a run-time test selects between two versions of the loop
//! ([`version_loop`]).
//!
//! 1. All iterations execute, and each executes the ops of the loop's own region. Loads of that region are
//!    therefore legal before the loop, as are loads of the index array, which the loop does not change. In a
//!    parallel loop that may exit the program, only ops before the exit qualify: every iteration may have
//!    reached these ops.
//! 2. A pass over the index array finds the minimum and maximum index. Both address one array, hence all
//!    elements in between are readable.
//! 3. No store of the loop overlaps the copied range: by alias analysis, or because the ranges from minimum
//!    to maximum address of each store are disjoint, which the run-time test checks. Indices of conditional
//!    stores are computed unconditionally; the resulting value is arbitrary but fixed (`fold_freeze`).
//! 4. Each element is read completely, as floats of one format.
//! 5. The copy is profitable. Each iteration reads through several indices, and the adjoint requires the
//!    loaded values and not only a few sums. The array is overwritten later, and a run-time test shows the
//!    copy to be at most half as long as all loaded values.
//!
//! Runs before reverse-mode differentiation, on bodies without other users.

use crate::loops::unswitch::version_loop;
use gradus_analysis::{Alias, Clobbers, ExitClobbers, MemoryAccess, PassContext};
use gradus_edit::{ValueMap, clone_op_within, is_speculatable};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Type, TypeId, Unit, Value,
};
use std::collections::{BTreeSet, HashSet};

/// Minimum number of indices per iteration; with fewer, the copy is hardly shorter than the loaded values.
const INDICES_MIN: usize = 4;
/// Limits: ops in the loop, and ops from an index array load to an index.
const OPS_MAX: usize = 4000;
const SLICE_OPS_MAX: usize = 16;
/// Maximum absolute value of an index, to exclude address overflow.
pub(crate) const INDEX_ABS_MAX: i64 = 1 << 40;

/// Copies arrays for loops; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    copy_index_arrays(unit, body, facts, true) > 0
}

/// Runs the pass; returns the number of changed loops. `others` states whether external code may overwrite
/// memory after the body's end while the reverse pass still requires the contents.
pub fn copy_index_arrays(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    others: bool,
) -> usize {
    let loops: Vec<Op> = {
        let all = body.walk(body.root());
        all.filter(|op| is_candidate_loop(unit, body, *op))
            .collect()
    };
    let mut changed = 0;
    for lp in loops {
        let Some(plan) = plan_copies(unit, body, facts, lp, others) else {
            continue;
        };
        version_with_copies(unit, body, lp, &plan);
        changed += 1;
    }
    changed
}

/// Returns whether a body has a loop that may read copies.
pub fn has_indirect_loads(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| is_candidate_loop(unit, body, op))
}

/// Returns whether a loop loads floats at enough distinct loaded indices; [`plan_copies`] checks the remaining
/// conditions.
fn is_candidate_loop(unit: &Unit, body: &Body, lp: Op) -> bool {
    if !matches!(body.kind(lp), OpKind::For { .. }) {
        return false;
    }
    let inside = body.op_regions(lp)[0];
    let fits = body.walk(inside).nth(OPS_MAX).is_none();
    fits && !read_groups(unit, body, lp).is_empty()
}

/// Indirect access at `base + scale · index + offset`, with a loop-invariant base.
pub(crate) struct IndirectAccess {
    pub(crate) base: Value,
    pub(crate) index: Value,
    pub(crate) scale: i64,
    pub(crate) offset: i64,
    pub(crate) bytes: i64,
}

/// Accesses to one array through a set of indices.
struct AccessGroup {
    base: Value,
    scale: i64,
    indices: BTreeSet<Value>,
    /// Offset of the first byte from the address of an index, and of the end.
    low: i64,
    high: i64,
    /// Accesses, each with the offset of its first byte from the address of its index.
    ops: Vec<(Op, i64)>,
}

impl AccessGroup {
    fn ops(&self) -> impl Iterator<Item = Op> {
        self.ops.iter().map(|(op, _)| *op)
    }

    /// Adds an access to its group.
    fn add_access(groups: &mut Vec<AccessGroup>, spot: &IndirectAccess, op: Op) {
        let same = |g: &&mut AccessGroup| g.base == spot.base && g.scale == spot.scale;
        let end = spot.offset + spot.bytes;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.indices.insert(spot.index);
                group.low = group.low.min(spot.offset);
                group.high = group.high.max(end);
                group.ops.push((op, spot.offset));
            }
            None => groups.push(AccessGroup {
                base: spot.base,
                scale: spot.scale,
                indices: BTreeSet::from([spot.index]),
                low: spot.offset,
                high: end,
                ops: vec![(op, spot.offset)],
            }),
        }
    }
}

/// Transformation of a loop: copied groups and stored groups.
struct CopyPlan {
    reads: Vec<AccessGroup>,
    writes: Vec<AccessGroup>,
}

/// Returns the arrays that each iteration reads indirectly.
fn read_groups(unit: &Unit, body: &Body, lp: Op) -> Vec<AccessGroup> {
    let inside = body.op_regions(lp)[0];
    let mut found: Vec<AccessGroup> = Vec::new();
    for op in body.ops_in(inside) {
        let OpKind::Load(access) = body.kind(op) else {
            continue;
        };
        let ty = body.ty(body.result(op));
        if !access.is_plain() || !matches!(unit.types.get(ty), Type::Float(_)) {
            continue;
        }
        if let Some(spot) = indirect_access(unit, body, lp, body.operand(op, 0), ty) {
            AccessGroup::add_access(&mut found, &spot, op);
        }
    }
    let listed = |index: &Value| {
        index_slice(unit, body, lp, *index).is_some_and(|ops| {
            let is_load = |op: &Op| matches!(body.kind(*op), OpKind::Load(_));
            ops.iter().any(is_load)
        })
    };
    found.retain(|group| {
        group.indices.len() >= INDICES_MIN
            && group.indices.iter().all(listed)
            && covers_elements_as_floats(unit, body, group)
            && required_value_count(body, std::slice::from_ref(group)) > 0
    });
    if !saves_enough_values(body, &found) {
        found.clear();
    }
    found
}

/// Returns whether each element is read completely as floats of one format. Unread bytes may be pointers or
/// integers, and copied bytes must have one type.
fn covers_elements_as_floats(unit: &Unit, body: &Body, group: &AccessGroup) -> bool {
    let mut types = group.ops().map(|op| body.ty(body.result(op)));
    let Some(ty) = types.next().filter(|ty| types.all(|other| other == *ty)) else {
        return false;
    };
    let bytes = i64::try_from(unit.layout.store_bytes(unit, ty)).unwrap_or(i64::MAX);
    let behind = group.ops.iter().map(|(_, offset)| offset - group.low);
    let read: BTreeSet<i64> = behind
        .map(|far| far.rem_euclid(group.scale.max(1)))
        .collect();
    let all = (0..group.scale / bytes).map(|number| number * bytes);
    group.scale % bytes == 0 && read.into_iter().eq(all)
}

/// Collects the values that the adjoint may require from a load: the loaded value or sums of it that are
/// multiplied, stored or passed to a function.
fn needed(body: &Body, load: Op, found: &mut HashSet<Value>) {
    let mut work = vec![body.result(load)];
    let mut seen: HashSet<Value> = HashSet::new();
    while let Some(value) = work.pop() {
        for at in body.uses(value) {
            match body.kind(at.op) {
                OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub) | OpKind::FNeg => {
                    let next = body.result(at.op);
                    if seen.insert(next) {
                        work.push(next);
                    }
                }
                // The adjoint of a sum that is only stored requires no operand.
                OpKind::Store(_) if value != body.result(load) => {}
                OpKind::Yield => {}
                _ => {
                    found.insert(value);
                }
            }
        }
    }
}

/// Returns how many values the adjoint of an iteration may require from the loads of the groups.
fn required_value_count(body: &Body, groups: &[AccessGroup]) -> usize {
    let mut found = HashSet::new();
    for load in groups.iter().flat_map(AccessGroup::ops) {
        needed(body, load, &mut found);
    }
    found.len()
}

/// Returns whether the adjoint would save more than half as many values as the groups load.
fn saves_enough_values(body: &Body, groups: &[AccessGroup]) -> bool {
    2 * required_value_count(body, groups) > groups.iter().flat_map(AccessGroup::ops).count()
}

fn is_inside(body: &Body, lp: Op, value: Value) -> bool {
    body.is_defined_in(value, body.op_regions(lp)[0])
}

/// Decomposes the address of an access of type `ty` into an indirect access, if possible.
pub(crate) fn indirect_access(
    unit: &Unit,
    body: &Body,
    lp: Op,
    pointer: Value,
    ty: TypeId,
) -> Option<IndirectAccess> {
    let bytes = i64::try_from(unit.layout.store_bytes(unit, ty)).ok()?;
    let (mut at, mut offset) = (pointer, 0i64);
    loop {
        let op = body.def_op(at)?;
        let OpKind::Addr { source } = *body.kind(op) else {
            return None;
        };
        let mut operands = body.operands(op);
        let (base, index) = (operands.next()?, operands.next()?);
        if operands.next().is_some() || !is_inside(body, lp, at) {
            return None;
        }
        let scale = i64::try_from(unit.layout.size_bytes(unit, source)).ok()?;
        match body.as_int(unit, index) {
            Some(number) => {
                let number = i64::try_from(number).ok()?;
                offset = offset.checked_add(number.checked_mul(scale)?)?;
                at = base;
            }
            None => {
                let narrow = unit.types.int_bits(body.ty(index))? <= 64;
                let near = offset.abs() < INDEX_ABS_MAX && scale < 1 << 16;
                return (narrow && near && !is_inside(body, lp, base)).then_some(IndirectAccess {
                    base,
                    index,
                    scale,
                    offset,
                    bytes,
                });
            }
        }
    }
}

/// Returns the ops of a loop that compute an integer of an iteration, in order: arithmetic, and integer loads
/// of the loop's own region. `None` if other ops are necessary.
fn index_slice(unit: &Unit, body: &Body, lp: Op, value: Value) -> Option<Vec<Op>> {
    let inside = body.op_regions(lp)[0];
    let index = body.region_params(inside)[0];
    let (mut order, mut seen) = (Vec::new(), HashSet::new());
    let mut work = vec![(value, false)];
    while let Some((value, done)) = work.pop() {
        if value == index || !is_inside(body, lp, value) {
            continue;
        }
        let op = body.def_op(value)?;
        if done {
            order.push(op);
            continue;
        }
        if !seen.insert(op) {
            continue;
        }
        if seen.len() > SLICE_OPS_MAX || !can_precompute(unit, body, lp, op) {
            return None;
        }
        work.push((value, true));
        work.extend(body.operands(op).map(|v| (v, false)));
    }
    Some(order)
}

fn can_precompute(unit: &Unit, body: &Body, lp: Op, op: Op) -> bool {
    use BinaryOp::{AShr, LShr, Shl};
    match body.kind(op) {
        OpKind::Load(access) => {
            let own = body.parent(op) == Some(body.op_regions(lp)[0]);
            access.is_plain() && own && unit.types.int_bits(body.ty(body.result(op))).is_some()
        }
        // An oversized shift is poison.
        OpKind::Binary(Shl | LShr | AShr) => body.as_int(unit, body.operand(op, 1)).is_some(),
        OpKind::Addr { .. } | OpKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc) => true,
        OpKind::Binary(_) | OpKind::Select | OpKind::ICmp(_) => {
            is_speculatable(unit, body, op)
                && unit.types.int_bits(body.ty(body.result(op))).is_some()
        }
        _ => false,
    }
}

/// Decides which arrays to copy for a loop, and which stores must be disjoint from the copies.
fn plan_copies(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    lp: Op,
    others: bool,
) -> Option<CopyPlan> {
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let after = ExitClobbers {
        params: vec![others; body.params().len()],
        others,
        frame: false,
    };
    let clobbers = Clobbers::of(&alias, facts.effects, after);
    let independent = |at: Op| body.ops[at].flags.has(Flags::INDEPENDENT);
    let nested = alias.nest.loops_of(lp).any(independent);
    let stops = clobbers.may_exit_in(lp);
    if nested || alias.nest.enclosing_noreturn_region(lp).is_some() || stops && !independent(lp) {
        return None;
    }
    let first = body.first(body.op_regions(lp)[0])?;
    let is_reached = |op: Op| !stops || clobbers.always_reaches(first, op);
    let steady = |value: &Value| {
        let ops = index_slice(unit, body, lp, *value).unwrap_or_default();
        let mut loads = (ops.into_iter()).filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
        loads.all(is_reached) && is_same_before_loop(unit, body, &clobbers, lp, *value)
    };
    let mut reads = read_groups(unit, body, lp);
    reads.retain(|group| {
        let kept = |op: Op| clobbers.fate(op).written_by.is_some() || clobbers.fate(op).after_end;
        let reached = group.ops().all(is_reached);
        reached && group.indices.iter().all(steady) && group.ops().any(kept)
    });
    let mut writes: Vec<AccessGroup> = Vec::new();
    for op in body.walk(body.op_regions(lp)[0]) {
        let destroyed: Vec<MemoryAccess> = (facts.effects.of_op(unit, body, op).into_iter())
            .filter(MemoryAccess::is_clobber)
            .collect();
        let meets = |group: &AccessGroup| {
            let reads = group.ops().flat_map(|load| clobbers.reads_of(load));
            let mut pairs = reads.flat_map(|read| destroyed.iter().map(move |w| (read, w)));
            pairs.any(|(read, write)| alias.may_alias_any_iteration(read, write))
        };
        if destroyed.is_empty() || !reads.iter().any(meets) {
            continue;
        }
        match indirect_store(unit, body, lp, op).filter(|spot| steady(&spot.index)) {
            Some(spot) => {
                reads.retain(|group| group.base != spot.base || !meets(group));
                AccessGroup::add_access(&mut writes, &spot, op);
            }
            None => reads.retain(|group| !meets(group)),
        }
    }
    (!reads.is_empty()).then_some(CopyPlan { reads, writes })
}

fn indirect_store(unit: &Unit, body: &Body, lp: Op, op: Op) -> Option<IndirectAccess> {
    match body.kind(op) {
        OpKind::Store(access) if access.is_plain() => {
            let (value, pointer) = (body.operand(op, 0), body.operand(op, 1));
            indirect_access(unit, body, lp, pointer, body.ty(value))
        }
        _ => None,
    }
}

/// Returns whether an integer of an iteration has the same value if computed before the loop.
fn is_same_before_loop(
    unit: &Unit,
    body: &Body,
    clobbers: &Clobbers,
    lp: Op,
    value: Value,
) -> bool {
    let Some(ops) = index_slice(unit, body, lp, value) else {
        return false;
    };
    let mut reads = ops.iter().flat_map(|op| clobbers.reads_of(*op));
    reads.all(|read| {
        is_planted(Mutant::IndexArrayAssumedInvariant) || !clobbers.clobbered_in(read, lp)
    })
}

/// Minimum and maximum of a set of indices over all iterations.
struct IndexRange {
    indices: BTreeSet<Value>,
    low: Value,
    high: Value,
}

/// Versions a loop: a copy of the loop reads array copies if no store of the loop overlaps the copied ranges.
fn version_with_copies(unit: &mut Unit, body: &mut Body, lp: Op, plan: &CopyPlan) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let ends = emit_index_ranges(&mut b, lp, plan);
    let ok = emit_copy_test(&mut b, lp, plan, &ends);
    let inside = b.body.op_regions(lp)[0];
    let old: Vec<Op> = b.body.walk(inside).collect();
    let copied = version_loop(&mut b, lp, ok);
    let inside = b.body.op_regions(copied)[0];
    let new: Vec<Op> = b.body.walk(inside).collect();
    b.set_insertion_before(copied);
    let mut blocks = Vec::new();
    for group in &plan.reads {
        let (block, root) = emit_copy(&mut b, group, range_of(&ends, group));
        let place = b.set_insertion_before(copied);
        for (op, load) in std::iter::zip(&old, &new) {
            if let Some((_, offset)) = group.ops.iter().find(|(read, _)| read == op) {
                redirect_load(&mut b, *load, *offset, group, root);
            }
        }
        b.restore_insertion_point(place);
        blocks.push(block);
    }
    if let Some(next) = b.body.next(copied) {
        b.set_insertion_before(next);
    }
    let free = gradus_edit::declare_free(b.unit);
    for block in blocks {
        b.call(free, &[block]);
    }
}

/// Emits a loop that finds the minimum and maximum of all index sets.
fn emit_index_ranges(b: &mut Builder<'_>, lp: Op, plan: &CopyPlan) -> Vec<IndexRange> {
    let mut sets: Vec<&BTreeSet<Value>> = Vec::new();
    for group in plan.reads.iter().chain(&plan.writes) {
        if !sets.contains(&&group.indices) {
            sets.push(&group.indices);
        }
    }
    let (least, most) = (b.i64(i64::MAX), b.i64(i64::MIN));
    let initial: Vec<Value> = sets.iter().flat_map(|_| [least, most]).collect();
    let trips = b.body.operand(lp, 0);
    let (pass, region) = b.for_(trips, &initial);
    let place = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let index = b.body.region_params(b.body.op_regions(lp)[0])[0];
    let mut map = ValueMap::new();
    map.set(index, params[0]);
    let mut done: HashSet<Op> = HashSet::new();
    let mut loaded: HashSet<Value> = HashSet::new();
    for set in &sets {
        for value in *set {
            let Some(ops) = index_slice(b.unit, b.body, lp, *value) else {
                unreachable!("the plan has only indices that can be computed before the loop");
            };
            for op in ops {
                if matches!(b.body.kind(op), OpKind::Load(_)) {
                    loaded.insert(*value);
                }
                if done.insert(op) {
                    let made = clone_op_within(op, b, &mut map);
                    b.body.ops[made].flags = Flags::NONE;
                }
            }
        }
    }
    let mut next = Vec::new();
    for (number, set) in sets.iter().enumerate() {
        let (mut low, mut high) = (params[1 + 2 * number], params[2 + 2 * number]);
        let stored = plan.writes.iter().any(|group| &group.indices == *set);
        for &index in *set {
            let mut value = sext_to_i64(b, map.get_or_same(index));
            if stored && loaded.contains(&index) {
                // The index of an unreached store may be poison; `fold_freeze` fixes one value.
                let ty = b.body.ty(value);
                value = b.value(OpKind::Freeze, &[value], ty);
            }
            let less = b.icmp(IntPredicate::Slt, value, low);
            low = b.select(less, value, low);
            let more = b.icmp(IntPredicate::Sgt, value, high);
            high = b.select(more, value, high);
        }
        next.extend([low, high]);
    }
    b.yield_(&next);
    b.restore_insertion_point(place);
    let found = b.body.results(pass).to_vec();
    let ends = sets.into_iter().zip(found.chunks(2));
    ends.map(|(indices, ends)| IndexRange {
        indices: indices.clone(),
        low: ends[0],
        high: ends[1],
    })
    .collect()
}

/// Returns an index sign-extended to 64 bits, as in address computations.
fn sext_to_i64(b: &mut Builder<'_>, value: Value) -> Value {
    let long = b.unit.types.int(64);
    match b.body.ty(value) == long {
        true => value,
        false => b.cast(CastOp::SExt, value, long),
    }
}

fn range_of<'e>(ends: &'e [IndexRange], group: &AccessGroup) -> &'e IndexRange {
    let same = |e: &&IndexRange| e.indices == group.indices;
    ends.iter().find(same).unwrap_or(&ends[0])
}

/// Emits the run-time test: the loop may read copies, and copying is profitable.
fn emit_copy_test(b: &mut Builder<'_>, lp: Op, plan: &CopyPlan, all_ends: &[IndexRange]) -> Value {
    let (least, most) = (b.i64(-INDEX_ABS_MAX), b.i64(INDEX_ABS_MAX));
    let mut all = Vec::new();
    for one in all_ends {
        let low = b.icmp(IntPredicate::Sge, one.low, least);
        let high = b.icmp(IntPredicate::Sle, one.high, most);
        all.extend([low, high]);
    }
    let trips = b.body.operand(lp, 0);
    let long = b.unit.types.int(64);
    let trips = match b.body.ty(trips) == long {
        true => trips,
        false => b.cast(CastOp::ZExt, trips, long),
    };
    for group in &plan.reads {
        let ends = range_of(all_ends, group);
        let span = b.sub(ends.high, ends.low);
        let twice = b.add(span, span);
        let each = b.i64(group.indices.len() as i64);
        let reads = b.mul(trips, each);
        all.push(b.icmp(IntPredicate::Ult, twice, reads));
        let read = emit_touched_range(b, group, ends);
        for write in &plan.writes {
            if is_planted(Mutant::IndexCopyClobberUnchecked) {
                continue;
            }
            let written = emit_touched_range(b, write, range_of(all_ends, write));
            let before = b.icmp(IntPredicate::Ule, read.1, written.0);
            let behind = b.icmp(IntPredicate::Ule, written.1, read.0);
            all.push(b.binary(BinaryOp::Or, before, behind));
        }
    }
    let bit = b.unit.types.int(1);
    let settled = all
        .into_iter()
        .map(|one| b.value(OpKind::Freeze, &[one], bit));
    let settled: Vec<Value> = settled.collect();
    settled
        .into_iter()
        .reduce(|a, c| b.binary(BinaryOp::And, a, c))
        .unwrap_or_else(|| b.bool(false))
}

/// Emits the offsets from the base to the first byte and to the end of a group.
fn emit_byte_range(b: &mut Builder<'_>, group: &AccessGroup, ends: &IndexRange) -> (Value, Value) {
    let scale = b.i64(group.scale);
    let end = match is_planted(Mutant::IndirectCopyTooShort) {
        true => group.low,
        false => group.high,
    };
    let (low, high) = (b.i64(group.low), b.i64(end));
    let first = b.mul(ends.low, scale);
    let last = b.mul(ends.high, scale);
    (b.add(first, low), b.add(last, high))
}

/// Emits the addresses of the first byte and of the end of a group.
fn emit_touched_range(
    b: &mut Builder<'_>,
    group: &AccessGroup,
    ends: &IndexRange,
) -> (Value, Value) {
    let (first, last) = emit_byte_range(b, group, ends);
    (
        address_outside_object(b, group.base, first),
        address_outside_object(b, group.base, last),
    )
}

/// Emits an address without `inbounds`, which may lie outside the object.
fn address_outside_object(b: &mut Builder<'_>, base: Value, bytes: Value) -> Value {
    let address = b.byte_addr(base, bytes);
    b.set_flags(address, Flags::NONE);
    address
}

/// Emits a copy of a group's range; returns the block and the address in the block that corresponds to the
/// base.
fn emit_copy(b: &mut Builder<'_>, group: &AccessGroup, ends: &IndexRange) -> (Value, Value) {
    let (first, last) = emit_byte_range(b, group, ends);
    let from = address_outside_object(b, group.base, first);
    let bytes = b.sub(last, first);
    let malloc = gradus_edit::declare_malloc(b.unit);
    let call = b.call(malloc, &[bytes]);
    let block = b.body.result(call);
    let memcpy = gradus_edit::declare_memcpy(b.unit);
    let no = b.bool(false);
    b.call(memcpy, &[block, from, bytes, no]);
    let zero = b.i64(0);
    let back = b.sub(zero, first);
    (block, address_outside_object(b, block, back))
}

/// Redirects a load of a group, at an offset from the address of its index, to the copy.
fn redirect_load(b: &mut Builder<'_>, load: Op, offset: i64, group: &AccessGroup, root: Value) {
    let mut chain = Vec::new();
    let mut at = b.body.operand(load, 0);
    while at != group.base
        && let Some(op) = b.body.def_op(at)
    {
        chain.push(op);
        at = b.body.operand(op, 0);
    }
    b.set_insertion_before(load);
    let mut address = root;
    for op in chain.into_iter().rev() {
        let kind = b.body.kind(op).clone();
        let (index, ty) = (b.body.operand(op, 1), b.body.ty(address));
        address = b.value(kind, &[address, index], ty);
    }
    b.body.set_operand(load, 0, address);
    // The block starts at the first accessed address, which may have any alignment.
    let places = group.scale | (offset - group.low);
    if let OpKind::Load(access) = &mut b.body.ops[load].kind {
        let even = 1u32 << places.trailing_zeros().min(4);
        access.align_bytes = access.align_bytes.min(even);
    }
}
