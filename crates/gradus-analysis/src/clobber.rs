//! What happens to the memory that an op reads, after it was read.
//!
//! For each op that reads: may its memory be written, freed or end its life before the body ends? Loops
//! are unioned: what stands anywhere in a loop's body comes after everything in it. Writes are filed
//! by object, by what the host stated about them, and by constant offset, each list in program order, so
//! that a question looks at few of them; one that would look at more than [`MAX_LOOKS`] is answered
//! with yes.

use crate::alias::Alias;
use crate::effects::{AccessKind, Effects, MemoryAccess, Place};
use crate::linear::Root;
use crate::points_to::{Object, ObjectId, Target};
use crate::waits::{Seen, Waits};
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{AllocaPlace, MetaId, Op, OpKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The number of writes looked at for one question.
pub const MAX_LOOKS: usize = 4096;

/// Bytes of one pigeonhole of constant offsets.
const HOLE_BYTES: i64 = 16;
/// An access that covers more pigeonholes than this is filed apart.
const MAX_HOLES: i64 = 16;

/// What may change memory after the body ended, while its contents are still wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AfterEnd {
    /// By argument: whether the memory behind it may be overwritten.
    pub params: Vec<bool>,
    /// Whether globals and other memory that the caller can reach may be overwritten.
    pub others: bool,
    /// Whether the body's stack memory is gone.
    pub frame: bool,
}

/// What becomes of what an op read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// An op that may overwrite it before the body's end; then frees and ends of life are not looked for.
    pub written_by: Option<Op>,
    /// The ops that may free it, in program order.
    pub freed_by: Vec<Op>,
    /// The ops that may end or begin its life (lifetime markers), in program order.
    pub ended_by: Vec<Op>,
    /// Whether it may change, or is gone, after the body's end.
    pub after_end: bool,
}

impl Fate {
    /// Whether it can be read again at the end as it stands.
    pub fn is_intact(&self) -> bool {
        self.written_by.is_none()
            && self.freed_by.is_empty()
            && self.ended_by.is_empty()
            && !self.after_end
    }
}

/// Writes with the same statements of the host, in program order.
#[derive(Clone, Debug, Default)]
struct Group {
    all: Vec<u32>,
    /// Those without a constant offset.
    loose: Vec<u32>,
    holes: HashMap<i64, Vec<u32>>,
}

/// Accesses of one sort, by what they touch.
#[derive(Clone, Debug, Default)]
struct File {
    objects: BTreeMap<ObjectId, BTreeMap<Option<MetaId>, Group>>,
    /// The objects that are not private, in order.
    public: Vec<ObjectId>,
    errno: Vec<u32>,
    inaccessible: Vec<u32>,
}

/// The writes, frees and ends of life of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct Clobbers<'a> {
    /// The alias facts that answers rest on.
    pub alias: &'a Alias<'a>,
    accesses: Vec<MemoryAccess>,
    reads: HashMap<Op, Vec<MemoryAccess>>,
    writes: File,
    ends: File,
    /// Places in program order of ops after which control may not go on.
    stops: Vec<u32>,
    /// The ops at which ranks wait for each other.
    waits: Waits,
    after_end: AfterEnd,
    /// The objects that what is returned leads to.
    handed_out: HashSet<ObjectId>,
}

impl<'a> Clobbers<'a> {
    /// Files what the ops of a body do to memory.
    pub fn of(alias: &'a Alias<'a>, effects: &Effects, after_end: AfterEnd) -> Clobbers<'a> {
        let mut clobbers = Clobbers {
            alias,
            accesses: Vec::new(),
            reads: HashMap::new(),
            writes: File::default(),
            ends: File::default(),
            stops: Vec::new(),
            waits: Waits::of(alias.unit, alias.body, &alias.nest, effects),
            after_end,
            handed_out: handed_out(alias),
        };
        for op in alias.body.walk(alias.body.root()) {
            if may_stop(alias, effects, op) {
                clobbers.stops.push(alias.nest.order(op));
            }
            for mut access in effects.of_op(alias.unit, alias.body, op) {
                if alias.is_retyped(op) {
                    access.meta = None;
                }
                match access.destroys() {
                    true => clobbers.file(access),
                    false => clobbers.reads.entry(op).or_default().push(access),
                }
            }
        }
        clobbers
    }

    fn file(&mut self, access: MemoryAccess) {
        let number = self.accesses.len() as u32;
        self.accesses.push(access);
        let objects = self.alias.objects(&access);
        let holes = objects.as_ref().and_then(|set| self.holes(&access, set));
        let (file, meta) = match access.kind {
            AccessKind::Write => (&mut self.writes, access.meta),
            _ => (&mut self.ends, None),
        };
        let Some(objects) = objects else {
            match access.place {
                Place::Errno => file.errno.push(number),
                _ => file.inaccessible.push(number),
            }
            return;
        };
        for Target { object, .. } in objects {
            if !file.objects.contains_key(&object) && !self.alias.points_to.is_private(object) {
                file.public.push(object);
            }
            let groups = file.objects.entry(object).or_default();
            let group = groups.entry(meta).or_default();
            group.all.push(number);
            match holes {
                Some((first, last)) => {
                    for hole in first..=last {
                        group.holes.entry(hole).or_default().push(number);
                    }
                }
                None => group.loose.push(number),
            }
        }
    }

    /// The pigeonholes of an access at a constant offset from the start of its only object.
    fn holes(&self, access: &MemoryAccess, objects: &[Target]) -> Option<(i64, i64)> {
        let (ptr, size) = (access.ptr()?, i64::try_from(access.size?).ok()?);
        let alias = self.alias;
        let place = alias.forms.of_pointer(alias.unit, alias.body, ptr);
        let [target] = objects else {
            return None;
        };
        let at_start = match (alias.points_to.object(target.object), place.root) {
            (Object::Global(global), Root::Global(root)) => global == root,
            (Object::Stack(op) | Object::Heap(op), Root::Value(root)) => {
                alias.body.def_op(root) == Some(op)
            }
            (Object::Param(index), Root::Value(root)) => {
                alias.body.params().get(index as usize) == Some(&root)
            }
            _ => false,
        };
        let start = place.offset.as_constant()?.checked_add(access.offset)?;
        let (first, last) = (
            start.div_euclid(HOLE_BYTES),
            start.checked_add(size - 1)?.div_euclid(HOLE_BYTES),
        );
        (at_start && size > 0 && last - first < MAX_HOLES).then_some((first, last))
    }

    // ---- questions -------------------------------------------------------------------------

    /// The memory that an op reads.
    pub fn reads_of(&self, op: Op) -> &[MemoryAccess] {
        self.reads.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Whether what an op read may be written, freed, ended or, after the end, changed by others.
    pub fn clobbered_after(&self, op: Op) -> bool {
        !self.fate(op).is_intact()
    }
    /// Whether what an op read may be overwritten before the body's end; frees and ends of life do
    /// not count.
    pub fn written_after(&self, op: Op) -> bool {
        let reads = self.reads_of(op).iter();
        reads
            .copied()
            .any(|read| self.writer_later(op, &read, None, true).is_some())
    }
    /// The ops that may free what an op read, or end its life; `None` where nothing does.
    pub fn freed_after(&self, op: Op) -> Option<Vec<Op>> {
        let found = self.later_ops(op, self.reads_of(op), &[&self.ends], true);
        (!found.is_empty()).then_some(found)
    }
    /// All that may become of what an op read.
    pub fn fate(&self, op: Op) -> Fate {
        self.fate_within(op, None)
    }
    /// The same; of what is written, only that counts which an iteration of a loop around the op writes
    /// after it read. Where ranks wait for each other inside the loop, everything counts.
    pub fn fate_within(&self, op: Op, iteration: Option<Op>) -> Fate {
        let iteration = self.alone(iteration);
        let mut fate = Fate::default();
        for read in self.reads_of(op) {
            let one = self.fate_of_read(op, read, iteration, true);
            fate.written_by = fate.written_by.or(one.written_by);
            fate.after_end |= one.after_end;
            fate.freed_by.extend(one.freed_by);
            fate.ended_by.extend(one.ended_by);
        }
        self.in_order(&mut fate.freed_by);
        self.in_order(&mut fate.ended_by);
        fate
    }
    /// All that may become of memory after `op`, which makes the access.
    pub fn fate_of(&self, op: Op, read: &MemoryAccess) -> Fate {
        self.fate_of_read(op, read, None, true)
    }
    /// All that may become of memory that a call reads after this run of it, counted as
    /// [`Clobbers::fate_within`] does: what the callee does to it itself is seen in there.
    pub fn fate_after_call(&self, call: Op, read: &MemoryAccess, iteration: Option<Op>) -> Fate {
        self.fate_of_read(call, read, self.alone(iteration), false)
    }
    fn alone(&self, iteration: Option<Op>) -> Option<Op> {
        iteration.filter(|lp| !self.waits.is_any_in(&self.alias.nest, *lp))
    }
    fn fate_of_read(
        &self,
        op: Op,
        read: &MemoryAccess,
        iteration: Option<Op>,
        with_own: bool,
    ) -> Fate {
        let mut fate = Fate {
            written_by: self.writer_later(op, read, iteration, with_own),
            after_end: self.changed_after_end(read),
            ..Fate::default()
        };
        if fate.written_by.is_some() {
            return fate;
        }
        for other in self.later_ops(op, std::slice::from_ref(read), &[&self.ends], with_own) {
            let frees = |a: &&MemoryAccess| a.op == other && a.kind == AccessKind::Free;
            match self.accesses_of(other).find(frees) {
                Some(_) => fate.freed_by.push(other),
                None => fate.ended_by.push(other),
            }
        }
        fate
    }
    fn writer_later(
        &self,
        op: Op,
        read: &MemoryAccess,
        iteration: Option<Op>,
        with_own: bool,
    ) -> Option<Op> {
        let (span, loops) = match iteration {
            Some(lp) => (self.later_in(op, lp), self.alias.nest.loop_depth(lp) + 1),
            None => (self.later(op), 0),
        };
        let found = self.find(&self.writes, read, span, |n| {
            self.comes_after(read, n, loops, with_own) && self.meets(read, n, iteration)
        })?;
        Some(self.accesses[found as usize].op)
    }
    /// The places of the ops that can run after an op in one iteration of a loop around it, and of some
    /// that cannot.
    fn later_in(&self, op: Op, lp: Op) -> (u32, u32) {
        let nest = &self.alias.nest;
        let inner = nest.loops_of(op).take_while(|around| *around != lp).last();
        (nest.order(inner.unwrap_or(op)), nest.span(lp).1)
    }
    fn later_ops(
        &self,
        op: Op,
        reads: &[MemoryAccess],
        files: &[&File],
        with_own: bool,
    ) -> Vec<Op> {
        let span = self.later(op);
        let mut found = Vec::new();
        for read in reads {
            for file in files {
                self.visit(file, read, span, |n| {
                    if self.comes_after(read, n, 0, with_own) && self.meets(read, n, None) {
                        found.push(self.accesses[n as usize].op);
                    }
                    true
                });
            }
        }
        self.in_order(&mut found);
        found
    }
    /// The places of the ops that can run after an op, and of some that cannot.
    fn later(&self, op: Op) -> (u32, u32) {
        let nest = &self.alias.nest;
        if planted(Mutant::LoopsNotUnioned) {
            return (nest.order(op), u32::MAX);
        }
        (nest.order(nest.outermost_loop(op).unwrap_or(op)), u32::MAX)
    }
    /// The ops that may write, free or end what an op read, in program order.
    pub fn clobberers(&self, op: Op) -> Vec<Op> {
        self.later_ops(op, self.reads_of(op), &[&self.writes, &self.ends], true)
    }
    /// Whether nothing in a loop writes, frees or ends what an op reads: during one run of the loop,
    /// a read from the same address gives the same.
    pub fn invariant_in(&self, op: Op, lp: Op) -> bool {
        self.reads_of(op)
            .iter()
            .all(|read| !self.destroyed_in(read, lp))
    }
    /// Whether what an op reads in an iteration of `lp` is what was there when the iteration began.
    pub fn intact_until(&self, op: Op, lp: Op) -> bool {
        let nest = &self.alias.nest;
        let before = (nest.order(lp) + 1, nest.order(op).saturating_sub(1));
        let reads = self.reads_of(op).iter();
        before.0 > before.1
            || reads
                .copied()
                .all(|read| !self.destroyed_between(&read, before, Some(lp)))
    }
    /// The same of every run of the op in the iteration, where it stands in further loops.
    pub fn intact_in_runs(&self, op: Op, lp: Op) -> bool {
        let nest = &self.alias.nest;
        let inner = nest.loops_of(op).take_while(|around| *around != lp).last();
        let last = inner.map_or(nest.order(op) - 1, |inner| nest.span(inner).1);
        let before = (nest.order(lp) + 1, last);
        let mut reads = self.reads_of(op).iter();
        before.0 > before.1 || reads.all(|read| !self.destroyed_between(read, before, Some(lp)))
    }
    /// Whether an op, or one inside it, may write, free or end the memory of an access during one
    /// run of it.
    pub fn destroyed_in(&self, access: &MemoryAccess, container: Op) -> bool {
        self.destroyed_from(access, container, self.alias.nest.span(container).1)
    }
    /// Whether ops from one on up to a place in program order may write, free or end the memory of an
    /// access, in one iteration of the loops around the first.
    pub(crate) fn destroyed_from(&self, access: &MemoryAccess, first: Op, last: u32) -> bool {
        let seen = self.seen_in(first, last);
        self.destroyed_between(access, seen.span, seen.frame)
            || seen.callers && self.is_seen_by_ranks(access)
    }
    /// Whether what destroys the memory of an access during one run of an op is writes that `harmless` holds of.
    pub fn destroyed_only_by(
        &self,
        access: &MemoryAccess,
        container: Op,
        harmless: impl Fn(Op) -> bool,
    ) -> bool {
        let seen = self.seen_in(container, self.alias.nest.span(container).1);
        let meets = |n: u32| self.meets(access, n, seen.frame);
        let harms = |n: u32| !harmless(self.accesses[n as usize].op) && meets(n);
        !self.any(&self.ends, access, seen.span, meets)
            && !self.any(&self.writes, access, seen.span, harms)
            && !(seen.callers && self.is_seen_by_ranks(access))
    }
    fn seen_in(&self, container: Op, last: u32) -> Seen {
        let (body, nest) = (self.alias.body, &self.alias.nest);
        self.waits.seen_in(body, nest, container, last)
    }
    /// Whether memory may be other than one rank's own.
    fn is_seen_by_ranks(&self, access: &MemoryAccess) -> bool {
        let own = |t: &Target| {
            let shared = match self.alias.points_to.object(t.object) {
                Object::Stack(op) => self.maker(op) != Some(op),
                _ => false,
            };
            self.alias.points_to.is_private(t.object) && !shared
        };
        match self.alias.objects(access) {
            Some(objects) => !objects.iter().all(own),
            None => access.place != Place::Errno,
        }
    }
    /// Whether ops from one place in program order to another may write, free or end the memory of
    /// an access during one iteration of `frame`.
    pub(crate) fn destroyed_between(
        &self,
        access: &MemoryAccess,
        span: (u32, u32),
        frame: Option<Op>,
    ) -> bool {
        let meets = |n| self.meets(access, n, frame);
        self.any(&self.writes, access, span, meets) || self.any(&self.ends, access, span, meets)
    }
    /// The writes inside an op that may touch the memory of an access, in program order.
    pub fn writers_in(&self, access: &MemoryAccess, container: Op) -> Vec<Op> {
        let seen = self.seen_in(container, self.alias.nest.span(container).1);
        let mut found = Vec::new();
        self.visit(&self.writes, access, seen.span, |n| {
            if self.meets(access, n, seen.frame) {
                found.push(self.accesses[n as usize].op);
            }
            true
        });
        self.in_order(&mut found);
        found
    }

    /// Whether `later` runs whenever `first`, in the same region and not after it, is about to run.
    pub fn surely_reaches(&self, first: Op, later: Op) -> bool {
        let nest = &self.alias.nest;
        let (from, to) = (nest.order(first), nest.order(later));
        let stops = |at: u32| self.stops.partition_point(|stop| *stop < at);
        self.alias.body.parent(first) == self.alias.body.parent(later)
            && from <= to
            && stops(from) == stops(to)
    }

    /// Whether control may leave for good inside an op: what stands in it, and further runs of it where
    /// it is a loop, need not be reached.
    pub fn may_stop_in(&self, container: Op) -> bool {
        let (first, last) = self.alias.nest.span(container);
        let at = self.stops.partition_point(|stop| *stop <= first);
        self.stops.get(at).is_some_and(|stop| *stop <= last)
    }

    /// What may happen after an op to memory that it reads: for each argument of a call, and for other
    /// memory. What is freed, or ends, counts as well.
    pub fn changed_after_call(&self, call: Op) -> AfterEnd {
        let args = self.alias.unit.call_args(self.alias.body, call);
        let mut found = AfterEnd {
            params: vec![false; args.len()],
            ..AfterEnd::default()
        };
        for read in self.reads_of(call) {
            if self.fate_of(call, read).is_intact() {
                continue;
            }
            match read.ptr() {
                Some(ptr) => {
                    let same = args.iter().enumerate().filter(|(_, arg)| **arg == ptr);
                    same.for_each(|(index, _)| found.params[index] = true);
                }
                None => found.others = true,
            }
        }
        found
    }

    // ---- parts -----------------------------------------------------------------------------

    fn accesses_of(&self, op: Op) -> impl Iterator<Item = &MemoryAccess> {
        let order = self.alias.nest.order(op);
        let first = self
            .accesses
            .partition_point(|a| self.alias.nest.order(a.op) < order);
        self.accesses[first..]
            .iter()
            .take_while(move |a| a.op == op)
    }
    fn in_order(&self, ops: &mut Vec<Op>) {
        ops.sort_unstable_by_key(|op| self.alias.nest.order(*op));
        ops.dedup();
    }
    fn any(
        &self,
        file: &File,
        access: &MemoryAccess,
        span: (u32, u32),
        hits: impl Fn(u32) -> bool,
    ) -> bool {
        self.find(file, access, span, hits).is_some()
    }
    /// An access that hits, or the one at which there were too many to look at.
    fn find(
        &self,
        file: &File,
        access: &MemoryAccess,
        span: (u32, u32),
        hits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let (mut looks, mut found) = (0, None);
        self.visit(file, access, span, |n| {
            looks += 1;
            found = (looks > MAX_LOOKS || hits(n)).then_some(n);
            found.is_none()
        });
        found
    }
    fn meets(&self, read: &MemoryAccess, number: u32, frame: Option<Op>) -> bool {
        let other = &self.accesses[number as usize];
        let nest = &self.alias.nest;
        // What is done on the way out of the function meets only what is done on the same way.
        let apart = nest
            .doomed(other.op)
            .is_some_and(|way| nest.doomed(read.op) != Some(way));
        !apart
            && self
                .alias
                .may_alias_within(read, other, self.frame(read, other, frame))
    }

    /// Where both accesses are to the object that one run of an allocation made, they are in the same
    /// iteration of the loops around it.
    fn frame(&self, a: &MemoryAccess, b: &MemoryAccess, frame: Option<Op>) -> Option<Op> {
        match (frame, self.own_allocation(a, b)) {
            (None, Some(op)) => self.alias.nest.enclosing_loop(op),
            _ => frame,
        }
    }

    /// The allocation, inside a loop, of the only object of both, where it is that of the present
    /// iteration.
    fn own_allocation(&self, a: &MemoryAccess, b: &MemoryAccess) -> Option<Op> {
        let only = |access: &MemoryAccess| {
            let objects = self.alias.objects(access)?;
            match (objects.as_slice(), access.place) {
                ([Target { object, old: false }], Place::At(_)) => Some(*object),
                _ => None,
            }
        };
        let object = only(a).filter(|object| only(b) == Some(*object))?;
        match self.alias.points_to.object(object) {
            Object::Stack(op) | Object::Heap(op) => {
                let op = self.maker(op)?;
                let region = self.alias.nest.parent(op)?;
                let inside = |x: Op| self.alias.nest.contains(region, x);
                (inside(a.op) && inside(b.op)).then_some(op)
            }
            _ => None,
        }
    }

    /// The op each run of which makes an object anew: the allocation, or the `spmd` whose ranks share it.
    fn maker(&self, op: Op) -> Option<Op> {
        let (nest, body) = (&self.alias.nest, self.alias.body);
        match body.kind(op) {
            OpKind::Alloca(info) if info.place == AllocaPlace::Shared => {
                let is_spmd = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
                nest.loops_of(op).find(is_spmd)
            }
            _ => Some(op),
        }
    }

    /// Whether an access can come after a read, while so many loops around both stay in one iteration. What
    /// one run of an op does itself comes after what it reads, and counts where `with_own` says so.
    fn comes_after(&self, read: &MemoryAccess, number: u32, loops: u32, with_own: bool) -> bool {
        let other = &self.accesses[number as usize];
        let outer = self
            .own_allocation(read, other)
            .map_or(0, |op| self.alias.nest.loop_depth(op));
        let (nest, body) = (&self.alias.nest, self.alias.body);
        let loops = outer.max(loops);
        if read.op == other.op && !with_own {
            return nest.loop_depth(read.op) > loops;
        }
        nest.runs_after(body, read.op, other.op, loops)
    }

    /// Hands the accesses of a file that may touch the memory of another and stand within `span` to
    /// `look`, the latest first within each list, until it says no.
    fn visit(
        &self,
        file: &File,
        access: &MemoryAccess,
        span: (u32, u32),
        mut look: impl FnMut(u32) -> bool,
    ) {
        let order = |n: &u32| self.alias.nest.order(self.accesses[*n as usize].op);
        let mut list = |numbers: &[u32]| {
            let from = numbers.partition_point(|n| order(n) < span.0);
            let to = numbers.partition_point(|n| order(n) <= span.1);
            numbers[from..to].iter().rev().all(|n| look(*n))
        };
        let Some(objects) = self.alias.objects(access) else {
            match access.place {
                Place::Errno => {
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
        let holes = self.holes(access, &objects);
        let private = |t: &Target| self.alias.points_to.is_private(t.object);
        let own = objects.iter().map(|t| t.object);
        let candidates: Vec<ObjectId> = if !self.alias.tells_private_objects() {
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
            let near = |t: &Target| self.alias.objects_may_meet(t.object, object, true);
            if !same && !objects.iter().any(near) {
                continue;
            }
            for (&meta, group) in file.objects.get(&object).into_iter().flatten() {
                if self.kept_apart(access.meta, meta) {
                    continue;
                }
                let go_on = match holes {
                    Some((first, last)) if same => {
                        list(&group.loose)
                            && (first..=last)
                                .filter_map(|hole| group.holes.get(&hole))
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

    fn kept_apart(&self, a: Option<MetaId>, b: Option<MetaId>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => self.alias.metas_disjoint(a, b, false),
            _ => false,
        }
    }

    fn changed_after_end(&self, read: &MemoryAccess) -> bool {
        let after = &self.after_end;
        if planted(Mutant::AfterEndForgotten) {
            return false;
        }
        let Some(objects) = self.alias.objects(read) else {
            return after.others;
        };
        objects.iter().any(|t| {
            let visible =
                self.alias.points_to.escaped(t.object) || self.handed_out.contains(&t.object);
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

/// The objects that the caller gets to know by what is returned: those pointed to, and those that
/// pointers in these lead to.
fn handed_out(alias: &Alias) -> HashSet<ObjectId> {
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
            work.extend(points_to.holds(object).iter().map(|target| target.object));
        }
    }
    found
}

/// Whether control may not go on after an op: it may end the program, throw, or run for ever.
fn may_stop(alias: &Alias, effects: &Effects, op: Op) -> bool {
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
        // The awaited threads arrive, or the program hangs without the derivative, too.
        OpKind::Sync | OpKind::Barrier(_) => false,
        OpKind::Binary(_)
        | OpKind::FNeg
        | OpKind::Cast(_)
        | OpKind::ICmp(_)
        | OpKind::FCmp(_)
        | OpKind::Select
        | OpKind::Freeze
        | OpKind::ExtractElement
        | OpKind::InsertElement
        | OpKind::Shuffle(_)
        | OpKind::ExtractValue(_)
        | OpKind::InsertValue(_)
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
