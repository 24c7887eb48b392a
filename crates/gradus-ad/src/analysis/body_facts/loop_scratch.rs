//! Scratch memory of a loop: values that an iteration leaves there are never read by a later iteration.
//!
//! An object is scratch memory of a loop under three conditions:
//! 1. The function allocates the object before the loop, uninitialised, and the address does not escape.
//! 2. Only the loop accesses the object. Outside of the loop, the object is freed or its lifetime ends.
//! 3. Every write of the loop to the object is of one of two kinds. A write of the first kind follows a read
//!    of the same location in the same iteration. A write of the second kind writes the same locations in
//!    each iteration, and before every read of the object. Its address, trip counts and conditions do not
//!    vary in the loops that enclose both write and read, up to the allocation of the object.
//!
//! A read then yields a value of the same iteration. Proof: take the first read of a location that the
//! iteration has not written before. No write of the second kind writes the location in any iteration,
//! because it would have done so in this iteration, before the read. Only writes of the first kind can have
//! written the location. The first of them follows a read of the location, which was uninitialised at that
//! point.

use super::BodyFacts;
use crate::analysis::body_facts::forward_slice::has_only_results;
use gradus_analysis::{
    AccessKind, Alias, Clobbers, CopyKind, Effects, MemoryAccess, MemoryRegion, Object, ObjectId,
};
use gradus_ir::externals::{AllocationSize, CompilerIntrinsic, ExternalFn, MemoryFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Op, OpKind, Unit, Value};
use std::collections::{BTreeMap, HashSet};

/// The ops of a loop that write an object, and the ops that read it.
#[derive(Default)]
pub(super) struct ObjectAccesses {
    pub writes: Vec<Op>,
    pub reads: Vec<Op>,
}

/// Queries on the memory of one loop.
pub(super) struct ScratchQuery<'a> {
    pub unit: &'a Unit,
    pub facts: &'a BodyFacts<'a>,
    pub alias: &'a Alias<'a>,
    pub clobbers: &'a Clobbers<'a>,
    pub effects: &'a Effects,
    /// Objects returned to the caller.
    pub returned: &'a HashSet<ObjectId>,
}

impl ScratchQuery<'_> {
    /// Returns true if a loop writes scratch memory only, and each read goes to scratch memory or to memory
    /// that is unchanged in the reverse pass.
    pub fn writes_only_scratch(&self, lp: Op) -> bool {
        let Some(objects) = self.accesses_in(lp) else {
            return false;
        };
        let own = |id: &ObjectId| objects.get(id).is_some_and(|a| !a.writes.is_empty());
        let readable = objects.iter().all(|(id, accesses)| {
            own(id) || accesses.reads.iter().all(|op| self.facts.is_stable(*op))
        });
        let unmixed = objects.values().flat_map(|a| &a.reads).all(|op| {
            let all: Vec<ObjectId> = self
                .clobbers
                .reads_of(*op)
                .iter()
                .flat_map(|r| self.objects(r))
                .collect();
            all.iter().all(own) || !all.iter().any(own)
        });
        readable
            && unmixed
            && (objects.iter())
                .filter(|(id, _)| own(id))
                .all(|(id, accesses)| self.is_scratch(lp, *id, accesses))
    }

    /// Returns the objects that an access may touch.
    pub fn objects(&self, access: &MemoryAccess) -> Vec<ObjectId> {
        let set = self.alias.objects(access).unwrap_or_default();
        set.iter().map(|target| target.object).collect()
    }

    /// Returns the accesses of a loop by object; `None` if the loop contains an unsupported op.
    fn accesses_in(&self, lp: Op) -> Option<BTreeMap<ObjectId, ObjectAccesses>> {
        let body = self.facts.body;
        let mut found: BTreeMap<ObjectId, ObjectAccesses> = BTreeMap::new();
        for op in body.walk(body.op_regions(lp)[0]) {
            if !self.is_recomputable_op(op) {
                return None;
            }
            if has_only_results(self.unit, body, op) {
                continue;
            }
            for access in self.effects.of_op(self.unit, body, op) {
                if matches!(access.kind, AccessKind::Lifetime) {
                    continue;
                }
                if !matches!(access.place, MemoryRegion::At(_) | MemoryRegion::Global(_)) {
                    return None;
                }
                for object in self.objects(&access) {
                    let accesses = found.entry(object).or_default();
                    match access.is_clobber() {
                        true => accesses.writes.push(op),
                        false => accesses.reads.push(op),
                    }
                }
            }
        }
        Some(found)
    }

    /// Returns true if the forward pass executes an op exactly as the primal does.
    fn is_recomputable_op(&self, op: Op) -> bool {
        let body = self.facts.body;
        let known = self.unit.known_callee(body, op);
        if self.facts.is_on_noreturn_path(op) {
            return false;
        }
        match body.kind(op) {
            // A second execution may choose another value.
            OpKind::Freeze => false,
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
            OpKind::Yield | OpKind::Repeat => true,
            OpKind::Load(access) => access.is_plain(),
            OpKind::Store(access) => {
                access.is_plain() && !self.facts.holds_pointer(self.unit, body.operand(op, 0))
            }
            OpKind::Call(_) => match known {
                Some(ExternalFn::Memory(
                    MemoryFn::MemcpyIntrinsic
                    | MemoryFn::MemmoveIntrinsic
                    | MemoryFn::MemsetIntrinsic
                    | MemoryFn::Memcpy
                    | MemoryFn::Memmove
                    | MemoryFn::Memset,
                )) => matches!(
                    self.facts.copy_kind(op),
                    CopyKind::Floats(_) | CopyKind::Nothing
                ),
                Some(ExternalFn::Marker(
                    CompilerIntrinsic::LifetimeStart | CompilerIntrinsic::LifetimeEnd,
                )) => true,
                _ => has_only_results(self.unit, body, op),
            },
            _ => has_only_results(self.unit, body, op),
        }
    }

    fn is_scratch(&self, lp: Op, object: ObjectId, accesses: &ObjectAccesses) -> bool {
        let Some(made) = self.private_allocation_before(lp, object) else {
            return false;
        };
        self.is_unaccessed_outside(lp, object) && self.never_reads_old_iterations(made, accesses)
    }

    /// Returns true if no iteration reads a value of an earlier iteration from the object that `made`
    /// allocates.
    pub fn never_reads_old_iterations(&self, made: Op, accesses: &ObjectAccesses) -> bool {
        accesses.writes.iter().all(|write| {
            let comes_before = |read: &Op| self.is_overwritten_before(made, *write, *read);
            self.follows_load_of_location(*write)
                || accesses.reads.iter().all(comes_before)
                || is_planted(Mutant::CrossIterationScratchRecomputed)
        })
    }

    /// Returns the op that allocates an object in this function before a loop, uninitialised and without
    /// escape.
    pub fn private_allocation_before(&self, lp: Op, object: ObjectId) -> Option<Op> {
        let (nest, body) = (&self.alias.nest, self.facts.body);
        let op = match self.alias.points_to.object(object) {
            Object::Stack(op) => op,
            Object::Heap(op) => {
                let known = self.unit.known_callee(body, op);
                let Some(ExternalFn::Memory(function)) = known else {
                    return None;
                };
                let empty = function.allocation().is_some_and(|a| {
                    !a.zeroed && a.replaces.is_none() && a.size != AllocationSize::Unknown
                });
                if !empty || function.is_tape() || matches!(function, MemoryFn::UserAllocator(_)) {
                    return None;
                }
                op
            }
            _ => return None,
        };
        let own = self.alias.points_to.is_private(object) && !self.returned.contains(&object);
        (own && !nest.contains(lp, op)).then_some(op)
    }

    /// Returns true if nothing outside of a loop reads or writes an object, and the object lives on in the
    /// reverse pass.
    fn is_unaccessed_outside(&self, lp: Op, object: ObjectId) -> bool {
        let body = self.facts.body;
        let all = body.walk(body.root());
        let outside = all.filter(|op| !self.alias.nest.contains(lp, *op));
        let mut accesses = outside.flat_map(|op| self.effects.of_op(self.unit, body, op));
        accesses.all(|access| {
            let harmless = match access.kind {
                AccessKind::Read | AccessKind::Write => false,
                AccessKind::Free => {
                    self.facts.is_deferred_free(access.op)
                        || self.facts.is_on_noreturn_path(access.op)
                }
                AccessKind::Lifetime => true,
            };
            harmless || !self.objects(&access).contains(&object)
        })
    }

    /// Returns true if a store follows a load of the same location with at least as many bytes.
    fn follows_load_of_location(&self, write: Op) -> bool {
        let body = self.facts.body;
        let OpKind::Store(_) = body.kind(write) else {
            return false;
        };
        let (value, ptr) = (body.operand(write, 0), body.operand(write, 1));
        let size = |value: Value| self.unit.layout.store_bytes(self.unit, body.ty(value));
        let (Some(home), nest) = (body.parent(write), &self.alias.nest) else {
            return false;
        };
        body.uses(ptr).any(|at| {
            let reads = matches!(body.kind(at.op), OpKind::Load(access) if access.is_plain());
            reads
                && nest.order(at.op) < nest.order(write)
                && body
                    .parent(at.op)
                    .is_some_and(|region| body.is_inside(home, region))
                && size(body.result(at.op)) >= size(value)
        })
    }

    /// Returns true if a write precedes a read, and writes the same locations in every iteration of the
    /// common loops within the lifetime of the object that `made` allocates.
    fn is_overwritten_before(&self, made: Op, write: Op, read: Op) -> bool {
        let (nest, body) = (&self.alias.nest, self.facts.body);
        let (Some(first), Some(then)) = (
            nest.branch_towards(write, read),
            nest.branch_towards(read, write),
        ) else {
            return false;
        };
        if body.parent(first) != body.parent(then) || nest.order(first) > nest.order(then) {
            return false;
        }
        let common: Vec<Op> = (nest.loops_of(first))
            .take_while(|at| !nest.contains(*at, made))
            .collect();
        let stays = |value: Value| {
            let varying = self.facts.varying_loops.get(&value);
            varying.is_none_or(|loops| !loops.iter().any(|l| common.contains(l)))
        };
        let mut at = write;
        while at != first {
            let Some(around) = nest.parent(at) else {
                return false;
            };
            at = around;
            match body.kind(at) {
                OpKind::For { .. } | OpKind::If | OpKind::Switch(_)
                    if stays(body.operand(at, 0)) => {}
                _ => return false,
            }
        }
        match body.kind(write) {
            OpKind::Store(_) => stays(body.operand(write, 1)),
            _ => body.operands(write).all(stays),
        }
    }
}
