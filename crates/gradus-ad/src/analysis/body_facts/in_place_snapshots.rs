//! In-place snapshots: scratch memory that is replaced by a piece of the tape in every iteration, with no
//! copy.
//!
//! A snapshot is a copy of an object at the end of a loop iteration under three conditions:
//! 1. The anchor region is executed at most once per iteration: the loop's own region, or a branch's region
//!    within.
//! 2. Nothing accesses the object outside of the region, and no op after the snapshot in the region writes
//!    the object.
//! 3. The object is scratch memory of the loop ([`crate::analysis::body_facts::loop_scratch`]): no iteration reads values of earlier
//!    iterations.
//!
//! The region may then use the copy in place of the object. All accesses must be plain loads and stores, and
//! the region must use the object's address for nothing else: addresses computed before the region point to
//! the original object. A load that the reverse pass recomputes without the snapshot would also read the
//! original object.

use super::BodyFacts;
use super::snapshots::{Snapshot, SnapshotExtent};
use crate::analysis::body_facts::build::FactsBuilder;
use crate::analysis::body_facts::loop_scratch::{ObjectAccesses, ScratchQuery};
use gradus_analysis::{AccessKind, Alias, Clobbers, Object, ObjectId};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Op, OpKind, Region, Value};
use std::collections::{HashMap, HashSet};

/// All accesses to an object.
#[derive(Default)]
struct AllAccesses {
    accesses: ObjectAccesses,
    /// True if accesses other than plain loads and stores exist.
    has_other_accesses: bool,
}

impl FactsBuilder<'_> {
    /// Marks the snapshots whose anchor region may work in place.
    pub(super) fn find_in_place_snapshots(
        &self,
        facts: &mut BodyFacts<'_>,
        alias: &Alias<'_>,
        clobbers: &Clobbers<'_>,
    ) {
        if facts.snapshots.is_empty() {
            return;
        }
        let returned = alias.points_to.returned(facts.body);
        let finder = InPlaceFinder {
            scratch: ScratchQuery {
                unit: self.unit,
                facts,
                alias,
                clobbers,
                effects: &self.closure.effects,
                returned: &returned,
            },
        };
        let accesses = finder.all_accesses();
        let worked_in =
            |snapshot: &Snapshot| finder.can_work_in_place(snapshot, &accesses).is_some();
        let found: Vec<bool> = facts.snapshots.iter().map(worked_in).collect();
        let mut taken = HashSet::new();
        for (snapshot, worked_in) in facts.snapshots.iter_mut().zip(found) {
            // If an iteration copies an object twice, only the first copy is used in place.
            snapshot.in_place = worked_in && taken.insert(snapshot.root);
            if snapshot.in_place {
                snapshot.filler = None;
            }
        }
    }
}

struct InPlaceFinder<'a> {
    scratch: ScratchQuery<'a>,
}

impl InPlaceFinder<'_> {
    /// Returns the accesses to all objects of the body.
    fn all_accesses(&self) -> HashMap<ObjectId, AllAccesses> {
        let (unit, body) = (self.scratch.unit, self.scratch.facts.body);
        let mut found: HashMap<ObjectId, AllAccesses> = HashMap::new();
        for op in body.walk(body.root()) {
            for access in self.scratch.effects.of_op(unit, body, op) {
                if matches!(access.kind, AccessKind::Free | AccessKind::Lifetime) {
                    continue;
                }
                for object in self.scratch.objects(&access) {
                    let all = found.entry(object).or_default();
                    match body.kind(op) {
                        OpKind::Load(access) if access.is_plain() => all.accesses.reads.push(op),
                        OpKind::Store(access) if access.is_plain() => all.accesses.writes.push(op),
                        _ => all.has_other_accesses = true,
                    }
                }
            }
        }
        found
    }

    /// Returns `Some` if an iteration may work in the copy.
    fn can_work_in_place(
        &self,
        snapshot: &Snapshot,
        accesses: &HashMap<ObjectId, AllAccesses>,
    ) -> Option<()> {
        let (facts, body) = (self.scratch.facts, self.scratch.facts.body);
        let region = body.parent(snapshot.anchor)?;
        let mut lp = body.owner(region)?;
        while matches!(body.kind(lp), OpKind::If) {
            lp = body.parent_op(lp)?;
        }
        let counted = matches!(body.kind(lp), OpKind::For { .. });
        let whole = !matches!(snapshot.extent, SnapshotExtent::Addresses(_));
        if !counted || !whole || facts.shadow_may_be_primal(snapshot.root) {
            return None;
        }
        let made = body.def_op(snapshot.root)?;
        if !self.is_serial_up_to(made, region) {
            return None;
        }
        let (points_to, nest) = (&self.scratch.alias.points_to, &self.scratch.alias.nest);
        let object =
            (points_to.find(Object::Stack(made))).or_else(|| points_to.find(Object::Heap(made)))?;
        let all = accesses.get(&object)?;
        let found = self.local_accesses(region, snapshot.root)?;
        let in_time = |write: &Op| {
            let before = nest.branch_towards(*write, snapshot.anchor);
            before.is_some_and(|before| {
                body.parent(before) == Some(region)
                    && nest.order(before) < nest.order(snapshot.anchor)
            })
        };
        let served = |load: &Op| snapshot.loads.contains(load) || !facts.is_stable(*load);
        let (reads, writes) = (&all.accesses.reads, &all.accesses.writes);
        let fits = !all.has_other_accesses
            && self.scratch.private_allocation_before(lp, object) == Some(made)
            && reads.iter().chain(writes).all(|op| found.contains(op))
            && (writes.iter().all(in_time) || is_planted(Mutant::LateWriteToInPlaceTape))
            && reads.iter().all(served)
            && self.scratch.never_reads_old_iterations(made, &all.accesses);
        fits.then_some(())
    }

    /// Returns true if all ops that enclose a region, up to the allocation of an object, run serially.
    fn is_serial_up_to(&self, made: Op, region: Region) -> bool {
        let body = self.scratch.facts.body;
        let mut at = Some(region);
        while at != body.parent(made) {
            let Some(owner) = at.and_then(|region| body.owner(region)) else {
                return false;
            };
            let serial = match body.kind(owner) {
                OpKind::For { .. } => !body.is_independent(owner),
                OpKind::Loop { .. } | OpKind::If | OpKind::Switch(_) => true,
                _ => false,
            };
            if !serial {
                return false;
            }
            at = body.parent(owner);
        }
        true
    }

    /// Returns the loads and stores in a region whose addresses are computed there from `root`; `None` if
    /// such an address has any other use.
    fn local_accesses(&self, region: Region, root: Value) -> Option<HashSet<Op>> {
        let (unit, body) = (self.scratch.unit, self.scratch.facts.body);
        let outside = |op: Op| !body.is_nested_in(op, region);
        let mut found = HashSet::new();
        let mut work = vec![root];
        while let Some(address) = work.pop() {
            for at in body.uses(address) {
                match body.kind(at.op) {
                    _ if outside(at.op) => {}
                    OpKind::Addr { .. } if at.index == 0 => work.push(body.result(at.op)),
                    OpKind::Load(_) => {
                        found.insert(at.op);
                    }
                    OpKind::Store(_) if at.index == 1 => {
                        found.insert(at.op);
                    }
                    OpKind::Call(_) if unit.is_lifetime_marker(body, at.op) => {}
                    _ => return None,
                }
            }
        }
        Some(found)
    }
}
