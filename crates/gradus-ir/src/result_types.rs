//! Result types implied by the operand types.
//!
//! The text form omits implied types, and the verifier checks ops against the implied types.

use crate::op_table::ResultType;
use crate::{OpKind, Type, TypeId, Unit};

/// A result type implied by operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Implied {
    /// An interned type.
    Interned(TypeId),
    /// A type that may not be interned yet.
    NotInterned(Type),
    /// The operand types do not fit the op.
    Mismatch,
}

impl Implied {
    /// Returns whether the implied type is `ty`.
    pub fn is(&self, unit: &Unit, ty: TypeId) -> bool {
        match self {
            Implied::Interned(id) => *id == ty,
            Implied::NotInterned(made) => unit.types.get(ty) == made,
            Implied::Mismatch => false,
        }
    }
    /// Interns the type and returns the id; `None` if the operands do not fit the op.
    pub fn intern(self, unit: &mut Unit) -> Option<TypeId> {
        match self {
            Implied::Interned(id) => Some(id),
            Implied::NotInterned(made) => Some(unit.types.intern(made)),
            Implied::Mismatch => None,
        }
    }
}

/// Returns the result types of `kind` for the given operand types; `None` if operands do not determine the
/// result types. `i1` must be interned in the unit.
pub(crate) fn implied(unit: &Unit, kind: &OpKind, operands: &[TypeId]) -> Option<Vec<Implied>> {
    use OpKind::*;
    let operand = |i: usize| {
        operands
            .get(i)
            .map_or(Implied::Mismatch, |ty| Implied::Interned(*ty))
    };
    let one = |ty: Implied| Some(vec![ty]);
    let all = |from: usize| {
        let rest = operands.get(from..).unwrap_or_default();
        Some(rest.iter().map(|ty| Implied::Interned(*ty)).collect())
    };
    match kind.row().result_type {
        ResultType::Nothing => return Some(Vec::new()),
        ResultType::Operand(i) => return one(operand(i)),
        ResultType::Stated => return None,
        ResultType::Computed => {}
    }
    match kind {
        ICmp(_) | FCmp(_) => one(truth(unit, operands)),
        ExtractElement => one(element(unit, operands)),
        Shuffle(mask) => one(shuffled(unit, operands, mask.len())),
        ExtractValue(path) => one(member(unit, operands, path)),
        Alloca(_) => one(Implied::NotInterned(Type::Ptr(0))),
        Addr { .. } => one(address(unit, operands)),
        CmpXchg { .. } => one(exchanged(unit, operands)),
        Call(info) => Some(match unit.result_type(info.signature) {
            Some(ty) if unit.types.is_void(ty) => Vec::new(),
            Some(ty) => vec![Implied::Interned(ty)],
            None => vec![Implied::Mismatch],
        }),
        For { .. } => all(1),
        ParFor { dims, .. } => all(*dims as usize),
        _ => unreachable!("the row of `{}` states the result types", kind.mnemonic()),
    }
}

fn truth(unit: &Unit, operands: &[TypeId]) -> Implied {
    let Some(&ty) = operands.first() else {
        return Implied::Mismatch;
    };
    match (unit.types.get(ty), unit.types.find(&Type::Int(1))) {
        (Type::Vector { len, scalable, .. }, Some(bit)) => Implied::NotInterned(Type::Vector {
            elem: bit,
            len: *len,
            scalable: *scalable,
        }),
        (Type::Vector { .. }, None) => Implied::Mismatch,
        _ => Implied::NotInterned(Type::Int(1)),
    }
}

fn element(unit: &Unit, operands: &[TypeId]) -> Implied {
    match operands.first().map(|ty| unit.types.get(*ty)) {
        Some(Type::Vector { elem, .. }) => Implied::Interned(*elem),
        _ => Implied::Mismatch,
    }
}

fn shuffled(unit: &Unit, operands: &[TypeId], lanes: usize) -> Implied {
    match operands.first().map(|ty| unit.types.get(*ty)) {
        Some(Type::Vector { elem, scalable, .. }) => Implied::NotInterned(Type::Vector {
            elem: *elem,
            len: lanes as u32,
            scalable: *scalable,
        }),
        _ => Implied::Mismatch,
    }
}

fn member(unit: &Unit, operands: &[TypeId], path: &[u32]) -> Implied {
    let inside = |ty: TypeId, index: &u32| match unit.types.get(ty) {
        Type::Struct { .. } | Type::Array { .. } => unit.types.field(ty, *index),
        _ => None,
    };
    let ty = operands.first().copied();
    match path.iter().try_fold(ty, |ty, i| Some(inside(ty?, i))) {
        Some(Some(ty)) => Implied::Interned(ty),
        _ => Implied::Mismatch,
    }
}

/// Returns the type of an address: a vector of addresses if the base or an index is a vector.
fn address(unit: &Unit, operands: &[TypeId]) -> Implied {
    let Some(&base) = operands.first() else {
        return Implied::Mismatch;
    };
    if matches!(unit.types.get(base), Type::Vector { .. }) {
        return Implied::Interned(base);
    }
    let wide = operands[1..]
        .iter()
        .find_map(|ty| match unit.types.get(*ty) {
            Type::Vector { len, scalable, .. } => Some((*len, *scalable)),
            _ => None,
        });
    match wide {
        Some((len, scalable)) => Implied::NotInterned(Type::Vector {
            elem: base,
            len,
            scalable,
        }),
        None => Implied::Interned(base),
    }
}

fn exchanged(unit: &Unit, operands: &[TypeId]) -> Implied {
    match (operands.get(1), unit.types.find(&Type::Int(1))) {
        (Some(&ty), Some(bit)) => Implied::NotInterned(Type::Struct {
            name: None,
            fields: vec![ty, bit],
            packed: false,
        }),
        _ => Implied::Mismatch,
    }
}
