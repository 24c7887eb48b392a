//! Exports bodies to the host's module.

use crate::requests::calls;
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::collect_requests::Requests;
use crate::stages::gpu::queries_outside_kernels;
use crate::{GradTask, Task};
use gradus_analysis::Stage;
use gradus_ir::{Code, Diagnostic, FuncId, Linkage, Symbol, Unit};
use gradus_llvm::Host;
use gradus_llvm::prepare::blas::BlasRoutines;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "export",
    stage: Stage::Host,
    switch: None,
    about: "exports bodies to the module",
    run: StageRun::Step,
};

/// Prefix of derivatives' symbols. A program differentiated earlier already has some.
pub(crate) const DERIVED_PREFIX: &str = "__gradus1_";

/// Returns the functions with new and changed bodies.
pub(crate) fn exported(unit: &Unit, requests: &Requests) -> Vec<FuncId> {
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
pub(crate) fn export_derivatives(
    run: &mut Run<'_>,
    host: &mut Host,
    unit: &Unit,
    requests: &Requests,
    functions: &[FuncId],
    blas: &BlasRoutines,
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
    run.value_or_stop(host.define_blas_cores(blas))?;
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
    run.after_host(&PASS, host)
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

/// Exports the functions with lowered parallel code, and removes kernels.
pub(crate) fn export_parallel(
    run: &mut Run<'_>,
    host: &mut Host,
    unit: &Unit,
    functions: &[FuncId],
) -> Result<(), Stop> {
    run.pass(&PASS, |run| {
        run.value_or_stop(host.export(unit, functions))?;
        host.drop_kernels();
        run.add_diagnostics(queries_outside_kernels(host))?;
        run.value_or_stop(host.verify())?;
        run.after_host(&PASS, host)
    })
}
