//! Thread numbers: runtime queries until the code is inlined into its region.
//!
//! In an outlined function `omp_get_thread_num()` yields the rank. After inlining into an `spmd`, the region's
//! parameters replace the query; not inside of a task, which another thread may run.
//!
//! libomp's own thread numbers differ from ranks. A runtime call that stays with libomp queries the number.

use crate::runtime_calls::openmp_function;
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{AttrSet, Body, Builder, CastOp, Op, OpKind, Region, Unit, Value};

/// Emits a query of the rank, an `i32`.
pub(super) fn emit_rank_query(b: &mut Builder) -> Value {
    emit_query(b, "omp_get_thread_num")
}

/// Emits a query of the number of ranks, an `i32`.
pub(super) fn emit_size_query(b: &mut Builder) -> Value {
    emit_query(b, "omp_get_num_threads")
}

/// Emits a call of an `i32` query.
pub(super) fn emit_query(b: &mut Builder, name: &str) -> Value {
    let int = b.unit.types.int(32);
    let ty = b.unit.types.func(int, Vec::new());
    let func = b.unit.declare(name, ty, AttrSet::default());
    let call = b.call(func, &[]);
    b.body.result(call)
}

/// Replaces queries in the region of an `spmd` by its parameters. Queries in tasks and in nested `spmd`s
/// remain.
pub(super) fn replace_queries(unit: &mut Unit, body: &mut Body, region: Region) {
    let (rank, size) = (body.region_params(region)[0], body.region_params(region)[1]);
    let mut open = vec![region];
    while let Some(region) = open.pop() {
        let ops: Vec<Op> = body.ops_in(region).collect();
        for op in ops {
            match body.kind(op) {
                OpKind::Spawn { .. } | OpKind::Spmd { .. } => continue,
                _ => open.extend(body.op_regions(op)),
            }
            let value = match openmp_function(unit, body, op) {
                Some(OpenMpFn::ThreadNum) => rank,
                Some(OpenMpFn::NumThreads) => size,
                _ => continue,
            };
            let Some(&result) = body.results(op).first() else {
                continue;
            };
            let ty = body.ty(result);
            let mut b = Builder::new(unit, body);
            b.set_insertion_before(op);
            let narrow = b.cast(CastOp::Trunc, value, ty);
            b.body.replace_uses(result, narrow);
            b.body.erase(op);
        }
    }
}

/// Returns true for a runtime function that keeps its call to libomp in raised code and takes libomp's number of the
/// thread as the second argument.
pub(super) fn takes_library_number(id: OpenMpFn) -> bool {
    matches!(
        id,
        OpenMpFn::PushNumThreads
            | OpenMpFn::BeginSerial
            | OpenMpFn::EndSerial
            | OpenMpFn::ThreadPrivate
    )
}

/// Makes calls that stay with libomp query the number of their thread. Outlined code reads the number from its first
/// parameter, where a raised region stores the rank.
pub(super) fn query_library_numbers(unit: &mut Unit, body: &mut Body, region: Region) {
    let calls: Vec<Op> = body
        .walk(region)
        .filter(|op| openmp_function(unit, body, *op).is_some_and(takes_library_number))
        .collect();
    for op in calls {
        let args = unit.call_args(body, op);
        let &[location, number, ..] = &args[..] else {
            continue;
        };
        let source = body.def_op(number);
        let source = source.and_then(|def| openmp_function(unit, body, def));
        if source == Some(OpenMpFn::GlobalThread) {
            continue;
        }
        let ty = body.ty(number);
        let func_ty = unit.types.func(ty, vec![body.ty(location)]);
        let func = unit.declare("__kmpc_global_thread_num", func_ty, AttrSet::default());
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let call = b.call(func, &[location]);
        let queried = b.body.result(call);
        // The callee is operand 0.
        b.body.set_operand(op, 2, queried);
    }
}
