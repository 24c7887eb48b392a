//! Shadows of global variables at the start of a requested derivative.
//!
//! The contents of a global at the call are no input of the derivative, and the contents after the call are
//! no output: their tangents and cotangents start as zero in each call. Without the reset, the adjoint of the
//! initial contents would remain in the shadow and act as a cotangent in the next call. Pointers in shadows
//! remain: they point to the shadows of the variable's pointees.

use crate::analysis::program_facts::ProgramFacts;
use crate::emit::builder::{DerivativeBuilder, MemorySpace};
use crate::shadow::constants::shadow_global;
use crate::variant::{Mode, Variant};
use gradus_ir::{Code, Diagnostic, GlobalId, Type, TypeId, Unit, Value};

/// Limit on the number of floats among pointers; more are refused, because each float is cleared by a store.
const STORES_MAX: usize = 4096;

/// A global whose shadow is cleared.
pub(crate) struct ClearedShadow {
    pub(crate) global: GlobalId,
    /// Byte offsets and types of the floats; `None` if all bytes may be cleared.
    numbers: Option<Vec<(u64, TypeId)>>,
}

/// Returns the globals whose shadows a variant clears at its start.
///
/// # Errors
/// Floats that cannot be distinguished from pointers, or too many floats among pointers.
pub(crate) fn cleared(
    unit: &Unit,
    closure: &ProgramFacts,
    variant: &Variant,
) -> Result<Vec<ClearedShadow>, Vec<Diagnostic>> {
    if !variant.outermost || variant.mode == Mode::Augmented {
        return Ok(Vec::new());
    }
    let (mut list, mut findings) = (Vec::new(), Vec::new());
    for global in unit.globals.ids() {
        if !closure.carries_floats(unit, global) {
            continue;
        }
        let ty = unit.globals[global].ty;
        let numbers = match closure.holds_pointers(global) {
            false => Ok(None),
            true => numbers(unit, ty).map(Some).ok_or(global),
        };
        match numbers {
            Ok(numbers) => list.push(ClearedShadow { global, numbers }),
            Err(global) => findings.push(mixed_memory_error(unit, global)),
        }
    }
    match findings.is_empty() {
        true => Ok(list),
        false => Err(findings),
    }
}

fn mixed_memory_error(unit: &Unit, global: GlobalId) -> Diagnostic {
    let name = &unit.globals[global].name;
    let message = format!("cannot distinguish the active floats in `{name}` from the pointers");
    Diagnostic::error(Code::UnknownMemoryType, message).help(format!(
        "move the floats of `{name}` to a separate variable, or pass `{name}` as an argument"
    ))
}

/// Returns offsets and types of the floats in a type; `None` for byte arrays of unknown contents, and above
/// the limit.
fn numbers(unit: &Unit, ty: TypeId) -> Option<Vec<(u64, TypeId)>> {
    let mut found = Vec::new();
    let mut open = vec![(0, ty)];
    while let Some((at, ty)) = open.pop() {
        if found.len() + open.len() > STORES_MAX {
            return None;
        }
        match unit.types.get(ty) {
            Type::Struct { fields, .. } => {
                let field = |(i, field): (usize, &TypeId)| {
                    (
                        at + unit.layout.field_offset_bytes(unit, ty, i as u64),
                        *field,
                    )
                };
                open.extend(fields.iter().enumerate().map(field));
            }
            Type::Array { len, elem } => {
                // Arrays shorter than a float are padding.
                let bytes = matches!(unit.types.get(*elem), Type::Int(8)) && *len >= 8;
                if bytes || usize::try_from(*len).ok()? > STORES_MAX {
                    return None;
                }
                let bytes = unit.layout.size_bytes(unit, *elem);
                open.extend((0..*len).map(|i| (at + i * bytes, *elem)));
            }
            Type::Float(_) | Type::Vector { .. } => found.push((at, ty)),
            _ => {}
        }
    }
    Some(found)
}

/// Emits the clearing of the shadows, for the whole batch.
pub(crate) fn clear(out: &mut DerivativeBuilder<'_>, variant: &Variant, list: &[ClearedShadow]) {
    for ClearedShadow { global, numbers } in list {
        for lane in 0..variant.width as usize {
            let forward = variant.mode == Mode::Forward;
            let shadow = shadow_global(out.unit, *global, forward, lane);
            let ty = out.unit.globals[*global].ty;
            match numbers {
                None => {
                    let at = address(out, shadow, 0);
                    let bytes = out.unit.layout.size_bytes(out.unit, ty);
                    let bytes = out.build().i64(bytes as i64);
                    out.zero_bytes(at, bytes, MemorySpace::Shadow);
                }
                Some(numbers) => {
                    for (offset, ty) in numbers {
                        let at = address(out, shadow, *offset);
                        let zero = out.build().zero(*ty);
                        out.store(zero, at, MemorySpace::Shadow, None);
                    }
                }
            }
        }
    }
}

/// Returns the address at an offset in a global variable.
pub(crate) fn address(out: &mut DerivativeBuilder<'_>, global: GlobalId, offset: u64) -> Value {
    let ptr = out.unit.types.ptr();
    let kind = gradus_ir::ConstKind::Global {
        global,
        offset: offset as i64,
    };
    let id = out.unit.consts.intern(ptr, kind);
    out.body.constant(out.unit, id)
}
