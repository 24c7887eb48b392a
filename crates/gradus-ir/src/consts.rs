//! Interned constants. An op refers to a constant through a value of the op's body.

use crate::mutant::{Mutant, is_planted};
use crate::{Arena, ConstId, FloatKind, FuncId, GlobalId, TypeId};
use std::collections::HashMap;

/// A constant and its type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Const {
    /// The constant's type.
    pub ty: TypeId,
    /// The constant's kind.
    pub kind: ConstKind,
}

/// The kind of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConstKind {
    /// An integer of at most 128 bits, zero-extended.
    Int(u128),
    /// The bits of a floating-point number, zero-extended.
    Float(u128),
    /// The null pointer, or an aggregate of zeros.
    Zero,
    /// LLVM's `undef`: an unspecified value, possibly different at each use.
    Undef,
    /// LLVM's `poison`.
    Poison,
    /// The elements of a vector, array or structure.
    Aggregate(Vec<ConstId>),
    /// The address of a function.
    Func(FuncId),
    /// An address inside a global variable.
    Global {
        /// The variable.
        global: GlobalId,
        /// The offset from the variable's start, in bytes.
        offset: i64,
    },
    /// A small address below [`MIN_OBJECT_ADDRESS`] that points to no object, like null. Rust's empty vectors and
    /// slices hold such dangling addresses.
    DanglingAddress(u16),
    /// A constant opaque to Gradus: index into the host's table.
    Foreign(u32),
}

/// The lowest address of any object: operating systems leave the first page unmapped.
pub const MIN_OBJECT_ADDRESS: u16 = 4096;

/// The interned constants of a unit.
#[derive(Clone, Debug, Default)]
pub struct ConstTable {
    consts: Arena<ConstId, Const>,
    ids: HashMap<Const, ConstId>,
}

impl ConstTable {
    /// Interns a constant and returns the id.
    pub fn intern(&mut self, ty: TypeId, kind: ConstKind) -> ConstId {
        let item = Const { ty, kind };
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let id = self.consts.push(item.clone());
        self.ids.insert(item, id);
        id
    }
    /// Returns the constant behind `id`.
    pub fn get(&self, id: ConstId) -> &Const {
        &self.consts[id]
    }
    /// Iterates over all constants in the order of interning.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ConstId, &Const)> {
        self.consts.iter()
    }
}

/// Returns the bits of `value` in the format `kind`: exact for wider formats, rounded to nearest, ties to
/// even, for narrower formats. PowerPC's double-double format has `value` in the low 64 bits.
pub(crate) fn float_bits(kind: FloatKind, value: f64) -> u128 {
    match kind {
        FloatKind::F64 | FloatKind::PpcF128 => u128::from(value.to_bits()),
        FloatKind::F32 => u128::from((value as f32).to_bits()),
        FloatKind::F16 => round_to_narrow(value, 5, 10),
        FloatKind::BF16 => round_to_narrow(value, 8, 7),
        FloatKind::X86F80 => extend_to_wide(value, 63, true),
        FloatKind::F128 => extend_to_wide(value, 112, false),
    }
}

/// Rounds to an IEEE format of 16 bits. A magnitude beyond the range becomes infinity.
fn round_to_narrow(value: f64, exponent_bits: u32, fraction_bits: u32) -> u128 {
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    let sign = u128::from(value.is_sign_negative()) << (exponent_bits + fraction_bits);
    let infinity = ((1u128 << exponent_bits) - 1) << fraction_bits;
    if value.is_nan() {
        return sign | infinity | 1 << (fraction_bits - 1);
    }
    if value.is_infinite() {
        return sign | infinity;
    }
    // The magnitude is `significand` · 2^(exponent - 52).
    let field = (value.to_bits() >> 52 & 0x7ff) as i64;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let significand = u128::from(fraction | u64::from(field != 0) << 52);
    let exponent = field.max(1) - 1023;
    // A subnormal result has the least exponent.
    let target = exponent.max(1 - bias);
    let dropped = 52 - i64::from(fraction_bits) + (target - exponent);
    if dropped > 64 {
        return sign;
    }
    let whole = significand >> dropped;
    let (rest, half) = (significand - (whole << dropped), 1u128 << (dropped - 1));
    let up = rest > half || rest == half && whole & 1 == 1;
    let up = up && !is_planted(Mutant::NarrowConstantsTruncated);
    // The leading one of a normal significand, and a carry of the rounding, increment the exponent field.
    let bits = (((target + bias - 1) as u128) << fraction_bits) + whole + u128::from(up);
    sign | bits.min(infinity)
}

/// Converts to a format with 15 exponent bits, exactly. `explicit_one` states that the format stores the
/// leading one.
fn extend_to_wide(value: f64, fraction_bits: u32, explicit_one: bool) -> u128 {
    const BIAS: i64 = (1 << 14) - 1;
    let sign = u128::from(value.is_sign_negative());
    let field = (value.to_bits() >> 52 & 0x7ff) as i64;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let (exponent, fraction) = match (field, fraction) {
        (0, 0) => (0, 0),
        // A subnormal number is normal in the format: the shift moves its leading one to bit 52.
        (0, _) => {
            let shift = fraction.leading_zeros() - 11;
            let moved = (fraction << shift) & ((1 << 52) - 1);
            (BIAS - 1022 - i64::from(shift), moved)
        }
        (0x7ff, _) => (2 * BIAS + 1, fraction),
        _ => (field - 1023 + BIAS, fraction),
    };
    let one = u128::from(explicit_one && exponent != 0);
    let width = fraction_bits + u32::from(explicit_one);
    let fraction = u128::from(fraction) << (fraction_bits - 52);
    sign << (15 + width) | (exponent as u128) << width | one << fraction_bits | fraction
}
