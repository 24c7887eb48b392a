//! The differentiating part of the pipeline: early pipeline → import → requests → derivatives → export.
//!
//! Only new functions and functions with differentiation calls go back to the host. The user's other
//! functions are restored in their original form, except for those reached by derivatives. A program
//! without requests skips even the early pipeline.

use crate::compile::pre_ad_llvm;
use crate::in_kernels::is_of_gpu;
use crate::reports::derivative;
use crate::requests::grad::{RequestContext, WrappedDerivative};
use crate::requests::header::{CTypes, header};
use crate::requests::{Root, Roots, calls, grad};
use crate::rewrite_call_sites;
use crate::run::{Run, Stop};
use crate::stages::parallelize;
use crate::symbol_lookup::resolve;
use crate::wire::reply::{Derivative, Output};
use crate::worklist::{self, DerivativeRecord};
use crate::{GradRequest, GradTask, Level, OutputKind, Task, debug_pointee_types, registrations};
use gradus_ad::{Mode, Report};
use gradus_edit::SplitLimits;
use gradus_ir::externals::{KERNEL_PREFIX, LAUNCH_PREFIX, marker_named, may_be_user_defined};
use gradus_ir::{Body, CastOp, Code, Diagnostic, FuncId, Linkage, OpKind, Severity, Symbol, Unit};
use gradus_llvm::{Host, Imported};
use std::collections::HashSet;

/// Prefix of derivatives' symbols. A program differentiated earlier already has some.
const DERIVED_PREFIX: &str = "__gradus1_";

/// The requests of a program after lowering.
struct Requests {
    roots: Roots,
    wrapped: Vec<WrappedDerivative>,
    /// The functions of the program with changed bodies.
    changed: Vec<FuncId>,
    /// True if calls were left for a later link.
    has_deferred_calls: bool,
}

/// Differentiates the functions requested on the command line or by calls in the program.
pub(crate) fn differentiate(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    let request = run.request;
    let (named, partial): (&[GradRequest], bool) = match &request.task {
        Task::Grad(task) => (&task.derivatives, false),
        Task::Calls(task) => (&[], task.partial),
        Task::List | Task::RestructureAll => return Ok(()),
    };
    let symbols = match resolve(host, named) {
        Ok(symbols) => symbols,
        Err(findings) => return run.add_diagnostics(findings),
    };
    run.add_diagnostics(registrations::unknown_words(host))?;
    make_callable(run, host, &symbols);
    let users = host.functions_that_use(&calls::is_interface_name);
    if symbols.is_empty() && users.is_empty() {
        return Ok(());
    }
    let registered = match registrations::read(host) {
        Ok(registered) => registered,
        Err(findings) => return run.add_diagnostics(findings),
    };
    host.metadata_strings_to_globals(&calls::is_interface_name);
    host.make_declaration(&|name| marker_named(name).is_some());
    host.rename_static(DERIVED_PREFIX);
    run.value_or_stop(host.write_out_fortran())?;
    save_original_bodies(run, host);
    run.value_or_stop(host.write_out_nodes())?;
    run.value_or_stop(host.write_out_casts())?;
    host.specialize_std_function();
    let called_names = registered.derivative_functions();
    let kept_as_calls = registered.functions_kept_as_calls();
    optimize_before_import(run, host, &symbols, &called_names, &kept_as_calls)?;
    let mut imported = run.pass("import", |run| import(run, host, &symbols, &called_names))?;
    mark_program_functions(&run.request.task, &mut imported.unit);
    debug_pointee_types::declare(host, &mut imported.unit);
    let named = [symbols.as_slice(), &called_names].concat();
    let told = prepare_for_ad(run, host, &mut imported, &named, &kept_as_calls)?;
    let rules = match registered.apply(&mut imported.unit) {
        Ok(rules) => rules,
        Err(findings) => return run.add_diagnostics(findings),
    };
    let requests = requests(run, host, &mut imported, &symbols, partial)?;
    let made = match worklist::differentiate_all(run, &mut imported.unit, &requests.roots, &rules) {
        Ok(made) => made,
        Err(stop) => {
            explain_refused_bodies(run, &imported);
            return Err(stop);
        }
    };
    run.pass("rewrite-call-sites", |run| {
        rewrite_call_sites::rewrite_derivative_calls(&mut imported.unit, &made, &requests.changed);
        run.after_unit("rewrite-call-sites", &imported.unit)
    })?;
    rules.remove_opaque_bodies(&mut imported.unit);
    if request.options.device.is_none() {
        gradus_ad::advise_huge_pages(&mut imported.unit);
    }
    finalize_derivatives(run, &mut imported.unit, &requests, &made)?;
    gradus_par::redirect_to_serial_clones(&mut imported.unit, &told, &requests.changed);
    let mut functions = exported(&imported.unit, &requests);
    if run.request.options.parallel {
        functions = parallelize::lower_parallel(run, &mut imported.unit, &functions)?;
    }
    if request.options.device.is_none() {
        let row = derivative::most_expensive_entry(&made).unwrap_or_default();
        gradus_ad::check_private_allocations(&mut imported.unit, &mut functions, &row);
    }
    run.pass("split-functions", |run| {
        split_long_derivatives(run, &mut imported.unit, &mut functions);
        run.after_unit("split-functions", &imported.unit)
    })?;
    run.pass("export", |run| {
        export(run, host, &imported.unit, &requests, &functions)
    })
}

/// Runs LLVM's passes before the import. The functions to differentiate, the derivatives registered for them and
/// the kernels stay visible; calls of the functions `kept_as_calls` are not inlined.
fn optimize_before_import(
    run: &mut Run<'_>,
    host: &mut Host,
    symbols: &[String],
    called_names: &[String],
    kept_as_calls: &[String],
) -> Result<(), Stop> {
    let exposed = host.expose(symbols);
    for symbol in symbols {
        host.mark_differentiated(symbol);
    }
    let called = host.expose(called_names);
    let held = host.hold(kept_as_calls);
    let done = (|| {
        if run.request.options.device.is_some() {
            run.value_or_stop(host.lower_runtime_calls())?;
        }
        let kernels = host.expose(&kernels(host));
        let done = pre_ad_llvm(run, host);
        host.restore(kernels);
        done
    })();
    host.release(held);
    host.restore(called);
    host.restore(exposed);
    done
}

/// Makes the requested functions callable by their symbols, if the request has `callable_primals`.
fn make_callable(run: &Run<'_>, host: &Host, symbols: &[String]) {
    if run.request.options.callable_primals {
        for symbol in symbols {
            host.make_callable(symbol);
        }
    }
}

/// Finalises tape sizes, warns of zero derivatives, and fills the reply's descriptions of derivatives.
fn finalize_derivatives(
    run: &mut Run<'_>,
    unit: &mut Unit,
    requests: &Requests,
    made: &[Vec<DerivativeRecord>],
) -> Result<(), Stop> {
    let sizes = finalize_tape_sizes(unit, &requests.roots, made);
    run.add_diagnostics(sizes)?;
    run.add_diagnostics(zero_derivative_warnings(unit, &requests.roots, made))?;
    describe(run, unit, requests, made);
    Ok(())
}

/// Replaces parallel ops by serial code in the `named` functions and in functions passed to differentiation
/// calls.
fn prepare_for_ad(
    run: &mut Run<'_>,
    host: &Host,
    imported: &mut Imported,
    named: &[String],
    held: &[String],
) -> Result<HashSet<FuncId>, Stop> {
    if !run.request.options.parallel {
        return Ok(HashSet::new());
    }
    let handed = host.differentiated();
    let primals = named.iter().chain(&handed);
    let primals = primals.filter_map(|name| imported.unit.function(name));
    let primals: Vec<FuncId> = primals.collect();
    let in_regions = parallelize::run_in_regions(host);
    parallelize::project(run, imported, &primals, held, &in_regions)
}

/// Saves the bodies of the program's functions for [`export`] to restore, except functions with
/// differentiation calls.
fn save_original_bodies(run: &Run<'_>, host: &mut Host) {
    let request = run.request;
    // Optimised callers rely on facts that -O0 bodies of callees would not honour.
    if request.options.skip_early || request.level == Level::O0 {
        return;
    }
    // Parallel code is raised, and split at barriers, in the form left by the early passes.
    if request.options.parallel && parallelize::has_parallel_code(host) {
        return;
    }
    if matches!(request.task, Task::Grad(_)) {
        // Bitcode compiled at -O0 is optimised at the requested level.
        host.strip_o0_attributes();
    }
    let asking = host.functions_that_use(&calls::is_interface_name);
    host.save_originals(&asking);
}

/// Size limits for splitting: LLVM's compile time is superlinear from about `whole` ops on; `piece` is well
/// below.
const SPLIT_LIMITS: SplitLimits = SplitLimits {
    whole_ops_max: 6000,
    piece_ops_max: 2000,
};

/// Splits long derivatives, for which LLVM's compile time is superlinear, unless the derivatives may be
/// differentiated again. Split-off functions are appended to `functions`.
fn split_long_derivatives(run: &Run<'_>, unit: &mut Unit, functions: &mut Vec<FuncId>) {
    if run.request.may_be_read_again() {
        return;
    }
    for func in functions.clone() {
        if unit.functions[func].defined {
            continue;
        }
        if let Some(mut body) = unit.functions[func].body.take() {
            functions.extend(gradus_edit::cut(unit, func, &mut body, SPLIT_LIMITS));
            unit.functions[func].body = Some(body);
        }
    }
}

/// Marks functions of the program that have a library function's name (`y1`, `gamma`). Library headers
/// declare their functions `nounwind`; a declaration without `nounwind` may be defined in another file, if
/// the definitions of other files are unknown.
fn mark_program_functions(task: &Task, unit: &mut Unit) {
    let elsewhere = match task {
        Task::Calls(task) if task.partial => None,
        Task::Calls(task) => Some(&task.elsewhere),
        // A single file is taken to be complete. Bitcode may be a derivative by Gradus, with bare
        // declarations.
        _ => return,
    };
    let own = |func: &FuncId| {
        let function = &unit.functions[*func];
        let declared = function.body.is_none() && !function.defined;
        let bare = unit.attrs(function.attrs).function("nounwind").is_none();
        let open = match elsewhere {
            Some(names) => names.contains(&function.name),
            None => bare,
        };
        declared && open && may_be_user_defined(&function.name)
    };
    let list: Vec<FuncId> = unit.functions.ids().filter(own).collect();
    list.into_iter()
        .for_each(|func| unit.declare_user_defined(func));
}

/// Returns warnings for derivatives that are zero for all arguments.
fn zero_derivative_warnings(
    unit: &Unit,
    roots: &Roots,
    made: &[Vec<DerivativeRecord>],
) -> Vec<Diagnostic> {
    let of_root = |root: &Root| {
        let primal = &unit.functions[root.variant.func];
        let name = primal.source_name.as_ref().unwrap_or(&primal.name);
        let (why, help) = if holds_for_all_versions(root, made, |report| report.lacks_cotangents) {
            (
                "the outputs are in memory that the function allocates, and such memory has no cotangents",
                ALLOCATED_OUTPUT_HELP,
            )
        } else if !holds_for_all_versions(root, made, |report| report.is_zero) {
            return None;
        } else {
            (
                "no active input reaches an active output",
                help_on_output(unit, root),
            )
        };
        let message = format!("the derivative of `{name}` is zero: {why}");
        let finding = Diagnostic::warning(Code::ZeroDerivative, message);
        let place = root.span.clone().or(primal.span.clone());
        Some(finding.at(place, "requested here").help(help))
    };
    roots.list.iter().filter_map(of_root).collect()
}

/// The help on an output allocated by the function.
const ALLOCATED_OUTPUT_HELP: &str = "allocate the output in the caller and pass the address with a shadow; or call `__enzyme_augmentfwd`, \
                          write the cotangents into the returned shadow, and call `__enzyme_reverse`";

/// Returns the help on a gradient without an active output, depending on how the function returns results.
fn help_on_output(unit: &Unit, root: &Root) -> &'static str {
    let primal = &unit.functions[root.variant.func];
    let result = unit.result_type(primal.ty);
    let is_gradient = root.variant.mode == Mode::Combined;
    let casts = |body: &Body| {
        let mut ops = body.walk(body.root());
        ops.any(|op| matches!(body.kind(op), OpKind::Cast(CastOp::IntToPtr)))
    };
    if is_gradient && result.is_some_and(|ty| unit.types.is_ptr(ty)) {
        ALLOCATED_OUTPUT_HELP
    } else if primal.body.as_deref().is_some_and(casts) {
        "declare the argument as a pointer: an integer cast to a pointer has no shadow"
    } else {
        "check the activity markers, or `--wrt` and `--inactive`"
    }
}

/// Returns true if a fact holds for the derivative of a root, whichever version runs.
fn holds_for_all_versions(
    root: &Root,
    made: &[Vec<DerivativeRecord>],
    fact: impl Fn(&Report) -> bool,
) -> bool {
    let mut lists = made.iter();
    let list = lists.find(|list| list.first().is_some_and(|whole| whole.func == root.func));
    let [whole, others @ ..] = list.map_or(&[][..], Vec::as_slice) else {
        // Not an error: a registered derivative has no report.
        return false;
    };
    let of_root = |made: &&DerivativeRecord| {
        made.variant.func == root.variant.func && made.variant.mode == root.variant.mode
    };
    // If a run-time check selects between two versions, the versions decide.
    let holds = match whole.report.versions {
        true => others.iter().filter(of_root).all(|made| fact(&made.report)),
        false => fact(&whole.report),
    };
    // An augmented primal has no derivative; the reverse half is requested too.
    holds && root.variant.mode != Mode::Augmented
}

/// Replaces the tape-size queries of the program by constants.
fn finalize_tape_sizes(
    unit: &mut Unit,
    roots: &Roots,
    made: &[Vec<DerivativeRecord>],
) -> Vec<Diagnostic> {
    let bytes_of = |func: FuncId| {
        let of_root = roots
            .list
            .iter()
            .zip(made)
            .find(|(root, _)| root.func == func);
        let report = of_root.and_then(|(_, made)| Some(&made.first()?.report));
        report.and_then(|r| r.block_bytes).unwrap_or_default()
    };
    calls::emit_size_functions(unit, roots, &bytes_of)
}

/// Returns the kernels of a program with kernel launches.
fn kernels(host: &Host) -> Vec<String> {
    let launches = host.functions_that_use(&|name| name.starts_with(LAUNCH_PREFIX));
    let mut kernels = host.defined_functions();
    kernels.retain(|name| name.starts_with(KERNEL_PREFIX) && !launches.is_empty());
    kernels
}

/// Imports the requested functions and the functions with differentiation calls, with everything reachable.
fn import(
    run: &mut Run<'_>,
    host: &mut Host,
    symbols: &[String],
    called: &[String],
) -> Result<Imported, Stop> {
    let users = host.functions_that_use(&calls::is_interface_name);
    let called = called.iter().filter(|name| host.defines(name));
    let kernels = kernels(host);
    let named = symbols.iter().chain(&users).chain(called).chain(&kernels);
    let mut roots: Vec<&str> = named.map(String::as_str).collect();
    roots.sort_unstable();
    roots.dedup();
    let imported = run.value_or_stop(host.import(&roots))?;
    let needed = imported.refused.iter().filter(|(func, _)| {
        let name = &imported.unit.functions[*func].name;
        symbols.contains(name) || users.contains(name)
    });
    let findings = needed
        .filter_map(|(func, _)| imported.refusal(*func))
        .collect();
    run.add_diagnostics(findings)?;
    run.after_unit("import", &imported.unit)?;
    Ok(imported)
}

/// Reads the requests. If a requested body could not be imported, the reason is reported.
fn requests(
    run: &mut Run<'_>,
    host: &Host,
    imported: &mut Imported,
    symbols: &[String],
    partial: bool,
) -> Result<Requests, Stop> {
    let found = run.pass("collect-requests", |run| {
        let requests = find_requests(run, host, imported, symbols, partial)?;
        run.after_unit("collect-requests", &imported.unit)?;
        Ok(requests)
    });
    let not_importable = |d: &Diagnostic| d.code == Code::NotImportable;
    if found.is_err() && run.reply.diagnostics.iter().any(not_importable) {
        explain_refused_bodies(run, imported);
    }
    found
}

/// Reads the calls inside bodies and the requests by name; all diagnostics are gathered.
fn find_requests(
    run: &mut Run<'_>,
    host: &Host,
    imported: &mut Imported,
    symbols: &[String],
    partial: bool,
) -> Result<Requests, Stop> {
    let unit = &mut imported.unit;
    let mut roots = Roots::new(run.request.options.strong_zero);
    let triple = host.triple();
    let device: HashSet<String> = host.device_functions().into_iter().collect();
    let in_kernels = |name: &str| is_of_gpu(&triple) || device.contains(name);
    let mut lowered = calls::lower(unit, &mut roots, partial, &in_kernels);
    let mut findings = std::mem::take(&mut lowered.findings);
    let mut wrapped = Vec::new();
    let request = run.request;
    if let Task::Grad(task) = &request.task {
        for (wish, symbol) in task.derivatives.iter().zip(symbols) {
            let Some(primal) = unit.function(symbol) else {
                unreachable!("a requested function is imported");
            };
            let setting = RequestContext {
                request: wish,
                primal,
                triple: &triple,
                c_types: CTypes::new(host.c_types(symbol), host.array_descriptors(symbol)),
                is_taken: &|name| host.has_symbol(name),
            };
            match grad::wrap(unit, &setting, &mut roots) {
                Ok(mut one) => {
                    findings.append(&mut one.notes);
                    wrapped.push(one);
                }
                Err(list) => findings.extend(list),
            }
        }
    }
    findings.append(&mut roots.notes);
    run.add_diagnostics(findings)?;
    run.reply.calls_replaced = lowered.replaced;
    Ok(Requests {
        roots,
        wrapped,
        changed: lowered.changed,
        has_deferred_calls: lowered.left > 0,
    })
}

/// Adds notes to a refusal: the bodies missing because structuring failed, with reasons.
fn explain_refused_bodies(run: &mut Run<'_>, imported: &Imported) {
    for (func, _) in &imported.refused {
        if let Some(finding) = imported.refusal(*func) {
            run.reply.diagnostics.push(Diagnostic {
                severity: Severity::Note,
                ..finding
            });
        }
    }
}

/// Emits header, report and text form, and describes the derivatives in the reply.
fn describe(run: &mut Run<'_>, unit: &Unit, requests: &Requests, made: &[Vec<DerivativeRecord>]) {
    let of_wrapped = |wrapped: &WrappedDerivative| {
        let mut roots = requests.roots.list.iter();
        let root = roots.find(|root| root.func == wrapped.root);
        Derivative {
            is_zero: root.is_some_and(|root| {
                holds_for_all_versions(root, made, |report| {
                    report.is_zero || report.lacks_cotangents
                })
            }),
            ..wrapped.derivative.clone()
        }
    };
    run.reply.derivatives = requests.wrapped.iter().map(of_wrapped).collect();
    for &kind in &run.request.emit {
        let text = match kind {
            OutputKind::Header => header(&run.reply.derivatives),
            OutputKind::Report => derivative::report(unit, made),
            OutputKind::Gir => bodies(unit, made),
            _ => continue,
        };
        run.early_outputs.push(Output {
            kind,
            bytes: text.into_bytes(),
        });
    }
}

fn bodies(unit: &Unit, made: &[Vec<DerivativeRecord>]) -> String {
    let all = made.iter().flatten();
    let texts: Vec<String> = all
        .map(|m| gradus_ir::print_function(unit, m.func))
        .collect();
    texts.join("\n")
}

/// Returns the functions with new and changed bodies.
fn exported(unit: &Unit, requests: &Requests) -> Vec<FuncId> {
    let new = unit
        .functions
        .iter()
        .filter(|(_, f)| f.body.is_some() && !f.defined);
    let mut functions: Vec<FuncId> = new.map(|(func, _)| func).collect();
    functions.extend(&requests.changed);
    functions
}

/// Exports new and changed bodies to the host, restores the program's other functions, and removes the call
/// interface.
fn export(
    run: &mut Run<'_>,
    host: &mut Host,
    unit: &Unit,
    requests: &Requests,
    functions: &[FuncId],
) -> Result<(), Stop> {
    let broken = functions
        .iter()
        .flat_map(|func| gradus_ir::verify_function(unit, *func));
    run.add_diagnostics(broken.collect())?;
    run.value_or_stop(host.export(unit, functions))?;
    if run.request.options.device.is_some() {
        // A derivative requested by a kernel may query its thread index.
        host.mark_thread_functions();
    }
    let changed = requests.changed.iter();
    let changed: Vec<&str> = changed
        .map(|func| unit.functions[*func].name.as_str())
        .collect();
    host.restore_originals(&changed);
    run.value_or_stop(host.verify())?;
    let used = host.drop_unused(&calls::is_interface_name);
    if let (false, Some(name)) = (requests.has_deferred_calls, used.first()) {
        let message = format!("`{name}` is used outside a differentiation call");
        let finding = Diagnostic::error(Code::BadRequest, message)
            .help("use markers and differentiation functions in differentiation calls only");
        return Err(run.refuse(finding));
    }
    if let Task::Grad(GradTask { beside: true, .. }) = run.request.task {
        strip_to_derivatives(run, host, unit, requests)?;
    }
    run.after_host("export", host)
}

/// Reduces the module to the derivatives and their private dependencies.
fn strip_to_derivatives(
    run: &mut Run<'_>,
    host: &mut Host,
    unit: &Unit,
    requests: &Requests,
) -> Result<(), Stop> {
    let is_new = |name: &str| match unit.symbol(name) {
        Some(Symbol::Func(func)) => {
            let function = &unit.functions[func];
            function.body.is_some() && !function.defined
        }
        Some(Symbol::Global(global)) => {
            unit.globals[global].derived_from.is_some() || name.starts_with(DERIVED_PREFIX)
        }
        None => false,
    };
    let wrapped = requests.wrapped.iter();
    let names: Vec<String> = wrapped.map(|w| w.derivative.name.clone()).collect();
    run.add_diagnostics(unpadded_globals(unit))?;
    if let Err(findings) = host.keep_beside(&names, &is_new) {
        return run.add_diagnostics(findings);
    }
    run.value_or_stop(host.verify())
}

/// Returns diagnostics for variables with assumed tail padding that the program's own object defines. The
/// object has no padding: the end of a variable may then equal the start of another.
fn unpadded_globals(unit: &Unit) -> Vec<Diagnostic> {
    let variables = unit.globals.iter().map(|(_, global)| global);
    let elsewhere = variables.filter(|global| {
        global.room_bytes > 0 && global.defined && global.linkage == Linkage::External
    });
    elsewhere
        .map(|global| {
            let name = &global.name;
            let message = format!(
                "a pointer variable points to `{name}`, and the program's own object has no padding between `{name}` and the next variable"
            );
            Diagnostic::error(Code::StaticState, message)
                .help(format!("remove `--beside`, or pass `{name}` as an argument"))
        })
        .collect()
}
