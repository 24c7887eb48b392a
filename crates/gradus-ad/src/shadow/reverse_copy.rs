//! Reversal of float copies: GIR functions that compute `t = to[i]; to[i] = 0; from[i] += t` on shadow
//! memory.
//!
//! The functions are emitted next to the derivatives that call them, with `linkonce_odr` linkage. The two
//! ends of a `memcpy` are disjoint or equal: one in-place loop is right for both cases. The ends of a
//! `memmove` may overlap: the function reads and clears all of `to` before the first addition to `from`.

use crate::emit::libc;
use crate::shadow::tangent_ops::MEMORY_SUM_FLAGS;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, Flags, FloatKind, FuncId, Linkage, Region, TypeId, Unit, Value,
};

/// Returns the function `(to, from, bytes)` for floats of one format.
pub fn reverse_copy_function(unit: &mut Unit, kind: FloatKind, overlap: bool) -> FuncId {
    let how = if overlap { "move" } else { "copy" };
    let name = format!(
        "__gradus1_{how}_back_{}",
        format!("{kind:?}").to_lowercase()
    );
    if let Some(func) = unit.function(&name) {
        return func;
    }
    let (ptr, long, void) = (unit.types.ptr(), unit.types.int(64), unit.types.void());
    let params = vec![ptr, ptr, long];
    let ty = unit.types.func(void, params.clone());
    let mut body = Body::new(&params);
    let number = unit.types.float(kind);
    build(&mut Builder::new(unit, &mut body), number, overlap);
    unit.define(name, ty, Linkage::LinkOnceOdr, body)
}

fn build(b: &mut Builder<'_>, number: TypeId, overlap: bool) {
    let (to, from, bytes) = (b.body.params()[0], b.body.params()[1], b.body.params()[2]);
    let size = b.unit.layout.size_bytes(b.unit, number);
    let size = b.i64(size as i64);
    let count = b.binary(BinaryOp::UDiv, bytes, size);
    if !overlap || is_planted(Mutant::OverlappingCopyElementwise) {
        each(b, count, |b, i| {
            let taken = take(b, number, to, i);
            accumulate_element(b, number, from, i, taken);
        });
    } else {
        let saved = libc::private_block(b, bytes);
        each(b, count, |b, i| {
            let taken = take(b, number, to, i);
            let at = b.addr(number, saved, i);
            b.store(taken, at);
        });
        each(b, count, |b, i| {
            let at = b.addr(number, saved, i);
            let taken = b.load(number, at);
            accumulate_element(b, number, from, i, taken);
        });
        let free = gradus_edit::declare_free(b.unit);
        b.call(free, &[saved]);
    }
    b.return_(None);
}

fn each(b: &mut Builder<'_>, count: Value, make: impl FnOnce(&mut Builder<'_>, Value)) {
    let (_, region): (_, Region) = b.for_(count, &[]);
    let back = b.set_insertion_end(region);
    let index = b.body.region_params(region)[0];
    make(b, index);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}

fn take(b: &mut Builder<'_>, number: TypeId, to: Value, i: Value) -> Value {
    let at = b.addr(number, to, i);
    let taken = b.load(number, at);
    let zero = b.zero(number);
    if !is_planted(Mutant::CopyKeepsAdjoints) {
        b.store(zero, at);
    }
    taken
}

fn accumulate_element(b: &mut Builder<'_>, number: TypeId, from: Value, i: Value, taken: Value) {
    let at = b.addr(number, from, i);
    let old = b.load(number, at);
    let sum = match is_planted(Mutant::CopyReplacesAdjoints) {
        true => taken,
        false => {
            b.fast_math = MEMORY_SUM_FLAGS;
            let sum = b.fadd(old, taken);
            b.fast_math = Flags::NONE;
            sum
        }
    };
    b.store(sum, at);
}
