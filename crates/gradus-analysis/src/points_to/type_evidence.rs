//! Type evidence for memory cells, collected while the alias sets are built: accesses, TBAA tags and
//! declared types. Declared types count only without evidence from accesses.

use crate::points_to::alias_set_solver::Solver;
use crate::points_to::union_find::NodeOffset;
use crate::types::lattice::CellType;
use gradus_ir::{AttrValue, Body, FuncId, TbaaTag, Type, TypeId};

impl Solver<'_> {
    /// Records the declared type of the memory at `start`. Character arrays may hold any type and imply no
    /// stride (rustc declares all stack memory as bytes).
    pub fn declare(&mut self, start: NodeOffset, ty: TypeId) {
        let (mut ty, mut count) = (ty, 1u64);
        while let Type::Array { elem, len } = *self.unit.types.get(ty) {
            (ty, count) = (elem, count.saturating_mul(len));
        }
        if count > 1 && self.unit.types.int_bits(ty) != Some(8) {
            self.classes
                .add_stride(start, self.unit.layout.size_bytes(self.unit, ty) as i64);
        }
        for leaf in self.leaves.get(ty).to_vec() {
            let seen = match self.access_evidence(leaf.ty) {
                CellType::NOTHING if self.unit.types.int_bits(leaf.ty) > Some(8) => {
                    CellType::INTEGER
                }
                seen => seen,
            };
            let seen = seen.declared();
            self.note_elements(start.plus(leaf.offset_bytes as i64), leaf.ty, seen);
        }
    }
    /// Returns the evidence from an access of this scalar or vector type.
    pub fn access_evidence(&self, ty: TypeId) -> CellType {
        match self.unit.types.get(self.unit.types.scalar(ty)) {
            Type::Float(kind) => CellType::float(*kind),
            Type::Ptr(_) => CellType::POINTER,
            _ => CellType::NOTHING,
        }
    }
    /// Records `seen` at every element of a scalar or vector of type `ty` at `place`.
    pub fn note_elements(&mut self, place: NodeOffset, ty: TypeId, seen: CellType) {
        if seen.is_nothing() {
            return;
        }
        let (elem, count) = match *self.unit.types.get(ty) {
            Type::Vector { elem, len, .. } => (elem, i64::from(len)),
            _ => (ty, 1),
        };
        let bytes = self.unit.layout.store_bytes(self.unit, elem) as i64;
        for k in 0..count {
            self.note(place.plus(k * bytes), seen);
        }
    }
    /// Records `seen` for the cell at `place`.
    pub fn note(&mut self, place: NodeOffset, seen: CellType) {
        self.classes.cell(place).observed.add(&seen);
        self.evidence.push((place, seen));
    }
    /// Records the pointee types of a function's parameters from `byval` and `sret` attributes.
    pub fn declare_params(&mut self, func: FuncId, body: &Body) {
        let attrs = self.unit.attrs(self.unit.functions[func].attrs);
        for (index, &param) in body.params().iter().enumerate() {
            let named = |name| match attrs.param(index, name) {
                Some(AttrValue::Type(ty)) => Some(*ty),
                _ => None,
            };
            let position = self.slots[&func].range(param).start;
            if let Some(ty) = named("byval").or_else(|| named("sret"))
                && let Some(start) = self.slot(func, position)
            {
                self.declare(start, ty);
            }
        }
    }
    /// Records the declared type of the memory at `start` if an address computation names a structure.
    pub fn note_struct_source(&mut self, start: NodeOffset, source: TypeId) {
        let is_struct = matches!(self.unit.types.get(source), Type::Struct { .. });
        if is_struct && self.sources.insert((start, source)) {
            self.declare(start, source);
        }
    }
    /// Records the members of the structure in the TBAA tag of an access.
    pub fn note_tbaa_base(&mut self, place: NodeOffset, tag: TbaaTag) {
        let start = place.plus(-(tag.offset_bytes as i64));
        if tag.base == tag.access || !self.bases.insert((start, tag.base)) {
            return;
        }
        for (offset, seen) in crate::types::lattice::tbaa_members(self.unit, tag.base) {
            self.note(start.plus(offset as i64), seen.declared());
        }
    }
}
