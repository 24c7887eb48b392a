//! Derivatives requested by the threads of a GPU kernel, one per thread.
//!
//! Many threads run such a derivative concurrently. Adds to shadows are therefore atomic
//! ([`Variant::concurrent`]). The derivative covers the work of a single thread. Collective operations
//! (barriers, shared memory, warp operations) are refused here: a host function requests their derivative
//! through a launch.

use gradus_ad::Variant;
use gradus_analysis::Analyses;
use gradus_ir::externals::{ExternalFn, GpuFn, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX};
use gradus_ir::{Body, Code, ConstKind, Definition, Diagnostic, FuncId, Op, SourceSpan, Unit};

/// Returns true if code for this target runs in the threads of a GPU.
pub(crate) fn is_of_gpu(triple: &str) -> bool {
    ["nvptx", "amdgcn", "r600", "spirv"]
        .iter()
        .any(|start| triple.starts_with(start))
}

/// Refuses collective operations of a kernel's threads in a function whose derivative each thread requests.
pub(crate) fn collective_op_errors(
    unit: &Unit,
    analyses: &mut Analyses,
    variant: &Variant,
) -> Vec<Diagnostic> {
    if !variant.concurrent {
        return Vec::new();
    }
    let closure = analyses.call_graph(unit, &[variant.func]);
    let of_body = |(func, body): (FuncId, &Body)| {
        let refuse = |(op, what): (Op, String)| {
            let message = format!(
                "{what} has no derivative if the threads of a kernel request the derivative"
            );
            Diagnostic::error(Code::Gpu, message)
                .in_function(unit.functions[func].display_name())
                .at(unit.span(body.ops[op].loc), "here")
                .help("request the derivative of a host function that launches the kernel")
        };
        find_collective_op(unit, body).map(refuse)
    };
    closure.bodies(unit).filter_map(of_body).collect()
}

/// Refuses a derivative whose concurrent runs conflict otherwise than by adding.
pub(crate) fn conflict_error(
    unit: &Unit,
    variant: &Variant,
    alone: Option<&(FuncId, Option<SourceSpan>)>,
) -> Diagnostic {
    let name = unit.functions[alone.map_or(variant.func, |(func, _)| *func)].display_name();
    let message = format!(
        "the threads of a kernel request the derivative of `{}`, which cannot add to common memory atomically",
        unit.functions[variant.func].display_name()
    );
    Diagnostic::error(Code::Gpu, message)
        .in_function(name)
        .at(alone.and_then(|(_, span)| span.clone()), "this access conflicts between threads")
        .help("request the derivative of a host function that launches the kernel, or use plain loads and stores of `float` and `double` here")
}

/// Returns the first collective operation of a body.
fn find_collective_op(unit: &Unit, body: &Body) -> Option<(Op, String)> {
    let speaks = |op: Op| {
        let callee = unit.callee(body, op)?;
        let what = match unit.known(callee) {
            Some(ExternalFn::Kernel(of_kernel)) => describe_collective(of_kernel)?,
            _ => describe_gpu_intrinsic(&unit.functions[callee].name)?,
        };
        Some((op, what.to_string()))
    };
    let calls = body.walk(body.root()).find_map(speaks);
    calls.or_else(|| find_shared_memory_use(unit, body))
}

/// Describes the interaction of a device function with other threads.
fn describe_collective(function: GpuFn) -> Option<&'static str> {
    Some(match function {
        GpuFn::Barrier
        | GpuFn::GridBarrier
        | GpuFn::BarrierCount
        | GpuFn::BarrierAnd
        | GpuFn::BarrierOr => "a barrier",
        GpuFn::SyncWarp => "a warp synchronisation",
        GpuFn::Shuffle | GpuFn::Vote | GpuFn::Match | GpuFn::ActiveMask => {
            "a warp operation that exchanges values"
        }
        GpuFn::Launch => "a kernel launch",
        _ => return None,
    })
}

/// Describes the interaction of a GPU instruction with other threads. Thread-index queries have none.
fn describe_gpu_intrinsic(name: &str) -> Option<&'static str> {
    let of_gpu = ["llvm.nvvm.", "llvm.amdgcn.", "llvm.r600.", "llvm.spv."];
    let asks = ["sreg", "workitem.id", "workgroup.id", "dispatch"];
    let rest = of_gpu.iter().find_map(|start| name.strip_prefix(start))?;
    if asks.iter().any(|word| rest.contains(word)) {
        return None;
    }
    let meets = [
        "bar",
        "shfl",
        "vote",
        "match",
        "activemask",
        "ballot",
        "ds.",
        "permute",
        "redux",
    ];
    let found = meets.iter().any(|word| rest.contains(word));
    found.then_some("an operation that synchronises threads or exchanges values")
}

/// Returns an op that uses a variable in shared memory.
fn find_shared_memory_use(unit: &Unit, body: &Body) -> Option<(Op, String)> {
    let shared = body.values.iter().filter_map(|(value, data)| {
        let Definition::Const(id) = data.def else {
            return None;
        };
        let ConstKind::Global { global, .. } = unit.constant(id).kind else {
            return None;
        };
        let name = &unit.globals[global].name;
        let own = [SHARED_DYNAMIC_PREFIX, SHARED_PREFIX]
            .iter()
            .find_map(|start| name.strip_prefix(start))?;
        Some((value, own.to_string()))
    });
    let mut used = shared.filter_map(|(value, name)| Some((body.uses(value).next()?.op, name)));
    let (op, name) = used.next()?;
    Some((
        op,
        format!("the shared memory of `{}`", source_variable_name(&name)),
    ))
}

/// Returns the source's name of a function's variable: the last part of a mangled name.
fn source_variable_name(name: &str) -> &str {
    let digits = |c: char| c.is_ascii_digit();
    match name.strip_prefix("_ZZ") {
        Some(rest) => rest.rfind(digits).map_or(rest, |at| &rest[at + 1..]),
        None => name,
    }
}
