//! Clobbered loads: decides whether memory is unchanged in the reverse pass, and records the cause otherwise.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use gradus_analysis::{ClobberState, Clobbers};
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MemoryFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Op, Unit};

/// The cause of a change of memory before the reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clobber {
    /// An op may overwrite the memory.
    Overwritten(Op),
    /// An op may free the memory or end its lifetime.
    Freed(Op),
    /// The caller may change the memory between forward pass and reverse pass.
    CallerWrites,
}

impl FactsBuilder<'_> {
    /// Returns the cause for which a load cannot be recomputed in the reverse pass; `None` if the load is
    /// stable.
    pub(super) fn load_clobber(
        &self,
        facts: &BodyFacts<'_>,
        clobbers: &Clobbers<'_>,
        op: Op,
    ) -> Option<Clobber> {
        let region = facts.body.parent(op);
        let iteration = region.and_then(|region| facts.enclosing_recomputed_loop(region));
        let fate = clobbers.fate_within(op, iteration);
        self.clobber_of_fate(facts, &fate)
            .filter(|_| !is_planted(Mutant::ClobberedLoadRecomputed))
    }

    /// Returns the cause of a change of memory before the reverse pass; `None` if the memory is unchanged.
    /// Deferred frees, lifetime markers and stack restores do not count, because derivatives drop or defer
    /// them.
    pub(super) fn clobber_of_fate(
        &self,
        facts: &BodyFacts<'_>,
        fate: &ClobberState,
    ) -> Option<Clobber> {
        let body = facts.body;
        let waits = |free: &Op| {
            facts.is_deferred_free(*free)
                || self.known(body, *free)
                    == Some(ExternalFn::Marker(CompilerIntrinsic::StackRestore))
                || self.known(body, *free) == Some(ExternalFn::Memory(MemoryFn::TapeRelease))
                    && facts.tape_stack_is_local(self.unit.call_args(body, *free)[0])
        };
        let left_out = |end: &Op| self.unit.is_lifetime_marker(facts.body, *end);
        let freed = || fate.freed_by.iter().find(|free| !waits(free));
        let ended = || fate.ended_by.iter().find(|end| !left_out(end));
        let written = fate.written_by.map(Clobber::Overwritten);
        written
            .or_else(|| freed().or_else(ended).map(|op| Clobber::Freed(*op)))
            .or(fate.after_end.then_some(Clobber::CallerWrites))
    }
}

impl BodyFacts<'_> {
    /// Returns the cause for which a load cannot be recomputed.
    pub fn clobber_of(&self, load: Op) -> Option<Clobber> {
        self.clobbered_loads.get(&load).copied()
    }

    /// Returns the cause for which a load cannot be recomputed, as text.
    pub fn describe_clobber(&self, unit: &Unit, load: Op) -> String {
        let file = |op: Op| unit.span(self.body.ops[op].loc).map(|span| span.file);
        let at = |op: Op| match unit.span(self.body.ops[op].loc) {
            Some(span) if file(load).as_ref() == Some(&span.file) => {
                format!(" in line {}", span.line)
            }
            Some(span) => format!(" at {}:{}", span.file, span.line),
            None => String::new(),
        };
        let by = |op: Op| match unit.callee(self.body, op).map(|f| &unit.functions[f]) {
            Some(f) => format!(" by `{}`", f.display_name()),
            None => String::new(),
        };
        match self.clobbered_loads.get(&load) {
            Some(Clobber::Overwritten(op)) => format!("overwritten later{}{}", by(*op), at(*op)),
            Some(Clobber::Freed(op)) => format!("freed later{}", at(*op)),
            Some(Clobber::CallerWrites) => "the caller may overwrite the memory".to_string(),
            None => "the load cannot be repeated".to_string(),
        }
    }
}
