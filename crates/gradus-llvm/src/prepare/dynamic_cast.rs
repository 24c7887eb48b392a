//! Expands `dynamic_cast` to a class with a statically known base offset into a type test and an address
//! computation.
//!
//! The runtime function `__dynamic_cast` (Itanium C++ ABI, 2.9.7) checks the dynamic type of an object and
//! returns the address of the target subobject. If the last argument (`src2dst`) is a non-negative base
//! offset, the result is either null or the source address minus the offset. The expansion calls a private
//! test function and selects between the two addresses; differentiation handles both. Cross casts and casts
//! to classes with a repeated or virtual base stay calls.

use crate::host::ffi::NO_NAME;
use crate::host::module::Host;
use gradus_ir::Diagnostic;
use gradus_ir::externals::QUERY_SYMBOL;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;

/// The `dynamic_cast` entry point of the C++ runtime.
const CAST: &str = "__dynamic_cast";

impl Host {
    /// Expands all casts with a known base offset.
    ///
    /// # Errors
    /// LLVM's message if the module of the test function cannot be parsed or linked.
    pub fn write_out_casts(&mut self) -> Result<(), Diagnostic> {
        let calls = self.casts_with_known_offset();
        if calls.is_empty() {
            return Ok(());
        }
        let name = format!("{QUERY_SYMBOL}_cast");
        if !self.defines(&name) {
            let module = self.read_text(cast_test_text(&name).as_bytes(), &name)?;
            self.link_module(module, &name)?;
        }
        let Some(question) = self.function(&name) else {
            unreachable!("the replacement of `__dynamic_cast` is linked");
        };
        unsafe {
            // The test function becomes internal only after linking: the linker drops internal functions
            // without uses.
            LLVMSetLinkage(question, LLVMInternalLinkage);
            for (call, back) in calls {
                self.replace_with_select(call, question, back);
            }
        }
        Ok(())
    }

    /// Returns the casts with a non-negative constant base offset, and the offset in bytes.
    fn casts_with_known_offset(&self) -> Vec<(LLVMValueRef, u64)> {
        let with_place = |call: LLVMValueRef| unsafe {
            let hint = LLVMGetOperand(call, 3);
            let is_number = LLVMGetValueKind(hint) == LLVMValueKind::LLVMConstantIntValueKind;
            let back = is_number.then(|| LLVMConstIntGetSExtValue(hint))?;
            Some((call, u64::try_from(back).ok()?))
        };
        let calls = self.calls_of(CAST, 4).into_iter();
        calls.filter_map(with_place).collect()
    }

    /// Replaces a cast by a call of the test function and a select.
    unsafe fn replace_with_select(&self, call: LLVMValueRef, question: LLVMValueRef, back: u64) {
        unsafe {
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, call);
            let (byte, long) = (
                LLVMInt8TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
            );
            let mut given: Vec<_> = (0..4).map(|at| LLVMGetOperand(call, at)).collect();
            let ty = LLVMGlobalGetValueType(question);
            let is = LLVMBuildCall2(build, ty, question, given.as_mut_ptr(), 4, NO_NAME);
            LLVMInstructionSetDebugLoc(is, LLVMInstructionGetDebugLoc(call));
            let mut offset = [LLVMConstInt(long, back.wrapping_neg(), 1)];
            let start = LLVMBuildGEP2(build, byte, given[0], offset.as_mut_ptr(), 1, NO_NAME);
            let none = LLVMConstNull(LLVMTypeOf(call));
            let found = LLVMBuildSelect(build, is, start, none, NO_NAME);
            LLVMDisposeBuilder(build);
            LLVMReplaceAllUsesWith(call, found);
            LLVMInstructionEraseFromParent(call);
        }
    }
}

fn cast_test_text(name: &str) -> String {
    format!(
        "declare ptr @{CAST}(ptr, ptr, ptr, i64)
define i1 @{name}(ptr %of, ptr %from, ptr %to, i64 %back) noinline {{
entry:
  %found = call ptr @{CAST}(ptr %of, ptr %from, ptr %to, i64 %back)
  %is = icmp ne ptr %found, null
  ret i1 %is
}}
"
    )
}
