//! Device functions of other sources that cannot be called from here.
//!
//! What asks for its thread, waits for others or uses memory of the block stands in its kernel, so that a kernel
//! of another source cannot call it. The objects say so, for a link that meets both to tell the user: a variable
//! [`TOGETHER`]`NAME` where such a function is defined, [`CALLED`]`NAME` where one of another source is called. Each
//! holds `file:line:name`.

use super::assembly::place;
use super::launches::calls_of;
use crate::ffi::*;
use crate::host::Host;
use gradus_ir::known::{CALLED, DEVICE, TOGETHER};
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Host {
    /// Says of a function of this source that those of others cannot call it.
    pub(super) unsafe fn keep_from_others(&self, f: LLVMValueRef) {
        unsafe {
            if LLVMGetLinkage(f) == LLVMLinkage::LLVMInternalLinkage {
                return;
            }
            LLVMSetLinkage(f, LLVMLinkage::LLVMInternalLinkage);
            let name = name_of(f);
            let line = self.source_line(&name);
            let (file, line) = line.map_or((String::new(), 0), |line| (line.file, line.line));
            let spelled = self.source_name(&name).unwrap_or_default();
            self.note(TOGETHER, &name, &format!("{file}:{line}:{spelled}"));
        }
    }

    /// Says which functions of other sources are called here.
    pub(super) fn tell_calls_of_others(&self) {
        for f in self.functions() {
            unsafe {
                let name = name_of(f);
                if !name.starts_with(DEVICE) || LLVMIsDeclaration(f) == 0 {
                    continue;
                }
                let call = calls_of(f).into_iter().find_map(|call| place(call));
                if let Some(at) = call {
                    self.note(CALLED, &name, &format!("{}:{}:", at.file, at.line));
                }
            }
        }
    }

    unsafe fn note(&self, prefix: &str, name: &str, text: &str) {
        let name = name.strip_prefix(DEVICE).unwrap_or(name);
        unsafe {
            let held = LLVMConstStringInContext2(self.ctx, text.as_ptr().cast(), text.len(), 0);
            let name = c_string(&format!("{prefix}{name}"));
            let note = LLVMAddGlobal(self.module, LLVMTypeOf(held), name.as_ptr());
            LLVMSetInitializer(note, held);
            LLVMSetGlobalConstant(note, 1);
            // Several sources may say the same.
            LLVMSetLinkage(note, LLVMLinkage::LLVMWeakAnyLinkage);
        }
    }
}
