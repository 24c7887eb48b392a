//! No-return regions: regions that end in a call of a function known not to return
//! ([`gradus_ir::Unit::declare_no_return`]). Their effects are invisible outside the function, and no derivative
//! passes through them.

use gradus_ir::externals::{ExceptionFn, ExternalFn};
use gradus_ir::{Body, Op, OpKind, Region, Unit};
use std::collections::HashSet;

/// The no-return regions of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoReturnRegions {
    regions: HashSet<Region>,
}

impl NoReturnRegions {
    /// Scans a body's calls.
    pub fn of(unit: &Unit, body: &Body) -> NoReturnRegions {
        let ends = |op: &Op| is_last_call(unit, body, *op) && is_end(body, *op);
        let calls = body.walk(body.root()).filter(ends);
        NoReturnRegions {
            regions: calls.filter_map(|op| body.parent(op)).collect(),
        }
    }

    /// Returns true if an op is directly inside a no-return region.
    pub fn contains(&self, body: &Body, op: Op) -> bool {
        !self.regions.is_empty() && body.parent(op).is_some_and(|r| self.regions.contains(&r))
    }
}

fn is_last_call(unit: &Unit, body: &Body, op: Op) -> bool {
    let callee = unit.known_callee(body, op);
    callee == Some(ExternalFn::Exception(ExceptionFn::NoReturn))
}

/// Returns true if an op is the last in its region, apart from `unreachable`.
fn is_end(body: &Body, op: Op) -> bool {
    body.next(op)
        .is_none_or(|next| *body.kind(next) == OpKind::Unreachable)
}
