//! Imports functions of the host's module into the IR, with everything reachable.

use crate::requests::calls;
use crate::run::{Run, StagePass, StageRun, Stop};
use gradus_analysis::Stage;
use gradus_ir::externals::{
    ExternalFn, GpuFn, KERNEL_PREFIX, LAUNCH_PREFIX, is_signal_function, is_thread_function, lookup,
};
use gradus_ir::{Diagnostic, FuncId, Severity};
use gradus_llvm::{Host, Imported};
use std::collections::HashSet;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "import",
    stage: Stage::Unit,
    switch: None,
    about: "imports functions of the module into the IR",
    run: StageRun::Step,
};

/// Returns true if a name belongs to a parallel runtime.
fn is_parallel_name(name: &str) -> bool {
    matches!(
        lookup(name),
        Some(ExternalFn::OpenMp(_) | ExternalFn::Fork(_) | ExternalFn::Kernel(GpuFn::Launch))
    )
}

/// Returns true if the program has parallel code.
pub(crate) fn has_parallel_code(host: &Host) -> bool {
    !host.functions_that_use(&is_parallel_name).is_empty()
}

/// Returns true if the program has no parallel code, starts no threads and handles no signals.
pub(crate) fn is_serial(host: &Host) -> bool {
    let interrupts = |name: &str| is_thread_function(name) || is_signal_function(name);
    !has_parallel_code(host) && host.functions_that_use(&interrupts).is_empty()
}

/// Returns the kernels of a program with kernel launches.
pub(crate) fn kernels(host: &Host) -> Vec<String> {
    let launches = host.functions_that_use(&|name| name.starts_with(LAUNCH_PREFIX));
    let mut kernels = host.defined_functions();
    kernels.retain(|name| name.starts_with(KERNEL_PREFIX) && !launches.is_empty());
    kernels
}

/// Imports the requested functions and the functions with differentiation calls, with everything reachable.
pub(crate) fn import_differentiated(
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
    run.after_unit(&PASS, &imported.unit)?;
    Ok(imported)
}

/// Imports the functions that call a parallel runtime, and their callers, with everything reachable.
/// Returns the unit and these functions.
pub(crate) fn import_parallel(
    run: &mut Run<'_>,
    host: &mut Host,
) -> Result<(Imported, Vec<FuncId>), Stop> {
    let users: HashSet<String> = host
        .functions_that_use(&is_parallel_name)
        .into_iter()
        .collect();
    let callers = host.functions_that_use(&|name| users.contains(name));
    let defined = host.defined_functions();
    let kernels = defined
        .iter()
        .filter(|name| name.starts_with(KERNEL_PREFIX));
    let names = users.iter().chain(&callers).chain(kernels);
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let imported = run.value_or_stop(host.import(&names))?;
    run.after_unit(&PASS, &imported.unit)?;
    let roots = names.iter().filter_map(|name| imported.unit.function(name));
    let roots = roots.collect();
    Ok((imported, roots))
}

/// Adds notes to a refusal: the bodies missing because structuring failed, with reasons.
pub(crate) fn explain_refused_bodies(run: &mut Run<'_>, imported: &Imported) {
    for (func, _) in &imported.refused {
        if let Some(finding) = imported.refusal(*func) {
            run.reply.diagnostics.push(Diagnostic {
                severity: Severity::Note,
                ..finding
            });
        }
    }
}
