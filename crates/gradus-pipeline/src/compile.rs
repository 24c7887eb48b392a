//! The driver of the pipeline: runs all steps from a request to a reply.

use crate::run::{PASSES, Run, Stop};
use crate::stages::{differentiate, parallelize};
use crate::switches;
use crate::wire::codec;
use crate::wire::reply::{FunctionInfo, Output};
use crate::{Input, OutputKind, ParallelTarget, Reply, Request, Task};
use gradus_ir::externals::{ExternalFn, SystemFn, lookup};
use gradus_ir::{Code, Diagnostic, Severity};
use gradus_llvm::{Emit, Host, Pipeline};
use std::collections::{BTreeMap, BTreeSet};

/// The number of occurrences of each operation in a module.
type Census = BTreeMap<String, usize>;

/// Carries out a request. Never panics on input accepted by LLVM, and never returns partial output.
pub fn compile(request: &Request) -> Reply {
    compile_timed(request, &mut || 0)
}

/// Like [`compile`], with timings by the caller's clock (nanoseconds by convention).
pub fn compile_timed(request: &Request, clock: &mut dyn FnMut() -> u64) -> Reply {
    let request = switches::with_current_names(request);
    let mut run = Run::new(&request, clock);
    let end = pipeline(&mut run);
    run.finish(end)
}

/// Like [`compile_timed`], from bytes to bytes, for a child process.
///
/// # Errors
/// Bytes that do not hold a request.
pub fn compile_bytes(
    request: &[u8],
    clock: &mut dyn FnMut() -> u64,
) -> Result<Vec<u8>, codec::WireError> {
    let request: Request = codec::from_bytes(request)?;
    codec::to_bytes(&compile_timed(&request, clock))
}

/// Runs all passes on a program.
fn pipeline(run: &mut Run<'_>) -> Result<(), Stop> {
    let request = run.request;
    check_options(run)?;
    let mut host = run.pass("parse", read)?;
    if request.options.parallel && parallelize::has_parallel_code(&host) {
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
        Task::RestructureAll => restructure_all(run, &mut host)?,
        Task::Grad(_) | Task::Calls(_) => differentiate::differentiate(run, &mut host)?,
    }
    if request.options.parallel {
        parallelize::parallel(run, &mut host)?;
    }
    // Parallel intrinsics in the output are compiled again; another optimiser may run before.
    if request.options.target != ParallelTarget::Words {
        host.expose_thread_local_addresses();
    }
    if request.options.strip_debug {
        host.strip_debug();
    }
    if request.options.device.is_some() {
        host.preserve_null_accesses();
    }
    final_llvm(run, &mut host)?;
    run.pass("emit", |run| emit(run, &mut host))
}

/// Refuses unknown names of passes and switches.
fn check_options(run: &mut Run<'_>) -> Result<(), Stop> {
    let options = &run.request.options;
    let is_pass = |name: &&String| *name != "all" && !PASSES.contains(&name.as_str());
    let passes = options.dump_after.iter().filter(is_pass).map(|name| {
        let message = format!("unknown pass `{name}`");
        let help = format!("the passes are {}", PASSES.join(", "));
        Diagnostic::error(Code::BadOption, message).help(help)
    });
    let mut findings: Vec<Diagnostic> = passes.collect();
    findings.extend(switches::options(&options.off).err());
    run.add_diagnostics(findings)
}

/// Parses all inputs and links them into a single module.
fn read(run: &mut Run<'_>) -> Result<Host, Stop> {
    let Some((first, others)) = run.request.inputs.split_first() else {
        let finding = Diagnostic::error(Code::UnreadableInput, "no input was given");
        return Err(run.refuse(finding));
    };
    let blank = |input: &&Input| input.bytes.iter().all(u8::is_ascii_whitespace);
    if let Some(input) = run.request.inputs.iter().find(blank) {
        let message = format!("{} is empty", input.name);
        return Err(run.refuse(Diagnostic::error(Code::UnreadableInput, message)));
    }
    let mut host = run.value_or_stop(Host::parse(&first.bytes, &first.name))?;
    for input in others {
        run.value_or_stop(host.link(&input.bytes, &input.name))?;
    }
    if let Some(device) = &run.request.options.device {
        let separate = run.request.options.separate;
        run.value_or_stop(host.merge_device(&device.bytes, &device.name, separate))?;
    }
    run.value_or_stop(host.verify().map_err(|broken| Diagnostic {
        code: Code::UnreadableInput,
        ..broken
    }))?;
    run.after_host("parse", &host)?;
    Ok(host)
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

/// Imports and exports every function (round trip through the IR).
fn restructure_all(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if !run.request.options.skip_early {
        early_as(run, host, Pipeline::EarlyPlain)?;
    }
    let before = host.census(|_| true);
    let imported = run.pass("import", |run| {
        let imported = host.import_all();
        run.after_unit("import", &imported.unit)?;
        Ok(imported)
    })?;
    let untouched = imported.refused.iter();
    let notes = untouched.filter_map(|(func, _)| imported.refusal(*func));
    let notes = notes.map(|finding| Diagnostic {
        severity: Severity::Note,
        ..finding
    });
    run.add_diagnostics(notes.collect())?;
    run.pass("export", |run| {
        run.value_or_stop(host.export_all(&imported.unit))?;
        run.value_or_stop(host.verify())?;
        run.after_host("export", host)
    })?;
    run.add_diagnostics(op_count_differences(&before, &host.census(|_| true)))
}

/// Returns a diagnostic on the operations whose number differs before and after the round trip.
fn op_count_differences(before: &Census, after: &Census) -> Vec<Diagnostic> {
    let kinds: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |kind: &&String| before.get(*kind) != after.get(*kind);
    let different: Vec<&String> = kinds.into_iter().filter(differs).collect();
    if different.is_empty() {
        return Vec::new();
    }
    let count = different.len();
    let message =
        format!("the round trip through the IR changed the counts of {count} kinds of operations");
    let mut finding = Diagnostic::error(Code::BrokenOutput, message);
    for kind in different.into_iter().take(5) {
        let times = |census: &Census| census.get(kind).copied().unwrap_or(0);
        finding = finding.note(format!(
            "{} before, {} after: {kind}",
            times(before),
            times(after)
        ));
    }
    vec![finding]
}

/// Runs LLVM's pipeline before differentiation.
pub(crate) fn pre_ad_llvm(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if run.request.options.skip_early {
        return Ok(());
    }
    host.set_tape_noinline(true);
    let off = |name: &str| run.request.options.off.iter().any(|off| off == name);
    host.unroll_local_loops(!off("unroll-local-arrays"));
    let pipeline = match run.request.options.parallel {
        true => Pipeline::EarlyOpenMp,
        false => Pipeline::EarlySerial,
    };
    early_as(run, host, pipeline)
}

/// Runs LLVM's pipeline before raising, without inlining.
pub(crate) fn early_parallel(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    let pipeline = match run.request.options.device {
        Some(_) => Pipeline::EarlyKernels,
        None => Pipeline::EarlyPlain,
    };
    early_as(run, host, pipeline)
}

fn early_as(run: &mut Run<'_>, host: &mut Host, pipeline: Pipeline) -> Result<(), Stop> {
    run.pass("pre-ad-llvm", |run| {
        run.value_or_stop(host.run(pipeline))?;
        run.after_host("pre-ad-llvm", host)
    })
}

/// Runs LLVM's pipeline at the user's optimisation level.
fn final_llvm(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    if run.request.options.skip_late {
        return Ok(());
    }
    let level = run.request.level;
    let again = |kind: &OutputKind| matches!(kind, OutputKind::Bitcode | OutputKind::LlvmText);
    host.set_tape_noinline(run.request.emit.iter().any(again));
    run.pass("final-llvm", |run| {
        run.value_or_stop(host.run(Pipeline::Late(level.into())))?;
        run.after_host("final-llvm", host)
    })
}

/// Emits the requested outputs, in the order of the request.
fn emit(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    for &kind in &run.request.emit {
        let level = run.request.level.into();
        let bytes = match kind {
            OutputKind::Bitcode => Some(host.to_bitcode()),
            OutputKind::LlvmText => Some(host.to_text().into_bytes()),
            OutputKind::Object => Some(run.value_or_stop(host.emit(Emit::Object, level))?),
            OutputKind::Assembly => Some(run.value_or_stop(host.emit(Emit::Assembly, level))?),
            OutputKind::Gir
            | OutputKind::Header
            | OutputKind::Report
            | OutputKind::ParallelReport
            | OutputKind::KernelReport => None,
        };
        let output = match bytes {
            Some(bytes) => Some(Output { kind, bytes }),
            None => run.early_outputs.iter().find(|o| o.kind == kind).cloned(),
        };
        run.reply.outputs.extend(output);
    }
    Ok(())
}
