//! Compares a program's behaviour before and after a pass.
//!
//! Undefined values may become anything; result, arrays, mutable globals and output must not change
//! otherwise. Addresses are equal if both are addresses of an object.

use crate::run::call_spec::{CallOutcome, Elements};
use gradus_interp::{Address, Machine, Value};
use gradus_ir::{FloatKind, Type, TypeId, Unit};

/// A run of a call.
pub(crate) struct Run<'m, 'u> {
    pub machine: &'m Machine<'u>,
    pub ran: &'m CallOutcome,
}

/// Checks that a call has equal outcomes before and after a pass.
///
/// # Errors
/// A sentence with the difference.
pub fn same_outcome(
    unit: &Unit,
    result: Option<TypeId>,
    before: (&Machine, &CallOutcome),
    after: (&Machine, &CallOutcome),
    tolerance: f64,
) -> Result<(), String> {
    let before = Run {
        machine: before.0,
        ran: before.1,
    };
    let after = Run {
        machine: after.0,
        ran: after.1,
    };
    match (&before.ran.outcome, &after.ran.outcome) {
        (Err(trap), _) => return Err(format!("the program itself traps: {trap}")),
        (_, Err(trap)) => return Err(format!("the transformed program traps: {trap}")),
        (Ok(None), Ok(None)) => {}
        (Ok(Some(a)), Ok(Some(b))) => {
            if !same_value(
                unit,
                result,
                a,
                b,
                (before.machine, after.machine),
                tolerance,
            ) {
                return Err(format!("the result differs: {a:?} before, {b:?} after"));
            }
        }
        (Ok(a), Ok(b)) => return Err(format!("the result differs: {a:?} before, {b:?} after")),
    }
    same_memory(unit, &before, &after, tolerance)?;
    match before.machine.output() == after.machine.output() {
        true => Ok(()),
        false => Err("the printed output differs".into()),
    }
}

fn same_memory(unit: &Unit, before: &Run, after: &Run, tolerance: f64) -> Result<(), String> {
    for ((position, array, a), (_, _, b)) in before.ran.arrays.iter().zip(&after.ran.arrays) {
        let what = format!("the array of argument {position}");
        same_object(before, after, (*a, *b), array.elements, tolerance, &what)?;
    }
    for (_, global) in unit.globals.iter().filter(|(_, g)| !g.constant) {
        let addresses = (
            before.machine.symbol(&global.name),
            after.machine.symbol(&global.name),
        );
        if let (Some(a), Some(b)) = addresses {
            let elements = element_type(unit, global.ty);
            let what = format!("the global `{}`", global.name);
            same_object(before, after, (a, b), elements, tolerance, &what)?;
        }
    }
    Ok(())
}

/// Returns the element type of a global, as far as needed for the comparison of bytes.
fn element_type(unit: &Unit, ty: TypeId) -> Elements {
    match *unit.types.get(ty) {
        Type::Array { elem, .. } => match unit.types.get(elem) {
            Type::Float(FloatKind::F64) => Elements::F64,
            Type::Float(FloatKind::F32) => Elements::F32,
            _ => Elements::Int(8),
        },
        Type::Float(FloatKind::F64) => Elements::F64,
        Type::Float(FloatKind::F32) => Elements::F32,
        _ => Elements::Int(8),
    }
}

fn same_object(
    before: &Run,
    after: &Run,
    at: (Address, Address),
    elements: Elements,
    tolerance: f64,
    what: &str,
) -> Result<(), String> {
    let objects = (before.machine.snapshot(at.0), after.machine.snapshot(at.1));
    let (a, b) = match objects {
        (Some(a), Some(b)) => (a, b),
        (None, _) => return Ok(()),
        (_, None) => return Err(format!("{what} is freed")),
    };
    if a.len() != b.len() {
        return Err(format!("the size of {what} differs"));
    }
    let size = if elements == Elements::F32 { 4 } else { 8 };
    for (i, (a, b)) in std::iter::zip(a.chunks(size), b.chunks(size)).enumerate() {
        let machines = (before.machine, after.machine);
        if !same_word(a, b, elements, machines, tolerance) {
            return Err(format!(
                "{what} differs at byte {}: {a:?} before, {b:?} after",
                i * size
            ));
        }
    }
    Ok(())
}

fn same_word(
    a: &[Option<u8>],
    b: &[Option<u8>],
    elements: Elements,
    machines: (&Machine, &Machine),
    tolerance: f64,
) -> bool {
    if std::iter::zip(a, b).all(|(a, b)| a.is_none() || a == b) {
        return true;
    }
    let word = |bytes: &[Option<u8>]| {
        let mut word = [0; 8];
        for (slot, byte) in word.iter_mut().zip(bytes) {
            *slot = (*byte)?;
        }
        Some(u64::from_le_bytes(word))
    };
    match (word(a), word(b)) {
        (Some(a), Some(b)) => match elements {
            Elements::F64 => is_close(f64::from_bits(a), f64::from_bits(b), tolerance),
            Elements::F32 => {
                let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
                is_close(f64::from(a), f64::from(b), tolerance)
            }
            _ => machines.0.is_valid_address(a) && machines.1.is_valid_address(b),
        },
        _ => false,
    }
}

/// Returns true if two numbers are equal, both NaN, or closer than `tolerance` times their size.
pub(crate) fn is_close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Returns true if two values of a type are equal; the first may be undefined.
fn same_value(
    unit: &Unit,
    ty: Option<TypeId>,
    a: &Value,
    b: &Value,
    machines: (&Machine, &Machine),
    tolerance: f64,
) -> bool {
    match (a, b) {
        (Value::Poison | Value::Undef { mask: u64::MAX, .. }, _) => true,
        (Value::Undef { bits, mask }, Value::Bits(b)) => bits & !mask == b & !mask,
        (Value::Elements(a), Value::Elements(b)) => {
            a.len() == b.len()
                && std::iter::zip(a, b).enumerate().all(|(i, (a, b))| {
                    let inner = ty.and_then(|ty| unit.types.field(ty, i as u32));
                    same_value(unit, inner, a, b, machines, tolerance)
                })
        }
        (Value::Bits(x), Value::Bits(y)) => {
            a == b
                || match ty.map(|ty| unit.types.get(ty)) {
                    Some(Type::Float(FloatKind::F64)) => {
                        is_close(f64::from_bits(*x), f64::from_bits(*y), tolerance)
                    }
                    Some(Type::Float(FloatKind::F32)) => {
                        let (x, y) = (f32::from_bits(*x as u32), f32::from_bits(*y as u32));
                        is_close(f64::from(x), f64::from(y), tolerance)
                    }
                    Some(Type::Ptr(_)) => {
                        machines.0.is_valid_address(*x) && machines.1.is_valid_address(*y)
                    }
                    _ => false,
                }
        }
        _ => a == b,
    }
}
