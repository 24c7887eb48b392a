//! Inlines device functions that query the thread index, wait at a barrier or use shared memory into their
//! kernels, because the thread context is known only in a kernel.

use super::add_attribute;
use crate::host::attributes::attribute_kind;
use crate::host::calls::calls_to;
use crate::host::ffi::*;
use crate::host::ffi::{function_of, functions_of, users_of};
use crate::host::module::Host;
use crate::host::symbols::source_location;
use gradus_ir::externals::{
    DEVICE_PREFIX, ExternalFn, KERNEL_PREFIX, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, lookup,
};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::{HashMap, HashSet};

/// The most instructions of a function that is always inlined, before any optimisation.
const INLINE_INSTRUCTIONS_MAX: usize = 300;
/// The limit including inlined callees: short functions that call short functions over a few levels
/// multiply along all paths.
const INLINE_TOTAL_MAX: usize = 2000;

/// Ends the calling thread: code after a call is unreachable.
pub(super) const EXIT: &str = "__gr_exit";

impl Host {
    /// Replaces thread exits by returns of the kernel, after inlining.
    ///
    /// # Errors
    /// A function that ends its thread and could not be inlined.
    pub(crate) fn exits_to_returns(&mut self) -> Result<(), Diagnostic> {
        let Some(exit) = self.function(EXIT) else {
            // Not an error: no function ends its thread.
            return Ok(());
        };
        for call in unsafe { calls_to(exit) } {
            unsafe {
                let end = LLVMGetNextInstruction(call);
                let f = function_of(call);
                if !name_of(f).starts_with(KERNEL_PREFIX) {
                    let message =
                        "a recursive or indirectly called device function exits the thread";
                    let refused = Diagnostic::error(Code::KernelRefused, message);
                    return Err(refused
                        .at(source_location(call), "the thread exits here")
                        .help("exit the thread by a `return` in the kernel"));
                }
                let b = LLVMCreateBuilderInContext(self.ctx);
                LLVMPositionBuilderBefore(b, end);
                LLVMBuildRetVoid(b);
                LLVMDisposeBuilder(b);
                LLVMInstructionEraseFromParent(end);
                LLVMInstructionEraseFromParent(call);
            }
        }
        Ok(())
    }

    /// Marks short functions of a device module `alwaysinline`, as GPU compilers do: a call in a loop over
    /// threads prevents vectorization.
    pub(super) unsafe fn mark_short_alwaysinline(&self, module: LLVMModuleRef) {
        let mut lengths = InlinedSizes::default();
        unsafe {
            for f in functions_of(module) {
                let is_kernel = name_of(f).starts_with(KERNEL_PREFIX);
                if LLVMIsDeclaration(f) == 0 && !is_kernel && lengths.is_inlined(f) {
                    add_attribute(self, f, "alwaysinline");
                }
            }
        }
    }

    /// Marks the functions that must be inlined into their kernel `alwaysinline`.
    pub fn mark_thread_functions(&mut self) {
        let asks = |name: &str| {
            name == EXIT
                || matches!(lookup(name), Some(ExternalFn::Kernel(f)) if f.depends_on_thread())
        };
        let functions = self.functions().into_iter();
        let asked = functions.filter(|f| asks(&unsafe { name_of(*f) }));
        let shared = self.variables().into_iter().filter(|v| {
            let name = unsafe { name_of(*v) };
            name.starts_with(SHARED_PREFIX) || name.starts_with(SHARED_DYNAMIC_PREFIX)
        });
        let mut open: Vec<LLVMValueRef> = asked.chain(shared).collect();
        let mut seen: HashSet<LLVMValueRef> = open.iter().copied().collect();
        while let Some(value) = open.pop() {
            for f in unsafe { functions_using(value) } {
                if !seen.insert(f) || unsafe { name_of(f) }.starts_with(KERNEL_PREFIX) {
                    continue;
                }
                unsafe {
                    let kind = attribute_kind("noinline");
                    LLVMRemoveEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, kind);
                    add_attribute(self, f, "alwaysinline");
                    if name_of(f).starts_with(DEVICE_PREFIX) {
                        // No foreign unit can inline the function.
                        self.forbid_calls_from_units(f);
                    }
                }
                open.push(f);
            }
        }
    }
}

/// Sizes of functions after inlining.
#[derive(Default)]
struct InlinedSizes {
    /// Instructions of each function: without and with inlined callees.
    known: HashMap<LLVMValueRef, (usize, usize)>,
}

impl InlinedSizes {
    /// Returns whether a function is inlined at its calls: `alwaysinline`, or short and not `noinline`.
    unsafe fn is_inlined(&mut self, f: LLVMValueRef) -> bool {
        unsafe {
            self.measure(f);
            self.is_inlinable(f)
        }
    }

    /// Measures a function after its callees; a recursive callee counts once.
    unsafe fn measure(&mut self, f: LLVMValueRef) {
        let mut open = vec![(f, None)];
        while let Some((f, calls)) = open.pop() {
            match calls {
                None if !self.known.contains_key(&f) => {
                    let (own, calls) = unsafe { size_and_callees(f) };
                    self.known.insert(f, (own, own));
                    let called = calls.clone();
                    open.push((f, Some(calls)));
                    open.extend(called.into_iter().map(|callee| (callee, None)));
                }
                None => {}
                Some(calls) => {
                    let taken = calls
                        .into_iter()
                        .filter(|callee| unsafe { self.is_inlinable(*callee) });
                    let lengths = taken.map(|callee| self.known[&callee].1);
                    let more = lengths.fold(0, usize::saturating_add);
                    self.known
                        .entry(f)
                        .and_modify(|(_, all)| *all = all.saturating_add(more));
                }
            }
        }
    }

    /// Returns whether a measured function is inlined.
    unsafe fn is_inlinable(&self, f: LLVMValueRef) -> bool {
        let says = |name| unsafe {
            let kind = attribute_kind(name);
            !LLVMGetEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, kind).is_null()
        };
        let (own, all) = self.known[&f];
        says("alwaysinline")
            || !says("noinline") && own <= INLINE_INSTRUCTIONS_MAX && all <= INLINE_TOTAL_MAX
    }
}

/// Returns the number of instructions of a function, and its defined direct callees, once per call.
unsafe fn size_and_callees(f: LLVMValueRef) -> (usize, Vec<LLVMValueRef>) {
    let (mut count, mut calls) = (0, Vec::new());
    unsafe {
        for inst in instructions_in(f) {
            count += 1;
            if !LLVMIsACallInst(inst).is_null() {
                let callee = LLVMIsAFunction(LLVMGetCalledValue(inst));
                if !callee.is_null() && LLVMIsDeclaration(callee) == 0 {
                    calls.push(callee);
                }
            }
        }
    }
    (count, calls)
}

/// Returns the functions whose code uses a value, also through constants.
pub(super) unsafe fn functions_using(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        unsafe {
            for user in users_of(value) {
                if !LLVMIsAInstruction(user).is_null() {
                    found.push(function_of(user));
                } else {
                    open.push(user);
                }
            }
        }
    }
    found
}
