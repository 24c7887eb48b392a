//! Symbols of overloaded LLVM intrinsics: a stem and mangled overload types of a unit.

use crate::externals::{MathFn, ReduceFn, vector};
use crate::{FloatKind, Type, TypeId, Unit};

impl MathFn {
    /// Returns the symbol of the intrinsic `stem` of this function, for parameters of `types` and a result of
    /// type `result`.
    pub fn intrinsic_symbol(
        self,
        unit: &Unit,
        stem: &str,
        types: &[TypeId],
        result: TypeId,
    ) -> String {
        use MathFn::*;
        let of = |kind| self.params().find(kind).map(|at| types[at]);
        let named = match self {
            Lrint | Llrint | Lround | Llround | FptosiSat | FptouiSat => [Some(result), of('f')],
            IsClass => [of('f'), None],
            _ => [of('f'), of('i')],
        };
        let mangled = named.iter().flatten().map(|ty| mangled(unit, *ty));
        mangled.fold(format!("llvm.{stem}"), |name, ty| name + "." + &ty)
    }
}

impl ReduceFn {
    /// Returns the symbol of the sum reduction of a vector of floats.
    pub fn sum_symbol(unit: &Unit, vector: TypeId) -> String {
        format!("{}.{}", vector::SUM, mangled(unit, vector))
    }
}

/// Returns LLVM's mangled form of a type in an intrinsic's name.
fn mangled(unit: &Unit, ty: TypeId) -> String {
    match unit.types.get(ty) {
        Type::Float(FloatKind::X86F80) => "f80".into(),
        Type::Float(FloatKind::BF16) => "bf16".into(),
        Type::Float(FloatKind::PpcF128) => "ppcf128".into(),
        Type::Float(kind) => format!("f{}", kind.bits()),
        Type::Int(bits) => format!("i{bits}"),
        Type::Vector { elem, len, .. } => format!("v{len}{}", mangled(unit, *elem)),
        _ => String::new(),
    }
}
