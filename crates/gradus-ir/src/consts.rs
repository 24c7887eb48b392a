//! Interned constants. An op refers to a constant through a value of the op's body.

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

/// Returns the bits of `value` in the format `kind`: exact for wider formats, rounded to nearest for
/// binary32, truncated towards zero for bfloat16 (from binary32) and binary16. The result is right for zeros
/// and for normal numbers in the range of `kind` only; PowerPC's double-double format has `value` in the low
/// 64 bits.
pub(crate) fn float_bits(kind: FloatKind, value: f64) -> u128 {
    let bits = value.to_bits();
    let (sign, exponent, fraction) = (
        u128::from(bits >> 63),
        ((bits >> 52) & 0x7ff) as i64,
        u128::from(bits & ((1 << 52) - 1)),
    );
    let widen = |exponent_bits: u32, fraction_bits: u32, explicit_one: bool| {
        let bias = (1i64 << (exponent_bits - 1)) - 1;
        let e = match exponent {
            0 => 0,
            0x7ff => (1i64 << exponent_bits) - 1,
            e => (e - 1023 + bias).clamp(0, (1i64 << exponent_bits) - 1),
        };
        let one = u128::from(explicit_one && e != 0);
        let fraction = if fraction_bits >= 52 {
            fraction << (fraction_bits - 52)
        } else {
            fraction >> (52 - fraction_bits)
        };
        let width = fraction_bits + u32::from(explicit_one);
        sign << (exponent_bits + width) | (e as u128) << width | one << fraction_bits | fraction
    };
    match kind {
        FloatKind::F64 => u128::from(bits),
        FloatKind::F32 => u128::from((value as f32).to_bits()),
        FloatKind::F16 => widen(5, 10, false),
        FloatKind::BF16 => u128::from((value as f32).to_bits() >> 16),
        FloatKind::X86F80 => widen(15, 63, true),
        FloatKind::F128 => widen(15, 112, false),
        FloatKind::PpcF128 => u128::from(bits),
    }
}
