//! Layouts of objects: the array members that bound the movement of a pointer.
//!
//! A pointer that moves by an unknown multiple of a stride stays in the array member in which it starts, if the stride
//! is the size of the elements, or unknown in Fortran (one byte: a descriptor has the stride). The members are known from declared types, from the structures that address
//! computations name, and from the structures in TBAA tags. TBAA names neither lengths nor elements: clang gives an array
//! member the type of bytes. A member of bytes that is followed by a gap of several elements is an array.
//!
//! The start of a structure is also the start of its first member. A pointer there may walk over the whole structure;
//! such a movement has no bound.

use crate::points_to::inclusion::objects::ObjectId;
use crate::points_to::inclusion::solver::Solver;
use crate::types::lattice::tbaa_type;
use gradus_ir::{TbaaTypeId, Type, TypeId, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Maximal number of members of a structure that are inspected.
const MEMBERS_MAX: usize = 1024;

/// A request for a fold that depends on the layout of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FoldRequest {
    pub object: ObjectId,
    /// Offset of the pointer that moves.
    pub offset: i64,
    /// Constant part of the index, in bytes.
    pub index: i64,
    pub stride: u64,
    pub forward: bool,
    /// True if the language bounds the index by the array.
    pub in_fortran: bool,
}

/// Start and end of an array member in bytes; [`i64::MAX`] is the end of a flexible array member.
type Extent = (i64, i64);

/// The known members of one object.
#[derive(Clone, Debug, Default)]
struct Members {
    /// Array members of declared structures, with the sizes of the elements: of the array and of nested arrays.
    arrays: BTreeMap<Extent, BTreeSet<u64>>,
    /// Members by TBAA: offset, and true if the member has the type of bytes.
    scalars: BTreeMap<i64, bool>,
    /// Starts of structures.
    structures: BTreeSet<i64>,
    /// True if the object has more members than were inspected.
    is_partial: bool,
}

/// The known members of the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layouts {
    members: BTreeMap<ObjectId, Members>,
}

impl Layouts {
    /// Collects the layouts of the objects of a round.
    pub fn of(solver: &Solver<'_>) -> Layouts {
        let mut layouts = Layouts::default();
        let mut seen = BTreeSet::new();
        for (object, data) in solver.objects.iter() {
            seen.extend(data.declared.iter().map(|&(at, ty)| (object, at, ty)));
        }
        for &(node, ty) in &solver.program.evidence.sources {
            let places = solver.set(node).into_iter();
            seen.extend(places.map(|place| (place.object, place.offset, ty)));
        }
        for (object, at, ty) in seen {
            let members = layouts.members.entry(object).or_default();
            members.declare(solver.unit, at, ty);
        }
        let mut seen = BTreeSet::new();
        for &(node, at, base) in &solver.program.evidence.tbaa_bases {
            let places = solver.set(node).into_iter();
            seen.extend(places.map(|place| (place.object, place.offset.wrapping_add(at), base)));
        }
        for (object, at, base) in seen {
            let members = layouts.members.entry(object).or_default();
            members.add_tbaa(solver.unit, at, base);
        }
        layouts
    }
    /// Returns the array member in which the pointer of a request moves.
    ///
    /// Axiom: a pointer into an array member moves within this member, except at its edges. At the last element it may
    /// be one element before the next array (`v - 1` with indices from 1), at the first element one element behind the
    /// previous array (`end[-i]`); both arrays then count. In Fortran, whose indices are bounded, a pointer to a member
    /// beside an array moves in this array.
    pub fn array_around(&self, request: FoldRequest) -> Option<Extent> {
        let members = self.members.get(&request.object)?;
        if members.is_partial || members.structures.contains(&request.offset) {
            return None;
        }
        let arrays = members.arrays(request);
        let offset = request.offset;
        let next = offset.checked_add_unsigned(request.stride)?;
        let around = arrays
            .iter()
            .find(|(first, end)| (*first..*end).contains(&offset));
        let Some(&(mut first, mut end)) = around else {
            if !request.in_fortran {
                return None;
            }
            // Beside an array, such a pointer begins one element before the array (`v - 1`), or ends the array.
            let before = arrays.iter().find(|array| array.1 == offset);
            let behind = arrays.iter().find(|array| array.0 == next);
            let bounds = (
                before.map_or(offset, |array| array.0),
                behind.map_or(next, |array| array.1),
            );
            return (before.is_some() || behind.is_some()).then_some(bounds);
        };
        // An index may count several elements at once: the last stride may hold several last elements.
        if let Some(behind) = arrays.iter().find(|array| next >= end && array.0 == end) {
            end = behind.1;
        }
        let is_start = offset == first && !request.forward;
        if let Some(before) = arrays.iter().find(|array| is_start && array.1 == first) {
            first = before.0;
        }
        Some((first, end))
    }
}

impl Members {
    /// Adds the array members of a type at `start`.
    fn declare(&mut self, unit: &Unit, start: i64, ty: TypeId) {
        let mut work = vec![(start, ty)];
        let mut count = 0;
        while let Some((at, ty)) = work.pop() {
            count += 1;
            let Type::Struct { fields, .. } = unit.types.get(ty) else {
                continue;
            };
            if count > MEMBERS_MAX {
                self.is_partial = true;
                return;
            }
            self.structures.insert(at);
            for (index, &field) in fields.iter().enumerate() {
                let offset = unit.layout.field_offset_bytes(unit, ty, index as u64);
                let first = at.wrapping_add(offset as i64);
                match unit.types.get(field) {
                    Type::Array { len, .. } if *len > 1 || index + 1 == fields.len() => {
                        let size = unit.layout.size_bytes(unit, field) as i64;
                        let end = if *len > 1 {
                            first.wrapping_add(size)
                        } else {
                            i64::MAX
                        };
                        let sizes = self.arrays.entry((first, end)).or_default();
                        sizes.extend(element_sizes(unit, field));
                    }
                    _ => work.push((first, field)),
                }
            }
        }
    }
    /// Adds the members of a structure in a TBAA tag.
    fn add_tbaa(&mut self, unit: &Unit, start: i64, base: TbaaTypeId) {
        let mut work = vec![(start, base)];
        let mut count = 0;
        while let Some((at, ty)) = work.pop() {
            count += 1;
            if count > MEMBERS_MAX {
                self.is_partial = true;
                return;
            }
            let members = &unit.tbaa_types[ty].members;
            // A scalar has its parent as only member.
            if matches!(members.as_slice(), [] | [(0, _)]) && ty != base {
                *self.scalars.entry(at).or_insert(true) &= tbaa_type(unit, ty).is_nothing();
                continue;
            }
            self.structures.insert(at);
            work.extend(
                members
                    .iter()
                    .map(|(offset, member)| (at.wrapping_add(*offset as i64), *member)),
            );
        }
    }
    /// Returns the array members with elements of `stride` bytes, disjoint and ascending. An array of arrays is one
    /// member, because a program may index an inner array beyond its end.
    fn arrays(&self, request: FoldRequest) -> Vec<Extent> {
        let stride = request.stride;
        // Descriptors have strides that only the run knows.
        let is_unknown = request.in_fortran && stride == 1;
        let declared = self
            .arrays
            .iter()
            .filter(|(_, sizes)| is_unknown || sizes.contains(&stride));
        let mut list: Vec<Extent> = declared.map(|(extent, _)| *extent).collect();
        let starts: BTreeSet<i64> = self
            .scalars
            .keys()
            .chain(&self.structures)
            .copied()
            .collect();
        let step = i64::try_from(stride).unwrap_or(i64::MAX);
        for (&at, &is_bytes) in &self.scalars {
            if !is_bytes || stride == 1 || self.structures.contains(&at) {
                continue;
            }
            match starts.range(at.saturating_add(1)..).next() {
                Some(next) => {
                    let length = next.saturating_sub(at);
                    if length >= step.saturating_mul(2) && length % step == 0 {
                        list.push((at, *next));
                    }
                }
                // The last member may be a flexible array, if the pointer moves forward from its start.
                None if request.forward && request.offset == at => list.push((at, i64::MAX)),
                None => {}
            }
        }
        list.sort_unstable();
        let mut merged: Vec<Extent> = Vec::new();
        for (first, end) in list {
            match merged.last_mut() {
                Some(last) if first < last.1 => last.1 = last.1.max(end),
                _ => merged.push((first, end)),
            }
        }
        merged
    }
}

/// Returns the sizes of the elements of an array and of the arrays in it.
fn element_sizes(unit: &Unit, array: TypeId) -> Vec<u64> {
    let (mut ty, mut sizes) = (array, Vec::new());
    while let Type::Array { elem, .. } = *unit.types.get(ty) {
        sizes.push(unit.layout.size_bytes(unit, elem));
        ty = elem;
    }
    sizes
}
