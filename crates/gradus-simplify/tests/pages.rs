//! Case pages of the passes: expected output and preserved semantics.

use gradus_analysis::{AliasOptions, CallGraph, Effects, PassContext};
use gradus_ir::{Diagnostic, FuncId, Unit};
use gradus_simplify::{PASSES, simplify};
use gradus_testkit::{Pass, check_pages};

type Run = fn(&mut Unit, &mut gradus_ir::Body, &PassContext) -> bool;

fn for_each_body(unit: &mut Unit, run: Run) -> Result<(), Vec<Diagnostic>> {
    let ids: Vec<FuncId> = unit.functions.ids().collect();
    let with_body = ids
        .iter()
        .copied()
        .filter(|&id| unit.functions[id].body.is_some());
    let with_body: Vec<FuncId> = with_body.collect();
    let closure = CallGraph::of(unit, &with_body);
    let effects = Effects::of(unit, &closure);
    let alias = AliasOptions::default();
    for id in with_body {
        let Some(mut body) = unit.functions[id].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(id),
            effects: &effects,
            alias: &alias,
        };
        run(unit, &mut body, &facts);
        unit.functions[id].body = Some(body);
    }
    Ok(())
}

#[test]
fn case_pages() {
    let mut passes: Vec<Pass> = PASSES
        .iter()
        .map(|pass| Pass::same(pass.name, |unit, _| for_each_body(unit, pass.run)))
        .collect();
    passes.push(Pass::same("all", |unit, _| for_each_body(unit, simplify)));
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
