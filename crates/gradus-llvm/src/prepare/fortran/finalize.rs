//! Expands flang's destruction of variables of derived types.
//!
//! At the end of a scope `_FortranADestroy(descriptor)` frees the allocatable components of a variable, or
//! of each element of an array. A constant table of the type ([`crate::prepare::fortran::type_info`]) lists the components. The
//! call becomes a `free` of each component's address, which differentiation handles. Types with final
//! procedures, components that are arrays of derived types with allocatable components, allocatable
//! components of derived types (possibly polymorphic), and descriptors from outside the function stay
//! calls.

use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::specialise::Specialisation;
use gradus_ir::Diagnostic;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Host {
    /// Expands the calls.
    ///
    /// # Errors
    /// LLVM's message if a replacement function cannot be parsed or linked.
    pub(super) fn expand_destructions(&mut self) -> Result<(), Diagnostic> {
        for call in self.calls_of("_FortranADestroy", 1) {
            unsafe {
                let descriptor = LLVMGetOperand(call, 0);
                let left = StoredMembers::in_variable(descriptor);
                let freed =
                    left.and_then(|left| Some((left.rank()?, left.derived()?.freed_offsets()?)));
                if let Some((rank, offsets)) = freed {
                    self.free_components(call, rank, 0, &offsets)?;
                    LLVMInstructionEraseFromParent(call);
                }
            }
        }
        Ok(())
    }

    /// Emits calls in front of a call that free the addresses at the given offsets of each element of its
    /// first operand. A nonzero `dense` is the element size in bytes of a contiguous array.
    ///
    /// # Safety
    /// All are live values of the module.
    pub(super) unsafe fn free_components(
        &mut self,
        call: LLVMValueRef,
        rank: u64,
        dense: u64,
        offsets: &[u64],
    ) -> Result<(), Diagnostic> {
        for &offset in offsets {
            let release = Specialisation::new("release", &[rank, dense]);
            let function = self.runtime_function(&release)?;
            unsafe {
                let offset = LLVMConstInt(LLVMInt64TypeInContext(self.ctx), offset, 0);
                self.call_before(call, function, &[LLVMGetOperand(call, 0), offset]);
            }
        }
        Ok(())
    }
}
