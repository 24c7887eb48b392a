//! The symbols of LLVM's intrinsics: a stem and the types it works on.

use super::MathFn;
use crate::{FloatKind, Type, TypeId, Unit};

impl MathFn {
    /// The symbol of the intrinsic `stem` of this function, for parameters of `types`.
    pub fn intrinsic_symbol(self, unit: &Unit, stem: &str, types: &[TypeId]) -> String {
        let mut name = format!("llvm.{stem}");
        let float = self.params().find('f');
        let int = self.params().find('i');
        for at in [float, int].into_iter().flatten() {
            name.push('.');
            name.push_str(&mangled(unit, types[at]));
        }
        name
    }
}

/// LLVM's short form of a type in the name of an intrinsic.
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
