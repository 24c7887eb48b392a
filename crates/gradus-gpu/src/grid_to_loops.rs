//! Turns grids into parallel loops over blocks.
//!
//! Place: after [`crate::fission`], when no block is left. Memory shared by the threads of a block becomes
//! private to an iteration of the parallel loop.

use crate::blocks::is_cooperative;
use crate::fission::thread_loops::block_memory;
use crate::{Options, PassOutcome};
use gradus_analysis::PassContext;
use gradus_ir::{
    AllocaStorage, Body, Builder, Code, Diagnostic, Flags, Op, OpKind, SpmdKind, Unit, Value,
};

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    _facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let grids: Vec<Op> = body
        .walk(body.root())
        .filter(|op| {
            matches!(
                body.kind(*op),
                OpKind::Spmd {
                    kind: SpmdKind::Grid,
                    ..
                }
            ) && !is_cooperative(body, *op)
        })
        .collect();
    let mut findings = PassOutcome::default();
    for grid in grids {
        match refusal(unit, body, grid) {
            Some(finding) => findings.diagnostics.push(finding),
            None => grid_to_loop(unit, body, options, grid),
        }
    }
    findings
}

/// The error for an op in a grid that prevents a parallel loop.
fn refusal(unit: &Unit, body: &Body, grid: Op) -> Option<Diagnostic> {
    let region = body.op_regions(grid)[0];
    let stays = |op: &Op| matches!(body.kind(*op), OpKind::Barrier(_) | OpKind::Spmd { .. });
    let op = body.walk(region).find(stays)?;
    if matches!(body.kind(op), OpKind::Spmd { .. }) {
        // The block already has a diagnostic.
        return Some(
            Diagnostic::error(
                Code::KernelRefused,
                "a block of this grid cannot be lowered to loops",
            )
            .at(unit.span(body.ops[grid].loc), "launched here"),
        );
    }
    let message = "a grid-wide barrier cannot be lowered: the blocks of a grid become iterations of a parallel loop";
    let finding = Diagnostic::error(Code::KernelRefused, message)
        .at(unit.span(body.ops[op].loc), "grid-wide barrier")
        .help("end the kernel at the barrier and launch a second kernel for the remaining code");
    Some(finding)
}

fn grid_to_loop(unit: &mut Unit, body: &mut Body, options: &Options, grid: Op) {
    let region = body.op_regions(grid)[0];
    let b = &mut Builder::new(unit, body);
    privatize_shared_memory(b, options, grid);
    let extents: Vec<Value> = b.body.operands(grid).collect();
    let params = b.body.region_params(region).to_vec();
    let (ranks, sizes) = params.split_at(extents.len());
    for (&size, &extent) in sizes.iter().zip(&extents) {
        b.body.replace_uses(size, extent);
    }
    b.loc = b.body.ops[grid].loc;
    b.set_insertion_before(grid);
    let is_one = |b: &Builder, extent: Value| b.body.as_int(b.unit, extent) == Some(1);
    let mut kept: Vec<usize> = (0..extents.len())
        .filter(|i| !is_one(b, extents[*i]))
        .collect();
    if kept.is_empty() {
        kept.push(0);
    }
    // The last index of a parallel loop is the fastest, the first rank of a grid.
    kept.reverse();
    let bounds: Vec<Value> = kept.iter().map(|i| extents[*i]).collect();
    let kind = OpKind::ParFor {
        dims: bounds.len() as u32,
        reductions: Box::default(),
        grain: None,
    };
    let made = b.op(kind, &bounds, &[], 1);
    if !options.race_free {
        b.body.ops[made].flags = Flags::ALLOWS_EQUAL_WRITES;
    }
    let into = b.body.op_regions(made)[0];
    for (i, &rank) in ranks.iter().enumerate() {
        let ty = b.body.ty(rank);
        if !kept.contains(&i) {
            let zero = b.int(ty, 0);
            b.body.replace_uses(rank, zero);
        }
    }
    for &i in &kept {
        let ty = b.body.ty(ranks[i]);
        let index = b.body.add_param(into, ty);
        if let Some(name) = b.body.name(ranks[i]).map(str::to_string) {
            b.body.set_name(index, &name);
        }
        b.body.replace_uses(ranks[i], index);
    }
    b.body.move_ops(region, into);
    b.body.erase(grid);
}

/// Turns the allocations of a grid into private memory of each block.
fn privatize_shared_memory(b: &mut Builder<'_>, options: &Options, grid: Op) {
    let region = b.body.op_regions(grid)[0];
    let of_grid = |op: &Op| match b.body.kind(*op) {
        OpKind::Alloca(info) => info.storage != AllocaStorage::Private,
        _ => false,
    };
    let shared: Vec<Op> = b.body.ops_in(region).filter(of_grid).collect();
    for op in shared {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let memory = block_memory(b, op, options);
        let result = b.body.result(op);
        b.body.replace_uses(result, memory);
        b.body.erase(op);
    }
}
