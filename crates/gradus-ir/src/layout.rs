//! Data layout: sizes, alignments and offsets of types on the target, from LLVM's data-layout string.

use crate::{Body, ConstKind, Definition, FloatKind, Op, OpKind, Type, TypeId, Unit, Value};

/// The target's data layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// True if the target is little-endian.
    pub little_endian: bool,
    /// The size of a pointer of address space 0 in bytes.
    pub pointer_bytes: u64,
    /// Pointer sizes of other address spaces that differ from address space 0: (space, bytes).
    pub other_pointers: Vec<(u32, u64)>,
    int_align: Vec<(u32, u64)>,
    f80_align: u64,
    text: String,
}

/// An address as base + Σ index·stride + offset, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The base address.
    pub base: Value,
    /// The constant offset in bytes.
    pub offset: i64,
    /// Pairs of index (sign-extended to the pointer's width) and stride in bytes.
    pub terms: Vec<(Value, i64)>,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::parse(
            "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
        )
    }
}

impl Layout {
    /// Parses LLVM's data-layout string. Components without sizes or alignments are ignored, but remain in
    /// [`Layout::text()`].
    pub fn parse(text: &str) -> Self {
        let mut layout = Layout {
            little_endian: true,
            pointer_bytes: 8,
            other_pointers: Vec::new(),
            int_align: vec![(1, 1), (8, 1), (16, 2), (32, 4), (64, 4)],
            f80_align: 16,
            text: text.to_string(),
        };
        for part in text.split('-') {
            layout.parse_component(part);
        }
        layout.int_align.sort_unstable();
        layout
    }

    fn parse_component(&mut self, part: &str) {
        let mut fields = part.split(':');
        let head = fields.next().unwrap_or_default();
        let numbers: Vec<u64> = fields.filter_map(|f| f.parse().ok()).collect();
        match (head, numbers.as_slice()) {
            ("e", _) => self.little_endian = true,
            ("E", _) => self.little_endian = false,
            ("p" | "p0", [bits, ..]) => self.pointer_bytes = bits / 8,
            ("f80", [abi, ..]) => self.f80_align = abi / 8,
            _ => {
                let rest = head.get(1..).and_then(|n| n.parse::<u32>().ok());
                match (head.as_bytes().first(), rest, numbers.as_slice()) {
                    (Some(b'p'), Some(space), [bits, ..]) => {
                        self.other_pointers.push((space, bits / 8));
                    }
                    (Some(b'i'), Some(bits), [abi, ..]) => {
                        self.int_align.retain(|(b, _)| *b != bits);
                        self.int_align.push((bits, abi / 8));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the original data-layout string.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the size of a pointer of address space `space`, in bytes.
    pub fn pointer_size_bytes(&self, space: u32) -> u64 {
        self.other_pointers
            .iter()
            .find(|(s, _)| *s == space)
            .map_or(self.pointer_bytes, |(_, bytes)| *bytes)
    }

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

    /// Decomposes an [`OpKind::Addr`] op into base + Σ index·stride + offset; `None` for other ops and for
    /// vectors of addresses.
    pub fn address(&self, unit: &Unit, body: &Body, op: Op) -> Option<Address> {
        let OpKind::Addr { source } = body.ops[op].kind else {
            return None;
        };
        let mut operands = body.operands(op);
        let base = operands.next()?;
        if matches!(
            unit.types.get(body.ty(body.result(op))),
            Type::Vector { .. }
        ) {
            return None;
        }
        let mut address = Address {
            base,
            offset: 0,
            terms: Vec::new(),
        };
        let mut ty = source;
        for (depth, index) in operands.enumerate() {
            let constant = int_constant(unit, body, index);
            let stride = if depth == 0 {
                self.size_bytes(unit, ty)
            } else if let Type::Struct { fields, .. } = unit.types.get(ty) {
                let field = usize::try_from(constant?).ok()?;
                let offset = self.field_offset_bytes(unit, ty, field as u64);
                address.offset = address.offset.wrapping_add(offset as i64);
                ty = *fields.get(field)?;
                continue;
            } else {
                ty = unit
                    .types
                    .field(ty, 0)
                    .or_else(|| match unit.types.get(ty) {
                        Type::Array { elem, .. } => Some(*elem),
                        _ => None,
                    })?;
                self.size_bytes(unit, ty)
            };
            match constant {
                Some(n) => {
                    address.offset = address.offset.wrapping_add(n.wrapping_mul(stride as i64));
                }
                None if stride == 0 => {}
                None => address.terms.push((index, stride as i64)),
            }
        }
        Some(address)
    }
}

/// Returns the value of an integer constant of at most 64 bits, sign-extended.
pub(crate) fn int_constant(unit: &Unit, body: &Body, value: Value) -> Option<i64> {
    let Definition::Const(id) = body.values[value].def else {
        return None;
    };
    let constant = unit.consts.get(id);
    let bits = unit.types.int_bits(constant.ty)?;
    match constant.kind {
        ConstKind::Int(n) if (1..=64).contains(&bits) => {
            Some(((n as u64) << (64 - bits)) as i64 >> (64 - bits))
        }
        ConstKind::Zero => Some(0),
        _ => None,
    }
}

fn round_up(n: u64, to: u64) -> u64 {
    n.div_ceil(to) * to
}
