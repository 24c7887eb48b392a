//! Constants of flang's transformational functions (`SPREAD`, `RESHAPE`, `PACK`, …).
//!
//! flang passes the descriptor of the result first. The result's rank and type are stored there in front of
//! the call, although the library writes them again.

use crate::prepare::fortran::calls::described_operand;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::specialise::Constant;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Returns the rank and the element of the result.
///
/// # Safety
/// `call` is a live call whose first operand is a descriptor.
pub(super) unsafe fn result(call: LLVMValueRef) -> Option<Vec<Constant>> {
    let (rank, element) = unsafe { described_operand(call, 0)? };
    Some(vec![Constant::Number(rank), Constant::Element(element)])
}

/// Returns the element of the result.
///
/// # Safety
/// `call` is a live call whose first operand is a descriptor.
pub(super) unsafe fn element(call: LLVMValueRef) -> Option<Vec<Constant>> {
    let (_, element) = unsafe { described_operand(call, 0)? };
    Some(vec![Constant::Element(element)])
}

/// Returns the ranks of the result, the source and the pad, and the element.
///
/// # Safety
/// `call` is a live call of `_FortranAReshape`.
pub(super) unsafe fn reshape(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        Some(vec![
            Constant::Number(rank),
            Constant::Number(rank_of(call, 1)?),
            Constant::Number(rank_or_absent(call, 3)?),
            Constant::Element(element),
        ])
    }
}

/// Returns the source's rank and element, and the mask's rank and size.
///
/// # Safety
/// `call` is a live call of `_FortranAPack`.
pub(super) unsafe fn pack(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (_, element) = described_operand(call, 0)?;
        let (mask_rank, mask_size) = (rank_of(call, 2)?, size_of(call, 2));
        let rank = match mask_rank {
            0 => rank_of(call, 1)?,
            rank => rank,
        };
        Some(vec![
            Constant::Number(rank),
            Constant::Element(element),
            Constant::Number(mask_rank),
            Constant::Number(mask_size),
        ])
    }
}

/// Returns the result's rank and element, the mask's size, and the field's rank.
///
/// # Safety
/// `call` is a live call of `_FortranAUnpack`.
pub(super) unsafe fn unpack(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        Some(vec![
            Constant::Number(rank),
            Constant::Element(element),
            Constant::Number(size_of(call, 2)),
            Constant::Number(rank_of(call, 3)?),
        ])
    }
}

/// Returns the result's rank and element, and the rank of the shift.
///
/// # Safety
/// `call` is a live call of `_FortranACshift`.
pub(super) unsafe fn cshift(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let mut constants = result(call)?;
        constants.push(Constant::Number(rank_of(call, 2)?));
        Some(constants)
    }
}

/// Returns the result's rank and element, and the ranks of the shift and the boundary.
///
/// # Safety
/// `call` is a live call of `_FortranAEoshift`.
pub(super) unsafe fn eoshift(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let mut constants = cshift(call)?;
        constants.push(Constant::Number(rank_or_absent(call, 3)?));
        Some(constants)
    }
}

/// Returns the rank of an operand, which a dummy argument has from its callers.
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn rank_of(call: LLVMValueRef, operand: u32) -> Option<u64> {
    unsafe { StoredMembers::in_dummy_argument(LLVMGetOperand(call, operand))?.rank() }
}

/// Like [`rank_of`]; 0 for an absent optional operand.
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn rank_or_absent(call: LLVMValueRef, operand: u32) -> Option<u64> {
    match unsafe { LLVMIsNull(LLVMGetOperand(call, operand)) } {
        0 => unsafe { rank_of(call, operand) },
        _ => Some(0),
    }
}

/// Returns the bytes of an element of an operand; 0 if unknown.
///
/// # Safety
/// `call` is a live call with such an operand.
pub(super) unsafe fn size_of(call: LLVMValueRef, operand: u32) -> u64 {
    let code = unsafe {
        StoredMembers::in_dummy_argument(LLVMGetOperand(call, operand))
            .and_then(|left| left.element())
    };
    let element = code.and_then(Element::of);
    element.map_or(0, |element| element.size())
}
