//! C spellings for values that LLVM passes in a form without a C name: by-value structures become
//! definitions of equal layout, and the cotangent of a structure becomes an argument per float member.

use super::abi::leaves;
use super::calls::frame_memory;
use super::header::c_type_of;
use gradus_ad::{ParamRole, Signature};
use gradus_ir::{AttrValue, Builder, FuncId, Type, TypeId, Unit, Value};
use std::fmt::Write;

/// The type of a value without a name in C.
pub(crate) const NAMELESS: &str = "void";

/// A parameter of the function called from C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CParameter {
    /// The parameter of the derivative.
    pub role: ParamRole,
    /// The type.
    pub ty: TypeId,
    /// For a member of an aggregate: the offset in bytes, and the position among the float members.
    pub part: Option<(u64, usize)>,
}

/// Returns the C parameters for the parameters of a derivative, in order. The cotangent of an aggregate is
/// passed member by member, since C and LLVM may split an aggregate between registers and memory
/// differently.
pub(crate) fn c_parameters(unit: &Unit, signature: &Signature) -> Vec<CParameter> {
    let mut list = Vec::new();
    for &(role, ty) in &signature.params {
        let aggregate = matches!(unit.types.get(ty), Type::Struct { .. } | Type::Array { .. });
        if !aggregate || !matches!(role, ParamRole::Cotangent(_)) {
            let part = None;
            list.push(CParameter { role, ty, part });
            continue;
        }
        let numbers = leaves(unit, ty).into_iter();
        let numbers = numbers.filter(|(_, leaf)| unit.types.float_kind(*leaf).is_some());
        list.extend(numbers.enumerate().map(|(number, (at, leaf))| CParameter {
            role,
            ty: leaf,
            part: Some((at, number)),
        }));
    }
    list
}

/// Builds the arguments of the derivative from the C arguments.
pub(crate) fn arguments(
    build: &mut Builder<'_>,
    signature: &Signature,
    passed: &[CParameter],
    given: &[Value],
) -> Vec<Value> {
    let mut rest = passed.iter().zip(given).peekable();
    let mut made = Vec::new();
    for &(role, ty) in &signature.params {
        let mut parts = Vec::new();
        while let Some((one, value)) = rest.next_if(|(one, _)| one.role == role) {
            parts.push((one.part, *value));
        }
        if let [(None, value)] = parts[..] {
            made.push(value);
            continue;
        }
        let place = frame_memory(build, &[ty]);
        let zero = build.zero(ty);
        build.store(zero, place);
        for (part, value) in parts {
            let at = build.i64(part.map_or(0, |(at, _)| at) as i64);
            let address = build.byte_addr(place, at);
            build.store(value, address);
        }
        made.push(build.load(ty, place));
    }
    made
}

/// Returns the definition of a structure passed by value in memory as parameter `index`, under `tag`.
/// Returns `None` if no C structure has the layout, or the parameter is not `byval`.
pub(crate) fn structure_definition(
    unit: &Unit,
    func: FuncId,
    index: usize,
    tag: &str,
) -> Option<String> {
    let attrs = unit.attrs(unit.functions[func].attrs);
    let Some(AttrValue::Type(ty)) = attrs.param(index, "byval") else {
        // Not an error: the parameter is passed in registers.
        return None;
    };
    let mut text = format!("{tag} {{\n");
    let (mut end, mut widest, mut members) = (0, 1, 0);
    let list = leaves(unit, *ty);
    let mut at = 0;
    while let Some(&(offset, leaf)) = list.get(at) {
        let size = unit.layout.size_bytes(unit, leaf);
        let adjacent = |number: u64, next: &(u64, TypeId)| *next == (offset + number * size, leaf);
        let run = (0..)
            .zip(&list[at..])
            .take_while(|(n, next)| adjacent(*n, next));
        let count = run.count();
        let name = c_type_of(unit, leaf);
        let align = unit.layout.align_bytes(unit, leaf);
        if name == NAMELESS || u64::next_multiple_of(end, align) != offset {
            return None;
        }
        let _ = match count {
            1 => writeln!(text, "    {name} member{members};"),
            _ => writeln!(text, "    {name} member{members}[{count}];"),
        };
        (end, widest) = (offset + count as u64 * size, widest.max(align));
        (at, members) = (at + count, members + 1);
    }
    let fits = end.next_multiple_of(widest) == unit.layout.size_bytes(unit, *ty);
    fits.then(|| text + "};\n")
}
