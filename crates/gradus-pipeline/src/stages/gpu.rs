//! Lowers kernels to loops over blocks and threads.

use crate::reports::kernels;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::simplify::ParallelSimplify;
use gradus_analysis::Stage;
use gradus_ir::externals::{ExternalFn, SHARED_DYNAMIC_PREFIX, SHARED_PREFIX, lookup};
use gradus_ir::{Code, Diagnostic, FuncId, Unit};
use gradus_llvm::Host;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "gpu",
    stage: Stage::Unit,
    switch: None,
    about: "lowers kernels to loops over blocks and threads",
    run: StageRun::Step,
};

/// Lowers the kernels of the changed functions to loops and simplifies the loops. `race_free` assumes no
/// data races between threads; the assumption holds for primal code only, since derivatives have races of
/// their own.
pub(crate) fn lower_kernels(
    run: &mut Run<'_>,
    unit: &mut Unit,
    changed: &[FuncId],
    race_free: bool,
) -> Result<(), Stop> {
    run.pass(&PASS, |run| {
        let effects = run.analyses.effects(unit, changed);
        let off = |name: &str| run.is_off(name);
        let options = gradus_gpu::Options {
            race_free,
            remove_barriers: !off("barrier-removal"),
            recompute: !off("min-cut"),
            thread_interchange: !off("thread-interchange"),
            // A derivative would add through both reads.
            clamp_split: race_free && !off("clamp-split"),
            uniform_guards: !off("uniform-guards"),
            // Derivatives save values between launches.
            fuse_launches: race_free && !off("launch-fusion"),
            // A speculative read decides nothing, and has no derivative.
            speculative_search: race_free && !off("speculative-search"),
            sparse_thread_loops: !off("sparse-thread-loops"),
            cooperative_threads: race_free && !off("cooperative-threads"),
            ..gradus_gpu::Options::default()
        };
        let lowered = gradus_gpu::lower(unit, changed, &effects, &options);
        if run.request.report {
            (run.reply.report.kernels).extend(kernels::reports(&lowered.kernels));
        }
        run.add_diagnostics(lowered.diagnostics)?;
        if !lowered.changed.is_empty() {
            let closure = run.analyses.call_graph(unit, &lowered.changed);
            ParallelSimplify::of(run.request).simplify_with_callees(
                unit,
                &mut run.analyses,
                &closure,
                &lowered.changed,
            );
        }
        run.after_unit(&PASS, unit)
    })
}

/// Returns diagnostics for functions that query a thread index or use block memory but were not inlined
/// into a kernel.
pub(crate) fn queries_outside_kernels(host: &Host) -> Vec<Diagnostic> {
    let asks = |name: &str| {
        let of_thread =
            matches!(lookup(name), Some(ExternalFn::Kernel(f)) if f.depends_on_thread());
        of_thread || name.starts_with(SHARED_PREFIX) || name.starts_with(SHARED_DYNAMIC_PREFIX)
    };
    let left = host.functions_that_use(&asks).into_iter();
    let findings = left.map(|name| {
        let shown = host.source_name(&name).unwrap_or(name);
        let message = format!(
            "{shown} uses a thread index or shared memory, but is not inlined into a kernel"
        );
        Diagnostic::error(Code::KernelRefused, message)
            .in_function(shown)
            .help("call the function directly, without a function pointer or recursion")
    });
    findings.collect()
}
