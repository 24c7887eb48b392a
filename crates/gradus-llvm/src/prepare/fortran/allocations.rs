//! Expands flang's runtime calls for `ALLOCATE` and `DEALLOCATE` of allocatable variables.
//!
//! flang calls the runtime for statements with `SOURCE`, `MOLD` or `STAT`, and for variables of derived
//! types. The calls set the bounds of each dimension (`_FortranAAllocatableSetBounds`, or `…ApplyMold`,
//! which copies the bounds of a variable), allocate (`_FortranAAllocatableAllocate`), and copy the source
//! (`…AllocateSource`). Allocation initialises a variable of a derived type with the default values of the
//! type. Deallocation (`_FortranAAllocatableDeallocate`) frees the allocatable components before the
//! variable's own memory. A failing statement returns its `STAT` value, or ends the program. Statements
//! with an `ERRMSG` and possibly polymorphic variables stay calls.

use crate::host::module::Host;
use crate::prepare::fortran::calls::described_operand;
use crate::prepare::fortran::descriptor_analysis::{StoredMembers, constant_int};
use crate::prepare::fortran::element_layout::Element;
use crate::prepare::fortran::specialise::{Constant, Specialisation};
use crate::prepare::fortran::type_info::{DefaultValue, Type};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// An allocation: rank, element size in bytes, and the derived type, if the element has one.
pub(super) type AllocationShape = (u64, u64, Option<Type>);

impl Host {
    /// Expands allocations without a source, and deallocations.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_allocations(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAAllocatableAllocate", 7) {
            unsafe {
                let state = returns_stat(call, 2, 3);
                self.expand_allocation(call, describe_first_operand(call), state, false)?;
            }
        }
        for call in self.calls_of("_FortranAAllocatableDeallocate", 5) {
            unsafe {
                let Some((rank, bytes, ty)) = describe_first_operand(call) else {
                    continue;
                };
                let offsets = ty.map_or(Some(Vec::new()), |ty| ty.freed_offsets());
                if let (Some(state), Some(offsets)) = (returns_stat(call, 1, 2), offsets) {
                    self.free_components(call, rank, bytes, &offsets)?;
                    let delete = Specialisation::new("deallocate", &[state.into()]);
                    self.replace_calls(&delete, &[call])?;
                }
            }
        }
        Ok(())
    }

    /// Expands an allocation of a described variable, if its description and its use of `STAT` are known.
    /// `points` is true for a pointer.
    ///
    /// # Safety
    /// `call` is a live call of the module, and the type in `made` belongs to the same module.
    pub(super) unsafe fn expand_allocation(
        &mut self,
        call: LLVMValueRef,
        made: Option<AllocationShape>,
        state: Option<bool>,
        points: bool,
    ) -> Result<(), Diagnostic> {
        let (Some((rank, bytes, ty)), Some(state)) = (made, state) else {
            // Not an error: the call stays a library call.
            return Ok(());
        };
        let initial = match ty {
            Some(ty) => unsafe { self.initial_values(ty) },
            None => Some(Vec::new()),
        };
        let Some(initial) = initial else {
            // Not an error: the call stays a library call.
            return Ok(());
        };
        let new = Specialisation::new("allocate", &[rank, bytes, state.into(), points.into()]);
        unsafe { self.allocate(call, &new, (rank, bytes), &initial) }
    }

    /// Replaces a call by an allocation of elements of so many bytes, and the default initialisation of the
    /// elements.
    unsafe fn allocate(
        &mut self,
        call: LLVMValueRef,
        new: &Specialisation,
        (rank, bytes): (u64, u64),
        initial: &[DefaultValue],
    ) -> Result<(), Diagnostic> {
        let function = self.runtime_function(new)?;
        unsafe {
            let state = self.call_before(call, function, &[LLVMGetOperand(call, 0)]);
            self.fill(call, Some(state), initial, (rank, bytes))?;
            LLVMReplaceAllUsesWith(call, state);
            LLVMInstructionEraseFromParent(call);
        }
        Ok(())
    }
}

/// Returns the description of the first operand of an allocation or deallocation.
unsafe fn describe_first_operand(call: LLVMValueRef) -> Option<AllocationShape> {
    unsafe { describe(&StoredMembers::in_dummy_argument(LLVMGetOperand(call, 0))?) }
}

/// Returns the allocation that the stores into a descriptor describe.
///
/// # Safety
/// The stored values belong to a live module.
pub(super) unsafe fn describe(left: &StoredMembers) -> Option<AllocationShape> {
    unsafe {
        let (rank, code) = (left.rank()?, left.element()?);
        match Element::of(code) {
            Some(element) => Some((rank, element.size(), None)),
            None if left.has_declared_type(true) => {
                let ty = left.derived()?;
                Some((rank, ty.size()?, Some(ty)))
            }
            None => None,
        }
    }
}

/// Returns whether a statement returns a `STAT` value; `None` if the statement also returns a message.
///
/// # Safety
/// `call` is a live call with these operands.
pub(super) unsafe fn returns_stat(call: LLVMValueRef, state: u32, message: u32) -> Option<bool> {
    unsafe {
        let gives = constant_int(LLVMGetOperand(call, state))? != 0;
        (!gives || LLVMIsNull(LLVMGetOperand(call, message)) != 0).then_some(gives)
    }
}

/// Returns the rank of a mold. A scalar mold leaves the bounds alone.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableApplyMold`.
pub(super) unsafe fn mold_constants(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        let (of, source) = described_operand(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        fits.then(|| vec![Constant::Number(of)])
    }
}

/// Returns the constants of an allocation with a source.
///
/// # Safety
/// `call` is a live call of `_FortranAAllocatableAllocateSource`.
pub(super) unsafe fn source_constants(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let (rank, element) = described_operand(call, 0)?;
        let (of, source) = described_operand(call, 1)?;
        let fits = source == element && (of == rank || of == 0);
        let state = returns_stat(call, 2, 3)?;
        fits.then(|| sourced(rank, element, of < rank, state, false))
    }
}

/// Returns the trailing arguments of the body `allocate_source`.
pub(super) fn sourced(
    rank: u64,
    element: Element,
    spread: bool,
    state: bool,
    points: bool,
) -> Vec<Constant> {
    let number = |is: bool| Constant::Number(is.into());
    vec![
        Constant::Number(rank),
        Constant::Element(element),
        number(spread),
        number(state),
        number(points),
    ]
}
