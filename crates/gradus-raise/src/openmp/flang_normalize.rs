//! Normalisation of flang's IR to clang's shapes before raising.
//!
//! - flang requests every `threadprivate` block that a function declares, used or unused.
//! - flang allocates copies of descriptors (of reduced arrays) in branches.
//! - flang's atomic update of a float is a compare-exchange loop.

use crate::runtime_calls::RuntimeCalls;
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{
    Access, BinaryOp, Body, Builder, CastOp, Definition, Op, OpKind, RmwOp, Unit, Value,
};

/// Normalises the code of a function.
pub(super) fn normalize(unit: &mut Unit, body: &mut Body, calls: &RuntimeCalls) {
    for op in calls.of_kind(unit, body, OpenMpFn::ThreadPrivate) {
        let address = body.results(op).first();
        if address.is_some_and(|a| !body.has_uses(*a)) {
            body.erase(op);
        }
    }
    hoist_allocations(body);
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::Loop { .. }))
        .collect();
    for op in loops {
        if let Some(update) = match_atomic_update(unit, body, op) {
            update.replace_loop(unit, body, op);
        }
    }
}

/// Moves constant-size allocations in branches, outside of loops, to the entry: they are executed at most once
/// anyway.
fn hoist_allocations(body: &mut Body) {
    let in_branches = |op: &Op| {
        let size = matches!(body.kind(*op), OpKind::Alloca(info) if !info.inalloca)
            && body.as_const(body.operand(*op, 0)).is_some();
        size && body.parent_op(*op).is_some()
            && body
                .ancestors(*op)
                .all(|around| matches!(body.kind(around), OpKind::If | OpKind::Switch(_)))
    };
    let found: Vec<Op> = body.walk(body.root()).filter(in_branches).collect();
    for op in found {
        if let Some(first) = body.first(body.root()) {
            body.detach(op);
            body.insert_before(first, op);
        }
    }
}

/// An atomic update of a float in memory.
struct AtomicUpdate {
    /// The load before the loop.
    load: Op,
    place: Value,
    value: Value,
    kind: RmwOp,
    access: Access,
}

/// Returns the update performed by a loop: `old = load; do { new = old + value } while (place ≠ old, old =
/// place; else place = new)`.
fn match_atomic_update(unit: &Unit, body: &Body, op: Op) -> Option<AtomicUpdate> {
    let region = *body.op_regions(op).first()?;
    let &[old] = body.region_params(region) else {
        return None;
    };
    let ops: Vec<Op> = body.ops_in(region).collect();
    let exchange = |op: &&Op| matches!(body.kind(**op), OpKind::CmpXchg { .. });
    let exchange = *ops.iter().find(exchange)?;
    let &OpKind::CmpXchg { access, .. } = body.kind(exchange) else {
        return None;
    };
    let place = body.operand(exchange, 0);
    // The eight ops of the update and no further op.
    if ops.len() != 8 || body.operand(exchange, 1) != old || access.volatile {
        return None;
    }
    let sum = body.def_op(body.cast_operand(body.operand(exchange, 2), CastOp::BitCast)?)?;
    let &OpKind::Binary(kind @ (BinaryOp::FAdd | BinaryOp::FSub)) = body.kind(sum) else {
        return None;
    };
    let is_old = |value: Value| body.cast_operand(value, CastOp::BitCast) == Some(old);
    let (left, right) = (body.operand(sum, 0), body.operand(sum, 1));
    let (value, kind) = match (kind, is_old(left), is_old(right)) {
        (BinaryOp::FAdd, true, false) => (right, RmwOp::FAdd),
        (BinaryOp::FAdd, false, true) => (left, RmwOp::FAdd),
        (BinaryOp::FSub, true, false) => (right, RmwOp::FSub),
        _ => return None,
    };
    let load = body.def_op(body.operand(op, 0))?;
    let loaded = matches!(body.kind(load), OpKind::Load(access) if !access.volatile)
        && body.operand(load, 0) == place
        && body.uses(body.result(load)).all(|u| u.op == op);
    let outside = [value, place]
        .iter()
        .all(|v| body.region_of(*v) != Some(region));
    let unread = body.results(op).iter().all(|r| !body.has_uses(*r));
    let again = repeats_on_failure(unit, body, *ops.last()?, exchange);
    (loaded && outside && unread && again).then_some(AtomicUpdate {
        load,
        place,
        value,
        kind,
        access,
    })
}

/// Returns true if the loop repeats exactly on a failed exchange, with the value found.
fn repeats_on_failure(unit: &Unit, body: &Body, repeat: Op, exchange: Op) -> bool {
    let part = |value: Value, index: u32| {
        body.def_op(value).is_some_and(|op| {
            matches!(body.kind(op), OpKind::ExtractValue(path) if **path == [index])
                && body.values[body.operand(op, 0)].def == Definition::Result(exchange, 0)
        })
    };
    let fails = |value: Value| {
        body.def_op(value).is_some_and(|op| {
            let flips = body.kind(op) == &OpKind::Binary(BinaryOp::Xor)
                && body
                    .as_int(unit, body.operand(op, 1))
                    .is_some_and(|n| n != 0);
            flips && part(body.operand(op, 0), 1)
        })
    };
    matches!(body.kind(repeat), OpKind::Repeat)
        && fails(body.operand(repeat, 0))
        && part(body.operand(repeat, 1), 0)
}

impl AtomicUpdate {
    /// Replaces the loop by the update.
    fn replace_loop(self, unit: &mut Unit, body: &mut Body, op: Op) {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[self.load].loc;
        let ty = b.body.ty(self.value);
        b.value(
            OpKind::AtomicRmw(self.kind, self.access),
            &[self.place, self.value],
            ty,
        );
        body.erase(op);
        body.erase(self.load);
    }
}
