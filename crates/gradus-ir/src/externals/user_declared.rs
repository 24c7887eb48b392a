//! Statements of the program about functions: like an external function, inactive, allocation, no-return.
//!
//! A function with a statement is treated as an external function; no analysis reads the body. The caller of
//! a `state_…` method removes the body from the unit.

use super::{Effects, ExceptionFn, Found, INDEX, Known, MemoryFn, exceptions};
use crate::{FuncId, GivenAway, GlobalId, Unit};

/// An inactive function has arbitrary effects, except on memory that carries derivatives.
pub(super) const INACTIVE: Effects = Effects::UNKNOWN.inactive();

impl Unit {
    /// States that `func` computes the external function `name`. Returns whether the table has `name` with a
    /// matching signature.
    pub fn state_like(&mut self, func: FuncId, name: &str) -> bool {
        let Some(found) = INDEX.find(name) else {
            return false;
        };
        let fits = found
            .shape
            .is_none_or(|shape| self.fits(shape, self.functions[func].ty));
        if fits {
            self.stated.insert(func, found);
        }
        fits
    }
    /// States that neither the result of `func` nor any written memory carries a derivative.
    pub fn state_inactive(&mut self, func: FuncId) {
        let found = Found {
            known: Known::Inactive,
            effects: INACTIVE,
            shape: None,
        };
        self.stated.insert(func, found);
    }
    /// States that `func` never returns and never unwinds to a handler that continues. The function's effects
    /// are irrelevant for derivatives.
    pub fn state_last(&mut self, func: FuncId) {
        let found = exceptions::last(ExceptionFn::Last);
        self.stated.insert(func, found);
    }
    /// States that a pointer variable holds only null and fresh blocks in the whole program, and that the
    /// variable's address does not escape.
    pub fn state_own_blocks(&mut self, global: GlobalId) {
        self.own_blocks.insert(global);
    }
    /// Returns whether a pointer variable holds only null and fresh blocks.
    pub fn has_own_blocks(&self, global: GlobalId) -> bool {
        self.own_blocks.contains(&global)
    }
    /// Sets the escape summary of a variable.
    pub fn state_given_away(&mut self, global: GlobalId, how: GivenAway) {
        self.given_away.insert(global, how);
    }
    /// Returns the escape summary of a variable; `None` if nothing escapes.
    pub fn given_away(&self, global: GlobalId) -> Option<&GivenAway> {
        self.given_away.get(&global)
    }
    /// States that `func` returns fresh memory; argument `size` is the size in bytes.
    pub fn state_allocation(&mut self, func: FuncId, size: u8) {
        let found = Found {
            known: Known::Memory(MemoryFn::Own(size)),
            effects: Effects::PURE.fresh(),
            shape: None,
        };
        self.stated.insert(func, found);
    }
    /// States that `func` is a function of the program regardless of the name: an unknown callee.
    pub fn state_own(&mut self, func: FuncId) {
        self.own.insert(func);
    }
    /// Returns whether a statement about `func` exists.
    pub fn is_stated(&self, func: FuncId) -> bool {
        self.stated.contains_key(&func)
    }
}
