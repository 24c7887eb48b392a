//! Numbers of locations: sets of locations are sets of small integers, with fast union and difference.

use crate::points_to::inclusion::objects::{Location, ObjectId, Objects};
use crate::points_to::inclusion::solver::OFFSETS_MAX;
use roaring::RoaringBitmap;
use std::collections::{BTreeSet, HashMap};

/// The numbers of the locations of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Locations {
    list: Vec<Location>,
    numbers: HashMap<Location, u32>,
    of_object: HashMap<ObjectId, RoaringBitmap>,
    /// Objects with more than [`OFFSETS_MAX`] locations.
    pub crowded: BTreeSet<ObjectId>,
    /// The locations of bits of addresses.
    pub bits: RoaringBitmap,
    /// Locations that sets no longer receive: the object has been normalised since.
    pub stale: RoaringBitmap,
}

impl Locations {
    /// Returns the number of a location.
    pub fn number(&mut self, at: Location, is_bits: bool) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(at).or_insert(next);
        if number == next {
            self.list.push(at);
            let numbers = self.of_object.entry(at.object).or_default();
            numbers.insert(number);
            if numbers.len() > OFFSETS_MAX as u64 {
                self.crowded.insert(at.object);
            }
            if is_bits {
                self.bits.insert(number);
            }
        }
        number
    }
    /// Returns the locations of a set, in the order of objects and offsets.
    pub fn list(&self, set: &RoaringBitmap) -> Vec<Location> {
        let mut list: Vec<Location> = set.iter().map(|at| self.list[at as usize]).collect();
        list.sort_unstable();
        list
    }
    /// Returns the number of locations of an object in a set.
    pub fn count(&self, set: &RoaringBitmap, object: ObjectId) -> usize {
        let of_object = self.of_object.get(&object);
        of_object.map_or(0, |numbers| numbers.intersection_len(set) as usize)
    }
    /// Returns the locations of an object in a set.
    pub fn of_object(&self, set: &RoaringBitmap, object: ObjectId) -> Vec<Location> {
        let of_object = self.of_object.get(&object);
        of_object.map_or(Vec::new(), |numbers| self.list(&(numbers & set)))
    }
    /// Marks the locations of an object that normalisation moves.
    pub fn normalize(&mut self, object: ObjectId, objects: &Objects) {
        for number in self.of_object.get(&object).into_iter().flatten() {
            let at = self.list[number as usize];
            if objects.location(at) != at {
                self.stale.insert(number);
            }
        }
    }
    /// Returns true if a set contains bits of addresses.
    pub fn has_bits(&self, set: &RoaringBitmap) -> bool {
        !self.bits.is_disjoint(set)
    }
}
