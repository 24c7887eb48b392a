//! Regions on whose way control never comes back: they end in a call of a function that is known for
//! that ([`gradus_ir::Unit::state_last`]). Nobody but this function sees what is done in them, and no
//! derivative passes through.

use gradus_ir::known::{ExceptionFn, Known};
use gradus_ir::{Body, Op, OpKind, Region, Unit};
use std::collections::HashSet;

/// The lost regions of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    regions: HashSet<Region>,
}

impl Lost {
    /// Looks through a body's calls.
    pub fn of(unit: &Unit, body: &Body) -> Lost {
        let ends = |op: &Op| is_last_call(unit, body, *op) && is_end(body, *op);
        let calls = body.walk(body.root()).filter(ends);
        Lost {
            regions: calls.filter_map(|op| body.parent(op)).collect(),
        }
    }

    /// Whether an op stands in a lost region itself.
    pub fn contains(&self, body: &Body, op: Op) -> bool {
        !self.regions.is_empty() && body.parent(op).is_some_and(|r| self.regions.contains(&r))
    }
}

fn is_last_call(unit: &Unit, body: &Body, op: Op) -> bool {
    let callee = unit.callee(body, op).and_then(|func| unit.known(func));
    callee == Some(Known::Exception(ExceptionFn::Last))
}

/// Whether nothing comes after an op in its region.
fn is_end(body: &Body, op: Op) -> bool {
    body.next(op)
        .is_none_or(|next| *body.kind(next) == OpKind::Unreachable)
}
