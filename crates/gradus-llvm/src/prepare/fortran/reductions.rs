//! Constants of flang's reductions (`SUM`, `MAXLOC`, `MATMUL`, …).

use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::specialise::Constant;
use crate::prepare::fortran::transformational::{rank_of, rank_or_absent, size_of};
use llvm_sys::core::LLVMGetOperand;
use llvm_sys::prelude::LLVMValueRef;

/// Type codes of descriptors (`CFI_type_…`).
const FLOAT: u64 = 27;
const DOUBLE: u64 = 28;

/// Returns the ranks of the array and of its mask, and the size of the mask's elements.
///
/// # Safety
/// `call` is a live call with such operands.
pub(super) unsafe fn masked(call: LLVMValueRef, array: u32, mask: u32) -> Option<Vec<Constant>> {
    unsafe {
        Some(vec![
            Constant::Number(rank_of(call, array)?),
            Constant::Number(rank_or_absent(call, mask)?),
            Constant::Number(size_of(call, mask)),
        ])
    }
}

/// Like [`masked`], for a reduction of single-precision numbers along a dimension.
///
/// # Safety
/// `call` is a live call with the array as its second operand.
pub(super) unsafe fn float_along(call: LLVMValueRef, mask: u32) -> Option<Vec<Constant>> {
    unsafe { has_type(call, FLOAT)?.then(|| masked(call, 1, mask))? }
}

/// Like [`masked`], for a reduction of double-precision numbers along a dimension.
///
/// # Safety
/// `call` is a live call with the array as its second operand.
pub(super) unsafe fn double_along(call: LLVMValueRef, mask: u32) -> Option<Vec<Constant>> {
    unsafe { has_type(call, DOUBLE)?.then(|| masked(call, 1, mask))? }
}

/// Returns the rank of the array of a single-precision norm along a dimension.
///
/// # Safety
/// `call` is a live call of `_FortranANorm2Dim`.
pub(super) unsafe fn norm_float(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe { has_type(call, FLOAT)?.then(|| Some(vec![Constant::Number(rank_of(call, 1)?)]))? }
}

/// Returns the rank of the array of a double-precision norm along a dimension.
///
/// # Safety
/// `call` is a live call of `_FortranANorm2Dim`.
pub(super) unsafe fn norm_double(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe { has_type(call, DOUBLE)?.then(|| Some(vec![Constant::Number(rank_of(call, 1)?)]))? }
}

/// Returns the ranks of both factors, and whether the first is transposed.
///
/// # Safety
/// `call` is a live call of a product of matrices.
pub(super) unsafe fn product(call: LLVMValueRef, transposed: u64) -> Option<Vec<Constant>> {
    unsafe {
        Some(vec![
            Constant::Number(rank_of(call, 1)?),
            Constant::Number(rank_of(call, 2)?),
            Constant::Number(transposed),
        ])
    }
}

/// Returns whether the second operand has elements of the type.
unsafe fn has_type(call: LLVMValueRef, code: u64) -> Option<bool> {
    unsafe {
        let left = StoredMembers::in_dummy_argument(LLVMGetOperand(call, 1))?;
        Some(left.element()? == code)
    }
}
