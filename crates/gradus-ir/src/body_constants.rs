//! Constants of a body: creates the value of an interned constant, and reads integer constants.
//!
//! `body.rs` is below the unit and knows ids of constants only; this file looks the ids up in the unit.

use crate::{Body, ConstId, ConstKind, Definition, Unit, Value};

impl Body {
    /// Returns the value of constant `id` in this body, created on first use.
    pub fn constant(&mut self, unit: &Unit, id: ConstId) -> Value {
        self.typed_constant(id, unit.consts.get(id).ty)
    }

    /// Returns the value of an integer constant of at most 64 bits, sign-extended.
    pub fn as_int(&self, unit: &Unit, value: Value) -> Option<i64> {
        let Definition::Const(id) = self.values[value].def else {
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
}
