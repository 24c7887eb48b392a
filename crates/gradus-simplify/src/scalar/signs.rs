//! Sign changes by masks: integers that have all bits of a float except, perhaps, its sign.
//!
//! A mask, a sum or a select of integers may preserve a float's magnitude. The result is the float or its
//! negation. The sign bit may come from one or several other floats (`copysign`, `flipsign`), or from a
//! comparison. The sign of the integer then determines the sign of the result: `negative ? -|x| : |x|`, bit
//! for bit.
//!
//! Step 1: [`magnitude`](Reader::magnitude) finds the float, from the integer down through ops that change
//! only sign bits. Step 2 tests the sign of the integer. Step 3 applies the sign to the float's magnitude.

use crate::scalar::constants::{integer_lanes, integer_splat};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, IntPredicate, OpKind, Type, TypeId, Unit, Value,
};

/// The depth to which the operands of an integer are examined.
const DEPTH_MAX: u32 = 8;

/// A float that has the magnitude of an integer's bits.
enum Magnitude {
    /// The float itself.
    Number(Value),
    /// A value that is loaded as an integer.
    Loaded(Value),
    /// One of two magnitudes, by a condition.
    Chosen(Value, Box<[Magnitude; 2]>),
}

/// Interpretation of integers that are loaded and not cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// The bits of floats.
    AreNumbers,
    /// Integers alone.
    AreIntegers,
}

/// Returns the float of type `ty` whose bits an integer holds, if ops changed the float's sign. Does not
/// match patterns with a dedicated operation (`fneg`, `fabs`, `copysign`).
pub(crate) fn of_bits(b: &mut Builder, value: Value, ty: TypeId, loads: Loads) -> Option<Value> {
    let bits = b.unit.types.float_kind(ty)?.bits();
    b.body.def_op(value).filter(|op| {
        let kind = b.body.kind(*op);
        matches!(kind, OpKind::Binary(binary) if !binary.is_float())
    })?;
    if b.unit.types.int_bits(b.body.ty(value)) != Some(bits) {
        return None;
    }
    let reader = Reader {
        unit: b.unit,
        body: b.body,
        ty,
        bits,
        loads,
    };
    let found = reader.magnitude(value, DEPTH_MAX)?;
    let number = found.build(b, ty);
    if is_planted(Mutant::OtherSignDropped) {
        return Some(number);
    }
    let int = b.body.ty(value);
    let zero = b.zero(int);
    let negative = b.icmp(IntPredicate::Slt, value, zero);
    let size = fabs(b, number, ty);
    let opposite = b.fneg(size);
    Some(b.select(negative, opposite, size))
}

/// Returns the absolute value of a float, or of each float of a vector.
fn fabs(b: &mut Builder, number: Value, ty: TypeId) -> Value {
    let bits = b.unit.types.float_kind(ty).map_or(64, |kind| kind.bits());
    let name = match *b.unit.types.get(ty) {
        Type::Vector { len, .. } => format!("llvm.fabs.v{len}f{bits}"),
        _ => format!("llvm.fabs.f{bits}"),
    };
    let signature = b.unit.types.func(ty, vec![ty]);
    let func = b.unit.declare(&name, signature, AttrSet::default());
    let call = b.call(func, &[number]);
    b.body.result(call)
}

impl Magnitude {
    fn build(self, b: &mut Builder, ty: TypeId) -> Value {
        match self {
            Magnitude::Number(value) => value,
            Magnitude::Loaded(bits) => b.cast(CastOp::BitCast, bits, ty),
            Magnitude::Chosen(condition, arms) => {
                let [first, second] = (*arms).map(|arm| arm.build(b, ty));
                b.select(condition, first, second)
            }
        }
    }
}

struct Reader<'a> {
    unit: &'a Unit,
    body: &'a Body,
    ty: TypeId,
    /// The number of bits of one float.
    bits: u32,
    loads: Loads,
}

impl Reader<'_> {
    fn sign(&self) -> u128 {
        1 << (self.bits - 1)
    }
    /// Returns true if `holds` is true of every lane of a constant; a poison lane may have any value.
    fn constant(&self, value: Value, holds: impl Fn(u128) -> bool) -> bool {
        if let Some((n, _)) = integer_splat(self.unit, self.body, value) {
            return holds(n);
        }
        integer_lanes(self.unit, self.body, value)
            .is_some_and(|lanes| lanes.into_iter().flatten().all(holds))
    }
    /// Returns the float whose bits below the sign are those of `value`.
    fn magnitude(&self, value: Value, depth: u32) -> Option<Magnitude> {
        let deeper = depth.checked_sub(1)?;
        let op = self.body.def_op(value)?;
        let operand = |index| self.body.operand(op, index);
        let below = self.sign() - 1;
        match self.body.kind(op) {
            OpKind::Cast(CastOp::BitCast) if self.body.ty(operand(0)) == self.ty => {
                Some(Magnitude::Number(operand(0)))
            }
            OpKind::Load(access) if access.is_plain() && self.loads == Loads::AreNumbers => {
                Some(Magnitude::Loaded(value))
            }
            OpKind::Freeze => self.magnitude(operand(0), deeper),
            OpKind::Select => {
                let first = self.magnitude(operand(1), deeper)?;
                let second = self.magnitude(operand(2), deeper)?;
                Some(Magnitude::Chosen(operand(0), Box::new([first, second])))
            }
            OpKind::Binary(BinaryOp::And) => {
                let keeps = |value| self.constant(value, |n| n & below == below);
                let (masked, mask) = (operand(0), operand(1));
                keeps(mask)
                    .then(|| self.magnitude(masked, deeper))
                    .flatten()
            }
            OpKind::Binary(BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add) => {
                let (a, b) = (operand(0), operand(1));
                if self.only_sign(b, deeper) {
                    return self.magnitude(a, deeper);
                }
                let swapped = self.only_sign(a, deeper);
                swapped.then(|| self.magnitude(b, deeper)).flatten()
            }
            OpKind::Binary(BinaryOp::Sub) => {
                let flips = self.only_sign(operand(1), deeper);
                flips.then(|| self.magnitude(operand(0), deeper)).flatten()
            }
            _ => None,
        }
    }
    /// Returns true if all bits of an integer below the sign are zero.
    fn only_sign(&self, value: Value, depth: u32) -> bool {
        let Some(deeper) = depth.checked_sub(1) else {
            return false;
        };
        if self.body.as_const(value).is_some() {
            return self.constant(value, |n| n & (self.sign() - 1) == 0);
        }
        let Some(op) = self.body.def_op(value) else {
            return false;
        };
        let only = |index| self.only_sign(self.body.operand(op, index), deeper);
        match self.body.kind(op) {
            OpKind::Binary(BinaryOp::And | BinaryOp::Mul) => only(0) || only(1),
            OpKind::Binary(BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add | BinaryOp::Sub) => {
                only(0) && only(1)
            }
            OpKind::Binary(BinaryOp::Shl) => {
                let last = u128::from(self.bits - 1);
                self.constant(self.body.operand(op, 1), |by| by == last)
            }
            OpKind::Select => only(1) && only(2),
            OpKind::Freeze => only(0),
            _ => false,
        }
    }
}
