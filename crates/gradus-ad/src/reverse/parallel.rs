//! Parallel loops undone.
//!
//! They come as serial loops whose iterations are independent, and the reversed loop is independent
//! again: what an iteration wrote, no other touched, so its adjoint is its own; what several read, they
//! add to, by atomic adds where it cannot be shown that only one does (`facts/own_adds.rs`); each
//! iteration has its own place on the tape. What is not of these kinds makes the reversed loop a serial
//! one.

use super::return_sweep::ReturnSweep;
use crate::facts::is_independent;
use crate::out::Space;
use gradus_ir::known::Known;
use gradus_ir::{
    Access, Atomicity, Body, Flags, FloatKind, Op, OpKind, RmwOp, Type, TypeId, Unit, Value,
};

impl ReturnSweep<'_, '_, '_, '_> {
    /// Whether the present place is in a reversed loop whose iterations may run at once.
    pub(super) fn is_parallel(&self) -> bool {
        let mut open = self.loops.iter().map(|open| open.mirror);
        open.any(|mirror| is_independent(&self.out.body, mirror))
    }

    /// Before an op is undone: the loops around it become serial where undoing it could meet other
    /// iterations.
    pub(super) fn keep_independence(&mut self, op: Op) {
        if self.is_parallel() && !self.stays_apart(op) {
            for open in &self.loops {
                let flags = &mut self.out.body.ops[open.mirror].flags;
                *flags = flags.without(Flags::INDEPENDENT);
            }
        }
    }

    fn stays_apart(&self, op: Op) -> bool {
        let body = self.facts.body;
        match body.kind(op) {
            OpKind::Load(access) if access.is_plain() => {
                self.facts.adds_alone(op)
                    || self.has_atomic_add(body.result(op), access.align_bytes)
            }
            OpKind::Store(access) => access.is_plain(),
            OpKind::Call(_) => {
                let known = self
                    .out
                    .unit
                    .callee(body, op)
                    .and_then(|f| self.out.unit.known(f));
                matches!(
                    known,
                    Some(Known::Math(_) | Known::Marker(_) | Known::Integer(_))
                )
            }
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
            _ => gradus_edit::is_pure(self.out.unit, body, op),
        }
    }

    /// Whether the adjoint of a loaded value can be added by one instruction.
    fn has_atomic_add(&self, value: Value, align_bytes: u32) -> bool {
        let ty = self.facts.body.ty(value);
        let size_bytes = self.out.unit.layout.store_bytes(self.out.unit, ty);
        let float = matches!(
            self.out.unit.types.get(ty),
            Type::Float(FloatKind::F64 | FloatKind::F32)
        );
        float && u64::from(align_bytes) >= size_bytes && self.facts.lanes(value).is_none()
    }

    /// `*shadow += seed` where other iterations may add at the same time.
    pub(super) fn add_atomically(&mut self, op: Op, ty: TypeId, shadow: Value, seed: Value) {
        let align_bytes = self.out.unit.layout.align_bytes(self.out.unit, ty) as u32;
        let access = Access {
            order: Atomicity::Monotonic,
            ..Access::plain(align_bytes)
        };
        let kind = OpKind::AtomicRmw(RmwOp::FAdd, access);
        let old = self.out.build().value(kind, &[shadow, seed], ty);
        if let Some(new) = self.out.body.def_op(old) {
            let meta = self.facts.body.ops[op].meta;
            self.out.mark_access(new, meta, Space::Shadow);
        }
    }
}

/// Takes the word of independence from loops of a finished derivative whose iterations share what the
/// primal's did not: the tape's stack, and the plain adds of other derivatives.
pub(crate) fn settle(unit: &Unit, body: &mut Body) {
    let loops: Vec<Op> = body
        .walk(body.root())
        .filter(|op| is_independent(body, *op))
        .collect();
    for op in loops {
        let region = body.op_regions(op)[0];
        let shares = |op: Op| {
            let callee = unit
                .callee(body, op)
                .map(|func| unit.functions[func].name.as_str());
            callee.is_some_and(shares_state)
        };
        if body.walk(region).any(shares) {
            let flags = &mut body.ops[op].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
    }
}

/// Whether an emitted function works on memory that the iterations of a loop share.
fn shares_state(name: &str) -> bool {
    name.starts_with("__gradus1_")
        && !name.starts_with("__gradus1_aug")
        && !name.starts_with("__gradus1_jvp")
}
