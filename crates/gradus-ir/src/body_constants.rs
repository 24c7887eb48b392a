//! Constants of a body: creates the value of an interned constant, and reads constants.
//!
//! `body.rs` is below the unit and knows ids of constants only; this file looks the ids up in the unit.

use crate::{Body, ConstId, ConstKind, Definition, FuncId, Unit, Value};

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

    /// Returns the kind of a constant; `None` for results and parameters.
    pub fn const_kind<'u>(&self, unit: &'u Unit, value: Value) -> Option<&'u ConstKind> {
        Some(&unit.constant(self.as_const(value)?).kind)
    }

    /// Returns the function whose address a value is.
    pub fn as_function(&self, unit: &Unit, value: Value) -> Option<FuncId> {
        match self.const_kind(unit, value)? {
            ConstKind::Func(func) => Some(*func),
            _ => None,
        }
    }

    /// Returns whether a value is the null pointer, or another zero constant of [`ConstKind::Zero`].
    pub fn is_null(&self, unit: &Unit, value: Value) -> bool {
        self.const_kind(unit, value) == Some(&ConstKind::Zero)
    }

    /// Returns whether a value is the constant poison.
    pub fn is_poison(&self, unit: &Unit, value: Value) -> bool {
        self.const_kind(unit, value) == Some(&ConstKind::Poison)
    }

    /// Returns whether a value is the constant undef or poison.
    pub fn is_undef_or_poison(&self, unit: &Unit, value: Value) -> bool {
        let kind = self.const_kind(unit, value);
        matches!(kind, Some(ConstKind::Undef | ConstKind::Poison))
    }
}
