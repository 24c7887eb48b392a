//! Handle tables: the LLVM handles for the ids of an imported unit.
//!
//! Filled by import, read by export, and cleared whenever the host changes in between, so that an id of an
//! outdated unit finds an empty table and never a dangling handle.
use gradus_ir::{ConstId, Entity, FuncId, Op, ScopeId, TypeId, Value};
use llvm_sys::prelude::*;
use std::collections::HashMap;
use std::hash::Hash;

/// Handles, numbered in order of first use.
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
    /// Returns the number of a handle; adds a new handle.
    pub(crate) fn number(&mut self, item: T) -> u32 {
        let next = self.items.len() as u32;
        *self.numbers.entry(item).or_insert_with(|| {
            self.items.push(item);
            next
        })
    }
    /// Returns the handle with a number.
    pub(crate) fn get(&self, number: u32) -> Option<T> {
        self.items.get(number as usize).copied()
    }
}

/// Debug records in front of an LLVM instruction, with their operands: LLVM's value and the body's value at
/// that position.
pub(crate) struct Records {
    pub(crate) before: LLVMValueRef,
    pub(crate) values: Vec<(LLVMValueRef, Value)>,
}

/// Handles of an import.
#[derive(Default)]
pub(crate) struct Tables {
    /// True while a unit belongs to the tables.
    pub(crate) live: bool,
    /// LLVM's type of each [`TypeId`].
    pub(crate) types: Vec<LLVMTypeRef>,
    /// The [`TypeId`] of each imported type.
    pub(crate) type_ids: HashMap<LLVMTypeRef, TypeId>,
    /// LLVM's constant for each imported constant.
    pub(crate) constants: HashMap<ConstId, LLVMValueRef>,
    /// Foreign constants.
    pub(crate) consts: Handles<LLVMValueRef>,
    /// Foreign instructions; they stay in the old body until export ends.
    pub(crate) instructions: Handles<LLVMValueRef>,
    /// Attributes with foreign payloads.
    pub(crate) attributes: Handles<LLVMAttributeRef>,
    /// Metadata: TBAA types, alias scopes, locations, and opaque metadata.
    pub(crate) metadata: Handles<LLVMMetadataRef>,
    /// The host's node for each list of alias scopes, by the sorted scopes.
    pub(crate) scope_lists: HashMap<Vec<ScopeId>, LLVMMetadataRef>,
    /// The host's function (or alias) of each [`FuncId`].
    pub(crate) functions: Vec<LLVMValueRef>,
    /// The host's variable of each [`gradus_ir::GlobalId`].
    pub(crate) globals: Vec<LLVMValueRef>,
    /// The original instruction of each op of an imported body, by function and op number; null if there is
    /// none.
    pub(crate) origins: HashMap<FuncId, Vec<LLVMValueRef>>,
    /// The debug records in front of an op.
    pub(crate) debug_records: HashMap<(FuncId, Op), Vec<Records>>,
}

impl Tables {
    /// Drops every handle.
    pub(crate) fn clear(&mut self) {
        *self = Tables::default();
    }
    /// Returns the host's function of `id`, if the host has it.
    pub(crate) fn function(&self, id: FuncId) -> Option<LLVMValueRef> {
        self.functions.get(id.index()).copied()
    }
}
