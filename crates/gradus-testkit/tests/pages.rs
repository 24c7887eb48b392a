//! The runner of case pages: right pages pass, wrong pages are reported.

use gradus_ir::{BinaryOp, Code, Diagnostic, OpKind, Unit};
use gradus_testkit::{Page, Pass, check_page, check_pages};

/// Swaps the operands of additions: a pass without effect.
fn swap(unit: &mut Unit, _words: &[String]) -> Result<(), Vec<Diagnostic>> {
    each_add(unit, |body, op| {
        let (a, b) = (body.operand(op, 0), body.operand(op, 1));
        body.set_operands(op, &[b, a]);
    });
    Ok(())
}

/// Turns additions into subtractions: a wrong pass.
fn spoil(unit: &mut Unit, _words: &[String]) -> Result<(), Vec<Diagnostic>> {
    each_add(unit, |body, op| {
        body.ops[op].kind = OpKind::Binary(BinaryOp::FSub)
    });
    Ok(())
}

/// Drops an operand of each addition: a pass that emits invalid IR.
fn cut(unit: &mut Unit, _words: &[String]) -> Result<(), Vec<Diagnostic>> {
    each_add(unit, |body, op| body.truncate_operands(op, 1));
    Ok(())
}

fn refuse(_unit: &mut Unit, words: &[String]) -> Result<(), Vec<Diagnostic>> {
    Err(vec![Diagnostic::error(
        Code::NoDerivative,
        format!("not {}", words.join(" ")),
    )])
}

fn each_add(unit: &mut Unit, edit: impl Fn(&mut gradus_ir::Body, gradus_ir::Op)) {
    let ids: Vec<_> = unit.functions.ids().collect();
    for id in ids {
        let Some(mut body) = unit.functions[id].body.take() else {
            continue;
        };
        let ops: Vec<_> = body.walk(body.root()).collect();
        for op in ops {
            if *body.kind(op) == OpKind::Binary(BinaryOp::FAdd) {
                edit(&mut body, op);
            }
        }
        unit.functions[id].body = Some(body);
    }
}

fn passes() -> Vec<Pass<'static>> {
    vec![
        Pass::same("swap", swap),
        Pass::same("spoil", spoil),
        Pass::same("cut", cut),
        Pass::same("refuse", refuse),
        Pass::derived("marked", |_, _| {
            Ok(Box::new(|_, _, call| {
                Ok(format!("checked {}", call.function))
            }))
        }),
    ]
}

fn page(run: &str, input: &str, check: &str) -> Result<(String, String), String> {
    let text = format!("# A page\nrun: {run}\n## in\n{input}\n## check\n{check}\n");
    check_page(&Page::parse(&text)?, &passes())
}

const ADD: &str = "func @f(%x: f64, %p: ptr) -> f64 {
  %a = load %p -> f64
  %s = fadd %x, %a
  store %s, %p
  return %s
}";

#[test]
fn correct_pass_is_accepted() {
    let (out, values) = page("swap", ADD, "@f(x = 1.5, p = [2.0, 3.0])").unwrap();
    assert!(out.contains("fadd %a, %x"), "{out}");
    assert_eq!(values, "value 3.5   argument 1 [3.5 3]");
}

#[test]
fn wrong_pass_is_reported() {
    for (run, word) in [
        ("spoil", "the result differs"),
        ("cut", "V002"),
        ("nothing", "unknown pass"),
    ] {
        let error = page(run, ADD, "@f(x = 1.5, p = [2.0])").unwrap_err();
        assert!(error.contains(word), "{run}: {error}");
    }
    let store = "func @f(%x: f64, %p: ptr) { %s = fadd %x, 1.0 store %s, %p return }";
    let error = page("spoil", store, "@f(x = 1.5, p = [2.0])").unwrap_err();
    assert!(error.contains("argument 1"), "{error}");
    let error = page(
        "spoil",
        "global @g: f64 = [0.0]
        func @f(%x: f64) { %s = fadd %x, 1.0 store %s, @g return }",
        "@f(x = 1.5)",
    )
    .unwrap_err();
    assert!(error.contains("global `g`"), "{error}");
}

#[test]
fn trapping_program_is_rejected() {
    let error = page("swap", ADD, "@f(x = 1.5, p = null)").unwrap_err();
    assert!(error.contains("the program itself"), "{error}");
    let error = page("swap", "func @f() { yield }", "@f()").unwrap_err();
    assert!(error.contains("V005"), "{error}");
    assert!(page("swap", ADD, "@g()").is_err());
    assert!(page("swap", ADD, "@f(y = 1, p = null)").is_err());
}

#[test]
fn refusals_and_derived_checks_are_shown() {
    let (out, values) = page("refuse this", ADD, "@f(x = 1.0, p = [1.0])").unwrap();
    assert_eq!(
        (out.as_str(), values.as_str()),
        ("refused: GRD0006: not this", "")
    );
    let (_, values) = page("swap, marked", ADD, "@f(x = 1.0, p = [1.0])").unwrap();
    assert_eq!(values, "checked f");
}

#[test]
fn the_pages_of_this_crate_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let count = check_pages(folder, &passes()).unwrap();
    assert!(count >= 2);
}
