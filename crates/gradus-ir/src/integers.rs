//! Constant folding of integers, and inverse and swapped comparison predicates.
//!
//! Constants are zero-extended in a `u128`, with the width passed alongside. An operation with a poison or
//! undefined result is not folded. Analyses, edits and simplifications share this file. The interpreter has
//! an independent implementation, as a cross-check.

use crate::{BinaryOp, Body, CastOp, ConstKind, FloatPredicate, IntPredicate, Type, Unit, Value};

/// Returns a mask of the lowest `bits` bits.
pub fn mask(bits: u32) -> u128 {
    match bits {
        128.. => u128::MAX,
        _ => (1 << bits) - 1,
    }
}

/// Sign-extends the lowest `bits` bits of `value`.
pub fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.clamp(1, 128);
    (value << unused) as i128 >> unused
}

/// Returns the value (zero-extended) and the width in bits of a scalar integer constant.
pub fn int_value(unit: &Unit, body: &Body, value: Value) -> Option<(u128, u32)> {
    let constant = unit.constant(body.as_const(value)?);
    let Type::Int(bits) = *unit.types.get(constant.ty) else {
        return None;
    };
    match constant.kind {
        ConstKind::Int(n) if bits <= 128 => Some((n & mask(bits), bits)),
        ConstKind::Zero => Some((0, bits)),
        _ => None,
    }
}

/// Folds `a op b` on integers of `bits` bits. Returns `None` for poison, undefined results and floating-point
/// ops.
pub fn fold_binary(op: BinaryOp, bits: u32, a: u128, b: u128) -> Option<u128> {
    use BinaryOp::*;
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let shift = (b < u128::from(bits)).then_some(b as u32);
    let result = match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        UDiv => a.checked_div(b)?,
        URem => a.checked_rem(b)?,
        SDiv | SRem if sb == 0 || (sb == -1 && a == 1 << (bits - 1)) => return None,
        SDiv => (sa / sb) as u128,
        SRem => (sa % sb) as u128,
        Shl => a << shift?,
        LShr => a >> shift?,
        AShr => (sa >> shift?) as u128,
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        // Floating-point operations, and integer operations without an arm, are not folded.
        _ => return None,
    };
    Some(result & mask(bits))
}

/// Evaluates `a predicate b` on integers of `bits` bits.
pub fn fold_icmp(predicate: IntPredicate, bits: u32, a: u128, b: u128) -> bool {
    use IntPredicate::*;
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    match predicate {
        Eq => a == b,
        Ne => a != b,
        Ugt => a > b,
        Uge => a >= b,
        Ult => a < b,
        Ule => a <= b,
        Sgt => sa > sb,
        Sge => sa >= sb,
        Slt => sa < sb,
        Sle => sa <= sb,
    }
}

/// Folds a conversion between integers of `from` and `to` bits; `None` for other conversions.
pub fn fold_cast(op: CastOp, from: u32, to: u32, a: u128) -> Option<u128> {
    match op {
        CastOp::Trunc | CastOp::ZExt => Some(a & mask(to)),
        CastOp::SExt => Some(signed(a, from) as u128 & mask(to)),
        CastOp::BitCast if from == to => Some(a),
        _ => None,
    }
}

impl IntPredicate {
    /// Returns the negated predicate.
    #[must_use]
    pub fn inverse(self) -> IntPredicate {
        use IntPredicate::*;
        match self {
            Eq => Ne,
            Ne => Eq,
            Ugt => Ule,
            Uge => Ult,
            Ult => Uge,
            Ule => Ugt,
            Sgt => Sle,
            Sge => Slt,
            Slt => Sge,
            Sle => Sgt,
        }
    }
    /// Returns the predicate for exchanged operands.
    #[must_use]
    pub fn swapped(self) -> IntPredicate {
        use IntPredicate::*;
        match self {
            Eq => Eq,
            Ne => Ne,
            Ugt => Ult,
            Uge => Ule,
            Ult => Ugt,
            Ule => Uge,
            Sgt => Slt,
            Sge => Sle,
            Slt => Sgt,
            Sle => Sge,
        }
    }
    /// Returns whether the predicate compares signed numbers.
    pub fn is_signed(self) -> bool {
        use IntPredicate::*;
        matches!(self, Sgt | Sge | Slt | Sle)
    }
}

impl FloatPredicate {
    /// Returns the negated predicate.
    #[must_use]
    pub fn inverse(self) -> FloatPredicate {
        use FloatPredicate::*;
        match self {
            False => True,
            True => False,
            Oeq => Une,
            Une => Oeq,
            Ogt => Ule,
            Ule => Ogt,
            Oge => Ult,
            Ult => Oge,
            Olt => Uge,
            Uge => Olt,
            Ole => Ugt,
            Ugt => Ole,
            One => Ueq,
            Ueq => One,
            Ord => Uno,
            Uno => Ord,
        }
    }
    /// Returns the predicate for exchanged operands.
    #[must_use]
    pub fn swapped(self) -> FloatPredicate {
        use FloatPredicate::*;
        if crate::mutant::is_planted(crate::mutant::Mutant::ComparisonNotSwapped) {
            return self;
        }
        match self {
            Ogt => Olt,
            Olt => Ogt,
            Oge => Ole,
            Ole => Oge,
            Ugt => Ult,
            Ult => Ugt,
            Uge => Ule,
            Ule => Uge,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_results_are_not_folded() {
        use BinaryOp::*;
        assert_eq!(fold_binary(SDiv, 8, 0x80, 0xff), None);
        assert_eq!(fold_binary(UDiv, 8, 1, 0), None);
        assert_eq!(fold_binary(SRem, 8, 1, 0), None);
        assert_eq!(fold_binary(Shl, 8, 1, 8), None);
        assert_eq!(fold_binary(Shl, 8, 0x81, 1), Some(2));
        assert_eq!(fold_binary(AShr, 8, 0x80, 7), Some(0xff));
        assert_eq!(fold_binary(SDiv, 8, 0xf9, 2), Some(0xfd));
        assert_eq!(fold_binary(Sub, 64, 0, 1), Some(u128::from(u64::MAX)));
    }

    #[test]
    fn only_signed_predicates_use_signs() {
        use IntPredicate::*;
        assert!(fold_icmp(Slt, 32, 0xffff_ffff, 0));
        assert!(!fold_icmp(Ult, 32, 0xffff_ffff, 0));
        for p in [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle] {
            for (a, b) in [
                (0u128, 0u128),
                (1, 0),
                (0, 1),
                (0xff, 1),
                (1, 0xff),
                (0x80, 0x7f),
            ] {
                assert_eq!(fold_icmp(p, 8, a, b), !fold_icmp(p.inverse(), 8, a, b));
                assert_eq!(fold_icmp(p, 8, a, b), fold_icmp(p.swapped(), 8, b, a));
            }
        }
    }

    #[test]
    fn casts_extend_and_truncate() {
        assert_eq!(fold_cast(CastOp::SExt, 8, 16, 0x80), Some(0xff80));
        assert_eq!(fold_cast(CastOp::ZExt, 8, 16, 0x80), Some(0x80));
        assert_eq!(fold_cast(CastOp::Trunc, 16, 8, 0x180), Some(0x80));
        assert_eq!(fold_cast(CastOp::FPExt, 32, 64, 0), None);
    }
}
