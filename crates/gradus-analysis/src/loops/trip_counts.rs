//! Trip counts, and recomputation of values at earlier ops.

use crate::memory::clobbers::Clobbers;
use crate::scev::poly::BaseValue;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{BinaryOp, Body, Definition, Linkage, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Returns a compile-time bound of the trip count.
pub fn trip_max(unit: &Unit, body: &Body, op: Op) -> Option<u64> {
    match *body.kind(op) {
        OpKind::For { trip_max } => match body.as_int(unit, body.operand(op, 0)) {
            Some(n) => u64::try_from(n).ok(),
            None => trip_max,
        },
        OpKind::Loop { trip_max } => trip_max,
        OpKind::ShareFor { .. } => {
            let trips = body.as_int(unit, body.operand(op, 0));
            trips.and_then(|n| u64::try_from(n).ok())
        }
        _ => None,
    }
}

/// Availability: decides at which ops a value can be recomputed from visible values. Builds on clobbers: a
/// load may move up if its memory is unmodified in between and its address is known to be valid.
#[derive(Clone, Copy, Debug)]
pub struct Availability<'a> {
    clobbers: &'a Clobbers<'a>,
}

/// Maximal number of cloned ops per value.
const MAX_CLONES: usize = 64;

impl<'a> Availability<'a> {
    /// Creates the analysis for the body of `clobbers`.
    pub fn new(clobbers: &'a Clobbers<'a>) -> Availability<'a> {
        Availability { clobbers }
    }
    /// Returns the clobbers used by the analysis.
    pub fn clobbers(&self) -> &'a Clobbers<'a> {
        self.clobbers
    }

    /// Returns the ops to clone before `at`, in program order, to make `value` available there. The list is
    /// empty if the value is already visible. Returns `None` if the value cannot be recomputed there.
    /// Cloned ops have no effects and cannot trap.
    pub fn ops_before(&self, value: Value, at: Op) -> Option<Vec<Op>> {
        let nest = &self.clobbers.alias.nest;
        let mut seen: HashSet<Op> = HashSet::new();
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if self.is_visible_before(value, at) {
                continue;
            }
            let op = self.clobbers.alias.body.def_op(value)?;
            if !seen.insert(op) {
                continue;
            }
            if seen.len() > MAX_CLONES || !self.can_move_before(op, at) {
                return None;
            }
            work.extend(self.clobbers.alias.body.operands(op));
        }
        let mut ops: Vec<Op> = seen.into_iter().collect();
        ops.sort_unstable_by_key(|op| nest.order(*op));
        Some(ops)
    }

    /// Returns true if a value is defined before `at` in an enclosing region.
    pub fn is_visible_before(&self, value: Value, at: Op) -> bool {
        let (body, nest) = (self.clobbers.alias.body, &self.clobbers.alias.nest);
        let (region, made, is_param) = match body.values[value].def {
            Definition::Const(_) => return true,
            Definition::Param(region, _) if region == body.root() => return true,
            Definition::Param(region, _) => (Some(region), body.first(region), true),
            Definition::Result(op, _) => (body.parent(op), Some(op), false),
        };
        let Some(made) = made else {
            return false;
        };
        match nest.branch_towards(at, made) {
            None => is_param && made == at,
            Some(branch) if nest.contains(made, at) => {
                is_param && body.parent(made) == region && branch != made
            }
            Some(branch) => {
                body.parent(branch) == region && (is_param || nest.order(made) < nest.order(branch))
            }
        }
    }

    /// Returns true if an op computes an equal result before `at` and is harmless there, even if it would
    /// not have run.
    fn can_move_before(&self, op: Op, at: Op) -> bool {
        let (unit, body) = (self.clobbers.alias.unit, self.clobbers.alias.body);
        match body.kind(op) {
            OpKind::Binary(kind) if kind.may_trap() => {
                let unsigned = matches!(kind, BinaryOp::UDiv | BinaryOp::URem);
                let divisor = body.as_int(unit, body.operand(op, 1));
                let safe = divisor.is_some_and(|n| n != 0 && (unsigned || n != -1));
                // An op that always runs may run earlier.
                safe || self.clobbers.always_reaches(at, op)
            }
            OpKind::Load(access) => {
                access.is_plain()
                    && (self.clobbers.always_reaches(at, op) || self.load_is_valid(op))
                    && self.load_is_unmodified(op, at)
            }
            OpKind::Call(info) => {
                let known = unit.known_callee(body, op);
                info.bundles.is_empty()
                    && matches!(known, Some(ExternalFn::Integer(_) | ExternalFn::Math(_)))
                    && unit
                        .callee(body, op)
                        .and_then(|func| unit.known_effects(func))
                        .is_some_and(|effects| effects.is_pure())
            }
            kind => kind.is_arithmetic(),
        }
    }

    /// Returns true if no op from `at` on changes the memory before the load reads it.
    fn load_is_unmodified(&self, load: Op, at: Op) -> bool {
        let nest = &self.clobbers.alias.nest;
        let loops = nest
            .loops_of(load)
            .take_while(|lp| !nest.contains(*lp, at) || *lp == at);
        let last = loops.last().map_or(nest.order(load), |lp| nest.span(lp).1);
        let reads = self.clobbers.reads_of(load);
        let changes = |read| self.clobbers.clobbered_from(read, at, last);
        !reads.iter().any(changes)
    }

    /// Returns true if a load's address is always valid: a constant offset inside an object that lives as
    /// long as the body.
    fn load_is_valid(&self, load: Op) -> bool {
        let alias = self.clobbers.alias;
        let (unit, body) = (alias.unit, alias.body);
        let place = alias.forms.of_pointer(unit, body, body.operand(load, 0));
        let bytes = unit.layout.store_bytes(unit, body.ty(body.result(load)));
        let end = place
            .offset
            .as_constant()
            .and_then(|n| u64::try_from(n).ok())
            .and_then(|n| n.checked_add(bytes));
        let Some(end) = end else {
            return false;
        };
        let size = match place.root {
            BaseValue::Global(global) => {
                // A weak undefined global may be null, and a thread-local global has one address per
                // thread.
                let global = &unit.globals[global];
                let exists = global.defined || global.linkage != Linkage::Interposable;
                (exists && !global.thread_local).then(|| unit.layout.size_bytes(unit, global.ty))
            }
            // A pointer that advances through an argument's memory is its own base and does not stay at the
            // start.
            BaseValue::Value(root) => match body.values[root].def {
                Definition::Param(region, index) if region == body.root() => {
                    alias.dereferenceable(index)
                }
                _ => None,
            },
        };
        size.is_some_and(|size| end <= size)
    }
}
