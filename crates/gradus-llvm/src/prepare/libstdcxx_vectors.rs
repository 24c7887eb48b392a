//! Forces inlining of libstdc++ vector functions that are called for several struct members.
//!
//! Points-to and type analysis merge the members that a shared callee receives. The element memory becomes
//! one alias set of one type, and equally displaced members of the same structs are merged as well. A
//! vector of integers and a vector of floats then conflict. After inlining, each call concerns a single
//! member.

use crate::host::calls::is_call;
use crate::host::ffi::{instructions_in, name_of};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashMap;

/// Prefixes of the names of libstdc++'s vector functions.
const VECTOR_PREFIXES: [&str; 3] = ["_ZNSt6vectorI", "_ZNKSt6vectorI", "_ZNSt12_Vector_baseI"];

/// Constant `getelementptr` steps to a struct member.
type Member = Vec<(LLVMTypeRef, Vec<i64>)>;

/// Returns the vector functions that `reached` functions call for more than one struct member, and their
/// transitive callees among vector functions.
pub(crate) fn called_for_several_members(reached: &[LLVMValueRef]) -> Vec<LLVMValueRef> {
    let is_of_vectors = |f: &LLVMValueRef| unsafe {
        let name = name_of(*f);
        let named = VECTOR_PREFIXES.iter().any(|start| name.starts_with(start));
        named && LLVMIsDeclaration(*f) == 0
    };
    let mut found: Vec<LLVMValueRef> = Vec::new();
    let mut members: HashMap<LLVMValueRef, Member> = HashMap::new();
    for (callee, this) in reached.iter().flat_map(|caller| calls(*caller)) {
        if is_of_vectors(&callee) {
            let member = member_steps(this);
            let first = members.entry(callee).or_insert(member.clone());
            if *first != member && !found.contains(&callee) {
                found.push(callee);
            }
        }
    }
    let mut next = 0;
    while let Some(&caller) = found.get(next) {
        for (callee, _) in calls(caller) {
            if is_of_vectors(&callee) && !found.contains(&callee) {
                found.push(callee);
            }
        }
        next += 1;
    }
    found
}

/// Returns callee and first argument of the direct calls of a function.
fn calls(f: LLVMValueRef) -> Vec<(LLVMValueRef, LLVMValueRef)> {
    let call = |at: LLVMValueRef| unsafe {
        if !is_call(at) || LLVMGetNumArgOperands(at) == 0 {
            return None;
        }
        let callee = LLVMIsAFunction(LLVMGetCalledValue(at));
        (!callee.is_null()).then(|| (callee, LLVMGetOperand(at, 0)))
    };
    instructions_in(f).filter_map(call).collect()
}

/// Returns the constant steps of an address; empty if the address is not a member's.
fn member_steps(address: LLVMValueRef) -> Member {
    let (mut base, mut steps) = (address, Vec::new());
    unsafe {
        while !LLVMIsAGetElementPtrInst(base).is_null() {
            let indices = 1..LLVMGetNumOperands(base) as u32;
            let constant = |index| {
                let index = LLVMIsAConstantInt(LLVMGetOperand(base, index));
                (!index.is_null()).then(|| LLVMConstIntGetSExtValue(index))
            };
            let Some(by) = indices.map(constant).collect::<Option<Vec<i64>>>() else {
                break;
            };
            if by.iter().any(|by| *by != 0) {
                steps.push((LLVMGetGEPSourceElementType(base), by));
            }
            base = LLVMGetOperand(base, 0);
        }
    }
    steps
}
