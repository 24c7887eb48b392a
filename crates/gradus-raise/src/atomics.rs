//! Atomic updates as reductions: atomic updates of a local variable in a parallel loop become a reduction.
//!
//! An `#pragma omp atomic` sum in every iteration equals a reduction, at the cost of a locked instruction per
//! iteration, even if the loop is too small to fork. If the loop has no other access to the variable, and no
//! task can access the variable concurrently, each iteration accumulates into private memory and contributes
//! the result.

use gradus_edit::{combine, identity};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    AllocaStorage, BinaryOp, Body, Builder, Op, OpKind, ReduceOp, RmwOp, TypeId, Unit, Value,
};

/// A loop whose only accesses to a variable are updates.
struct AtomicReduction {
    at: Op,
    variable: Value,
    op: ReduceOp,
    ty: TypeId,
    updates: Vec<Op>,
}

/// Turns atomic updates in the parallel loops of a body into reductions.
pub(crate) fn raise(unit: &mut Unit, body: &mut Body) {
    let slot = |op: &Op| match body.kind(*op) {
        OpKind::Alloca(info) => info.storage == AllocaStorage::Frame,
        _ => false,
    };
    let slots: Vec<Op> = body.walk(body.root()).filter(slot).collect();
    for slot in slots {
        for gathering in atomic_reductions(unit, body, slot) {
            gathering.raise(&mut Builder::new(unit, body));
        }
    }
}

/// Returns the loops that access the variable by one kind of update only.
fn atomic_reductions(unit: &Unit, body: &Body, slot: Op) -> Vec<AtomicReduction> {
    let variable = body.result(slot);
    let mut found: Vec<AtomicReduction> = Vec::new();
    let mut other: Vec<Op> = Vec::new();
    for used in body.uses(variable) {
        let strands = enclosing_strand_ops(body, used.op, slot);
        let stays = match body.kind(used.op) {
            OpKind::Load(_) => true,
            OpKind::AtomicRmw(..) => used.index == 0,
            OpKind::Store(_) => used.index == 1,
            OpKind::Call(_) => {
                let known = unit.known_callee(body, used.op);
                matches!(known, Some(ExternalFn::Marker(_)))
            }
            _ => false,
        };
        // A task may run concurrently with the loop.
        let tasks = strands
            .iter()
            .any(|s| matches!(body.kind(*s), OpKind::Spawn { .. }));
        if !stays || tasks {
            return Vec::new();
        }
        let Some(&around) = strands.last() else {
            continue;
        };
        match update_kind(body, used.op)
            .filter(|_| strands.len() == 1 && is_par_for_with_end(body, around))
        {
            None => other.push(around),
            Some((op, ty)) => match found.iter_mut().find(|g| g.at == around) {
                None => found.push(AtomicReduction {
                    at: around,
                    variable,
                    op,
                    ty,
                    updates: vec![used.op],
                }),
                Some(known) if (known.op, known.ty) == (op, ty) => known.updates.push(used.op),
                Some(_) => other.push(around),
            },
        }
    }
    found.retain(|g| !other.contains(&g.at));
    found
}

/// Returns the ops around `op` that run their regions as strands, innermost first, up to the region of `slot`.
fn enclosing_strand_ops(body: &Body, op: Op, slot: Op) -> Vec<Op> {
    let end = body.parent(slot).and_then(|region| body.owner(region));
    body.ancestors(op)
        .take_while(|at| Some(*at) != end)
        .filter(|at| body.kind(*at).is_strand_op())
        .collect()
}

/// Returns true for a parallel loop whose iterations reach their end.
fn is_par_for_with_end(body: &Body, op: Op) -> bool {
    let end = body.last(body.op_regions(op)[0]);
    matches!(body.kind(op), OpKind::ParFor { .. })
        && end.is_some_and(|end| matches!(body.kind(end), OpKind::Yield))
}

/// Returns the reduction and type of an atomic update whose old value is unused.
fn update_kind(body: &Body, op: Op) -> Option<(ReduceOp, TypeId)> {
    let OpKind::AtomicRmw(kind, access) = body.kind(op) else {
        return None;
    };
    let as_reduction = match kind {
        RmwOp::Add | RmwOp::Sub => ReduceOp::Add,
        RmwOp::And => ReduceOp::And,
        RmwOp::Or => ReduceOp::Or,
        RmwOp::Xor => ReduceOp::Xor,
        RmwOp::Max => ReduceOp::Max,
        RmwOp::Min => ReduceOp::Min,
        RmwOp::UMax => ReduceOp::UMax,
        RmwOp::UMin => ReduceOp::UMin,
        RmwOp::FAdd | RmwOp::FSub => ReduceOp::FAdd,
        _ => return None,
    };
    let old = body.result(op);
    (!access.volatile && !body.has_uses(old)).then_some((as_reduction, body.ty(old)))
}

impl AtomicReduction {
    fn raise(self, b: &mut Builder<'_>) {
        let region = b.body.op_regions(self.at)[0];
        let (Some(first), Some(end)) = (b.body.first(region), b.body.last(region)) else {
            unreachable!("a verified region has a terminator");
        };
        b.set_insertion_before(first);
        let Some(nothing) = identity(b, self.op, self.ty) else {
            unreachable!("an atomic update is never a user-defined reduction");
        };
        let own = b.alloca(self.ty);
        if let Some(op) = b.body.def_op(own)
            && let OpKind::Alloca(info) = &mut b.body.ops[op].kind
        {
            info.storage = AllocaStorage::Private;
        }
        b.store(nothing, own);
        for op in self.updates {
            b.set_insertion_before(op);
            let value = b.body.operand(op, 1);
            let before = b.load(self.ty, own);
            let after = match b.body.kind(op) {
                OpKind::AtomicRmw(RmwOp::Sub, _) => b.binary(BinaryOp::Sub, before, value),
                OpKind::AtomicRmw(RmwOp::FSub, _) => b.binary(BinaryOp::FSub, before, value),
                _ => combine(b, self.op, before, value),
            };
            b.store(after, own);
            b.body.erase(op);
        }
        b.set_insertion_before(end);
        let gathered = b.load(self.ty, own);
        b.body.add_operand(end, gathered);
        b.set_insertion_before(self.at);
        let before = b.load(self.ty, self.variable);
        b.body.add_operand(self.at, before);
        let total = b.body.add_result(self.at, self.ty);
        if let OpKind::ParFor { reductions, .. } = &mut b.body.ops[self.at].kind {
            let mut all = std::mem::take(reductions).into_vec();
            all.push(self.op);
            *reductions = all.into_boxed_slice();
        }
        let write = b.store(total, self.variable);
        b.body.detach(write);
        b.body.insert_after(self.at, write);
    }
}
