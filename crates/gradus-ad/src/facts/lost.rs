//! What becomes of memory after it was read: whether it is the same in the return sweep, and else why it is not.

use super::Facts;
use super::make::MakeFacts;
use gradus_analysis::{Clobbers, Fate};
use gradus_ir::known::{Known, MarkerFn, MemoryFn};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Op, Unit};

/// Why memory is not the same in the return sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// An op may overwrite it.
    Overwritten(Op),
    /// An op may free it, or ends its life.
    Freed(Op),
    /// Others may change it between the two sweeps.
    Returned,
}

impl MakeFacts<'_> {
    /// Why what a load read is not there in the return sweep; `None` where it is.
    pub(super) fn lost(&self, facts: &Facts<'_>, clobbers: &Clobbers<'_>, op: Op) -> Option<Lost> {
        let region = facts.body.parent(op);
        let iteration = region.and_then(|region| facts.replayed_around(region));
        let fate = clobbers.fate_within(op, iteration);
        self.loss(facts, &fate)
            .filter(|_| !planted(Mutant::OverwrittenLoadRedone))
    }

    /// Why memory is not the same in the return sweep; `None` where it is. Frees that wait, and ends of lifetimes and
    /// of arrays on the stack, which derivatives leave out, do no harm.
    pub(super) fn loss(&self, facts: &Facts<'_>, fate: &Fate) -> Option<Lost> {
        let body = facts.body;
        let waits = |free: &Op| {
            facts.is_deferred_free(*free)
                || self.known(body, *free) == Some(Known::Marker(MarkerFn::StackRestore))
                || self.known(body, *free) == Some(Known::Memory(MemoryFn::TapeRelease))
                    && facts.stack_stays(self.unit.call_args(body, *free)[0])
        };
        let left_out = |end: &Op| {
            matches!(
                self.known(facts.body, *end),
                Some(Known::Marker(
                    MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd
                ))
            )
        };
        let freed = || fate.freed_by.iter().find(|free| !waits(free));
        let ended = || fate.ended_by.iter().find(|end| !left_out(end));
        let written = fate.written_by.map(Lost::Overwritten);
        written
            .or_else(|| freed().or_else(ended).map(|op| Lost::Freed(*op)))
            .or(fate.after_end.then_some(Lost::Returned))
    }
}

impl Facts<'_> {
    /// Why what a load read is not there in the return sweep, in words.
    pub fn loss_of(&self, unit: &Unit, load: Op) -> String {
        let file = |op: Op| unit.span(self.body.ops[op].loc).map(|span| span.file);
        let at = |op: Op| match unit.span(self.body.ops[op].loc) {
            Some(span) if file(load).as_ref() == Some(&span.file) => {
                format!(" in line {}", span.line)
            }
            Some(span) => format!(" at {}:{}", span.file, span.line),
            None => String::new(),
        };
        let by = |op: Op| match unit.callee(self.body, op).map(|f| &unit.functions[f]) {
            Some(f) => format!(" by `{}`", f.source_name.as_ref().unwrap_or(&f.name)),
            None => String::new(),
        };
        match self.lost.get(&load) {
            Some(Lost::Overwritten(op)) => format!("overwritten later{}{}", by(*op), at(*op)),
            Some(Lost::Freed(op)) => format!("freed later{}", at(*op)),
            Some(Lost::Returned) => "what calls this function may overwrite it".to_string(),
            None => "it may not be read twice".to_string(),
        }
    }
}
