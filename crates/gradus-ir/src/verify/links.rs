//! Verifier rule V011: the arenas of a body are consistent.

use super::{Rule, Verifier};
use crate::{Definition, Entity, Op};

/// Checks parents and owners of placed ops, definitions and use lists.
pub(super) fn check(check: &mut Verifier) {
    let body = check.body;
    let mut placed = vec![false; body.ops.len()];
    let mut operands = 0;
    let all: Vec<Op> = body.walk(body.root()).collect();
    for &op in &all {
        if std::mem::replace(&mut placed[op.index()], true) {
            return check
                .fail_without_op(Rule::Links, "an op occurs twice in the regions of the body");
        }
        operands += body.operand_count(op);
    }
    for &op in &all {
        let owned = body
            .op_regions(op)
            .iter()
            .all(|r| body.owner(*r) == Some(op));
        let defined = body
            .results(op)
            .iter()
            .enumerate()
            .all(|(i, v)| body.values[*v].def == Definition::Result(op, i as u32));
        if !owned || !defined {
            check.fail(
                Rule::Links,
                op,
                "a region or result of the op names another owner",
            );
        }
    }
    uses(check, &placed, operands);
}

/// Checks that use-list entries and operands of placed ops correspond one to one.
fn uses(check: &mut Verifier, placed: &[bool], operands: usize) {
    let body = check.body;
    let mut entries = 0;
    for (value, _) in body.values.iter() {
        for at in body.uses(value) {
            entries += 1;
            if entries > operands + body.ops.len() {
                return check.fail_without_op(Rule::Links, "a use list is cyclic");
            }
            if !placed[at.op.index()] {
                let text = "an op outside the body uses a value of the body";
                check.fail(Rule::Links, at.op, text);
                entries -= 1;
                continue;
            }
            let index = at.index as usize;
            if index >= body.operand_count(at.op) || body.operand(at.op, index) != value {
                check.fail(
                    Rule::Links,
                    at.op,
                    "a use list names an operand that holds another value",
                );
            }
        }
    }
    if entries != operands {
        check.fail_without_op(
            Rule::Links,
            "an operand is missing from the use list of the value",
        );
    }
}
