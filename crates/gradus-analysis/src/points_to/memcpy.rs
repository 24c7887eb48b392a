//! Byte copies between alias sets: unifies the memory cells at both ends.
//!
//! A copy of constant size is followed cell by cell. A structure with one pointer does not make all of its
//! cells pointers. If the size is unknown or covers very many cells, both alias sets first take each
//! other's modulus.
//!
//! Copies may form a shifted cycle (`memmove(p, p + 1, …)`): every cell then equals the cell one shift
//! further on. [`collapse_copy_cycles`] detects cycles from the copies alone, by a union-find with offsets, and
//! reduces the modulus of the alias sets to the shift. The reduction guarantees termination of the
//! fixpoint. Copies of at most [`CARRIED_MAX_BYTES`] bytes are exempt: their range bounds the propagated
//! offsets. Members of a structure that are copied to one variable in turn stay separate from the rest of
//! the structure.

use crate::points_to::alias_set_solver::Copy;
use crate::points_to::union_find::{AliasSetUnifier, CellNode, NodeOffset, gcd};
use std::collections::HashMap;

/// Maximal number of repetitions of an alias set's cells within one copy.
const REPEATS_MAX: u64 = 64;

/// Copies of more bytes may propagate offsets for very many rounds.
const CARRIED_MAX_BYTES: u64 = 256;

/// Unifies the cells of both ends of `copy`: pointees and types.
pub(crate) fn unify_cells(classes: &mut AliasSetUnifier, copy: Copy) {
    equate_moduli(classes, copy);
    let cells = cells_in_range(classes, copy.from, copy.size_bytes);
    unify_into(classes, copy.to, cells);
    let cells = cells_in_range(classes, copy.to, copy.size_bytes);
    unify_into(classes, copy.from, cells);
}

/// Equates the moduli of both ends if the cells cannot be paired one by one.
fn equate_moduli(classes: &mut AliasSetUnifier, copy: Copy) {
    let (to, from) = (
        classes.content(copy.to).modulus,
        classes.content(copy.from).modulus,
    );
    let few = |modulus: u64| match copy.size_bytes {
        Some(size) => modulus == 0 || size / modulus <= REPEATS_MAX,
        None => false,
    };
    if to != from && !(few(to) && few(from)) {
        classes.add_stride(copy.to, from as i64);
        classes.add_stride(copy.from, to as i64);
    }
}

/// Returns the cells in the copied range, by their distance from `start`.
fn cells_in_range(
    classes: &mut AliasSetUnifier,
    start: NodeOffset,
    size_bytes: Option<u64>,
) -> Vec<(i64, CellNode)> {
    let start = classes.find(start);
    let content = classes.root_content(start.node);
    let size = size_bytes.map_or(i64::MAX, |s| i64::try_from(s).unwrap_or(i64::MAX));
    let mut list = Vec::new();
    if content.modulus == 0 {
        let end = start.offset.saturating_add(size);
        for (&offset, cell) in content.cells.range(start.offset..end) {
            list.push((offset - start.offset, cell.clone()));
        }
        return list;
    }
    let modulus = content.modulus as i64;
    for (&offset, cell) in &content.cells {
        let first = (offset - start.offset).rem_euclid(modulus);
        let repeats = match size_bytes {
            Some(_) if first >= size => 0,
            Some(_) => ((size - first - 1) / modulus + 1).min(REPEATS_MAX as i64 + 1),
            None => 1,
        };
        let grain = cell.observed.granularity_bytes();
        let places = (0..repeats).map(|k| first + k * modulus);
        let aligned = places.filter(|at| repeats == 1 || at % grain == 0);
        list.extend(aligned.map(|at| (at, cell.clone())));
    }
    list
}

fn unify_into(classes: &mut AliasSetUnifier, start: NodeOffset, cells: Vec<(i64, CellNode)>) {
    for (distance, cell) in cells {
        let at = start.plus(distance);
        if let Some(points) = cell.target {
            let own = classes.pointee(at);
            classes.unify(own, points);
        }
        if !cell.observed.is_nothing() && classes.cell(at).observed.add(&cell.observed) {
            classes.changes += 1;
        }
    }
}

/// Union-find with offsets over alias sets that copies connect.
#[derive(Default)]
struct CopyCycles {
    number: HashMap<u32, usize>,
    roots: Vec<u32>,
    parent: Vec<usize>,
    /// Shift from the node's offsets to its parent's offsets.
    shift: Vec<i64>,
    /// Per representative: the period in bytes after which cells are equal, 0 if there is none.
    period: Vec<u64>,
}

impl CopyCycles {
    fn of(&mut self, root: u32) -> usize {
        let next = self.parent.len();
        let number = *self.number.entry(root).or_insert(next);
        if number == next {
            self.roots.push(root);
            self.parent.push(next);
            self.shift.push(0);
            self.period.push(0);
        }
        number
    }
    /// Returns the representative of a node and the shift to the representative's offsets.
    fn find(&mut self, class: usize) -> (usize, i64) {
        let (mut at, mut shift) = (class, 0i64);
        while self.parent[at] != at {
            shift = shift.wrapping_add(self.shift[at]);
            at = self.parent[at];
        }
        let (root, mut left, mut on) = (at, shift, class);
        while self.parent[on] != on {
            let own = self.shift[on];
            let next = self.parent[on];
            (self.parent[on], self.shift[on]) = (root, left);
            left = left.wrapping_sub(own);
            on = next;
        }
        (root, shift)
    }
    /// Equates offset `a_at` of `a` with offset `b_at` of `b`.
    fn join(&mut self, a: usize, a_at: i64, b: usize, b_at: i64) {
        let ((a, a_shift), (b, b_shift)) = (self.find(a), self.find(b));
        let distance = (a_at.wrapping_add(a_shift)).wrapping_sub(b_at.wrapping_add(b_shift));
        if a == b {
            self.period[a] = gcd(self.period[a], distance.unsigned_abs());
        } else {
            (self.parent[b], self.shift[b]) = (a, distance);
            self.period[a] = gcd(self.period[a], self.period[b]);
        }
    }
}

/// Reduces the modulus of alias sets in a cycle of copies to the shift of the cycle.
pub(crate) fn collapse_copy_cycles(classes: &mut AliasSetUnifier, copies: &[Copy]) {
    let far = copies.iter().filter(|copy| is_far(copy.size_bytes));
    let ends: Vec<CopyEnds> = far
        .map(|copy| {
            let (to, from) = (classes.find_raw(copy.to), classes.find_raw(copy.from));
            ((to.node, to.offset), (from.node, from.offset))
        })
        .collect();
    for (node, period) in copy_periods(&ends) {
        classes.add_stride(NodeOffset { node, offset: 0 }, period);
    }
}

/// Node and offset of the destination, and of the source, of a copy.
pub(crate) type CopyEnds = ((u32, i64), (u32, i64));

/// Returns true if copies of this size may propagate offsets for very many rounds.
pub(crate) fn is_far(size_bytes: Option<u64>) -> bool {
    size_bytes.is_none_or(|size| size > CARRIED_MAX_BYTES)
}

/// Returns the periods of the nodes in cycles of copies, in bytes.
pub(crate) fn copy_periods(copies: &[CopyEnds]) -> Vec<(u32, i64)> {
    let mut cycles = CopyCycles::default();
    for &((to, to_at), (from, from_at)) in copies {
        let (a, b) = (cycles.of(to), cycles.of(from));
        cycles.join(a, to_at, b, from_at);
    }
    let mut found = Vec::new();
    for number in 0..cycles.roots.len() {
        let (root, _) = cycles.find(number);
        let period = i64::try_from(cycles.period[root]).unwrap_or(1);
        if period != 0 {
            found.push((cycles.roots[number], period));
        }
    }
    found
}
