//! Lowers parallel ops to calls of the runtime library, serial code or parallel intrinsics.

use crate::ParallelTarget;
use crate::reports::parallel::ParallelChanges;
use crate::reports::serialized::{DETERMINISTIC_REASON, remarks};
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::raise::serial_record;
use crate::stages::simplify::ParallelSimplify;
use gradus_analysis::Stage;
use gradus_ir::{FuncId, Unit};
use gradus_par::ForkDecision;
use gradus_raise::RegionRecord;
use std::collections::HashSet;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "lower",
    stage: Stage::Unit,
    switch: None,
    about: "lowers parallel ops to calls of the runtime library",
    run: StageRun::Step,
};

/// Lowers parallel code after differentiation: independent loops become parallel again, then calls of the
/// runtime library. Returns `functions` and the functions emitted by lowering.
pub(crate) fn lower_parallel(
    run: &mut Run<'_>,
    unit: &mut Unit,
    functions: &[FuncId],
) -> Result<Vec<FuncId>, Stop> {
    run.pass(&PASS, |run| {
        // Includes functions that are merely run, and functions with forks: a task is not deleted later for
        // an unused result.
        let is_parallel = |func: &FuncId| {
            let body = unit.functions[*func].body.as_deref();
            body.is_some_and(|body| {
                let mut ops = body.walk(body.root());
                ops.any(|op| body.kind(op).is_parallel() || gradus_par::is_fork(unit, body, op))
            })
        };
        let parallel: Vec<FuncId> = functions.iter().copied().filter(is_parallel).collect();
        ParallelSimplify::of(run.request).simplify(unit, &mut run.analyses, &parallel);
        let mut serial_loops = Vec::new();
        for &func in functions {
            if let Some(mut body) = unit.functions[func].body.take() {
                let text = "an iteration uses a value of another iteration";
                let stay = gradus_par::restore(unit, &mut body).into_iter();
                serial_loops.extend(stay.map(|op| serial_record(unit, func, &body, op, text)));
                unit.functions[func].body = Some(body);
            }
        }
        let (functions, forks) = lower(run, unit, functions)?;
        let mut raised = std::mem::take(&mut run.raised);
        raised.regions.extend(serial_loops);
        let name = |func: &FuncId| unit.functions[*func].name.as_str();
        let names: HashSet<&str> = functions.iter().map(name).collect();
        // Regions of functions with preserved bodies are raised again, with the rest of the program.
        let is_told = |region: &RegionRecord| names.contains(region.function.as_str());
        raised.regions.retain(is_told);
        let changes = ParallelChanges {
            forks,
            ..ParallelChanges::default()
        };
        run.add_parallel_report(unit, &raised, &changes);
        Ok(functions)
    })
}

/// Lowers the parallel ops of the changed functions. Returns all functions to export, and the fork
/// conditions of loops.
pub(crate) fn lower(
    run: &mut Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
) -> Result<(Vec<FuncId>, Vec<ForkDecision>), Stop> {
    if run.request.options.deterministic {
        // Forks call copies of functions reachable from here.
        let reached = run.analyses.call_graph(unit, changed).functions().to_vec();
        let teams = gradus_par::stated_teams_to_loops(unit, &reached);
        let message = "this region stays parallel in spite of `--deterministic`: the threads of the `num_threads` clause wait for each other or share work, and the result may depend on the order of threads";
        run.add_diagnostics(remarks(unit, &teams, message))?;
        let serialised = gradus_par::serialize_order_dependent(unit, &reached);
        run.add_diagnostics(remarks(unit, &serialised, DETERMINISTIC_REASON))?;
    }
    let options = gradus_par::Options {
        target: match run.request.options.target {
            ParallelTarget::Runtime | ParallelTarget::OpenMp => gradus_par::Target::Runtime,
            ParallelTarget::Intrinsics => gradus_par::Target::Intrinsics,
        },
        race_free: ParallelSimplify::of(run.request).alias.race_free,
        ..gradus_par::Options::default()
    };
    let lowered = gradus_par::lower(unit, &mut run.analyses, changed, &options);
    let functions: Vec<FuncId> = changed.iter().copied().chain(lowered.made).collect();
    let broken = functions
        .iter()
        .flat_map(|func| gradus_ir::verify_function(unit, *func));
    run.add_diagnostics(broken.collect())?;
    run.after_unit(&PASS, unit)?;
    Ok((functions, lowered.forks))
}
