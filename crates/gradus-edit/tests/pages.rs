//! Case pages of the edits: expected output and preserved semantics.

use gradus_edit::{
    SplitLimits, cut, inline_call, loops_to_fors, promote_slots, split_allocas, unroll_for,
};
use gradus_ir::{Body, Diagnostic, FuncId, Op, OpKind, Unit};
use gradus_testkit::{Pass, check_pages};

fn for_each_body(
    unit: &mut Unit,
    edit: impl Fn(&mut Unit, &mut Body),
) -> Result<(), Vec<Diagnostic>> {
    let ids: Vec<FuncId> = unit.functions.ids().collect();
    for id in ids {
        if let Some(mut body) = unit.functions[id].body.take() {
            edit(unit, &mut body);
            unit.functions[id].body = Some(body);
        }
    }
    Ok(())
}

fn unroll(unit: &mut Unit, body: &mut Body) {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    for op in ops.into_iter().rev() {
        unroll_for(unit, body, op, 8, 200);
    }
}

/// Inlines every direct call of a function with a body.
fn inline(unit: &mut Unit, body: &mut Body) {
    let calls: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Call(_)))
        .collect();
    for call in calls {
        let Some(func) = unit.callee(body, call) else {
            continue;
        };
        if let Some(callee) = unit.functions[func].body.clone() {
            let _ = inline_call(unit, body, call, func, &callee);
        }
    }
}

#[test]
fn case_pages() {
    let passes = [
        Pass::same("loops", |unit, _| {
            for_each_body(unit, |u, b| {
                loops_to_fors(u, b);
            })
        }),
        Pass::same("promote", |unit, _| {
            for_each_body(unit, |u, b| {
                promote_slots(u, b);
            })
        }),
        Pass::same("split", |unit, _| {
            for_each_body(unit, |u, b| {
                split_allocas(u, b);
            })
        }),
        Pass::same("unroll", |unit, _| for_each_body(unit, unroll)),
        Pass::same("inline", |unit, _| for_each_body(unit, inline)),
        Pass::same("cut", |unit, words| {
            let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
            let sizes = SplitLimits {
                whole_ops_max: number(0).unwrap_or_default(),
                piece_ops_max: number(1).unwrap_or(1),
            };
            let ids: Vec<FuncId> = unit.functions.ids().collect();
            for id in ids {
                if let Some(mut body) = unit.functions[id].body.take() {
                    cut(unit, id, &mut body, sizes);
                    unit.functions[id].body = Some(body);
                }
            }
            Ok(())
        }),
    ];
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let mut wrong = Vec::new();
    for folder in ["cut", "inline", "loops", "promote", "split", "unroll"] {
        match check_pages(format!("{root}/{folder}"), &passes) {
            Ok(count) => assert!(count > 0, "no pages in {folder}"),
            Err(text) => wrong.push(text),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
