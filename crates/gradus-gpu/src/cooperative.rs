//! Cooperative threads: kernels with spin loops stay grids, and each thread runs as a fiber.
//!
//! ```text
//! spmd grid { spmd block { loop { …; repeat again } } }
//!   →   spmd grid turns { spmd block { loop { …; if again { gr_turn_wait() }; repeat again } } }
//! ```
//!
//! A block that is split into loops runs each thread from barrier to barrier before the next thread starts.
//! A thread that spins ([`gradus_edit::may_spin`]) on a later thread or a later block would never end. In
//! such a kernel each thread gets its own stack, and yields before the next iteration of the spin loop.
//! gradus-par lowers the grid to fibers; all other passes of this crate skip the grid.
//!
//! A spin loop with a barrier needs no fibers: all threads still in the loop run each iteration together,
//! and the kernel is split into loops. If a kernel cannot use cooperative threads, a warning states the
//! assumption. Fibers pass barriers in thread order, and threads that bypass a barrier must exit without a
//! further barrier. Threads that communicate through volatile shared memory assume lockstep.
//!
//! Place: after [`crate::warp::lockstep`], before the passes that exploit uniformity.

use crate::blocks::arms::live_terminator;
use crate::blocks::kernel_reads::KernelReads;
use crate::blocks::prepare::prepare;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::sync_ops;
use crate::blocks::uniformity::Uniformity;
use crate::blocks::{blocks_to_lower, grid_of};
use crate::warp::lockstep;
use crate::{Options, PassOutcome};
use gradus_analysis::PassContext;
use gradus_edit::{is_speculatable, may_spin};
use gradus_ir::{
    AllocaStorage, AttrSet, Body, Builder, Code, Diagnostic, Flags, Op, OpKind, Unit, Value,
};

/// The run-time call that yields to other threads.
const YIELD_FN: &str = "gr_turn_wait";

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let mut findings = PassOutcome::default();
    for block in blocks_to_lower(body) {
        let waiting = spin_loops_in(unit, body, block);
        let Some(&first) = waiting.first() else {
            continue;
        };
        let hindrance = match options.cooperative_threads {
            true => refusal_reason(unit, body, facts, block),
            false => Some("cooperative threads are disabled"),
        };
        match (hindrance, grid_of(body, block)) {
            (None, Some(grid)) => {
                let flags = &mut body.ops[grid].flags;
                *flags = flags.with(Flags::COOPERATIVE_THREADS);
                for lp in waiting {
                    insert_yield(unit, body, lp);
                }
            }
            (hindrance, _) => {
                let why = hindrance.unwrap_or("cooperative threads require an enclosing grid");
                findings
                    .diagnostics
                    .push(unsupported_warning(unit, body, first, why));
            }
        }
    }
    findings
}

fn unsupported_warning(unit: &Unit, body: &Body, lp: Op, why: &str) -> Diagnostic {
    let message = format!(
        "threads may wait in this loop for values that other threads write, and the wait may not end: {why}"
    );
    Diagnostic::warning(Code::KernelRefused, message)
        .at(unit.span(body.ops[lp].loc), "spin loop")
        .help("the loop ends if threads wait only for earlier blocks and for earlier threads of the same block; otherwise move the code after the loop to a second kernel")
}

/// The spin loops of a block without barriers.
fn spin_loops_in(unit: &Unit, body: &Body, block: Op) -> Vec<Op> {
    let region = body.op_regions(block)[0];
    let meets = |lp: &Op| {
        let mut inner = body.op_regions(*lp).iter().flat_map(|r| body.walk(*r));
        inner.any(|op| sync_ops::sync_scope(unit, body, op).is_some())
    };
    let loops = body.walk(region).filter(|op| may_spin(unit, body, *op));
    loops.filter(|lp| !meets(lp)).collect()
}

/// The reason against cooperative threads in a block; `None` if there is none. Moves the block's shared
/// allocations to its start.
fn refusal_reason(
    unit: &Unit,
    body: &mut Body,
    facts: &PassContext,
    block: Op,
) -> Option<&'static str> {
    if prepare(unit, body, block).is_err() || !has_plain_grid(unit, body, block) {
        return Some("the kernel computes a size of the block or of shared memory");
    }
    if !lockstep::volatile_shared_stores(unit, body, facts, block).is_empty() {
        return Some(
            "the kernel also communicates through volatile shared memory in warp lockstep",
        );
    }
    let reads = KernelReads::of(unit, body, facts, &[block]);
    let Ok(spine) = Skeleton::of(unit, body, block, &[]) else {
        return Some("the kernel contains a barrier at which the code cannot be split");
    };
    let levels = Uniformity::of(unit, body, &spine, &reads);
    let alike = spine
        .splits(unit, body)
        .iter()
        .all(|(op, _)| is_reached_by_all(unit, body, &spine, &levels, *op));
    (!alike).then_some("the kernel contains a barrier in divergent control flow")
}

/// Returns whether a grid contains, besides its block, only speculatable ops and shared memory with sizes
/// given by the launch.
fn has_plain_grid(unit: &Unit, body: &Body, block: Op) -> bool {
    let Some(grid) = grid_of(body, block) else {
        return false;
    };
    let (outer, inner) = (body.op_regions(grid)[0], body.op_regions(block)[0]);
    let outside = |value: Value| !body.is_defined_in(value, outer);
    let is_shared = |op: Op| matches!(body.kind(op), OpKind::Alloca(info) if info.storage == AllocaStorage::Shared);
    let plain = |op: Op| {
        let kind = body.kind(op);
        op == block || kind.is_terminator() || is_speculatable(unit, body, op) || is_shared(op)
    };
    let sizes = body.operands(block).all(outside);
    let mut memory = body.walk(outer).filter(|op| is_shared(*op));
    let is_first = |op: Op| body.parent(op) == Some(outer) || body.parent(op) == Some(inner);
    sizes
        && body.ops_in(outer).all(plain)
        && memory.all(|op| is_first(op) && outside(body.operand(op, 0)))
}

/// Returns whether all threads that have not exited reach a barrier: threads that take another path reach no
/// later barrier.
fn is_reached_by_all(
    unit: &Unit,
    body: &Body,
    spine: &Skeleton,
    levels: &Uniformity,
    meeting: Op,
) -> bool {
    let chain: Vec<Op> = body
        .op_and_ancestors(meeting)
        .take_while(|op| *op != spine.block)
        .collect();
    let is_loop = |op: &Op| body.kind(*op).is_loop();
    chain.windows(2).enumerate().all(|(depth, pair)| {
        let [inner, outer] = [pair[0], pair[1]];
        if !levels.is_divergent(outer) {
            return true;
        }
        let own = body.parent(inner);
        let meetings = body.walk(spine.root);
        let meetings = meetings.filter(|op| sync_ops::sync_scope(unit, body, *op).is_some());
        let mut later = meetings.skip_while(|op| !body.is_ancestor(outer, *op));
        let once = !chain[depth + 1..].iter().any(is_loop);
        let same_arm = |op: Op| own.is_some_and(|own| body.is_nested_in(op, own));
        once && later.all(same_arm)
    })
}

/// Inserts a yield before the next iteration of a loop.
fn insert_yield(unit: &mut Unit, body: &mut Body, lp: Op) {
    let region = body.op_regions(lp)[0];
    let Some(end) = live_terminator(body, region) else {
        // Not an error: such a loop has no next iteration.
        return;
    };
    let void = unit.types.void();
    let ty = unit.types.func(void, Vec::new());
    let wait = unit.declare(YIELD_FN, ty, AttrSet::default());
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(end);
    b.loc = b.body.ops[end].loc;
    let again = b.body.operand(end, 0);
    let (_, yes, no) = b.if_(again, &[]);
    b.set_insertion_end(yes);
    b.call(wait, &[]);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.yield_(&[]);
}
