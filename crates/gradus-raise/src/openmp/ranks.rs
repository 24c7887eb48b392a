//! Numbers of threads: calls that ask for them, until the code stands in the region that has them.
//!
//! In a function of its own `omp_get_thread_num()` is how code asks for its rank. Once the code stands
//! inside an `spmd`, the region's parameters are the answer; inside a task they are not, since another
//! thread may run it.

use gradus_ir::known::{Known, OpenMpFn};
use gradus_ir::{AttrSet, Body, Builder, CastOp, Op, OpKind, Region, Unit, Value};

/// A call that asks for the rank, an `i32`.
pub(super) fn rank(b: &mut Builder) -> Value {
    ask(b, "omp_get_thread_num")
}

/// A call that asks for the number of ranks, an `i32`.
pub(super) fn size(b: &mut Builder) -> Value {
    ask(b, "omp_get_num_threads")
}

/// A call that asks for a number, an `i32`.
pub(super) fn ask(b: &mut Builder, name: &str) -> Value {
    let int = b.unit.types.int(32);
    let ty = b.unit.types.func(int, Vec::new());
    let func = b.unit.declare(name, ty, AttrSet::default());
    let call = b.call(func, &[]);
    b.body.result(call)
}

/// Makes questions in the region of an `spmd` take its parameters; in tasks, and in the regions of
/// other `spmd`s, they stay.
pub(super) fn answer(unit: &mut Unit, body: &mut Body, region: Region) {
    let (rank, size) = (body.region_params(region)[0], body.region_params(region)[1]);
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let ops: Vec<Op> = body.ops_in(region).collect();
        for op in ops {
            match body.kind(op) {
                OpKind::Spawn { .. } | OpKind::Spmd { .. } => continue,
                _ => open.extend(body.op_regions(op)),
            }
            let value = match asked(unit, body, op) {
                Some(OpenMpFn::Rank) => rank,
                Some(OpenMpFn::Size) => size,
                _ => continue,
            };
            let Some(&result) = body.results(op).first() else {
                continue;
            };
            let ty = body.ty(result);
            let mut b = Builder::new(unit, body);
            b.at_op(op);
            let narrow = b.cast(CastOp::Trunc, value, ty);
            b.body.replace_uses(result, narrow);
            b.body.erase(op);
        }
    }
}

/// The question that `op` asks of the run time.
pub(crate) fn asked(unit: &Unit, body: &Body, op: Op) -> Option<OpenMpFn> {
    match unit.known(unit.callee(body, op)?) {
        Some(Known::OpenMp(id)) => Some(id),
        _ => None,
    }
}
