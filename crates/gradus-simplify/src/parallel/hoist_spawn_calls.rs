//! Hoists a call above a spawn if both the task and its continuation make the call.
//!
//! Moves only read-only calls with arguments from outside the task. Task and continuation may run
//! concurrently; a race-free program therefore does not write the memory that the call reads. A single call
//! is less work than two concurrent calls.

use crate::control::read_only_regions;
use crate::memory::errno;
use crate::memory::errno::Errno;
use gradus_analysis::{AccessKind, Alias, Clobbers, ExitClobbers, PassContext};
use gradus_edit::is_pure;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{Body, Flags, Op, OpKind, Unit};
use std::collections::HashSet;

/// Maximum number of ops inspected after a spawn.
const OPS_MAX: usize = 200;

/// Hoists such calls above their spawns.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    let spawns: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Spawn { .. }))
        .collect();
    if spawns.is_empty() || !facts.alias.race_free {
        return false;
    }
    let mut found: Vec<RepeatedCall> = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
        let search = Search {
            unit,
            body,
            facts,
            clobbers: &clobbers,
            errno: Errno::of(unit, body, facts, &alias),
        };
        spawns
            .iter()
            .flat_map(|&spawn| search.repeated_calls(spawn))
            .collect()
    };
    let mut gone = HashSet::new();
    found.retain(|one| gone.insert(one.twin) && !gone.contains(&one.call));
    for one in &found {
        // Metadata of one call may not hold for the other.
        if body.ops[one.call].meta != body.ops[one.twin].meta {
            body.ops[one.call].meta = None;
        }
        body.detach(one.call);
        body.insert_before(one.spawn, one.call);
        let (old, new) = (body.result(one.twin), body.result(one.call));
        body.replace_uses(old, new);
        body.erase(one.twin);
    }
    !found.is_empty()
}

/// Call in a task, the task's spawn, and the equal call after the spawn.
struct RepeatedCall {
    call: Op,
    spawn: Op,
    twin: Op,
}

struct Search<'a> {
    unit: &'a Unit,
    body: &'a Body,
    facts: &'a PassContext<'a>,
    clobbers: &'a Clobbers<'a>,
    errno: Errno,
}

impl Search<'_> {
    /// Returns the read-only calls of a task that only harmless ops precede.
    fn leading_read_only_calls(&self, spawn: Op) -> Vec<Op> {
        let body = self.body;
        let region = body.op_regions(spawn)[0];
        let mut calls = Vec::new();
        for op in body.ops_in(region) {
            let looked_at =
                self.errno.is_read() && errno::is_set_by(self.unit, body, self.facts, op);
            if !looked_at && read_only_regions::is_read_only_call(self.unit, body, self.facts, op) {
                let outside = |v| !body.is_defined_in(v, region);
                if body.operands(op).all(outside) {
                    calls.push(op);
                }
                continue;
            }
            let callee = self.unit.callee(body, op);
            let is_marker =
                callee.is_some_and(|f| matches!(self.unit.known(f), Some(ExternalFn::Marker(_))));
            let harmless =
                is_marker || matches!(body.kind(op), OpKind::Load(_) | OpKind::Alloca(_));
            if !harmless && !is_pure(self.unit, body, op) {
                break;
            }
        }
        calls
    }

    fn repeated_calls(&self, spawn: Op) -> Vec<RepeatedCall> {
        let calls = self.leading_read_only_calls(spawn).into_iter();
        let found = calls.filter_map(|call| {
            let again = self.twin_after_spawn(spawn, call)?;
            Some(RepeatedCall {
                call,
                spawn,
                twin: again,
            })
        });
        found.collect()
    }

    /// Returns whether a spawned task may be deferred in every case. A task that may have to execute
    /// immediately does not race with its continuation.
    fn is_always_deferrable(&self, spawn: Op) -> bool {
        let waits = matches!(
            self.body.kind(spawn),
            OpKind::Spawn {
                has_condition: false,
                ..
            }
        );
        waits && !self.body.ops[spawn].flags.has(Flags::ORPHANED_TASK)
    }

    /// Returns the equal call between a spawn and the next sync, if no op in between may change the memory
    /// that the call reads.
    fn twin_after_spawn(&self, spawn: Op, call: Op) -> Option<Op> {
        let mut reads = self.facts.effects.of_op(self.unit, self.body, call);
        reads.retain(|access| access.kind == AccessKind::Read);
        let changes = |op: Op| {
            reads
                .iter()
                .any(|read| self.clobbers.clobbered_in(read, op))
        };
        let in_order = |op: Op| !self.is_always_deferrable(op) && changes(op);
        if in_order(spawn) {
            return None;
        }
        let mut at = self.body.next(spawn);
        for _ in 0..OPS_MAX {
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
