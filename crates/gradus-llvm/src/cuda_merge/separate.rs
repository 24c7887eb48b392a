//! Separate compilation: records device functions that cannot be called across units.
//!
//! A device function with thread queries, barriers or shared memory is inlined into the calling kernel.
//! Kernels of separate units cannot call the function. The objects record definitions and calls for a link
//! step with all units. A variable [`LOCAL_DEVICE_PREFIX`]`NAME` marks a definition, [`CALL_SITE_PREFIX`]`NAME` a call into a
//! foreign unit. Each variable holds `file:line:name`.

use crate::host::calls::calls_to;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::symbols::source_location;
use gradus_ir::externals::{CALL_SITE_PREFIX, DEVICE_PREFIX, LOCAL_DEVICE_PREFIX};
use llvm_sys::LLVMLinkage;
use llvm_sys::core::*;
use llvm_sys::prelude::*;

impl Host {
    /// Makes a function internal and records the function as not callable from other units.
    pub(super) unsafe fn forbid_calls_from_units(&self, f: LLVMValueRef) {
        unsafe {
            if LLVMGetLinkage(f) == LLVMLinkage::LLVMInternalLinkage {
                return;
            }
            LLVMSetLinkage(f, LLVMLinkage::LLVMInternalLinkage);
            let name = name_of(f);
            let line = self.source_line(&name);
            let (file, line) = line.map_or((String::new(), 0), |line| (line.file, line.line));
            let spelled = self.source_name(&name).unwrap_or_default();
            self.note(
                LOCAL_DEVICE_PREFIX,
                &name,
                &format!("{file}:{line}:{spelled}"),
            );
        }
    }

    /// Records calls of device functions that the module does not define.
    pub(super) fn record_external_calls(&self) {
        for f in self.functions() {
            unsafe {
                let name = name_of(f);
                if !name.starts_with(DEVICE_PREFIX) || LLVMIsDeclaration(f) == 0 {
                    continue;
                }
                let call = calls_to(f)
                    .into_iter()
                    .find_map(|call| source_location(call));
                if let Some(at) = call {
                    self.note(
                        CALL_SITE_PREFIX,
                        &name,
                        &format!("{}:{}:", at.file, at.line),
                    );
                }
            }
        }
    }

    unsafe fn note(&self, prefix: &str, name: &str, text: &str) {
        let name = name.strip_prefix(DEVICE_PREFIX).unwrap_or(name);
        unsafe {
            let held = LLVMConstStringInContext2(self.ctx, text.as_ptr().cast(), text.len(), 0);
            let name = c_string(&format!("{prefix}{name}"));
            let note = LLVMAddGlobal(self.module, LLVMTypeOf(held), name.as_ptr());
            LLVMSetInitializer(note, held);
            LLVMSetGlobalConstant(note, 1);
            // Several units may record the same call.
            LLVMSetLinkage(note, LLVMLinkage::LLVMWeakAnyLinkage);
        }
    }
}
