//! Implied conditions: decides whether a comparison holds in a region because of enclosing conditions.
//!
//! The condition of an enclosing `if` holds in its arm. Conjunctions, negations and boolean selects are
//! decomposed. A comparison with a constant is an interval in modular arithmetic (LLVM's `ConstantRange`), so
//! signed `n > 0` implies `n != 0`, also through `zext` and `sext`. The numbers of enclosing ops and of
//! decomposed conditions are bounded.

use gradus_ir::integers::{fold_cast, fold_icmp, int_value, mask};
use gradus_ir::{
    BinaryOp, Body, CastOp, Flags, IntPredicate, Op, OpKind, Region, Type, Unit, Value,
};

const ENCLOSING_OPS_MAX: usize = 64;
const CONJUNCTS_MAX: usize = 16;

/// Comparison `left predicate right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub predicate: IntPredicate,
    pub left: Value,
    pub right: Value,
}

impl Comparison {
    pub fn new(predicate: IntPredicate, left: Value, right: Value) -> Self {
        Comparison {
            predicate,
            left,
            right,
        }
    }
}

/// Reason for a comparison to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImpliedBy {
    /// The comparison holds in every context.
    Always,
    /// The condition of this `if` implies the comparison.
    If(Op),
}

/// Returns whether a comparison certainly holds in `region`, in every context or by enclosing conditions.
pub fn holds_at(
    unit: &Unit,
    body: &Body,
    region: Region,
    predicate: IntPredicate,
    left: Value,
    right: Value,
) -> bool {
    implied_by(unit, body, region, Comparison::new(predicate, left, right)).is_some()
}

/// Returns the reason for `claim` to hold in `region`: the nearest enclosing condition that implies the
/// claim.
pub(crate) fn implied_by(
    unit: &Unit,
    body: &Body,
    region: Region,
    claim: Comparison,
) -> Option<ImpliedBy> {
    let claim = NarrowedComparison::of(unit, body, claim);
    if claim.always_holds(unit, body) {
        return Some(ImpliedBy::Always);
    }
    let mut at = region;
    for _ in 0..ENCLOSING_OPS_MAX {
        let op = body.owner(at)?;
        if matches!(body.kind(op), OpKind::If) {
            let truth = body.op_regions(op)[0] == at;
            if condition_implies(unit, body, body.operand(op, 0), truth, &claim) {
                return Some(ImpliedBy::If(op));
            }
        }
        at = body.parent(op)?;
    }
    None
}

/// Returns whether `condition == truth` implies the claim.
pub(crate) fn condition_implies_claim(
    unit: &Unit,
    body: &Body,
    condition: Value,
    truth: bool,
    claim: Comparison,
) -> bool {
    condition_implies(
        unit,
        body,
        condition,
        truth,
        &NarrowedComparison::of(unit, body, claim),
    )
}

fn condition_implies(
    unit: &Unit,
    body: &Body,
    condition: Value,
    truth: bool,
    claim: &NarrowedComparison,
) -> bool {
    let mut open = vec![(condition, truth)];
    let mut parts = 0;
    while let Some((value, truth)) = open.pop() {
        parts += 1;
        let Some(op) = body.def_op(value) else {
            continue;
        };
        if parts > CONJUNCTS_MAX {
            return false;
        }
        let operand = |i: usize| body.operand(op, i);
        let is = |i: usize, n: u128| int_value(unit, body, operand(i)).is_some_and(|c| c.0 == n);
        match body.kind(op) {
            OpKind::ICmp(predicate) => {
                let predicate = if truth {
                    *predicate
                } else {
                    predicate.inverse()
                };
                let fact = Comparison::new(predicate, operand(0), operand(1));
                if claim.follows_from(unit, body, fact) {
                    return true;
                }
            }
            OpKind::Binary(BinaryOp::And) if truth => {
                open.extend([(operand(0), true), (operand(1), true)]);
            }
            OpKind::Binary(BinaryOp::Or) if !truth => {
                open.extend([(operand(0), false), (operand(1), false)]);
            }
            OpKind::Binary(BinaryOp::Xor) if is(1, 1) => open.push((operand(0), !truth)),
            OpKind::Select if truth && is(2, 0) => {
                open.extend([(operand(0), true), (operand(1), true)]);
            }
            OpKind::Select if !truth && is(1, 1) => {
                open.extend([(operand(0), false), (operand(2), false)]);
            }
            _ => {}
        }
    }
    false
}

/// Operand of a comparison: a value or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonOperand {
    Value(Value),
    Constant(u128),
}

/// Comparison with extensions stripped from both operands, as far as the meaning is unchanged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NarrowedComparison {
    predicate: IntPredicate,
    left: ComparisonOperand,
    right: ComparisonOperand,
    bits: u32,
}

impl NarrowedComparison {
    fn of(unit: &Unit, body: &Body, claim: Comparison) -> Self {
        let ty = body.ty(claim.left);
        let mut this = NarrowedComparison {
            predicate: claim.predicate,
            left: to_operand(unit, body, claim.left),
            right: to_operand(unit, body, claim.right),
            bits: match unit.types.get(ty) {
                Type::Int(bits) => *bits,
                Type::Ptr(space) => unit.layout.pointer_size_bytes(*space) as u32 * 8,
                _ => 128,
            },
        };
        while this.narrow(unit, body) {}
        this
    }

    /// Strips an extension from both operands if the narrow comparison is equivalent.
    fn narrow(&mut self, unit: &Unit, body: &Body) -> bool {
        use IntPredicate::*;
        let extension = |s: ComparisonOperand| match s {
            ComparisonOperand::Value(v) => extension_source(unit, body, v),
            ComparisonOperand::Constant(_) => None,
        };
        let (left, right) = (extension(self.left), extension(self.right));
        let Some((op, _, bits)) = left.or(right) else {
            return false;
        };
        let strip = |s: ComparisonOperand, found: Option<(CastOp, Value, u32)>| match (s, found) {
            (_, Some((o, inner, b))) if o == op && b == bits => {
                Some(ComparisonOperand::Value(inner))
            }
            (ComparisonOperand::Constant(c), _) => {
                let short = c & mask(bits);
                let back = fold_cast(op, bits, self.bits, short);
                (back == Some(c)).then_some(ComparisonOperand::Constant(short))
            }
            _ => None,
        };
        let (Some(left), Some(right)) = (strip(self.left, left), strip(self.right, right)) else {
            return false;
        };
        // After zero extension both operands are non-negative, hence signed and unsigned order agree. Sign
        // extension preserves both orders.
        if op == CastOp::ZExt {
            self.predicate = match self.predicate {
                Sgt => Ugt,
                Sge => Uge,
                Slt => Ult,
                Sle => Ule,
                other => other,
            };
        }
        (self.left, self.right, self.bits) = (left, right, bits);
        true
    }

    fn always_holds(&self, unit: &Unit, body: &Body) -> bool {
        match (self.left, self.right) {
            (ComparisonOperand::Constant(a), ComparisonOperand::Constant(b)) => {
                fold_icmp(self.predicate, self.bits, a, b)
            }
            (ComparisonOperand::Value(v), ComparisonOperand::Constant(c)) => {
                let low = unsigned_min(unit, body, v);
                low > 0
                    && self.bits <= 64
                    && contains(
                        self.interval(c),
                        Some((low, mask(self.bits) - low)),
                        self.bits,
                    )
            }
            (ComparisonOperand::Constant(_), ComparisonOperand::Value(_)) => {
                self.swapped().always_holds(unit, body)
            }
            _ => false,
        }
    }

    fn swapped(&self) -> NarrowedComparison {
        NarrowedComparison {
            predicate: self.predicate.swapped(),
            left: self.right,
            right: self.left,
            bits: self.bits,
        }
    }

    /// Returns the set of left operands for which the comparison with `constant` holds.
    fn interval(&self, constant: u128) -> Option<(u128, u128)> {
        interval(self.predicate, constant, self.bits)
    }

    fn follows_from(&self, unit: &Unit, body: &Body, fact: Comparison) -> bool {
        let fact = NarrowedComparison::of(unit, body, fact);
        if fact.bits != self.bits {
            return false;
        }
        [fact, fact.swapped()].iter().any(|fact| {
            if fact.left == self.left && fact.right == self.right {
                return predicate_implies(fact.predicate, self.predicate);
            }
            let own = [*self, self.swapped()];
            own.iter()
                .any(|claim| match (fact.left, fact.right, claim.right) {
                    (
                        ComparisonOperand::Value(_),
                        ComparisonOperand::Constant(c),
                        ComparisonOperand::Constant(d),
                    ) if fact.left == claim.left => {
                        contains(claim.interval(d), fact.interval(c), self.bits)
                    }
                    _ => false,
                })
        })
    }
}

fn to_operand(unit: &Unit, body: &Body, value: Value) -> ComparisonOperand {
    match int_value(unit, body, value) {
        Some((c, _)) => ComparisonOperand::Constant(c),
        None => ComparisonOperand::Value(value),
    }
}

fn extension_source(unit: &Unit, body: &Body, value: Value) -> Option<(CastOp, Value, u32)> {
    let op = body.def_op(value)?;
    let OpKind::Cast(cast @ (CastOp::ZExt | CastOp::SExt)) = *body.kind(op) else {
        return None;
    };
    let inner = body.operand(op, 0);
    match unit.types.get(body.ty(inner)) {
        Type::Int(bits) => Some((cast, inner, *bits)),
        _ => None,
    }
}

/// Returns an unsigned lower bound of a value: the constant operand of an unsigned maximum or of a
/// non-wrapping sum.
fn unsigned_min(unit: &Unit, body: &Body, value: Value) -> u128 {
    use gradus_ir::externals::{ExternalFn, IntFn};
    let Some(op) = body.def_op(value) else {
        return 0;
    };
    if matches!(body.kind(op), OpKind::Binary(BinaryOp::Add)) && body.ops[op].flags.has(Flags::NUW)
    {
        return int_value(unit, body, body.operand(op, 1)).map_or(0, |(c, _)| c);
    }
    let Some(func) = unit.callee(body, op) else {
        return 0;
    };
    let constant =
        (1..body.operand_count(op)).find_map(|i| int_value(unit, body, body.operand(op, i)));
    match (unit.known(func), constant) {
        (Some(ExternalFn::Integer(IntFn::Umax)), Some((c, _))) => c,
        _ => 0,
    }
}

/// Set of integers in modular arithmetic: the first element and the number of elements after the first.
type Interval = Option<(u128, u128)>;

/// Returns the integers `x` with `x predicate constant`; `None` if the set is empty.
fn interval(predicate: IntPredicate, constant: u128, bits: u32) -> Interval {
    use IntPredicate::*;
    let (all, half) = (mask(bits), 1u128 << (bits - 1));
    let (lowest, highest) = if predicate.is_signed() {
        (half, half - 1)
    } else {
        (0, all)
    };
    let from_to = |first: u128, last: u128| Some((first & all, last.wrapping_sub(first) & all));
    match predicate {
        Eq => Some((constant, 0)),
        Ne => from_to(constant.wrapping_add(1), constant.wrapping_sub(1)),
        Ult | Slt if constant == lowest => None,
        Ugt | Sgt if constant == highest => None,
        Ult | Slt => from_to(lowest, constant.wrapping_sub(1)),
        Ule | Sle => from_to(lowest, constant),
        Ugt | Sgt => from_to(constant.wrapping_add(1), highest),
        Uge | Sge => from_to(constant, highest),
    }
}

fn contains(outer: Interval, inner: Interval, bits: u32) -> bool {
    match (outer, inner) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some((start, more)), Some((first, further))) => {
            let gap = first.wrapping_sub(start) & mask(bits);
            gap.checked_add(further).is_some_and(|end| end <= more)
        }
    }
}

fn predicate_implies(fact: IntPredicate, claim: IntPredicate) -> bool {
    use IntPredicate::*;
    fact == claim
        || matches!(
            (fact, claim),
            (Ugt, Uge | Ne)
                | (Ult, Ule | Ne)
                | (Sgt, Sge | Ne)
                | (Slt, Sle | Ne)
                | (Eq, Uge | Ule | Sge | Sle)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every pair of 4-bit comparisons with constants against all sixteen numbers.
    #[test]
    fn interval_containment_is_exact() {
        use IntPredicate::*;
        let predicates = [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle];
        for fact in predicates {
            for claim in predicates {
                for c in 0..16 {
                    for d in 0..16 {
                        let told = contains(interval(claim, d, 4), interval(fact, c, 4), 4);
                        let holds = (0..16)
                            .filter(|&x| fold_icmp(fact, 4, x, c))
                            .all(|x| fold_icmp(claim, 4, x, d));
                        assert!(!told || holds, "{fact:?} {c} does not tell {claim:?} {d}");
                        let whole = (0..16).all(|x| fold_icmp(claim, 4, x, d));
                        assert!(told || !holds || whole, "{fact:?} {c} tells {claim:?} {d}");
                    }
                }
            }
        }
    }

    #[test]
    fn implied_predicates_are_exact() {
        use IntPredicate::*;
        let predicates = [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle];
        for fact in predicates {
            for claim in predicates {
                let mut pairs = (0..16).flat_map(|x| (0..16).map(move |y| (x, y)));
                let holds =
                    pairs.all(|(x, y)| !fold_icmp(fact, 4, x, y) || fold_icmp(claim, 4, x, y));
                assert_eq!(predicate_implies(fact, claim), holds, "{fact:?} {claim:?}");
            }
        }
    }
}
