//! Constants, interned; an op uses one through a value of its body.

use crate::{Arena, ConstId, FloatKind, FuncId, GlobalId, TypeId};
use std::collections::HashMap;

/// A constant and its type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Const {
    /// Its type.
    pub ty: TypeId,
    /// What it is.
    pub kind: ConstKind,
}

/// What a constant is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ConstKind {
    /// An integer of at most 128 bits, zero-extended.
    Int(u128),
    /// The bits of a floating-point number, zero-extended.
    Float(u128),
    /// The null pointer, or an aggregate of zeros.
    Zero,
    /// An unspecified value, anew at each use.
    Undef,
    /// The value of an operation that went wrong.
    Poison,
    /// The elements of a vector, array or structure.
    Aggregate(Vec<ConstId>),
    /// The address of a function.
    Func(FuncId),
    /// An address inside a global variable.
    Global {
        /// The variable.
        global: GlobalId,
        /// Bytes from its start.
        offset: i64,
    },
    /// A small number as an address, below [`FIRST_OBJECT`]: there is no object, as at null. What fills the
    /// place of an address in Rust's empty vectors and slices.
    NoObject(u16),
    /// What only the host understands, by its number in the host's table.
    Foreign(u32),
}

/// The lowest address at which an object may lie: systems keep the first page free.
pub const FIRST_OBJECT: u16 = 4096;

/// The interned constants of a unit.
#[derive(Clone, Debug, Default)]
pub struct ConstTable {
    consts: Arena<ConstId, Const>,
    ids: HashMap<Const, ConstId>,
}

impl ConstTable {
    /// The id of a constant, interned.
    pub fn intern(&mut self, ty: TypeId, kind: ConstKind) -> ConstId {
        let item = Const { ty, kind };
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let id = self.consts.push(item.clone());
        self.ids.insert(item, id);
        id
    }
    /// The constant behind `id`.
    pub fn get(&self, id: ConstId) -> &Const {
        &self.consts[id]
    }
    /// All constants, in the order of interning.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ConstId, &Const)> {
        self.consts.iter()
    }
}

/// The bits of `value` in the format `kind`, truncated towards zero where the format is narrower
/// than binary32 and exact where it is wider.
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
