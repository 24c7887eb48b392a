//! Bit movements: the bits that an op moves unchanged to its result. Decides whether each bit range of a
//! result is a whole bit range of an operand.
//!
//! Ops on integers and vectors of integers move floats, assemble floats from parts, or replace parts of
//! floats. A float moved as a whole keeps its derivative. An assembled float results from integer
//! arithmetic and has no derivative.

use crate::type_analysis::bit_ranges::{image_bits, kind_bytes};
use crate::type_analysis::type_map::BitRange;
use gradus_ir::{BinaryOp, Body, CastOp, Flags, Op, OpKind, Type, TypeId, Unit, Value};
use smallvec::SmallVec;

/// Bits of an operand that an integer op moves unchanged to its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitMove {
    pub from: Value,
    pub from_bit: u32,
    pub to_bit: u32,
    pub bits: u32,
}

/// Returns the movements of an integer op: shifts by constants, masks of one contiguous run of bits, sums
/// of disjoint parts.
pub(crate) fn bit_moves(unit: &Unit, body: &Body, op: Op) -> SmallVec<[BitMove; 3]> {
    let mut list = SmallVec::new();
    let OpKind::Binary(binary) = body.kind(op) else {
        return list;
    };
    let (from, ty) = (body.operand(op, 0), body.ty(body.result(op)));
    if matches!(unit.types.get(ty), Type::Vector { .. }) || binary.is_float() {
        return list;
    }
    let bits = image_bits(unit, ty);
    let mut push = |from, from_bit, to_bit, bits| {
        list.push(BitMove {
            from,
            from_bit,
            to_bit,
            bits,
        });
    };
    let constant = body.as_int(unit, body.operand(op, 1));
    let shift = constant
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n < bits);
    match (binary, shift) {
        (BinaryOp::Shl, Some(by)) => push(from, 0, by, bits - by),
        (BinaryOp::LShr | BinaryOp::AShr, Some(by)) => push(from, by, 0, bits - by),
        (BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add, _) => {
            let Some([a, b]) = disjoint_operand_bits(unit, body, op) else {
                return list;
            };
            for ((value, low, high), other) in [(a, b), (b, a)] {
                match body.as_const(value) {
                    // Bits that both operands may set are excluded, even if the host states disjointness.
                    // The host may know that a bit in between is zero in one operand and set in the other.
                    None => {
                        let (below, above) = (high.min(other.1), low.max(other.2));
                        push(value, low, low, below.saturating_sub(low));
                        push(value, above, above, high.saturating_sub(above));
                    }
                    // Bits untouched by the non-constant operand come from the constant, including its zero
                    // bits.
                    Some(_) => {
                        push(value, 0, 0, other.1);
                        push(value, other.2, other.2, bits.saturating_sub(other.2));
                    }
                }
            }
        }
        (BinaryOp::And, _) => {
            let (low, high) = mask_range(constant, bits);
            push(from, low, low, high - low);
        }
        _ => {}
    }
    list
}

/// Returns true if each of `lanes`, the bit ranges of the result of `op`, is a whole bit range of an
/// operand. An op that assembles a bit range from parts, or replaces part of it, computes a new number.
pub(crate) fn moves_whole_ranges(unit: &Unit, body: &Body, op: Op, lanes: &[BitRange]) -> bool {
    let ends = |lane: &BitRange| lane.bit + kind_bytes(lane.kind) * 8;
    let elements =
        |index: usize| image_bits(unit, unit.types.scalar(body.ty(body.operand(op, index))));
    let in_elements = |bits: u32| {
        let inside = |lane: &BitRange| lane.bit % bits + kind_bytes(lane.kind) * 8 <= bits;
        bits != 0 && lanes.iter().all(inside)
    };
    let beside = |from: u32, bits: u32| {
        lanes.iter().all(|lane| {
            let apart = ends(lane) <= from || from + bits <= lane.bit;
            apart || from <= lane.bit && ends(lane) <= from + bits
        })
    };
    match body.kind(op) {
        OpKind::Binary(_) => {
            let movements = bit_moves(unit, body, op);
            lanes.iter().all(|lane| {
                let inside = |m: &BitMove| m.to_bit <= lane.bit && ends(lane) <= m.to_bit + m.bits;
                movements.iter().any(inside)
            })
        }
        OpKind::InsertElement => {
            let bits = elements(1);
            match body.as_int(unit, body.operand(op, 2)) {
                Some(index) => beside((index as u32).saturating_mul(bits), bits),
                None => in_elements(bits),
            }
        }
        OpKind::Shuffle(mask) => {
            let bits = elements(0).max(1);
            let count = image_bits(unit, body.ty(body.operand(op, 0))) / bits;
            let runs = runs(mask, count);
            // Undefined elements may have any value.
            let is_open = |lane: &BitRange| {
                let (first, end) = (lane.bit / bits, ends(lane).div_ceil(bits));
                (first..end).all(|k| mask.get(k as usize).is_some_and(|from| *from < 0))
            };
            let is_whole = |lane: &BitRange, run: &ShuffleRun| {
                let (start, end) = (run.to * bits, (run.to + run.len) * bits);
                let from = (run.from * bits + lane.bit).saturating_sub(start);
                let whole = from.is_multiple_of(kind_bytes(lane.kind) * 8);
                start <= lane.bit && ends(lane) <= end && whole
            };
            let moved =
                |lane: &BitRange| is_open(lane) || runs.iter().any(|run| is_whole(lane, run));
            lanes.iter().all(moved)
        }
        OpKind::InsertValue(path) => {
            let start = member_bit(unit, body.ty(body.operand(op, 0)), path);
            beside(start, image_bits(unit, body.ty(body.operand(op, 1))))
        }
        OpKind::Cast(_) => lanes.is_empty() || !resizes_vector(unit, body, op),
        _ => true,
    }
}

/// A run of elements that a shuffle moves together: `len` elements, from element `from` of one input
/// vector.
pub(crate) struct ShuffleRun {
    pub second: bool,
    pub from: u32,
    pub to: u32,
    pub len: u32,
}

/// Returns the maximal runs of a shuffle of vectors of `count` elements.
pub(crate) fn runs(mask: &[i32], count: u32) -> Vec<ShuffleRun> {
    let mut list: Vec<ShuffleRun> = Vec::new();
    for (to, &from) in (0..).zip(mask) {
        let Ok(from) = u32::try_from(from) else {
            continue;
        };
        let (second, from) = (from >= count, from % count.max(1));
        match list.last_mut() {
            Some(run)
                if run.second == second && run.from + run.len == from && run.to + run.len == to =>
            {
                run.len += 1;
            }
            _ => list.push(ShuffleRun {
                second,
                from,
                to,
                len: 1,
            }),
        }
    }
    list
}

/// Returns true if a cast changes the element width of a vector and therefore moves the elements.
pub(crate) fn resizes_vector(unit: &Unit, body: &Body, op: Op) -> bool {
    let (from, to) = (body.ty(body.operand(op, 0)), body.ty(body.result(op)));
    matches!(unit.types.get(to), Type::Vector { .. })
        && image_bits(unit, from) != image_bits(unit, to)
}

/// Returns the first bit of a member of an aggregate, by its memory layout.
pub(crate) fn member_bit(unit: &Unit, ty: TypeId, path: &[u32]) -> u32 {
    let (mut ty, mut bytes) = (ty, 0);
    for &index in path {
        bytes += (unit.layout).field_offset_bytes(unit, ty, u64::from(index));
        match unit.types.field(ty, index) {
            Some(member) => ty = member,
            None => break,
        }
    }
    u32::try_from(bytes.saturating_mul(8)).map_or(BEYOND, |bit| bit.min(BEYOND))
}

/// A bit position that no value of a register has. An element or a member beyond has this position, hence it overlaps
/// nothing.
const BEYOND: u32 = 1 << 31;

/// Returns the first bit of element `index` of a vector with elements of `bits` bits. An index beyond the vector is
/// legal, and the result is poison.
pub(crate) fn element_bit(index: impl TryInto<u32>, bits: u32) -> u32 {
    let index = index.try_into().unwrap_or(BEYOND);
    index.saturating_mul(bits).min(BEYOND)
}

/// Returns the bit ranges contributed by the operands of `or`, `xor` or `add`, if the ranges are disjoint.
fn disjoint_operand_bits(unit: &Unit, body: &Body, op: Op) -> Option<[(Value, u32, u32); 2]> {
    let (a, b) = (body.operand(op, 0), body.operand(op, 1));
    let (x, y) = (nonzero_bits(unit, body, a), nonzero_bits(unit, body, b));
    let disjoint = body.ops[op].flags.has(Flags::DISJOINT) || x.1 <= y.0 || y.1 <= x.0;
    disjoint.then_some([(a, x.0, x.1), (b, y.0, y.1)])
}

/// Returns the range of possibly non-zero bits of an integer, from its definition. Sums and differences
/// have no non-zero bits below the lowest bits of both operands.
fn nonzero_bits(unit: &Unit, body: &Body, value: Value) -> (u32, u32) {
    let computed = body.def_op(value);
    match computed.map(|op| (op, body.kind(op))) {
        Some((op, OpKind::Binary(BinaryOp::Add | BinaryOp::Sub))) => {
            let low = |index| nonzero_bits_by_op(unit, body, body.operand(op, index)).0;
            let bits = image_bits(unit, body.ty(value));
            (low(0).min(low(1)).min(bits), bits)
        }
        _ => nonzero_bits_by_op(unit, body, value),
    }
}

/// Computes [`nonzero_bits`] for values that are neither sums nor differences.
fn nonzero_bits_by_op(unit: &Unit, body: &Body, value: Value) -> (u32, u32) {
    let bits = image_bits(unit, body.ty(value));
    if let Some(n) = body.as_int(unit, value) {
        return match n {
            0 => (0, 0),
            n => (
                n.trailing_zeros().min(bits),
                bits.min(64 - n.leading_zeros()),
            ),
        };
    }
    let Some(op) = body.def_op(value) else {
        return (0, bits);
    };
    let by = |index: usize| body.as_int(unit, body.operand(op, index)).unwrap_or(0);
    match body.kind(op) {
        OpKind::Cast(CastOp::ZExt) => (0, image_bits(unit, body.ty(body.operand(op, 0)))),
        OpKind::Binary(BinaryOp::Shl) => {
            let (low, high) = nonzero_bits_by_zext(unit, body, body.operand(op, 0));
            if body.as_int(unit, body.operand(op, 1)).is_none() {
                return (low, bits);
            }
            let by = by(1).clamp(0, i64::from(bits)) as u32;
            (
                low.saturating_add(by).min(bits),
                high.saturating_add(by).min(bits),
            )
        }
        OpKind::Binary(BinaryOp::LShr) => (0, bits - by(1).clamp(0, i64::from(bits)) as u32),
        OpKind::Binary(BinaryOp::And) => match body.as_const(body.operand(op, 1)) {
            Some(_) => nonzero_bits_by_op(unit, body, body.operand(op, 1)),
            None => (0, bits),
        },
        _ => (0, bits),
    }
}

/// Computes [`nonzero_bits`] from zero extensions alone.
fn nonzero_bits_by_zext(unit: &Unit, body: &Body, value: Value) -> (u32, u32) {
    let bits = image_bits(unit, body.ty(value));
    match body.def_op(value) {
        Some(op) if matches!(body.kind(op), OpKind::Cast(CastOp::ZExt)) => {
            (0, image_bits(unit, body.ty(body.operand(op, 0))))
        }
        _ => (0, bits),
    }
}

/// Returns the range of bits selected by a mask if the range is contiguous; otherwise the empty range.
fn mask_range(mask: Option<i64>, bits: u32) -> (u32, u32) {
    let all = if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    let Some(mask) = mask.map(|n| n as u64 & all) else {
        return (0, 0);
    };
    let (low, high) = (mask.trailing_zeros().min(bits), 64 - mask.leading_zeros());
    let run = u64::MAX
        .checked_shr(64 - (high.max(low) - low))
        .unwrap_or(0);
    match mask >> low.min(63) == run {
        true => (low, high.max(low)),
        false => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::{BEYOND, element_bit};
    use crate::{AliasSets, CallGraph, TypeMap};

    #[test]
    fn an_element_beyond_the_vector_overlaps_nothing() {
        assert_eq!(element_bit(3_i64, 32), 96);
        for index in [-1, 1 << 26, (1 << 32) + 1, 1 << 58, i64::MAX] {
            assert_eq!(element_bit(index, 64), BEYOND, "{index}");
        }
    }

    /// A constant index beyond the vector is legal. An index modulo 2³² would name another element.
    #[test]
    fn indices_beyond_the_vector_have_no_lanes() {
        let lanes = |index: i64| {
            let text = format!(
                "func @f(%p: ptr) -> i64 {{
                   %x = load %p -> f64
                   %v = insertelement <2 x f64> zero, %x, 1
                   %w = bitcast %v -> <2 x i64>
                   %i = insertelement %w, 0, {index}
                   %e = extractelement %w, {index}
                   return %e }}"
            );
            let unit = gradus_ir::parse(&text, "program")
                .unwrap_or_else(|e| panic!("{e} {:?}\n{text}", e.labels));
            let func = unit.function("f").expect("it is there");
            let closure = CallGraph::of(&unit, &[func]);
            let memory = AliasSets::of(&unit, &closure);
            let words = TypeMap::of(&unit, &closure, &memory);
            let body = unit.functions[func].body.as_deref().expect("a body");
            let end = body.last(body.root()).expect("the return");
            words.lanes(func, body.operand(end, 0)).len()
        };
        assert_eq!(lanes(1), 1);
        assert_eq!(lanes((1 << 32) + 1), 0);
        assert_eq!(lanes(1 << 58), 0);
    }
}
