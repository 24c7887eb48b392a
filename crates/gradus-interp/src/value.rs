//! Values of a running program.

/// An address of the machine's own memory; 0 is null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

/// A value: of a number, an address, a vector or an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of at most 64 bits, zero-extended, the bits of a float, or an address.
    Bits(u64),
    /// A number of which the bits in `mask` are unspecified; a full mask stands for an unspecified
    /// value of any type.
    Undef {
        /// The bits that are known; zero where they are not.
        bits: u64,
        /// The bits that are not known.
        mask: u64,
    },
    /// The value of an operation that went wrong, of any type.
    Poison,
    /// A number of 65 to 128 bits.
    Wide(Box<u128>),
    /// The elements of a vector, array or structure.
    Many(Box<[Value]>),
}

impl Value {
    /// An unspecified value of any type.
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
    /// A truth value.
    pub fn bool(b: bool) -> Self {
        Value::Bits(u64::from(b))
    }
    /// An address.
    pub fn ptr(address: Address) -> Self {
        Value::Bits(address.0)
    }
    /// The bits of a number that is fully defined and has at most 64 of them.
    pub fn bits(&self) -> Option<u64> {
        match self {
            Value::Bits(bits) => Some(*bits),
            _ => None,
        }
    }
    /// A defined binary64 number.
    pub fn as_f64(&self) -> Option<f64> {
        self.bits().map(f64::from_bits)
    }
    /// A defined binary32 number.
    pub fn as_f32(&self) -> Option<f32> {
        self.bits().map(|b| f32::from_bits(b as u32))
    }
    /// A defined 64-bit integer.
    pub fn as_i64(&self) -> Option<i64> {
        self.bits().map(|b| b as i64)
    }
    /// The elements of a vector or aggregate.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Many(elements) => Some(elements),
            _ => None,
        }
    }
    /// A number of `bits` bits.
    pub(crate) fn number(bits: u32, n: u128) -> Self {
        match bits <= 64 {
            true => Value::Bits(n as u64),
            false => Value::Wide(Box::new(n)),
        }
    }
    /// A defined number of any width.
    pub(crate) fn wide(&self) -> Option<u128> {
        match self {
            Value::Bits(bits) => Some(u128::from(*bits)),
            Value::Wide(bits) => Some(**bits),
            _ => None,
        }
    }
    /// Element `index`; what is undefined as a whole is so in each element.
    pub(crate) fn lane(&self, index: usize) -> Value {
        match self {
            Value::Many(elements) => elements.get(index).cloned().unwrap_or(Value::Poison),
            Value::Undef { .. } => Value::UNDEF,
            _ => Value::Poison,
        }
    }
    /// Its elements, owned, where it has `count` of them or is undefined as a whole.
    pub(crate) fn to_lanes(&self, count: usize) -> Vec<Value> {
        (0..count).map(|i| self.lane(i)).collect()
    }
}
