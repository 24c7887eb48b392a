//! Blocks become loops over threads, cut where the threads meet.
//!
//! What comes before a barrier runs for all threads before what comes behind it. A branch with a barrier
//! inside keeps its condition per thread; a loop with one runs as long as any thread is in it, with a
//! flag per thread; where the condition is common to all threads, branch and loop stay what they are.
//! The steps: [`crate::prepare`], [`crate::steps`] (loops that are cut without a barrier), [`crate::spine`] (where to cut), [`crate::levels`] (what is common),
//! [`crate::homes`] (what is stored), [`crate::cut`] (the new code).

use crate::cut::{self, Plan};
use crate::homes;
use crate::levels::{self, Levels};
use crate::memory::Reads;
use crate::prepare::prepare;
use crate::report::{self, KernelRecord};
use crate::spine::Spine;
use crate::steps::{InStep, in_step};
use crate::{Facts, Findings, Options, blocks_in, unmet};
use gradus_analysis::LinearForms;
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
    gradus_edit::sweep_dead(unit, body);
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
    let forms = LinearForms::of(unit, body);
    doubts.extend(unmet::find(unit, body, &spine, &levels, &forms));
    let homes = homes::plan(unit, body, &spine, &levels, &reads.steady, options);
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
    cut::block(unit, body, &plan);
    Ok((record, doubts))
}

/// Puts parallel loops over its ranks in the place of a team that is the code of one rank with barriers; whether it
/// could. The number of ranks is made by the op before the team.
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
    let homes = homes::plan(unit, body, &spine, &levels, &reads.steady, options);
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
    cut::block(unit, body, &plan);
    gradus_edit::sweep_dead(unit, body);
    true
}

/// Where a block is cut and what its threads have in common. Loops that gain from being run in step are cut
/// at, too, where their threads leave them together.
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

/// Branches by rank with barriers in several arms. On a GPU threads that wait at different barriers wait
/// for ever; here those of one arm run before those of the other.
fn doubtful(unit: &Unit, body: &Body, spine: &Spine, levels: &Levels) -> Vec<Diagnostic> {
    let splits = spine.splits(unit, body);
    let mut findings = Vec::new();
    let branches = spine.regions().iter().flat_map(|r| body.ops_in(*r));
    for op in branches.filter(|op| levels.is_divergent(*op)) {
        let meeting = levels::meeting_arms(body, op, &splits);
        if let [first, second, ..] = meeting[..]
            && levels::is_by_rank(body, spine, body.operand(op, 0))
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
