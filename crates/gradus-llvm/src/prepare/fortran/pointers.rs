//! Expands flang's runtime calls for `ALLOCATE` and `DEALLOCATE` of pointers.
//!
//! See [`super::allocations`]; pointers differ in three ways. A pointer may have any previous target, and
//! flang rewrites its descriptor in front of the statement, so rank and type are derived from the stores
//! there. The library stores a footer word after the allocated memory and refuses to free memory without a
//! footer. The expansion does the same, in a function that differentiation treats as an allocator
//! ([`ALLOCATOR_SUFFIX`]). If the type of freed memory is unknown, the type is checked at run time (`require_plain_memory`).
//! Statements with an `ERRMSG` and possibly polymorphic pointers stay calls.

use super::allocations::{describe, returns_stat, sourced};
use crate::host::module::Host;
use crate::prepare::fortran::calls::{POINTERS, described_operand};
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::specialise::{Constant, RUNTIME_PREFIX, Specialisation};
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Suffix of the names of the allocating functions: the C function `payload`.
const ALLOCATOR_SUFFIX: &str = "_payload";

impl Host {
    /// Expands the statements.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_pointer_statements(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAPointerAllocate", 6) {
            unsafe {
                let left = StoredMembers::before(call, LLVMGetOperand(call, 0));
                self.expand_allocation(call, describe(&left), returns_stat(call, 1, 2), true)?;
            }
        }
        self.expand_calls(POINTERS)?;
        for call in self.calls_of("_FortranAPointerDeallocate", 5) {
            unsafe { self.expand_deallocation(call)? };
        }
        Ok(())
    }

    /// Replaces a deallocation by code that frees the components and the memory.
    unsafe fn expand_deallocation(&mut self, call: LLVMValueRef) -> Result<(), Diagnostic> {
        unsafe {
            let Some(state) = returns_stat(call, 1, 2) else {
                // Not an error: the call stays a library call.
                return Ok(());
            };
            let left = StoredMembers::in_dummy_argument(LLVMGetOperand(call, 0));
            match left.and_then(|left| describe(&left)) {
                None => {
                    let plain = Specialisation::new("require_plain_memory", &[]);
                    let plain = self.runtime_function(&plain)?;
                    self.call_before(call, plain, &[LLVMGetOperand(call, 0)]);
                }
                Some((rank, bytes, ty)) => {
                    let offsets = ty.map_or(Some(Vec::new()), |ty| ty.freed_offsets());
                    let Some(offsets) = offsets else {
                        // Not an error: the call stays a library call.
                        return Ok(());
                    };
                    self.free_components(call, rank, bytes, &offsets)?;
                }
            }
            let delete = Specialisation::new("deallocate", &[state.into()]);
            self.replace_calls(&delete, &[call])
        }
    }
}

/// Returns whether a generated function is a specialised body that is inlined.
pub(crate) fn is_specialised(name: &str) -> bool {
    name.starts_with(RUNTIME_PREFIX) && !is_allocator(name)
}

/// Returns whether a generated function acts as an allocator.
pub(crate) fn is_allocator(name: &str) -> bool {
    name.starts_with(RUNTIME_PREFIX) && name.ends_with(ALLOCATOR_SUFFIX)
}

/// Returns the constants of an allocation with a source.
///
/// # Safety
/// `call` is a live call of `_FortranAPointerAllocateSource`.
pub(super) unsafe fn source_constants(call: LLVMValueRef) -> Option<Vec<Constant>> {
    unsafe {
        let left = StoredMembers::before(call, LLVMGetOperand(call, 0));
        let (rank, bytes, _) = describe(&left)?;
        let (of, element) = described_operand(call, 1)?;
        let fits = element.size() == bytes && (of == rank || of == 0);
        let state = returns_stat(call, 2, 3)?;
        fits.then(|| sourced(rank, element, of < rank, state, true))
    }
}
