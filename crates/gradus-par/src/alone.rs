//! Loops that run on one thread after all: they are small, or it is as fast as all workers.
//!
//! Iterations that may run at once add to what they share by atomic operations. Where a loop runs on one thread
//! those that meet nothing but other iterations ([`Flags::BETWEEN`]) are plain ones, which take a fraction of
//! the time, and may be vectorised. So such a loop has a second range function, which is called directly;
//! loops within it are serial.

use crate::Lowering;
use crate::clones::is_forked;
use crate::loops::Plan;
use crate::serial;
use gradus_ir::{Body, Builder, Flags, FuncId, Op, OpKind, RmwOp, Unit};

impl Lowering<'_> {
    /// The range function of a loop for a thread that runs all of it; none where it would be as the other one, or
    /// where other threads may run beside the loop, or within it, all the same.
    pub(crate) fn alone_function(&mut self, body: &Body, plan: &Plan) -> Option<FuncId> {
        let outermost = !self.unit.functions[self.func].name.contains(".gr_");
        let mut inside = body.walk(plan.region);
        let simple = inside.all(|op| {
            matches!(body.kind(op), OpKind::ParFor { .. }) || !body.kind(op).is_parallel()
        });
        let mut inside = body.walk(plan.region);
        if !outermost || !simple || !inside.any(|op| is_between(body, op)) {
            return None;
        }
        let func = self.range_function("alone", body, plan);
        if let Some(mut body) = self.unit.functions[func].body.take() {
            while let Some(op) = crate::outermost(&body) {
                serial::lower(self.unit, &mut body, op);
            }
            make_plain(self.unit, &mut body);
            self.unit.functions[func].body = Some(body);
        }
        Some(func)
    }
}

/// Whether an op is an atomic one that meets other iterations only, and is plain where these do not run.
pub(crate) fn is_between(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::AtomicRmw(RmwOp::FAdd | RmwOp::Xchg, _)
    ) && body.ops[op].flags.has(Flags::BETWEEN)
}

/// Makes the atomic operations between iterations plain ones where no loop around them runs at once any more.
/// Iterations with these are not independent.
pub(crate) fn make_plain(unit: &mut Unit, body: &mut Body) {
    let between: Vec<Op> = body
        .walk(body.root())
        .filter(|op| is_between(body, *op) && !is_forked(body, *op))
        .collect();
    for op in between {
        make_serial_around(body, op);
        gradus_edit::make_plain(&mut Builder::new(unit, body), op);
    }
}

/// The loops around an op are not independent any more.
pub(crate) fn make_serial_around(body: &mut Body, op: Op) {
    let around = |op: &Op| body.owner(body.parent(*op)?);
    let loops: Vec<Op> = std::iter::successors(around(&op), around).collect();
    for around in loops {
        let flags = &mut body.ops[around].flags;
        *flags = flags.without(Flags::INDEPENDENT);
    }
}
