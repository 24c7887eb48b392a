//! Run-time values.

/// An address in the machine's memory; 0 is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

/// A value: a number, an address, a vector or an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// At most 64 bits: a zero-extended integer, the bits of a float, or an address.
    Bits(u64),
    /// A number with undefined bits in `mask`. A full mask represents an undefined value of any type.
    Undef {
        /// The known bits; zero at undefined positions.
        bits: u64,
        /// The undefined bits.
        mask: u64,
    },
    /// Poison of any type.
    Poison,
    /// An integer or float of 65 to 128 bits.
    Wide(Box<u128>),
    /// The elements of a vector, array or structure.
    Elements(Box<[Value]>),
}

impl Value {
    /// The undefined value of any type.
    pub const UNDEF: Value = Value::Undef {
        bits: 0,
        mask: u64::MAX,
    };

    /// A binary64 number.
    pub fn f64(x: f64) -> Self {
        Value::Bits(x.to_bits())
    }
    /// A binary32 number.
    pub fn f32(x: f32) -> Self {
        Value::Bits(u64::from(x.to_bits()))
    }
    /// A 64-bit integer.
    pub fn i64(n: i64) -> Self {
        Value::Bits(n as u64)
    }
    /// A 32-bit integer.
    pub fn i32(n: i32) -> Self {
        Value::Bits(u64::from(n as u32))
    }
    /// An `i1`.
    pub fn bool(b: bool) -> Self {
        Value::Bits(u64::from(b))
    }
    /// An address.
    pub fn ptr(address: Address) -> Self {
        Value::Bits(address.0)
    }
    /// Returns the bits of a fully defined number of at most 64 bits.
    pub fn bits(&self) -> Option<u64> {
        match self {
            Value::Bits(bits) => Some(*bits),
            _ => None,
        }
    }
    /// Returns a defined value as binary64.
    pub fn as_f64(&self) -> Option<f64> {
        self.bits().map(f64::from_bits)
    }
    /// Returns a defined value as a 64-bit integer.
    pub fn as_i64(&self) -> Option<i64> {
        self.bits().map(|b| b as i64)
    }
    /// Returns the elements of a vector or aggregate.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Elements(elements) => Some(elements),
            _ => None,
        }
    }
    /// Returns a number of `bits` bits.
    pub(crate) fn number(bits: u32, n: u128) -> Self {
        match bits <= 64 {
            true => Value::Bits(n as u64),
            false => Value::Wide(Box::new(n)),
        }
    }
    /// Returns a defined number of any width.
    pub(crate) fn wide(&self) -> Option<u128> {
        match self {
            Value::Bits(bits) => Some(u128::from(*bits)),
            Value::Wide(bits) => Some(**bits),
            _ => None,
        }
    }
    /// Returns element `index`; each element of a fully undefined value is undefined.
    pub(crate) fn lane(&self, index: usize) -> Value {
        match self {
            Value::Elements(elements) => elements.get(index).cloned().unwrap_or(Value::Poison),
            Value::Undef { .. } => Value::UNDEF,
            _ => Value::Poison,
        }
    }
    /// Returns `count` elements of a vector or aggregate.
    pub(crate) fn to_lanes(&self, count: usize) -> Vec<Value> {
        (0..count).map(|i| self.lane(i)).collect()
    }
}
