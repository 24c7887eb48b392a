//! Value layout: types as widths, lanes and memory offsets.

use crate::values::value::Value;
use gradus_ir::{FloatKind, Type, TypeId, Unit};

/// A number type: an integer (or an address) with a width in bits, or a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Num {
    Int(u32),
    Float(FloatKind),
}

impl Num {
    pub fn bits(self) -> u32 {
        match self {
            Num::Int(bits) => bits,
            Num::Float(kind) => kind.bits(),
        }
    }
    /// Returns the mask of the number's bits.
    pub fn mask(self) -> u64 {
        match self.bits() {
            0..64 => (1 << self.bits()) - 1,
            _ => u64::MAX,
        }
    }
    /// Returns the size in memory, in bytes.
    pub fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }
}

/// The layout of a type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Num(Num),
    /// A vector with contiguous lanes.
    Vector(Num, u32),
    /// An aggregate: offset in bytes and shape of each member.
    Aggregate(Box<[(u64, Shape)]>),
}

impl Shape {
    /// Returns the shape of a type.
    ///
    /// # Errors
    ///
    /// The reason why the machine does not support the type.
    pub fn of(unit: &Unit, ty: TypeId) -> Result<Shape, &'static str> {
        match unit.types.get(ty) {
            Type::Int(_) | Type::Float(_) | Type::Ptr(_) => num(unit, ty).map(Shape::Num),
            Type::Vector { scalable: true, .. } => Err("scalable vectors"),
            Type::Vector { elem, len, .. } => Ok(Shape::Vector(num(unit, *elem)?, *len)),
            Type::Array { elem, len } => {
                if *len > 1 << 20 {
                    return Err("values of more than a million elements");
                }
                let stride = unit.layout.size_bytes(unit, *elem);
                let shape = Shape::of(unit, *elem)?;
                Ok(Shape::Aggregate(
                    (0..*len).map(|i| (i * stride, shape.clone())).collect(),
                ))
            }
            Type::Struct { fields, .. } => {
                let offset = |i: usize| unit.layout.field_offset_bytes(unit, ty, i as u64);
                let members = fields.iter().enumerate();
                let members: Result<Box<[_]>, _> = members
                    .map(|(i, f)| Ok((offset(i), Shape::of(unit, *f)?)))
                    .collect();
                Ok(Shape::Aggregate(members?))
            }
            Type::Void | Type::Func { .. } | Type::Opaque(_) => Err("values of this type"),
        }
    }

    /// Returns the number type of a scalar or of a vector's lanes.
    pub fn num(&self) -> Option<Num> {
        match self {
            Shape::Num(num) | Shape::Vector(num, _) => Some(*num),
            Shape::Aggregate(_) => None,
        }
    }
    /// Returns the number of lanes of a vector.
    pub fn lanes(&self) -> Option<usize> {
        match self {
            Shape::Vector(_, len) => Some(*len as usize),
            _ => None,
        }
    }

    /// Returns the extent in memory, from the first to the last byte, without tail padding.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Shape::Num(num) => num.bytes() as u64,
            Shape::Vector(num, len) => u64::from(num.bits() * len).div_ceil(8),
            Shape::Aggregate(members) => {
                let ends = members.iter().map(|(offset, m)| offset + m.size_bytes());
                ends.max().unwrap_or(0)
            }
        }
    }

    /// Returns the all-zero value.
    pub fn zero(&self) -> Value {
        match self {
            Shape::Num(num) => Value::number(num.bits(), 0),
            Shape::Vector(num, len) => {
                Value::Elements(vec![Value::number(num.bits(), 0); *len as usize].into())
            }
            Shape::Aggregate(members) => {
                Value::Elements(members.iter().map(|(_, m)| m.zero()).collect())
            }
        }
    }
}

fn num(unit: &Unit, ty: TypeId) -> Result<Num, &'static str> {
    match *unit.types.get(ty) {
        Type::Int(bits @ 1..=128) => Ok(Num::Int(bits)),
        Type::Int(_) => Err("integers of more than 128 bits"),
        Type::Float(kind) => Ok(Num::Float(kind)),
        Type::Ptr(space) if unit.layout.pointer_size_bytes(space) == 8 => Ok(Num::Int(64)),
        Type::Ptr(_) => Err("pointers of a size other than 8 bytes"),
        _ => Err("values of this type"),
    }
}
