//! Escaping globals: the functions and initialisers that store the address of a global, and the functions
//! that store pointers into a global. Code outside the unit may run before a differentiated function, and a
//! pointer global may then point to a named global.
//!
//! Addresses are followed through address computations, calls of defined functions, returns, and stack
//! variables. Unknown callees are assumed not to capture an address.

use super::Importer;
use crate::host::ffi::name_of;
use gradus_ir::{AddressEscapes, GlobalId, Symbol};
use llvm_sys::LLVMOpcode::{self, *};
use llvm_sys::LLVMTypeKind::{LLVMDoubleTypeKind, LLVMFloatTypeKind, LLVMX86_FP80TypeKind};
use llvm_sys::LLVMValueKind::*;
use llvm_sys::core::*;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use llvm_sys::target::LLVMStoreSizeOfType;
use std::collections::HashSet;

/// The most uses of a variable's address; beyond the limit, the variable counts as escaping to unknown
/// code.
const USES_MAX: usize = 1 << 14;

/// Worklist of values derived from a variable's address.
struct Search {
    work: Vec<LLVMValueRef>,
    seen: HashSet<LLVMValueRef>,
    found: AddressEscapes,
}

impl Search {
    fn follow(&mut self, value: LLVMValueRef) {
        if self.seen.insert(value) {
            self.work.push(value);
        }
    }
}

impl Importer<'_> {
    /// Records the escapes of all imported mutable globals in the unit.
    pub(super) fn record_escaping_globals(&mut self) {
        let variables: Vec<(LLVMValueRef, GlobalId)> = self
            .global_ids
            .iter()
            .filter(|(_, id)| !self.unit.globals[**id].constant)
            .map(|(g, id)| (*g, *id))
            .collect();
        for (variable, id) in variables {
            let found = self.escapes_of(variable);
            if !found.stored_by.is_empty() || !found.pointers_stored_by.is_empty() {
                self.unit.set_address_escapes(id, found);
            }
        }
    }

    fn escapes_of(&self, variable: LLVMValueRef) -> AddressEscapes {
        let mut search = Search {
            work: vec![variable],
            seen: HashSet::from([variable]),
            found: AddressEscapes::default(),
        };
        while let Some(value) = search.work.pop() {
            if search.seen.len() > USES_MAX {
                search.found.stored_by.insert(None);
                search.found.pointers_stored_by.insert(None);
                break;
            }
            let mut at = unsafe { LLVMGetFirstUse(value) };
            while !at.is_null() {
                let user = unsafe { LLVMGetUser(at) };
                self.visit_use(&mut search, value, user);
                at = unsafe { LLVMGetNextUse(at) };
            }
        }
        search.found
    }

    /// Classifies a use of an address.
    fn visit_use(&self, search: &mut Search, value: LLVMValueRef, user: LLVMValueRef) {
        unsafe {
            match LLVMGetValueKind(user) {
                LLVMGlobalVariableValueKind => {
                    let holder = self.global_ids.get(&user).map(|id| Symbol::Global(*id));
                    search.found.stored_by.insert(holder);
                    return;
                }
                LLVMInstructionValueKind => {}
                LLVMConstantExprValueKind if LLVMGetConstOpcode(user) == LLVMPtrToInt => {
                    search.found.stored_by.insert(None);
                    return;
                }
                _ => return search.follow(user),
            }
            match LLVMGetInstructionOpcode(user) {
                LLVMStore if LLVMGetOperand(user, 0) == value => {
                    self.visit_stored_address(search, user);
                }
                LLVMStore => {
                    if self.may_hold_address(LLVMTypeOf(LLVMGetOperand(user, 0))) {
                        search
                            .found
                            .pointers_stored_by
                            .insert(self.function_of(user));
                    }
                }
                LLVMAtomicRMW | LLVMAtomicCmpXchg => {
                    search
                        .found
                        .pointers_stored_by
                        .insert(self.function_of(user));
                    if LLVMGetOperand(user, 0) != value {
                        search.found.stored_by.insert(self.function_of(user));
                    }
                }
                LLVMPtrToInt => _ = search.found.stored_by.insert(self.function_of(user)),
                LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMPHI | LLVMSelect
                | LLVMInsertValue | LLVMExtractValue => search.follow(user),
                LLVMCall | LLVMInvoke => self.visit_argument(search, value, user),
                LLVMRet => self.visit_returned_address(search, user),
                _ => {}
            }
        }
    }

    /// Returns whether a type may hold an address: at least pointer size, and no floating-point type.
    fn may_hold_address(&self, ty: LLVMTypeRef) -> bool {
        let numbers = [LLVMFloatTypeKind, LLVMDoubleTypeKind, LLVMX86_FP80TypeKind];
        let bytes = unsafe { LLVMStoreSizeOfType(self.data_layout, ty) };
        bytes >= self.unit.layout.pointer_bytes
            && !numbers.contains(&unsafe { LLVMGetTypeKind(ty) })
    }

    /// Records the store of an address; an address in a stack variable is followed through the loads of the
    /// variable.
    fn visit_stored_address(&self, search: &mut Search, store: LLVMValueRef) {
        unsafe {
            let place = LLVMGetOperand(store, 1);
            if LLVMIsAAllocaInst(place).is_null() {
                search.found.stored_by.insert(self.function_of(store));
                return;
            }
            let mut at = LLVMGetFirstUse(place);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                if !LLVMIsALoadInst(user).is_null() {
                    search.follow(user);
                } else if !only_writes_variable(user, place) {
                    search.found.stored_by.insert(self.function_of(store));
                }
                at = LLVMGetNextUse(at);
            }
        }
    }

    /// Follows an address argument into the callee, if the callee is defined.
    fn visit_argument(&self, search: &mut Search, value: LLVMValueRef, call: LLVMValueRef) {
        unsafe {
            let callee = LLVMGetCalledValue(call);
            if LLVMGetValueKind(callee) != LLVMFunctionValueKind || LLVMIsDeclaration(callee) != 0 {
                if may_write_argument(call, callee, value) {
                    search
                        .found
                        .pointers_stored_by
                        .insert(self.function_of(call));
                }
                return;
            }
            let params = LLVMCountParams(callee).min(LLVMGetNumArgOperands(call));
            for number in 0..params {
                if LLVMGetOperand(call, number) == value {
                    search.follow(LLVMGetParam(callee, number));
                }
            }
        }
    }

    /// Follows a returned address to all calls of the function.
    fn visit_returned_address(&self, search: &mut Search, end: LLVMValueRef) {
        unsafe {
            let function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(end));
            let mut at = LLVMGetFirstUse(function);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                let is_call = LLVMGetValueKind(user) == LLVMInstructionValueKind
                    && matches!(
                        LLVMGetInstructionOpcode(user),
                        LLVMCall | LLVMOpcode::LLVMInvoke
                    )
                    && LLVMGetCalledValue(user) == function;
                if is_call {
                    search.follow(user);
                }
                at = LLVMGetNextUse(at);
            }
        }
    }

    /// Returns the function of an instruction; `None` if the function was not imported.
    fn function_of(&self, instruction: LLVMValueRef) -> Option<Symbol> {
        let block = unsafe { LLVMGetInstructionParent(instruction) };
        let function = unsafe { LLVMGetBasicBlockParent(block) };
        self.func_ids.get(&function).map(|id| Symbol::Func(*id))
    }
}

/// Returns whether an unknown callee may write to an address argument. Lifetime and debug markers, the
/// source of a copy, and requests for a derivative do not write.
unsafe fn may_write_argument(
    call: LLVMValueRef,
    callee: LLVMValueRef,
    value: LLVMValueRef,
) -> bool {
    unsafe {
        let name = name_of(callee);
        let marks = ["llvm.lifetime", "llvm.dbg", "llvm.invariant", "llvm.assume"];
        let copies = name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove");
        let reads = copies && LLVMGetOperand(call, 0) != value;
        let asks = name.contains("__enzyme_");
        !(reads || asks || marks.iter().any(|mark| name.starts_with(mark)))
    }
}

/// Returns whether a use of a stack variable only stores to the variable or marks its lifetime.
unsafe fn only_writes_variable(user: LLVMValueRef, variable: LLVMValueRef) -> bool {
    unsafe {
        let writes = !LLVMIsAStoreInst(user).is_null() && LLVMGetOperand(user, 1) == variable;
        let marks = || {
            !LLVMIsACallInst(user).is_null()
                && name_of(LLVMGetCalledValue(user)).starts_with("llvm.lifetime")
        };
        writes || marks()
    }
}
