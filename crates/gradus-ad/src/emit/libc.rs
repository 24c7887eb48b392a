//! Declarations of the C library's memory functions, and allocation of zeroed blocks, for derivatives.

use crate::emit::builder::{DerivativeBuilder, widen};
use gradus_ir::externals::{AllocationSize, DERIVATIVE_BLOCK_NAME};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AttrSet, Body, Builder, FuncId, IntPredicate, Op, Unit, Value};

/// Declares `malloc`.
pub fn malloc_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long]);
    unit.declare("malloc", ty, AttrSet::default())
}

/// Declares `calloc`.
pub fn calloc_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long, long]);
    unit.declare("calloc", ty, AttrSet::default())
}

/// Declares `free`.
pub fn free_function(unit: &mut Unit) -> FuncId {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let ty = unit.types.func(void, vec![ptr]);
    unit.declare("free", ty, AttrSet::default())
}

/// Declares `llvm.memset` with a 64-bit length.
pub fn memset_function(unit: &mut Unit) -> FuncId {
    let (ptr, byte, long) = (unit.types.ptr(), unit.types.int(8), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, byte, long, bit]);
    unit.declare("llvm.memset.p0.i64", ty, AttrSet::default())
}

/// Declares `llvm.memcpy` with a 64-bit length.
pub fn memcpy_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, ptr, long, bit]);
    unit.declare("llvm.memcpy.p0.p0.i64", ty, AttrSet::default())
}

/// Allocates `bytes` bytes of heap memory that is private to the derivative.
pub fn private_block(b: &mut Builder<'_>, bytes: Value) -> Value {
    let malloc = malloc_function(b.unit);
    let call = b.call(malloc, &[bytes]);
    mark_private(b.body, call)
}

/// Allocates `bytes` bytes of zeroed heap memory that is private to the derivative.
pub fn zeroed_private_block(out: &mut DerivativeBuilder<'_>, bytes: Value) -> Value {
    if is_planted(Mutant::HeapShadowNotZeroed) {
        return private_block(&mut out.build(), bytes);
    }
    let calloc = calloc_function(out.unit);
    let one = out.build().i64(1);
    let call = out.build().call(calloc, &[one, bytes]);
    mark_private(&mut out.body, call)
}

/// Marks an allocation as the derivative's by the name [`DERIVATIVE_BLOCK_NAME`].
fn mark_private(body: &mut Body, call: Op) -> Value {
    body.ops[call].name = Some(DERIVATIVE_BLOCK_NAME.into());
    body.result(call)
}

/// Returns the size in bytes of a block's shadow, or zero if `block` is null. Callers use the function if the
/// program tests the block for null.
pub fn bytes_unless_null(out: &mut DerivativeBuilder<'_>, block: Value, bytes: Value) -> Value {
    let ptr = out.body.ty(block);
    let long = out.unit.types.int(64);
    let null = out.build().zero(ptr);
    let given = out.build().icmp(IntPredicate::Ne, block, null);
    let bytes = widen(out, bytes);
    let none = out.build().zero(long);
    out.build().select(given, bytes, none)
}

/// Returns the size in bytes of a block's shadow. If the program declares `malloc_usable_size`, the result is
/// the usable size of the block, because the program may copy all usable bytes when it resizes blocks.
pub fn usable_bytes(out: &mut DerivativeBuilder<'_>, block: Value, bytes: Value) -> Value {
    let room = out.unit.function("malloc_usable_size");
    let Some(room) = room.filter(|func| !out.unit.functions[*func].defined) else {
        return bytes;
    };
    let call = out.build().call(room, &[block]);
    let room = out.body.result(call);
    widen(out, room)
}

/// Returns the arguments of an allocation whose product is the size; `None` if the arguments do not determine
/// the size.
pub fn size_factors(size: AllocationSize, args: &[Value]) -> Option<Vec<Value>> {
    let arg = |i: u8| args[usize::from(i)];
    match size {
        AllocationSize::Argument(i) => Some(vec![arg(i)]),
        AllocationSize::Product(i, j) => Some(vec![arg(i), arg(j)]),
        AllocationSize::Unknown => None,
    }
}

/// Emits the product of sizes, in 64 bits.
pub fn emit_product(out: &mut DerivativeBuilder<'_>, factors: &[Value]) -> Value {
    let mut product = None;
    for &factor in factors {
        let factor = widen(out, factor);
        product = Some(match product {
            Some(product) => out.build().mul(product, factor),
            None => factor,
        });
    }
    let Some(product) = product else {
        unreachable!("a size has at least one factor");
    };
    product
}
