//! `errno`: where a body reads it, where calls set it, and where the program itself stores to it.
//!
//! A call of the C library may set `errno`, and leaves it alone where it succeeds. So it may take the place of a
//! later one of the same arguments only while nothing stores to `errno` in between (`errno = 0`); and where the
//! body looks at it, while no other call sets it either.

use crate::Facts;
use gradus_analysis::{AccessKind, Alias, Place};
use gradus_ir::{Body, Op, OpKind, Unit};

/// The places of a body's ops that touch `errno`, in program order.
pub(crate) struct Errno {
    reads: Vec<u32>,
    /// By calls that may fail.
    sets: Vec<u32>,
    /// By stores, and by calls that may do anything.
    stores: Vec<u32>,
}

impl Errno {
    pub(crate) fn of(unit: &Unit, body: &Body, facts: &Facts, alias: &Alias) -> Errno {
        let (mut reads, mut sets, mut stores) = (Vec::new(), Vec::new(), Vec::new());
        for op in body.walk(body.root()) {
            for access in facts.effects.of_op(unit, body, op) {
                let list = match (access.kind, access.place) {
                    (AccessKind::Read, _) => &mut reads,
                    (AccessKind::Write, Place::Errno) => &mut sets,
                    (AccessKind::Write, _) => &mut stores,
                    _ => continue,
                };
                if access.place == Place::Errno || alias.may_be_errno(&access) {
                    list.push(alias.nest.order(op));
                }
            }
        }
        for list in [&mut reads, &mut sets, &mut stores] {
            list.sort_unstable();
        }
        Errno {
            reads,
            sets,
            stores,
        }
    }

    /// Whether the body looks at `errno`.
    pub(crate) fn is_read(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Whether an op, or one inside it, looks at `errno` or stores to it.
    pub(crate) fn is_used_in(&self, alias: &Alias, op: Op) -> bool {
        is_within(&self.reads, alias, op) || is_within(&self.stores, alias, op)
    }

    /// Whether after an op `errno` may be such that a call before it cannot stand for one behind it.
    pub(crate) fn is_changed_in(&self, alias: &Alias, op: Op) -> bool {
        is_within(&self.stores, alias, op) || self.is_read() && is_within(&self.sets, alias, op)
    }
}

/// Whether one of these places, sorted, lies in an op.
pub(crate) fn is_within(places: &[u32], alias: &Alias, op: Op) -> bool {
    let (first, last) = alias.nest.span(op);
    let at = places.partition_point(|&n| n < first);
    places.get(at).is_some_and(|&n| n <= last)
}

/// Whether an op is a call that may set `errno`.
pub(crate) fn is_set_by(unit: &Unit, body: &Body, facts: &Facts, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Call(_)) && facts.effects.of_call(unit, body, op).errno.writes
}
