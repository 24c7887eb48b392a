//! Case pages of the passes: the output of each pass, and unchanged kernel semantics for any thread order.

use gradus_analysis::{AliasOptions, CallGraph, Effects, PassContext};
use gradus_gpu::{Options, PASSES, PassOutcome, lower};
use gradus_ir::{Body, Diagnostic, FuncId, Severity, Unit};
use gradus_testkit::{Pass, check_pages};

type Run = fn(&mut Unit, &mut Body, &PassContext, &Options) -> PassOutcome;

fn with_body(unit: &Unit) -> Vec<FuncId> {
    let ids = unit.functions.ids();
    ids.filter(|&id| unit.functions[id].body.is_some())
        .collect()
}

fn refused(findings: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    match findings.iter().any(|f| f.severity == Severity::Error) {
        true => Err(findings),
        false => Ok(()),
    }
}

fn each(unit: &mut Unit, run: Run) -> Result<(), Vec<Diagnostic>> {
    let functions = with_body(unit);
    let effects = Effects::of(unit, &CallGraph::of(unit, &functions));
    let alias = AliasOptions::default();
    let mut findings = Vec::new();
    for id in functions {
        let Some(mut body) = unit.functions[id].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(id),
            effects: &effects,
            alias: &alias,
        };
        findings.extend(run(unit, &mut body, &facts, &Options::default()).diagnostics);
        unit.functions[id].body = Some(body);
    }
    refused(findings)
}

fn all(unit: &mut Unit, _words: &[String]) -> Result<(), Vec<Diagnostic>> {
    let functions = with_body(unit);
    let effects = Effects::of(unit, &CallGraph::of(unit, &functions));
    refused(lower(unit, &functions, &effects, &Options::default()).diagnostics)
}

#[test]
fn pages() {
    let mut passes: Vec<Pass> = PASSES
        .iter()
        .map(|pass| Pass::same(pass.name, |unit, _| each(unit, pass.run)))
        .collect();
    passes.push(Pass::same("all", all));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let mut wrong = Vec::new();
    for folder in PASSES.iter().map(|p| p.name).chain(["all"]) {
        match check_pages(format!("{root}/{folder}"), &passes) {
            Ok(count) => assert!(count > 0, "no pages in {folder}"),
            Err(text) => wrong.push(text),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
