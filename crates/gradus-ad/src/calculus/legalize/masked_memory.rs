//! Scalarisation of gathers and scatters: accesses per lane, each under its bit of the mask.
//!
//! A vector of addresses computed from indices becomes one address per lane. No later pass then sees a vector
//! of pointers.

use gradus_ir::externals::MaskedFn;
use gradus_ir::{Access, Builder, MetaId, OpKind, Region, Type, TypeId, Value};

/// Shape of a vector.
struct Lanes {
    elem: TypeId,
    len: u32,
}

/// Returns the result of a gather, or nothing for a scatter; `None` for other functions, and for scalable
/// vectors. `args` is `ptrs, [align,] mask, passthru` or `value, ptrs, [align,] mask`.
pub(crate) fn scalarize(
    b: &mut Builder<'_>,
    f: MaskedFn,
    args: &[Value],
    meta: Option<MetaId>,
) -> Option<Option<Value>> {
    match (f, args) {
        (MaskedFn::Gather, [ptrs, .., mask, otherwise]) => {
            let lanes = lanes(b, *otherwise)?;
            let mut vector = *otherwise;
            for k in 0..lanes.len {
                vector = gather_lane(b, &lanes, k, (*ptrs, *mask, vector), meta);
            }
            Some(Some(vector))
        }
        (MaskedFn::Scatter, [value, ptrs, .., mask]) => {
            let lanes = lanes(b, *value)?;
            // Later lanes overwrite earlier lanes with an equal address, as LLVM specifies.
            for k in 0..lanes.len {
                scatter_lane(b, k, (*value, *ptrs, *mask), meta, &lanes);
            }
            Some(None)
        }
        _ => None,
    }
}

fn lanes(b: &Builder<'_>, vector: Value) -> Option<Lanes> {
    match *b.unit.types.get(b.body.ty(vector)) {
        Type::Vector {
            elem,
            len,
            scalable: false,
        } => Some(Lanes { elem, len }),
        _ => None,
    }
}

fn gather_lane(
    b: &mut Builder<'_>,
    lanes: &Lanes,
    k: u32,
    (ptrs, mask, vector): (Value, Value, Value),
    meta: Option<MetaId>,
) -> Value {
    let old = lane(b, vector, k);
    let (value, then, otherwise) = branch(b, mask, k, &[lanes.elem]);
    let place = b.set_insertion_end(then);
    let ptr = address(b, ptrs, k);
    let load = b.op(OpKind::Load(Access::plain(1)), &[ptr], &[lanes.elem], 0);
    b.set_meta(load, meta);
    let loaded = b.body.result(load);
    b.yield_(&[loaded]);
    b.set_insertion_end(otherwise);
    b.yield_(&[old]);
    b.restore_insertion_point(place);
    let new = b.body.result(value);
    let (at, ty) = (b.i64(i64::from(k)), b.body.ty(vector));
    b.value(OpKind::InsertElement, &[vector, new, at], ty)
}

fn scatter_lane(
    b: &mut Builder<'_>,
    k: u32,
    (value, ptrs, mask): (Value, Value, Value),
    meta: Option<MetaId>,
    lanes: &Lanes,
) {
    let (_, then, otherwise) = branch(b, mask, k, &[]);
    let place = b.set_insertion_end(then);
    let ptr = address(b, ptrs, k);
    let at = b.i64(i64::from(k));
    let elem = b.value(OpKind::ExtractElement, &[value, at], lanes.elem);
    let store = b.op(OpKind::Store(Access::plain(1)), &[elem, ptr], &[], 0);
    b.set_meta(store, meta);
    b.yield_(&[]);
    b.set_insertion_end(otherwise);
    b.yield_(&[]);
    b.restore_insertion_point(place);
}

/// Emits an `if` on bit `k` of the mask.
fn branch(
    b: &mut Builder<'_>,
    mask: Value,
    k: u32,
    results: &[TypeId],
) -> (gradus_ir::Op, Region, Region) {
    let bit = lane(b, mask, k);
    b.if_(bit, results)
}

/// Extracts lane `k` of a vector.
fn lane(b: &mut Builder<'_>, vector: Value, k: u32) -> Value {
    let ty = b.unit.types.scalar(b.body.ty(vector));
    let at = b.i64(i64::from(k));
    b.value(OpKind::ExtractElement, &[vector, at], ty)
}

/// Emits address `k` of a vector of addresses.
fn address(b: &mut Builder<'_>, ptrs: Value, k: u32) -> Value {
    let Some(op) = b.body.def_op(ptrs) else {
        return lane(b, ptrs, k);
    };
    let OpKind::Addr { source } = *b.body.kind(op) else {
        return lane(b, ptrs, k);
    };
    let flags = b.body.ops[op].flags;
    let operands: Vec<Value> = b.body.operands(op).collect();
    let single: Vec<Value> = operands
        .into_iter()
        .map(|v| match lanes(b, v) {
            Some(_) => lane(b, v, k),
            None => v,
        })
        .collect();
    let ty = b.unit.types.scalar(b.body.ty(ptrs));
    let value = b.value(OpKind::Addr { source }, &single, ty);
    b.set_flags(value, flags);
    value
}
