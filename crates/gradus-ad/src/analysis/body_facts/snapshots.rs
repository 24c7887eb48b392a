//! Snapshots: copies of whole arrays, from which loads can be recomputed although the array is overwritten
//! later.
//!
//! A load that is not stable may be stable during one execution of a loop `at`: nothing in the loop writes
//! the loaded location, or each location is written only after its load. A copy of the memory, made just
//! before the loop, then serves the load. Loads in several such loops of one region share a copy as long as
//! nothing in between writes the memory. A branch around the first loop does not prevent sharing if a whole
//! allocation is copied. The copied bytes must be dereferenceable: a whole allocation of known size, or the
//! range from the lowest to the highest address of unconditional affine loads.
//!
//! If the first loop reads each of the loaded locations exactly once, the loop itself may fill the copy: the
//! load stores each loaded value (the *filler*).

use crate::analysis::body_facts::early_availability::{is_available_before, is_computable_from};
use gradus_analysis::{Affine, Alias, Availability, BaseValue, Clobbers, MemoryAccess, affine};
use gradus_ir::externals::{AllocationSize, ExternalFn};
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The extent of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotExtent {
    /// The whole block: this number of bytes from the root.
    Block(Value),
    /// A constant number of bytes from the root.
    Bytes(u64),
    /// The locations of these loads.
    Addresses(Vec<TouchedRange>),
}

/// The locations of a load, or of loads at constant distances, over all iterations of the enclosing loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedRange {
    /// Address of the first load as an affine form in the loops' indices.
    pub form: Affine,
    /// Bytes from that address to the end of the last load.
    pub bytes: u64,
    /// Enclosing loops up to the loop that the snapshot serves. If the trip count of any of them is zero,
    /// nothing is touched.
    pub loops: Vec<Op>,
}

impl TouchedRange {
    fn factors(&self) -> impl Iterator<Item = &Value> {
        let products = self.form.invariant.iter().flat_map(|(product, _)| product);
        products.chain(self.form.terms.iter().flat_map(|term| &term.factors))
    }
    fn trip_counts(&self, body: &Body) -> impl Iterator<Item = Value> {
        self.loops.iter().map(|lp| body.operand(*lp, 0))
    }

    /// Extends the range by `other` if both lie at a constant distance in all iterations. Returns false
    /// otherwise.
    fn extend_to(&mut self, other: &TouchedRange) -> bool {
        let (own, of_other) = (&self.form, &other.form);
        let alike = self.loops == other.loops
            && own.start == of_other.start
            && own.invariant == of_other.invariant
            && own.terms == of_other.terms;
        let hull = || {
            let end = |touched: &TouchedRange| {
                (touched.form.constant).checked_add(i64::try_from(touched.bytes).ok()?)
            };
            let (first, last) = (
                own.constant.min(of_other.constant),
                end(self)?.max(end(other)?),
            );
            Some((first, u64::try_from(last.checked_sub(first)?).ok()?))
        };
        let Some((first, bytes)) = alike.then(hull).flatten() else {
            return false;
        };
        self.form.constant = first;
        self.bytes = bytes;
        true
    }
}

/// A candidate snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The copy is made just before this loop.
    pub anchor: Op,
    /// Base pointer of the addresses, available at the anchor.
    pub root: Value,
    /// Loads that the snapshot serves.
    pub loads: Vec<Op>,
    /// Extent of the copy.
    pub extent: SnapshotExtent,
    /// The load that fills the copy with the loaded values, in place of a bulk copy.
    pub filler: Option<Op>,
    /// True if only the anchor loop reads the copy, and does not overwrite the copied memory.
    pub serves_one_loop: bool,
    /// True if the region of the anchor may use the tape memory in place of the object, and nothing is copied
    /// ([`crate::analysis::body_facts::in_place_snapshots`]).
    pub in_place: bool,
}

impl Snapshot {
    /// Returns the size of the block if a whole block of variable size is copied.
    pub fn size(&self) -> Option<Value> {
        match self.extent {
            SnapshotExtent::Block(size) => Some(size),
            SnapshotExtent::Bytes(_) | SnapshotExtent::Addresses(_) => None,
        }
    }

    /// Returns the values that the copy requires, except trip counts that are computed early.
    pub fn inputs(&self, body: &Body) -> Vec<Value> {
        let mut found = vec![self.root];
        match &self.extent {
            SnapshotExtent::Block(size) => found.push(*size),
            SnapshotExtent::Bytes(_) => {}
            SnapshotExtent::Addresses(all) => {
                for touched in all {
                    found.extend(touched.factors());
                    found.extend(touched.trip_counts(body));
                }
            }
        }
        found
    }
}

/// The progression of a load over one loop: trip count, and step in bytes from a start.
#[derive(PartialEq)]
struct AccessProgression {
    root: Value,
    constant: i64,
    invariant: Vec<(SmallVec<[Value; 2]>, i64)>,
    step: i64,
    trips: Value,
    bytes: u64,
}

/// Finds snapshots that serve unstable loads.
pub(super) struct SnapshotFinder<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    pub alias: &'a Alias<'a>,
    pub clobbers: &'a Clobbers<'a>,
}

impl SnapshotFinder<'_> {
    /// Returns all snapshots, and the snapshot that serves each load.
    pub fn find(&self, unstable: &[Op]) -> (Vec<Snapshot>, HashMap<Op, usize>) {
        let mut found: Vec<Snapshot> = Vec::new();
        let mut open: HashMap<(Region, Value), usize> = HashMap::new();
        let mut latest: HashMap<Value, usize> = HashMap::new();
        for &load in unstable {
            let Some((at, root, in_place)) = self.stable_loop(load) else {
                continue;
            };
            let Some(region) = self.body.parent(at) else {
                continue;
            };
            let Some(extent) = self.extent(load, at, root) else {
                continue;
            };
            let candidates = [open.get(&(region, root)), latest.get(&root)];
            let shared = candidates.into_iter().flatten().find_map(|&number| {
                let anchor = self.shared_anchor(&found[number], load, at, &extent)?;
                Some((number, anchor))
            });
            match shared {
                Some((number, anchor)) => {
                    let snapshot = &mut found[number];
                    snapshot.loads.push(load);
                    snapshot.serves_one_loop &= at == snapshot.anchor && !in_place;
                    snapshot.anchor = anchor;
                    open.insert((region, root), number);
                    if let (SnapshotExtent::Addresses(all), SnapshotExtent::Addresses(more)) =
                        (&mut snapshot.extent, extent)
                    {
                        for touched in more {
                            if !all.iter_mut().any(|known| known.extend_to(&touched)) {
                                all.push(touched);
                            }
                        }
                    }
                }
                // The values may be saved one by one as they are loaded.
                None if in_place => {}
                None => {
                    open.insert((region, root), found.len());
                    latest.insert(root, found.len());
                    found.push(Snapshot {
                        anchor: at,
                        root,
                        loads: vec![load],
                        extent,
                        filler: None,
                        serves_one_loop: true,
                        in_place: false,
                    });
                }
            }
        }
        for snapshot in &mut found {
            snapshot.filler = self.filler(snapshot);
        }
        let mut serving = HashMap::new();
        for (number, snapshot) in found.iter().enumerate() {
            serving.extend(snapshot.loads.iter().map(|load| (*load, number)));
        }
        (found, serving)
    }

    /// Returns the anchor of a snapshot that also serves a load in the loop `at`; `None` if sharing is
    /// impossible.
    fn shared_anchor(
        &self,
        snapshot: &Snapshot,
        load: Op,
        at: Op,
        extent: &SnapshotExtent,
    ) -> Option<Op> {
        let anchor = self.enclosing_in_region(snapshot.anchor, self.body.parent(at)?)?;
        let raised = anchor != snapshot.anchor;
        let before = raised.then_some(&snapshot.loads).into_iter().flatten();
        let unwritten = |load: &Op| self.is_unwritten_between(*load, anchor, at);
        let movable = || {
            let whole = !matches!(extent, SnapshotExtent::Addresses(_));
            let inputs = snapshot.inputs(self.body);
            whole
                && inputs.iter().all(|value| self.visible(*value, anchor))
                && self.clobbers.always_reaches(anchor, at)
        };
        let shared = before.chain([&load]).all(unwritten)
            && is_same_kind(&snapshot.extent, extent)
            && self.is_readable_at(extent, anchor, at)
            && (!raised || movable());
        shared.then_some(anchor)
    }

    /// Returns `op`, or the enclosing branch of `op` that lies in `region`.
    fn enclosing_in_region(&self, op: Op, region: Region) -> Option<Op> {
        let mut at = op;
        while self.body.parent(at)? != region {
            at = self.body.parent_op(at)?;
            if !matches!(self.body.kind(at), OpKind::If) {
                return None;
            }
        }
        Some(at)
    }

    /// Returns the load in the anchor loop that reads, exactly once each, all locations that the snapshot's
    /// loads read.
    fn filler(&self, snapshot: &Snapshot) -> Option<Op> {
        let inside = *self.body.op_regions(snapshot.anchor).first()?;
        let region = self.body.parent(snapshot.anchor)?;
        if !matches!(self.body.kind(snapshot.anchor), OpKind::For { .. }) {
            return None;
        }
        let own = |load: &&Op| self.body.parent(**load) == Some(inside);
        let filler = *snapshot.loads.iter().find(own)?;
        let run = self.progression(filler, region)?;
        let same = |load: &Op| self.progression(*load, region).as_ref() == Some(&run);
        (run.root == snapshot.root && snapshot.loads.iter().all(same)).then_some(filler)
    }

    /// Returns the progression of a load over one loop, known before the enclosing op in `region`, if no
    /// location is read twice.
    fn progression(&self, load: Op, region: Region) -> Option<AccessProgression> {
        let top = self.body.ancestor_in(region, load)?;
        let form = affine(self.alias, self.body.operand(load, 0), Some(top))?;
        let (Some(BaseValue::Value(root)), [term]) = (form.start, &form.terms[..]) else {
            return None;
        };
        let bytes = self.bytes(self.body.result(load));
        let far = term.coefficient.unsigned_abs() >= bytes;
        let simple = form.exact && far && term.dim == 0 && term.factors.is_empty();
        let counted = matches!(self.body.kind(term.lp), OpKind::For { .. });
        (simple && counted).then(|| AccessProgression {
            root,
            constant: form.constant,
            invariant: form.invariant.clone(),
            step: term.coefficient,
            trips: self.body.operand(term.lp, 0),
            bytes,
        })
    }

    fn bytes(&self, value: Value) -> u64 {
        let layout = &self.unit.layout;
        layout.store_bytes(self.unit, self.body.ty(value))
    }

    /// Returns true if the copied bytes for the loop `at` can be addressed and read at the earlier `anchor`:
    /// all inputs of the extent are available there, and control surely reaches the loop.
    fn is_readable_at(&self, extent: &SnapshotExtent, anchor: Op, at: Op) -> bool {
        let SnapshotExtent::Addresses(all) = extent else {
            return true;
        };
        let known = Availability::new(self.clobbers);
        let visible = |value: Value| known.is_visible_before(value, anchor);
        let all_known = all.iter().all(|touched| {
            let early = |trips| is_computable_from(self.body, trips, &visible);
            touched.factors().all(|v| visible(*v)) && touched.trip_counts(self.body).all(early)
        });
        all_known && self.clobbers.always_reaches(anchor, at)
    }

    fn read(&self, load: Op) -> Option<&MemoryAccess> {
        self.clobbers.reads_of(load).first()
    }

    /// Returns the outermost loop that does not change the location of `load`, and the base pointer of the
    /// load's address. The address must be a chain of address computations from a pointer that is available
    /// before the loop. Otherwise returns the enclosing loop if the loop overwrites each location only after
    /// the load; the flag is then true.
    fn stable_loop(&self, load: Op) -> Option<(Op, Value, bool)> {
        let access = self.read(load)?;
        let root = self.chain_root(self.body.operand(load, 0))?;
        let mut best = None;
        for at in self.alias.nest.loops_of(load) {
            let known = self.visible(root, at);
            if !known || !self.body.kind(at).is_loop() {
                break;
            }
            if self.clobbers.clobbered_in(access, at) {
                let first = best.is_none() && self.is_overwritten_after_load(load, access, at);
                return first.then_some((at, root, true)).or(best);
            }
            best = Some((at, root, false));
        }
        best
    }

    /// Returns true if a loop overwrites loaded locations only after the load: by stores to the load's
    /// address, which differs in each iteration.
    fn is_overwritten_after_load(&self, load: Op, access: &MemoryAccess, at: Op) -> bool {
        let region = self.body.op_regions(at)[0];
        let (ptr, bytes) = (
            self.body.operand(load, 0),
            self.bytes(self.body.result(load)),
        );
        let steps = affine(self.alias, ptr, Some(at)).is_some_and(|form| match &form.terms[..] {
            [term] => {
                let far = term.coefficient.unsigned_abs() >= bytes;
                form.exact && term.lp == at && term.dim == 0 && term.factors.is_empty() && far
            }
            _ => false,
        });
        let nest = &self.alias.nest;
        let follows = |op: Op| {
            matches!(self.body.kind(op), OpKind::Store(access) if access.is_plain())
                && self.body.operand(op, 1) == ptr
                && self.bytes(self.body.operand(op, 0)) <= bytes
                && self.body.parent(op) == Some(region)
                && nest.order(op) > nest.order(load)
        };
        steps
            && matches!(self.body.kind(at), OpKind::For { .. })
            && self.body.parent(load) == Some(region)
            && self.clobbers.clobbered_only_by(access, at, follows)
    }

    fn chain_root(&self, pointer: Value) -> Option<Value> {
        let mut at = pointer;
        while let Some(op) = self.body.def_op(at)
            && matches!(self.body.kind(op), OpKind::Addr { .. })
        {
            at = self.body.operand(op, 0);
        }
        self.body.as_const(at).is_none().then_some(at)
    }

    fn visible(&self, value: Value, at: Op) -> bool {
        let Some(region) = self.body.parent(at) else {
            return self.body.as_const(value).is_some();
        };
        self.body.is_visible_in(value, region)
    }

    /// Returns true if no op from `from` up to `to`, both in one region, writes the location of `load`.
    fn is_unwritten_between(&self, load: Op, from: Op, to: Op) -> bool {
        let Some(access) = self.read(load) else {
            return false;
        };
        let mut at = from;
        while at != to {
            if self.clobbers.clobbered_in(access, at) {
                return false;
            }
            match self.body.next(at) {
                Some(next) => at = next,
                None => return false,
            }
        }
        true
    }

    fn extent(&self, load: Op, at: Op, root: Value) -> Option<SnapshotExtent> {
        self.block(root).or_else(|| self.addresses(load, at, root))
    }

    /// Returns the size of the allocation that a pointer is the start of.
    fn block(&self, root: Value) -> Option<SnapshotExtent> {
        let op = self.body.def_op(root)?;
        match self.body.kind(op) {
            OpKind::Alloca(info) => {
                let count = self.body.as_int(self.unit, self.body.operand(op, 0))?;
                let size = self.unit.layout.size_bytes(self.unit, info.ty);
                Some(SnapshotExtent::Bytes(
                    size.checked_mul(u64::try_from(count).ok()?)?,
                ))
            }
            OpKind::Call(_) => {
                let callee = self.unit.callee(self.body, op)?;
                let Some(ExternalFn::Memory(function)) = self.unit.known(callee) else {
                    return None;
                };
                let allocation = function.allocation()?;
                let AllocationSize::Argument(number) = allocation.size else {
                    return None;
                };
                let args = self.unit.call_args(self.body, op);
                Some(SnapshotExtent::Block(args[usize::from(number)]))
            }
            _ => None,
        }
    }

    /// Returns the address as an affine form in the loops within `at`, if every iteration executes the load.
    fn addresses(&self, load: Op, at: Op, root: Value) -> Option<SnapshotExtent> {
        let mut inner = load;
        while inner != at {
            inner = self.alias.nest.parent(inner)?;
            if !matches!(self.body.kind(inner), OpKind::For { .. }) {
                return None;
            }
        }
        if self.clobbers.may_exit_in(at) {
            return None;
        }
        let pointer = self.body.operand(load, 0);
        let form = affine(self.alias, pointer, Some(at))?;
        let starts_there = form.start == Some(BaseValue::Value(root));
        let own_indices = form.terms.iter().all(|t| t.dim == 0);
        let inner = self.alias.nest.loops_of(load).take_while(|l| *l != at);
        let touched = TouchedRange {
            bytes: self.bytes(self.body.result(load)),
            loops: inner.chain([at]).collect(),
            form,
        };
        let known = touched.factors().all(|v| self.visible(*v, at))
            && touched
                .trip_counts(self.body)
                .all(|trips| is_available_before(self.body, trips, at));
        (touched.form.exact && starts_there && own_indices && known)
            .then(|| SnapshotExtent::Addresses(vec![touched]))
    }
}

fn is_same_kind(a: &SnapshotExtent, b: &SnapshotExtent) -> bool {
    match (a, b) {
        (SnapshotExtent::Addresses(_), SnapshotExtent::Addresses(_)) => true,
        _ => a == b,
    }
}
