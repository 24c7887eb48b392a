//! Index widening: computes indices that are extended for an address in 64 bits.
//!
//! Outlined loops count in 64 bits, whereas the program's index has a narrow type: `sext (8 · trunc i + 3)`.
//! LLVM widens induction variables only if the loop itself counts in the narrow type. A truncation hides
//! strides and adjacency of addresses. An extension distributes over a non-wrapping (NSW) sum, difference or
//! product, and an extension of a lossless (NSW) truncation is the original value. Removing the casts leaves `8
//! · i + 3`.

use gradus_ir::{BinaryOp, Body, Builder, CastOp, Definition, Flags, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// The maximum depth of the search from an extension.
const DEPTH_MAX: usize = 8;

/// Computes extended indices in 64 bits if a cast becomes dead.
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
            let cuts = reading.dead_truncations(unit, body, narrow, DEPTH_MAX);
            cuts.is_some_and(|cuts| cuts > 0)
        });
        let Some(reading) = found else {
            continue;
        };
        let value = reading.emit_wide(unit, body, narrow, DEPTH_MAX, &mut wide);
        let old = body.result(op);
        body.replace_uses(old, value);
        loose.push(old);
    }
    gradus_edit::remove_dead_defs(unit, body, loose);
}

/// Returns true if `op` extends a narrower integer to 64 bits.
fn is_extension(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Cast(CastOp::SExt | CastOp::ZExt))
        && unit.types.int_bits(body.ty(body.result(op))) == Some(64)
        && unit.types.int_bits(body.ty(body.operand(op, 0))).is_some()
}

/// Returns the legal readings of the narrow operand of an extension.
fn readings(body: &Body, op: Op) -> &'static [Reading] {
    match body.kind(op) {
        OpKind::Cast(CastOp::SExt) => &[Reading::Signed],
        _ if body.ops[op].flags.has(Flags::NNEG) => &[Reading::Signed, Reading::Unsigned],
        _ => &[Reading::Unsigned],
    }
}

/// The interpretation of a narrow integer's bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    Signed,
    Unsigned,
}

/// The definition of a narrow value.
enum NarrowDefinition {
    /// A truncation of a 64-bit value.
    Truncated(Value),
    /// A binary op.
    Computed(Op, BinaryOp),
    /// Any other value, extended unchanged.
    Whole,
}

impl Reading {
    /// Returns the no-wrap flag of the reading, which also marks lossless truncations.
    fn no_wrap_flag(self) -> Flags {
        match self {
            Reading::Signed => Flags::NSW,
            Reading::Unsigned => Flags::NUW,
        }
    }

    fn definition(self, unit: &Unit, body: &Body, value: Value) -> NarrowDefinition {
        let Some(op) = body.def_op(value) else {
            return NarrowDefinition::Whole;
        };
        let exact = body.ops[op].flags.has(self.no_wrap_flag());
        match *body.kind(op) {
            OpKind::Cast(CastOp::Trunc) if exact => {
                let from = body.operand(op, 0);
                match unit.types.int_bits(body.ty(from)) {
                    Some(64) => NarrowDefinition::Truncated(from),
                    _ => NarrowDefinition::Whole,
                }
            }
            OpKind::Binary(kind @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)) if exact => {
                NarrowDefinition::Computed(op, kind)
            }
            // Bitwise, hence also valid for sign bits.
            OpKind::Binary(BinaryOp::Or) => NarrowDefinition::Computed(op, BinaryOp::Or),
            _ => NarrowDefinition::Whole,
        }
    }

    /// Returns the number of truncations that become dead if `value` is computed in 64 bits. `None` if the
    /// computation needs new extensions of anything but constants and values from outside of the using region.
    fn dead_truncations(
        self,
        unit: &Unit,
        body: &Body,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        if body.as_const(value).is_some() {
            return self.constant_value(unit, body, value).map(|_| 0);
        }
        match self.definition(unit, body, value) {
            NarrowDefinition::Truncated(_) => Some(1),
            NarrowDefinition::Computed(op, _) if depth > 0 => {
                let part = |part: Value| {
                    let away = body.region_of(part) != body.parent(op);
                    self.dead_truncations(unit, body, part, depth - 1)
                        .or((away && body.as_const(part).is_none()).then_some(0))
                };
                Some(part(body.operand(op, 0))? + part(body.operand(op, 1))?)
            }
            _ => None,
        }
    }

    /// Returns the number that a narrow constant denotes.
    fn constant_value(self, unit: &Unit, body: &Body, value: Value) -> Option<i64> {
        let signed = body.as_int(unit, value)?;
        let bits = unit.types.int_bits(body.ty(value))?;
        match self {
            Reading::Unsigned if bits < 64 => Some(signed & ((1 << bits) - 1)),
            _ => Some(signed),
        }
    }

    /// Emits the 64-bit value, next to the narrow value if all operands are available.
    fn emit_wide(
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
        let found = match (
            self.constant_value(unit, body, value),
            self.definition(unit, body, value),
        ) {
            (Some(number), _) => return Builder::new(unit, body).i64(number),
            (None, NarrowDefinition::Truncated(from)) => from,
            (None, NarrowDefinition::Computed(op, kind))
                if self.dead_truncations(unit, body, value, depth).is_some() =>
            {
                let parts = [body.operand(op, 0), body.operand(op, 1)];
                let [x, y] = parts.map(|part| self.emit_wide(unit, body, part, depth - 1, wide));
                let (flags, loc) = (body.ops[op].flags, body.ops[op].loc);
                let mut b = Builder::new(unit, body);
                b.set_insertion_before(op);
                b.loc = loc;
                let made = b.binary(kind, x, y);
                // A value that fits into fewer bits wraps in 64 bits neither as signed nor as unsigned, if read
                // as before.
                let disjoint = flags.and(Flags::DISJOINT);
                b.set_flags(made, self.wide_flags(kind, flags).with(disjoint));
                made
            }
            (None, _) => self.extend(unit, body, value),
        };
        wide.insert((value, self), found);
        found
    }

    /// Returns the flags of the 64-bit op for a narrow op with `flags`.
    fn wide_flags(self, kind: BinaryOp, flags: Flags) -> Flags {
        match (self, kind) {
            (_, BinaryOp::Or) => Flags::NONE,
            // Unsigned wrapping of the wider op is unknown.
            (Reading::Signed, _) => flags.and(Flags::NSW),
            (Reading::Unsigned, _) => Flags::NUW.with(Flags::NSW),
        }
    }

    /// Emits the extension directly after the definition of `value`.
    fn extend(self, unit: &mut Unit, body: &mut Body, value: Value) -> Value {
        let next = match body.values[value].def {
            Definition::Param(region, _) => body.first(region),
            Definition::Result(op, _) => body.next(op),
            Definition::Const(_) => None,
        };
        let mut b = Builder::new(unit, body);
        if let Some(next) = next {
            b.set_insertion_before(next);
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

    /// Returns the code of a loop that stores at `index`, after widening of a sign-extended index.
    fn widened(index: &str) -> String {
        extended(index, "sext")
    }

    /// Like [`widened`], with extension by `cast`.
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
    fn wrapping_index_is_unchanged() {
        for index in [
            "%t = trunc %i -> i32 %x = mul nsw %t, i32 8",
            "%t = trunc nsw %i -> i32 %x = mul nuw %t, i32 8",
            "%t = trunc nsw %i -> i32 %m = shl %t, i32 3 %x = add nsw %m, i32 1",
            // A value loaded in the loop would need an extension in place of the sum's extension.
            "%t = trunc nsw %i -> i32 %l = load %p -> i32 %x = add nsw %t, %l",
        ] {
            let code = widened(index);
            assert!(code.contains("trunc") && code.contains("sext %x"), "{code}");
        }
    }
}
