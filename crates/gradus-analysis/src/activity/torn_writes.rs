//! Torn writes: functions that may throw after they wrote memory with derivatives.
//!
//! A handler that continues replaces the call. If the callee wrote nothing before the exception, the
//! reverse pass can omit the call. After a partial write, the reverse of the callee would have to stop in
//! its middle.
//!
//! One walk over each body, callees first, iterated to a fixpoint in recursive components. Any op earlier
//! in program order counts as executed before, regardless of branches. An op of an enclosing loop counts as
//! executed in an earlier iteration. Writes to a function's own stack memory do not count.

use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::call_graph::Callee;
use crate::cfg::nesting::Nest;
use crate::memory::effects::Effects;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::{AliasSetId, MemoryOrigin};
use crate::view::View;
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Body, FuncId, Op, OpKind};
use std::collections::HashSet;

/// Functions with visible writes, and functions that may throw after such writes.
#[derive(Clone, Debug, Default)]
pub struct TornWrites {
    /// Functions that may write memory with shadows visible to their callers.
    writers: HashSet<FuncId>,
    /// Functions that may throw after such a write.
    late_throwers: HashSet<FuncId>,
}

impl TornWrites {
    /// Scans all bodies of a call graph.
    pub fn of(facts: View<'_>, classes: &MemoryActivity, effects: &Effects) -> TornWrites {
        let mut found = TornWrites::default();
        for component in facts.closure.components() {
            loop {
                let before = (found.writers.len(), found.late_throwers.len());
                for &func in &component.functions {
                    if let Some(body) = facts.unit.functions[func].body.as_deref() {
                        found.scan(facts, classes, effects, func, body);
                    }
                }
                let after = (found.writers.len(), found.late_throwers.len());
                if !component.recursive || after == before {
                    break;
                }
            }
        }
        found
    }

    /// Returns true if an exception may leave the callee of `op` after writes that carry derivatives.
    pub fn may_throw_after_write(
        &self,
        facts: View<'_>,
        classes: &MemoryActivity,
        func: FuncId,
        body: &Body,
        op: Op,
    ) -> bool {
        match facts.closure.callee(facts.unit, body, op) {
            Some(Callee::Inside(callee)) => self.late_throwers.contains(&callee),
            Some(Callee::Indirect(_)) => {
                let callees = facts.memory.callees(func, op);
                callees.is_empty() || callees.iter().any(|f| self.late_throwers.contains(f))
            }
            Some(_) => is_visible_write(facts, classes, func, body, op),
            None => false,
        }
    }

    fn scan(
        &mut self,
        facts: View<'_>,
        classes: &MemoryActivity,
        effects: &Effects,
        func: FuncId,
        body: &Body,
    ) {
        let nest = Nest::of(body);
        let mut written: Vec<u32> = Vec::new();
        let mut throwing: Vec<Op> = Vec::new();
        for op in body.walk(body.root()) {
            if is_visible_write(facts, classes, func, body, op)
                || self.callee_writes(facts, func, body, op)
            {
                written.push(nest.order(op));
            }
            let throws = match body.kind(op) {
                OpKind::Call(_) | OpKind::Invoke(_) => {
                    effects.of_call(facts.unit, body, op).may_throw
                }
                OpKind::Resume => true,
                _ => false,
            };
            if throws {
                throwing.push(op);
                if matches!(body.kind(op), OpKind::Call(_) | OpKind::Invoke(_))
                    && self.may_throw_after_write(facts, classes, func, body, op)
                {
                    self.late_throwers.insert(func);
                }
            }
        }
        if !written.is_empty() {
            self.writers.insert(func);
        }
        let dirty = |op: &Op| {
            let last = nest
                .outermost_loop(*op)
                .map_or(nest.order(*op), |l| nest.span(l).1 + 1);
            written.first().is_some_and(|first| *first < last)
        };
        if throwing.iter().any(dirty) {
            self.late_throwers.insert(func);
        }
    }

    fn callee_writes(&self, facts: View<'_>, func: FuncId, body: &Body, op: Op) -> bool {
        match facts.closure.callee(facts.unit, body, op) {
            Some(Callee::Inside(callee)) => self.writers.contains(&callee),
            Some(Callee::Indirect(_)) => {
                let callees = facts.memory.callees(func, op);
                callees.iter().any(|f| self.writers.contains(f))
            }
            _ => false,
        }
    }
}

/// Returns true if an op, or the external function it calls, writes memory with shadows visible to callers
/// of the op's function.
fn is_visible_write(
    facts: View<'_>,
    classes: &MemoryActivity,
    func: FuncId,
    body: &Body,
    op: Op,
) -> bool {
    let seen = |class: AliasSetId| {
        let origins = &facts.memory.get(class).origins;
        let own = |o: &MemoryOrigin| matches!(*o, MemoryOrigin::Alloca(f, _) if f == func);
        classes.state(class) != ShadowPresence::Inactive && !origins.iter().all(own)
    };
    let mut found = false;
    value_accesses(facts.unit, body, op, |access| {
        if let ValueAccess::Store { ptr, .. } = access {
            found |= facts.memory.may_point_into(func, ptr, seen);
        }
    });
    if found || !matches!(body.kind(op), OpKind::Call(_) | OpKind::Invoke(_)) {
        return found;
    }
    let Some(Callee::Outside(callee)) = facts.closure.callee(facts.unit, body, op) else {
        // Not an error: `callee_writes` handles functions of the call graph, and calls of unknown functions
        // with pointers to shadowed memory are refused.
        return false;
    };
    match facts.unit.known(callee) {
        Some(ExternalFn::Memory(memory)) if is_allocation_event(memory) => return false,
        Some(known) if known.effects().inactive => return false,
        _ => {}
    }
    let effects = facts.unit.known_effects(callee);
    let args = facts.unit.call_args(body, op);
    args.iter().enumerate().any(|(index, &arg)| {
        effects.is_none_or(|e| e.writes.argument(index))
            && facts.memory.may_point_into(func, arg, seen)
    })
}

fn is_allocation_event(memory: MemoryFn) -> bool {
    memory.allocation().is_some()
        || matches!(
            memory,
            MemoryFn::Free | MemoryFn::Delete | MemoryFn::RustDealloc
        )
}
