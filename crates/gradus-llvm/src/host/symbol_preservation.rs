//! Symbol preservation across the early pipeline: users of symbols, protected functions, removal of unused
//! symbols.
//!
//! LLVM would drop a requested `static` function before import if all calls are inlined. [`Host::expose`]
//! makes the function external for the pipeline, and [`Host::restore`] resets the linkage afterwards.
use crate::host::calls::calls_in;
use crate::host::ffi::*;
use crate::host::ffi::{function_of, globals_of, users_of};
use crate::host::module::Host;
use llvm_sys::core::*;
use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::collections::HashSet;
use std::ffi::c_char;

unsafe extern "C" {
    fn gr_subprogram_name(subprogram: LLVMMetadataRef, len: *mut usize) -> *const c_char;
}

/// The linkages that [`Host::expose`] changed.
#[must_use]
pub struct Exposed {
    functions: Vec<(String, LLVMLinkage, LLVMVisibility)>,
}

impl Host {
    /// Returns the defined functions whose bodies use a function or variable with a name accepted by
    /// `wanted`, in module order.
    pub fn functions_that_use(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut pending: Vec<LLVMValueRef> = self
            .functions()
            .into_iter()
            .chain(self.variables())
            .filter(|v| wanted(&unsafe { name_of(*v) }))
            .collect();
        let mut seen: HashSet<LLVMValueRef> = pending.iter().copied().collect();
        let mut users = HashSet::new();
        while let Some(value) = pending.pop() {
            unsafe {
                for user in users_of(value) {
                    if !LLVMIsAInstruction(user).is_null() {
                        users.insert(function_of(user));
                    } else if LLVMIsAGlobalVariable(user).is_null() && seen.insert(user) {
                        pending.push(user);
                    }
                }
            }
        }
        let all = self.functions().into_iter().filter(|f| users.contains(f));
        all.map(|f| unsafe { name_of(f) }).collect()
    }

    /// Returns the functions that are passed as arguments to a callee with a name accepted by `takes`.
    pub fn functions_passed_to(&self, takes: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for f in self.functions() {
            for call in unsafe { calls_in(f) } {
                let callee = unsafe { LLVMGetCalledValue(call) };
                if !takes(&unsafe { name_of(callee) }) {
                    continue;
                }
                let count = unsafe { LLVMGetNumArgOperands(call) };
                let args = (0..count).map(|i| unsafe { LLVMGetOperand(call, i) });
                let functions = args.filter(|arg| !unsafe { LLVMIsAFunction(*arg) }.is_null());
                found.extend(functions.map(|f| unsafe { name_of(f) }));
            }
        }
        found
    }

    /// Makes functions external, so that no pass drops or specialises them as unused.
    pub fn expose(&mut self, names: &[String]) -> Exposed {
        let mut functions = Vec::new();
        for name in names {
            let Some(f) = self.function(name) else {
                continue;
            };
            unsafe {
                functions.push((name.clone(), LLVMGetLinkage(f), LLVMGetVisibility(f)));
                LLVMSetLinkage(f, LLVMLinkage::LLVMExternalLinkage);
            }
        }
        Exposed { functions }
    }

    /// Undoes [`Host::expose`].
    pub fn restore(&mut self, exposed: Exposed) {
        for (name, linkage, visibility) in exposed.functions {
            if let Some(f) = self.function(&name) {
                unsafe {
                    LLVMSetLinkage(f, linkage);
                    LLVMSetVisibility(f, visibility);
                }
            }
        }
    }

    /// Deletes the unused variables and the unused function declarations with a name accepted by `doomed`.
    /// Returns the names of accepted symbols that are still in use.
    pub fn drop_unused(&mut self, doomed: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut left = Vec::new();
        let all = self.functions().into_iter().chain(self.variables());
        for value in all.collect::<Vec<_>>() {
            let name = unsafe { name_of(value) };
            if !doomed(&name) {
                continue;
            }
            unsafe {
                if !LLVMGetFirstUse(value).is_null() {
                    left.push(name);
                } else if LLVMIsAFunction(value).is_null() {
                    LLVMDeleteGlobal(value);
                } else if LLVMIsDeclaration(value) != 0 {
                    LLVMDeleteFunction(value);
                }
            }
        }
        self.invalidate_units();
        left
    }

    /// Renames every internal function whose name begins with `prefix`, so that the names are free.
    pub fn rename_static(&mut self, prefix: &str) {
        for f in self.functions() {
            let name = unsafe { name_of(f) };
            let linkage = unsafe { LLVMGetLinkage(f) };
            if linkage == LLVMLinkage::LLVMInternalLinkage && name.starts_with(prefix) {
                let new = format!("{name}.earlier");
                unsafe { LLVMSetValueName2(f, new.as_ptr().cast(), new.len()) };
            }
        }
        self.invalidate_units();
    }

    /// Returns the names of the variables that the module defines, in module order.
    pub fn defined_variables(&self) -> Vec<String> {
        let all = self.variables().into_iter();
        all.filter(|v| unsafe { LLVMIsDeclaration(*v) } == 0)
            .map(|v| unsafe { name_of(v) })
            .collect()
    }

    /// Drops all debug information.
    pub fn strip_debug(&mut self) {
        unsafe { LLVMStripModuleDebugInfo(self.module) };
        self.invalidate_units();
    }

    /// Returns the source name of a function, if debug information has one.
    pub fn source_name(&self, function: &str) -> Option<String> {
        let f = self.function(function)?;
        unsafe {
            let program = LLVMGetSubprogram(f);
            if program.is_null() {
                return None;
            }
            let mut len = 0;
            let name = gr_subprogram_name(program, &mut len);
            Some(text_of(name, len)).filter(|n| !n.is_empty())
        }
    }

    /// Returns every global variable of the module, in module order.
    pub(crate) fn variables(&self) -> Vec<LLVMValueRef> {
        globals_of(self.module)
    }
}
