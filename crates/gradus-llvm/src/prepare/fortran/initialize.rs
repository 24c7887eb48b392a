//! Expands flang's default initialisation of variables of derived types.
//!
//! If components have default values, `_FortranAInitialize(descriptor)` writes the values into each element
//! of an array. A constant table ([`crate::prepare::fortran::type_info`]) lists the values. The call becomes one copy of a
//! constant per component, which differentiation handles; for an allocatable or pointer component the
//! constant is the descriptor of an unallocated or null one. Types with procedure components or with
//! allocatable components of derived type, and descriptors from outside the function stay calls.

use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::specialise::Specialisation;
use crate::prepare::fortran::type_info::DefaultValue;
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Host {
    /// Expands the calls.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_initialisations(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranAInitialize", 3) {
            unsafe {
                let descriptor = LLVMGetOperand(call, 0);
                let left = StoredMembers::in_variable(descriptor);
                let shape = left.and_then(|left| Some((left.rank()?, left.derived()?)));
                let Some((rank, ty)) = shape else { continue };
                if let Some(initial) = self.initial_values(ty) {
                    self.fill(call, None, &initial, (rank, 0))?;
                    LLVMInstructionEraseFromParent(call);
                }
            }
        }
        Ok(())
    }

    /// Emits copies of default values into each element of a call's first operand, in front of the call. At
    /// run time the copies are skipped if `state`, the `STAT` value of an allocation, is nonzero. A nonzero
    /// `dense` is the element size in bytes of a contiguous array.
    ///
    /// # Safety
    /// All are live values of the module.
    pub(super) unsafe fn fill(
        &mut self,
        call: LLVMValueRef,
        state: Option<LLVMValueRef>,
        initial: &[DefaultValue],
        (rank, dense): (u64, u64),
    ) -> Result<(), Diagnostic> {
        for value in initial {
            let fill = Specialisation::new("initialise", &[rank, value.bytes, dense]);
            let function = self.runtime_function(&fill)?;
            unsafe {
                let long = LLVMInt64TypeInContext(self.ctx);
                let int = LLVMInt32TypeInContext(self.ctx);
                let offset = LLVMConstInt(long, value.offset, 0);
                let state = state.unwrap_or_else(|| LLVMConstInt(int, 0, 0));
                let given = [LLVMGetOperand(call, 0), offset, value.value, state];
                self.call_before(call, function, &given);
            }
        }
        Ok(())
    }
}
