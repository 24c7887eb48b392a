//! Inlining before differentiation: differentiated code is inlined more aggressively than LLVM would.
//!
//! A remaining call costs a derivative a tape block and a second call, hides the callee's clobbers, and
//! merges the types of memory that different callers pass. LLVM's threshold does not model these costs. The
//! pipelines before differentiation therefore raise the threshold for functions of the module that a
//! differentiated function reaches, including C++ templates and inline functions. All other functions are
//! inlined by LLVM's default. Specialised functions of flang's runtime are always inlined: the types of their
//! elements and the strides of their arrays are known at the call only.

use crate::host::attributes::attribute_kind;
use crate::host::calls::calls_to;
use crate::host::ffi::has_string_attribute;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::prepare::{fortran, libstdcxx_vectors};
use gradus_ir::externals::{
    ExternalFn, OpenMpFn, TAPE_PUSH, TAPE_RELEASE, differentiation_call, is_cpp_text_function,
    lookup,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMLinkage};

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;
/// LLVM reads this attribute of a call or its callee (`InlineCost.cpp`).
const THRESHOLD: &str = "function-inline-threshold";
const RAISED: &str = "3000";
/// Marks a function that a request names.
const ROOT: &str = "gradus-differentiated";
/// Marks a function that is not inlined before differentiation.
const NOT_INLINED: &str = "gradus-apart";
/// Marks a function that is always inlined before differentiation.
const FORCED_INLINE: &str = "gradus-taken-in";
/// Index of the task function among the arguments of the call that allocates a task.
const TASK_ENTRY: u32 = 5;

impl Host {
    /// Marks a function as differentiated; unknown names are ignored.
    pub fn mark_differentiated(&mut self, name: &str) {
        if let Some(f) = self.function(name) {
            self.set_string_attribute(f, ROOT, "");
        }
    }

    /// Returns the functions that will be differentiated: the marked functions, and the arguments of
    /// differentiation calls.
    pub fn differentiated(&self) -> Vec<String> {
        let mut roots = Vec::new();
        for f in self.functions() {
            let name = unsafe { name_of(f) };
            if has_string_attribute(f, FUNCTION, ROOT) {
                roots.push(name.clone());
            }
            if unsafe { LLVMIsDeclaration(f) } != 0 && differentiation_call(&name).is_some() {
                roots.extend(unsafe { first_arguments(f) });
            }
        }
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Returns the functions that will be differentiated, and all functions reachable from them.
    pub(crate) fn reached_by_differentiated(&self) -> Vec<LLVMValueRef> {
        let roots = self.differentiated();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let names = self.closure(&roots).into_iter();
        names.filter_map(|name| self.function(&name)).collect()
    }

    /// Raises the inline threshold of all functions reachable from the differentiated functions.
    pub(crate) fn raise_inlining(&mut self) {
        self.forbid_inlining_text();
        self.forbid_inlining_tasks();
        let reached = self.reached_by_differentiated();
        for f in libstdcxx_vectors::called_for_several_members(&reached) {
            self.force_inlining(f);
        }
        for f in reached {
            if fortran::is_specialised(&unsafe { name_of(f) }) {
                self.force_inlining(f);
            }
            let linkage = unsafe { LLVMGetLinkage(f) };
            let own = matches!(
                linkage,
                LLVMLinkage::LLVMInternalLinkage
                    | LLVMLinkage::LLVMPrivateLinkage
                    | LLVMLinkage::LLVMLinkOnceODRLinkage
            );
            if own && !has_string_attribute(f, FUNCTION, THRESHOLD) {
                self.set_string_attribute(f, THRESHOLD, RAISED);
            }
        }
    }

    /// Disables inlining of text functions. Their calls are known to carry no derivative; inlined copies of
    /// characters would be bytes of unknown type.
    fn forbid_inlining_text(&mut self) {
        for f in self.functions() {
            if is_cpp_text_function(&unsafe { name_of(f) }) {
                self.forbid_inlining(f);
            }
        }
    }

    /// Disables inlining of task functions. A task that may run immediately (`if`, `final`) has a direct
    /// call next to the call that enqueues it: both name the task function, and raising matches the two by
    /// that name.
    fn forbid_inlining_tasks(&mut self) {
        for f in self.functions() {
            let known = lookup(&unsafe { name_of(f) });
            if known == Some(ExternalFn::OpenMp(OpenMpFn::TaskAlloc)) {
                for entry in unsafe { function_arguments_at(f, TASK_ENTRY) } {
                    self.forbid_inlining(entry);
                }
            }
        }
    }

    /// Disables inlining of a function, unless the function states its inlining itself.
    fn forbid_inlining(&mut self, f: LLVMValueRef) {
        if !self.states_inlining(f) {
            self.set_string_attribute(f, NOT_INLINED, "");
            unsafe {
                let attribute = LLVMCreateEnumAttribute(self.ctx, attribute_kind("noinline"), 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }

    /// Forces inlining of a function, unless the function states its inlining itself. LLVM's inliner reads
    /// the raised threshold last, and gives up earlier on a function of high cost.
    fn force_inlining(&mut self, f: LLVMValueRef) {
        if !self.states_inlining(f) {
            self.set_string_attribute(f, FORCED_INLINE, "");
            unsafe {
                let attribute =
                    LLVMCreateEnumAttribute(self.ctx, attribute_kind("alwaysinline"), 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }

    /// Returns whether a function has `noinline` or `alwaysinline`.
    fn states_inlining(&self, f: LLVMValueRef) -> bool {
        let states = |name: &str| unsafe {
            !LLVMGetEnumAttributeAtIndex(f, FUNCTION, attribute_kind(name)).is_null()
        };
        states("noinline") || states("alwaysinline")
    }

    /// Removes the raised threshold, the marks and the added attributes.
    pub(crate) fn reset_inlining(&mut self) {
        for f in self.functions() {
            for (mark, attribute) in [(NOT_INLINED, "noinline"), (FORCED_INLINE, "alwaysinline")] {
                if has_string_attribute(f, FUNCTION, mark) {
                    let kind = attribute_kind(attribute);
                    unsafe { LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, kind) };
                }
            }
            for key in [THRESHOLD, ROOT, NOT_INLINED, FORCED_INLINE] {
                let key_len = key.len() as u32;
                unsafe {
                    LLVMRemoveStringAttributeAtIndex(f, FUNCTION, key.as_ptr().cast(), key_len)
                };
            }
        }
    }

    /// Enables or disables `noinline` on the tape's allocation functions. A derivative that is
    /// differentiated again requires these calls: after inlining, the whole tape would be a single block of
    /// memory.
    pub fn set_tape_noinline(&mut self, keep: bool) {
        let noinline = attribute_kind("noinline");
        for name in [TAPE_PUSH, TAPE_RELEASE] {
            let Some(f) = self.function(name) else {
                continue;
            };
            unsafe {
                match keep {
                    true => {
                        let attribute = LLVMCreateEnumAttribute(self.ctx, noinline, 0);
                        LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
                    }
                    false => LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, noinline),
                }
            }
        }
    }

    /// Adds `noduplicate` to the functions of the OpenMP runtime: a pass that copies the opening call of a
    /// construct but not the closing call would destroy the construct. Returns the functions that lacked the
    /// attribute, for [`Host::allow_duplicates`].
    pub(crate) fn forbid_openmp_duplicates(&mut self) -> Vec<String> {
        let noduplicate = attribute_kind("noduplicate");
        let mut changed = Vec::new();
        for f in self.functions() {
            let name = unsafe { name_of(f) };
            if !matches!(lookup(&name), Some(ExternalFn::OpenMp(_))) {
                continue;
            }
            unsafe {
                if LLVMGetEnumAttributeAtIndex(f, FUNCTION, noduplicate).is_null() {
                    let attribute = LLVMCreateEnumAttribute(self.ctx, noduplicate, 0);
                    LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
                    changed.push(name);
                }
            }
        }
        changed
    }

    /// Removes `noduplicate` from the functions, as far as they still exist.
    pub(crate) fn allow_duplicates(&mut self, names: &[String]) {
        let noduplicate = attribute_kind("noduplicate");
        for f in names.iter().filter_map(|name| self.function(name)) {
            unsafe { LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, noduplicate) };
        }
    }

    fn set_string_attribute(&mut self, f: LLVMValueRef, key: &str, value: &str) {
        unsafe {
            let attribute = LLVMCreateStringAttribute(
                self.ctx,
                key.as_ptr().cast(),
                key.len() as u32,
                value.as_ptr().cast(),
                value.len() as u32,
            );
            LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
        }
    }
}

/// Returns the names of the functions passed as first argument to calls of `f`.
unsafe fn first_arguments(f: LLVMValueRef) -> Vec<String> {
    unsafe {
        function_arguments_at(f, 0)
            .into_iter()
            .map(|g| name_of(g))
            .collect()
    }
}

/// Returns the functions passed as argument `index` to calls of `f`.
unsafe fn function_arguments_at(f: LLVMValueRef, index: u32) -> Vec<LLVMValueRef> {
    unsafe {
        let calls = calls_to(f).into_iter();
        let calls = calls.filter(|call| LLVMGetNumArgOperands(*call) > index);
        let given = calls.map(|call| LLVMGetOperand(call, index));
        given.filter(|of| !LLVMIsAFunction(*of).is_null()).collect()
    }
}
