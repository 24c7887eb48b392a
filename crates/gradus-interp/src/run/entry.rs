//! Calls of functions by the machine's user.

use crate::state::machine::Machine;
use crate::state::races::Races;
use crate::state::strand::Strand;
use crate::trap::{Trap, TrapKind, fault};
use crate::values::value::Value;
use gradus_ir::FuncId;

impl Machine<'_> {
    /// Calls a function by name; returns the result, `None` for `void`.
    ///
    /// # Errors
    /// The trap that ended the run, with the position.
    pub fn call(&mut self, name: &str, args: &[Value]) -> Result<Option<Value>, Trap> {
        match self.unit.function(name) {
            Some(func) => self.call_function(func, args),
            None => {
                let text = format!("undefined function `{name}`");
                self.with_position(fault(TrapKind::BadCall, text))
            }
        }
    }

    /// Calls a function; returns the result, `None` for `void`.
    ///
    /// # Errors
    /// The trap that ended the run, with the position.
    pub fn call_function(&mut self, func: FuncId, args: &[Value]) -> Result<Option<Value>, Trap> {
        self.strand = Strand::default();
        self.groups.clear();
        self.races = self.options.races.then(Races::default);
        let layout = self.memory_init.clone();
        let outcome = layout
            .and_then(|()| self.push_call(func, args))
            .and_then(|()| self.run());
        let outcome = self.with_position(outcome);
        if outcome.is_err() {
            self.strand = Strand::default();
            self.groups.clear();
        }
        outcome
    }
}
