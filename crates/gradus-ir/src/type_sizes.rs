//! Sizes, alignments and field offsets of a unit's types on the target.
//!
//! The rules are those of LLVM's `DataLayout`; `layout.rs` holds the target's figures.

use crate::{FloatKind, Layout, Type, TypeId, Unit};

impl Layout {
    /// Returns the number of bytes written by a store of `ty`. Scalable vectors count with a factor of 1.
    /// Functions, `void` and opaque types have size 0.
    pub fn store_bytes(&self, unit: &Unit, ty: TypeId) -> u64 {
        match unit.types.get(ty) {
            Type::Void | Type::Func { .. } | Type::Opaque(_) => 0,
            Type::Int(bits) => u64::from(*bits).div_ceil(8),
            Type::Float(kind) => u64::from(kind.bits()) / 8,
            Type::Ptr(space) => self.pointer_size_bytes(*space),
            Type::Vector { elem, len, .. } => {
                (self.scalar_bits(unit, *elem) * u64::from(*len)).div_ceil(8)
            }
            Type::Array { elem, len } => self.size_bytes(unit, *elem).saturating_mul(*len),
            Type::Struct { .. } => self.size_bytes(unit, ty),
        }
    }

    fn scalar_bits(&self, unit: &Unit, ty: TypeId) -> u64 {
        match unit.types.get(ty) {
            Type::Int(bits) => u64::from(*bits),
            _ => self.store_bytes(unit, ty) * 8,
        }
    }

    /// Returns the allocation size of `ty` in bytes: the distance between neighbours in an array.
    pub fn size_bytes(&self, unit: &Unit, ty: TypeId) -> u64 {
        let bytes = match unit.types.get(ty) {
            Type::Struct { fields, packed, .. } => {
                let mut end = 0;
                for &field in fields {
                    if !packed {
                        end = round_up(end, self.align_bytes(unit, field));
                    }
                    end += self.size_bytes(unit, field);
                }
                end
            }
            _ => self.store_bytes(unit, ty),
        };
        round_up(bytes, self.align_bytes(unit, ty))
    }

    /// Returns the ABI alignment of `ty` in bytes, at least 1.
    pub fn align_bytes(&self, unit: &Unit, ty: TypeId) -> u64 {
        match unit.types.get(ty) {
            Type::Void | Type::Func { .. } | Type::Opaque(_) => 1,
            Type::Int(bits) => self
                .int_align
                .iter()
                .find(|(b, _)| b >= bits)
                .or(self.int_align.last())
                .map_or(8, |(_, a)| *a),
            Type::Float(FloatKind::X86F80) => self.f80_align,
            Type::Float(kind) => u64::from(kind.bits()) / 8,
            Type::Ptr(space) => self.pointer_size_bytes(*space),
            Type::Vector { .. } => self.store_bytes(unit, ty).max(1).next_power_of_two(),
            Type::Array { elem, .. } => self.align_bytes(unit, *elem),
            Type::Struct { packed: true, .. } => 1,
            Type::Struct { fields, .. } => fields
                .iter()
                .map(|f| self.align_bytes(unit, *f))
                .max()
                .unwrap_or(1),
        }
    }

    /// Returns the offset of field or element `index` in the aggregate `ty`, in bytes.
    pub fn field_offset_bytes(&self, unit: &Unit, ty: TypeId, index: u64) -> u64 {
        match unit.types.get(ty) {
            Type::Struct { fields, packed, .. } => {
                let mut end = 0;
                for (i, &field) in fields.iter().enumerate() {
                    if !packed {
                        end = round_up(end, self.align_bytes(unit, field));
                    }
                    if i as u64 == index {
                        return end;
                    }
                    end += self.size_bytes(unit, field);
                }
                end
            }
            Type::Array { elem, .. } => self.size_bytes(unit, *elem) * index,
            Type::Vector { elem, .. } => self.scalar_bits(unit, *elem) * index / 8,
            _ => 0,
        }
    }
}

fn round_up(n: u64, to: u64) -> u64 {
    n.div_ceil(to) * to
}
