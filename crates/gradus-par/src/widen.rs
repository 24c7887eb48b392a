//! Indices that are extended for an address are computed in 64 bits.
//!
//! A loop of a function made here counts in 64 bits, while the program's index has its own type: `sext (8 · trunc i +
//! 3)`. LLVM makes such sums wide where the loop itself counts in the narrow type; behind a cut it sees neither how
//! addresses move along nor that two of them are neighbours. The extension of a sum, difference or product that
//! does not wrap (NSW) is that of the extended parts, and an extension of what was cut without a loss (NSW)
//! is what was cut: so the casts go, `8 · i + 3` is left.

use gradus_ir::{BinaryOp, Body, Builder, CastOp, Definition, Flags, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// How far an extension is followed.
const DEPTH_MAX: usize = 8;

/// Computes in 64 bits what is extended to as many, where that takes a cast away.
pub(crate) fn widen(unit: &mut Unit, body: &mut Body) {
    let extensions: Vec<Op> = body
        .walk(body.root())
        .filter(|op| is_extension(unit, body, *op))
        .collect();
    let mut wide = HashMap::new();
    let mut loose = Vec::new();
    for op in extensions {
        let narrow = body.operand(op, 0);
        if cuts(unit, body, narrow, DEPTH_MAX).is_none_or(|cuts| cuts == 0) {
            continue;
        }
        let value = build(unit, body, narrow, DEPTH_MAX, &mut wide);
        let old = body.result(op);
        body.replace_uses(old, value);
        loose.push(old);
    }
    gradus_edit::sweep_from(unit, body, loose);
}

/// Whether an op extends a shorter integer by its sign to 64 bits; also one that has none, as is promised.
fn is_extension(unit: &Unit, body: &Body, op: Op) -> bool {
    let kind = match body.kind(op) {
        OpKind::Cast(CastOp::SExt) => true,
        OpKind::Cast(CastOp::ZExt) => body.ops[op].flags.has(Flags::NNEG),
        _ => false,
    };
    kind && unit.types.int_bits(body.ty(body.result(op))) == Some(64)
        && unit.types.int_bits(body.ty(body.operand(op, 0))).is_some()
}

/// What a narrow value is made of.
enum Made {
    /// It is cut from this, which has 64 bits.
    Cut(Value),
    /// By this op, from its operands.
    By(Op, BinaryOp),
    /// It is extended as it is.
    Whole,
}

fn made(unit: &Unit, body: &Body, value: Value) -> Made {
    let Some(op) = body.def_op(value) else {
        return Made::Whole;
    };
    let flags = body.ops[op].flags;
    match *body.kind(op) {
        OpKind::Cast(CastOp::Trunc) if flags.has(Flags::NSW) => {
            let from = body.operand(op, 0);
            match unit.types.int_bits(body.ty(from)) {
                Some(64) => Made::Cut(from),
                _ => Made::Whole,
            }
        }
        OpKind::Binary(kind @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul))
            if flags.has(Flags::NSW) =>
        {
            Made::By(op, kind)
        }
        // Of every bit by itself, the sign's copies as well.
        OpKind::Binary(BinaryOp::Or) => Made::By(op, BinaryOp::Or),
        _ => Made::Whole,
    }
}

/// How many cuts go where a value is computed in 64 bits; `None` where that takes more extensions than
/// there were: of anything but constants and what comes from outside of the region in which it is used.
fn cuts(unit: &Unit, body: &Body, value: Value, depth: usize) -> Option<usize> {
    if body.as_const(value).is_some() {
        return body.as_int(unit, value).map(|_| 0);
    }
    match made(unit, body, value) {
        Made::Cut(_) => Some(1),
        Made::By(op, _) if depth > 0 => {
            let part = |part: Value| {
                let away = body.region_of(part) != body.parent(op);
                cuts(unit, body, part, depth - 1)
                    .or((away && body.as_const(part).is_none()).then_some(0))
            };
            Some(part(body.operand(op, 0))? + part(body.operand(op, 1))?)
        }
        _ => None,
    }
}

/// The value in 64 bits: beside the narrow one, where all that it takes is there.
fn build(
    unit: &mut Unit,
    body: &mut Body,
    value: Value,
    depth: usize,
    wide: &mut HashMap<Value, Value>,
) -> Value {
    if let Some(&known) = wide.get(&value) {
        return known;
    }
    let found = match (body.as_int(unit, value), made(unit, body, value)) {
        (Some(number), _) => return Builder::new(unit, body).i64(number),
        (None, Made::Cut(from)) => from,
        (None, Made::By(op, kind)) if cuts(unit, body, value, depth).is_some() => {
            let parts = [body.operand(op, 0), body.operand(op, 1)];
            let [x, y] = parts.map(|part| build(unit, body, part, depth - 1, wide));
            let (flags, loc) = (body.ops[op].flags, body.ops[op].loc);
            let mut b = Builder::new(unit, body);
            b.at_op(op);
            b.loc = loc;
            let made = b.binary(kind, x, y);
            // Of unsigned sums nothing is known in the longer type.
            b.set_flags(made, flags.and(Flags::NSW.with(Flags::DISJOINT)));
            made
        }
        (None, _) => extend(unit, body, value),
    };
    wide.insert(value, found);
    found
}

/// The extension of a value, made where the value is.
fn extend(unit: &mut Unit, body: &mut Body, value: Value) -> Value {
    let next = match body.values[value].def {
        Definition::Param(region, _) => body.first(region),
        Definition::Result(op, _) => body.next(op),
        Definition::Const(_) => None,
    };
    let mut b = Builder::new(unit, body);
    if let Some(next) = next {
        b.at_op(next);
    }
    let long = b.unit.types.int(64);
    b.cast(CastOp::SExt, value, long)
}

#[cfg(test)]
mod tests {
    use super::widen;
    use gradus_ir::{parse, print_function, verify_function};

    /// The code of a loop that stores at an index, after its index was widened.
    fn widened(index: &str) -> String {
        let text = format!(
            "func @f(%p: ptr, %n: i64, %k: i32) -> void {{ for %i < %n {{ {index} %w = sext %x -> i64 %q = addr f64, %p, %w store 1.0, %q yield }} return }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let f = unit.function("f").expect("it is there");
        let mut body = unit.functions[f].body.take().expect("it has code");
        widen(&mut unit, &mut body);
        unit.functions[f].body = Some(body);
        assert_eq!(verify_function(&unit, f), []);
        print_function(&unit, f)
    }

    #[test]
    fn an_index_that_does_not_wrap_is_computed_in_64_bits() {
        let code = widened(
            "%t = trunc nsw %i -> i32 %m = mul nsw %t, i32 -8 %o = or disjoint %m, i32 3 %x = add nsw %o, %k",
        );
        assert!(!code.contains("trunc"), "{code}");
        assert_eq!(code.matches("sext").count(), 1, "{code}");
        assert!(code.contains("mul nsw %i, -8"), "{code}");
    }

    #[test]
    fn one_that_may_wrap_stays() {
        for index in [
            "%t = trunc %i -> i32 %x = mul nsw %t, i32 8",
            "%t = trunc nsw %i -> i32 %x = mul nuw %t, i32 8",
            "%t = trunc nsw %i -> i32 %m = shl %t, i32 3 %x = add nsw %m, i32 1",
            // What is read in the loop would have to be extended in place of the sum.
            "%t = trunc nsw %i -> i32 %l = load %p -> i32 %x = add nsw %t, %l",
        ] {
            let code = widened(index);
            assert!(code.contains("trunc") && code.contains("sext %x"), "{code}");
        }
    }
}
