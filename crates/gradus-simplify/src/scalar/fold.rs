//! Constant folding and algebraic simplification.
//!
//! Visits ops in program order; replacing an op revisits its users. Identities are exact: signed zeros, NaNs
//! and rounding are preserved unless the op's fast-math flags permit changes.

use crate::scalar::constants::integer_splat;
use crate::scalar::fold_float;
use crate::scalar::fold_integer;
use gradus_analysis::PassContext;
use gradus_edit::remove_dead_defs;
use gradus_ir::{BinaryOp, Body, Builder, ConstId, ConstKind, Op, OpKind, Unit, Value};

/// Maximum average number of visits per op.
const VISITS_MAX: usize = 16;

/// Folds all ops of a body.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut open: Vec<Op> = body.walk(body.root()).collect();
    open.reverse();
    let mut left = open.len() * VISITS_MAX;
    let mut changed = false;
    while let Some(op) = open.pop() {
        if left == 0 {
            break;
        }
        left -= 1;
        if body.parent(op).is_none() || body.results(op).len() != 1 {
            continue;
        }
        changed |= canonicalize_operands(unit, body, op);
        let result = body.result(op);
        if !body.has_uses(result) {
            continue;
        }
        let Some(new) = fold_op(unit, body, op).filter(|&new| new != result) else {
            continue;
        };
        open.extend(body.uses(result).map(|u| u.op));
        open.extend(body.def_op(new));
        body.replace_uses(result, new);
        remove_dead_defs(unit, body, [result]);
        changed = true;
    }
    changed
}

/// Moves a constant operand of a commutative op or a comparison to the second position.
fn canonicalize_operands(unit: &Unit, body: &mut Body, op: Op) -> bool {
    let new_kind = match *body.kind(op) {
        OpKind::Binary(binary) if binary.is_commutative() => OpKind::Binary(binary),
        OpKind::ICmp(p) => OpKind::ICmp(p.swapped()),
        OpKind::FCmp(p) => OpKind::FCmp(p.swapped()),
        _ => return false,
    };
    let (a, b) = (body.operand(op, 0), body.operand(op, 1));
    let constant = |v: Value| {
        body.as_const(v)
            .is_some_and(|id| !matches!(unit.constant(id).kind, ConstKind::Foreign(_)))
    };
    if !constant(a) || constant(b) {
        return false;
    }
    body.ops[op].kind = new_kind;
    body.set_operand(op, 0, b);
    body.set_operand(op, 1, a);
    true
}

/// Returns an equivalent value for the result of `op`, if any.
fn fold_op(unit: &mut Unit, body: &mut Body, op: Op) -> Option<Value> {
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    match *b.body.kind(op) {
        OpKind::Binary(binary) if binary.is_float() => fold_float::fold_binary(&mut b, op, binary),
        OpKind::Binary(binary) => fold_integer::fold_binary(&mut b, op, binary),
        OpKind::FNeg => fold_float::fold_negation(&mut b, op),
        OpKind::FCmp(predicate) => fold_float::fold_comparison(&mut b, op, predicate),
        OpKind::ICmp(predicate) => fold_integer::fold_comparison(&mut b, op, predicate),
        OpKind::Cast(_) => {
            fold_integer::fold_cast(&mut b, op).or_else(|| fold_float::fold_cast(&mut b, op))
        }
        OpKind::Select => fold_select(&mut b, op),
        OpKind::Freeze => fold_freeze(&b, op),
        OpKind::Addr { .. } => fold_address(&b, op),
        OpKind::ExtractValue(_) => fold_extract_value(&mut b, op),
        OpKind::ExtractElement => fold_extract_element(&mut b, op),
        OpKind::Call(_) => fold_integer::fold_call(&b, op),
        _ => None,
    }
}

fn fold_select(b: &mut Builder, op: Op) -> Option<Value> {
    let (c, x, y) = (
        b.body.operand(op, 0),
        b.body.operand(op, 1),
        b.body.operand(op, 2),
    );
    if let Some((truth, 1)) = integer_splat(b.unit, b.body, c) {
        return Some(if truth == 1 { x } else { y });
    }
    if x == y || b.body.is_poison(b.unit, y) {
        return Some(x);
    }
    if b.body.is_poison(b.unit, x) {
        return Some(y);
    }
    let same_type = b.body.ty(c) == b.body.ty(x);
    let (one, other) = (
        integer_splat(b.unit, b.body, x),
        integer_splat(b.unit, b.body, y),
    );
    if same_type && one == Some((1, 1)) && other == Some((0, 1)) {
        return Some(c);
    }
    if same_type && one == Some((0, 1)) && other == Some((1, 1)) {
        return Some(b.binary(BinaryOp::Xor, c, y));
    }
    let runs = fold_integer::normalize_trip_count(b, [c, x, y]);
    if let Some(new) = runs.or_else(|| fold_integer::normalize_wide_trip_count(b, [c, x, y])) {
        return Some(new);
    }
    let inner = negated_operand(b, c)?;
    let flags = b.body.ops[op].flags;
    let turned = b.select(inner, y, x);
    b.set_flags(turned, flags);
    Some(turned)
}

/// Returns `c` if `value` is `c xor true`.
pub(crate) fn negated_operand(b: &Builder, value: Value) -> Option<Value> {
    let op = b.body.def_op(value)?;
    let is_not = *b.body.kind(op) == OpKind::Binary(BinaryOp::Xor)
        && integer_splat(b.unit, b.body, b.body.operand(op, 1)) == Some((1, 1));
    is_not.then(|| b.body.operand(op, 0))
}

fn fold_freeze(b: &Builder, op: Op) -> Option<Value> {
    let value = b.body.operand(op, 0);
    let frozen = b
        .body
        .def_op(value)
        .is_some_and(|d| *b.body.kind(d) == OpKind::Freeze);
    let number = integer_splat(b.unit, b.body, value).is_some()
        || crate::scalar::constants::float_bits_splat(b.unit, b.body, value).is_some();
    (frozen || number).then_some(value)
}

/// Folds an address with zero offset to its base.
fn fold_address(b: &Builder, op: Op) -> Option<Value> {
    let address = b.unit.layout.address(b.unit, b.body, op)?;
    let same = address.offset == 0 && address.terms.is_empty();
    (same && b.body.ty(address.base) == b.body.ty(b.body.result(op))).then_some(address.base)
}

/// Folds the extraction of an aggregate field from its `insertvalue` chain or constant.
fn fold_extract_value(b: &mut Builder, op: Op) -> Option<Value> {
    let OpKind::ExtractValue(path) = b.body.kind(op).clone() else {
        return None;
    };
    let mut from = b.body.operand(op, 0);
    for _ in 0..32 {
        if let Some(id) = b.body.as_const(from) {
            let id = constant_element(b.unit, id, &path)?;
            return Some(b.constant(id));
        }
        let maker = b.body.def_op(from)?;
        let OpKind::InsertValue(put) = b.body.kind(maker) else {
            return None;
        };
        if **put == *path {
            return Some(b.body.operand(maker, 1));
        }
        if put.starts_with(&path) || path.starts_with(put) {
            return None;
        }
        from = b.body.operand(maker, 0);
    }
    None
}

fn constant_element(unit: &mut Unit, id: ConstId, path: &[u32]) -> Option<ConstId> {
    let mut at = id;
    for &index in path {
        let constant = unit.constant(at).clone();
        at = match constant.kind {
            ConstKind::Aggregate(members) => *members.get(index as usize)?,
            ConstKind::Poison | ConstKind::Undef => {
                let ty = unit.types.field(constant.ty, index)?;
                unit.consts.intern(ty, constant.kind)
            }
            _ => return None,
        };
    }
    Some(at)
}

/// Folds the extraction of a vector lane from its `insertelement` chain or constant.
fn fold_extract_element(b: &mut Builder, op: Op) -> Option<Value> {
    let (index, _) = integer_splat(b.unit, b.body, b.body.operand(op, 1))?;
    let mut from = b.body.operand(op, 0);
    for _ in 0..32 {
        if let Some(id) = b.body.as_const(from) {
            let id = constant_element(b.unit, id, &[u32::try_from(index).ok()?])?;
            return Some(b.constant(id));
        }
        let maker = b.body.def_op(from)?;
        if *b.body.kind(maker) != OpKind::InsertElement {
            return None;
        }
        let (put, _) = integer_splat(b.unit, b.body, b.body.operand(maker, 2))?;
        if put == index {
            return Some(b.body.operand(maker, 1));
        }
        from = b.body.operand(maker, 0);
    }
    None
}

/// Returns whether `value` has exactly one use. A negation may then replace the comparison.
pub(crate) fn has_one_use(b: &Builder, value: Value) -> bool {
    b.body.uses(value).take(2).count() == 1
}
