//! Integer arithmetic with addresses of active memory.

use super::Program;
use crate::Activity::{Const, Dup};
use gradus_ir::{BinaryOp, CastOp, Code};

/// Rounding leaves one address; the mask of two addresses is none, and neither is a quotient.
#[test]
fn address_arithmetic_with_and_without_shadow() {
    for (op, terms, is_refused) in [
        (BinaryOp::And, 1, false),
        (BinaryOp::Sub, 2, false),
        (BinaryOp::UDiv, 1, true),
    ] {
        let mut program = Program::default();
        let (double, ptr, word, _) = program.types();
        let f = program.define("f", &[ptr, ptr], double, |b, p| {
            let bits = b.cast(CastOp::PtrToInt, p[0], word);
            let other = match terms {
                1 => b.i64(-16),
                _ => b.cast(CastOp::PtrToInt, p[1], word),
            };
            let moved = b.binary(op, bits, other);
            let moved = match terms {
                1 => moved,
                _ => b.add(moved, other),
            };
            let at = b.cast(CastOp::IntToPtr, moved, ptr);
            Some(b.load(double, at))
        });
        let study = program.study(f, &[Dup, Dup], true);
        let codes: Vec<Code> = study.findings.iter().map(|d| d.code).collect();
        assert_eq!(
            codes.contains(&Code::NoDerivative),
            is_refused,
            "{op:?}: {codes:?}"
        );
        assert_eq!(program.study(f, &[Const, Const], true).findings, []);
    }
}
