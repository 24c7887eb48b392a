//! Where the ranks of an `spmd` wait for each other, and what an op with such places inside may see of
//! what others wrote.
//!
//! Without races a rank sees what another wrote only once both have waited in between. An op without
//! waits inside is thus changed by its own rank alone. Behind one with waits inside, a rank also sees
//! what others did *before* it, since the last place where all had waited, and what they will do up to
//! the next. Ranks that have ended are not waited for; the others meet at the same waits.

use crate::effects::Effects;
use crate::nest::Nest;
use gradus_ir::{BarrierScope, Body, Op, OpKind, Unit};

/// One place where ranks wait.
#[derive(Clone, Copy, Debug)]
struct Wait {
    op: Op,
    scope: BarrierScope,
    /// Whether all ranks are through with what stands before it once one goes on.
    parts: bool,
}

/// The waits of one body, in program order. Valid until the first edit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    found: Vec<Wait>,
}

/// What ranks may have done while one of them ran an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The places in program order of what counts: first and last.
    pub span: (u32, u32),
    /// The loop of which one iteration is held fixed.
    pub frame: Option<Op>,
    /// Whether callers may have written before what is not the rank's own.
    pub callers: bool,
}

impl Waits {
    /// Finds the waits of a body.
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
                    let strange = callee.calls_unknown && !ranks_around(body, nest, op).is_empty();
                    if !callee.waits && !strange {
                        return None;
                    }
                    (BarrierScope::Grid, false)
                }
                _ => return None,
            };
            Some(Wait { op, scope, parts })
        };
        Waits {
            found: body.walk(body.root()).filter_map(wait).collect(),
        }
    }

    /// Whether some of them are those of ranks that call the body.
    pub fn concern_callers(&self, body: &Body, nest: &Nest) -> bool {
        let open = |w: &Wait| ranks_around(body, nest, w.op).is_empty();
        self.found.iter().any(open)
    }

    /// Whether ranks wait inside an op.
    pub fn is_any_in(&self, nest: &Nest, container: Op) -> bool {
        let (first, last) = nest.span(container);
        !self.between(nest, first, last).is_empty()
    }

    /// The waits from one place in program order to another.
    fn between(&self, nest: &Nest, first: u32, last: u32) -> std::ops::Range<usize> {
        let order = |wait: &Wait| nest.order(wait.op);
        let from = self.found.partition_point(|w| order(w) < first);
        let to = self.found.partition_point(|w| order(w) <= last);
        from..to
    }

    /// What ranks may have done while one of them ran an op of the body, up to and with a place in
    /// program order.
    pub fn seen_in(&self, body: &Body, nest: &Nest, container: Op, last: u32) -> Seen {
        let own = Seen {
            span: (nest.order(container), last),
            frame: nest.enclosing_loop(container),
            callers: false,
        };
        let inside = self.between(nest, own.span.0, last);
        let scopes = self.found[inside.clone()].iter().map(|w| w.scope);
        let Some(widest) = scopes.map(reach).max() else {
            return own;
        };
        let around = ranks_around(body, nest, container);
        let ranks = match widest {
            WIDEST => around.last(),
            _ => around.first(),
        };
        let Some(&ranks) = ranks else {
            return Seen {
                callers: true,
                ..own
            };
        };
        let parts = |w: &&Wait| {
            let branch = nest.branch_towards(container, w.op);
            w.parts
                && reach(w.scope) >= widest
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
        Seen {
            span,
            frame: nest.enclosing_loop(ranks),
            callers: false,
        }
    }
}

/// The `spmd`s around an op, the innermost first.
fn ranks_around(body: &Body, nest: &Nest, op: Op) -> Vec<Op> {
    let is_spmd = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    nest.loops_of(op).filter(is_spmd).collect()
}

/// The reach of a barrier that more than one `spmd` may take part in.
const WIDEST: u8 = 2;

/// How far a barrier reaches: one behind which more ranks have waited parts at least as much.
fn reach(scope: BarrierScope) -> u8 {
    match scope {
        BarrierScope::Warp => 0,
        BarrierScope::Block | BarrierScope::Team => 1,
        BarrierScope::Grid => WIDEST,
    }
}
