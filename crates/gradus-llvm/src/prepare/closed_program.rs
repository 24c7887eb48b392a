//! Makes definitions internal that only the program uses.
//!
//! The link of an executable knows every object and library of the program. A variable that none of the others names,
//! and that the program only reads, keeps the initial value. Analyses read this from the linkage.
//!
//! Functions stay external: internal functions are inlined in another way, and a free that a check must find then moves
//! behind a condition. A variable that the program writes, or whose address it passes on, stays as well: a derivative
//! treats such a variable in the same way whether other code may set it or not.
//!
//! A variable in a section of its own stays, since a program may write all variables of the section by its bounds
//! (`__start_NAME`). Definitions with another meaning of their symbol stay: run-time type information, which the C++ library compares by
//! name across objects, variables of the call interface, and definitions in `llvm.used`.

use crate::host::calls::is_call;
use crate::host::ffi::{instructions_in, name_of};
use crate::host::module::Host;
use llvm_sys::LLVMLinkage::{self, *};
use llvm_sys::LLVMVisibility::LLVMDefaultVisibility;
use llvm_sys::comdat::LLVMSetComdat;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashSet;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

/// Beginnings of the names that stay external: the entry of the program, type information, and the call interface.
const STAYING: [&str; 7] = [
    "main", "_QQ", "_ZT", "__enzyme", "enzyme_", "__gradus", "gradus_",
];

/// Lists of values that a tool behind the compiler uses.
const USED: [&CStr; 2] = [c"llvm.used", c"llvm.compiler.used"];

impl Host {
    /// Makes the variables internal that the program only reads, except `needed`: names in other objects and libraries
    /// of the program.
    pub fn close_program(&self, needed: &[String]) {
        // SAFETY: the host owns the module, and no caller holds a value of it across the call.
        self.close_definitions(needed, |value, _| unsafe {
            LLVMIsAFunction(value).is_null()
                && !has_section(value)
                && (is_only_read(value) || is_table_of_functions(value))
        });
    }

    /// Makes the definitions internal that `is_own` selects, except `needed`.
    pub(crate) fn close_definitions(
        &self,
        needed: &[String],
        is_own: impl Fn(LLVMValueRef, &str) -> bool,
    ) {
        let needed: HashSet<&str> = needed.iter().map(String::as_str).collect();
        // SAFETY: the host owns the module, and no caller holds a value of it across the call.
        unsafe {
            let used = used_values(self.module);
            let in_assembly = self.words_of_assembly();
            for value in self.functions().into_iter().chain(self.variables()) {
                let name = name_of(value);
                let stays = name.starts_with("llvm.")
                    || STAYING.iter().any(|start| name.starts_with(start))
                    || needed.contains(name.as_str())
                    || in_assembly.contains(&name)
                    || used.contains(&value);
                if !stays
                    && LLVMIsDeclaration(value) == 0
                    && is_closable(LLVMGetLinkage(value))
                    && is_own(value, &name)
                {
                    LLVMSetComdat(value, null_mut());
                    LLVMSetVisibility(value, LLVMDefaultVisibility);
                    LLVMSetLinkage(value, LLVMInternalLinkage);
                }
            }
        }
    }
}

impl Host {
    /// Returns the words of the module's assembly, which names symbols without a use in the module.
    unsafe fn words_of_assembly(&self) -> HashSet<String> {
        unsafe {
            let mut length = 0;
            let whole = LLVMGetModuleInlineAsm(self.module, &mut length);
            let mut texts = vec![text_at(whole, length)];
            for function in self.functions() {
                for at in instructions_in(function).filter(|at| is_call(*at)) {
                    let callee = LLVMGetCalledValue(at);
                    if !LLVMIsAInlineAsm(callee).is_null() {
                        let text = LLVMGetInlineAsmAsmString(callee, &mut length);
                        texts.push(text_at(text, length));
                    }
                }
            }
            let is_symbol = |c: char| c.is_alphanumeric() || "_.$".contains(c);
            let words = texts.iter().flat_map(|text| text.split(|c| !is_symbol(c)));
            words.map(String::from).collect()
        }
    }
}

/// Returns a text of LLVM; empty if there is none.
///
/// # Safety
/// `text` is null or has `length` bytes.
unsafe fn text_at(text: *const c_char, length: usize) -> String {
    if text.is_null() || length == 0 {
        return String::new();
    }
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns whether a definition is the only one of its symbol in the module's program, once no other object defines it.
fn is_closable(linkage: LLVMLinkage) -> bool {
    matches!(
        linkage,
        LLVMExternalLinkage
            | LLVMWeakAnyLinkage
            | LLVMWeakODRLinkage
            | LLVMLinkOnceAnyLinkage
            | LLVMLinkOnceODRLinkage
    )
}

/// Returns whether a variable states its section.
///
/// # Safety
/// `variable` is live.
unsafe fn has_section(variable: LLVMValueRef) -> bool {
    let section = unsafe { LLVMGetSection(variable) };
    !section.is_null() && unsafe { *section } != 0
}

/// Returns whether all uses of an address read from it.
///
/// # Safety
/// `address` is a live address: a variable, or an address in it.
unsafe fn is_only_read(address: LLVMValueRef) -> bool {
    unsafe {
        let mut at = LLVMGetFirstUse(address);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let is_address =
                !LLVMIsAGetElementPtrInst(user).is_null() || !LLVMIsAConstantExpr(user).is_null();
            let is_read = !LLVMIsALoadInst(user).is_null() || !LLVMIsAICmpInst(user).is_null();
            if !is_read && !(is_address && is_only_read(user)) {
                return false;
            }
            at = LLVMGetNextUse(at);
        }
        true
    }
}

/// Returns whether the initial value of a variable contains the address of a function.
///
/// # Safety
/// `variable` is live.
unsafe fn is_table_of_functions(variable: LLVMValueRef) -> bool {
    unsafe {
        let mut work = vec![LLVMGetInitializer(variable)];
        while let Some(value) = work.pop() {
            if value.is_null() {
                continue;
            }
            if !LLVMIsAFunction(value).is_null() {
                return true;
            }
            let is_aggregate =
                !LLVMIsAConstantStruct(value).is_null() || !LLVMIsAConstantArray(value).is_null();
            if is_aggregate {
                let operands = 0..LLVMGetNumOperands(value) as u32;
                work.extend(operands.map(|index| LLVMGetOperand(value, index)));
            }
        }
        false
    }
}

/// Returns the values in the lists [`USED`].
///
/// # Safety
/// `module` is live.
unsafe fn used_values(module: LLVMModuleRef) -> HashSet<LLVMValueRef> {
    let mut found = HashSet::new();
    for list in USED {
        unsafe {
            let variable = LLVMGetNamedGlobal(module, list.as_ptr());
            let values = match variable.is_null() {
                true => null_mut(),
                false => LLVMGetInitializer(variable),
            };
            if !values.is_null() {
                let operands = 0..LLVMGetNumOperands(values) as u32;
                found.extend(operands.map(|index| LLVMGetOperand(values, index)));
            }
        }
    }
    found
}
