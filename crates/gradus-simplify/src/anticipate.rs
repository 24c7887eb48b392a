//! A call that a task begins with, and that what follows its spawn makes again, is made before the spawn:
//! it then stands where both see its value.
//!
//! Only calls that read and do nothing else, with arguments from outside of the task. The two may run at
//! once, so that neither the task nor another one writes what they read: a race otherwise. One call is
//! less work than two, even two at once.

use crate::errno::{self, Errno};
use crate::{Facts, quiet};
use gradus_analysis::{AccessKind, AfterEnd, Alias, Clobbers};
use gradus_edit::is_pure;
use gradus_ir::known::Known;
use gradus_ir::{Body, Flags, Op, OpKind, Unit};
use std::collections::HashSet;

/// How many ops behind a spawn are looked at.
const AHEAD: usize = 200;

/// Moves such calls in front of their spawns.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts) -> bool {
    let spawns: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Spawn { .. }))
        .collect();
    if spawns.is_empty() || !facts.alias.race_free {
        return false;
    }
    let mut found: Vec<Found> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let clobbers = Clobbers::of(&alias, facts.effects, AfterEnd::default());
        let search = Search {
            unit,
            body,
            facts,
            clobbers: &clobbers,
            errno: Errno::of(unit, body, facts, &alias),
        };
        spawns.iter().flat_map(|&spawn| search.of(spawn)).collect()
    };
    let mut gone = HashSet::new();
    found.retain(|one| gone.insert(one.again) && !gone.contains(&one.call));
    for one in &found {
        // What is stated of one of them may not hold of the other.
        if body.ops[one.call].meta != body.ops[one.again].meta {
            body.ops[one.call].meta = None;
        }
        body.detach(one.call);
        body.insert_before(one.spawn, one.call);
        let (old, new) = (body.result(one.again), body.result(one.call));
        body.replace_uses(old, new);
        body.erase(one.again);
    }
    !found.is_empty()
}

/// A call of a task, its spawn, and the same call behind.
struct Found {
    call: Op,
    spawn: Op,
    again: Op,
}

struct Search<'a> {
    unit: &'a Unit,
    body: &'a Body,
    facts: &'a Facts<'a>,
    clobbers: &'a Clobbers<'a>,
    errno: Errno,
}

impl Search<'_> {
    /// The calls that only read, with nothing before them in the task that does more.
    fn first_calls(&self, spawn: Op) -> Vec<Op> {
        let body = self.body;
        let region = body.op_regions(spawn)[0];
        let mut calls = Vec::new();
        for op in body.ops_in(region) {
            let looked_at =
                self.errno.is_read() && errno::is_set_by(self.unit, body, self.facts, op);
            if !looked_at && quiet::is_reading_call(self.unit, body, self.facts, op) {
                let outside = |v| !body.region_of(v).is_some_and(|r| body.is_inside(r, region));
                if body.operands(op).all(outside) {
                    calls.push(op);
                }
                continue;
            }
            let callee = self.unit.callee(body, op);
            let is_marker =
                callee.is_some_and(|f| matches!(self.unit.known(f), Some(Known::Marker(_))));
            let harmless =
                is_marker || matches!(body.kind(op), OpKind::Load(_) | OpKind::Alloca(_));
            if !harmless && !is_pure(self.unit, body, op) {
                break;
            }
        }
        calls
    }

    fn of(&self, spawn: Op) -> Vec<Found> {
        let calls = self.first_calls(spawn).into_iter();
        let found = calls.filter_map(|call| {
            let again = self.made_again(spawn, call)?;
            Some(Found { call, spawn, again })
        });
        found.collect()
    }

    /// Whether a task may run later whenever it is spawned. One that may have to run at once does not race with
    /// what follows it.
    fn may_run_later(&self, spawn: Op) -> bool {
        let waits = matches!(self.body.kind(spawn), OpKind::Spawn { when: false, .. });
        waits && !self.body.ops[spawn].flags.has(Flags::ORPHAN)
    }

    /// Where what follows a spawn, up to the next sync, makes this call of its task, too, with nothing
    /// before that may change what it reads.
    fn made_again(&self, spawn: Op, call: Op) -> Option<Op> {
        let mut reads = self.facts.effects.of_op(self.unit, self.body, call);
        reads.retain(|access| access.kind == AccessKind::Read);
        let changes = |op: Op| {
            reads
                .iter()
                .any(|read| self.clobbers.destroyed_in(read, op))
        };
        let in_order = |op: Op| !self.may_run_later(op) && changes(op);
        if in_order(spawn) {
            return None;
        }
        let mut at = self.body.next(spawn);
        for _ in 0..AHEAD {
            let op = at?;
            at = self.body.next(op);
            match self.body.kind(op) {
                OpKind::Spawn { .. } if in_order(op) => return None,
                OpKind::Spawn { .. } => {
                    let region = self.body.op_regions(op)[0];
                    let twin = self.body.ops_in(region).find(|&op| self.is_twin(op, call));
                    if twin.is_some() {
                        return twin;
                    }
                }
                OpKind::Sync => return None,
                _ if self.is_twin(op, call) => return Some(op),
                _ if changes(op) => return None,
                _ => {}
            }
        }
        None
    }

    fn is_twin(&self, op: Op, call: Op) -> bool {
        op != call
            && self.body.kind(op) == self.body.kind(call)
            && self.body.operands(op).eq(self.body.operands(call))
    }
}
