//! Splits shared-memory loads at clamped indices into two loads.
//!
//! A stencil thread loads its neighbour's element, clamped to a limit. Neighbouring threads load contiguous
//! elements, except threads at the limit, which all load the limit's element.
//!
//! ```text
//! v = s[max(t - 1, low)]   →   u = s[low]; v = t - 1 >= low ? s[t - 1] : u
//! ```
//!
//! A vector of the first form is a gather; the second form is a contiguous load. Every thread loads both
//! elements. The address of the limit's element is clamped to the array. The array is padded at both ends,
//! and index bounds prove the neighbour's element inside the padded array.
//!
//! Place: before [`crate::fission`], which emits the thread loops. A thread may load an element that another
//! thread writes, but does not use the result. The limit's element is loaded before the load's anchor,
//! outside the thread loop; no op in the anchor may write the element.

use crate::addresses::thread_disjointness::sum_bounds;
use crate::addresses::thread_strides::{ThreadStrides, ValueStride};
use crate::blocks::blocks_to_lower;
use crate::blocks::skeleton::Skeleton;
use crate::{Options, PassOutcome};
use gradus_analysis::{Alias, BaseValue, PassContext, Poly};
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{
    Access, AllocaInfo, AllocaStorage, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind,
    Unit, Value,
};
use std::collections::HashMap;

/// Padding at each end of an array, in bytes.
const PADDING_BYTES: u64 = 64;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let blocks = blocks_to_lower(body);
    if !options.clamp_split || blocks.is_empty() {
        return PassOutcome::default();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let mut found = Vec::new();
    for block in blocks {
        // Not an error: fission reports a block that cannot be split.
        if let Ok(spine) = Skeleton::of(unit, body, block, &[]) {
            let steps = ThreadStrides::of(unit, body, block);
            let find = ClampFinder {
                alias: &alias,
                facts,
                spine,
                steps,
            };
            let region = body.op_regions(block)[0];
            found.extend(
                body.walk(region)
                    .filter_map(|op| find.match_clamped_load(op)),
            );
        }
    }
    let mut longer: HashMap<Op, Value> = HashMap::new();
    for read in &found {
        let array = longer.entry(read.array.op);
        let array = *array.or_insert_with(|| pad_array(unit, body, &read.array));
        split_load(unit, body, read, array);
    }
    PassOutcome::default()
}

/// A shared array of constant size.
#[derive(Clone, Copy, Debug)]
struct Array {
    op: Op,
    bytes: u64,
}

/// A load at a clamped index.
#[derive(Debug)]
struct ClampedLoad {
    load: Op,
    access: Access,
    /// The clamp is a minimum: the limit is an upper bound.
    upper: bool,
    /// The unclamped index and the limit, both integers of the same type.
    place: Value,
    limit: Value,
    /// The address computation, and the number of the clamped operand.
    addr: Op,
    operand: usize,
    array: Array,
    /// The op of a skeleton region that is or contains the load.
    anchor: Op,
    /// Byte offset of the limit's element in the array: a constant, and integers with strides.
    offset: i64,
    terms: Vec<(Value, i64)>,
}

struct ClampFinder<'a> {
    alias: &'a Alias<'a>,
    facts: &'a PassContext<'a>,
    spine: Skeleton,
    steps: ThreadStrides<'a>,
}

impl ClampFinder<'_> {
    fn match_clamped_load(&self, load: Op) -> Option<ClampedLoad> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let OpKind::Load(access) = *body.kind(load) else {
            return None;
        };
        let addr = body
            .def_op(body.operand(load, 0))
            .filter(|_| access.is_plain())?;
        let bytes = unit.layout.store_bytes(unit, body.ty(body.result(load)));
        let anchor = self.spine.anchor(load)?;
        let array = self.shared_array(body.operand(load, 0))?;
        let (mut base, mut offset, mut terms) = (body.result(addr), 0i64, Vec::new());
        while base != body.result(array.op) {
            let address = unit.layout.address(unit, body, body.def_op(base)?)?;
            offset = offset.checked_add(address.offset)?;
            terms.extend(address.terms);
            base = address.base;
        }
        let whole = |n: i64| n % bytes as i64 == 0;
        let even = whole(offset) && terms.iter().all(|(_, stride)| whole(*stride));
        (even && array.bytes.is_multiple_of(bytes)).then_some(())?;
        let one = |operand: usize| {
            let index = body.operand(addr, operand);
            let mut same = terms.iter().filter(|(v, _)| *v == index);
            let is_next = same.next().is_some_and(|(_, n)| *n == bytes as i64);
            (is_next && same.next().is_none()).then_some(())?;
            Some((operand, index, self.match_clamp(index)?))
        };
        let (operand, index, (upper, place, limit)) =
            (1..body.operand_count(addr)).find_map(one)?;
        let next = self.offset_with_index(offset, &terms, index, place)?;
        let (low, high) = sum_bounds(self.alias, &next)?;
        let margin = i128::from(PADDING_BYTES);
        let fits = low >= -margin && high + i128::from(bytes) <= i128::from(array.bytes) + margin;
        let terms = terms.into_iter().map(|(v, n)| match v == index {
            true => Some((self.available_before(limit, anchor)?, n)),
            false => Some((self.available_before(v, anchor)?, n)),
        });
        let terms: Vec<_> = terms.collect::<Option<_>>()?;
        (fits && self.is_unmodified_in_anchor(load, anchor)).then_some(ClampedLoad {
            load,
            access,
            upper,
            place,
            limit,
            addr,
            operand,
            array,
            anchor,
            offset,
            terms,
        })
    }

    /// The shared array that an address points into.
    fn shared_array(&self, pointer: Value) -> Option<Array> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let BaseValue::Value(root) = self.alias.forms.of_pointer(unit, body, pointer).root else {
            return None;
        };
        let op = body.def_op(root)?;
        let OpKind::Alloca(info) = *body.kind(op) else {
            return None;
        };
        let usual =
            info.storage == AllocaStorage::Shared && u64::from(info.align_bytes) <= PADDING_BYTES;
        let count = u64::try_from(body.as_int(unit, body.operand(op, 0))?).ok()?;
        let bytes = unit.layout.size_bytes(unit, info.ty).checked_mul(count)?;
        (usual && bytes < 1 << 30).then_some(Array { op, bytes })
    }

    /// Matches `min` or `max` of a thread's own index (stride 1) and a uniform limit. Returns whether the
    /// limit is an upper bound, the index, and the limit.
    fn match_clamp(&self, index: Value) -> Option<(bool, Value, Value)> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let mut op = body.def_op(index)?;
        if let OpKind::Cast(CastOp::SExt) = body.kind(op) {
            op = body.def_op(body.operand(op, 0))?;
        }
        let known = unit.known_callee(body, op);
        let upper = match known {
            Some(ExternalFn::Integer(IntFn::Smin)) => true,
            Some(ExternalFn::Integer(IntFn::Smax)) => false,
            _ => return None,
        };
        let args = unit.call_args(body, op);
        let step = |v: Value| self.steps.get(v)[0];
        match (step(args[0]), step(args[1])) {
            (ValueStride::Const(1), ValueStride::None) => Some((upper, args[0], args[1])),
            (ValueStride::None, ValueStride::Const(1)) => Some((upper, args[1], args[0])),
            _ => None,
        }
    }

    /// The byte offset in the array with `place` substituted for `index`.
    fn offset_with_index(
        &self,
        offset: i64,
        terms: &[(Value, i64)],
        index: Value,
        place: Value,
    ) -> Option<Poly> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let mut sum = Poly::constant(offset);
        for &(value, stride) in terms {
            let value = if value == index { place } else { value };
            let form = self.alias.forms.of_integer(unit, body, value);
            sum = sum.plus_times(&form, stride)?;
        }
        Some(sum)
    }

    /// Returns an integer, or the operand of its sign extension, if defined before an op.
    fn available_before(&self, value: Value, before: Op) -> Option<Value> {
        let body = self.alias.body;
        let Some(op) = body
            .def_op(value)
            .filter(|op| self.alias.nest.contains(before, *op))
        else {
            let made_inside = body.region_of(value).is_some_and(|r| {
                body.op_regions(before)
                    .iter()
                    .any(|of| body.is_inside(r, *of))
            });
            return (!made_inside).then_some(value);
        };
        match body.kind(op) {
            OpKind::Cast(CastOp::SExt) => self.available_before(body.operand(op, 0), before),
            _ => None,
        }
    }

    /// Returns whether no op in the anchor writes the loaded memory.
    fn is_unmodified_in_anchor(&self, load: Op, anchor: Op) -> bool {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let effects = self.facts.effects;
        let reads = effects.of_op(unit, body, load);
        let inner = body.op_regions(anchor).iter().flat_map(|r| body.walk(*r));
        let mut touched = inner.flat_map(|op| effects.of_op(unit, body, op));
        touched.all(|own| {
            let meets = |read| self.alias.may_alias_any_iteration(read, &own);
            !own.is_clobber() || !reads.iter().any(meets)
        })
    }
}

/// Replaces an array by an array padded at both ends; returns the start of the original part.
fn pad_array(unit: &mut Unit, body: &mut Body, array: &Array) -> Value {
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(array.op);
    b.loc = b.body.ops[array.op].loc;
    let byte = b.unit.types.int(8);
    let info = AllocaInfo {
        ty: b.unit.types.array(byte, array.bytes + 2 * PADDING_BYTES),
        align_bytes: PADDING_BYTES as u32,
        storage: AllocaStorage::Shared,
        inalloca: false,
    };
    let (one, ptr, margin) = (b.i64(1), b.unit.types.ptr(), b.i64(PADDING_BYTES as i64));
    let memory = b.value(OpKind::Alloca(info), &[one], ptr);
    let start = b.byte_addr(memory, margin);
    let old = b.body.result(array.op);
    b.body.replace_uses(old, start);
    b.body.erase(array.op);
    start
}

/// Emits both loads and a select.
fn split_load(unit: &mut Unit, body: &mut Body, read: &ClampedLoad, array: Value) {
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(read.anchor);
    b.loc = b.body.ops[read.load].loc;
    let loaded = b.body.result(read.load);
    let ty = b.body.ty(loaded);
    let bytes = b.unit.layout.store_bytes(b.unit, ty);
    let long = b.unit.types.int(64);
    let mut offset = b.i64(read.offset);
    for &(value, stride) in &read.terms {
        let (value, stride) = (b.cast(CastOp::SExt, value, long), b.i64(stride));
        let part = b.mul(value, stride);
        offset = b.add(offset, part);
    }
    let (first, last) = (b.i64(0), b.i64(read.array.bytes as i64 - bytes as i64));
    let below = b.icmp(IntPredicate::Slt, offset, first);
    let offset = b.select(below, first, offset);
    let above = b.icmp(IntPredicate::Sgt, offset, last);
    let offset = b.select(above, last, offset);
    let at = b.byte_addr(array, offset);
    let at_limit = b.load(ty, at);

    b.set_insertion_before(read.load);
    let mut operands: Vec<Value> = b.body.operands(read.addr).collect();
    let index = b.body.ty(operands[read.operand]);
    operands[read.operand] = b.cast(CastOp::SExt, read.place, index);
    let (kind, ptr) = (b.body.kind(read.addr).clone(), b.unit.types.ptr());
    let at = b.value(kind, &operands, ptr);
    b.set_flags(at, Flags::NONE);
    let own = b.value(OpKind::Load(read.access), &[at], ty);
    let predicate = match read.upper {
        true => IntPredicate::Sle,
        false => IntPredicate::Sge,
    };
    let within = b.icmp(predicate, read.place, read.limit);
    let value = b.select(within, own, at_limit);
    b.body.replace_uses(loaded, value);
    b.body.erase(read.load);
}
