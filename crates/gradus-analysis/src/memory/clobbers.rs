//! Clobbers: the fate of memory after an op has read it.
//!
//! Decides for each reading op if its memory may be written, freed or end its lifetime before the body
//! ends. Loop bodies are unioned: any op in a loop counts as later than every op in it. Writes are indexed
//! by object, by metadata, and by constant offset, each list in program order. A query therefore inspects
//! few writes. A query beyond [`INSPECTIONS_MAX`] inspections is answered conservatively.

use crate::memory::alias::Alias;
use crate::memory::effects::{AccessKind, Effects, MemoryAccess, MemoryRegion};
use crate::memory::local_points_to::{Object, ObjectId, PointsToTarget};
use crate::memory::sync_points::{SyncedAccesses, Waits};
use crate::scev::poly::BaseValue;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{AllocaStorage, MetaId, Op, OpKind, scalar_ops};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximal number of writes inspected per query.
pub const INSPECTIONS_MAX: usize = 4096;

/// Size in bytes of a bucket of constant offsets.
const BUCKET_BYTES: i64 = 16;
/// Maximal number of buckets of an indexed access; a larger access is listed without buckets.
const BUCKETS_MAX: i64 = 16;

/// Memory that may change after the body ended, while its contents are still required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitClobbers {
    /// Per argument: true if the memory behind it may be overwritten.
    pub params: Vec<bool>,
    /// True if globals and other memory reachable by the caller may be overwritten.
    pub others: bool,
    /// True if the body's stack memory no longer exists.
    pub frame: bool,
}

/// Clobbers of the memory that an op read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClobberState {
    /// An op that may overwrite the memory before the body's end. If present, frees and lifetime ends are
    /// not searched.
    pub written_by: Option<Op>,
    /// The ops that may free the memory, in program order.
    pub freed_by: Vec<Op>,
    /// The ops that may start or end the memory's lifetime, in program order.
    pub ended_by: Vec<Op>,
    /// True if the memory may change, or no longer exists, after the body's end.
    pub after_end: bool,
}

impl ClobberState {
    /// Returns true if the memory can be reread unmodified at the end.
    pub fn is_unmodified(&self) -> bool {
        self.written_by.is_none()
            && self.freed_by.is_empty()
            && self.ended_by.is_empty()
            && !self.after_end
    }
}

/// Accesses with equal metadata, in program order.
#[derive(Clone, Debug, Default)]
struct MetaGroup {
    all: Vec<u32>,
    /// The accesses without a constant offset.
    unbucketed: Vec<u32>,
    buckets: HashMap<i64, Vec<u32>>,
}

/// Index of the accesses of one kind, by object.
#[derive(Clone, Debug, Default)]
struct AccessIndex {
    objects: BTreeMap<ObjectId, BTreeMap<Option<MetaId>, MetaGroup>>,
    /// The objects that are not private, in order of insertion.
    public: Vec<ObjectId>,
    errno: Vec<u32>,
    inaccessible: Vec<u32>,
}

/// Index of the writes, frees and lifetime changes of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct Clobbers<'a> {
    /// The alias facts used by queries.
    pub alias: &'a Alias<'a>,
    accesses: Vec<MemoryAccess>,
    reads: HashMap<Op, Vec<MemoryAccess>>,
    writes: AccessIndex,
    ends: AccessIndex,
    /// Positions in program order of ops after which control may not continue.
    exits: Vec<u32>,
    /// The synchronisation points of ranks.
    waits: Waits,
    after_end: ExitClobbers,
    /// The objects reachable from the returned value.
    returned: HashSet<ObjectId>,
}

impl<'a> Clobbers<'a> {
    /// Indexes the memory effects of a body's ops.
    pub fn of(alias: &'a Alias<'a>, effects: &Effects, after_end: ExitClobbers) -> Clobbers<'a> {
        let mut clobbers = Clobbers {
            alias,
            accesses: Vec::new(),
            reads: HashMap::new(),
            writes: AccessIndex::default(),
            ends: AccessIndex::default(),
            exits: Vec::new(),
            waits: Waits::of(alias.unit, alias.body, &alias.nest, effects),
            after_end,
            returned: reachable_from_result(alias),
        };
        for op in alias.body.walk(alias.body.root()) {
            if may_exit(alias, effects, op) {
                clobbers.exits.push(alias.nest.order(op));
            }
            for mut access in effects.of_op(alias.unit, alias.body, op) {
                if alias.is_retyped(op) {
                    access.meta = None;
                }
                match access.is_clobber() {
                    true => clobbers.index_access(access),
                    false => clobbers.reads.entry(op).or_default().push(access),
                }
            }
        }
        clobbers
    }

    fn index_access(&mut self, access: MemoryAccess) {
        let number = self.accesses.len() as u32;
        self.accesses.push(access);
        let objects = self.alias.objects(&access);
        let holes = objects
            .as_ref()
            .and_then(|set| self.buckets_of(&access, set));
        let (file, meta) = match access.kind {
            AccessKind::Write => (&mut self.writes, access.meta),
            _ => (&mut self.ends, None),
        };
        let Some(objects) = objects else {
            match access.place {
                MemoryRegion::Errno => file.errno.push(number),
                _ => file.inaccessible.push(number),
            }
            return;
        };
        for PointsToTarget { object, .. } in objects {
            if !file.objects.contains_key(&object) && !self.alias.points_to.is_private(object) {
                file.public.push(object);
            }
            let groups = file.objects.entry(object).or_default();
            let group = groups.entry(meta).or_default();
            group.all.push(number);
            match holes {
                Some((first, last)) => {
                    for hole in first..=last {
                        group.buckets.entry(hole).or_default().push(number);
                    }
                }
                None => group.unbucketed.push(number),
            }
        }
    }

    /// Returns the buckets of an access at a constant offset from the start of its only object.
    fn buckets_of(&self, access: &MemoryAccess, objects: &[PointsToTarget]) -> Option<(i64, i64)> {
        let (ptr, size) = (access.ptr()?, i64::try_from(access.size?).ok()?);
        let alias = self.alias;
        let place = alias.forms.of_pointer(alias.unit, alias.body, ptr);
        let [target] = objects else {
            return None;
        };
        let at_start = match (alias.points_to.object(target.object), place.root) {
            (Object::Global(global), BaseValue::Global(root)) => global == root,
            (Object::Stack(op) | Object::Heap(op), BaseValue::Value(root)) => {
                alias.body.def_op(root) == Some(op)
            }
            (Object::Param(index), BaseValue::Value(root)) => {
                alias.body.params().get(index as usize) == Some(&root)
            }
            _ => false,
        };
        let start = place.offset.as_constant()?.checked_add(access.offset)?;
        let (first, last) = (
            start.div_euclid(BUCKET_BYTES),
            start.checked_add(size - 1)?.div_euclid(BUCKET_BYTES),
        );
        (at_start && size > 0 && last - first < BUCKETS_MAX).then_some((first, last))
    }

    // ---- queries ---------------------------------------------------------------------------

    /// Returns the memory read by an op.
    pub fn reads_of(&self, op: Op) -> &[MemoryAccess] {
        self.reads.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Returns true if the memory read by an op may be clobbered later, including after the body's end.
    pub fn clobbered_after(&self, op: Op) -> bool {
        !self.fate(op).is_unmodified()
    }
    /// Returns true if the memory read by an op may be overwritten before the body's end. Frees and
    /// lifetime ends do not count.
    pub fn written_after(&self, op: Op) -> bool {
        let reads = self.reads_of(op).iter();
        reads
            .copied()
            .any(|read| self.writer_after(op, &read, None, true).is_some())
    }
    /// Returns the clobbers of the memory read by an op.
    pub fn fate(&self, op: Op) -> ClobberState {
        self.fate_within(op, None)
    }
    /// Returns [`Clobbers::fate`], restricted to writes in one iteration of a loop around the op, after its
    /// read. If ranks synchronise inside the loop, the restriction does not apply.
    pub fn fate_within(&self, op: Op, iteration: Option<Op>) -> ClobberState {
        let iteration = self.unless_synchronized(iteration);
        let mut fate = ClobberState::default();
        for read in self.reads_of(op) {
            let one = self.fate_of_read(op, read, iteration, true);
            fate.written_by = fate.written_by.or(one.written_by);
            fate.after_end |= one.after_end;
            fate.freed_by.extend(one.freed_by);
            fate.ended_by.extend(one.ended_by);
        }
        self.sort_by_position(&mut fate.freed_by);
        self.sort_by_position(&mut fate.ended_by);
        fate
    }
    /// Returns the clobbers of memory read by a call, after the call returned, restricted to an iteration
    /// as in [`Clobbers::fate_within`]. The callee's own writes do not count.
    pub fn fate_after_call(
        &self,
        call: Op,
        read: &MemoryAccess,
        iteration: Option<Op>,
    ) -> ClobberState {
        self.fate_of_read(call, read, self.unless_synchronized(iteration), false)
    }
    fn unless_synchronized(&self, iteration: Option<Op>) -> Option<Op> {
        iteration.filter(|lp| !self.waits.syncs_in(&self.alias.nest, *lp))
    }
    fn fate_of_read(
        &self,
        op: Op,
        read: &MemoryAccess,
        iteration: Option<Op>,
        with_own: bool,
    ) -> ClobberState {
        let mut fate = ClobberState {
            written_by: self.writer_after(op, read, iteration, with_own),
            after_end: self.clobbered_after_end(read),
            ..ClobberState::default()
        };
        if fate.written_by.is_some() {
            return fate;
        }
        for other in self.ops_after(op, std::slice::from_ref(read), &[&self.ends], with_own) {
            let frees = |a: &&MemoryAccess| a.op == other && a.kind == AccessKind::Free;
            match self.accesses_of(other).find(frees) {
                Some(_) => fate.freed_by.push(other),
                None => fate.ended_by.push(other),
            }
        }
        fate
    }
    fn writer_after(
        &self,
        op: Op,
        read: &MemoryAccess,
        iteration: Option<Op>,
        with_own: bool,
    ) -> Option<Op> {
        let (span, loops) = match iteration {
            Some(lp) => (
                self.positions_after_in(op, lp),
                self.alias.nest.loop_depth(lp) + 1,
            ),
            None => (self.positions_after(op), 0),
        };
        let found = self.find(&self.writes, read, span, |n| {
            self.comes_after(read, n, loops, with_own) && self.overlaps(read, n, iteration)
        })?;
        Some(self.accesses[found as usize].op)
    }
    /// Returns a range of positions that covers all ops after `op` in one iteration of the enclosing loop
    /// `lp`.
    fn positions_after_in(&self, op: Op, lp: Op) -> (u32, u32) {
        let nest = &self.alias.nest;
        let inner = nest.loops_of(op).take_while(|around| *around != lp).last();
        (nest.order(inner.unwrap_or(op)), nest.span(lp).1)
    }
    fn ops_after(
        &self,
        op: Op,
        reads: &[MemoryAccess],
        files: &[&AccessIndex],
        with_own: bool,
    ) -> Vec<Op> {
        let span = self.positions_after(op);
        let mut found = Vec::new();
        for read in reads {
            for file in files {
                self.visit(file, read, span, |n| {
                    if self.comes_after(read, n, 0, with_own) && self.overlaps(read, n, None) {
                        found.push(self.accesses[n as usize].op);
                    }
                    true
                });
            }
        }
        self.sort_by_position(&mut found);
        found
    }
    /// Returns a range of positions that covers all ops that can run after an op.
    fn positions_after(&self, op: Op) -> (u32, u32) {
        let nest = &self.alias.nest;
        if is_planted(Mutant::BackEdgeClobbersMissed) {
            return (nest.order(op), u32::MAX);
        }
        (nest.order(nest.outermost_loop(op).unwrap_or(op)), u32::MAX)
    }
    /// Returns true if no op in a loop clobbers the memory read by `op`. During one run of the loop,
    /// repeated reads from one address then return one value.
    pub fn invariant_in(&self, op: Op, lp: Op) -> bool {
        self.reads_of(op)
            .iter()
            .all(|read| !self.clobbered_in(read, lp))
    }
    /// Returns true if the memory read by `op` in an iteration of `lp` is unmodified since the iteration
    /// began.
    pub fn unmodified_until(&self, op: Op, lp: Op) -> bool {
        let nest = &self.alias.nest;
        let before = (nest.order(lp) + 1, nest.order(op).saturating_sub(1));
        let reads = self.reads_of(op).iter();
        before.0 > before.1
            || reads
                .copied()
                .all(|read| !self.clobbered_between(&read, before, Some(lp)))
    }
    /// Returns true if [`Clobbers::unmodified_until`] holds for every run of the op in the iteration, also if
    /// the op is nested in further loops.
    pub fn unmodified_in_all_runs(&self, op: Op, lp: Op) -> bool {
        let nest = &self.alias.nest;
        let inner = nest.loops_of(op).take_while(|around| *around != lp).last();
        let last = inner.map_or(nest.order(op) - 1, |inner| nest.span(inner).1);
        let before = (nest.order(lp) + 1, last);
        let mut reads = self.reads_of(op).iter();
        before.0 > before.1 || reads.all(|read| !self.clobbered_between(read, before, Some(lp)))
    }
    /// Returns true if one run of `container` may clobber the memory of an access.
    pub fn clobbered_in(&self, access: &MemoryAccess, container: Op) -> bool {
        self.clobbered_from(access, container, self.alias.nest.span(container).1)
    }
    /// Returns true if ops from `first` up to position `last` may clobber the memory of an access, within
    /// one iteration of the loops around `first`.
    pub(crate) fn clobbered_from(&self, access: &MemoryAccess, first: Op, last: u32) -> bool {
        let seen = self.synced_accesses_in(first, last);
        self.clobbered_between(access, seen.span, seen.frame)
            || seen.callers && self.may_be_rank_shared(access)
    }
    /// Returns true if all clobbers of an access during one run of an op are writes for which `harmless`
    /// holds.
    pub fn clobbered_only_by(
        &self,
        access: &MemoryAccess,
        container: Op,
        harmless: impl Fn(Op) -> bool,
    ) -> bool {
        let seen = self.synced_accesses_in(container, self.alias.nest.span(container).1);
        let meets = |n: u32| self.overlaps(access, n, seen.frame);
        let harms = |n: u32| !harmless(self.accesses[n as usize].op) && meets(n);
        !self.any(&self.ends, access, seen.span, meets)
            && !self.any(&self.writes, access, seen.span, harms)
            && !(seen.callers && self.may_be_rank_shared(access))
    }
    fn synced_accesses_in(&self, container: Op, last: u32) -> SyncedAccesses {
        let (body, nest) = (self.alias.body, &self.alias.nest);
        self.waits.synced_accesses_in(body, nest, container, last)
    }
    /// Returns true if memory may be shared with other ranks.
    fn may_be_rank_shared(&self, access: &MemoryAccess) -> bool {
        let own = |t: &PointsToTarget| {
            let shared = match self.alias.points_to.object(t.object) {
                Object::Stack(op) => self.allocation_scope(op) != Some(op),
                _ => false,
            };
            self.alias.points_to.is_private(t.object) && !shared
        };
        match self.alias.objects(access) {
            Some(objects) => !objects.iter().all(own),
            None => access.place != MemoryRegion::Errno,
        }
    }
    /// Returns true if ops in a range of positions may clobber the memory of an access during one iteration
    /// of `frame`.
    pub(crate) fn clobbered_between(
        &self,
        access: &MemoryAccess,
        span: (u32, u32),
        frame: Option<Op>,
    ) -> bool {
        let meets = |n| self.overlaps(access, n, frame);
        self.any(&self.writes, access, span, meets) || self.any(&self.ends, access, span, meets)
    }

    /// Returns true if `later` always runs once `first` is about to run. Both are in one region, `first`
    /// not after `later`.
    pub fn always_reaches(&self, first: Op, later: Op) -> bool {
        let nest = &self.alias.nest;
        let (from, to) = (nest.order(first), nest.order(later));
        let stops = |at: u32| self.exits.partition_point(|stop| *stop < at);
        self.alias.body.parent(first) == self.alias.body.parent(later)
            && from <= to
            && stops(from) == stops(to)
    }

    /// Returns true if control may leave the body inside an op. Later ops in it, and its later iterations,
    /// may then not be reached.
    pub fn may_exit_in(&self, container: Op) -> bool {
        let (first, last) = self.alias.nest.span(container);
        let at = self.exits.partition_point(|stop| *stop <= first);
        self.exits.get(at).is_some_and(|stop| *stop <= last)
    }

    // ---- helpers ---------------------------------------------------------------------------

    fn accesses_of(&self, op: Op) -> impl Iterator<Item = &MemoryAccess> {
        let order = self.alias.nest.order(op);
        let first = self
            .accesses
            .partition_point(|a| self.alias.nest.order(a.op) < order);
        self.accesses[first..]
            .iter()
            .take_while(move |a| a.op == op)
    }
    fn sort_by_position(&self, ops: &mut Vec<Op>) {
        ops.sort_unstable_by_key(|op| self.alias.nest.order(*op));
        ops.dedup();
    }
    fn any(
        &self,
        file: &AccessIndex,
        access: &MemoryAccess,
        span: (u32, u32),
        hits: impl Fn(u32) -> bool,
    ) -> bool {
        self.find(file, access, span, hits).is_some()
    }
    /// Returns an access for which `hits` holds, or the access at which the inspection limit was exceeded.
    fn find(
        &self,
        file: &AccessIndex,
        access: &MemoryAccess,
        span: (u32, u32),
        hits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let (mut looks, mut found) = (0, None);
        self.visit(file, access, span, |n| {
            looks += 1;
            found = (looks > INSPECTIONS_MAX || hits(n)).then_some(n);
            found.is_none()
        });
        found
    }
    fn overlaps(&self, read: &MemoryAccess, number: u32, frame: Option<Op>) -> bool {
        let other = &self.accesses[number as usize];
        let nest = &self.alias.nest;
        // An op on a no-return path interferes only with ops on that path.
        let apart = nest
            .enclosing_noreturn_region(other.op)
            .is_some_and(|way| nest.enclosing_noreturn_region(read.op) != Some(way));
        !apart
            && self
                .alias
                .may_alias_within(read, other, self.effective_frame(read, other, frame))
    }

    /// Returns the frame for two accesses. If both access the object of one run of an allocation, they are
    /// in one iteration of the loops around the allocation.
    fn effective_frame(&self, a: &MemoryAccess, b: &MemoryAccess, frame: Option<Op>) -> Option<Op> {
        match (frame, self.common_allocation(a, b)) {
            (None, Some(op)) => self.alias.nest.enclosing_loop(op),
            _ => frame,
        }
    }

    /// Returns the allocation, inside a loop, of the only object of both accesses, if the object belongs to
    /// the current iteration.
    fn common_allocation(&self, a: &MemoryAccess, b: &MemoryAccess) -> Option<Op> {
        let only = |access: &MemoryAccess| {
            let objects = self.alias.objects(access)?;
            match (objects.as_slice(), access.place) {
                ([PointsToTarget { object, old: false }], MemoryRegion::At(_)) => Some(*object),
                _ => None,
            }
        };
        let object = only(a).filter(|object| only(b) == Some(*object))?;
        match self.alias.points_to.object(object) {
            Object::Stack(op) | Object::Heap(op) => {
                let op = self.allocation_scope(op)?;
                let region = self.alias.nest.parent(op)?;
                let inside = |x: Op| self.alias.nest.contains(region, x);
                (inside(a.op) && inside(b.op)).then_some(op)
            }
            _ => None,
        }
    }

    /// Returns the op that creates an object anew on each run: the allocation, or the `spmd` whose ranks
    /// share it.
    fn allocation_scope(&self, op: Op) -> Option<Op> {
        let (nest, body) = (&self.alias.nest, self.alias.body);
        match body.kind(op) {
            OpKind::Alloca(info) if info.storage == AllocaStorage::Shared => {
                let is_spmd = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
                nest.loops_of(op).find(is_spmd)
            }
            _ => Some(op),
        }
    }

    /// Returns true if an access can follow a read while the outermost `loops` loops stay in one iteration.
    /// The op's own effects follow its reads and count if `with_own` is set.
    fn comes_after(&self, read: &MemoryAccess, number: u32, loops: u32, with_own: bool) -> bool {
        let other = &self.accesses[number as usize];
        let outer = self
            .common_allocation(read, other)
            .map_or(0, |op| self.alias.nest.loop_depth(op));
        let (nest, body) = (&self.alias.nest, self.alias.body);
        let loops = outer.max(loops);
        if read.op == other.op && !with_own {
            return nest.loop_depth(read.op) > loops;
        }
        nest.runs_after(body, read.op, other.op, loops)
    }

    /// Visits the indexed accesses within `span` that may alias an access, latest first within each list,
    /// until `look` returns false.
    fn visit(
        &self,
        file: &AccessIndex,
        access: &MemoryAccess,
        span: (u32, u32),
        mut look: impl FnMut(u32) -> bool,
    ) {
        let order = |access: &MemoryAccess| self.alias.nest.order(access.op);
        // Accesses are numbered in program order.
        let first = self.accesses.partition_point(|a| order(a) < span.0) as u32;
        let end = self.accesses.partition_point(|a| order(a) <= span.1) as u32;
        if first >= end {
            return;
        }
        let inside = |numbers: &[u32]| {
            let from = numbers.partition_point(|n| *n < first);
            from..from + numbers[from..].partition_point(|n| *n < end)
        };
        let mut list = |numbers: &[u32]| numbers[inside(numbers)].iter().rev().all(|n| look(*n));
        let Some(objects) = self.alias.objects(access) else {
            match access.place {
                MemoryRegion::Errno => {
                    let groups = file.objects.values().flat_map(BTreeMap::values);
                    let _ = list(&file.errno) && groups.map(|g| &g.all).all(|all| list(all));
                }
                _ => {
                    list(&file.inaccessible);
                }
            }
            return;
        };
        if self.alias.may_be_errno(access) && !list(&file.errno) {
            return;
        }
        let holes = self.buckets_of(access, &objects);
        let private = |t: &PointsToTarget| self.alias.points_to.is_private(t.object);
        let own = objects.iter().map(|t| t.object);
        let candidates: Vec<ObjectId> = if !self.alias.distinguishes_private_objects() {
            file.objects.keys().copied().collect()
        } else if objects.iter().all(private) {
            own.collect()
        } else {
            own.filter(|o| self.alias.points_to.is_private(*o))
                .chain(file.public.iter().copied())
                .collect()
        };
        for object in candidates {
            let same = objects.iter().any(|t| t.object == object);
            let near = |t: &PointsToTarget| self.alias.objects_may_alias(t.object, object, true);
            if !same && !objects.iter().any(near) {
                continue;
            }
            for (&meta, group) in file.objects.get(&object).into_iter().flatten() {
                // The cheaper test comes first.
                if inside(&group.all).is_empty() || self.metadata_separates(access.meta, meta) {
                    continue;
                }
                let go_on = match holes {
                    Some((first, last)) if same => {
                        list(&group.unbucketed)
                            && (first..=last)
                                .filter_map(|hole| group.buckets.get(&hole))
                                .all(|numbers| list(numbers))
                    }
                    _ => list(&group.all),
                };
                if !go_on {
                    return;
                }
            }
        }
    }

    fn metadata_separates(&self, a: Option<MetaId>, b: Option<MetaId>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => self.alias.tags_disjoint(a, b, false),
            _ => false,
        }
    }

    fn clobbered_after_end(&self, read: &MemoryAccess) -> bool {
        let after = &self.after_end;
        if is_planted(Mutant::AfterEndForgotten) {
            return false;
        }
        let Some(objects) = self.alias.objects(read) else {
            return after.others;
        };
        objects.iter().any(|t| {
            let visible =
                self.alias.points_to.escaped(t.object) || self.returned.contains(&t.object);
            match self.alias.points_to.object(t.object) {
                Object::Stack(_) => after.frame || (after.others && visible),
                Object::Heap(_) => after.others && visible,
                Object::Param(i) => after.params.get(i as usize) == Some(&true),
                Object::Unknown => after.others || after.params.contains(&true),
                Object::Global(_) => after.others,
                Object::Code(_) => false,
            }
        })
    }
}

/// Returns the objects reachable by the caller through the returned value, transitively.
fn reachable_from_result(alias: &Alias) -> HashSet<ObjectId> {
    let (body, points_to) = (alias.body, &alias.points_to);
    let end = body.last(body.root());
    let returned = end.into_iter().flat_map(|end| body.operands(end));
    let mut work: Vec<ObjectId> = returned
        .flat_map(|value| points_to.targets(body, value))
        .map(|target| target.object)
        .collect();
    let mut found = HashSet::new();
    while let Some(object) = work.pop() {
        if found.insert(object) {
            work.extend(
                points_to
                    .contents(object)
                    .iter()
                    .map(|target| target.object),
            );
        }
    }
    found
}

/// Returns true if control may not continue after an op: the op may end the program, throw, or run forever.
fn may_exit(alias: &Alias, effects: &Effects, op: Op) -> bool {
    match alias.body.kind(op) {
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let callee = effects.of_call(alias.unit, alias.body, op);
            callee.may_not_return || callee.may_throw
        }
        OpKind::Loop { trip_max: None } | OpKind::Unreachable | OpKind::Resume => true,
        OpKind::Foreign(_) | OpKind::Return => true,
        // A bounded loop ends, and the walk visits the ops in a region one by one.
        OpKind::Loop { trip_max: Some(_) }
        | OpKind::For { .. }
        | OpKind::If
        | OpKind::Switch(_)
        | OpKind::Scope
        | OpKind::Spawn { .. }
        | OpKind::ParFor { .. }
        | OpKind::Spmd { .. }
        | OpKind::ShareFor { .. }
        | OpKind::Single { .. }
        | OpKind::Critical(_) => false,
        // The awaited threads arrive, or the program hangs without differentiation too.
        OpKind::Sync | OpKind::Barrier(_) => false,
        scalar_ops!()
        | OpKind::Freeze
        | OpKind::Alloca(_)
        | OpKind::Addr { .. }
        | OpKind::Load(_)
        | OpKind::Store(_)
        | OpKind::AtomicRmw(..)
        | OpKind::CmpXchg { .. }
        | OpKind::Fence { .. }
        | OpKind::LandingPad(_)
        | OpKind::Yield
        | OpKind::Repeat => false,
    }
}
