//! OpenMP API functions. OpenMP constructs are parallel ops or are not executed.

use crate::externals::{Outcome, defined_arg};
use crate::state::machine::Machine;
use crate::trap::Eval;
use crate::values::value::Value;
use gradus_ir::FuncId;
use gradus_ir::externals::OpenMpFn;

impl Machine<'_> {
    /// Executes a query about the innermost enclosing group of ranks; outside any group there is one rank.
    pub(crate) fn openmp(&mut self, id: OpenMpFn, func: FuncId, args: &[Value]) -> Eval<Outcome> {
        let (rank, size) = self.strand.rank.unwrap_or((0, 1));
        let answer = match id {
            OpenMpFn::ThreadNum => rank,
            OpenMpFn::NumThreads => size,
            OpenMpFn::MaxThreads => self.options.team.max(1),
            OpenMpFn::RequestedTeamSize => match defined_arg(args, 0)? {
                0 => self.options.team.max(1),
                wanted => wanted,
            },
            OpenMpFn::InParallel => u64::from(size > 1),
            OpenMpFn::Level => self.groups.len() as u64,
            OpenMpFn::InRegion | OpenMpFn::BeginRegion => 0,
            OpenMpFn::EndRegion => return Ok(Outcome::Nothing),
            _ => return self.unsupported(func),
        };
        Ok(Outcome::Value(Value::Bits(answer)))
    }
}
