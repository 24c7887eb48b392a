//! Declarations of the C library's memory functions and of LLVM's memory intrinsics.

use gradus_ir::{AttrSet, FuncId, TypeId, Unit};

/// Declares `malloc`.
pub fn declare_malloc(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    declare(unit, "malloc", ptr, vec![long])
}

/// Declares `calloc`.
pub fn declare_calloc(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    declare(unit, "calloc", ptr, vec![long, long])
}

/// Declares `free`.
pub fn declare_free(unit: &mut Unit) -> FuncId {
    let (ptr, void) = (unit.types.ptr(), unit.types.void());
    declare(unit, "free", void, vec![ptr])
}

/// Declares `llvm.memset` with a 64-bit length.
pub fn declare_memset(unit: &mut Unit) -> FuncId {
    let (ptr, byte, long) = (unit.types.ptr(), unit.types.int(8), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    declare(unit, "llvm.memset.p0.i64", void, vec![ptr, byte, long, bit])
}

/// Declares `llvm.memcpy` with a 64-bit length.
pub fn declare_memcpy(unit: &mut Unit) -> FuncId {
    let (ptr, long) = (unit.types.ptr(), unit.types.int(64));
    let (bit, void) = (unit.types.int(1), unit.types.void());
    let params = vec![ptr, ptr, long, bit];
    declare(unit, "llvm.memcpy.p0.p0.i64", void, params)
}

fn declare(unit: &mut Unit, name: &str, result: TypeId, params: Vec<TypeId>) -> FuncId {
    let ty = unit.types.func(result, params);
    unit.declare(name, ty, AttrSet::default())
}
