//! Globals in which the program stores only null and results of allocator calls, and whose address does not
//! escape. Alias analysis treats the targets of two such globals as disjoint, also targets that were
//! allocated before the differentiated function is called.
//!
//! # Invariants
//! - Only this module names the global: the linkage is local. Another file may store any pointer in a global
//!   with external linkage.
//! - The result of one allocator call is stored in at most one location. Two globals that receive the same
//!   result have the same target.

use super::Importer;
use super::escaping_globals::is_local;
use gradus_ir::mutant::{Mutant, is_planted};
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;

impl Importer<'_> {
    /// Records the property for all imported globals.
    pub(super) fn record_fresh_allocation_globals(&mut self) {
        let variables: Vec<_> = self.global_ids.iter().map(|(g, id)| (*g, *id)).collect();
        for (variable, id) in variables {
            if self.holds_only_allocations(variable) {
                self.unit.declare_fresh_block_pointer(id);
            }
        }
    }

    fn holds_only_allocations(&mut self, variable: LLVMValueRef) -> bool {
        unsafe {
            let is_variable =
                LLVMGetValueKind(variable) == LLVMValueKind::LLVMGlobalVariableValueKind;
            if !is_variable || LLVMIsDeclaration(variable) != 0 {
                return false;
            }
            if !is_local(variable) && !is_planted(Mutant::ExternalGlobalsDisjoint) {
                return false;
            }
            if LLVMIsNull(LLVMGetInitializer(variable)) == 0 {
                return false;
            }
            let mut at = LLVMGetFirstUse(variable);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                let stored = !LLVMIsAStoreInst(user).is_null()
                    && LLVMGetOperand(user, 0) != variable
                    && self.is_fresh(LLVMGetOperand(user, 0))
                    && is_stored_only_in(LLVMGetOperand(user, 0), variable);
                if !stored && LLVMIsALoadInst(user).is_null() {
                    return false;
                }
                at = LLVMGetNextUse(at);
            }
        }
        true
    }

    /// Returns whether a pointer is null or the result of an allocator call.
    fn is_fresh(&mut self, pointer: LLVMValueRef) -> bool {
        unsafe {
            if LLVMIsConstant(pointer) != 0 {
                return LLVMIsNull(pointer) != 0;
            }
            if LLVMIsACallInst(pointer).is_null() && LLVMIsAInvokeInst(pointer).is_null() {
                return false;
            }
            let callee = LLVMGetCalledValue(pointer);
            if LLVMGetValueKind(callee) != LLVMValueKind::LLVMFunctionValueKind {
                return false;
            }
            let callee = self.func(callee);
            let effects = self.unit.known_effects(callee);
            effects.is_some_and(|effects| effects.allocates)
        }
    }
}

/// Returns whether all stores of a pointer in memory go to one variable. Null may be stored anywhere.
unsafe fn is_stored_only_in(pointer: LLVMValueRef, variable: LLVMValueRef) -> bool {
    unsafe {
        if LLVMIsConstant(pointer) != 0 || is_planted(Mutant::SharedBlocksDisjoint) {
            return true;
        }
        let mut at = LLVMGetFirstUse(pointer);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            let is_store = !LLVMIsAStoreInst(user).is_null();
            if is_store && LLVMGetOperand(user, 0) == pointer && LLVMGetOperand(user, 1) != variable
            {
                return false;
            }
            at = LLVMGetNextUse(at);
        }
    }
    true
}
