//! Emits ops before a `for` under its entry guard: `if (n != 0) { … }; for n { … }`.
//!
//! Results of the ops become results of the `if`, and zero if the loop does not execute. The zeros have no
//! effective uses and, unlike poison, are legal operands.

use crate::control::read_only_regions::with_nested_ops;
use gradus_ir::{Body, Builder, IntPredicate, Op, Unit, Use, Value};
use std::collections::{HashMap, HashSet};

/// Moves each op before its `for`, guarded by a nonzero trip count. `moves` lists pairs of op and `for` in
/// program order.
pub(crate) fn move_under_entry_guard(unit: &mut Unit, body: &mut Body, moves: Vec<(Op, Op)>) {
    let mut groups: HashMap<Op, Vec<Op>> = HashMap::new();
    let mut order = Vec::new();
    for (op, around) in moves {
        let group = groups.entry(around).or_default();
        if group.is_empty() {
            order.push(around);
        }
        group.push(op);
    }
    for around in order {
        emit_entry_guard(unit, body, around, &groups[&around]);
    }
}

fn emit_entry_guard(unit: &mut Unit, body: &mut Body, around: Op, group: &[Op]) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[around].loc;
    b.set_insertion_before(around);
    let runs = b.body.operand(around, 0);
    let ty = b.body.ty(runs);
    let zero = b.int(ty, 0);
    let some = b.icmp(IntPredicate::Ne, runs, zero);
    let (op, yes, no) = b.if_(some, &[]);
    let mut inside = HashSet::new();
    for &moved in group {
        b.body.detach(moved);
        b.body.append(yes, moved);
        inside.extend(with_nested_ops(b.body, moved));
    }
    let mut given: Vec<Value> = Vec::new();
    for &moved in group {
        for value in b.body.results(moved).to_vec() {
            let outside: Vec<Use> = b
                .body
                .uses(value)
                .filter(|u| !inside.contains(&u.op))
                .collect();
            if outside.is_empty() {
                continue;
            }
            let ty = b.body.ty(value);
            let result = b.body.add_result(op, ty);
            for used in outside {
                b.body.set_operand(used.op, used.index as usize, result);
            }
            given.push(value);
        }
    }
    let zeros: Vec<Value> = given
        .iter()
        .map(|&value| {
            let ty = b.body.ty(value);
            b.zero(ty)
        })
        .collect();
    b.set_insertion_end(yes);
    b.yield_(&given);
    b.set_insertion_end(no);
    b.yield_(&zeros);
}
