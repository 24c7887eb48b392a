//! Reads the requests for derivatives: the differentiation calls inside bodies, and the requests by name.

use crate::Task;
use crate::requests::grad::{RequestContext, WrappedDerivative};
use crate::requests::header::CTypes;
use crate::requests::in_kernels::is_of_gpu;
use crate::requests::{Roots, calls, grad};
use crate::run::{Run, StagePass, StageRun, Stop};
use crate::stages::import::explain_refused_bodies;
use gradus_analysis::Stage;
use gradus_ir::externals::may_be_user_defined;
use gradus_ir::{Code, Diagnostic, FuncId, Unit};
use gradus_llvm::{Host, Imported};
use std::collections::HashSet;

/// The row of the pass.
pub(crate) const PASS: StagePass = StagePass {
    name: "collect-requests",
    stage: Stage::Unit,
    switch: None,
    about: "reads the requests for derivatives",
    run: StageRun::Step,
};

/// The requests of a program after lowering.
pub(crate) struct Requests {
    /// The requested derivatives.
    pub roots: Roots,
    /// The derivatives requested by name.
    pub wrapped: Vec<WrappedDerivative>,
    /// The functions of the program with changed bodies.
    pub changed: Vec<FuncId>,
    /// True if calls were left for a later link.
    pub has_deferred_calls: bool,
}

/// Reads the requests. If a requested body could not be imported, the reason is reported.
pub(crate) fn collect_requests(
    run: &mut Run<'_>,
    host: &Host,
    imported: &mut Imported,
    symbols: &[String],
    partial: bool,
) -> Result<Requests, Stop> {
    let found = run.pass(&PASS, |run| {
        let requests = find_requests(run, host, imported, symbols, partial)?;
        run.after_unit(&PASS, &imported.unit)?;
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
                c_types: CTypes::new(
                    host.c_types(symbol),
                    host.array_descriptors(symbol),
                    host.argument_shapes(symbol),
                ),
                is_taken: &|name| host.has_symbol(name),
            };
            match grad::wrap(unit, &mut run.analyses, &setting, &mut roots) {
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

/// Marks functions of the program that have a library function's name (`y1`, `gamma`). Library headers
/// declare their functions `nounwind`; a declaration without `nounwind` may be defined in another file, if
/// the definitions of other files are unknown.
pub(crate) fn mark_program_functions(task: &Task, unit: &mut Unit) {
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
