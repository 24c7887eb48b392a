//! Start value of a loop index.
//!
//! A `for` counts from zero. If every use of the index adds a single loop-invariant value, the sum is the
//! program's own induction variable and becomes the loop's index. LLVM does not look through such a sum
//! when it follows an address from one iteration to the next; it would reload an element that was just
//! stored.

use crate::export::zero_trip_guard::GuardedTripCount;
use gradus_ir::integers::signed;
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Flags, IntPredicate, Op, OpKind, Type, Unit, Value,
};

/// The most ops that are searched for the range of a value.
const DEPTH_MAX: usize = 4;
/// A value of so many bits plus any reachable trip count fits into 64 bits.
const NARROW_BITS: u32 = 32;

/// The start of a loop index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) from: Value,
    /// The sums that become the loop's index.
    pub(super) sums: Vec<Op>,
    /// No-wrap flags that hold for every increment, including the last.
    pub(super) flags: Flags,
    pub(super) end: End,
}

/// The value of the index after the last iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A value of the program.
    Is(Value),
    /// A sign-extended value of the program.
    Extended(Value),
    /// The start value plus the trip count.
    Sum,
}

/// Matches the start value of a `for`. `runs` is its guarded trip count, if known.
pub(super) fn match_index_start(
    unit: &Unit,
    body: &Body,
    op: Op,
    runs: Option<&GuardedTripCount>,
) -> Option<Start> {
    let region = *body.op_regions(op).first()?;
    let index = *body.region_params(region).first()?;
    let mut sums: Vec<Op> = Vec::new();
    let mut from = None;
    let mut promised = Flags::NUW.with(Flags::NSW);
    for at in body.uses(index) {
        if !matches!(body.kind(at.op), OpKind::Binary(BinaryOp::Add)) {
            return None;
        }
        let other = body.operand(at.op, 1 - at.index as usize);
        if body.is_defined_in(other, region) || from.is_some_and(|from| from != other) {
            return None;
        }
        from = Some(other);
        promised = promised.and(body.ops[at.op].flags);
        sums.push(at.op);
    }
    let from = from?;
    let count = runs.map_or_else(|| body.operand(op, 0), |runs| runs.count);
    let (held, end) = end_and_flags(unit, body, from, count, runs);
    let flags = promised.and(held.with(narrow_value_flags(unit, body, from)));
    // A no-wrap flag of the sums that does not hold for the last increment would be lost: then the index
    // stays.
    let kept = |flag: Flags| flags.has(flag) || !promised.has(flag);
    let enough = match promised.has(Flags::NSW) {
        true => kept(Flags::NSW),
        false => kept(Flags::NUW),
    };
    enough.then_some(Start {
        from,
        sums,
        flags,
        end,
    })
}

/// Returns the no-wrap flags of the increments from `from` to the end, derived from the trip count; and the
/// end.
fn end_and_flags(
    unit: &Unit,
    body: &Body,
    from: Value,
    count: Value,
    runs: Option<&GuardedTripCount>,
) -> (Flags, End) {
    let nothing = (Flags::NONE, End::Sum);
    let Some(op) = body.def_op(count) else {
        return nothing;
    };
    match body.kind(op) {
        OpKind::Binary(BinaryOp::Sub) if body.operand(op, 1) == from => {
            let to = body.operand(op, 0);
            let tested = match runs.and_then(|runs| start_below_end(body, runs, from, to)) {
                Some(true) => Flags::NSW,
                Some(false) => Flags::NUW,
                None => Flags::NONE,
            };
            // No loop runs 2⁶³ times, therefore the end is not below the start.
            (body.ops[op].flags.with(tested), End::Is(to))
        }
        OpKind::Cast(CastOp::ZExt) => {
            let extended = |of: Value| {
                let cast = body.def_op(from)?;
                let is = matches!(body.kind(cast), OpKind::Cast(CastOp::SExt));
                (is && body.operand(cast, 0) == of).then_some(())
            };
            let found = body.def_op(body.operand(op, 0)).and_then(|gap| {
                let is = matches!(body.kind(gap), OpKind::Binary(BinaryOp::Sub));
                let (to, low) = is.then(|| (body.operand(gap, 0), body.operand(gap, 1)))?;
                extended(low)?;
                let signed = start_below_end(body, runs?, low, to)?;
                let fits = int_bits(unit, body, low)? < int_bits(unit, body, from)?;
                (signed && fits).then_some(to)
            });
            found.map_or(nothing, |to| (Flags::NSW, End::Extended(to)))
        }
        _ => nothing,
    }
}

/// Returns whether the loop runs only if `from` is below `to`: `Some(true)` signed, `Some(false)` unsigned.
fn start_below_end(body: &Body, runs: &GuardedTripCount, from: Value, to: Value) -> Option<bool> {
    use IntPredicate::*;
    let test = body.def_op(runs.when)?;
    let OpKind::ICmp(predicate) = *body.kind(test) else {
        return None;
    };
    let predicate = if runs.holds {
        predicate
    } else {
        predicate.inverse()
    };
    let [low, high] = [0, 1].map(|i| body.operand(test, i));
    let predicate = match (low, high) {
        _ if (low, high) == (from, to) => predicate,
        _ if (low, high) == (to, from) => predicate.swapped(),
        _ => return None,
    };
    match predicate {
        Slt => Some(true),
        Ult => Some(false),
        _ => None,
    }
}

/// Returns the no-wrap flags of counting from a value of few bits: no signed wrap; no unsigned wrap either,
/// if the value is not negative.
fn narrow_value_flags(unit: &Unit, body: &Body, value: Value) -> Flags {
    let both = Flags::NSW.with(Flags::NUW);
    if int_bits(unit, body, value) != Some(64) {
        return Flags::NONE;
    }
    let mut left = DEPTH_MAX;
    let mut flags = both;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if let Some(constant) = body.as_const(value) {
            let number = match unit.constant(constant).kind {
                ConstKind::Zero => 0,
                ConstKind::Int(n) => signed(n, 64),
                _ => return Flags::NONE,
            };
            flags = flags.and(match number {
                0.. if number < 1 << NARROW_BITS => both,
                ..0 if number >= -(1 << NARROW_BITS) => Flags::NSW,
                _ => return Flags::NONE,
            });
            continue;
        }
        let Some(op) = body.def_op(value).filter(|_| left > 0) else {
            return Flags::NONE;
        };
        left -= 1;
        match body.kind(op) {
            OpKind::Cast(cast @ (CastOp::SExt | CastOp::ZExt))
                if int_bits(unit, body, body.operand(op, 0)).is_some_and(|b| b <= NARROW_BITS) =>
            {
                if *cast == CastOp::SExt {
                    flags = flags.and(Flags::NSW);
                }
            }
            OpKind::Select => open.extend([body.operand(op, 1), body.operand(op, 2)]),
            OpKind::If => {
                let Some(number) = body.results(op).iter().position(|&r| r == value) else {
                    return Flags::NONE;
                };
                for &arm in body.op_regions(op) {
                    match body.last(arm) {
                        Some(end) if matches!(body.kind(end), OpKind::Yield) => {
                            open.push(body.operand(end, number));
                        }
                        _ => return Flags::NONE,
                    }
                }
            }
            _ => return Flags::NONE,
        }
    }
    flags
}

fn int_bits(unit: &Unit, body: &Body, value: Value) -> Option<u32> {
    match *unit.types.get(body.ty(value)) {
        Type::Int(bits) => Some(bits),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Start, match_index_start};
    use crate::export::zero_trip_guard::match_guarded_trip_count;
    use gradus_ir::{Body, Flags, OpKind, Symbol, Value, parse};

    /// Matches the first `for` of a function with the given code and passes the result to `of`.
    fn read<T>(code: &str, of: impl Fn(&Body, Option<Start>) -> T) -> T {
        let params = "%a: i64, %b: i64, %s: i32, %t: i32, %p: ptr";
        let text = format!("func @f({params}) {{ {code} return }}");
        let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let Some(Symbol::Func(f)) = unit.symbol("f") else {
            panic!("it is there");
        };
        let body = unit.functions[f].body.as_deref().expect("it has code");
        let is_for = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::For { .. });
        let op = body.walk(body.root()).find(is_for).expect("the loop");
        let runs = match_guarded_trip_count(&unit, body, op);
        of(body, match_index_start(&unit, body, op, runs.as_ref()))
    }

    /// Returns the flags of the increment.
    fn flags(code: &str) -> Option<Flags> {
        read(code, |_, start| start.map(|start| start.flags))
    }

    /// Returns code that stores to the element at `sum`, an expression of the index `%i`.
    fn with(before: &str, runs: &str, sum: &str) -> String {
        format!("{before} for %i < {runs} {{ %k = {sum} %q = addr i64, %p, %k store 1, %q yield }}")
    }

    #[test]
    fn only_sum_of_index_becomes_index() {
        let code = with("%n = sub nuw nsw %b, %a", "%n", "add nuw nsw %a, %i");
        let (from, end) = read(&code, |body, start| {
            let start = start.expect("it begins at %a");
            assert_eq!(
                (start.sums.len(), start.flags),
                (1, Flags::NUW.with(Flags::NSW))
            );
            let param = |v: Value| body.params().iter().position(|&p| p == v);
            let End::Is(to) = start.end else {
                panic!("it ends at %b");
            };
            (param(start.from), param(to))
        });
        assert_eq!((from, end), (Some(0), Some(1)));
    }

    #[test]
    fn unproven_last_step_drops_flags() {
        // `%a + %b` may be the largest value, so that the last increment wraps.
        assert_eq!(flags(&with("", "%b", "add nsw %a, %i")), None);
        assert_eq!(flags(&with("", "%b", "add nuw %a, %i")), None);
        assert_eq!(flags(&with("", "%b", "add %a, %i")), Some(Flags::NONE));
        // The test implies that `%a` is below `%b`, so no increment up to `%b` wraps.
        let tested = "%c = icmp slt %a, %b %d = sub %b, %a %n = select %c, %d, 0";
        assert_eq!(
            flags(&with(tested, "%n", "add nsw %a, %i")),
            Some(Flags::NSW)
        );
        assert_eq!(flags(&with(tested, "%n", "add nuw %a, %i")), None);
        let unsigned = "%c = icmp uge %a, %b %d = sub %b, %a %n = select %c, 0, %d";
        assert_eq!(
            flags(&with(unsigned, "%n", "add nuw %a, %i")),
            Some(Flags::NUW)
        );
        assert_eq!(flags(&with(unsigned, "%n", "add nsw %a, %i")), None);
    }

    #[test]
    fn narrow_start_never_wraps() {
        let wide = "%w = sext %s -> i64";
        assert_eq!(flags(&with(wide, "%b", "add nsw %w, %i")), Some(Flags::NSW));
        assert_eq!(flags(&with(wide, "%b", "add nuw %w, %i")), None);
        let positive = "%w = zext %s -> i64";
        assert_eq!(
            flags(&with(positive, "%b", "add nuw %w, %i")),
            Some(Flags::NUW)
        );
        let chosen = "%c = icmp eq %a, %b %w = sext %s -> i64 %x = if %c -> i64 { yield %w } else { yield 7 }";
        assert_eq!(
            flags(&with(chosen, "%b", "add nsw %x, %i")),
            Some(Flags::NSW)
        );
        let unknown = "%c = icmp eq %a, %b %x = if %c -> i64 { yield %a } else { yield 7 }";
        assert_eq!(flags(&with(unknown, "%b", "add nsw %x, %i")), None);
        assert_eq!(
            flags(&with("", "%b", "add nuw nsw %i, 1")),
            Some(Flags::NUW.with(Flags::NSW))
        );
        assert_eq!(flags(&with("", "%b", "add nsw %i, -1")), Some(Flags::NSW));
        assert_eq!(
            flags(&with("", "%b", "add nsw %i, 9223372036854775807")),
            None
        );
    }

    #[test]
    fn extended_bounds_have_extended_end() {
        let code = "%w = sext %s -> i64 %c = icmp sgt %t, %s %d = sub %t, %s %e = zext %d -> i64
            %n = select %c, %e, 0";
        let code = with(code, "%n", "add nsw %w, %i");
        let end = read(&code, |body, start| {
            let End::Extended(to) = start.expect("it begins at %s").end else {
                panic!("it ends at %t");
            };
            body.params().iter().position(|&p| p == to)
        });
        assert_eq!(end, Some(3));
    }

    #[test]
    fn other_uses_keep_zero_start() {
        for sum in ["mul %i, %a", "add %i, %i", "sub %a, %i"] {
            assert_eq!(flags(&with("", "%b", sum)), None, "{sum}");
        }
        let two = "for %i < %b { %k = add %a, %i %l = add %b, %i %q = addr i64, %p, %k store %l, %q yield }";
        assert_eq!(flags(two), None);
        let own = "for %i < %b { %x = load %p -> i64 %k = add %x, %i store %k, %p yield }";
        assert_eq!(flags(own), None);
        assert_eq!(flags("for %i < %b { store 1, %p yield }"), None);
    }
}
