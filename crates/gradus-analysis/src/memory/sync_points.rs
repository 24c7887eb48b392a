//! Synchronisation points: ops at which the ranks of an `spmd` wait for each other, and the writes of other
//! ranks visible to an op with such points inside.
//!
//! Without data races, a rank sees another rank's write only after both have synchronised in between. Only
//! its own rank changes memory during an op without synchronisation points. During an op with such points,
//! a rank also sees writes of other ranks between the preceding and the following point at which all ranks
//! wait. Ranks that have ended are not awaited; the remaining ranks wait at common points.

use crate::cfg::nesting::Nest;
use crate::memory::effects::Effects;
use gradus_ir::{BarrierScope, Body, Op, OpKind, Unit};

/// A synchronisation point.
#[derive(Clone, Copy, Debug)]
struct Wait {
    op: Op,
    scope: BarrierScope,
    /// True if all ranks have completed all earlier ops once one rank continues.
    separates: bool,
}

/// The synchronisation points of one body, in program order. Valid until the first edit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    found: Vec<Wait>,
}

/// The accesses that may take effect while one rank runs an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncedAccesses {
    /// First and last position in program order of the accesses.
    pub span: (u32, u32),
    /// The loop whose iteration is fixed.
    pub frame: Option<Op>,
    /// True if callers may have written memory that is not private to the rank.
    pub callers: bool,
}

impl Waits {
    /// Finds the synchronisation points of a body.
    pub fn of(unit: &Unit, body: &Body, nest: &Nest, effects: &Effects) -> Waits {
        let wait = |op: Op| {
            let (scope, parts) = match body.kind(op) {
                OpKind::Barrier(scope) => (*scope, true),
                OpKind::ShareFor { nowait: false, .. } | OpKind::Single { nowait: false, .. } => {
                    (BarrierScope::Team, true)
                }
                OpKind::Critical(_) => (BarrierScope::Team, false),
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    let callee = effects.of_call(unit, body, op);
                    let strange =
                        callee.calls_unknown && !enclosing_spmds(body, nest, op).is_empty();
                    if !callee.may_sync_ranks && !strange {
                        return None;
                    }
                    (BarrierScope::Grid, false)
                }
                _ => return None,
            };
            Some(Wait {
                op,
                scope,
                separates: parts,
            })
        };
        Waits {
            found: body.walk(body.root()).filter_map(wait).collect(),
        }
    }

    /// Returns true if some point synchronises ranks of the body's callers.
    pub fn may_sync_callers(&self, body: &Body, nest: &Nest) -> bool {
        let open = |w: &Wait| enclosing_spmds(body, nest, w.op).is_empty();
        self.found.iter().any(open)
    }

    /// Returns true if ranks synchronise inside an op.
    pub fn syncs_in(&self, nest: &Nest, container: Op) -> bool {
        let (first, last) = nest.span(container);
        !self.between(nest, first, last).is_empty()
    }

    /// Returns the points between two positions in program order.
    fn between(&self, nest: &Nest, first: u32, last: u32) -> std::ops::Range<usize> {
        let order = |wait: &Wait| nest.order(wait.op);
        let from = self.found.partition_point(|w| order(w) < first);
        let to = self.found.partition_point(|w| order(w) <= last);
        from..to
    }

    /// Returns the accesses that may take effect while one rank runs `container` up to and including
    /// position `last` in program order.
    pub fn synced_accesses_in(
        &self,
        body: &Body,
        nest: &Nest,
        container: Op,
        last: u32,
    ) -> SyncedAccesses {
        let own = SyncedAccesses {
            span: (nest.order(container), last),
            frame: nest.enclosing_loop(container),
            callers: false,
        };
        let inside = self.between(nest, own.span.0, last);
        let scopes = self.found[inside.clone()].iter().map(|w| w.scope);
        let Some(widest) = scopes.map(barrier_reach).max() else {
            return own;
        };
        let around = enclosing_spmds(body, nest, container);
        let ranks = match widest {
            WIDEST => around.last(),
            _ => around.first(),
        };
        let Some(&ranks) = ranks else {
            return SyncedAccesses {
                callers: true,
                ..own
            };
        };
        let parts = |w: &&Wait| {
            let branch = nest.branch_towards(container, w.op);
            w.separates
                && barrier_reach(w.scope) >= widest
                && nest.contains(ranks, w.op)
                && branch.is_some_and(|b| body.parent(b) == body.parent(w.op))
        };
        let before = self.found[..inside.start].iter().rev().find(parts);
        let after = before.and_then(|b| {
            let same = |w: &&Wait| parts(w) && body.parent(w.op) == body.parent(b.op);
            self.found[inside.end..].iter().find(same)
        });
        let span = match before.zip(after) {
            Some((before, after)) => (nest.span(before.op).1, nest.span(after.op).1),
            None => nest.span(ranks),
        };
        SyncedAccesses {
            span,
            frame: nest.enclosing_loop(ranks),
            callers: false,
        }
    }
}

/// Returns the `spmd`s around an op, innermost first.
fn enclosing_spmds(body: &Body, nest: &Nest, op: Op) -> Vec<Op> {
    let is_spmd = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    nest.loops_of(op).filter(is_spmd).collect()
}

/// Reach of a barrier that may involve more than one `spmd`.
const WIDEST: u8 = 2;

/// Returns the reach of a barrier. A barrier of more ranks separates at least as many accesses.
fn barrier_reach(scope: BarrierScope) -> u8 {
    match scope {
        BarrierScope::Warp => 0,
        BarrierScope::Block | BarrierScope::Team => 1,
        BarrierScope::Grid => WIDEST,
    }
}
