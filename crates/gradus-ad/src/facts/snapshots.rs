//! Snapshots: an array copied as a whole, so that loads from it can be done again although it is
//! overwritten later.
//!
//! A load that is not stable may still be stable during one run of a loop `at` (nothing in it
//! writes there). A copy of the memory, made just before that loop, then serves it. Loads in
//! several such loops of one region share a copy as long as nothing in between writes there. What
//! is copied must be certainly readable: a whole allocation of known size, or the stretch from the
//! lowest to the highest address that unconditional affine loads touch.

use super::early::{is_known_before, is_known_where};
use super::loops::is_loop;
use gradus_analysis::{Affine, Alias, Availability, Clobbers, MemoryAccess, Root, affine};
use gradus_ir::known::{AllocationSize, Known};
use gradus_ir::{Body, Op, OpKind, Region, Unit, Value};
use std::collections::HashMap;

/// How much is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The whole block: so many bytes from the root.
    Block(Value),
    /// So many bytes from the root, known now.
    Bytes(u64),
    /// What these loads touch.
    Addresses(Vec<Touched>),
}

/// What a load touches while the loops around it run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The address as an affine function of the loops' indices.
    pub form: Affine,
    /// The bytes of one access.
    pub bytes: u64,
    /// The loops around it, up to the one that the snapshot serves: where one of them does not run at
    /// all, nothing is touched.
    pub loops: Vec<Op>,
}

impl Touched {
    fn factors(&self) -> impl Iterator<Item = &Value> {
        let products = self.form.invariant.iter().flat_map(|(product, _)| product);
        products.chain(self.form.terms.iter().flat_map(|term| &term.factors))
    }
    fn trips(&self, body: &Body) -> impl Iterator<Item = Value> {
        self.loops.iter().map(|lp| body.operand(*lp, 0))
    }
}

/// A copy that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// It is made just before this loop.
    pub anchor: Op,
    /// The pointer that its addresses are relative to, known there.
    pub root: Value,
    /// The loads that it serves.
    pub loads: Vec<Op>,
    /// How much is copied.
    pub extent: Extent,
    last: Op,
}

impl Snapshot {
    /// Whether only the loop that it is made before reads it.
    pub fn serves_one_loop(&self) -> bool {
        self.anchor == self.last
    }
    /// The values that making it takes, but for trip counts that are computed early.
    pub fn inputs(&self, body: &Body) -> Vec<Value> {
        let mut found = vec![self.root];
        match &self.extent {
            Extent::Block(size) => found.push(*size),
            Extent::Bytes(_) => {}
            Extent::Addresses(all) => {
                for touched in all {
                    found.extend(touched.factors());
                    found.extend(touched.trips(body));
                }
            }
        }
        found
    }
}

/// Looks for snapshots that serve unstable loads.
pub(super) struct Finder<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    pub alias: &'a Alias<'a>,
    pub clobbers: &'a Clobbers<'a>,
}

impl Finder<'_> {
    /// All snapshots, and which one serves a load.
    pub fn find(&self, unstable: &[Op]) -> (Vec<Snapshot>, HashMap<Op, usize>) {
        let mut found: Vec<Snapshot> = Vec::new();
        let mut open: HashMap<(Region, Value), usize> = HashMap::new();
        for &load in unstable {
            let Some((at, root)) = self.place(load) else {
                continue;
            };
            let Some(region) = self.body.parent(at) else {
                continue;
            };
            let Some(extent) = self.extent(load, at, root) else {
                continue;
            };
            let shared = open.get(&(region, root)).copied().filter(|&number| {
                self.unwritten_until(load, found[number].last, at)
                    && same_sort(&found[number].extent, &extent)
                    && self.can_be_read_at(&extent, found[number].anchor, at)
            });
            match shared {
                Some(number) => {
                    let snapshot = &mut found[number];
                    snapshot.loads.push(load);
                    snapshot.last = at;
                    if let (Extent::Addresses(all), Extent::Addresses(more)) =
                        (&mut snapshot.extent, extent)
                    {
                        all.extend(more);
                    }
                }
                None => {
                    open.insert((region, root), found.len());
                    found.push(Snapshot {
                        anchor: at,
                        root,
                        loads: vec![load],
                        extent,
                        last: at,
                    });
                }
            }
        }
        let mut serving = HashMap::new();
        for (number, snapshot) in found.iter().enumerate() {
            serving.extend(snapshot.loads.iter().map(|load| (*load, number)));
        }
        (found, serving)
    }

    /// Whether what is copied for a loop can be found, and read, before an earlier one: all that tells
    /// where it lies is known there, and the loop surely follows.
    fn can_be_read_at(&self, extent: &Extent, anchor: Op, at: Op) -> bool {
        let Extent::Addresses(all) = extent else {
            return true;
        };
        let known = Availability::new(self.clobbers);
        let visible = |value: Value| known.visible_before(value, anchor);
        let all_known = all.iter().all(|touched| {
            let early = |trips| is_known_where(self.body, trips, &visible);
            touched.factors().all(|v| visible(*v)) && touched.trips(self.body).all(early)
        });
        all_known && self.clobbers.surely_reaches(anchor, at)
    }

    fn read(&self, load: Op) -> Option<&MemoryAccess> {
        self.clobbers.reads_of(load).first()
    }

    /// The outermost loop during which nothing changes what `load` reads, where its address is a
    /// chain of address computations from a pointer known before that loop.
    fn place(&self, load: Op) -> Option<(Op, Value)> {
        let access = self.read(load)?;
        let root = self.chain_root(self.body.operand(load, 0))?;
        let mut best = None;
        for at in self.alias.nest.loops_of(load) {
            let known = self.visible(root, at);
            if !known || !is_loop(self.body.kind(at)) || self.clobbers.destroyed_in(access, at) {
                break;
            }
            best = Some((at, root));
        }
        best
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
        let home = self.body.region_of(value);
        let region = self.body.parent(at);
        match (home, region) {
            (None, _) => true,
            (Some(home), Some(region)) => self.body.is_inside(region, home),
            _ => false,
        }
    }

    /// Whether nothing from after `from` to `to`, two ops of one region, writes what `load` reads.
    fn unwritten_until(&self, load: Op, from: Op, to: Op) -> bool {
        let Some(access) = self.read(load) else {
            return false;
        };
        let mut at = from;
        while at != to {
            match self.body.next(at) {
                Some(next) => at = next,
                None => return false,
            }
            if self.clobbers.destroyed_in(access, at) {
                return false;
            }
        }
        true
    }

    fn extent(&self, load: Op, at: Op, root: Value) -> Option<Extent> {
        self.block(root).or_else(|| self.addresses(load, at, root))
    }

    /// The size of the allocation that a pointer is the start of.
    fn block(&self, root: Value) -> Option<Extent> {
        let op = self.body.def_op(root)?;
        match self.body.kind(op) {
            OpKind::Alloca(info) => {
                let count = self.body.as_int(self.unit, self.body.operand(op, 0))?;
                let size = self.unit.layout.size_bytes(self.unit, info.ty);
                Some(Extent::Bytes(size.checked_mul(u64::try_from(count).ok()?)?))
            }
            OpKind::Call(_) => {
                let callee = self.unit.callee(self.body, op)?;
                let Some(Known::Memory(function)) = self.unit.known(callee) else {
                    return None;
                };
                let allocation = function.allocation()?;
                let AllocationSize::Argument(number) = allocation.size else {
                    return None;
                };
                let args = self.unit.call_args(self.body, op);
                Some(Extent::Block(args[usize::from(number)]))
            }
            _ => None,
        }
    }

    /// The address as an affine function of the loops inside `at`, if every iteration loads.
    fn addresses(&self, load: Op, at: Op, root: Value) -> Option<Extent> {
        let mut inner = load;
        while inner != at {
            inner = self.alias.nest.parent(inner)?;
            if !matches!(self.body.kind(inner), OpKind::For { .. }) {
                return None;
            }
        }
        if self.clobbers.may_stop_in(at) {
            return None;
        }
        let pointer = self.body.operand(load, 0);
        let form = affine(self.alias, pointer, Some(at))?;
        let starts_there = form.start == Some(Root::Value(root));
        let own_indices = form.terms.iter().all(|t| t.dim == 0);
        let inner = self.alias.nest.loops_of(load).take_while(|l| *l != at);
        let touched = Touched {
            bytes: self
                .unit
                .layout
                .store_bytes(self.unit, self.body.ty(self.body.result(load))),
            loops: inner.chain([at]).collect(),
            form,
        };
        let known = touched.factors().all(|v| self.visible(*v, at))
            && touched
                .trips(self.body)
                .all(|trips| is_known_before(self.body, trips, at));
        (touched.form.exact && starts_there && own_indices && known)
            .then(|| Extent::Addresses(vec![touched]))
    }
}

fn same_sort(a: &Extent, b: &Extent) -> bool {
    match (a, b) {
        (Extent::Addresses(_), Extent::Addresses(_)) => true,
        _ => a == b,
    }
}
