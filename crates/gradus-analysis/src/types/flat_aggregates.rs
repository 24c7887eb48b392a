//! Flattened aggregates: the scalars of a first-class aggregate type, with offsets and index paths.
//!
//! Every analysis of `insertvalue`, aggregate loads and structure results works on leaves (flat scalars).
//! The pointer and the length of a slice therefore stay separate.

use gradus_ir::{Entity, Type, TypeId, Unit};

/// Maximal number of leaves of an aggregate; a larger aggregate is a single leaf.
const LEAVES_MAX: usize = 64;

/// A scalar or vector inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatScalar {
    /// Offset from the start of the value, in bytes.
    pub offset_bytes: u64,
    /// Type of the leaf: a scalar, a vector, or an aggregate too large to be split.
    pub ty: TypeId,
}

/// The leaves of every type of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlatTypes {
    by_type: Vec<Box<[FlatScalar]>>,
}

impl FlatTypes {
    /// Computes the leaves of all types of `unit`. Member types are interned before their aggregates; one
    /// pass in order of interning suffices.
    pub fn of(unit: &Unit) -> FlatTypes {
        let mut leaves = FlatTypes::default();
        for (id, ty) in unit.types.iter() {
            let list = leaves.split(unit, id, ty);
            leaves.by_type.push(list);
        }
        leaves
    }

    /// Returns true if the table has the types of `unit`, and no type was added since.
    pub(crate) fn has_all_types(&self, unit: &Unit) -> bool {
        let last = unit.types.iter().next_back();
        last.map_or(0, |(id, _)| id.index() + 1) == self.by_type.len()
    }

    /// Returns the leaves of a type, in order of their offsets.
    pub fn get(&self, ty: TypeId) -> &[FlatScalar] {
        self.by_type.get(ty.index()).map_or(&[], |list| list)
    }

    /// Returns the leaves of the member at `path` of a value of type `ty`, as a range of [`FlatTypes::get`].
    /// For an unsplit aggregate the range is the whole value.
    pub fn member(&self, unit: &Unit, ty: TypeId, path: &[u32]) -> std::ops::Range<usize> {
        let (mut ty, mut start) = (ty, 0);
        for &index in path {
            if self.is_whole(ty) {
                return start..start + 1;
            }
            for earlier in 0..index {
                let member = unit.types.field(ty, earlier);
                start += member.map_or(0, |m| self.get(m).len());
            }
            match unit.types.field(ty, index) {
                Some(member) => ty = member,
                None => return start..start,
            }
        }
        start..start + self.get(ty).len()
    }

    fn is_whole(&self, ty: TypeId) -> bool {
        matches!(self.get(ty), [leaf] if leaf.ty == ty)
    }

    fn split(&self, unit: &Unit, id: TypeId, ty: &Type) -> Box<[FlatScalar]> {
        let whole = || -> Box<[FlatScalar]> {
            Box::new([FlatScalar {
                offset_bytes: 0,
                ty: id,
            }])
        };
        let members: Vec<TypeId> = match ty {
            Type::Void | Type::Func { .. } => return Box::new([]),
            Type::Struct { fields, .. } => fields.clone(),
            Type::Array { elem, len } => {
                if len.saturating_mul(self.get(*elem).len() as u64) > LEAVES_MAX as u64 {
                    return whole();
                }
                vec![*elem; *len as usize]
            }
            _ => return whole(),
        };
        let mut list = Vec::new();
        for (index, &member) in members.iter().enumerate() {
            let start = unit.layout.field_offset_bytes(unit, id, index as u64);
            list.extend(self.get(member).iter().map(|leaf| FlatScalar {
                offset_bytes: start + leaf.offset_bytes,
                ty: leaf.ty,
            }));
            if list.len() > LEAVES_MAX {
                return whole();
            }
        }
        list.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_leaves_of_its_member() {
        let mut unit = Unit::default();
        let (double, ptr, word) = (unit.types.f64(), unit.types.ptr(), unit.types.int(32));
        let pair = unit.types.array(double, 2);
        let inner = unit.types.tuple(vec![word, pair]);
        let outer = unit.types.tuple(vec![ptr, inner, double]);
        let large = unit.types.array(double, 1000);
        let leaves = FlatTypes::of(&unit);
        let offsets: Vec<u64> = leaves.get(outer).iter().map(|l| l.offset_bytes).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32]);
        assert_eq!(leaves.member(&unit, outer, &[1]), 1..4);
        assert_eq!(leaves.member(&unit, outer, &[1, 1, 1]), 3..4);
        assert_eq!(leaves.member(&unit, outer, &[2]), 4..5);
        assert_eq!(leaves.get(large).len(), 1);
        assert_eq!(leaves.member(&unit, large, &[7]), 0..1);
    }
}
