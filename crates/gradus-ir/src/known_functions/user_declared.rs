//! Statements of the program about functions: like an external function, inactive, allocation, no-return.
//!
//! A function with a statement is treated as an external function; no analysis reads the body. The caller of
//! a `state_…` method removes the body from the unit.

use crate::externals::{
    Effects, ExceptionFn, ExternalFn, ExternalInfo, INACTIVE, INDEX, MemoryFn, exceptions,
};
use crate::{AddressEscapes, FuncId, GlobalId, OwnedBlock, Unit};

impl Unit {
    /// States that `func` computes the external function `name`. Returns whether the table has `name` with a
    /// matching signature.
    pub fn declare_equivalent(&mut self, func: FuncId, name: &str) -> bool {
        let Some(found) = INDEX.find(name) else {
            return false;
        };
        let fits = found
            .shape
            .is_none_or(|shape| self.matches_signature(shape, self.functions[func].ty));
        if fits {
            self.facts.renew();
            self.user_declared.insert(func, found);
        }
        fits
    }
    /// States that neither the result of `func` nor any written memory carries a derivative.
    pub fn declare_inactive(&mut self, func: FuncId) {
        let found = ExternalInfo {
            known: ExternalFn::Inactive,
            effects: INACTIVE,
            shape: None,
        };
        self.facts.renew();
        self.user_declared.insert(func, found);
    }
    /// States that `func` never returns and never unwinds to a handler that continues. The function's effects
    /// are irrelevant for derivatives.
    pub fn declare_no_return(&mut self, func: FuncId) {
        let found = exceptions::no_return_entry(ExceptionFn::NoReturn);
        self.facts.renew();
        self.user_declared.insert(func, found);
    }
    /// States that a pointer variable holds only null and fresh blocks in the whole program, and that the
    /// variable's address does not escape.
    pub fn declare_fresh_block_pointer(&mut self, global: GlobalId) {
        self.facts.renew();
        self.fresh_block_pointers.insert(global);
    }
    /// Returns whether a pointer variable holds only null and fresh blocks.
    pub fn holds_only_fresh_blocks(&self, global: GlobalId) -> bool {
        self.fresh_block_pointers.contains(&global)
    }
    /// States which pointers in a variable own their blocks.
    pub fn declare_owned_blocks(&mut self, global: GlobalId, blocks: Vec<OwnedBlock>) {
        self.facts.renew();
        self.owned_blocks.insert(global, blocks);
    }
    /// Returns the pointers in a variable that own their blocks.
    pub fn owned_blocks(&self, global: GlobalId) -> &[OwnedBlock] {
        self.owned_blocks.get(&global).map_or(&[], Vec::as_slice)
    }
    /// Sets the escape summary of a variable.
    pub fn set_address_escapes(&mut self, global: GlobalId, how: AddressEscapes) {
        self.facts.renew();
        self.address_escapes.insert(global, how);
    }
    /// Returns the escape summary of a variable; `None` if nothing escapes.
    pub fn address_escapes(&self, global: GlobalId) -> Option<&AddressEscapes> {
        self.address_escapes.get(&global)
    }
    /// States that `func` returns fresh memory; argument `size` is the size in bytes.
    pub fn declare_allocator(&mut self, func: FuncId, size: u8) {
        let found = ExternalInfo {
            known: ExternalFn::Memory(MemoryFn::UserAllocator(size)),
            effects: Effects::PURE.allocating(),
            shape: None,
        };
        self.facts.renew();
        self.user_declared.insert(func, found);
    }
    /// States that `func` is a function of the program regardless of the name: an unknown callee.
    pub fn declare_user_defined(&mut self, func: FuncId) {
        self.facts.renew();
        self.user_defined.insert(func);
    }
    /// Returns whether a statement about `func` exists.
    pub fn is_user_declared(&self, func: FuncId) -> bool {
        self.user_declared.contains_key(&func)
    }
}
