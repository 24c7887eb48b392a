//! The generic variant of a function that serves indirect calls, and the function types that permit one.
//!
//! The activity of each argument and of the result follows from the type, hence one variant per possible callee serves
//! most indirect calls. An integer that carries floats at a call is active there, too. `shadow/indirect_calls.rs`
//! dispatches to the variants.

use super::{ArgActivity, Mode, ResultActivity, Variant, Versions, carries_float};
use gradus_ir::{FuncId, Type, TypeId, Unit};

/// Returns the variant of a function that serves indirect calls, by its type.
pub(crate) fn indirect_variant(unit: &Unit, func: FuncId, mode: Mode, caller: &Variant) -> Variant {
    let ty = unit.functions[func].ty;
    let args: Vec<ArgActivity> = (unit.param_types(ty).iter())
        .map(|ty| argument(unit, *ty))
        .collect();
    let split = matches!(mode, Mode::Augmented | Mode::Reverse);
    Variant {
        func,
        mode,
        width: caller.width,
        overwritten: if split {
            vec![true; args.len()]
        } else {
            Vec::new()
        },
        args,
        result: result(unit, unit.result_type(ty)),
        primal_result: true,
        tape: Default::default(),
        versions: Versions::RuntimeCheck,
        strong_zero: caller.strong_zero,
        tangents: caller.tangents,
        concurrent: false,
        outermost: false,
    }
}

fn argument(unit: &Unit, ty: TypeId) -> ArgActivity {
    match (unit.types.is_ptr(ty), carries_float(unit, ty)) {
        (true, _) => ArgActivity::MaybeDup,
        (false, true) => ArgActivity::Active,
        (false, false) => ArgActivity::Const,
    }
}

fn result(unit: &Unit, ty: Option<TypeId>) -> ResultActivity {
    match ty {
        None => ResultActivity::Const,
        Some(ty) if unit.types.is_ptr(ty) => ResultActivity::Dup,
        Some(ty) if carries_float(unit, ty) => ResultActivity::Active,
        Some(_) => ResultActivity::Const,
    }
}

/// Returns true if indirect calls of a function type can be dispatched: no aggregate argument or result holds
/// a pointer, and the type is not variadic.
pub(crate) fn can_dispatch(unit: &Unit, signature: TypeId) -> bool {
    let Type::Func {
        params,
        result,
        variadic,
    } = unit.types.get(signature)
    else {
        return false;
    };
    !variadic && (params.iter().chain([result])).all(|ty| !contains_pointer(unit, *ty))
}

/// Returns true if an aggregate type holds a pointer.
fn contains_pointer(unit: &Unit, ty: TypeId) -> bool {
    let mut stack = match unit.types.get(ty) {
        Type::Ptr(_) => Vec::new(),
        _ => vec![ty],
    };
    while let Some(ty) = stack.pop() {
        match unit.types.get(ty) {
            Type::Ptr(_) => return true,
            Type::Vector { elem, .. } | Type::Array { elem, .. } => stack.push(*elem),
            Type::Struct { fields, .. } => stack.extend(fields),
            _ => {}
        }
    }
    false
}
