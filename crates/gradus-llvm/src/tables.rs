//! Side tables: the LLVM handles behind the ids of an imported unit.
//!
//! Filled by import, read by export, and cleared whenever the host changes behind their back, so that
//! a number of an outdated unit meets an empty table and never a dangling handle.
use gradus_ir::{ConstId, Entity, FuncId, Op, ScopeId, TypeId, Value};
use llvm_sys::prelude::*;
use std::collections::HashMap;
use std::hash::Hash;

/// Handles numbered in the order in which they were met.
pub(crate) struct Handles<T> {
    items: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles {
            items: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Handles<T> {
    /// The number of a handle, given anew where it is not known.
    pub(crate) fn number(&mut self, item: T) -> u32 {
        let next = self.items.len() as u32;
        *self.numbers.entry(item).or_insert_with(|| {
            self.items.push(item);
            next
        })
    }
    /// The handle behind a number.
    pub(crate) fn get(&self, number: u32) -> Option<T> {
        self.items.get(number as usize).copied()
    }
}

/// Debug records: those before an LLVM instruction, with what they speak of: LLVM's value and the
/// body's, at that place.
pub(crate) struct Records {
    pub(crate) before: LLVMValueRef,
    pub(crate) values: Vec<(LLVMValueRef, Value)>,
}

/// Handles of one import.
#[derive(Default)]
pub(crate) struct Tables {
    /// Whether a unit belongs to them.
    pub(crate) live: bool,
    /// LLVM's type of each [`TypeId`].
    pub(crate) types: Vec<LLVMTypeRef>,
    /// The [`TypeId`] of each type met.
    pub(crate) type_ids: HashMap<LLVMTypeRef, TypeId>,
    /// LLVM's constant behind each constant that was imported.
    pub(crate) constants: HashMap<ConstId, LLVMValueRef>,
    /// Constants that only LLVM understands.
    pub(crate) consts: Handles<LLVMValueRef>,
    /// Instructions that only LLVM understands: they stay in the old body until export ends.
    pub(crate) instructions: Handles<LLVMValueRef>,
    /// Attributes with payloads that only LLVM understands.
    pub(crate) attributes: Handles<LLVMAttributeRef>,
    /// Metadata: type-based alias types, alias scopes, locations, and what is kept as it is.
    pub(crate) metadata: Handles<LLVMMetadataRef>,
    /// The host's node for each list of alias scopes, by the sorted scopes.
    pub(crate) scope_lists: HashMap<Vec<ScopeId>, LLVMMetadataRef>,
    /// The host's function (or alias) of each [`FuncId`].
    pub(crate) functions: Vec<LLVMValueRef>,
    /// The host's variable of each [`GlobalId`].
    pub(crate) globals: Vec<LLVMValueRef>,
    /// The instruction that each op of an imported body was made from, by function and op number;
    /// null where there is none.
    pub(crate) origins: HashMap<FuncId, Vec<LLVMValueRef>>,
    /// The debug records that stand before an op.
    pub(crate) described: HashMap<(FuncId, Op), Vec<Records>>,
}

impl Tables {
    /// Forgets every handle.
    pub(crate) fn clear(&mut self) {
        *self = Tables::default();
    }
    /// The host's function of `id`, if it has one.
    pub(crate) fn function(&self, id: FuncId) -> Option<LLVMValueRef> {
        self.functions.get(id.index()).copied()
    }
}
