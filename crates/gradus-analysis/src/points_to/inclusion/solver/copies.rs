//! Byte copies: a copy connects the cells of its source with the cells of its destination.

use crate::points_to::folds::{Fold, visit_elements};
use crate::points_to::inclusion::constraints::NodeId;
use crate::points_to::inclusion::nodes::Move;
use crate::points_to::inclusion::objects::{EXTERNAL, Location};
use crate::points_to::inclusion::solver::Solver;
use crate::points_to::union_find::gcd;
use gradus_ir::TbaaTag;

/// Maximal number of instances of a folded cell that one byte copy enumerates.
const REPEATS_MAX: usize = 128;

/// A byte copy between two locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Transfer {
    pub to: Location,
    pub from: Location,
    pub size_bytes: Option<u64>,
}

impl Solver<'_> {
    pub(super) fn transfer_all(
        &mut self,
        to: &[Location],
        from: &[Location],
        size_bytes: Option<u64>,
    ) {
        let to = self.all_starts(to, size_bytes);
        let from = self.all_starts(from, size_bytes);
        for &to in &to {
            for &from in &from {
                self.transfer(Transfer {
                    to,
                    from,
                    size_bytes,
                });
            }
        }
    }
    /// Returns the starts of blocks of `size_bytes` at locations.
    pub(super) fn all_starts(
        &mut self,
        places: &[Location],
        size_bytes: Option<u64>,
    ) -> Vec<Location> {
        let mut list = Vec::new();
        for &at in places {
            if let Some(starts) = self.objects.starts(at, size_bytes) {
                list.extend(starts);
                continue;
            }
            // Many elements: the fold includes the memory that a block at the last element reaches.
            if let Some(array) = self.objects.array_of(at) {
                let end = size_bytes.and_then(|size| array.end?.checked_add_unsigned(size));
                self.fold(at.object, Fold { end, ..array });
            }
            list.push(Location { stride: 0, ..at });
        }
        list
    }
    pub(super) fn transfer(&mut self, transfer: Transfer) {
        let Transfer { to, from, .. } = transfer;
        let is_memory = |object| !self.objects.get(object).key.is_without_memory();
        self.work_done += 1;
        let is_idle = to == from || !is_memory(to.object) || !is_memory(from.object);
        if is_idle || self.is_exhausted() || !self.transfers.insert(transfer) {
            return;
        }
        self.outgoing.entry(from.object).or_default().push(transfer);
        self.incoming.entry(to.object).or_default().push(transfer);
        for (at, tag, cell) in self.cells.stored_in(from.object) {
            self.send(transfer, at.offset, tag, cell);
        }
        for (at, tag, cell) in self.cells.stored_in(to.object) {
            if tag.is_none() {
                self.receive(transfer, at.offset, cell);
            }
        }
    }
    /// Copies a source cell to its places in the destination. Copied memory keeps its type.
    pub(super) fn send(
        &mut self,
        transfer: Transfer,
        offset: i64,
        tag: Option<TbaaTag>,
        cell: NodeId,
    ) {
        let Transfer { to, from, .. } = transfer;
        let places = self.distances(from, offset, transfer);
        if !places.is_empty() && to.object == EXTERNAL {
            return self.escape_node(cell);
        }
        for distance in places {
            let goal = Location::at(to.object, to.offset.wrapping_add(distance));
            let goal = self.stored_cell(goal, tag);
            self.edge(cell, goal, Move::By(0));
        }
    }
    /// Fills a destination cell from its places in the source.
    pub(super) fn receive(&mut self, transfer: Transfer, offset: i64, cell: NodeId) {
        let Transfer { to, from, .. } = transfer;
        let places = self.distances(to, offset, transfer);
        if !places.is_empty() && from.object == EXTERNAL {
            return self.add_external(cell);
        }
        for distance in places {
            let source = Location::at(from.object, from.offset.wrapping_add(distance));
            let stored = self.stored_cell(source, None);
            self.add_content_of_floats(source);
            self.edge(stored, cell, Move::By(0));
        }
    }
    /// Returns the distances from `start`, within the copied range, at which the cell `offset` of the object lies.
    ///
    /// A folded cell lies at many distances. Beyond [`REPEATS_MAX`], the other end receives the fold instead.
    pub(super) fn distances(
        &mut self,
        start: Location,
        offset: i64,
        transfer: Transfer,
    ) -> Vec<i64> {
        let size = transfer
            .size_bytes
            .map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let range = start.offset..start.offset.saturating_add(size);
        let folds = self.objects.get(start.object).folds.list();
        let covering = folds.iter().filter(|fold| fold.contains(offset));
        let stride = covering.map(|fold| fold.stride).fold(0, gcd);
        self.work_done += 4;
        let mut places = Vec::new();
        let is_complete = visit_elements(folds, offset, &range, &mut |at| {
            places.push(at.wrapping_sub(start.offset));
        });
        if !is_complete || places.len() > REPEATS_MAX {
            let other = if start == transfer.to {
                transfer.from
            } else {
                transfer.to
            };
            let end = transfer
                .size_bytes
                .map(|_| other.offset.saturating_add(size));
            let fold = Fold {
                first: other.offset,
                end,
                stride: stride.max(1),
            };
            self.fold(other.object, fold);
            places.truncate(REPEATS_MAX);
        }
        places
    }
}
