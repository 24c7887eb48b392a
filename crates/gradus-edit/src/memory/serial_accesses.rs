//! Turns volatile and atomic accesses of floats into plain accesses, for programs without threads.
//!
//! The derivative then has the meaning of a run in which nothing else writes the memory: a load reads the last store,
//! and a compare-and-exchange is a load, a comparison and a store. C accesses an atomic `double` partly as an integer
//! (`_Atomic double x; x += 1`): an integer counts as a float if it consists of the bits of a float. Accesses of
//! other integers and of pointers stay: they may count references, or wait for a signal handler.
//!
//! The program's own code keeps its accesses; the pass edits only bodies to differentiate.

use crate::memory::atomics_to_plain::{atomic_to_plain, exchange_to_plain};
use gradus_ir::{Access, Body, Builder, CastOp, Op, OpKind, Type, Unit, Value};
use std::collections::HashSet;

/// Turns volatile and atomic accesses of floats into plain accesses; returns the number of changed accesses.
pub fn float_accesses_to_plain(unit: &mut Unit, body: &mut Body) -> usize {
    let ops = body.walk(body.root());
    let found: Vec<Op> = ops.filter(|op| accesses_float(unit, body, *op)).collect();
    for &op in &found {
        match &mut body.ops[op].kind {
            OpKind::Load(access) | OpKind::Store(access) => {
                *access = Access::plain(access.align_bytes);
            }
            OpKind::CmpXchg { .. } => exchange_to_plain(&mut Builder::new(unit, body), op),
            _ => atomic_to_plain(&mut Builder::new(unit, body), op),
        }
    }
    found.len()
}

/// Returns true for a volatile or atomic access of a float.
fn accesses_float(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_float = |value| is_float(unit, body, value);
    match body.kind(op) {
        OpKind::Load(access) => !access.is_plain() && is_float(body.result(op)),
        OpKind::Store(access) => !access.is_plain() && is_float(body.operand(op, 0)),
        OpKind::AtomicRmw(..) => is_float(body.operand(op, 1)) || is_float(body.result(op)),
        OpKind::CmpXchg { .. } => {
            let parts = body.uses(body.result(op)).map(|used| used.op);
            let mut parts =
                parts.filter(|part| matches!(body.kind(*part), OpKind::ExtractValue(_)));
            is_float(body.operand(op, 2)) || parts.any(|part| is_float(body.result(part)))
        }
        _ => false,
    }
}

/// Returns true for a float, and for an integer that consists of the bits of a float.
fn is_float(unit: &Unit, body: &Body, value: Value) -> bool {
    let from = body.def_op(value);
    let from = from.filter(|op| matches!(body.kind(*op), OpKind::Cast(CastOp::BitCast)));
    has_float_type(unit, body, value)
        || from.is_some_and(|op| has_float_type(unit, body, body.operand(op, 0)))
        || becomes_float(unit, body, value)
}

fn has_float_type(unit: &Unit, body: &Body, value: Value) -> bool {
    let scalar = unit.types.scalar(body.ty(value));
    matches!(unit.types.get(scalar), Type::Float(_))
}

/// Returns true if a cast of an integer's bits to a float uses the integer, also behind branches and loops.
fn becomes_float(unit: &Unit, body: &Body, value: Value) -> bool {
    let mut seen = HashSet::from([value]);
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        for used in body.uses(value) {
            let next = match body.kind(used.op) {
                OpKind::Cast(CastOp::BitCast) => {
                    if has_float_type(unit, body, body.result(used.op)) {
                        return true;
                    }
                    continue;
                }
                OpKind::Select | OpKind::Freeze => vec![body.result(used.op)],
                _ => body.flow_targets(used).into_iter().collect(),
            };
            open.extend(next.into_iter().filter(|value| seen.insert(*value)));
        }
    }
    false
}
