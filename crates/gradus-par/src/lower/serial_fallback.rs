//! Serial fallback of a parallel loop: a second range function for a loop run by a single thread.
//!
//! A loop runs serially if the loop is small or if all workers are no faster than one thread. Iterations of a
//! parallel loop update shared memory by atomic operations. On one thread, atomics that conflict with
//! iterations only ([`Flags::ATOMIC_ACROSS_ITERATIONS`]) become plain accesses, at a fraction of the cost and vectorisable. The
//! fallback range function has the plain accesses and serial inner loops, and is called directly.

use crate::emit::serial;
use crate::lower::Lowering;
use crate::lower::loops::LoopPlan;
use gradus_ir::{Body, Builder, Flags, FuncId, Op, OpKind, RmwOp, Unit};

impl Lowering<'_> {
    /// Emits the range function for a thread that runs the whole loop.
    ///
    /// Returns `None` if the function would equal the normal range function, or if threads may run concurrently
    /// with the loop or inside of the loop anyway.
    pub(crate) fn serial_range_function(&mut self, body: &Body, plan: &LoopPlan) -> Option<FuncId> {
        let outermost = !self.unit.functions[self.func].name.contains(".gr_");
        let mut inside = body.walk(plan.region);
        let simple = inside.all(|op| {
            matches!(body.kind(op), OpKind::ParFor { .. }) || !body.kind(op).is_parallel()
        });
        let mut inside = body.walk(plan.region);
        if !outermost || !simple || !inside.any(|op| is_atomic_between_iterations(body, op)) {
            return None;
        }
        let func = self.range_function("alone", body, plan);
        if let Some(mut body) = self.unit.functions[func].body.take() {
            while let Some(op) = serial::outermost_parallel_op(&body) {
                serial::lower(self.unit, &mut body, op);
            }
            make_between_atomics_plain(self.unit, &mut body);
            self.unit.functions[func].body = Some(body);
        }
        Some(func)
    }
}

/// Returns true for an atomic op that conflicts with iterations only and becomes plain in serial execution.
pub(crate) fn is_atomic_between_iterations(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::AtomicRmw(RmwOp::FAdd | RmwOp::Xchg, _)
    ) && body.ops[op].flags.has(Flags::ATOMIC_ACROSS_ITERATIONS)
}

/// Makes atomics between iterations plain if no enclosing loop is concurrent any more. Iterations with plain
/// updates are not independent.
pub(crate) fn make_between_atomics_plain(unit: &mut Unit, body: &mut Body) {
    let between: Vec<Op> = body
        .walk(body.root())
        .filter(|op| is_atomic_between_iterations(body, *op) && !body.is_in_strand(*op))
        .collect();
    for op in between {
        clear_independent_around(body, op);
        gradus_edit::atomic_to_plain(&mut Builder::new(unit, body), op);
    }
}

/// Removes `INDEPENDENT` from all loops that enclose `op`.
pub(crate) fn clear_independent_around(body: &mut Body, op: Op) {
    let loops: Vec<Op> = body.ancestors(op).collect();
    for around in loops {
        let flags = &mut body.ops[around].flags;
        *flags = flags.without(Flags::INDEPENDENT);
    }
}
