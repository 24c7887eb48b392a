//! Recognition of atomic sums written as compare-exchange loops.
//!
//! The pattern is `old = *p; do new = old + x; while (!compare_exchange(p, &old, new))`. Processors without
//! an atomic float sum use the loop, and so does `p += 0.5 * x` on a `float` in C, whose sum is a rounded
//! `double`. The loop becomes one atomic sum. In the latter case, the addend is rounded before the addition
//! instead of the sum after it. The deviation is like a change in the order of additions.

use gradus_edit::is_pure;
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{
    Access, BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, RmwOp, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// A loop that adds.
struct CasLoopSum {
    at: Op,
    access: Access,
    place: Value,
    /// Type of the number in memory.
    ty: TypeId,
    added: Addend,
    /// Ops of the loop that do not depend on memory, in order.
    loop_independent: Vec<Op>,
    /// The initial load from the same location, if it has no other use.
    first: Option<Op>,
}

/// The addend.
enum Addend {
    Number(Value),
    Negative(Value),
    Product(Value, Value),
}

/// Rewrites all such loops of a body. Returns the number of loops.
pub fn recognize_atomic_add(unit: &mut Unit, body: &mut Body) -> usize {
    let found: Vec<CasLoopSum> = body
        .walk(body.root())
        .filter_map(|op| match_cas_loop(unit, body, op))
        .collect();
    for sum in &found {
        rewrite_as_atomic_sum(unit, body, sum);
    }
    found.len()
}

fn rewrite_as_atomic_sum(unit: &mut Unit, body: &mut Body, sum: &CasLoopSum) {
    for &op in &sum.loop_independent {
        body.detach(op);
        body.insert_before(sum.at, op);
    }
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[sum.at].loc;
    b.set_insertion_before(sum.at);
    let added = match sum.added {
        Addend::Number(x) => x,
        Addend::Negative(x) => b.fneg(x),
        Addend::Product(x, y) => b.fmul(x, y),
    };
    let added = match b.body.ty(added) == sum.ty {
        true => added,
        false => b.cast(CastOp::FPTrunc, added, sum.ty),
    };
    let kind = OpKind::AtomicRmw(RmwOp::FAdd, sum.access);
    b.value(kind, &[sum.place, added], sum.ty);
    body.erase(sum.at);
    if let Some(first) = sum.first {
        body.erase(first);
    }
}

fn match_cas_loop(unit: &Unit, body: &Body, at: Op) -> Option<CasLoopSum> {
    let OpKind::Loop { .. } = body.kind(at) else {
        return None;
    };
    let region = body.op_regions(at)[0];
    let &[old] = body.region_params(region) else {
        return None;
    };
    if body.results(at).iter().any(|r| body.has_uses(*r)) {
        return None;
    }
    let ops: Vec<Op> = body.ops_in(region).collect();
    let (end, inner) = ops.split_last()?;
    let is_exchange = |op: &Op| matches!(body.kind(*op), OpKind::CmpXchg { .. });
    let exchange = *inner.iter().find(|op| is_exchange(op))?;
    let others = inner.iter().filter(|op| **op != exchange);
    if !others.clone().all(|op| is_pure(unit, body, *op))
        || !loops_until_exchanged(unit, body, *end, exchange, old)
    {
        return None;
    }
    let depends = memory_dependent_values(body, inner, old);
    let place = body.operand(exchange, 0);
    let OpKind::CmpXchg { access, .. } = *body.kind(exchange) else {
        return None;
    };
    if access.volatile || depends.contains(&place) || body.operand(exchange, 1) != old {
        return None;
    }
    let new = body.cast_operand(body.operand(exchange, 2), CastOp::BitCast)?;
    let added = match_addend(unit, body, new, old, &depends)?;
    let first = body.def_op(body.operand(at, 0));
    let first = first.filter(|op| {
        matches!(body.kind(*op), OpKind::Load(a) if !a.volatile) && body.operand(*op, 0) == place
    });
    let apart = others.filter(|op| !body.results(**op).iter().any(|r| depends.contains(r)));
    Some(CasLoopSum {
        at,
        access,
        place,
        ty: body.ty(new),
        added,
        loop_independent: apart.copied().collect(),
        first: first.filter(|op| body.uses(body.result(*op)).count() == 1),
    })
}

/// Returns the values of a loop's region that depend on the contents of memory.
fn memory_dependent_values(body: &Body, ops: &[Op], old: Value) -> HashSet<Value> {
    let mut found = HashSet::from([old]);
    for &op in ops {
        let in_memory = matches!(body.kind(op), OpKind::CmpXchg { .. });
        if in_memory || body.operands(op).any(|v| found.contains(&v)) {
            found.extend(body.results(op));
        }
    }
    found
}

/// Returns true if a loop ends after a successful exchange, and otherwise continues with the value found in
/// memory.
fn loops_until_exchanged(unit: &Unit, body: &Body, end: Op, exchange: Op, old: Value) -> bool {
    if !matches!(body.kind(end), OpKind::Repeat) || body.operand_count(end) < 2 {
        return false;
    }
    let part = |value: Value, number: u32| {
        let made = body.def_op(value);
        made.is_some_and(|made| {
            matches!(body.kind(made), OpKind::ExtractValue(path) if **path == [number])
                && body.operand(made, 0) == body.result(exchange)
        })
    };
    let is_found = |value: Value| part(value, 0);
    let again = body.def_op(body.operand(end, 0));
    let fails = again.is_some_and(|again| {
        let (a, b) = match body.kind(again) {
            OpKind::Binary(BinaryOp::Xor) | OpKind::ICmp(IntPredicate::Ne) => {
                (body.operand(again, 0), body.operand(again, 1))
            }
            _ => return false,
        };
        match body.kind(again) {
            OpKind::ICmp(_) => is_found(a) && b == old || is_found(b) && a == old,
            _ => part(a, 1) && body.as_int(unit, b).is_some_and(|truth| truth & 1 == 1),
        }
    });
    fails && is_found(body.operand(end, 1))
}

/// Matches `new` as the sum of the number in memory and an addend.
fn match_addend(
    unit: &Unit,
    body: &Body,
    new: Value,
    old: Value,
    depends: &HashSet<Value>,
) -> Option<Addend> {
    let through = |value: Value, cast: CastOp| {
        let made = body.def_op(value);
        let made = made.filter(|op| matches!(body.kind(*op), OpKind::Cast(c) if *c == cast));
        made.map_or(value, |op| body.operand(op, 0))
    };
    let is_old = |value: Value| {
        body.cast_operand(through(value, CastOp::FPExt), CastOp::BitCast) == Some(old)
    };
    let apart = |value: Value| !depends.contains(&value);
    let sum = body.def_op(through(new, CastOp::FPTrunc))?;
    let operand = |i: usize| body.operand(sum, i);
    match body.kind(sum) {
        OpKind::Binary(BinaryOp::FAdd) => [(0, 1), (1, 0)].into_iter().find_map(|(old, x)| {
            (is_old(operand(old)) && apart(operand(x))).then(|| Addend::Number(operand(x)))
        }),
        OpKind::Binary(BinaryOp::FSub) => {
            (is_old(operand(0)) && apart(operand(1))).then(|| Addend::Negative(operand(1)))
        }
        OpKind::Call(_) => {
            let known = unit.known_callee(body, sum);
            let args = unit.call_args(body, sum);
            match (known, &args[..]) {
                (Some(ExternalFn::Math(MathFn::Fma | MathFn::Fmuladd)), &[x, y, z])
                    if is_old(z) && apart(x) && apart(y) =>
                {
                    Some(Addend::Product(x, y))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
