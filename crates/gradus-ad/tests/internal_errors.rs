//! Faults seeded in the emission of derivatives become internal errors (GRD0024) with an op and a source
//! line, never an incomplete derivative.

use crate::support::derive;
use gradus_ad::{ArgActivity, ResultActivity};
use gradus_ir::Code;
use gradus_ir::mutant::{Mutant, plant};

const SOURCE: &str = "double f(int n, double *x, double s) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double v = x[i] * s;
        if (v > 1) { sum += v * v; x[i] = 0; } else sum -= v;
    }
    return sum; }";

fn code_and_place(mutant: Option<Mutant>) -> Option<(Code, String, bool)> {
    let args = [ArgActivity::Const, ArgActivity::Dup, ArgActivity::Active];
    plant(mutant);
    let made = derive(SOURCE, &["-O0"], "f", &args, ResultActivity::Active);
    plant(None);
    let findings = made.err()?;
    let first = findings.first().expect("a refusal has a finding");
    let placed = findings.iter().any(|f| !f.labels.is_empty());
    Some((first.code, first.message.clone(), placed))
}

#[test]
fn without_a_fault_there_is_no_internal_error() {
    assert_eq!(code_and_place(None), None);
}

#[test]
fn dropped_adjoint_is_internal_error() {
    let (code, message, placed) =
        code_and_place(Some(Mutant::AdjointNotEmitted)).expect("the derivative is refused");
    assert_eq!(code, Code::CompilerDied);
    assert!(message.contains("adjoint"), "{message}");
    assert!(placed, "the error names a source line");
}

#[test]
fn open_branch_is_an_internal_error() {
    let (code, message, _) =
        code_and_place(Some(Mutant::MergeLeftOpen)).expect("the derivative is refused");
    assert_eq!(code, Code::CompilerDied);
    assert!(message.contains("internal error"), "{message}");
}

#[test]
fn missing_shadow_is_an_internal_error() {
    let (code, _, _) =
        code_and_place(Some(Mutant::ShadowAddressMissing)).expect("the derivative is refused");
    assert_eq!(code, Code::CompilerDied);
}
