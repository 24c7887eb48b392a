//! The differentiating part of the order: LLVM's passes → import → requests → derivatives → export.
//!
//! Only new functions and functions with differentiation calls go back to the host. The user's other functions are
//! restored in their original form, except for those reached by derivatives. A program without requests skips even
//! LLVM's passes.

use crate::compile::{parallel_code, worklist};
use crate::reports::derivative;
use crate::reports::derivative_record::DerivativeRecord;
use crate::reports::zero_derivatives::{holds_for_all_versions, zero_derivative_warnings};
use crate::requests::grad::WrappedDerivative;
use crate::requests::header::header;
use crate::requests::symbol_lookup::resolve;
use crate::requests::{Roots, calls};
use crate::run::{Run, Stop};
use crate::stages::collect_requests::{Requests, collect_requests, mark_program_functions};
use crate::stages::export::{self, DERIVED_PREFIX, export_derivatives};
use crate::stages::import::{
    self, explain_refused_bodies, has_parallel_code, import_differentiated,
};
use crate::stages::pre_ad_llvm::{PinnedFunctions, optimize_before_ad};
use crate::stages::split_functions::split_functions;
use crate::stages::{debug_pointee_types, lower, rewrite_call_sites, serial_projection};
use crate::wire::reply::{Derivative, Output};
use crate::{GradRequest, Level, OutputKind, Task, registrations};
use gradus_ir::externals::marker_named;
use gradus_ir::{Body, CastOp, Diagnostic, FloatKind, FuncId, OpKind, Unit, Value};
use gradus_llvm::{Host, Imported};
use std::collections::HashSet;

/// Differentiates the functions requested on the command line or by calls in the program.
pub(super) fn add_derivatives(run: &mut Run<'_>, host: &mut Host) -> Result<(), Stop> {
    let request = run.request;
    let (named, partial): (&[GradRequest], bool) = match &request.task {
        Task::Grad(task) => (&task.derivatives, false),
        Task::Calls(task) => (&[], task.partial),
        Task::List | Task::RestructureAll => return Ok(()),
    };
    run.add_diagnostics(host.rewrite_interface_calls())?;
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
    let kept_as_calls = registered.functions_kept_as_calls();
    host.metadata_strings_to_globals(&calls::is_interface_name);
    host.make_declaration(&|name| marker_named(name).is_some());
    host.rename_static(DERIVED_PREFIX);
    run.value_or_stop(host.write_out_fortran())?;
    host.expand_computed_gotos();
    save_original_bodies(run, host);
    let is_registered = |name: &str| kept_as_calls.iter().any(|kept| kept == name);
    let blas = run.value_or_stop(host.link_blas(&is_registered))?;
    run.value_or_stop(host.write_out_nodes())?;
    run.value_or_stop(host.write_out_casts())?;
    host.expand_variadic_functions();
    host.specialize_std_function();
    run.is_serial = request.options.device.is_none() && import::is_serial(host);
    let called_names = [
        registered.derivative_functions(),
        registrations::blas::functions(&blas),
    ]
    .concat();
    optimize_before_import(run, host, &symbols, &called_names, &kept_as_calls)?;
    let mut imported = run.pass(&import::PASS, |run| {
        import_differentiated(run, host, &symbols, &called_names)
    })?;
    mark_program_functions(&run.request.task, &mut imported.unit);
    debug_pointee_types::declare(host, &mut imported.unit);
    let named = [symbols.as_slice(), &called_names].concat();
    let library = registrations::blas::apply(&blas, &mut imported.unit);
    let held = [kept_as_calls, registrations::blas::routines(&blas)].concat();
    let told = prepare_for_ad(run, host, &mut imported, &named, &held)?;
    let mut rules = match registered.apply(&mut imported.unit) {
        Ok(rules) => rules,
        Err(findings) => return run.add_diagnostics(findings),
    };
    rules.library = library;
    let requests = collect_requests(run, host, &mut imported, &symbols, partial)?;
    let made = match worklist::differentiate_all(run, &mut imported.unit, &requests.roots, &rules) {
        Ok(made) => made,
        Err(stop) => {
            explain_refused_bodies(run, &imported);
            return Err(stop);
        }
    };
    run.pass(&rewrite_call_sites::PASS, |run| {
        let (unit, analyses) = (&mut imported.unit, &mut run.analyses);
        rewrite_call_sites::rewrite_derivative_calls(unit, analyses, &made, &requests.changed);
        run.after_unit(&rewrite_call_sites::PASS, &imported.unit)
    })?;
    rules.remove_opaque_bodies(&mut imported.unit);
    if request.options.device.is_none() {
        gradus_ad::advise_huge_pages(&mut imported.unit);
    }
    finalize_derivatives(run, &mut imported.unit, &requests, &made)?;
    gradus_par::redirect_to_serial_clones(&mut imported.unit, &told, &requests.changed);
    let mut functions = export::exported(&imported.unit, &requests);
    if run.request.options.parallel {
        functions = lower::lower_parallel(run, &mut imported.unit, &functions)?;
    }
    if request.options.device.is_none() {
        let row = derivative::most_expensive_entry(&made).unwrap_or_default();
        gradus_ad::check_private_allocations(&mut imported.unit, &mut functions, &row);
    }
    split_functions(run, &mut imported.unit, &mut functions)?;
    run.pass(&export::PASS, |run| {
        export_derivatives(run, host, &imported.unit, &requests, &functions, &blas)
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
    let mut host = PinnedFunctions::new(host);
    host.expose(symbols);
    for symbol in symbols {
        host.mark_differentiated(symbol);
    }
    host.expose(called_names);
    host.keep_calls(kept_as_calls);
    if run.request.options.device.is_some() {
        run.value_or_stop(host.lower_runtime_calls())?;
    }
    let kernels = import::kernels(&host);
    host.expose(&kernels);
    optimize_before_ad(run, &mut host)
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
    let in_regions = serial_projection::run_in_regions(host);
    parallel_code::project(run, imported, &primals, held, &in_regions)
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
    if request.options.parallel && has_parallel_code(host) {
        return;
    }
    if matches!(request.task, Task::Grad(_)) {
        // Bitcode compiled at -O0 is optimised at the requested level.
        host.strip_o0_attributes();
    }
    let asking = host.functions_that_use(&calls::is_interface_name);
    host.save_originals(&asking);
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

/// Returns true if a body rounds to single precision. Numbers in single precision that the body only reads do not count.
fn computes_single(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root()).any(|op| {
        let rounds = match body.kind(op) {
            OpKind::Binary(binary) => binary.is_float(),
            OpKind::Cast(cast) => *cast == CastOp::FPTrunc,
            _ => false,
        };
        let kind = |value: &Value| unit.types.float_kind(body.ty(*value));
        rounds && body.results(op).first().and_then(kind) == Some(FloatKind::F32)
    })
}

/// Emits header and text form, and describes the derivatives in the reply.
fn describe(run: &mut Run<'_>, unit: &Unit, requests: &Requests, made: &[Vec<DerivativeRecord>]) {
    let analyses = &mut run.analyses;
    let mut of_wrapped = |wrapped: &WrappedDerivative| {
        let mut roots = requests.roots.list.iter();
        let root = roots.find(|root| root.func == wrapped.root);
        Derivative {
            is_zero: root.is_some_and(|root| {
                holds_for_all_versions(root, made, |report| {
                    report.is_zero || report.lacks_cotangents
                })
            }),
            computes_single: root.is_some_and(|root| {
                let closure = analyses.call_graph(unit, &[root.variant.func]);
                closure
                    .bodies(unit)
                    .any(|(_, body)| computes_single(unit, body))
            }),
            ..wrapped.derivative.clone()
        }
    };
    run.reply.derivatives = requests.wrapped.iter().map(&mut of_wrapped).collect();
    if run.request.report {
        run.reply.report.derivatives = derivative::reports(unit, made, &run.reply.derivatives);
    }
    for &kind in &run.request.emit {
        let text = match kind {
            OutputKind::Header => header(&run.reply.derivatives),
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
