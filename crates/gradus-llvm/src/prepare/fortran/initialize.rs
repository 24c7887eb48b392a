//! Expands flang's default initialisation of variables of derived types.
//!
//! If components have default values, `_FortranAInitialize(descriptor)` writes the values into each element
//! of an array. A constant table ([`crate::prepare::fortran::type_info`]) lists the values. The call becomes one copy of a
//! constant per component, which differentiation handles; for an allocatable or pointer component the
//! constant is the descriptor of an unallocated or null one. Types with procedure components or with
//! allocatable components of derived type, and descriptors from outside the function stay calls.

use crate::host::module::Host;
use crate::prepare::fortran::descriptor_analysis::StoredMembers;
use crate::prepare::fortran::runtime_library::{RuntimeReplacement, each_element};
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
                    let fill = |bytes| RuntimeReplacement::Fill {
                        rank,
                        bytes,
                        dense: None,
                    };
                    self.fill(call, None, &initial, fill)?;
                    LLVMInstructionEraseFromParent(call);
                }
            }
        }
        Ok(())
    }

    /// Emits copies of default values into each element of a call's first operand, in front of the call. At
    /// run time the copies are skipped if `state`, the `STAT` value of an allocation, is nonzero.
    ///
    /// # Safety
    /// All are live values of the module.
    pub(super) unsafe fn fill(
        &mut self,
        call: LLVMValueRef,
        state: Option<LLVMValueRef>,
        initial: &[DefaultValue],
        fill: impl Fn(u64) -> RuntimeReplacement,
    ) -> Result<(), Diagnostic> {
        for value in initial {
            let function = self.runtime_function(fill(value.bytes))?;
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

/// Text of the function that copies a constant of `bytes` bytes to byte `offset` of each element, if the
/// state is 0.
pub(super) fn fill_text(name: &str, rank: u64, bytes: u64, dense: Option<u64>) -> String {
    let filled = each_element(rank, dense, |at| {
        format!("  call void @llvm.memcpy.p0.p0.i64(ptr {at}, ptr %from, i64 {bytes}, i1 false)\n")
    });
    format!(
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @{name}_all(ptr %of, i64 %offset, ptr %from) {{
entry:
  %first = load ptr, ptr %of
  %to = getelementptr i8, ptr %first, i64 %offset
{filled}  ret void
}}
define void @{name}(ptr %of, i64 %offset, ptr %from, i32 %state) {{
entry:
  %made = icmp eq i32 %state, 0
  br i1 %made, label %fill, label %done
fill:
  call void @{name}_all(ptr %of, i64 %offset, ptr %from)
  br label %done
done:
  ret void
}}
"
    )
}
