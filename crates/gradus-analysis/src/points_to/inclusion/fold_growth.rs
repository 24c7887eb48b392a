//! Growth of the folds of an object: a new fold nests in the present folds or merges with them.
//!
//! The list descends by stride, and a fold that overlaps an earlier fold lies within the first period of the earlier
//! fold. One pass over the list therefore normalises an offset.

use crate::points_to::folds::Fold;
use crate::points_to::union_find::gcd;

/// The highest offset that a fold with this end covers, exclusive.
fn high(fold: &Fold) -> i64 {
    fold.end.unwrap_or(i64::MAX)
}

fn overlap(a: &Fold, b: &Fold) -> bool {
    a.first < high(b) && b.first < high(a)
}

/// Returns `inner` moved into the first period of `outer`, if it lies within one period.
fn nested(outer: &Fold, inner: &Fold) -> Option<Fold> {
    let end = inner.end.filter(|_| inner.first != Fold::NO_START)?;
    let length = end.checked_sub(inner.first)?;
    if inner.first < outer.first || end > high(outer) || length as u64 > outer.stride {
        return None;
    }
    let origin = if outer.first == Fold::NO_START {
        0
    } else {
        outer.first
    };
    let start = outer.normalize(inner.first);
    let moved = start.checked_add(length)?;
    (moved <= origin.checked_add_unsigned(outer.stride)?).then_some(Fold {
        first: start,
        end: Some(moved),
        stride: inner.stride,
    })
}

/// Returns the smallest fold that covers both and keeps the equalities of both.
fn merged(a: &Fold, b: &Fold) -> Fold {
    Fold {
        first: a.first.min(b.first),
        end: a.end.zip(b.end).map(|(a, b)| a.max(b)),
        stride: gcd(a.stride, b.stride).max(1),
    }
}

/// The folds of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folds {
    list: Vec<Fold>,
}

impl Folds {
    /// Returns the folds, by descending stride.
    pub fn list(&self) -> &[Fold] {
        &self.list
    }
    /// Returns the representative of an offset.
    pub fn normalize(&self, mut offset: i64) -> i64 {
        for fold in &self.list {
            if fold.contains(offset) {
                offset = fold.normalize(offset);
            }
        }
        offset
    }
    /// Adds a fold. Returns true if the folds changed.
    ///
    /// Folds that overlap without nesting merge. A merge lowers the number of folds or a stride; the loop ends.
    pub fn insert(&mut self, fold: Fold) -> bool {
        let before = self.list.clone();
        let mut pending = vec![fold];
        while let Some(mut new) = pending.pop() {
            let mut at = 0;
            while at < self.list.len() {
                let old = self.list[at];
                if !overlap(&old, &new) {
                    at += 1;
                    continue;
                }
                if old.stride > new.stride
                    && let Some(moved) = nested(&old, &new)
                {
                    new = moved;
                    at += 1;
                    continue;
                }
                self.list.remove(at);
                match new.stride > old.stride && nested(&new, &old).is_some() {
                    true => pending.push(old),
                    false => {
                        new = merged(&new, &old);
                        at = 0;
                    }
                }
            }
            self.list.push(new);
            self.list.sort_unstable_by(|a, b| {
                (b.stride, a.first, a.end).cmp(&(a.stride, b.first, b.end))
            });
        }
        self.list != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: i64, end: i64, stride: u64) -> Fold {
        Fold {
            first,
            end: Some(end),
            stride,
        }
    }

    #[test]
    fn array_member_keeps_its_structure() {
        let mut folds = Folds::default();
        assert!(folds.insert(part(16, 120, 8)));
        assert_eq!(
            [0, 8, 16, 40, 120].map(|at| folds.normalize(at)),
            [0, 8, 16, 16, 120]
        );
        assert!(!folds.insert(part(16, 120, 8)));
    }

    #[test]
    fn array_of_structures_with_array_member() {
        for order in [true, false] {
            let mut folds = Folds::default();
            let (outer, inner) = (Fold::of_whole_object(40), part(96, 120, 8));
            let (first, second) = if order {
                (outer, inner)
            } else {
                (inner, outer)
            };
            folds.insert(first);
            folds.insert(second);
            assert_eq!(
                [0, 8, 16, 24, 32, 40].map(|at| folds.normalize(at)),
                [0, 8, 16, 16, 16, 0]
            );
            assert_eq!(folds.normalize(104), 16);
        }
    }

    #[test]
    fn straddling_range_merges() {
        let mut folds = Folds::default();
        folds.insert(Fold::of_whole_object(24));
        folds.insert(part(16, 32, 8));
        assert_eq!(folds.list(), [Fold::of_whole_object(8)]);
    }

    #[test]
    fn rest_of_object_keeps_the_head() {
        let mut folds = Folds::default();
        let rest = Fold {
            first: 8,
            end: None,
            stride: 8,
        };
        folds.insert(rest);
        assert_eq!([0, 8, 16, 80].map(|at| folds.normalize(at)), [0, 8, 8, 8]);
        folds.insert(Fold::of_whole_object(24));
        assert_eq!(folds.list(), [Fold::of_whole_object(8)]);
    }

    /// Every inserted range keeps its equalities, in every order of insertion.
    #[test]
    fn inserted_equalities_hold() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..2000 {
            let mut folds = Folds::default();
            let mut given = Vec::new();
            for _ in 0..1 + random(4) {
                let first = random(12) as i64 * 8 - 32;
                let fold = Fold {
                    first: if random(4) > 0 { first } else { Fold::NO_START },
                    end: (random(3) > 0).then_some(first + 8 + random(12) as i64 * 8),
                    stride: [4, 8, 16, 24, 40][random(5) as usize],
                };
                folds.insert(fold);
                given.push(fold);
            }
            for fold in given {
                for at in -64i64..128 {
                    let next = at + fold.stride as i64;
                    if fold.contains(at) && fold.contains(next) {
                        assert_eq!(
                            folds.normalize(at),
                            folds.normalize(next),
                            "{folds:?} {fold:?} {at}"
                        );
                    }
                }
            }
            for at in -64i64..128 {
                let once = folds.normalize(at);
                assert_eq!(folds.normalize(once), once, "{folds:?} {at}");
            }
        }
    }
}
