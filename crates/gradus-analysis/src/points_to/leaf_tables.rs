//! Tables with one entry per leaf of each value of a body: slots of the solver, and targets of the result.

use crate::points_to::alias_sets::CellRef;
use crate::types::flat_aggregates::FlatTypes;
use gradus_ir::{Body, Entity, Value};
use std::ops::Range;

/// The positions of the leaves of each value: the leaves of a value are adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LeafPositions {
    first: Vec<u32>,
}

impl LeafPositions {
    fn of(body: &Body, leaves: &FlatTypes) -> LeafPositions {
        let mut first = Vec::with_capacity(body.values.len() + 1);
        let mut total = 0u32;
        for (_, data) in body.values.iter() {
            first.push(total);
            total += leaves.get(data.ty).len() as u32;
        }
        first.push(total);
        LeafPositions { first }
    }
    fn count(&self) -> usize {
        self.first.last().map_or(0, |total| *total as usize)
    }
    fn range(&self, value: Value) -> Range<usize> {
        let end = self.first.get(value.index() + 1).copied().unwrap_or(0);
        let start = self.first.get(value.index()).copied().unwrap_or(end);
        start as usize..end as usize
    }
}

/// A table with at most one entry per leaf.
#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    positions: LeafPositions,
    items: Vec<Option<T>>,
}

impl<T: Copy> Slots<T> {
    /// Returns an empty table for the values of `body`.
    pub fn new(body: &Body, leaves: &FlatTypes) -> Self {
        let positions = LeafPositions::of(body, leaves);
        let items = vec![None; positions.count()];
        Slots { positions, items }
    }
    /// Returns the positions of a value's leaves.
    pub fn range(&self, value: Value) -> Range<usize> {
        self.positions.range(value)
    }
    /// Returns the entries of a value's leaves.
    pub fn of(&self, value: Value) -> &[Option<T>] {
        &self.items[self.range(value)]
    }
    /// Returns the entry at a position.
    pub fn at(&mut self, position: usize) -> &mut Option<T> {
        &mut self.items[position]
    }
    /// Returns the targets that `targets` gives for the entries.
    pub fn into_targets<L>(self, mut targets: impl FnMut(T) -> L) -> LeafTargets
    where
        L: IntoIterator<Item = CellRef>,
    {
        let lists = self.items.into_iter();
        LeafTargets::new(
            self.positions,
            lists.map(|slot| slot.into_iter().flat_map(&mut targets).collect()),
        )
    }
}

/// The targets of each leaf, in compressed sparse row form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafTargets {
    positions: LeafPositions,
    /// Per leaf, the start of its targets in `list`, and the length of `list` at the end.
    start: Vec<u32>,
    list: Vec<CellRef>,
}

impl LeafTargets {
    /// Returns the table with the targets that `targets` gives for each leaf of each value of `body`.
    pub fn build(
        body: &Body,
        leaves: &FlatTypes,
        targets: impl Fn(Value, usize) -> Vec<CellRef>,
    ) -> LeafTargets {
        let positions = LeafPositions::of(body, leaves);
        let values = body.values.iter();
        let lists = values.flat_map(|(value, data)| {
            let count = leaves.get(data.ty).len();
            (0..count).map(move |leaf| (value, leaf))
        });
        let lists = lists.map(|(value, leaf)| targets(value, leaf));
        LeafTargets::new(positions, lists)
    }
    fn new(positions: LeafPositions, lists: impl Iterator<Item = Vec<CellRef>>) -> LeafTargets {
        let (mut start, mut list) = (Vec::with_capacity(positions.count() + 1), Vec::new());
        for mut targets in lists {
            start.push(list.len() as u32);
            targets.sort_unstable();
            targets.dedup();
            list.append(&mut targets);
        }
        start.push(list.len() as u32);
        LeafTargets {
            positions,
            start,
            list,
        }
    }
    /// Returns the targets of each leaf of a value. The targets of a leaf are sorted and distinct.
    pub fn leaves(&self, value: Value) -> impl ExactSizeIterator<Item = &[CellRef]> {
        let leaves = self.positions.range(value);
        leaves.map(|leaf| &self.list[self.start[leaf] as usize..self.start[leaf + 1] as usize])
    }
    /// Returns the targets of all leaves of a value.
    pub fn of(&self, value: Value) -> &[CellRef] {
        let leaves = self.positions.range(value);
        match leaves.is_empty() {
            true => &[],
            false => &self.list[self.start[leaves.start] as usize..self.start[leaves.end] as usize],
        }
    }
    /// Returns the targets of each leaf of all values.
    pub fn all(&self) -> impl Iterator<Item = &[CellRef]> {
        let bounds = self.start.windows(2);
        bounds.map(|bounds| &self.list[bounds[0] as usize..bounds[1] as usize])
    }
    /// Adds a target to a leaf of a value.
    #[cfg(test)]
    pub fn add(&mut self, value: Value, leaf: usize, target: CellRef) {
        let mut lists: Vec<Vec<CellRef>> = self.all().map(<[CellRef]>::to_vec).collect();
        lists[self.positions.range(value).start + leaf].push(target);
        *self = LeafTargets::new(std::mem::take(&mut self.positions), lists.into_iter());
    }
}
