//! Early inlining of `alwaysinline` functions that contain OpenMP constructs.
//!
//! Raising determines the team of a construct from its enclosing function. Later inlining would move the
//! construct into a function that raising never examined. Functions with constructs are therefore inlined
//! before raising. All remaining functions keep their calls, because raising matches calls. Afterwards any
//! code may call a function with constructs (through a pointer, or recursively), so raising never assumes
//! that all callers are known.

use crate::host::attributes::attribute_kind;
use crate::host::ffi::name_of;
use crate::host::module::Host;
use gradus_ir::externals::{ExternalFn, lookup};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMAttributeIndex, LLVMLinkage};
use std::collections::HashSet;

const FUNCTION: LLVMAttributeIndex = LLVMAttributeFunctionIndex;

/// With debug information clang moves the code of a region or task into a second function, which takes the captured
/// variables by their own types. The name ends with this and, from the second region on, with `.N`. Names of regions
/// inside of the region contain it, too.
const DEBUG_REGION: &str = ".omp_outlined_debug__";

/// Returns true for the name of the second function of a region.
fn is_debug_region(name: &str) -> bool {
    name.rsplit_once(DEBUG_REGION).is_some_and(|(_, end)| {
        let number = end.strip_prefix('.').unwrap_or(end);
        number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

impl Host {
    /// Marks the second functions of regions for inlining, as clang does from `-O1` on. Such a function receives the
    /// number of its thread as an argument; outside of the region's first function the number means nothing.
    pub(crate) fn mark_debug_regions(&mut self) {
        let kind = attribute_kind("alwaysinline");
        for f in self.functions() {
            let is_local = unsafe { LLVMGetLinkage(f) } == LLVMLinkage::LLVMInternalLinkage;
            if !is_local || !is_debug_region(&unsafe { name_of(f) }) {
                continue;
            }
            unsafe {
                for name in ["noinline", "optnone"] {
                    LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, attribute_kind(name));
                }
                let attribute = LLVMCreateEnumAttribute(self.ctx, kind, 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }

    /// Removes `alwaysinline` from all functions without constructs. A function has constructs by itself or
    /// through another `alwaysinline` function with constructs. Returns the functions that lost the
    /// attribute; `None` if no `alwaysinline` function has constructs.
    pub(crate) fn drop_alwaysinline_elsewhere(&mut self) -> Option<Vec<LLVMValueRef>> {
        let kind = attribute_kind("alwaysinline");
        let is_inlined =
            |f: LLVMValueRef| unsafe { !LLVMGetEnumAttributeAtIndex(f, FUNCTION, kind).is_null() };
        let all = self.functions().into_iter();
        let inlined: HashSet<LLVMValueRef> = all.filter(|f| is_inlined(*f)).collect();
        let users = |wanted: &dyn Fn(&str) -> bool| {
            let names = self.functions_that_use(wanted).into_iter();
            let functions = names.filter_map(|name| Some((self.function(&name)?, name)));
            let functions = functions.filter(|(f, _)| inlined.contains(f));
            functions.collect::<Vec<(LLVMValueRef, String)>>()
        };
        let mut holding: HashSet<LLVMValueRef> = HashSet::new();
        let mut fresh = users(&|name| {
            let known = lookup(name);
            matches!(known, Some(ExternalFn::OpenMp(id)) if !id.is_team_independent())
        });
        while !fresh.is_empty() {
            holding.extend(fresh.iter().map(|(f, _)| *f));
            let names: HashSet<&str> = fresh.iter().map(|(_, name)| name.as_str()).collect();
            let mut callers = users(&|name| names.contains(name));
            callers.retain(|(f, _)| !holding.contains(f));
            fresh = callers;
        }
        if holding.is_empty() {
            return None;
        }
        let others: Vec<LLVMValueRef> = inlined.difference(&holding).copied().collect();
        for &f in &others {
            unsafe { LLVMRemoveEnumAttributeAtIndex(f, FUNCTION, kind) };
        }
        Some(others)
    }

    /// Restores `alwaysinline` on functions.
    pub(crate) fn restore_alwaysinline(&mut self, functions: &[LLVMValueRef]) {
        let kind = attribute_kind("alwaysinline");
        for &f in functions {
            unsafe {
                let attribute = LLVMCreateEnumAttribute(self.ctx, kind, 0);
                LLVMAddAttributeAtIndex(f, FUNCTION, attribute);
            }
        }
    }
}
