//! Numbers of locations: sets of locations are sets of small integers, with fast union and difference.

use crate::points_to::inclusion::location_set::LocationSet;
use crate::points_to::inclusion::objects::{Location, ObjectId, Objects};
use crate::points_to::inclusion::solver::OFFSETS_MAX;
use std::collections::{BTreeSet, HashMap};

/// The numbers of the locations of a round.
#[derive(Clone, Debug, Default)]
pub(super) struct Locations {
    list: Vec<Location>,
    numbers: HashMap<Location, u32>,
    of_object: HashMap<ObjectId, LocationSet>,
    /// Objects with more than [`OFFSETS_MAX`] locations.
    crowded: BTreeSet<ObjectId>,
    /// The locations of these objects.
    in_crowded: LocationSet,
    /// The locations of bits of addresses.
    pub bits: LocationSet,
    /// Locations that sets no longer receive: the object has been normalised since.
    pub stale: LocationSet,
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
            if numbers.len() as usize > OFFSETS_MAX {
                if self.crowded.insert(at.object) {
                    self.in_crowded.extend(numbers);
                }
                self.in_crowded.insert(number);
            }
            if is_bits {
                self.bits.insert(number);
            }
        }
        number
    }
    /// Returns the objects with more than [`OFFSETS_MAX`] locations that have a location in a set.
    pub fn crowded_in(&self, set: &LocationSet) -> Vec<ObjectId> {
        if self.in_crowded.is_disjoint(set) {
            return Vec::new();
        }
        let crowded = self.crowded.iter().copied();
        let meets = |object: &ObjectId| !self.of_object[object].is_disjoint(set);
        crowded.filter(meets).collect()
    }
    /// Returns the locations of a set, in the order of objects and offsets.
    pub fn list(&self, set: &LocationSet) -> Vec<Location> {
        let mut list: Vec<Location> = set.iter().map(|at| self.list[at as usize]).collect();
        list.sort_unstable();
        list
    }
    /// Returns the number of locations of an object in a set.
    pub fn count(&self, set: &LocationSet, object: ObjectId) -> usize {
        let of_object = self.of_object.get(&object);
        of_object.map_or(0, |numbers| numbers.common_len(set) as usize)
    }
    /// Returns the locations of an object in a set.
    pub fn of_object(&self, set: &LocationSet, object: ObjectId) -> Vec<Location> {
        let of_object = self.of_object.get(&object);
        of_object.map_or(Vec::new(), |numbers| self.list(&numbers.common(set)))
    }
    /// Marks the locations of an object that normalisation moves.
    pub fn normalize(&mut self, object: ObjectId, objects: &Objects) {
        let numbers = self.of_object.get(&object).into_iter();
        for number in numbers.flat_map(LocationSet::iter) {
            let at = self.list[number as usize];
            if objects.location(at) != at {
                self.stale.insert(number);
            }
        }
    }
    /// Returns true if a set contains bits of addresses.
    pub fn has_bits(&self, set: &LocationSet) -> bool {
        !self.bits.is_disjoint(set)
    }
}
