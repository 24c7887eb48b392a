//! Common subexpression elimination of pure ops, and of branches with pure arms.
//!
//! One walk keeps a table of available ops; entries added in a region end with the region. Flags and metadata
//! that only one of two merged ops carries are dropped, because the value then serves both uses.
//!
//! An `if` whose arms contain only pure ops merges with an available `if` on the same condition with
//! equivalent arms.

use gradus_analysis::PassContext;
use gradus_edit::is_pure;
use gradus_ir::{Body, Op, OpKind, TypeId, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Value-numbering key of an op.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: OpKind,
    operands: Vec<Value>,
    result: TypeId,
}

/// Merges equal ops of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut seen: HashMap<Key, Op> = HashMap::new();
    let mut added: Vec<Key> = Vec::new();
    let mut branches: HashMap<Value, Vec<Op>> = HashMap::new();
    // Open regions: the next op, and the number of table entries at the start of the region.
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
        if matches!(body.kind(op), OpKind::If) && merge_branch(unit, body, &mut branches, op) {
            changed = true;
            continue;
        }
        for &region in body.op_regions(op) {
            open.push((body.first(region), added.len()));
        }
        if body.results(op).len() != 1 || !is_pure(unit, body, op) {
            continue;
        }
        let key = value_key(body, op);
        if let Some(&twin) = seen.get(&key) {
            merge_ops(body, twin, op);
            changed = true;
        } else {
            seen.insert(key.clone(), op);
            added.push(key);
        }
    }
    changed
}

/// Merges an `if` with an available equivalent one; otherwise records the `if` for later merges.
fn merge_branch(
    unit: &Unit,
    body: &mut Body,
    branches: &mut HashMap<Value, Vec<Op>>,
    op: Op,
) -> bool {
    if body.results(op).is_empty() || !has_pure_arms(unit, body, op) {
        return false;
    }
    let known = branches.entry(body.operand(op, 0)).or_default();
    let visible = |twin: &&Op| match (body.parent(op), body.parent(**twin)) {
        (Some(inner), Some(outer)) => body.is_inside(inner, outer),
        _ => false,
    };
    let mut twins = known.iter().filter(visible);
    let Some(&twin) = twins.find(|&&twin| arms_are_equivalent(unit, body, twin, op)) else {
        if known.len() < BRANCHES_MAX {
            known.push(op);
        }
        return false;
    };
    let results = body.results(op).to_vec();
    for (old, new) in results.into_iter().zip(body.results(twin).to_vec()) {
        body.replace_uses(old, new);
    }
    body.erase(op);
    true
}

/// Maximum number of branches compared per condition.
const BRANCHES_MAX: usize = 8;
/// Maximum number of ops in the arms.
const ARM_OPS_MAX: usize = 128;

fn has_pure_arms(unit: &Unit, body: &Body, op: Op) -> bool {
    let mut left = ARM_OPS_MAX;
    let mut inside = body.op_regions(op).iter().flat_map(|r| body.ops_in(*r));
    inside.all(|op| {
        left = left.saturating_sub(1);
        left > 0 && (matches!(body.kind(op), OpKind::Yield) || is_pure(unit, body, op))
    })
}

/// Returns whether the arms of two branches on one condition yield equal values: identical values, or results
/// of equal pure ops.
fn arms_are_equivalent(unit: &Unit, body: &Body, a: Op, b: Op) -> bool {
    let given = |op: Op| {
        let ends = body.op_regions(op).iter().map(|r| body.last(*r));
        let ends = ends.map(|end| end.filter(|&e| *body.kind(e) == OpKind::Yield));
        ends.collect::<Option<Vec<Op>>>()
    };
    let (Some(a), Some(b)) = (given(a), given(b)) else {
        return false;
    };
    let pairs = a.iter().zip(&b);
    let mut work: Vec<(Value, Value)> = pairs
        .flat_map(|(a, b)| body.operands(*a).zip(body.operands(*b)))
        .collect();
    let mut seen: HashSet<(Value, Value)> = HashSet::new();
    while let Some((x, y)) = work.pop() {
        if x == y || !seen.insert((x, y)) {
            continue;
        }
        let (Some(a), Some(b)) = (body.def_op(x), body.def_op(y)) else {
            return false;
        };
        let pure = |op: Op| body.op_regions(op).is_empty() && is_pure(unit, body, op);
        let same = body.kind(a) == body.kind(b)
            && body.ops[a].flags == body.ops[b].flags
            && body.ty(x) == body.ty(y)
            && body.results(a).len() == 1
            && body.results(b).len() == 1
            && pure(a)
            && pure(b);
        if !same || seen.len() > 2 * ARM_OPS_MAX {
            return false;
        }
        work.extend(body.operands(a).zip(body.operands(b)));
    }
    true
}

fn value_key(body: &Body, op: Op) -> Key {
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

fn merge_ops(body: &mut Body, kept: Op, gone: Op) {
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
