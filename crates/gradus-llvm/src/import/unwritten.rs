//! Never-written globals: variables of local linkage that no instruction of the module writes.
//!
//! Every use of such a variable's address is a load, a comparison, or the source of a copy. Pointers
//! computed from the address, and parameters that receive the address, are followed. The rule is that of
//! LLVM's GlobalOpt, a pass that may not have run. The module itself does not change.

use super::Importer;
use crate::host::ffi::{name_of, users_of};
use llvm_sys::LLVMLinkage::{LLVMInternalLinkage, LLVMPrivateLinkage};
use llvm_sys::LLVMOpcode::*;
use llvm_sys::LLVMThreadLocalMode::LLVMNotThreadLocal;
use llvm_sys::LLVMValueKind::*;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;
use std::collections::HashSet;

/// The most uses of a variable's address; beyond the limit, the variable counts as written.
const USES_MAX: usize = 1 << 12;

/// The effect of a use of an address.
enum Use {
    /// The use neither writes nor captures.
    Reads,
    /// The use yields a value that points to the variable.
    PointsInto(LLVMValueRef),
    /// Any other use.
    Writes,
}

impl Importer<'_> {
    /// Returns true if nothing writes to a variable, now or later.
    pub(super) fn is_never_written(&self, variable: LLVMValueRef) -> bool {
        unsafe {
            let own = [LLVMInternalLinkage, LLVMPrivateLinkage].contains(&LLVMGetLinkage(variable));
            let mut assembly_bytes = 0;
            LLVMGetModuleInlineAsm(LLVMGetGlobalParent(variable), &mut assembly_bytes);
            let section = LLVMGetSection(variable);
            let in_section = !section.is_null() && *section != 0;
            if !own
                || assembly_bytes != 0
                || in_section
                || LLVMIsDeclaration(variable) != 0
                || LLVMIsExternallyInitialized(variable) != 0
                || LLVMGetThreadLocalMode(variable) != LLVMNotThreadLocal
            {
                return false;
            }
        }
        let (mut work, mut seen) = (vec![variable], HashSet::from([variable]));
        while let Some(value) = work.pop() {
            for user in users_of(value) {
                match unsafe { classify_use(value, user) } {
                    Use::Reads => {}
                    Use::Writes => return false,
                    Use::PointsInto(_) if seen.len() > USES_MAX => return false,
                    Use::PointsInto(next) => {
                        if seen.insert(next) {
                            work.push(next);
                        }
                    }
                }
            }
        }
        true
    }
}

unsafe fn classify_use(value: LLVMValueRef, user: LLVMValueRef) -> Use {
    unsafe {
        let opcode = match LLVMGetValueKind(user) {
            LLVMInstructionValueKind => LLVMGetInstructionOpcode(user),
            LLVMConstantExprValueKind => LLVMGetConstOpcode(user),
            _ => return Use::Writes,
        };
        match opcode {
            LLVMLoad if LLVMGetVolatile(user) == 0 => Use::Reads,
            LLVMICmp => Use::Reads,
            LLVMGetElementPtr | LLVMBitCast | LLVMAddrSpaceCast | LLVMPHI | LLVMSelect
            | LLVMFreeze => Use::PointsInto(user),
            LLVMCall | LLVMInvoke => classify_argument(value, user),
            _ => Use::Writes,
        }
    }
}

/// Classifies the use of an address as an argument of a call.
unsafe fn classify_argument(value: LLVMValueRef, call: LLVMValueRef) -> Use {
    unsafe {
        let callee = LLVMGetCalledValue(call);
        if LLVMGetValueKind(callee) != LLVMFunctionValueKind || callee == value {
            return Use::Writes;
        }
        let operands = 0..LLVMGetNumOperands(call).unsigned_abs();
        let mut places = operands.filter(|number| LLVMGetOperand(call, *number) == value);
        let (Some(place), None) = (places.next(), places.next()) else {
            return Use::Writes;
        };
        let name = name_of(callee);
        let begins = |list: &[&str]| list.iter().any(|first| name.starts_with(first));
        if begins(&["llvm.lifetime.", "llvm.assume", "llvm.dbg."]) {
            return Use::Reads;
        }
        if begins(&["llvm.memcpy.", "llvm.memmove."]) {
            let volatile = LLVMConstIntGetZExtValue(LLVMGetOperand(call, 3)) != 0;
            return match place == 1 && !volatile {
                true => Use::Reads,
                false => Use::Writes,
            };
        }
        let seen = LLVMIsDeclaration(callee) == 0 && LLVMGetNumArgOperands(call) > place;
        match seen && LLVMCountParams(callee) > place {
            true => Use::PointsInto(LLVMGetParam(callee, place)),
            false => Use::Writes,
        }
    }
}
