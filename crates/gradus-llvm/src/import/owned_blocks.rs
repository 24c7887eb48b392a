//! Pointers in variables that own their blocks: workspaces that the program keeps from one call to the next.
//!
//! A derivative makes a shadow for such a block at its start (`gradus-ad/src/shadow/owned_blocks.rs`). Hence no other
//! pointer from before the call may lead to the block, the pointer must be null or the block's start, and the size must
//! be known.
//!
//! - *C*: a local variable in which the module stores only null and results of `malloc`, `calloc` and `realloc`
//!   (`unique_malloc_globals.rs`). The address is stored nowhere else, and no function of another file receives it for
//!   keeping. After a `free` or `realloc` of the block, the function sets the variable before it returns.
//! - *Fortran*: an `allocatable` variable or component. Fortran allows no second name for its block if one of both names
//!   writes to the block, except for pointers to a `target`; such pointers are variables of their own.

use super::Importer;
use crate::host::ffi::name_of;
use gradus_ir::externals::effects;
use gradus_ir::{GlobalId, OwnedBlock, OwnedBlockSize, Type, TypeId};
use llvm_sys::LLVMOpcode::LLVMUnreachable;
use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;
use std::collections::HashSet;

/// The prefix of the symbols of Fortran's module variables and procedures (flang).
const FORTRAN_PREFIX: &str = "_Q";

/// Layout of flang's `CFI_cdesc_t`: offsets of the rank and the attribute in bytes.
const RANK_BYTES: u64 = 20;
const ATTRIBUTE_BYTES: u64 = 22;
/// The attribute of an allocatable variable, `CFI_attribute_allocatable`.
const ALLOCATABLE: u8 = 2;
/// The most descriptors in a variable.
const DESCRIPTORS_MAX: usize = 1024;

impl Importer<'_> {
    /// Records the owned blocks of all imported variables.
    pub(super) fn record_owned_blocks(&mut self) {
        let variables: Vec<_> = self.global_ids.iter().map(|(g, id)| (*g, *id)).collect();
        for (variable, id) in variables {
            let blocks = match unsafe { self.owns_its_block(variable, id) } {
                true => vec![OwnedBlock {
                    offset_bytes: 0,
                    size: OwnedBlockSize::Usable,
                }],
                false => self.allocatable_blocks(id),
            };
            if !blocks.is_empty() {
                self.unit.declare_owned_blocks(id, blocks);
            }
        }
    }

    /// Returns whether a variable of C owns the block that it points to.
    unsafe fn owns_its_block(&self, variable: LLVMValueRef, id: GlobalId) -> bool {
        if !self.unit.holds_only_fresh_blocks(id) {
            return false;
        }
        unsafe {
            let mut addresses = Vec::new();
            let mut at = LLVMGetFirstUse(variable);
            while !at.is_null() {
                let user = LLVMGetUser(at);
                if LLVMIsAStoreInst(user).is_null() {
                    addresses.push(user);
                } else if LLVMIsConstant(LLVMGetOperand(user, 0)) == 0 {
                    let fresh = LLVMGetOperand(user, 0);
                    if !is_from_malloc(fresh) {
                        return false;
                    }
                    addresses.push(fresh);
                }
                at = LLVMGetNextUse(at);
            }
            let search = self.search(&addresses, Some(variable));
            let Some(values) = search.values_unless_escaped() else {
                // Not an error: other memory may hold the address.
                return false;
            };
            values
                .iter()
                .all(|value| is_reset_after_frees(*value, variable))
        }
    }

    /// Returns the descriptors of `allocatable` arrays and scalars in a variable of Fortran, by the initial contents.
    fn allocatable_blocks(&self, id: GlobalId) -> Vec<OwnedBlock> {
        let global = &self.unit.globals[id];
        let mut found = Vec::new();
        if global.name.starts_with(FORTRAN_PREFIX) && !global.constant {
            self.add_descriptors((id, global.ty), 0, &mut found);
        }
        found
    }

    /// Adds the descriptors in a type at an offset of a variable.
    fn add_descriptors(&self, (id, ty): (GlobalId, TypeId), at: u64, found: &mut Vec<OwnedBlock>) {
        if found.len() >= DESCRIPTORS_MAX {
            // Not an error: the blocks of further descriptors stay unknown, and are refused.
            return;
        }
        match self.unit.types.get(ty) {
            Type::Struct { fields, .. } => {
                let fields = fields.clone();
                if self.is_descriptor(&fields) {
                    return found.extend(self.allocatable_block(id, at));
                }
                for (number, field) in fields.into_iter().enumerate() {
                    let offset = self
                        .unit
                        .layout
                        .field_offset_bytes(&self.unit, ty, number as u64);
                    self.add_descriptors((id, field), at + offset, found);
                }
            }
            Type::Array { len, elem } if *len <= DESCRIPTORS_MAX as u64 => {
                let (len, elem) = (*len, *elem);
                let bytes = self.unit.layout.size_bytes(&self.unit, elem);
                for number in 0..len {
                    self.add_descriptors((id, elem), at + number * bytes, found);
                }
            }
            _ => {}
        }
    }

    /// Returns whether a structure has the members of flang's `CFI_cdesc_t`.
    fn is_descriptor(&self, fields: &[TypeId]) -> bool {
        let bits = [64, 32, 8, 8, 8, 8];
        let int = |(field, bits): (&TypeId, u32)| self.unit.types.int_bits(*field) == Some(bits);
        fields.len() > bits.len()
            && self.unit.types.is_ptr(fields[0])
            && fields[1..].iter().zip(bits).all(int)
    }

    /// Returns the owned block of a descriptor whose initial contents state an unallocated `allocatable`.
    fn allocatable_block(&self, id: GlobalId, at: u64) -> Option<OwnedBlock> {
        let init = self.unit.globals[id].init.as_ref()?;
        let byte = |offset: u64| init.bytes.get(usize::try_from(at + offset).ok()?).copied();
        let starts_null = (0..8).all(|offset| byte(offset) == Some(0))
            && init.relocations.iter().all(|r| r.offset_bytes != at);
        (starts_null && byte(ATTRIBUTE_BYTES) == Some(ALLOCATABLE)).then_some(OwnedBlock {
            offset_bytes: at,
            size: OwnedBlockSize::Descriptor {
                rank: byte(RANK_BYTES)?,
            },
        })
    }
}

/// Returns whether a pointer is the result of a C library function whose blocks `malloc_usable_size` measures.
unsafe fn is_from_malloc(pointer: LLVMValueRef) -> bool {
    let name = unsafe { name_of(LLVMGetCalledValue(pointer)) };
    matches!(name.as_str(), "malloc" | "calloc" | "realloc")
}

/// Returns whether on each path after a call that frees `value`, the function stores to `variable` before it returns.
unsafe fn is_reset_after_frees(value: LLVMValueRef, variable: LLVMValueRef) -> bool {
    unsafe {
        let mut at = LLVMGetFirstUse(value);
        while !at.is_null() {
            let user = LLVMGetUser(at);
            if frees(user, value) && !is_set_after(user, variable) {
                return false;
            }
            at = LLVMGetNextUse(at);
        }
    }
    true
}

/// Returns whether an instruction may free the block at `value`.
unsafe fn frees(user: LLVMValueRef, value: LLVMValueRef) -> bool {
    unsafe {
        if LLVMIsACallInst(user).is_null() && LLVMIsAInvokeInst(user).is_null() {
            return false;
        }
        let callee = LLVMGetCalledValue(user);
        if LLVMIsAFunction(callee).is_null() {
            // The callee of an indirect call captures the address.
            return false;
        }
        if LLVMIsDeclaration(callee) == 0 {
            // The uses of the parameter in the callee decide.
            return false;
        }
        match effects(&name_of(callee)) {
            Some(effects) => effects
                .frees
                .is_some_and(|number| LLVMGetOperand(user, u32::from(number)) == value),
            None => !name_of(callee).starts_with("llvm."),
        }
    }
}

/// Returns whether all paths from an instruction store to `variable` before the function returns or unwinds.
unsafe fn is_set_after(instruction: LLVMValueRef, variable: LLVMValueRef) -> bool {
    unsafe {
        let stores_from = |mut at: LLVMValueRef| {
            while !at.is_null() {
                if !LLVMIsAStoreInst(at).is_null() && LLVMGetOperand(at, 1) == variable {
                    return true;
                }
                at = LLVMGetNextInstruction(at);
            }
            false
        };
        if stores_from(LLVMGetNextInstruction(instruction)) {
            return true;
        }
        let mut work = vec![LLVMGetInstructionParent(instruction)];
        let mut seen = HashSet::new();
        while let Some(block) = work.pop() {
            let end = LLVMGetBasicBlockTerminator(block);
            let count = LLVMGetNumSuccessors(end);
            if count == 0 && LLVMGetInstructionOpcode(end) != LLVMUnreachable {
                return false;
            }
            let next = (0..count).map(|number| LLVMGetSuccessor(end, number));
            work.extend(
                next.filter(|next| {
                    seen.insert(*next) && !stores_from(LLVMGetFirstInstruction(*next))
                }),
            );
        }
    }
    true
}
