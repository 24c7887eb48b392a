//! Barrier fission: splits blocks at barriers into loops over threads.
//!
//! Code before a barrier runs for all threads before code after the barrier. An `if` that contains a barrier
//! keeps its condition per thread. A loop that contains a barrier runs while any thread is active, with a
//! flag per thread. Branches and loops with a uniform condition keep their form.
//!
//! Steps: [`crate::fission::prepare`], [`crate::opt::thread_interchange`] (loops split without a barrier), [`crate::fission::skeleton`] (split
//! points), [`crate::fission::uniformity`] (uniformity), [`crate::fission::thread_storage`] (stored values), [`crate::fission::emit`] (the new code).

pub(crate) mod emit;
pub(crate) mod prepare;
pub(crate) mod segment;
pub(crate) mod skeleton;
pub(crate) mod sync_ops;
pub(crate) mod thread_loops;
pub(crate) mod thread_storage;
pub(crate) mod uniformity;

use crate::addresses::kernel_reads::Reads;
use crate::fission::emit::Plan;
use crate::fission::prepare::prepare;
use crate::fission::skeleton::Spine;
use crate::fission::uniformity::Levels;
use crate::opt::thread_interchange::{InStep, in_step};
use crate::report::{self, KernelRecord};
use crate::warp::races;
use crate::{Facts, Findings, Options, blocks_in};
use gradus_analysis::PolyForms;
use gradus_ir::{Body, Code, Diagnostic, Op, OpKind, Unit};

/// Runs the pass.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts, options: &Options) -> Findings {
    let blocks = blocks_in(body);
    let mut findings = Findings::default();
    for &block in &blocks {
        if let Err(refused) = prepare(unit, body, block) {
            findings.diagnostics.extend(refused);
        }
    }
    if !findings.diagnostics.is_empty() {
        return findings;
    }
    let reads = Reads::of(unit, body, facts, &blocks);
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
    reads: &Reads,
) -> Result<(KernelRecord, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (spine, levels) = cut_points(unit, body, block, reads, options)?;
    let mut doubts = doubtful(unit, body, &spine, &levels);
    let forms = PolyForms::of(unit, body);
    doubts.extend(races::find(unit, body, &spine, &levels, &forms));
    let homes = thread_storage::plan(unit, body, &spine, &levels, &reads.steady, options);
    if let Some(op) = homes.open(unit, body) {
        let message =
            "memory of a thread's own, of no fixed size, is used on both sides of a barrier";
        let finding = Diagnostic::error(Code::KernelRefused, message)
            .at(unit.span(body.ops[op].loc), "the memory")
            .help("give it a fixed size");
        return Err(vec![finding]);
    }
    let plan = Plan {
        spine: &spine,
        levels: &levels,
        homes: &homes,
        steady: &reads.steady,
        options,
    };
    let record = report::of(unit, body, &spine, &levels, &homes);
    emit::block(unit, body, &plan);
    Ok((record, doubts))
}

/// Replaces a team (the code of one rank with barriers) by parallel loops over ranks, and returns whether
/// the replacement succeeded. The op before the team computes the number of ranks.
pub(crate) fn team(unit: &mut Unit, body: &mut Body, facts: &Facts, team: Op) -> bool {
    if prepare(unit, body, team).is_err() {
        return false;
    }
    let options = &Options {
        in_step: false,
        ..Options::default()
    };
    let reads = Reads::of(unit, body, facts, &[team]);
    let Ok((spine, levels)) = cut_points(unit, body, team, &reads, options) else {
        return false;
    };
    let homes = thread_storage::plan(unit, body, &spine, &levels, &reads.steady, options);
    if homes.open(unit, body).is_some() {
        return false;
    }
    let plan = Plan {
        spine: &spine,
        levels: &levels,
        homes: &homes,
        steady: &reads.steady,
        options,
    };
    emit::block(unit, body, &plan);
    gradus_edit::remove_dead_ops(unit, body);
    true
}

/// Computes the split points and the uniformity of a block. Loops that profit from thread interchange become
/// split points, too, unless the loop or an enclosing loop is divergent; a loop with nearly equal trip
/// counts may itself diverge.
///
/// # Errors
/// A barrier inside an op that cannot be split (`KernelRefused`).
fn cut_points(
    unit: &Unit,
    body: &Body,
    block: Op,
    reads: &Reads,
    options: &Options,
) -> Result<(Spine, Levels), Vec<Diagnostic>> {
    let mut in_step = match options.in_step {
        true => in_step(unit, body, block),
        false => Vec::new(),
    };
    loop {
        let loops: Vec<Op> = in_step.iter().map(|lp| lp.op).collect();
        let spine = Spine::of(unit, body, block, &loops)?;
        let levels = Levels::of(unit, body, &spine, reads);
        let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::For { .. } | OpKind::Loop { .. });
        let around = |op: &Op| body.parent(*op).and_then(|region| body.owner(region));
        let parted = |lp: &InStep| {
            let chain = std::iter::successors(Some(lp.op), around).take_while(|op| *op != block);
            let mut loops = chain.filter(is_loop);
            let own = |op: Op| op == lp.op && lp.nearly_common;
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
fn doubtful(unit: &Unit, body: &Body, spine: &Spine, levels: &Levels) -> Vec<Diagnostic> {
    let splits = spine.splits(unit, body);
    let mut findings = Vec::new();
    let branches = spine.regions().iter().flat_map(|r| body.ops_in(*r));
    for op in branches.filter(|op| levels.is_divergent(*op)) {
        let meeting = uniformity::meeting_arms(body, op, &splits);
        if let [first, second, ..] = meeting[..]
            && uniformity::is_by_rank(body, spine, body.operand(op, 0))
        {
            let message = "threads of one block wait at different barriers";
            let finding = Diagnostic::warning(Code::KernelRefused, message)
                .at(unit.span(body.ops[first].loc), "some wait here")
                .at(unit.span(body.ops[second].loc), "others here")
                .help("move the barrier behind the branch, so that all threads reach the same one");
            findings.push(finding);
        }
    }
    findings
}
