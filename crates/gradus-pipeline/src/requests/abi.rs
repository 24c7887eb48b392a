//! The C ABI of values: members with offsets, and the return registers of structures.
//!
//! The rules are the System V ABI of x86-64 (§3.2.3) for structures of floats, integers and pointers. Up to
//! 16 bytes are returned in registers, by eightbytes, integers and floats in separate classes. Larger
//! structures are returned in memory provided by the caller.

use gradus_ir::{Code, Diagnostic, FloatKind, Type, TypeId, Unit};

/// Returns the scalars of a type with offsets in bytes, in order.
pub(crate) fn leaves(unit: &Unit, ty: TypeId) -> Vec<(u64, TypeId)> {
    let mut found = Vec::new();
    let mut pending = vec![(0, ty)];
    while let Some((at, ty)) = pending.pop() {
        let members: Vec<(u64, TypeId)> = match unit.types.get(ty) {
            Type::Struct { fields, .. } => {
                let place = |(i, field): (usize, &TypeId)| {
                    let offset = unit.layout.field_offset_bytes(unit, ty, i as u64);
                    (at + offset, *field)
                };
                fields.iter().enumerate().map(place).collect()
            }
            Type::Array { elem, len } => {
                let size = unit.layout.size_bytes(unit, *elem);
                (0..*len).map(|i| (at + i * size, *elem)).collect()
            }
            Type::Vector { elem, len, .. } => {
                let size = unit.layout.store_bytes(unit, *elem);
                (0..u64::from(*len))
                    .map(|i| (at + i * size, *elem))
                    .collect()
            }
            _ => {
                found.push((at, ty));
                continue;
            }
        };
        pending.extend(members.into_iter().rev());
    }
    found
}

/// The way a structure is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnConvention {
    /// A value of this type, with bytes equal to those of the structure.
    InRegisters(TypeId),
    /// Memory whose address the caller passes as a first argument.
    InMemory,
}

/// Determines how C returns a structure of this type on the target with this triple.
///
/// # Errors
/// A target with an unknown ABI.
pub(crate) fn return_convention(
    unit: &mut Unit,
    ty: TypeId,
    triple: &str,
) -> Result<ReturnConvention, Diagnostic> {
    if !triple.starts_with("x86_64") || triple.contains("windows") {
        let message = format!("the return of a structure to C is not supported on {triple}");
        return Err(Diagnostic::error(Code::BadRequest, message)
            .help("request one argument at a time with --wrt"));
    }
    let size = unit.layout.size_bytes(unit, ty);
    let leaves = leaves(unit, ty);
    let wide = |ty: &TypeId| unit.layout.store_bytes(unit, *ty) > 8;
    if size > 16 || leaves.iter().any(|(_, ty)| wide(ty)) {
        return Ok(ReturnConvention::InMemory);
    }
    let mut parts = Vec::new();
    for eight in 0..size.div_ceil(8) {
        let inside: Vec<(u64, TypeId)> = leaves
            .iter()
            .filter(|(at, _)| at / 8 == eight)
            .copied()
            .collect();
        let bytes = (size - 8 * eight).min(8);
        parts.push(eightbyte(unit, &inside, bytes));
    }
    Ok(ReturnConvention::InRegisters(match parts.as_slice() {
        [one] => *one,
        _ => unit.types.tuple(parts),
    }))
}

/// Returns the type whose register carries an eightbyte.
fn eightbyte(unit: &mut Unit, inside: &[(u64, TypeId)], bytes: u64) -> TypeId {
    let kinds: Vec<Option<FloatKind>> = inside
        .iter()
        .map(|(_, ty)| unit.types.float_kind(*ty))
        .collect();
    match kinds.as_slice() {
        [Some(_)] => inside[0].1,
        [Some(FloatKind::F32), Some(FloatKind::F32)] => unit.types.vector(inside[0].1, 2),
        [None] => inside[0].1,
        _ => unit.types.int(bytes as u32 * 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(unit: &Unit, ty: TypeId) -> String {
        match unit.types.get(ty) {
            Type::Int(bits) => format!("i{bits}"),
            Type::Float(FloatKind::F32) => "float".into(),
            Type::Float(_) => "double".into(),
            Type::Ptr(_) => "ptr".into(),
            Type::Vector { elem, len, .. } => format!("<{len} x {}>", shape(unit, *elem)),
            Type::Struct { fields, .. } => {
                let parts: Vec<String> = fields.iter().map(|f| shape(unit, *f)).collect();
                format!("{{{}}}", parts.join(","))
            }
            other => format!("{other:?}"),
        }
    }

    /// The return types emitted by clang for equal structures (`clang -S -emit-llvm`).
    #[test]
    fn structures_go_back_as_clang_returns_them() {
        let table: &[(&str, &str)] = &[
            ("dd", "{double,double}"),
            ("ff", "<2 x float>"),
            ("fff", "{<2 x float>,float}"),
            ("ffff", "{<2 x float>,<2 x float>}"),
            ("df", "{double,float}"),
            ("fd", "{float,double}"),
            ("id", "{i32,double}"),
            ("if", "i64"),
            ("pd", "{ptr,double}"),
            ("dl", "{double,i64}"),
            ("ddd", "memory"),
            ("fffff", "memory"),
        ];
        for (members, expected) in table {
            let mut unit = Unit::default();
            let fields: Vec<TypeId> = members
                .chars()
                .map(|c| match c {
                    'd' => unit.types.f64(),
                    'f' => unit.types.float(FloatKind::F32),
                    'i' => unit.types.int(32),
                    'l' => unit.types.int(64),
                    _ => unit.types.ptr(),
                })
                .collect();
            let ty = unit.types.tuple(fields);
            let got = match return_convention(&mut unit, ty, "x86_64-pc-linux-gnu")
                .expect("known target")
            {
                ReturnConvention::InMemory => "memory".to_string(),
                ReturnConvention::InRegisters(ty) => shape(&unit, ty),
            };
            assert_eq!(got, *expected, "{members}");
        }
        let mut unit = Unit::default();
        let (a, b) = (unit.types.f64(), unit.types.f64());
        let ty = unit.types.tuple(vec![a, b]);
        assert!(return_convention(&mut unit, ty, "riscv64-unknown-linux").is_err());
    }
}
