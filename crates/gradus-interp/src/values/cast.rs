//! Conversions between integers, floats and pointers, and bit casts.

use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{
    known_and_undefined_bits, map_lanes, mask, signed, with_undefined_bits,
};
use crate::values::float::{from_f64, to_f64};
use crate::values::value::Value;
use crate::values::value_layout::Num;
use gradus_ir::{CastOp, Flags, FloatKind};

/// A conversion: op, types, flags and lanes.
#[derive(Debug)]
pub(crate) struct Conversion {
    pub op: CastOp,
    pub from: Num,
    pub to: Num,
    pub flags: Flags,
    /// Lanes before and after the conversion; different for bit casts only.
    pub lanes: (Option<usize>, Option<usize>),
}

/// Evaluates a conversion.
pub(crate) fn cast(info: &Conversion, a: &Value) -> Eval<Value> {
    if info.op == CastOp::BitCast {
        return bitcast(info, a);
    }
    map_lanes(info.lanes.0, a, |a| scalar(info, a))
}

fn scalar(info: &Conversion, a: &Value) -> Eval<Value> {
    use CastOp::*;
    let (from, to) = (info.from, info.to);
    match info.op {
        Trunc | ZExt | SExt => Ok(resize(info, a)),
        PtrToInt | PtrToAddr | IntToPtr => Ok(match a.wide() {
            Some(n) => Value::number(to.bits(), n & mask(to.bits())),
            None => a.clone(),
        }),
        AddrSpaceCast => Ok(a.clone()),
        _ => {
            let Some(n) = a.wide() else {
                return Ok(match a {
                    Value::Poison => Value::Poison,
                    _ => Value::UNDEF,
                });
            };
            match (from, to) {
                (Num::Float(from), Num::Float(to)) => {
                    let bits = if from.bits() > 64 {
                        None
                    } else {
                        Some(n as u64)
                    };
                    resize_float(info, from, to, bits)
                }
                (Num::Float(kind), Num::Int(bits)) => to_int(info.op, kind, bits, n),
                (Num::Int(bits), Num::Float(kind)) => from_int(info, bits, kind, n),
                _ => fault(
                    TrapKind::Unsupported,
                    "an unsupported cast between these types",
                ),
            }
        }
    }
}

fn resize(info: &Conversion, a: &Value) -> Value {
    let (from, to) = (info.from.bits(), info.to.bits());
    let Some(n) = a.wide() else {
        return match a {
            Value::Poison => Value::Poison,
            _ if from > 64 || to > 64 => Value::UNDEF,
            _ => resize_partial(info.op, from, to, a),
        };
    };
    let flags = info.flags;
    match info.op {
        CastOp::Trunc => {
            let result = n & mask(to);
            let lost = (flags.has(Flags::NUW) && result != n)
                || (flags.has(Flags::NSW) && signed(to, result) != signed(from, n));
            if lost {
                Value::Poison
            } else {
                Value::number(to, result)
            }
        }
        CastOp::ZExt if flags.has(Flags::NNEG) && signed(from, n) < 0 => Value::Poison,
        CastOp::ZExt => Value::number(to, n),
        _ => Value::number(to, signed(from, n) as u128 & mask(to)),
    }
}

/// Resizes an integer with undefined bits. Undefined bits keep their position; new high bits are zero or sign
/// copies.
fn resize_partial(op: CastOp, from: u32, to: u32, a: &Value) -> Value {
    let (bits, unknown) = known_and_undefined_bits(from, a);
    let sign = 1u64 << (from - 1);
    let above = (mask(to) as u64) & !(mask(from) as u64);
    match op {
        CastOp::SExt if unknown & sign != 0 => with_undefined_bits(to, bits, unknown | above),
        CastOp::SExt if bits & sign != 0 => with_undefined_bits(to, bits | above, unknown),
        _ => with_undefined_bits(to, bits, unknown),
    }
}

fn resize_float(
    info: &Conversion,
    from: FloatKind,
    to: FloatKind,
    bits: Option<u64>,
) -> Eval<Value> {
    let Some(bits) = bits else {
        return fault(TrapKind::Unsupported, "arithmetic wider than binary64");
    };
    let x = to_f64(from, bits)?;
    let result = from_f64(to, x)?;
    Ok(crate::values::arith::apply_fast_math_flags(
        info.flags,
        &[x],
        to_f64(to, result)?,
        result,
    ))
}

/// Converts a float to an integer, towards zero; poison if the result is out of range.
fn to_int(op: CastOp, kind: FloatKind, bits: u32, n: u128) -> Eval<Value> {
    if kind.bits() > 64 {
        return fault(TrapKind::Unsupported, "arithmetic wider than binary64");
    }
    let x = to_f64(kind, n as u64)?.trunc();
    let power = |n: u32| 2f64.powi(n as i32);
    let fits = match op {
        CastOp::FPToUI => x > -1.0 && x < power(bits),
        _ => x >= -power(bits - 1) && x < power(bits - 1),
    };
    if !fits {
        return Ok(Value::Poison);
    }
    let n = if x < 0.0 {
        x as i128 as u128
    } else {
        x as u128
    };
    Ok(Value::number(bits, n & mask(bits)))
}

fn from_int(info: &Conversion, bits: u32, kind: FloatKind, n: u128) -> Eval<Value> {
    let unsigned = info.op == CastOp::UIToFP;
    let s = signed(bits, n);
    if unsigned && info.flags.has(Flags::NNEG) && s < 0 {
        return Ok(Value::Poison);
    }
    let result = match kind {
        FloatKind::F32 => {
            let x = if unsigned { n as f32 } else { s as f32 };
            u64::from(x.to_bits())
        }
        _ => from_f64(kind, if unsigned { n as f64 } else { s as f64 })?,
    };
    Ok(Value::Bits(result))
}

/// Reinterprets the bits with a new lane width; lane 0 has the lowest bits.
fn bitcast(info: &Conversion, a: &Value) -> Eval<Value> {
    let (from, to) = info.lanes;
    if from == to {
        return Ok(a.clone());
    }
    let (width, lanes) = (info.from.bits(), from.unwrap_or(1));
    let total = width as usize * lanes;
    let mut bytes = vec![0u64; total.div_ceil(64)];
    let mut unknown = vec![0u64; total.div_ceil(64)];
    for i in 0..lanes {
        let lane = if from.is_some() { a.lane(i) } else { a.clone() };
        if lane == Value::Poison {
            return Ok(Value::Poison);
        }
        let (bits, lost) = match lane.wide() {
            Some(bits) => (bits, 0),
            None => {
                let (bits, lost) = known_and_undefined_bits(width.min(64), &lane);
                (u128::from(bits), u128::from(lost))
            }
        };
        insert_bits(&mut bytes, i * width as usize, width, bits);
        insert_bits(&mut unknown, i * width as usize, width, lost);
    }
    let width = info.to.bits();
    let cut = |i: usize| {
        let (bits, lost) = (
            extract_bits(&bytes, i, width),
            extract_bits(&unknown, i, width),
        );
        match lost {
            0 => Value::number(width, bits),
            _ => with_undefined_bits(width, bits as u64, lost as u64),
        }
    };
    Ok(match to {
        None => cut(0),
        Some(len) => Value::Elements((0..len).map(|i| cut(i * width as usize)).collect()),
    })
}

fn insert_bits(words: &mut [u64], at: usize, width: u32, bits: u128) {
    for i in 0..width as usize {
        if bits >> i & 1 == 1 {
            words[(at + i) / 64] |= 1 << ((at + i) % 64);
        }
    }
}

fn extract_bits(words: &[u64], at: usize, width: u32) -> u128 {
    (0..width as usize)
        .map(|i| u128::from(words[(at + i) / 64] >> ((at + i) % 64) & 1) << i)
        .sum()
}
