//! Pointer differences: `base + (to - from)`.
//!
//! Two pointers into one object have the distance of their offsets, up to the folds. The sum `p + (q - p)` is `q`, in
//! whatever object. Other differences between objects have no meaning in C. Null pointers have distance 0.

use crate::points_to::folds::Fold;
use crate::points_to::inclusion::constraints::NodeId;
use crate::points_to::inclusion::objects::{Location, ObjectId};
use crate::points_to::inclusion::solver::Solver;
use crate::points_to::union_find::gcd;
use std::collections::BTreeMap;

/// Maximal number of distances of one difference. More distances count as multiples of their common divisor.
const DISTANCES_MAX: usize = 64;

/// Distances in bytes; each stands for `distance + stride · n` for all integers n.
type Distances = BTreeMap<i64, u64>;

/// Returns the distances from locations to others in the same object.
fn distances(from: &[Location], to: &[Location]) -> Distances {
    let mut found = Distances::new();
    for from in from {
        for to in to {
            let stride = found
                .entry(to.offset.wrapping_sub(from.offset))
                .or_insert(0);
            *stride = gcd(*stride, gcd(to.stride, from.stride));
        }
    }
    found
}

/// Replaces too many distances by the multiples of their common divisor.
fn limited(found: Distances) -> Distances {
    if found.len() <= DISTANCES_MAX {
        return found;
    }
    let strides = found
        .iter()
        .map(|(at, stride)| gcd(at.unsigned_abs(), *stride));
    Distances::from([(0, strides.fold(0, gcd).max(1))])
}

/// Returns locations by object.
fn by_object(list: &[Location]) -> BTreeMap<ObjectId, Vec<Location>> {
    let mut found: BTreeMap<ObjectId, Vec<Location>> = BTreeMap::new();
    for at in list {
        found.entry(at.object).or_default().push(*at);
    }
    found
}

impl Solver<'_> {
    /// Adds `result = base + (to - from)`.
    pub(super) fn difference(&mut self, result: NodeId, base: NodeId, to: NodeId, from: NodeId) {
        let (bases, tos) = (self.all(base), by_object(&self.all(to)));
        for &base in &bases {
            self.add(result, base);
        }
        let mut inside = Distances::new();
        for (object, froms) in by_object(&self.all(from)) {
            if let Some(tos) = tos.get(&object) {
                self.work_done += (froms.len() * tos.len()) as u64;
                let folds = self.objects.get(object).folds.list().iter();
                let fold = folds.map(|fold| fold.stride).fold(0, gcd);
                for (distance, stride) in distances(&froms, tos) {
                    let known = inside.entry(distance).or_insert(0);
                    *known = gcd(*known, gcd(stride, fold));
                }
            }
            self.other_ends(result, &froms, &bases, &tos);
        }
        for (distance, stride) in limited(inside) {
            for &base in &bases {
                self.add_moved(result, base, distance, stride);
            }
        }
    }
    /// Adds `to + (base - from)` for the pointers `to` outside of the object of `froms`.
    fn other_ends(
        &mut self,
        result: NodeId,
        froms: &[Location],
        bases: &[Location],
        tos: &BTreeMap<ObjectId, Vec<Location>>,
    ) {
        let Some(object) = froms.first().map(|from| from.object) else {
            unreachable!("an object with locations");
        };
        let bases: Vec<Location> = bases
            .iter()
            .filter(|at| at.object == object)
            .copied()
            .collect();
        self.work_done += (froms.len() * bases.len()) as u64;
        let others = tos.iter().filter(|(other, _)| **other != object);
        let others: Vec<Location> = others.flat_map(|(_, list)| list).copied().collect();
        if others.is_empty() {
            return;
        }
        for (distance, stride) in limited(distances(froms, &bases)) {
            for &to in &others {
                self.add_moved(result, to, distance, stride);
            }
        }
    }
    fn add_moved(&mut self, result: NodeId, from: Location, distance: i64, stride: u64) {
        if stride > 0 && !self.is_bits(from) {
            self.fold(from.object, Fold::of_whole_object(stride));
        }
        let stride = gcd(from.stride, stride);
        for there in self.moved(from, distance) {
            self.add(result, Location { stride, ..there });
        }
    }
}
