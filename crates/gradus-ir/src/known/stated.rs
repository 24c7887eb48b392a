//! What a program states about functions of its own: like a known one, inactive, an allocation.
//!
//! A stated function is treated as an outside one: its body, if it has one here, is not looked into.
//! Whoever states it takes the body out of the unit.

use super::{Effects, ExceptionFn, Found, INDEX, Known, MemoryFn, exceptions};
use crate::{FuncId, GivenAway, GlobalId, Unit};

/// An inactive function may do anything, but not with what carries derivatives.
pub(super) const INACTIVE: Effects = Effects::UNKNOWN.inactive();

impl Unit {
    /// States that `func` computes what the known function `name` computes; says whether there is one
    /// of that name whose signature fits.
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
    /// States that neither the result of `func` nor what it writes carries a derivative.
    pub fn state_inactive(&mut self, func: FuncId) {
        let found = Found {
            known: Known::Inactive,
            effects: INACTIVE,
            shape: None,
        };
        self.stated.insert(func, found);
    }
    /// States that control never comes back from `func`, neither by returning nor to a handler that
    /// goes on. What it does no derivative sees.
    pub fn state_last(&mut self, func: FuncId) {
        let found = exceptions::last(ExceptionFn::Last);
        self.stated.insert(func, found);
    }
    /// States that nothing but fresh blocks and null is ever stored in a pointer variable, anywhere in the
    /// program, and that its address goes nowhere.
    pub fn state_own_blocks(&mut self, global: GlobalId) {
        self.own_blocks.insert(global);
    }
    /// Whether a pointer variable is known to lead to blocks of its own.
    pub fn has_own_blocks(&self, global: GlobalId) -> bool {
        self.own_blocks.contains(&global)
    }
    /// States who puts the address of a variable into memory, and pointers into the variable.
    pub fn state_given_away(&mut self, global: GlobalId, how: GivenAway) {
        self.given_away.insert(global, how);
    }
    /// Who puts the address of a variable into memory, and pointers into the variable; `None` where nobody does.
    pub fn given_away(&self, global: GlobalId) -> Option<&GivenAway> {
        self.given_away.get(&global)
    }
    /// States that `func` returns fresh memory of as many bytes as argument `size` says.
    pub fn state_allocation(&mut self, func: FuncId, size: u8) {
        let found = Found {
            known: Known::Memory(MemoryFn::Own(size)),
            effects: Effects::PURE.fresh(),
            shape: None,
        };
        self.stated.insert(func, found);
    }
    /// States that `func` is a function of the program, whatever its name: nothing is known of it.
    pub fn state_own(&mut self, func: FuncId) {
        self.own.insert(func);
    }
    /// Whether something was stated about `func`.
    pub fn is_stated(&self, func: FuncId) -> bool {
        self.stated.contains_key(&func)
    }
}
