//! Barrier fission: splits blocks at barriers into loops over threads.
//!
//! Code before a barrier runs for all threads before code after the barrier. An `if` that contains a barrier
//! keeps its condition per thread. A loop that contains a barrier runs while any thread is active, with a
//! flag per thread. Branches and loops with a uniform condition keep their form.
//!
//! Steps: [`mod@crate::blocks::prepare`], [`crate::fission::thread_interchange`] (loops split without a barrier), [`crate::blocks::skeleton`] (split
//! points), [`crate::blocks::uniformity`] (uniformity), [`crate::blocks::thread_storage`] (stored values), [`crate::fission::emit`] (the new code).

pub(crate) mod emit;
pub(crate) mod segment;
pub(crate) mod thread_interchange;
pub(crate) mod thread_loops;

use crate::blocks::blocks_to_lower;
use crate::blocks::kernel_reads::KernelReads;
use crate::blocks::prepare::prepare;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::uniformity::Uniformity;
use crate::blocks::{thread_storage, uniformity};
use crate::fission::emit::SplitPlan;
use crate::fission::thread_interchange::{InterchangeLoop, interchange_loops};
use crate::report::{self, KernelRecord};
use crate::warp::races;
use crate::{Options, PassOutcome};
use gradus_analysis::{PassContext, PolyForms};
use gradus_ir::{Body, Code, Diagnostic, Op, Unit};

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let blocks = blocks_to_lower(body);
    let mut findings = PassOutcome::default();
    for &block in &blocks {
        if let Err(refused) = prepare(unit, body, block) {
            findings.diagnostics.extend(refused);
        }
    }
    if !findings.diagnostics.is_empty() {
        return findings;
    }
    let reads = KernelReads::of(unit, body, facts, &blocks);
    for block in blocks {
        match block_to_loops(unit, body, options, block, &reads) {
            Ok((record, doubts)) => {
                findings.kernels.push((block, record));
                findings.diagnostics.extend(doubts);
            }
            Err(refused) => findings.diagnostics.extend(refused),
        }
    }
    gradus_edit::remove_dead_ops(unit, body);
    findings
}

fn block_to_loops(
    unit: &mut Unit,
    body: &mut Body,
    options: &Options,
    block: Op,
    reads: &KernelReads,
) -> Result<(KernelRecord, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (spine, levels) = split_points(unit, body, block, reads, options)?;
    let mut doubts = warn_divergent_barriers(unit, body, &spine, &levels);
    let forms = PolyForms::of(unit, body);
    doubts.extend(races::find_race(unit, body, &spine, &levels, &forms));
    let homes = thread_storage::plan(unit, body, &spine, &levels, &reads.steady, options);
    if let Some(op) = homes.alloca_of_unknown_size(unit, body) {
        let message = "thread-private memory of variable size is used on both sides of a barrier";
        let finding = Diagnostic::error(Code::KernelRefused, message)
            .at(unit.span(body.ops[op].loc), "allocated here")
            .help("allocate a fixed size");
        return Err(vec![finding]);
    }
    let plan = SplitPlan {
        spine: &spine,
        levels: &levels,
        homes: &homes,
        steady: &reads.steady,
        options,
    };
    let record = report::kernel_record(unit, body, &spine, &levels, &homes);
    emit::split_block(unit, body, &plan);
    Ok((record, doubts))
}

/// Replaces a team (the code of one rank with barriers) by parallel loops over ranks, and returns whether
/// the replacement succeeded. The op before the team computes the number of ranks.
pub(crate) fn team_to_rank_loops(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    team: Op,
) -> bool {
    if prepare(unit, body, team).is_err() {
        return false;
    }
    let options = &Options {
        thread_interchange: false,
        ..Options::default()
    };
    let reads = KernelReads::of(unit, body, facts, &[team]);
    let Ok((spine, levels)) = split_points(unit, body, team, &reads, options) else {
        return false;
    };
    let homes = thread_storage::plan(unit, body, &spine, &levels, &reads.steady, options);
    if homes.alloca_of_unknown_size(unit, body).is_some() {
        return false;
    }
    let plan = SplitPlan {
        spine: &spine,
        levels: &levels,
        homes: &homes,
        steady: &reads.steady,
        options,
    };
    emit::split_block(unit, body, &plan);
    gradus_edit::remove_dead_ops(unit, body);
    true
}

/// Computes the split points and the uniformity of a block. Loops that profit from thread interchange become
/// split points, too, unless the loop or an enclosing loop is divergent; a loop with nearly equal trip
/// counts may itself diverge.
///
/// # Errors
/// A barrier inside an op that cannot be split (`KernelRefused`).
fn split_points(
    unit: &Unit,
    body: &Body,
    block: Op,
    reads: &KernelReads,
    options: &Options,
) -> Result<(Skeleton, Uniformity), Vec<Diagnostic>> {
    let mut in_step = match options.thread_interchange {
        true => interchange_loops(unit, body, block),
        false => Vec::new(),
    };
    loop {
        let loops: Vec<Op> = in_step.iter().map(|lp| lp.op).collect();
        let spine = Skeleton::of(unit, body, block, &loops)?;
        let levels = Uniformity::of(unit, body, &spine, reads);
        let parted = |lp: &InterchangeLoop| {
            let chain = body.op_and_ancestors(lp.op).take_while(|op| *op != block);
            let mut loops = chain.filter(|op| body.kind(*op).is_loop());
            let own = |op: Op| op == lp.op && lp.close_trip_counts;
            loops.any(|op| levels.is_divergent(op) && !own(op))
        };
        let before = in_step.len();
        in_step.retain(|lp| !parted(lp));
        if in_step.len() == before {
            return Ok((spine, levels));
        }
    }
}

/// Warns about thread-dependent branches with barriers in several arms. On a GPU, threads that wait at
/// different barriers deadlock; the lowered code runs the arms in sequence.
fn warn_divergent_barriers(
    unit: &Unit,
    body: &Body,
    spine: &Skeleton,
    levels: &Uniformity,
) -> Vec<Diagnostic> {
    let splits = spine.splits(unit, body);
    let mut findings = Vec::new();
    let branches = spine.regions().iter().flat_map(|r| body.ops_in(*r));
    for op in branches.filter(|op| levels.is_divergent(*op)) {
        let meeting = uniformity::barriers_in_arms(body, op, &splits);
        if let [first, second, ..] = meeting[..]
            && uniformity::depends_on_rank(body, spine, body.operand(op, 0))
        {
            let message = "threads of one block wait at different barriers";
            let finding = Diagnostic::warning(Code::KernelRefused, message)
                .at(unit.span(body.ops[first].loc), "some threads wait here")
                .at(unit.span(body.ops[second].loc), "other threads wait here")
                .help(
                    "move the barrier after the branch, so that all threads reach the same barrier",
                );
            findings.push(finding);
        }
    }
    findings
}
