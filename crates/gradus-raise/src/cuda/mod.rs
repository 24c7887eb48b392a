//! Raising of CUDA launches to grids of blocks.
//!
//! The merge of host and device code leaves a launch as a call of `__gr_launch.NAME` with the sizes of grid and
//! block and the kernel's arguments. The call becomes `spmd grid { spmd block { … } }` with the kernel inlined.
//! Builtin values become the regions' parameters ([`builtin_values`]), shared memory becomes allocations of the block
//! ([`shared_memory`]).
//!
//! # Invariants
//! - An unsupported launch is an error, because no other code could run the launch.
//! - A kernel is inlined once per launch. Large kernels with several launches are inlined only into their
//!   size-generic function, and their launches stay calls until redirected to that function.

mod builtin_values;
mod shared_memory;
mod warp_ops;

use gradus_edit::inline_call;
use gradus_ir::externals::{ExternalFn, GpuFn, KERNEL_PREFIX, LAUNCH_PREFIX, RUN_PREFIX};
use gradus_ir::{
    Body, Builder, Code, Diagnostic, FuncId, Op, OpKind, Region, SpmdKind, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// The result of raising the launches of a unit.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// Diagnostics of launches that stay calls.
    pub refused: Vec<Diagnostic>,
}

/// The regions and properties of a launch.
struct Launch {
    grid: Region,
    block: Region,
    /// The block, an op of the grid's region.
    inner: Op,
    /// The launch's dynamic shared memory in bytes.
    shared_bytes: Value,
}

/// The number of operands before the kernel's arguments: three sizes each of grid and block, and the bytes of
/// shared memory.
const LAUNCH_OPERANDS: usize = 7;

/// The maximum number of ops from inlining a kernel at all launches. A larger kernel with several launches is
/// inlined into its size-generic function only.
const INLINED_OPS_MAX: usize = 4_000;

/// Raises all profitable launches.
pub(crate) fn raise(unit: &mut Unit) -> Launches {
    let functions: Vec<FuncId> = unit.functions.iter().map(|(func, _)| func).collect();
    let apart = launches_too_large_to_inline(unit);
    raise_in(unit, &functions, &apart)
}

/// Raises the launches in `functions`. Launches in `apart` stay calls, except in size-generic functions.
pub(crate) fn raise_in(unit: &mut Unit, functions: &[FuncId], apart: &HashSet<FuncId>) -> Launches {
    let mut launches = Launches::default();
    for &func in functions {
        let runs = unit.functions[func].name.starts_with(RUN_PREFIX);
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let calls: Vec<Op> = body
            .walk(body.root())
            .filter(|op| gpu_builtin(unit, &body, *op) == Some(GpuFn::Launch))
            .filter(|op| runs || !unit.callee(&body, *op).is_some_and(|f| apart.contains(&f)))
            .collect();
        for &call in &calls {
            if let Err(refused) = launch(unit, &mut body, call) {
                launches.refused.push(refused);
            }
        }
        unit.functions[func].body = Some(body);
        if !calls.is_empty() {
            launches.changed.push(func);
        }
    }
    launches
}

/// Returns the launches whose kernels are too large for inlining at every launch.
fn launches_too_large_to_inline(unit: &Unit) -> HashSet<FuncId> {
    let mut sites: HashMap<FuncId, usize> = HashMap::new();
    for (_, function) in unit.functions.iter() {
        let Some(body) = function
            .body
            .as_deref()
            .filter(|_| !function.name.starts_with(RUN_PREFIX))
        else {
            continue;
        };
        for op in body.walk(body.root()) {
            if gpu_builtin(unit, body, op) == Some(GpuFn::Launch)
                && let Some(launch) = unit.callee(body, op)
            {
                *sites.entry(launch).or_default() += 1;
            }
        }
    }
    let long = |launch: &FuncId, sites: usize| {
        let kernel = kernel_of_launch(unit, *launch);
        let code = kernel.and_then(|kernel| unit.functions[kernel].body.as_deref());
        let ops = code.map_or(0, |body| body.walk(body.root()).count());
        sites > 1 && sites * ops > INLINED_OPS_MAX
    };
    sites.retain(|launch, sites| long(launch, *sites));
    sites.into_keys().collect()
}

/// Returns the GPU builtin that `op` calls.
fn gpu_builtin(unit: &Unit, body: &Body, op: Op) -> Option<GpuFn> {
    match unit.known_callee(body, op)? {
        ExternalFn::Kernel(id) => Some(id),
        _ => None,
    }
}

fn launch(unit: &mut Unit, body: &mut Body, call: Op) -> Result<(), Diagnostic> {
    let kernel = kernel_of(unit, body, call)?;
    if unit.functions[kernel].body.is_none() {
        return Err(refused(
            unit,
            kernel,
            "the code of the kernel cannot be imported",
        ));
    }
    let args = unit.call_args(body, call);
    let (sizes, given) = args.split_at(LAUNCH_OPERANDS);
    let (made, inside) = build_grid_and_block(unit, body, call, sizes, kernel, given);
    take_in(unit, body, &made, inside, kernel)?;
    body.erase(call);
    Ok(())
}

/// Inlines a kernel into the regions of a launch.
fn take_in(
    unit: &mut Unit,
    body: &mut Body,
    made: &Launch,
    inside: Op,
    kernel: FuncId,
) -> Result<(), Diagnostic> {
    let code = unit.functions[kernel].body.as_deref().cloned();
    let inlined = match code {
        Some(code) => inline_call(unit, body, inside, kernel, &code).map_err(|why| why.to_string()),
        None => Err("the code of the kernel cannot be imported".to_string()),
    };
    inlined.map_err(|why| refused(unit, kernel, &why))?;
    shared_memory::allocate_shared(unit, body, made);
    let name = source_name(unit, kernel);
    builtin_values::replace_builtins(unit, body, made).map_err(|finding| finding.in_function(name))
}

fn kernel_of(unit: &Unit, body: &Body, call: Op) -> Result<FuncId, Diagnostic> {
    let launch = unit.callee(body, call);
    launch
        .and_then(|launch| kernel_of_launch(unit, launch))
        .ok_or_else(|| {
            let name = launch.map(|func| unit.functions[func].name.clone());
            let name = name.unwrap_or_default();
            let message = format!("the kernel of `{name}` is not defined in this file");
            Diagnostic::error(Code::KernelRefused, message)
        })
}

/// Returns the kernel of a launch function.
fn kernel_of_launch(unit: &Unit, launch: FuncId) -> Option<FuncId> {
    let name = unit.functions[launch].name.strip_prefix(LAUNCH_PREFIX)?;
    unit.function(&format!("{KERNEL_PREFIX}{name}"))
}

/// Builds grid and block, with a call of the kernel inside.
fn build_grid_and_block(
    unit: &mut Unit,
    body: &mut Body,
    call: Op,
    sizes: &[Value],
    kernel: FuncId,
    args: &[Value],
) -> (Launch, Op) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    let (_, grid) = spmd(&mut b, SpmdKind::Grid, &sizes[..3]);
    b.set_insertion_end(grid);
    let (inner, block) = spmd(&mut b, SpmdKind::Block, &sizes[3..6]);
    b.yield_(&[]);
    b.set_insertion_end(block);
    let inside = b.call(kernel, args);
    b.yield_(&[]);
    let launch = Launch {
        grid,
        block,
        inner,
        shared_bytes: sizes[6],
    };
    (launch, inside)
}

/// Builds an `spmd` over `extents`, with ranks and sizes as parameters.
fn spmd(b: &mut Builder, kind: SpmdKind, extents: &[Value]) -> (Op, Region) {
    let dims = extents.len() as u32;
    let op = b.op(OpKind::Spmd { kind, dims }, extents, &[], 1);
    let region = b.body.op_regions(op)[0];
    let long = b.unit.types.int(64);
    for _ in 0..2 * extents.len() {
        b.body.add_param(region, long);
    }
    (op, region)
}

fn source_name(unit: &Unit, kernel: FuncId) -> String {
    let function = &unit.functions[kernel];
    let name = function.display_name();
    name.strip_prefix(KERNEL_PREFIX).unwrap_or(name).to_string()
}

fn refused(unit: &Unit, kernel: FuncId, why: &str) -> Diagnostic {
    let name = source_name(unit, kernel);
    let message = format!("cannot lower kernel `{name}` to loops: {why}");
    Diagnostic::error(Code::KernelRefused, message)
        .in_function(name)
        .at(unit.functions[kernel].span.clone(), "defined here")
}
