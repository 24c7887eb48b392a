//! Folds: parts of an alias set's objects in which offsets count modulo a stride.
//!
//! A variable index into an array reaches every element, so all elements share one set of memory cells. The
//! cells of an array member of a structure fold, the members around the array keep exact offsets.
//!
//! # Invariants
//! The folds of an alias set are ordered from the outside in. Two folds are disjoint, or the later fold has an
//! end and lies in the first period of the earlier fold.

use crate::points_to::alias_sets::AliasSet;
use std::ops::Range;

/// Maximal number of elements at which [`AliasSet::visit_offsets`] visits the cell of a fold.
const ELEMENTS_MAX: i64 = 4096;

/// A part of an object in which offsets count modulo a stride: an array member of a structure, or an array of
/// structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    /// First offset of the part, in bytes. [`Fold::NO_START`] means that the part includes all earlier offsets.
    pub first: i64,
    /// Distance of two elements, in bytes; not 0.
    pub stride: u64,
    /// Offset behind the part, in bytes. `None` means that the part includes all later offsets.
    pub end: Option<i64>,
}

impl Fold {
    /// The first offset of a fold without a start.
    pub const NO_START: i64 = i64::MIN;

    /// Returns the fold of all offsets of an object.
    pub fn of_whole_object(stride: u64) -> Fold {
        Fold {
            first: Fold::NO_START,
            stride,
            end: None,
        }
    }
    /// Returns true if an offset lies in the fold.
    pub fn contains(&self, offset_bytes: i64) -> bool {
        offset_bytes >= self.first && self.end.is_none_or(|end| offset_bytes < end)
    }
    /// Returns the fold of the offsets `bytes` further on.
    pub(crate) fn moved(self, bytes: i64) -> Fold {
        let first = match self.first {
            Fold::NO_START => Fold::NO_START,
            first => first.saturating_add(bytes),
        };
        Fold {
            first,
            end: self.end.map(|end| end.saturating_add(bytes)),
            ..self
        }
    }
    fn stride_bytes(&self) -> i64 {
        i64::try_from(self.stride).unwrap_or(i64::MAX).max(1)
    }
    /// Returns the offset in the first element that shares a memory cell with `offset_bytes`. The first element
    /// of a fold without a start begins at offset 0.
    pub(crate) fn normalize(&self, offset_bytes: i64) -> i64 {
        let origin = match self.first {
            Fold::NO_START => 0,
            first => first,
        };
        let distance = offset_bytes.wrapping_sub(origin);
        origin + distance.rem_euclid(self.stride_bytes())
    }
}

impl AliasSet {
    /// Normalises an offset: moves `offset_bytes` to the first element of each fold around the offset.
    pub fn normalize_offset(&self, offset_bytes: i64) -> i64 {
        let mut offset = offset_bytes;
        for fold in &self.folds {
            if fold.contains(offset) {
                offset = fold.normalize(offset);
            }
        }
        offset
    }
    /// Returns the innermost fold around an offset. `None` means that no other offset shares the offset's
    /// memory cell.
    pub fn fold_at(&self, offset_bytes: i64) -> Option<&Fold> {
        self.folds_at(offset_bytes).last()
    }
    /// Returns the folds around an offset, from the outside in.
    pub(crate) fn folds_at(&self, offset_bytes: i64) -> impl Iterator<Item = &Fold> {
        let mut offset = offset_bytes;
        self.folds.iter().filter(move |fold| {
            let contains = fold.contains(offset);
            if contains {
                offset = fold.normalize(offset);
            }
            contains
        })
    }
    /// Returns the stride of the outermost fold that contains a whole memory block: the cells of the block
    /// repeat with this period. A block of unknown size reaches up to the end of the object.
    pub(crate) fn block_period(&self, start_bytes: i64, size_bytes: Option<u64>) -> Option<u64> {
        let is_inside = |end: i64| {
            size_bytes.is_some_and(|size| start_bytes.saturating_add_unsigned(size) <= end)
        };
        let around = |fold: &&Fold| fold.contains(start_bytes) && fold.end.is_none_or(is_inside);
        self.folds.iter().find(around).map(|fold| fold.stride)
    }
    /// Visits the offsets in `range` of the memory cell at the normalised offset `cell`. Returns false if a
    /// fold has too many elements in the range; then the walk visits only the first of these elements.
    pub(crate) fn visit_offsets(
        &self,
        cell: i64,
        range: Range<i64>,
        mut visit: impl FnMut(i64),
    ) -> bool {
        visit_elements(&self.folds, cell, &range, &mut visit)
    }
    /// Returns true if two accesses may touch a common byte. An access is an offset and a size, both in bytes.
    pub fn may_overlap(&self, a: (i64, i64), b: (i64, i64)) -> bool {
        let reaches = |(from, bytes): (i64, i64), to: i64| match self.folds.as_slice() {
            [] => (0..bytes).contains(&(to - from)),
            [fold] if fold.first == Fold::NO_START && fold.end.is_none() => {
                (0..bytes).contains(&(to - from).rem_euclid(fold.stride_bytes()))
            }
            _ => {
                let to = self.normalize_offset(to);
                (0..bytes).any(|k| self.normalize_offset(from + k) == to)
            }
        };
        reaches(a, b.0) || reaches(b, a.0)
    }
}

/// Computes [`AliasSet::visit_offsets`] for `folds`, from the innermost fold outwards.
pub(crate) fn visit_elements(
    folds: &[Fold],
    cell: i64,
    range: &Range<i64>,
    visit: &mut impl FnMut(i64),
) -> bool {
    let Some((fold, outer)) = folds.split_last() else {
        if range.contains(&cell) {
            visit(cell);
        }
        return true;
    };
    if !fold.contains(cell) {
        return visit_elements(outer, cell, range, visit);
    }
    // The elements of an inner fold lie in the first period of the outer fold.
    let whole = match outer.iter().any(|fold| fold.contains(cell)) {
        true => i64::MIN..i64::MAX,
        false => range.clone(),
    };
    let low = whole.start.max(fold.first);
    let high = whole.end.min(fold.end.unwrap_or(i64::MAX));
    let stride = fold.stride_bytes();
    let first = low.saturating_add(cell.wrapping_sub(low).rem_euclid(stride));
    if first >= high {
        return true;
    }
    let count = (high.saturating_sub(first) - 1) / stride + 1;
    let is_complete = count <= ELEMENTS_MAX;
    let visited = if is_complete { count } else { 1 };
    (0..visited).fold(is_complete, |complete, k| {
        visit_elements(outer, first + k * stride, range, visit) && complete
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array of 40-byte structures `{ long n; double d[3]; long m }`.
    fn nested() -> AliasSet {
        AliasSet {
            folds: vec![
                Fold::of_whole_object(40),
                Fold {
                    first: 8,
                    stride: 8,
                    end: Some(32),
                },
            ],
            ..AliasSet::default()
        }
    }

    /// A single structure `{ long n; double d[3]; long m }`.
    fn member() -> AliasSet {
        AliasSet {
            folds: nested().folds.split_off(1),
            ..AliasSet::default()
        }
    }

    fn offsets(set: &AliasSet, cell: i64, range: Range<i64>) -> Vec<i64> {
        let mut list = Vec::new();
        assert!(set.visit_offsets(cell, range, |at| list.push(at)));
        list
    }

    #[test]
    fn folds_keep_the_members_around_an_array_exact() {
        let set = member();
        let normal = [0, 8, 16, 24, 31, 32, 40].map(|at| set.normalize_offset(at));
        assert_eq!(normal, [0, 8, 8, 8, 15, 32, 40]);
        assert!(set.fold_at(0).is_none() && set.fold_at(32).is_none());
        assert_eq!(set.fold_at(24), set.folds.first());
        let normal = [-40, 40, 48, 64, 72, 79].map(|at| nested().normalize_offset(at));
        assert_eq!(normal, [0, 0, 8, 8, 32, 39]);
        assert_eq!(nested().fold_at(56).map(|fold| fold.stride), Some(8));
        assert_eq!(nested().fold_at(72).map(|fold| fold.stride), Some(40));
    }

    /// The visited offsets are exactly the offsets that normalise to the cell.
    #[test]
    fn visited_offsets_are_the_inverse_of_normalisation() {
        let sets = [AliasSet::default(), member(), nested()];
        for set in &sets {
            for cell in (0..40).filter(|cell| set.normalize_offset(*cell) == *cell) {
                for range in [0..40, 4..90, -50..10] {
                    let expected: Vec<i64> = (range.clone())
                        .filter(|at| set.normalize_offset(*at) == cell)
                        .collect();
                    let mut found = offsets(set, cell, range);
                    found.sort_unstable();
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn endless_fold_is_visited_once() {
        let flexible = AliasSet {
            folds: vec![Fold {
                first: 8,
                stride: 8,
                end: None,
            }],
            ..AliasSet::default()
        };
        let mut list = Vec::new();
        assert!(!flexible.visit_offsets(8, 0..i64::MAX, |at| list.push(at)));
        assert_eq!(list, [8]);
        assert_eq!(flexible.block_period(0, None), None);
        assert_eq!(flexible.block_period(24, None), Some(8));
    }

    #[test]
    fn block_period_requires_the_whole_block_in_a_fold() {
        assert_eq!(member().block_period(8, Some(24)), Some(8));
        assert_eq!(member().block_period(8, Some(25)), None);
        assert_eq!(member().block_period(8, None), None);
        assert_eq!(nested().block_period(8, Some(24)), Some(40));
    }

    /// Overlap agrees with a comparison of all bytes.
    #[test]
    fn accesses_overlap_in_a_common_byte() {
        let sets = [
            AliasSet::default(),
            member(),
            nested(),
            AliasSet {
                folds: vec![Fold::of_whole_object(24)],
                ..AliasSet::default()
            },
        ];
        for set in &sets {
            for (a, b) in (0..40)
                .step_by(4)
                .flat_map(|a| (0..80).step_by(4).map(move |b| ((a, 8_i64), (b, 4_i64))))
            {
                let bytes = |(at, size): (i64, i64)| {
                    (at..at + size)
                        .map(|at| set.normalize_offset(at))
                        .collect::<Vec<_>>()
                };
                let common = bytes(a).iter().any(|byte| bytes(b).contains(byte));
                assert_eq!(set.may_overlap(a, b), common, "{a:?} {b:?}");
            }
        }
    }
}
