//! Loads and stores of typed values: numbers, vectors and aggregates in the layout of a [`Shape`].
//!
//! Memory operations and external functions access memory by shape; `memory.rs` accesses up to 8 bytes.

use crate::memory::Memory;
use crate::trap::{Eval, TrapKind, fault};
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};

impl Shape {
    /// Loads a value from memory.
    pub fn load(&self, memory: &Memory, address: u64) -> Eval<Value> {
        match self {
            Shape::Num(num) => load_num(memory, address, *num),
            Shape::Vector(num, len) if !num.bits().is_multiple_of(8) => {
                load_packed(memory, address, *num, *len)
            }
            Shape::Vector(num, len) => {
                let stride = num.bytes() as u64;
                let lanes = (0..u64::from(*len))
                    .map(|i| load_num(memory, address.wrapping_add(i * stride), *num));
                Ok(Value::Elements(lanes.collect::<Eval<_>>()?))
            }
            Shape::Aggregate(members) => {
                let values = members
                    .iter()
                    .map(|(offset, shape)| shape.load(memory, address.wrapping_add(*offset)));
                Ok(Value::Elements(values.collect::<Eval<_>>()?))
            }
        }
    }

    /// Stores a value to memory.
    pub fn store(&self, memory: &mut Memory, address: u64, value: &Value) -> Eval<()> {
        match self {
            Shape::Num(num) => store_num(memory, address, *num, value),
            Shape::Vector(num, len) if !num.bits().is_multiple_of(8) => {
                store_packed(memory, address, *num, *len, value)
            }
            Shape::Vector(num, len) => {
                let stride = num.bytes() as u64;
                (0..u64::from(*len)).try_for_each(|i| {
                    let lane = value.lane(i as usize);
                    store_num(memory, address.wrapping_add(i * stride), *num, &lane)
                })
            }
            Shape::Aggregate(members) => {
                members.iter().enumerate().try_for_each(|(i, (offset, m))| {
                    m.store(memory, address.wrapping_add(*offset), &value.lane(i))
                })
            }
        }
    }
}

fn load_num(memory: &Memory, address: u64, num: Num) -> Eval<Value> {
    let size = num.bytes();
    if size <= 8 {
        let value = memory.read(address, size)?;
        return Ok(match value {
            Value::Bits(bits) => Value::Bits(bits & num.mask()),
            value => value,
        });
    }
    let low = memory.read(address, 8)?;
    let high = memory.read(address.wrapping_add(8), size - 8)?;
    Ok(match (low, high) {
        (Value::Bits(low), Value::Bits(high)) => {
            let bits = u128::from(high) << 64 | u128::from(low);
            let unused = 128 - num.bits();
            Value::Wide(Box::new(bits << unused >> unused))
        }
        (Value::Poison, _) | (_, Value::Poison) => Value::Poison,
        _ => Value::UNDEF,
    })
}

fn store_num(memory: &mut Memory, address: u64, num: Num, value: &Value) -> Eval<()> {
    let size = num.bytes();
    if size <= 8 {
        return memory.write(address, size, value);
    }
    let (low, high) = match value {
        Value::Wide(bits) => (
            Value::Bits(**bits as u64),
            Value::Bits((**bits >> 64) as u64),
        ),
        Value::Bits(bits) => (Value::Bits(*bits), Value::Bits(0)),
        other => (other.clone(), other.clone()),
    };
    memory.write(address, 8, &low)?;
    memory.write(address.wrapping_add(8), size - 8, &high)
}

/// Loads a vector whose lane width is not a multiple of 8 bits; lanes are bit-packed.
fn load_packed(memory: &Memory, address: u64, num: Num, len: u32) -> Eval<Value> {
    let total = num.bits() * len;
    if total > 128 {
        return fault(
            TrapKind::Unsupported,
            "vectors of more than 128 bits with non-byte-sized integers in memory",
        );
    }
    let whole = load_num(memory, address, Num::Int(total))?;
    let lane = |i: u32| match whole.wide() {
        Some(bits) => Value::Bits((bits >> (i * num.bits())) as u64 & num.mask()),
        None => whole.lane(0),
    };
    Ok(Value::Elements((0..len).map(lane).collect()))
}

fn store_packed(memory: &mut Memory, address: u64, num: Num, len: u32, value: &Value) -> Eval<()> {
    let total = num.bits() * len;
    if total > 128 {
        return fault(
            TrapKind::Unsupported,
            "vectors of more than 128 bits with non-byte-sized integers in memory",
        );
    }
    let mut whole = 0u128;
    for i in 0..len {
        match value.lane(i as usize) {
            Value::Bits(bits) => whole |= u128::from(bits) << (i * num.bits()),
            lane => return store_num(memory, address, Num::Int(total), &lane),
        }
    }
    store_num(
        memory,
        address,
        Num::Int(total),
        &Value::number(total, whole),
    )
}
