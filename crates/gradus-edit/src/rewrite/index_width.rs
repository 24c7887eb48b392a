//! Conversion of counts and indices between 64 bits and another integer type.
//!
//! Runtime calls and emitted loops count in 64 bits, while an op of the program counts in the type of its source.

use gradus_ir::{Builder, CastOp, TypeId, Value};

/// Converts an unsigned count to 64 bits.
pub fn to_i64(b: &mut Builder<'_>, count: Value) -> Value {
    let long = b.unit.types.int(64);
    match b.unit.types.int_bits(b.body.ty(count)) {
        Some(bits) if bits > 64 => b.cast(CastOp::Trunc, count, long),
        _ => b.cast(CastOp::ZExt, count, long),
    }
}

/// Converts a 64-bit index to the type `like`.
pub fn to_index_type(b: &mut Builder<'_>, index: Value, like: TypeId) -> Value {
    match b.unit.types.int_bits(like) {
        Some(bits) if bits > 64 => b.cast(CastOp::ZExt, index, like),
        _ => b.cast(CastOp::Trunc, index, like),
    }
}
