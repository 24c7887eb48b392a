//! Accesses of `errno` in a body: reads, calls that set `errno`, and stores by the program.
//!
//! A C library call may set `errno`, and preserves `errno` on success. An earlier call may replace a later
//! call with equal arguments if no store to `errno` lies in between (`errno = 0`). If the body reads `errno`,
//! no other call in between may set `errno` either.

use gradus_analysis::{AccessKind, Alias, MemoryRegion, PassContext};
use gradus_ir::{Body, Op, OpKind, Unit};

/// Positions of the ops that access `errno`, in program order.
pub(crate) struct Errno {
    reads: Vec<u32>,
    /// Calls that may set `errno` on failure.
    sets: Vec<u32>,
    /// Stores, and calls with unknown effects.
    stores: Vec<u32>,
}

impl Errno {
    pub(crate) fn of(unit: &Unit, body: &Body, facts: &PassContext, alias: &Alias) -> Errno {
        let (mut reads, mut sets, mut stores) = (Vec::new(), Vec::new(), Vec::new());
        for op in body.walk(body.root()) {
            for access in facts.effects.of_op(unit, body, op) {
                let list = match (access.kind, access.place) {
                    (AccessKind::Read, _) => &mut reads,
                    (AccessKind::Write, MemoryRegion::Errno) => &mut sets,
                    (AccessKind::Write, _) => &mut stores,
                    _ => continue,
                };
                if access.place == MemoryRegion::Errno || alias.may_be_errno(&access) {
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

    /// Returns whether the body reads `errno`.
    pub(crate) fn is_read(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Returns whether an op or its nested ops read `errno` or store to it.
    pub(crate) fn is_accessed_in(&self, alias: &Alias, op: Op) -> bool {
        any_position_within(&self.reads, alias, op) || any_position_within(&self.stores, alias, op)
    }

    /// Returns whether an op may change `errno` such that an earlier call cannot replace a later one.
    pub(crate) fn is_clobbered_in(&self, alias: &Alias, op: Op) -> bool {
        any_position_within(&self.stores, alias, op)
            || self.is_read() && any_position_within(&self.sets, alias, op)
    }
}

/// Returns whether a position in the sorted list `places` lies within an op.
pub(crate) fn any_position_within(places: &[u32], alias: &Alias, op: Op) -> bool {
    let (first, last) = alias.nest.span(op);
    let at = places.partition_point(|&n| n < first);
    places.get(at).is_some_and(|&n| n <= last)
}

/// Returns whether an op is a call that may set `errno`.
pub(crate) fn is_set_by(unit: &Unit, body: &Body, facts: &PassContext, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Call(_)) && facts.effects.of_call(unit, body, op).errno.writes
}
