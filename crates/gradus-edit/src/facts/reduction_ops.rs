//! Emits reduction operations: identity element, combining step, and min/max idioms.

use gradus_ir::externals::MathFn;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, Flags, FloatPredicate, IntPredicate, OpKind, ReduceOp,
    TypeId, Value,
};

/// Returns the identity element of `op`; `None` for a user-declared reduction.
pub fn identity(b: &mut Builder<'_>, op: ReduceOp, ty: TypeId) -> Option<Value> {
    let scalar = b.unit.types.scalar(ty);
    let bits = b.unit.types.int_bits(scalar).unwrap_or(64).min(128);
    let largest = i128::MAX >> (128 - bits);
    Some(match op {
        ReduceOp::FAdd => b.float(ty, -0.0),
        ReduceOp::FMul => b.float(ty, 1.0),
        // `maxnum` and `minnum` ignore a NaN operand unless both operands are NaN.
        ReduceOp::FMax | ReduceOp::FMin => b.float(ty, f64::NAN),
        ReduceOp::FMaximum => b.float(ty, f64::NEG_INFINITY),
        ReduceOp::FMinimum => b.float(ty, f64::INFINITY),
        ReduceOp::And | ReduceOp::UMin => b.int(ty, -1),
        ReduceOp::Mul => b.int(ty, 1),
        ReduceOp::Max => b.int(ty, -largest - 1),
        ReduceOp::Min => b.int(ty, largest),
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor | ReduceOp::UMax => b.zero(ty),
        ReduceOp::Custom => return None,
    })
}

/// Emits `a` combined with `x`. Returns `a` for a user-declared reduction, whose combiner only the program
/// contains.
pub fn combine(b: &mut Builder<'_>, op: ReduceOp, a: Value, x: Value) -> Value {
    match op {
        ReduceOp::Add => b.add(a, x),
        ReduceOp::Mul => b.mul(a, x),
        ReduceOp::And => b.binary(BinaryOp::And, a, x),
        ReduceOp::Or => b.binary(BinaryOp::Or, a, x),
        ReduceOp::Xor => b.binary(BinaryOp::Xor, a, x),
        ReduceOp::Max => emit_min_max(b, IntPredicate::Sgt, a, x),
        ReduceOp::Min => emit_min_max(b, IntPredicate::Slt, a, x),
        ReduceOp::UMax => emit_min_max(b, IntPredicate::Ugt, a, x),
        ReduceOp::UMin => emit_min_max(b, IntPredicate::Ult, a, x),
        ReduceOp::FAdd => b.fadd(a, x),
        ReduceOp::FMul => b.fmul(a, x),
        ReduceOp::FMax => call_math(b, MathFn::Maxnum, a, x),
        ReduceOp::FMin => call_math(b, MathFn::Minnum, a, x),
        ReduceOp::FMaximum => call_math(b, MathFn::Maximum, a, x),
        ReduceOp::FMinimum => call_math(b, MathFn::Minimum, a, x),
        ReduceOp::Custom => a,
    }
}

/// Emits `a` if `a predicate x`, else `x`: the minimum or maximum of two integers.
pub fn emit_min_max(b: &mut Builder<'_>, predicate: IntPredicate, a: Value, x: Value) -> Value {
    let first = b.icmp(predicate, a, x);
    b.select(first, a, x)
}

fn call_math(b: &mut Builder<'_>, f: MathFn, a: Value, x: Value) -> Value {
    let types = [b.body.ty(a), b.body.ty(x)];
    let Some(stem) = f.intrinsic() else {
        unreachable!("min and max are intrinsics");
    };
    let name = f.intrinsic_symbol(b.unit, stem, &types, types[0]);
    let ty = b.unit.types.func(types[0], types.to_vec());
    let func = b.unit.declare(&name, ty, AttrSet::pure_function(true));
    let call = b.call(func, &[a, x]);
    b.body.result(call)
}

/// Recognises integer min/max as `select (icmp …)`; returns the operation and both operands.
pub fn integer_min_max(body: &Body, value: Value) -> Option<(ReduceOp, [Value; 2])> {
    use IntPredicate::*;
    let select = body.def_op(value)?;
    let test = body.def_op(body.operands(select).next()?)?;
    let (OpKind::Select, OpKind::ICmp(predicate)) = (body.kind(select), body.kind(test)) else {
        return None;
    };
    let arms = [body.operand(select, 1), body.operand(select, 2)];
    let compared = [body.operand(test, 0), body.operand(test, 1)];
    let straight = compared == arms;
    if !straight && compared != [arms[1], arms[0]] {
        return None;
    }
    let op = match (predicate, straight) {
        (Sgt | Sge, true) | (Slt | Sle, false) => ReduceOp::Max,
        (Slt | Sle, true) | (Sgt | Sge, false) => ReduceOp::Min,
        (Ugt | Uge, true) | (Ult | Ule, false) => ReduceOp::UMax,
        (Ult | Ule, true) | (Ugt | Uge, false) => ReduceOp::UMin,
        (Eq | Ne, _) => return None,
    };
    Some((op, arms))
}

/// Floating-point min/max idiom: `first predicate second ? first : second`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinMax {
    /// `Olt`, `Ole`, `Ogt` or `Oge`. The result is `second` if either operand is a NaN.
    pub predicate: FloatPredicate,
    /// Result if the comparison holds.
    pub first: Value,
    /// Result if the comparison does not hold.
    pub second: Value,
    /// Fast-math flags of the comparison and of the select.
    flags: [Flags; 2],
}

impl MinMax {
    /// Returns the min/max idiom that defines `value`, if any.
    pub fn of(body: &Body, value: Value) -> Option<MinMax> {
        use FloatPredicate::*;
        let select = body.def_op(value)?;
        let test = body.def_op(body.operands(select).next()?)?;
        let (OpKind::Select, OpKind::FCmp(predicate)) = (body.kind(select), body.kind(test)) else {
            return None;
        };
        let mut arms = (body.operand(select, 1), body.operand(select, 2));
        let mut predicate = *predicate;
        if matches!(predicate, Ult | Ule | Ugt | Uge) {
            predicate = predicate.inverse();
            arms = (arms.1, arms.0);
        }
        let compared = (body.operand(test, 0), body.operand(test, 1));
        if compared != arms {
            predicate = predicate.swapped();
        }
        let same = compared == arms || compared == (arms.1, arms.0);
        let choice = MinMax {
            predicate,
            first: arms.0,
            second: arms.1,
            flags: [body.ops[test].flags, body.ops[select].flags],
        };
        (same && matches!(predicate, Olt | Ole | Ogt | Oge)).then_some(choice)
    }

    /// Emits the idiom with the operands `first` and `second`.
    pub fn emit(&self, b: &mut Builder<'_>, first: Value, second: Value) -> Value {
        let test = b.fcmp(self.predicate, first, second);
        b.set_flags(test, self.flags[0]);
        let value = b.select(test, first, second);
        b.set_flags(value, self.flags[1]);
        value
    }
}
