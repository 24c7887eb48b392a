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
/// number, to a function that is neither inlined nor part of the runtime, or if memory, control or a result of
/// the region depends on the number. `func` is the region's outlined function; `inlined` selects the functions
/// to be inlined.
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
    /// The number leaves the region's code, or the code depends on the number.
    Leaks(String),
}

/// Classifies the use of a thread number, or of the address of the number, as operand `index` of `op`.
fn number_use(
    unit: &Unit,
    body: &Body,
    op: Op,
    index: usize,
    inlined: &dyn Fn(FuncId) -> bool,
) -> NumberUse {
    let leaks = |text: &str| NumberUse::Leaks(text.into());
    let results = || NumberUse::Values(body.results(op).to_vec());
    match body.kind(op) {
        OpKind::Load(_)
        | OpKind::Freeze
        | OpKind::Select
        | OpKind::Binary(_)
        | OpKind::FNeg
        | OpKind::ExtractElement
        | OpKind::InsertElement
        | OpKind::Shuffle(_)
        | OpKind::ExtractValue(_)
        | OpKind::InsertValue(_) => results(),
        // An address made of a number would not be the address of the number.
        OpKind::Cast(CastOp::IntToPtr) => leaks("an address depends on the thread number"),
        OpKind::Cast(_) => results(),
        OpKind::Addr { .. } if index == 0 => results(),
        OpKind::Addr { .. } => leaks("an address depends on the thread number"),
        OpKind::Alloca(_) => leaks("the size of a variable depends on the thread number"),
        OpKind::Store(_) if index == 0 => {
            let slot = body.operand(op, 1);
            let own = body.def_op(slot);
            match own.is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_))) {
                true => NumberUse::Values(vec![slot]),
                false => leaks("the region stores its thread number"),
            }
        }
        // The op overwrites the number in its place.
        OpKind::Store(_) => NumberUse::Harmless,
        // The result may be the number in the place.
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } if index == 0 => results(),
        OpKind::CmpXchg { .. } if index == 1 => leaks("a comparison reads the thread number"),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
            leaks("the region stores its thread number")
        }
        // The address of a variable is not null on any thread.
        OpKind::ICmp(_) if body.is_null(unit, body.operand(op, 1 - index)) => NumberUse::Harmless,
        OpKind::ICmp(_) | OpKind::FCmp(_) => leaks("a comparison reads the thread number"),
        OpKind::If | OpKind::Switch(_) => leaks("a branch depends on the thread number"),
        OpKind::Loop { .. } => {
            NumberUse::Values(vec![body.region_params(body.op_regions(op)[0])[index]])
        }
        OpKind::For { .. } if index > 0 => {
            NumberUse::Values(vec![body.region_params(body.op_regions(op)[0])[index]])
        }
        OpKind::For { .. } | OpKind::ParFor { .. } | OpKind::ShareFor { .. } => {
            leaks("a loop depends on the thread number")
        }
        // The operands are an extent, conditions of a task, and the results of ranks that do not run a `single`.
        OpKind::Spmd { .. } => leaks("the size of a team depends on the thread number"),
        OpKind::Spawn { .. } => leaks("a task depends on the thread number"),
        OpKind::Single { .. } => NumberUse::Values(vec![body.results(op)[index]]),
        OpKind::Repeat if index == 0 => leaks("a loop depends on the thread number"),
        OpKind::Yield | OpKind::Repeat => yielded_number(body, op, index),
        OpKind::Call(_) | OpKind::Invoke(_) => number_in_call(unit, body, op, index, inlined),
        OpKind::Return => leaks("a function returns the thread number"),
        OpKind::Resume => leaks("an exception holds the thread number"),
        OpKind::Foreign(_) => leaks("an instruction without an op reads the thread number"),
        OpKind::Fence { .. }
        | OpKind::LandingPad(_)
        | OpKind::Scope
        | OpKind::Sync
        | OpKind::Barrier(_)
        | OpKind::Critical(_)
        | OpKind::Unreachable => unreachable!("the op has no operands"),
    }
}

/// Classifies a number that a region yields as operand `index` of its terminator.
fn yielded_number(body: &Body, terminator: Op, index: usize) -> NumberUse {
    let region = body.parent(terminator);
    let Some((region, owner)) = region.and_then(|region| Some((region, body.owner(region)?)))
    else {
        unreachable!("a region that yields belongs to an op");
    };
    let (params, results) = (body.region_params(region), body.results(owner));
    NumberUse::Values(match body.kind(owner) {
        OpKind::Loop { .. } => match index - 1 < params.len() {
            true => vec![params[index - 1]],
            false => vec![results[index - 1 - params.len()]],
        },
        OpKind::For { .. } => vec![params[index + 1], results[index]],
        OpKind::ParFor { .. } => {
            return NumberUse::Leaks("a reduction reads the thread number".into());
        }
        // The other ops with regions have the yielded values as results.
        _ => vec![results[index]],
    })
}

/// Classifies a number that a call receives as operand `index`.
fn number_in_call(
    unit: &Unit,
    body: &Body,
    call: Op,
    index: usize,
    inlined: &dyn Fn(FuncId) -> bool,
) -> NumberUse {
    let Some(callee) = unit.callee(body, call).filter(|_| index > 0) else {
        return NumberUse::Leaks("an indirect call receives the thread number".into());
    };
    let function = &unit.functions[callee];
    if function.name.starts_with("llvm.") {
        return number_in_intrinsic(&function.name, body, call, index);
    }
    if unit.openmp_callee(body, call).is_some() {
        return NumberUse::Harmless;
    }
    let params = function
        .body
        .as_deref()
        .map_or(0, |body| body.params().len());
    if inlined(callee) && index <= params {
        return NumberUse::Argument(callee, index - 1);
    }
    let name = function.display_name();
    NumberUse::Leaks(format!(
        "the region hands its thread number to `{name}`, which is not inlined"
    ))
}

/// Intrinsics that neither compute with operands nor access memory.
const MARKERS: [&str; 5] = [
    "llvm.lifetime.",
    "llvm.dbg.",
    "llvm.assume",
    "llvm.invariant.",
    "llvm.experimental.noalias.scope.decl",
];

/// Classifies a number that an intrinsic of LLVM receives as operand `index`.
fn number_in_intrinsic(name: &str, body: &Body, call: Op, index: usize) -> NumberUse {
    if MARKERS.iter().any(|marker| name.starts_with(marker)) {
        return NumberUse::Harmless;
    }
    // A fill or copy that overwrites the number in its place.
    let writes = ["llvm.memset.", "llvm.memcpy.", "llvm.memmove."];
    if index == 1 && writes.iter().any(|write| name.starts_with(write)) {
        return NumberUse::Harmless;
    }
    match (body.kind(call), body.results(call)) {
        (OpKind::Call(_), [result]) => NumberUse::Values(vec![*result]),
        _ => NumberUse::Leaks(format!("`{name}` reads the thread number")),
    }
}
