//! Functions of the C library for derivatives: zeroed private blocks and their sizes, and messages that end the program.

use crate::emit::builder::{DerivativeBuilder, widen};
use gradus_edit::{declare_calloc, declare_malloc};
use gradus_ir::externals::{AllocationSize, DERIVATIVE_BLOCK_NAME};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AttrSet, Body, Builder, FuncId, IntPredicate, Op, OpKind, Symbol, TypeId, Unit, Value,
};

/// File descriptor of standard error.
pub const STANDARD_ERROR: i128 = 2;

/// Declares a function of the C library. Returns `None` if the program defines a function of that name, or
/// declares the function with another type.
pub fn library_function(unit: &mut Unit, name: &str, ty: TypeId) -> Option<FuncId> {
    match unit.symbol(name) {
        None => Some(unit.declare(name, ty, AttrSet::default())),
        Some(Symbol::Func(func)) => {
            let known = &unit.functions[func];
            (known.ty == ty && !known.defined && known.body.is_none()).then_some(func)
        }
        Some(Symbol::Global(_)) => None,
    }
}

/// Emits the output of a text to standard error. The text is left out if the program has a `write` of its own.
pub fn emit_message(b: &mut Builder<'_>, text: Value, bytes: usize) {
    let (ptr, int, long) = (
        b.unit.types.ptr(),
        b.unit.types.int(32),
        b.unit.types.int(64),
    );
    let ty = b.unit.types.func(long, vec![int, ptr, long]);
    if let Some(write) = library_function(b.unit, "write", ty) {
        let (file, length) = (b.int(int, STANDARD_ERROR), b.i64(bytes as i64));
        b.call(write, &[file, text, length]);
    }
}

/// Emits the end of the program: a call of `abort`, or a trap if the program has an `abort` of its own.
pub fn emit_abort(b: &mut Builder<'_>) {
    let void = b.unit.types.void();
    let ty = b.unit.types.func(void, Vec::new());
    let stop = library_function(b.unit, "abort", ty);
    let stop = stop.unwrap_or_else(|| b.unit.declare("llvm.trap", ty, AttrSet::default()));
    b.call(stop, &[]);
    b.op(OpKind::Unreachable, &[], &[], 0);
}

/// Allocates `bytes` bytes of heap memory that is private to the derivative.
pub fn private_block(b: &mut Builder<'_>, bytes: Value) -> Value {
    let malloc = declare_malloc(b.unit);
    let call = b.call(malloc, &[bytes]);
    mark_private(b.body, call)
}

/// Allocates `bytes` bytes of zeroed heap memory that is private to the derivative.
pub fn zeroed_private_block(out: &mut DerivativeBuilder<'_>, bytes: Value) -> Value {
    if is_planted(Mutant::HeapShadowNotZeroed) {
        return private_block(&mut out.build(), bytes);
    }
    let calloc = declare_calloc(out.unit);
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
