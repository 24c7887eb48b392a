//! The C library's memory functions, as derivatives call them.

use gradus_ir::{AttrSet, FuncId, Unit};

/// `malloc`.
pub fn malloc_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long]);
    unit.declare("malloc", ty, AttrSet::default())
}

/// `calloc`.
pub fn calloc_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let ty = unit.types.func(ptr, vec![long, long]);
    unit.declare("calloc", ty, AttrSet::default())
}

/// `free`.
pub fn free_function(unit: &mut Unit) -> FuncId {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    let ty = unit.types.func(void, vec![ptr]);
    unit.declare("free", ty, AttrSet::default())
}

/// `llvm.memset`, with a 64-bit length.
pub fn memset_function(unit: &mut Unit) -> FuncId {
    let (ptr, byte, long) = (unit.types.ptr(), unit.types.int(8), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, byte, long, bit]);
    unit.declare("llvm.memset.p0.i64", ty, AttrSet::default())
}

/// `llvm.memcpy`, with a 64-bit length.
pub fn memcpy_function(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let ty = unit.types.func(void, vec![ptr, ptr, long, bit]);
    unit.declare("llvm.memcpy.p0.p0.i64", ty, AttrSet::default())
}
