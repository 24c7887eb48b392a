//! Thread numbers: runtime queries until the code is inlined into its region.
//!
//! In an outlined function `omp_get_thread_num()` yields the rank. After inlining into an `spmd`, the region's
//! parameters replace the query; not inside of a task, which another thread may run.
//!
//! libomp's own thread numbers differ from ranks. A runtime call that stays with libomp queries the number. A
//! region that hands its number to code outside of the region is not raised.

use crate::report::{Reason, reason};
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{AttrSet, Body, Builder, CastOp, FuncId, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

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
            let value = match unit.openmp_callee(body, op) {
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
        .filter(|op| {
            unit.openmp_callee(body, *op)
                .is_some_and(takes_library_number)
        })
        .collect();
    for op in calls {
        let args = unit.call_args(body, op);
        let &[location, number, ..] = &args[..] else {
            continue;
        };
        let source = body.def_op(number);
        let source = source.and_then(|def| unit.openmp_callee(body, def));
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

/// Returns the reason why a region cannot be raised if its code hands the thread number, or the address of the
/// number, to a function that is neither inlined nor part of the runtime, or stores the number outside of its
/// own variables. `func` is the region's outlined function; `inlined` selects the functions to be inlined.
pub(super) fn leaked_number(
    unit: &Unit,
    func: FuncId,
    inlined: &dyn Fn(FuncId) -> bool,
) -> Option<Reason> {
    let mut seen = HashSet::from([(func, 0)]);
    let mut open = vec![(func, 0)];
    while let Some((func, param)) = open.pop() {
        let Some(body) = unit.functions[func].body.as_deref() else {
            continue;
        };
        let Some(&number) = body.params().get(param) else {
            continue;
        };
        let mut values = vec![number];
        let mut followed = HashSet::new();
        while let Some(value) = values.pop() {
            if !followed.insert(value) {
                continue;
            }
            for place in body.uses(value) {
                match number_use(unit, body, place.op, place.index as usize, inlined) {
                    NumberUse::Harmless => {}
                    NumberUse::Values(next) => values.extend(next),
                    NumberUse::Argument(callee, param) if seen.insert((callee, param)) => {
                        open.push((callee, param));
                    }
                    NumberUse::Argument(..) => {}
                    NumberUse::Leaks(text) => return Some(reason(unit, body, place.op, &text)),
                }
            }
        }
    }
    None
}

/// The use of a thread number or of its address.
enum NumberUse {
    /// A use by the runtime, or one that yields no number.
    Harmless,
    /// The values hold or address the number.
    Values(Vec<Value>),
    /// The number is a parameter of a function to be inlined.
    Argument(FuncId, usize),
    /// The number leaves the region's code.
    Leaks(String),
}

/// Classifies the use of a thread number as operand `index` of `op`.
fn number_use(
    unit: &Unit,
    body: &Body,
    op: Op,
    index: usize,
    inlined: &dyn Fn(FuncId) -> bool,
) -> NumberUse {
    let results = || NumberUse::Values(body.results(op).to_vec());
    match body.kind(op) {
        OpKind::Load(_)
        | OpKind::Cast(_)
        | OpKind::Freeze
        | OpKind::Select
        | OpKind::Binary(_)
        | OpKind::Addr { .. } => results(),
        OpKind::Store(_) if index == 0 => {
            let slot = body.operand(op, 1);
            let own = body.def_op(slot);
            match own.is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_))) {
                true => NumberUse::Values(vec![slot]),
                false => NumberUse::Leaks("the region stores its thread number".into()),
            }
        }
        OpKind::Yield | OpKind::Repeat => {
            let region = body.parent(op);
            let owner = region.and_then(|region| body.owner(region));
            let mut values: Vec<Value> = region
                .into_iter()
                .flat_map(|region| body.region_params(region).iter().copied())
                .chain(
                    owner
                        .into_iter()
                        .flat_map(|op| body.results(op).iter().copied()),
                )
                .collect();
            values.retain(|value| body.ty(*value) == body.ty(body.operand(op, index)));
            NumberUse::Values(values)
        }
        OpKind::Call(_) | OpKind::Invoke(_) => match unit.callee(body, op) {
            Some(_) if index == 0 => NumberUse::Harmless,
            Some(callee) if unit.functions[callee].name.starts_with("llvm.") => NumberUse::Harmless,
            Some(_) if unit.openmp_callee(body, op).is_some() => NumberUse::Harmless,
            Some(callee) if inlined(callee) => NumberUse::Argument(callee, index - 1),
            Some(callee) => {
                let function = &unit.functions[callee];
                let name = function.source_name.as_ref().unwrap_or(&function.name);
                NumberUse::Leaks(format!(
                    "the region hands its thread number to `{name}`, which is not inlined"
                ))
            }
            None => NumberUse::Leaks("an indirect call receives the thread number".into()),
        },
        // Control flow, comparisons and stores to the number's place: no number leaves the region.
        _ => NumberUse::Harmless,
    }
}
