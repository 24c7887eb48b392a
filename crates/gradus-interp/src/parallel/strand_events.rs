//! Task and lock events of the serial execution, passed to the race detector.

use crate::bytecode::code::StrandEvent;
use crate::state::machine::Machine;
use crate::state::strand::{At, Flow};
use crate::trap::Eval;

impl Machine<'_> {
    /// Passes an event to the race detector, if enabled.
    pub(crate) fn strand_event(&mut self, at: &At, event: StrandEvent) -> Eval<Flow> {
        let frames = self.strand.frames.len();
        let truth = |reg: Option<_>| reg.map(|reg| self.defined(at, reg, "a condition"));
        let (beside, serial) = match event {
            StrandEvent::Task {
                condition: beside,
                serial,
            } => (truth(beside), truth(serial)),
            _ => (None, None),
        };
        let (beside, serial) = (beside.transpose()?, serial.transpose()?);
        let Some(races) = &mut self.races else {
            return Ok(Flow::Next);
        };
        match event {
            StrandEvent::Scope => races.fork(frames),
            StrandEvent::ScopeEnd => races.join(),
            StrandEvent::Task { .. } => races.task(
                frames,
                beside.is_none_or(|bits| bits & 1 == 1),
                serial.is_some_and(|bits| bits & 1 == 1),
            ),
            StrandEvent::TaskEnd => races.task_end(),
            StrandEvent::Sync => races.synchronize(),
            StrandEvent::Lock(name) => races.lock(name, frames),
            StrandEvent::Unlock => races.unlock(),
        }
        Ok(Flow::Next)
    }
}
