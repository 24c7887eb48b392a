//! Pointer variables in which a program stores nothing but fresh blocks: what two such variables lead to is
//! apart, also where their blocks were made before the function that is differentiated is called.

use super::Importer;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;

impl Importer<'_> {
    /// States it of the variables that were imported.
    pub(super) fn state_own_blocks(&mut self) {
        let variables: Vec<_> = self.global_ids.iter().map(|(g, id)| (*g, *id)).collect();
        for (variable, id) in variables {
            if self.leads_to_own_blocks(variable) {
                self.unit.state_own_blocks(id);
            }
        }
    }

    fn leads_to_own_blocks(&mut self, variable: LLVMValueRef) -> bool {
        unsafe {
            let is_variable =
                LLVMGetValueKind(variable) == LLVMValueKind::LLVMGlobalVariableValueKind;
            if !is_variable || LLVMIsDeclaration(variable) != 0 {
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
                    && self.is_fresh(LLVMGetOperand(user, 0));
                if !stored && LLVMIsALoadInst(user).is_null() {
                    return false;
                }
                at = LLVMGetNextUse(at);
            }
        }
        true
    }

    /// Whether a pointer is null or what an allocator gave.
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
