//! Declared float arrays: memory declared as floats only, and copies in libstdc++ templates for floats.

use crate::points_to::alias_sets::{AliasSets, CellRef, MemoryOrigin};
use gradus_ir::{Body, FloatKind, Op, OpKind, Type, TypeId, Unit};

/// Returns the format of the floats at the targets of a pointer. All possible objects must be variables
/// declared as arrays of one float format, and no access may contradict the declaration. By the rules of C such
/// variables hold nothing else. A byte copy from or to them therefore copies floats, regardless of the
/// memory at its second end.
pub(crate) fn declared_float_format(
    unit: &Unit,
    memory: &AliasSets,
    targets: &[CellRef],
) -> Option<FloatKind> {
    let mut kinds = targets
        .iter()
        .map(|target| declared_format_at(unit, memory, *target));
    let kind = kinds.next()??;
    kinds.all(|other| other == Some(kind)).then_some(kind)
}

/// Returns the format of the floats at a location.
fn declared_format_at(unit: &Unit, memory: &AliasSets, place: CellRef) -> Option<FloatKind> {
    let class = memory.get(place.class);
    let mut kinds = class
        .origins
        .iter()
        .map(|origin| array_element_format(unit, *origin));
    let kind = kinds.next()??;
    let bytes = i64::from(kind.bits() / 8);
    let accessed = |seen: &crate::types::lattice::CellType| {
        let seen = seen.effective();
        seen.is_nothing() || seen.is_single() && seen.float_kind() == Some(kind)
    };
    let alone = kinds.all(|other| other == Some(kind)) && class.evidence.values().all(accessed);
    (alone && place.offset_bytes % bytes == 0).then_some(kind)
}

/// Returns the format of the floats copied by an op inside a libstdc++ template that copies elements within
/// or between containers.
pub(crate) fn template_float_format(unit: &Unit, body: &Body, op: Op) -> Option<FloatKind> {
    const COPIES: [&str; 3] = ["__copy_m<", "__copy_move_b<", "__relocate_a_1<"];
    let location = &unit.locations[body.ops[op].loc?];
    let is_it = |name: &&str| location.function.starts_with(name);
    let begun = COPIES
        .iter()
        .copied()
        .find(is_it)
        .filter(|_| location.span.is_in_system_code())?;
    let types = location.function.strip_prefix(begun)?.strip_suffix('>')?;
    let kind = |name: &str| match name {
        "double" => Some(FloatKind::F64),
        "float" => Some(FloatKind::F32),
        _ => None,
    };
    let mut kinds = types.split(", ").map(kind);
    let first = kinds.next()??;
    kinds.all(|other| other == Some(first)).then_some(first)
}

/// Returns the element format of a variable that is an array of floats.
fn array_element_format(unit: &Unit, origin: MemoryOrigin) -> Option<FloatKind> {
    let ty = match origin {
        MemoryOrigin::Alloca(func, op) => match unit.functions[func].body.as_deref()?.kind(op) {
            OpKind::Alloca(info) => info.ty,
            _ => return None,
        },
        MemoryOrigin::Global(global) => unit.globals[global].ty,
        _ => return None,
    };
    element(unit, ty)
}

fn element(unit: &Unit, ty: TypeId) -> Option<FloatKind> {
    let mut ty = ty;
    while let Type::Array { elem, .. } = *unit.types.get(ty) {
        ty = elem;
    }
    match *unit.types.get(ty) {
        Type::Float(kind) => Some(kind),
        _ => None,
    }
}
