//! CUDA launches become grids of blocks.
//!
//! The merge of host and device leaves a launch as a call of `__gr_launch.NAME` with the sizes of grid and
//! block and the kernel's arguments. Here it becomes `spmd grid { spmd block { … } }` with the code of
//! the kernel inside; what the kernel asks about its thread becomes the regions' parameters
//! ([`answers`]), what it shares with its block an allocation ([`shared`]).
//!
//! Invariants: a launch that is not understood is an error, since nothing else could run it. A kernel is taken
//! in once for each launch of it; long kernels that are launched at many places only in the function that
//! runs them for all sizes, and their launches stay calls until they call that.

mod answers;
mod shared;
mod warps;

use gradus_edit::inline_call;
use gradus_ir::known::{GpuFn, KERNEL, Known, LAUNCH, RUN};
use gradus_ir::{
    Body, Builder, Code, Diagnostic, FuncId, Op, OpKind, Region, SpmdKind, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// What raising the launches of a unit came to.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// Launches that stay calls.
    pub refused: Vec<Diagnostic>,
}

/// The regions of a launch, and what the launch says.
struct Launch {
    grid: Region,
    block: Region,
    /// The block, an op of the grid's region.
    inner: Op,
    /// The bytes of shared memory that the launch asks for.
    shared_bytes: Value,
}

/// Numbers before the kernel's arguments: three sizes each of grid and block, and bytes of shared memory.
const SIZES: usize = 7;

/// A kernel is taken in at all its launches where that makes at most so many ops; else, but for one launch,
/// where its sizes need not be known.
const COPIES_OPS: usize = 4_000;

/// Raises the launches that are worth the code.
pub(crate) fn raise(unit: &mut Unit) -> Launches {
    let functions: Vec<FuncId> = unit.functions.iter().map(|(func, _)| func).collect();
    let apart = run_apart(unit);
    raise_in(unit, &functions, &apart)
}

/// Raises the launches in some functions; but where a function runs a kernel for all sizes, those in `apart` stay
/// calls.
pub(crate) fn raise_in(unit: &mut Unit, functions: &[FuncId], apart: &HashSet<FuncId>) -> Launches {
    let mut launches = Launches::default();
    for &func in functions {
        let runs = unit.functions[func].name.starts_with(RUN);
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let calls: Vec<Op> = body
            .walk(body.root())
            .filter(|op| asks(unit, &body, *op) == Some(GpuFn::Launch))
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

/// The launches whose kernels are too long to be taken in at all places that launch them.
fn run_apart(unit: &Unit) -> HashSet<FuncId> {
    let mut sites: HashMap<FuncId, usize> = HashMap::new();
    for (_, function) in unit.functions.iter() {
        let Some(body) = function
            .body
            .as_deref()
            .filter(|_| !function.name.starts_with(RUN))
        else {
            continue;
        };
        for op in body.walk(body.root()) {
            if asks(unit, body, op) == Some(GpuFn::Launch)
                && let Some(launch) = unit.callee(body, op)
            {
                *sites.entry(launch).or_default() += 1;
            }
        }
    }
    let long = |launch: &FuncId, sites: usize| {
        let kernel = kernel_named(unit, *launch);
        let code = kernel.and_then(|kernel| unit.functions[kernel].body.as_deref());
        let ops = code.map_or(0, |body| body.walk(body.root()).count());
        sites > 1 && sites * ops > COPIES_OPS
    };
    sites.retain(|launch, sites| long(launch, *sites));
    sites.into_keys().collect()
}

/// Which of a kernel's surroundings a call speaks with.
fn asks(unit: &Unit, body: &Body, op: Op) -> Option<GpuFn> {
    match unit.known(unit.callee(body, op)?)? {
        Known::Kernel(id) => Some(id),
        _ => None,
    }
}

fn launch(unit: &mut Unit, body: &mut Body, call: Op) -> Result<(), Diagnostic> {
    let kernel = kernel_of(unit, body, call)?;
    if unit.functions[kernel].body.is_none() {
        return Err(refused(
            unit,
            kernel,
            "its code cannot be brought into regions",
        ));
    }
    let args = unit.call_args(body, call);
    let (sizes, given) = args.split_at(SIZES);
    let (made, inside) = regions(unit, body, call, sizes, kernel, given);
    take_in(unit, body, &made, inside, kernel)?;
    body.erase(call);
    Ok(())
}

/// Puts a kernel's code in the place of its call inside of a launch's regions.
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
        None => Err("its code cannot be brought into regions".to_string()),
    };
    inlined.map_err(|why| refused(unit, kernel, &why))?;
    shared::allocate(unit, body, made);
    let name = source_name(unit, kernel);
    answers::answer(unit, body, made).map_err(|finding| finding.in_function(name))
}

fn kernel_of(unit: &Unit, body: &Body, call: Op) -> Result<FuncId, Diagnostic> {
    let launch = unit.callee(body, call);
    launch
        .and_then(|launch| kernel_named(unit, launch))
        .ok_or_else(|| {
            let name = launch.map(|func| unit.functions[func].name.clone());
            let name = name.unwrap_or_default();
            let message = format!("the kernel of `{name}` is not in this file");
            Diagnostic::error(Code::KernelRefused, message)
        })
}

/// The kernel that a launch's function stands for.
fn kernel_named(unit: &Unit, launch: FuncId) -> Option<FuncId> {
    let name = unit.functions[launch].name.strip_prefix(LAUNCH)?;
    unit.function(&format!("{KERNEL}{name}"))
}

/// The grid and the block, with a call of the kernel inside.
fn regions(
    unit: &mut Unit,
    body: &mut Body,
    call: Op,
    sizes: &[Value],
    kernel: FuncId,
    args: &[Value],
) -> (Launch, Op) {
    let mut b = Builder::new(unit, body);
    b.at_op(call);
    b.loc = b.body.ops[call].loc;
    let (_, grid) = spmd(&mut b, SpmdKind::Grid, &sizes[..3]);
    b.at_end(grid);
    let (inner, block) = spmd(&mut b, SpmdKind::Block, &sizes[3..6]);
    b.yield_(&[]);
    b.at_end(block);
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

/// An `spmd` over some extents, with its ranks and sizes as parameters.
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
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    name.strip_prefix(KERNEL).unwrap_or(name).to_string()
}

fn refused(unit: &Unit, kernel: FuncId, why: &str) -> Diagnostic {
    let name = source_name(unit, kernel);
    let message = format!("the kernel {name} cannot become loops: {why}");
    Diagnostic::error(Code::KernelRefused, message)
        .in_function(name)
        .at(unit.functions[kernel].span.clone(), "defined here")
}
