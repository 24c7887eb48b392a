//! Functions of C++'s vectors that are called for several members of structures.
//!
//! To such a function two members are one: the memory that they point to is of one type, and so is that of other members
//! that lie as far apart, or as far from them in two structures. Where these are vectors of integers, numbers and integers
//! would be of one type. Inlined, each call is for its own member.

use crate::ffi::{instructions_in, name_of};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::collections::HashMap;

/// How the names of what libstdc++'s vectors do begin.
const OF_VECTORS: [&str; 3] = ["_ZNSt6vectorI", "_ZNKSt6vectorI", "_ZNSt12_Vector_baseI"];

/// Constant steps to a member of a structure.
type Member = Vec<(LLVMTypeRef, Vec<i64>)>;

/// The functions of vectors that `reached` ones call for more than one member of structures, with the functions of
/// vectors that these call.
pub(crate) fn called_for_several(reached: &[LLVMValueRef]) -> Vec<LLVMValueRef> {
    let is_of_vectors = |f: &LLVMValueRef| unsafe {
        let name = name_of(*f);
        let named = OF_VECTORS.iter().any(|start| name.starts_with(start));
        named && LLVMIsDeclaration(*f) == 0
    };
    let mut found: Vec<LLVMValueRef> = Vec::new();
    let mut members: HashMap<LLVMValueRef, Member> = HashMap::new();
    for (callee, this) in reached.iter().flat_map(|caller| calls(*caller)) {
        if is_of_vectors(&callee) {
            let member = member(this);
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

/// The direct calls of a function with an argument: what is called, and the first argument.
fn calls(f: LLVMValueRef) -> Vec<(LLVMValueRef, LLVMValueRef)> {
    let call = |at: LLVMValueRef| unsafe {
        let calls = !LLVMIsACallInst(at).is_null() || !LLVMIsAInvokeInst(at).is_null();
        if !calls || LLVMGetNumArgOperands(at) == 0 {
            return None;
        }
        let callee = LLVMIsAFunction(LLVMGetCalledValue(at));
        (!callee.is_null()).then(|| (callee, LLVMGetOperand(at, 0)))
    };
    instructions_in(f).filter_map(call).collect()
}

/// The constant steps that lead to an address; none where it is no member's.
fn member(address: LLVMValueRef) -> Member {
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
