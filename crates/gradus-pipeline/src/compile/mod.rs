//! The driver: the order of all passes from a request to a reply.

mod derivatives;
mod parallel_code;
mod round_trip;
mod worklist;

use crate::passes::{self, PASSES};
use crate::run::{Run, Stop};
use crate::stages::import::has_parallel_code;
use crate::stages::{emit, final_llvm, parse};
use crate::switches;
use crate::wire::codec;
use crate::wire::progress::Progress;
use crate::wire::reply::FunctionInfo;
use crate::{ParallelTarget, Reply, Request, Task};
use gradus_analysis::Aliasing;
use gradus_ir::externals::{ExternalFn, SystemFn, lookup};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_llvm::Host;

/// Carries out a request. Never panics on input accepted by LLVM, and never returns partial output.
pub fn compile(request: &Request) -> Reply {
    compile_watched(request, &mut || 0, &mut |_| {})
}

/// Like [`compile`], with timings by the caller's clock (nanoseconds by convention), and a call of `progress` at each
/// step.
pub fn compile_watched(
    request: &Request,
    clock: &mut dyn FnMut() -> u64,
    progress: &mut dyn FnMut(&Progress),
) -> Reply {
    let (request, warnings) = switches::with_current_names(request);
    let mut run = Run::new(&request, Aliasing::Any, clock, progress);
    run.reply.diagnostics.extend(warnings.clone());
    let end = pipeline(&mut run);
    if end.is_ok() || !is_refused_memory(&run) {
        return run.finish(end);
    }
    let refusal = run.finish(end);
    let mut run = Run::new(&request, Aliasing::Rules, clock, progress);
    run.reply.diagnostics.extend(warnings);
    let end = pipeline(&mut run);
    let mut second = run.finish(end);
    if errors(&second) >= errors(&refusal) {
        return refusal;
    }
    second.diagnostics.push(aliasing_warning());
    second
}

/// Returns true if a program is refused for reasons that depend on points-to analysis, and the analysis may assume more of
/// the program: that it keeps the aliasing rules of its language. The report says so.
fn is_refused_memory(run: &Run<'_>) -> bool {
    let depends = |diagnostic: &Diagnostic| {
        diagnostic.severity == Severity::Error && DEPEND_ON_POINTS_TO.contains(&diagnostic.code)
    };
    let mut errors = run.reply.diagnostics.iter();
    errors.any(depends) && run.analyses.may_assume_more()
}

fn aliasing_warning() -> Diagnostic {
    let message =
        "memory analysis assumes that the program keeps the aliasing rules of its language";
    Diagnostic::warning(Code::UnknownMemoryType, message).help(
        "the optimiser assumes the same; compile with `-fno-strict-aliasing` to do without the assumption",
    )
}

fn errors(reply: &Reply) -> usize {
    let errors = reply.diagnostics.iter();
    errors.filter(|one| one.severity == Severity::Error).count()
}

/// Codes of refusals that depend on points-to analysis.
const DEPEND_ON_POINTS_TO: [Code; 6] = [
    Code::UnknownCallee,
    Code::NoDerivative,
    Code::UnknownMemoryType,
    Code::FloatBits,
    Code::UnknownIndirectTarget,
    Code::Outlives,
];

/// Like [`compile_watched`], from bytes to bytes, for a child process.
///
/// # Errors
/// Bytes that do not hold a request.
pub fn compile_bytes(
    request: &[u8],
    clock: &mut dyn FnMut() -> u64,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Vec<u8>, codec::WireError> {
    let request: Request = codec::from_bytes(request)?;
    codec::to_bytes(&compile_watched(&request, clock, progress))
}

/// Runs all passes on a program.
fn pipeline(run: &mut Run<'_>) -> Result<(), Stop> {
    let request = run.request;
    check_options(run)?;
    let mut host = run.pass(&parse::PASS, parse::parse)?;
    if request.options.parallel && has_parallel_code(&host) {
        let is_own = |name: &str| {
            let known = lookup(name);
            matches!(
                known,
                Some(ExternalFn::System(SystemFn::Errno | SystemFn::Identity))
            )
        };
        host.drop_memory_attributes(&is_own);
        host.hide_own_addresses();
    }
    match &request.task {
        Task::List => return list_functions(run, &host),
        Task::RestructureAll => round_trip::restructure_all(run, &mut host)?,
        Task::Grad(_) | Task::Calls(_) => derivatives::add_derivatives(run, &mut host)?,
    }
    if request.options.parallel {
        parallel_code::optimize(run, &mut host)?;
    }
    // Parallel intrinsics in the output are compiled again; another optimiser may run before.
    if request.options.target != ParallelTarget::Intrinsics {
        host.expose_thread_local_addresses();
    }
    if request.options.strip_debug {
        host.strip_debug();
    }
    if request.options.device.is_some() {
        host.preserve_null_accesses();
    }
    final_llvm::final_llvm(run, &mut host)?;
    run.pass(&emit::PASS, |run| emit::emit(run, &mut host))
}

/// Refuses unknown names of passes and switches, and sets the options of differentiation.
fn check_options(run: &mut Run<'_>) -> Result<(), Stop> {
    let options = &run.request.options;
    let is_unknown = |name: &&String| *name != "all" && passes::find(name).is_none();
    let passes = options.dump_after.iter().filter(is_unknown).map(|name| {
        let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
        let message = format!("unknown pass `{name}`");
        let help = format!("the passes are {}", names.join(", "));
        Diagnostic::error(Code::BadOption, message).help(help)
    });
    let mut findings: Vec<Diagnostic> = passes.collect();
    match switches::options(&options.off) {
        Ok(options) => run.ad_options = options,
        Err(finding) => findings.push(finding),
    }
    run.add_diagnostics(findings)
}

/// Lists the functions defined by the program.
fn list_functions(run: &mut Run<'_>, host: &Host) -> Result<(), Stop> {
    let info = |name: String| FunctionInfo {
        arguments: host.argument_names(&name),
        place: host.source_line(&name).map(|l| (l.file, l.line)),
        name,
    };
    run.reply.functions = host.defined_functions().into_iter().map(info).collect();
    Ok(())
}
