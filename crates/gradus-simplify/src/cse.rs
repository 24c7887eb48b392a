//! Pure ops that stand twice: the later one takes the value of the earlier one where that is visible.
//!
//! A walk with a table of the ops seen; what a region adds is taken out again at its end. Promises
//! that only one of two ops makes are dropped, since the value now serves both.

use crate::Facts;
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, TypeId, Unit, Value};
use std::collections::HashMap;

/// What makes two ops equal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: OpKind,
    operands: Vec<Value>,
    result: TypeId,
}

/// Merges equal ops of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let mut seen: HashMap<Key, Op> = HashMap::new();
    let mut added: Vec<Key> = Vec::new();
    // Open regions: the next op, and how many entries there were before.
    let mut open: Vec<(Option<Op>, usize)> = vec![(body.first(body.root()), 0)];
    let mut changed = false;
    while let Some((next, before)) = open.last_mut() {
        let Some(op) = *next else {
            for key in added.drain(*before..) {
                seen.remove(&key);
            }
            open.pop();
            continue;
        };
        *next = body.next(op);
        for &region in body.op_regions(op) {
            open.push((body.first(region), added.len()));
        }
        if body.results(op).len() != 1 || !is_pure(unit, body, op) {
            continue;
        }
        let key = key(body, op);
        if let Some(&twin) = seen.get(&key) {
            merge(body, twin, op);
            changed = true;
        } else {
            seen.insert(key.clone(), op);
            added.push(key);
        }
    }
    changed
}

fn key(body: &Body, op: Op) -> Key {
    let mut operands: Vec<Value> = body.operands(op).collect();
    if matches!(body.kind(op), OpKind::Binary(b) if b.is_commutative()) {
        operands.sort_unstable();
    }
    Key {
        kind: body.kind(op).clone(),
        operands,
        result: body.ty(body.result(op)),
    }
}

fn merge(body: &mut Body, kept: Op, gone: Op) {
    let (flags, meta) = (body.ops[gone].flags, body.ops[gone].meta);
    let data = &mut body.ops[kept];
    data.flags = data.flags.and(flags);
    if data.meta != meta {
        data.meta = None;
    }
    let (old, new) = (body.result(gone), body.result(kept));
    body.replace_uses(old, new);
    body.erase(gone);
}
