//! `dynamic_cast` to a class that has the other as a base at a known place: a question, and the address from there.
//!
//! The library's function says whether an object is of a class, and where that begins in it
//! (`__dynamic_cast`, Itanium C++ ABI, 2.9.7). Where the last argument tells how far the base lies from the beginning, the
//! answer is null or that: so the call becomes one of a function of our own that only asks, and a choice, which
//! derivatives know. Casts across, and to classes that have the base several times or virtually, stay.

use crate::ffi::NO_NAME;
use crate::host::Host;
use gradus_ir::Diagnostic;
use gradus_ir::known::QUESTION;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;

/// The library's function.
const CAST: &str = "__dynamic_cast";

impl Host {
    /// Writes the casts out.
    ///
    /// # Errors
    /// LLVM's complaint about what is written.
    pub fn write_out_casts(&mut self) -> Result<(), Diagnostic> {
        let calls = self.plain_casts();
        if calls.is_empty() {
            return Ok(());
        }
        let name = format!("{QUESTION}_cast");
        if !self.defines(&name) {
            let module = self.read_text(question_text(&name).as_bytes(), &name)?;
            self.link_module(module, &name)?;
        }
        let Some(question) = self.function(&name) else {
            unreachable!("the function that answers for casts has just been linked");
        };
        unsafe {
            // Not from its beginning: nothing would have called it when it was linked.
            LLVMSetLinkage(question, LLVMInternalLinkage);
            for (call, back) in calls {
                self.choose(call, question, back);
            }
        }
        Ok(())
    }

    /// The casts whose class begins so many bytes before what is cast.
    fn plain_casts(&self) -> Vec<(LLVMValueRef, u64)> {
        let with_place = |call: LLVMValueRef| unsafe {
            let hint = LLVMGetOperand(call, 3);
            let is_number = LLVMGetValueKind(hint) == LLVMValueKind::LLVMConstantIntValueKind;
            let back = is_number.then(|| LLVMConstIntGetSExtValue(hint))?;
            Some((call, u64::try_from(back).ok()?))
        };
        let calls = self.calls_of(CAST, 4).into_iter();
        calls.filter_map(with_place).collect()
    }

    /// Puts the question and the choice in place of a cast.
    unsafe fn choose(&self, call: LLVMValueRef, question: LLVMValueRef, back: u64) {
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

fn question_text(name: &str) -> String {
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
