//! Floating-point formats: conversion of bits to and from `f64`, rounding to nearest even.

use crate::trap::{Eval, TrapKind, fault};
use gradus_ir::FloatKind;

/// Returns the number of fraction bits and exponent bits of a 16-bit format.
fn small(kind: FloatKind) -> Option<(u32, u32)> {
    match kind {
        FloatKind::F16 => Some((10, 5)),
        FloatKind::BF16 => Some((7, 8)),
        _ => None,
    }
}

/// Returns the number represented by the bits of a format.
///
/// # Errors
/// [`TrapKind::Unsupported`] for formats wider than binary64.
pub(crate) fn to_f64(kind: FloatKind, bits: u64) -> Eval<f64> {
    match kind {
        FloatKind::F64 => Ok(f64::from_bits(bits)),
        FloatKind::F32 => Ok(f64::from(f32::from_bits(bits as u32))),
        _ => match small(kind) {
            Some((fraction, exponent)) => Ok(widen(bits, fraction, exponent)),
            None => fault(TrapKind::Unsupported, "arithmetic wider than binary64"),
        },
    }
}

/// Rounds a number to a format and returns the bits.
///
/// # Errors
/// [`TrapKind::Unsupported`] for formats wider than binary64.
pub(crate) fn from_f64(kind: FloatKind, x: f64) -> Eval<u64> {
    match kind {
        FloatKind::F64 => Ok(x.to_bits()),
        FloatKind::F32 => Ok(u64::from((x as f32).to_bits())),
        _ => match small(kind) {
            Some((fraction, exponent)) => Ok(narrow(x, fraction, exponent)),
            None => fault(TrapKind::Unsupported, "arithmetic wider than binary64"),
        },
    }
}

fn widen(bits: u64, fraction_bits: u32, exponent_bits: u32) -> f64 {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    let negative = bits >> (fraction_bits + exponent_bits) & 1 == 1;
    let scale = |power: i32| 2f64.powi(power);
    let magnitude = if exponent == (1 << exponent_bits) - 1 {
        if fraction == 0 {
            f64::INFINITY
        } else {
            f64::NAN
        }
    } else if exponent == 0 {
        fraction as f64 * scale(1 - bias - fraction_bits as i32)
    } else {
        let whole = fraction + (1 << fraction_bits);
        whole as f64 * scale(exponent as i32 - bias - fraction_bits as i32)
    };
    if negative { -magnitude } else { magnitude }
}

fn narrow(x: f64, fraction_bits: u32, exponent_bits: u32) -> u64 {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let sign = u64::from(x.is_sign_negative()) << (fraction_bits + exponent_bits);
    let infinity = ((1u64 << exponent_bits) - 1) << fraction_bits;
    if x.is_nan() {
        return sign | infinity | 1 << (fraction_bits - 1);
    }
    let magnitude = x.abs();
    if magnitude == 0.0 || magnitude.is_infinite() {
        return sign | if magnitude == 0.0 { 0 } else { infinity };
    }
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // Scaling by a power of two is exact; `round_ties_even` rounds to nearest even.
    let steps = magnitude * 2f64.powi(fraction_bits as i32 - exponent);
    let rounded = steps.round_ties_even() as u64;
    let biased = (exponent + bias - 1) as u64;
    sign | ((biased << fraction_bits) + rounded).min(infinity)
}
