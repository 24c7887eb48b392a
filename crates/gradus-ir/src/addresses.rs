//! Addresses of [`OpKind::Addr`] ops as base + Σ index·stride + offset.
//!
//! Alias analyses, passes and lowering read addresses in this form.

use crate::{Body, CastOp, Layout, Op, OpKind, Type, Unit, Value};

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

impl Body {
    /// Returns the value from which [`OpKind::Addr`] ops compute an address.
    pub fn address_base(&self, mut address: Value) -> Value {
        while let Some(op) = self.def_op(address)
            && matches!(self.kind(op), OpKind::Addr { .. })
        {
            address = self.operand(op, 0);
        }
        address
    }

    /// Returns the operand of the cast `cast` that defines a value.
    pub fn cast_operand(&self, value: Value, cast: CastOp) -> Option<Value> {
        let op = self.def_op(value)?;
        (*self.kind(op) == OpKind::Cast(cast)).then(|| self.operand(op, 0))
    }
}

impl Layout {
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
            let constant = body.as_int(unit, index);
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
