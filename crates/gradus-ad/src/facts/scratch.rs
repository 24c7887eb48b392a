//! Scratch memory of a loop: what an iteration leaves there, no later one reads.
//!
//! An object is scratch memory of a loop if
//! 1. the function makes it before the loop, uninitialised, and nobody else can reach it;
//! 2. only the loop accesses it; outside it is freed, or its life ends;
//! 3. every write of the loop to it either follows a read of the same place in the same iteration, or
//!    writes the same places in each iteration, and before every read of the object: the write's
//!    address, how often it runs and under which conditions do not vary in the loops that surround both
//!    write and read, up to where the object is made.
//!
//! Then a read gives what the same iteration wrote. Take the first read of a place that an iteration has
//! not written before. No write of the second kind goes to the place in any iteration, as it would have
//! in this one, before the read. So only writes of the first kind may have, and the first of these
//! follows a read of the place, which nothing had written: it was uninitialised.

use super::Facts;
use super::influence::computes;
use gradus_analysis::{
    AccessKind, Alias, Clobbers, CopyKind, Effects, MemoryAccess, Object, ObjectId, Place,
};
use gradus_ir::known::{AllocationSize, Known, MarkerFn, MemoryFn};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Op, OpKind, Unit, Value};
use std::collections::{BTreeMap, HashSet};

/// The ops of a loop that write an object, and those that read it.
#[derive(Default)]
pub(super) struct Accesses {
    pub writes: Vec<Op>,
    pub reads: Vec<Op>,
}

/// Asks about the memory of one loop.
pub(super) struct Scratch<'a> {
    pub unit: &'a Unit,
    pub facts: &'a Facts<'a>,
    pub alias: &'a Alias<'a>,
    pub clobbers: &'a Clobbers<'a>,
    pub effects: &'a Effects,
    /// The objects that the caller is given.
    pub returned: &'a HashSet<ObjectId>,
}

impl Scratch<'_> {
    /// Whether a loop writes its scratch memory and no other, and reads what it wrote there in the same
    /// iteration, or what can be read again in the return sweep.
    pub fn suffices(&self, lp: Op) -> bool {
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

    /// The objects that an access may go to.
    pub fn objects(&self, access: &MemoryAccess) -> Vec<ObjectId> {
        let set = self.alias.objects(access).unwrap_or_default();
        set.iter().map(|target| target.object).collect()
    }

    /// By object, what in a loop accesses it; `None` where something is not understood.
    fn accesses_in(&self, lp: Op) -> Option<BTreeMap<ObjectId, Accesses>> {
        let body = self.facts.body;
        let mut found: BTreeMap<ObjectId, Accesses> = BTreeMap::new();
        for op in body.walk(body.op_regions(lp)[0]) {
            if !self.is_understood(op) {
                return None;
            }
            if computes(self.unit, body, op) {
                continue;
            }
            for access in self.effects.of_op(self.unit, body, op) {
                if matches!(access.kind, AccessKind::Lifetime) {
                    continue;
                }
                if !matches!(access.place, Place::At(_) | Place::Global(_)) {
                    return None;
                }
                for object in self.objects(&access) {
                    let accesses = found.entry(object).or_default();
                    match access.destroys() {
                        true => accesses.writes.push(op),
                        false => accesses.reads.push(op),
                    }
                }
            }
        }
        Some(found)
    }

    /// Whether doing an op again is done by a forward sweep as by the primal.
    fn is_understood(&self, op: Op) -> bool {
        let body = self.facts.body;
        let known = self.unit.callee(body, op).and_then(|f| self.unit.known(f));
        if self.facts.is_doomed(op) {
            return false;
        }
        match body.kind(op) {
            // It may choose otherwise the second time.
            OpKind::Freeze => false,
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
            OpKind::Yield | OpKind::Repeat => true,
            OpKind::Load(access) => access.is_plain(),
            OpKind::Store(access) => {
                access.is_plain() && !self.facts.holds_pointer(self.unit, body.operand(op, 0))
            }
            OpKind::Call(_) => match known {
                Some(Known::Memory(
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
                Some(Known::Marker(MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd)) => true,
                _ => computes(self.unit, body, op),
            },
            _ => computes(self.unit, body, op),
        }
    }

    fn is_scratch(&self, lp: Op, object: ObjectId, accesses: &Accesses) -> bool {
        let Some(made) = self.made_before(lp, object) else {
            return false;
        };
        self.is_left_alone_outside(lp, object) && self.is_written_anew(made, accesses)
    }

    /// Whether all accesses of a loop to an object that `made` makes are such that what an iteration leaves
    /// there, no later one reads.
    pub fn is_written_anew(&self, made: Op, accesses: &Accesses) -> bool {
        accesses.writes.iter().all(|write| {
            let comes_before = |read: &Op| self.is_written_before(made, *write, *read);
            self.follows_a_read(*write)
                || accesses.reads.iter().all(comes_before)
                || planted(Mutant::ScratchOfEarlierIterations)
        })
    }

    /// The op of the function that makes an object, before a loop, with nothing in it, for itself alone.
    pub fn made_before(&self, lp: Op, object: ObjectId) -> Option<Op> {
        let (nest, body) = (&self.alias.nest, self.facts.body);
        let op = match self.alias.points_to.object(object) {
            Object::Stack(op) => op,
            Object::Heap(op) => {
                let known = self.unit.callee(body, op).and_then(|f| self.unit.known(f));
                let Some(Known::Memory(function)) = known else {
                    return None;
                };
                let empty = function.allocation().is_some_and(|a| {
                    !a.zeroed && a.replaces.is_none() && a.size != AllocationSize::Unknown
                });
                if !empty || function.is_tape() || matches!(function, MemoryFn::Own(_)) {
                    return None;
                }
                op
            }
            _ => return None,
        };
        let own = self.alias.points_to.is_private(object) && !self.returned.contains(&object);
        (own && !nest.contains(lp, op)).then_some(op)
    }

    /// Whether nothing outside of a loop reads or writes an object, and whether it lives on in the return
    /// sweep.
    fn is_left_alone_outside(&self, lp: Op, object: ObjectId) -> bool {
        let body = self.facts.body;
        let all = body.walk(body.root());
        let outside = all.filter(|op| !self.alias.nest.contains(lp, *op));
        let mut accesses = outside.flat_map(|op| self.effects.of_op(self.unit, body, op));
        accesses.all(|access| {
            let harmless = match access.kind {
                AccessKind::Read | AccessKind::Write => false,
                AccessKind::Free => {
                    self.facts.is_deferred_free(access.op) || self.facts.is_doomed(access.op)
                }
                AccessKind::Lifetime => true,
            };
            harmless || !self.objects(&access).contains(&object)
        })
    }

    /// Whether a store comes after a load of the same place, of no fewer bytes.
    fn follows_a_read(&self, write: Op) -> bool {
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

    /// Whether a write comes before a read and writes the same places in every iteration of the loops
    /// around both in which the object, made by `made`, is the same.
    fn is_written_before(&self, made: Op, write: Op, read: Op) -> bool {
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
            let varying = self.facts.varying.get(&value);
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
