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
        let found = readings(body, op).iter().find(|reading| {
            let cuts = reading.cuts(unit, body, narrow, DEPTH_MAX);
            cuts.is_some_and(|cuts| cuts > 0)
        });
        let Some(reading) = found else {
            continue;
        };
        let value = reading.build(unit, body, narrow, DEPTH_MAX, &mut wide);
        let old = body.result(op);
        body.replace_uses(old, value);
        loose.push(old);
    }
    gradus_edit::sweep_from(unit, body, loose);
}

/// Whether an op extends a shorter integer to 64 bits.
fn is_extension(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Cast(CastOp::SExt | CastOp::ZExt))
        && unit.types.int_bits(body.ty(body.result(op))) == Some(64)
        && unit.types.int_bits(body.ty(body.operand(op, 0))).is_some()
}

/// How a narrow number may be read where an op extends it.
fn readings(body: &Body, op: Op) -> &'static [Reading] {
    match body.kind(op) {
        OpKind::Cast(CastOp::SExt) => &[Reading::Signed],
        _ if body.ops[op].flags.has(Flags::NNEG) => &[Reading::Signed, Reading::Unsigned],
        _ => &[Reading::Unsigned],
    }
}

/// Which number the bits of a narrow integer are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    Signed,
    Unsigned,
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

impl Reading {
    /// The flag that says that an op did not wrap, or cut anything away.
    fn exact(self) -> Flags {
        match self {
            Reading::Signed => Flags::NSW,
            Reading::Unsigned => Flags::NUW,
        }
    }

    fn made(self, unit: &Unit, body: &Body, value: Value) -> Made {
        let Some(op) = body.def_op(value) else {
            return Made::Whole;
        };
        let exact = body.ops[op].flags.has(self.exact());
        match *body.kind(op) {
            OpKind::Cast(CastOp::Trunc) if exact => {
                let from = body.operand(op, 0);
                match unit.types.int_bits(body.ty(from)) {
                    Some(64) => Made::Cut(from),
                    _ => Made::Whole,
                }
            }
            OpKind::Binary(kind @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)) if exact => {
                Made::By(op, kind)
            }
            // Of every bit by itself, the sign's copies as well.
            OpKind::Binary(BinaryOp::Or) => Made::By(op, BinaryOp::Or),
            _ => Made::Whole,
        }
    }

    /// How many cuts go where a value is computed in 64 bits; `None` where that takes more extensions than
    /// there were: of anything but constants and what comes from outside of the region in which it is used.
    fn cuts(self, unit: &Unit, body: &Body, value: Value, depth: usize) -> Option<usize> {
        if body.as_const(value).is_some() {
            return self.number(unit, body, value).map(|_| 0);
        }
        match self.made(unit, body, value) {
            Made::Cut(_) => Some(1),
            Made::By(op, _) if depth > 0 => {
                let part = |part: Value| {
                    let away = body.region_of(part) != body.parent(op);
                    self.cuts(unit, body, part, depth - 1)
                        .or((away && body.as_const(part).is_none()).then_some(0))
                };
                Some(part(body.operand(op, 0))? + part(body.operand(op, 1))?)
            }
            _ => None,
        }
    }

    /// The number that a narrow constant is.
    fn number(self, unit: &Unit, body: &Body, value: Value) -> Option<i64> {
        let signed = body.as_int(unit, value)?;
        let bits = unit.types.int_bits(body.ty(value))?;
        match self {
            Reading::Unsigned if bits < 64 => Some(signed & ((1 << bits) - 1)),
            _ => Some(signed),
        }
    }

    /// The value in 64 bits: beside the narrow one, where all that it takes is there.
    fn build(
        self,
        unit: &mut Unit,
        body: &mut Body,
        value: Value,
        depth: usize,
        wide: &mut HashMap<(Value, Reading), Value>,
    ) -> Value {
        if let Some(&known) = wide.get(&(value, self)) {
            return known;
        }
        let found = match (self.number(unit, body, value), self.made(unit, body, value)) {
            (Some(number), _) => return Builder::new(unit, body).i64(number),
            (None, Made::Cut(from)) => from,
            (None, Made::By(op, kind)) if self.cuts(unit, body, value, depth).is_some() => {
                let parts = [body.operand(op, 0), body.operand(op, 1)];
                let [x, y] = parts.map(|part| self.build(unit, body, part, depth - 1, wide));
                let (flags, loc) = (body.ops[op].flags, body.ops[op].loc);
                let mut b = Builder::new(unit, body);
                b.at_op(op);
                b.loc = loc;
                let made = b.binary(kind, x, y);
                // What fits into fewer bits wraps in 64 neither way, if it is read as it was.
                let disjoint = flags.and(Flags::DISJOINT);
                b.set_flags(made, self.flags(kind, flags).with(disjoint));
                made
            }
            (None, _) => self.extend(unit, body, value),
        };
        wide.insert((value, self), found);
        found
    }

    /// The flags of an op in 64 bits whose narrow form had `flags`.
    fn flags(self, kind: BinaryOp, flags: Flags) -> Flags {
        match (self, kind) {
            (_, BinaryOp::Or) => Flags::NONE,
            // Of unsigned sums nothing is known in the longer type.
            (Reading::Signed, _) => flags.and(Flags::NSW),
            (Reading::Unsigned, _) => Flags::NUW.with(Flags::NSW),
        }
    }

    /// The extension of a value, made where the value is.
    fn extend(self, unit: &mut Unit, body: &mut Body, value: Value) -> Value {
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
        let cast = match self {
            Reading::Signed => CastOp::SExt,
            Reading::Unsigned => CastOp::ZExt,
        };
        b.cast(cast, value, long)
    }
}

#[cfg(test)]
mod tests {
    use super::widen;
    use gradus_ir::{parse, print_function, verify_function};

    /// The code of a loop that stores at an index, after its index was widened.
    fn widened(index: &str) -> String {
        extended(index, "sext")
    }

    /// The same of one that is extended by `cast`.
    fn extended(index: &str, cast: &str) -> String {
        let text = format!(
            "func @f(%p: ptr, %n: i64, %k: i32) -> void {{ for %i < %n {{ {index} %w = {cast} %x -> i64 %q = addr f64, %p, %w store 1.0, %q yield }} return }}"
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
    fn an_index_without_a_sign_is_extended_by_zeros() {
        let index =
            "%t = trunc nuw %i -> i32 %s = add nuw %k, %t %x = or disjoint %s, i32 -2147483648";
        for cast in ["zext", "zext nneg"] {
            let code = extended(index, cast);
            assert!(!code.contains("trunc"), "{code}");
            assert_eq!(code.matches("zext").count(), 1, "{code}");
            assert!(
                code.contains("add nuw nsw") && code.contains("2147483648"),
                "{code}"
            );
            assert!(!code.contains("-2147483648"), "{code}");
        }
        for (index, cast) in [
            ("%t = trunc nuw %i -> i32 %x = add nuw %k, %t", "sext"),
            ("%t = trunc nsw %i -> i32 %x = add nsw %k, %t", "zext"),
            ("%t = trunc nuw %i -> i32 %x = add nsw %k, %t", "zext nneg"),
        ] {
            let code = extended(index, cast);
            assert!(code.contains("trunc"), "{code}");
        }
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
