//! Assembly of the GPU inside of device code: what is known has a function of ours, the rest is refused.

use super::calls_in;
use crate::ffi::*;
use crate::host::Host;
use gradus_ir::{Code, Diagnostic, SourceSpan};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

/// Assembly without operands but a result, and the function that does the same.
// table
const KNOWN: &[(&str, &str)] = &[
    ("bar.sync 0", "__gr_barrier"),
    ("barrier.sync 0", "__gr_barrier"),
    ("mov.u32 $0, %laneid", "__gr_laneid"),
    ("mov.u32 $0, %tid.x", "__gr_tid_x"),
    ("mov.u32 $0, %ntid.x", "__gr_ntid_x"),
    ("mov.u32 $0, %ctaid.x", "__gr_ctaid_x"),
    ("membar.gl", "__gr_fence"),
    ("membar.cta", "__gr_fence"),
    ("membar.sys", "__gr_fence"),
    ("mov.u32 $0, %clock", "__gr_clock"),
    ("mov.u64 $0, %clock64", "__gr_clock64"),
    ("mov.u64 $0, %globaltimer", "__gr_globaltimer"),
];

impl Host {
    /// Replaces the assembly of a device module.
    ///
    /// # Errors
    /// Assembly that is not known.
    pub(super) fn replace_assembly(&self, module: LLVMModuleRef) -> Result<(), Diagnostic> {
        let mut functions = Vec::new();
        unsafe {
            let mut f = LLVMGetFirstFunction(module);
            while !f.is_null() {
                functions.push(f);
                f = LLVMGetNextFunction(f);
            }
            for call in functions.into_iter().flat_map(|f| calls_in(f)) {
                let callee = LLVMGetCalledValue(call);
                if LLVMIsAInlineAsm(callee).is_null() {
                    continue;
                }
                let text = assembly(callee);
                let plain = text.trim().trim_end_matches(';').trim();
                let known = KNOWN.iter().find(|(known, _)| *known == plain);
                match known.filter(|_| LLVMGetNumArgOperands(call) == 0) {
                    Some((_, name)) => self.call_instead(module, call, name),
                    None if plain.is_empty() => {}
                    None => return Err(refused(call, plain)),
                }
            }
        }
        Ok(())
    }

    unsafe fn call_instead(&self, module: LLVMModuleRef, call: LLVMValueRef, name: &str) {
        unsafe {
            let int = LLVMInt32TypeInContext(self.ctx);
            let barrier = name == "__gr_barrier";
            let mut params = [int];
            let count = u32::from(barrier);
            let ty = LLVMFunctionType(LLVMTypeOf(call), params.as_mut_ptr(), count, 0);
            let c_name = c_string(name);
            let mut f = LLVMGetNamedFunction(module, c_name.as_ptr());
            if f.is_null() {
                f = LLVMAddFunction(module, c_name.as_ptr(), ty);
            }
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, call);
            let mut args = [LLVMConstInt(int, 0, 0)];
            let ty = LLVMGlobalGetValueType(f);
            let made = LLVMBuildCall2(b, ty, f, args.as_mut_ptr(), count, NO_NAME);
            if !LLVMGetFirstUse(call).is_null() {
                LLVMReplaceAllUsesWith(call, made);
            }
            LLVMInstructionEraseFromParent(call);
            LLVMDisposeBuilder(b);
        }
    }
}

/// The text of inline assembly.
///
/// # Safety
/// `value` is live inline assembly.
pub(crate) unsafe fn assembly(value: LLVMValueRef) -> String {
    unsafe {
        let mut len = 0;
        let start = LLVMGetInlineAsmAsmString(value, &mut len);
        text_of(start, len)
    }
}

fn refused(call: LLVMValueRef, text: &str) -> Diagnostic {
    let span = unsafe {
        let mut len = 0;
        let file = LLVMGetDebugLocFilename(call, &mut len);
        SourceSpan {
            file: text_of(file, len as usize),
            line: LLVMGetDebugLocLine(call),
            column: 0,
        }
    };
    let message = format!("assembly of the GPU has no counterpart on this machine: `{text}`");
    Diagnostic::error(Code::KernelRefused, message)
        .at((span.line > 0).then_some(span), "written here")
        .help("write the same in CUDA C++, or guard it with `#if`")
}
