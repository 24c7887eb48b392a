//! Raises runtime calls to parallel ops, and records the regions that were raised.
//!
//! The serial projection before differentiation ([`crate::stages::serial_projection`]) belongs to the same row.

use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::{Analyses, Stage};
use gradus_ir::externals::KERNEL_PREFIX;
use gradus_ir::{Body, Flags, FuncId, Linkage, Op, OpKind, Unit};
use gradus_llvm::Imported;
use gradus_raise::{Orphans, Outcome, Raised, Reason, RegionRecord};

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "raise",
    stage: Stage::Unit,
    switch: None,
    about: "raises runtime calls to parallel ops; before differentiation also the serial projection",
    run: StageRun::Step,
};

/// Raises all recognised constructs. Loops merely declared independent become parallel if their carried
/// values may be combined in any order.
pub(crate) fn raise(unit: &mut Unit, orphans: &Orphans) -> Raised {
    let mut raised = gradus_raise::raise(unit, orphans);
    for &func in &raised.changed {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for op in gradus_par::restore(unit, &mut body) {
            let flags = &mut body.ops[op].flags;
            *flags = flags.without(Flags::INDEPENDENT);
            let text = "`gr_for`: an iteration uses a value of another iteration";
            raised
                .regions
                .push(serial_record(unit, func, &body, op, text));
        }
        gradus_par::convert_task_loops(unit, &mut body);
        unit.functions[func].body = Some(body);
    }
    raised
}

/// Returns the record of an op that runs serially, and why.
pub(crate) fn serial_record(
    unit: &Unit,
    func: FuncId,
    body: &Body,
    op: Op,
    why: &str,
) -> RegionRecord {
    let span = unit.span(body.ops[op].loc);
    RegionRecord {
        function: unit.functions[func].name.clone(),
        span: span.clone(),
        outcome: Outcome::Serial(Reason {
            text: why.to_string(),
            span,
        }),
        constructs: Vec::new(),
    }
}

/// Turns teams into parallel loops if inlining made the fold visible. Updates the records of regions no
/// longer run as teams.
pub(crate) fn record_late_folds(
    unit: &mut Unit,
    analyses: &mut Analyses,
    raised: &mut Raised,
    changed: &[FuncId],
) {
    let folded = gradus_raise::fold_again(unit, raised, changed);
    if folded.is_empty() {
        return;
    }
    let roots = unit
        .functions
        .iter()
        .filter(|(_, f)| f.linkage != Linkage::Internal);
    let roots: Vec<FuncId> = roots.map(|(func, _)| func).collect();
    let closure = analyses.call_graph(unit, &roots);
    let teams = closure.bodies(unit).flat_map(|(_, body)| {
        let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
        let teams = body.walk(body.root()).filter(is_team);
        teams.filter_map(|op| unit.span(body.ops[op].loc))
    });
    let teams: Vec<_> = teams.collect();
    for record in &mut raised.regions {
        let is_loops = |span| folded.contains(span) && !teams.contains(span);
        if matches!(record.outcome, Outcome::Team(_)) && record.span.as_ref().is_some_and(is_loops)
        {
            record.outcome = Outcome::Loops;
        }
    }
}

/// Refuses launches that cannot become grids, together with the reasons that kept the kernels from being
/// imported.
pub(crate) fn refused_launches(
    run: &mut Run<'_>,
    imported: &Imported,
    raised: &mut Raised,
) -> Result<(), Stop> {
    let refused = std::mem::take(&mut raised.refused);
    if refused.is_empty() {
        return Ok(());
    }
    let unread = imported.refused.iter();
    let unread = unread.filter(|(func, _)| {
        imported.unit.functions[*func]
            .name
            .starts_with(KERNEL_PREFIX)
    });
    let reasons: Vec<_> = unread
        .filter_map(|(func, _)| imported.refusal(*func))
        .collect();
    run.add_diagnostics(match reasons.is_empty() {
        true => refused,
        false => reasons,
    })
}
