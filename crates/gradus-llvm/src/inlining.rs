//! Inlining before differentiation: what is to be differentiated is inlined further than LLVM would.
//!
//! A call that stays a call costs a derivative a tape block and a second call, and hides from it what
//! is overwritten; and memory that two callers hand to one function is of one type for both. LLVM's
//! threshold weighs none of that, so the early serial pipeline raises it for functions of this module
//! that a differentiated function reaches, C++'s templates and inline functions among them. Everything
//! else is inlined as always.

use crate::ffi::*;
use crate::host::Host;
use crate::pipeline::attribute_kind;
use crate::vectors;
use gradus_ir::known::{
    Known, OpenMpFn, TAPE_PUSH, TAPE_RELEASE, differentiation_call, is_text_object, lookup,
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
const APART: &str = "gradus-apart";
/// Marks a function that is inlined whatever it costs.
const TAKEN_IN: &str = "gradus-taken-in";
/// Which argument of the call that allocates a task is the task's function.
const TASK_ENTRY: u32 = 5;

impl Host {
    /// States that a function will be differentiated; unknown names are passed over.
    pub fn mark_differentiated(&mut self, name: &str) {
        if let Some(f) = self.function(name) {
            self.set_text(f, ROOT, "");
        }
    }

    /// The functions that will be differentiated: those marked, and those handed to differentiation
    /// calls.
    pub fn differentiated(&self) -> Vec<String> {
        let mut roots = Vec::new();
        for f in self.functions() {
            let name = unsafe { name_of(f) };
            if self.has_text(f, ROOT) {
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

    /// The functions that will be differentiated and those that they reach.
    pub(crate) fn reached_by_differentiated(&self) -> Vec<LLVMValueRef> {
        let roots = self.differentiated();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let names = self.closure(&roots).into_iter();
        names.filter_map(|name| self.function(&name)).collect()
    }

    /// Raises the threshold for what the differentiated functions reach.
    pub(crate) fn raise_inlining(&mut self) {
        self.keep_text_apart();
        self.keep_tasks_apart();
        let reached = self.reached_by_differentiated();
        for f in vectors::called_for_several(&reached) {
            self.take_in(f);
        }
        for f in reached {
            let linkage = unsafe { LLVMGetLinkage(f) };
            let own = matches!(
                linkage,
                LLVMLinkage::LLVMInternalLinkage
                    | LLVMLinkage::LLVMPrivateLinkage
                    | LLVMLinkage::LLVMLinkOnceODRLinkage
            );
            if own && !self.has_text(f, THRESHOLD) {
                self.set_text(f, THRESHOLD, RAISED);
            }
        }
    }

    /// Functions on text stay calls, which are known to carry no derivative; inlined, their copies of
    /// characters would be bytes of unknown type.
    fn keep_text_apart(&mut self) {
        for f in self.functions() {
            if is_text_object(&unsafe { name_of(f) }) {
                self.keep_apart(f);
            }
        }
    }

    /// A task that may run where it is made (`if`, `final`) is a call there, beside the one that hands it over: both
    /// name its function, so that they are seen to be one task.
    fn keep_tasks_apart(&mut self) {
        for f in self.functions() {
            let known = lookup(&unsafe { name_of(f) });
            if known == Some(Known::OpenMp(OpenMpFn::TaskAlloc)) {
                for entry in unsafe { arguments(f, TASK_ENTRY) } {
                    self.keep_apart(entry);
                }
            }
        }
    }

    /// Has a function stay a call, unless it says itself whether it does.
    fn keep_apart(&mut self, f: LLVMValueRef) {
        if !self.states_inlining(f) {
            self.set_text(f, APART, "");
            unsafe {
                let attribute = LLVMCreateEnumAttribute(self.ctx, attribute_kind("noinline"), 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }

    /// Has a function inlined wherever it is called, unless it says itself whether it is. LLVM's inliner looks at the
    /// raised threshold last, and stops before that where a function costs more than others may.
    fn take_in(&mut self, f: LLVMValueRef) {
        if !self.states_inlining(f) {
            self.set_text(f, TAKEN_IN, "");
            unsafe {
                let attribute =
                    LLVMCreateEnumAttribute(self.ctx, attribute_kind("alwaysinline"), 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }

    /// Whether a function says itself that it is inlined, or that it is not.
    fn states_inlining(&self, f: LLVMValueRef) -> bool {
        let states = |name: &str| unsafe {
            !LLVMGetEnumAttributeAtIndex(f, FUNCTION, attribute_kind(name)).is_null()
        };
        states("noinline") || states("alwaysinline")
    }

    /// Takes the raised threshold and the marks away.
    pub(crate) fn lower_inlining(&mut self) {
        for f in self.functions() {
            for (mark, attribute) in [(APART, "noinline"), (TAKEN_IN, "alwaysinline")] {
                if self.has_text(f, mark) {
                    let kind = attribute_kind(attribute);
                    unsafe { LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, kind) };
                }
            }
            for key in [THRESHOLD, ROOT, APART, TAKEN_IN] {
                let key_len = key.len() as u32;
                unsafe {
                    LLVMRemoveStringAttributeAtIndex(f, FUNCTION, key.as_ptr().cast(), key_len)
                };
            }
        }
    }

    /// Whether calls of the functions of a tape's stack stay calls. What is to be differentiated again
    /// must show them: inlined, all that lies on a tape is one block of memory.
    pub fn keep_tape_calls(&mut self, keep: bool) {
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

    /// Whether calls of a parallel run time are copied by no pass: two copies of what opens a construct
    /// and one of what closes it are no construct any more.
    pub(crate) fn keep_parallel_calls_single(&mut self, keep: bool) {
        let noduplicate = attribute_kind("noduplicate");
        for f in self.functions() {
            let known = lookup(&unsafe { name_of(f) });
            if !matches!(known, Some(Known::OpenMp(_))) {
                continue;
            }
            unsafe {
                match keep {
                    true => {
                        let attribute = LLVMCreateEnumAttribute(self.ctx, noduplicate, 0);
                        LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
                    }
                    false => LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, noduplicate),
                }
            }
        }
    }

    fn has_text(&self, f: LLVMValueRef, key: &str) -> bool {
        let found = unsafe {
            LLVMGetStringAttributeAtIndex(f, FUNCTION, key.as_ptr().cast(), key.len() as u32)
        };
        !found.is_null()
    }

    fn set_text(&mut self, f: LLVMValueRef, key: &str, value: &str) {
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

/// The names of the functions that calls of `f` take first.
unsafe fn first_arguments(f: LLVMValueRef) -> Vec<String> {
    unsafe { arguments(f, 0).into_iter().map(|g| name_of(g)).collect() }
}

/// The functions that calls of `f` take as their argument number `index`.
unsafe fn arguments(f: LLVMValueRef, index: u32) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    unsafe {
        let mut at = LLVMGetFirstUse(f);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let calls = !LLVMIsACallInst(user).is_null() || !LLVMIsAInvokeInst(user).is_null();
            if calls && LLVMGetCalledValue(user) == f && LLVMGetNumArgOperands(user) > index {
                let argument = LLVMGetOperand(user, index);
                if !LLVMIsAFunction(argument).is_null() {
                    found.push(argument);
                }
            }
            at = LLVMGetNextUse(at);
        }
    }
    found
}
