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
use crate::prepare::fortran::runtime_library::{RuntimeReplacement, each_element};
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
                    let release = RuntimeReplacement::Release { rank, dense: None };
                    self.free_components(call, release, &offsets)?;
                    LLVMInstructionEraseFromParent(call);
                }
            }
        }
        Ok(())
    }

    /// Emits calls in front of a call that free the addresses at the given offsets of each element of its
    /// first operand.
    ///
    /// # Safety
    /// All are live values of the module.
    pub(super) unsafe fn free_components(
        &mut self,
        call: LLVMValueRef,
        release: RuntimeReplacement,
        offsets: &[u64],
    ) -> Result<(), Diagnostic> {
        for &offset in offsets {
            let function = self.runtime_function(release.clone())?;
            unsafe {
                let offset = LLVMConstInt(LLVMInt64TypeInContext(self.ctx), offset, 0);
                self.call_before(call, function, &[LLVMGetOperand(call, 0), offset]);
            }
        }
        Ok(())
    }
}

/// Text of the function that frees the address at byte `offset` of each element; a null base address frees
/// nothing.
pub(super) fn release_text(name: &str, rank: u64, dense: Option<u64>) -> String {
    let freed = each_element(rank, dense, |place| {
        format!(
            "  %block = load ptr, ptr {place}
  call void @free(ptr %block)
  store ptr null, ptr {place}
"
        )
    });
    format!(
        "declare void @free(ptr)
define internal void @{name}_all(ptr %of, i64 %offset) {{
entry:
  %first = load ptr, ptr %of
  %to = getelementptr i8, ptr %first, i64 %offset
{freed}  ret void
}}
define void @{name}(ptr %of, i64 %offset) {{
entry:
  %there = load ptr, ptr %of
  %some = icmp ne ptr %there, null
  br i1 %some, label %each, label %done
each:
  call void @{name}_all(ptr %of, i64 %offset)
  br label %done
done:
  ret void
}}
"
    )
}
