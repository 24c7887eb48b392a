//! Drop-in calls: lowers `__enzyme_autodiff(f, …)` and its relatives inside bodies to direct calls of
//! derivatives, which are emitted later.
//!
//! Steps: (1) find the calls by the callee's name; (2) parse each ([`parse`]); (3) declare the variant and
//! call it ([`rewrite`]); (4) replace remaining loads from markers by zero. A call that cannot be parsed is
//! a diagnostic; all calls are parsed before the request is refused.

mod activity_markers;
mod deferred_to_link;
mod parse;
mod rewrite;
mod tape_size;

use super::Roots;
pub(crate) use crate::requests::calls::tape_size::{Sizes, StatedTapeSize, emit_size_functions};
use gradus_ad::Mode;
use gradus_ir::externals::{Entry, EntryMode, differentiation_call, marker_named};
use gradus_ir::{
    Body, Builder, Code, ConstKind, Diagnostic, FuncId, Linkage, Op, Severity, Unit, Value,
};
use parse::{Call, RequestKind};
use rewrite::ResultForm;
pub(crate) use rewrite::frame_memory;
use std::collections::HashSet;

/// Returns true if a symbol belongs to the call interface: a differentiation function or a marker.
pub(crate) fn is_interface_name(name: &str) -> bool {
    differentiation_call(name).is_some() || marker_named(name).is_some()
}

/// The outcome of lowering.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    /// The functions with changed bodies.
    pub changed: Vec<FuncId>,
    /// The number of calls replaced.
    pub replaced: usize,
    /// The number of calls left for a later link.
    pub left: usize,
    /// Diagnostics on calls that could not be parsed.
    pub findings: Vec<Diagnostic>,
}

/// Lowers all differentiation calls of all bodies. `partial` leaves a call if its function is defined in
/// another file or reaches a call that is left. Derivatives requested by functions for whose names
/// `in_kernels` holds run concurrently.
pub(crate) fn lower(
    unit: &mut Unit,
    roots: &mut Roots,
    partial: bool,
    in_kernels: &dyn Fn(&str) -> bool,
) -> Lowered {
    let mut lowered = Lowered::default();
    let waiting = match partial {
        true => deferred_to_link::functions_deferred_to_link(unit),
        false => HashSet::new(),
    };
    for site in unit.functions.ids().collect::<Vec<_>>() {
        let Some(mut body) = unit.functions[site].body.take() else {
            continue;
        };
        let left = lowered.left;
        let at = CallPosition {
            site,
            in_kernel: in_kernels(&unit.functions[site].name),
        };
        let calls = find(unit, &body);
        let mut changed = !calls.is_empty();
        for (op, entry) in calls {
            let left = partial.then_some(&waiting);
            match lower_one(unit, &mut body, at, op, entry, roots, left) {
                Ok(true) => lowered.replaced += 1,
                Ok(false) => lowered.left += 1,
                Err(finding) => lowered.findings.push(finding),
            }
        }
        match lowered.left == left {
            true => changed |= activity_markers::erase_loads(unit, &mut body),
            false => activity_markers::restore_marker_loads(unit, &mut body),
        }
        unit.functions[site].body = Some(body);
        if changed {
            lowered.changed.push(site);
        }
    }
    lowered.findings.extend(roots.strong_zero_mismatches(unit));
    lowered
}

/// Replaces the marker loads of differentiation calls before code motion.
pub(crate) fn replace_marker_loads(unit: &mut Unit) {
    for site in unit.functions.ids().collect::<Vec<_>>() {
        if let Some(mut body) = unit.functions[site].body.take() {
            if !find(unit, &body).is_empty() {
                activity_markers::replace_marker_loads(unit, &mut body);
            }
            unit.functions[site].body = Some(body);
        }
    }
}

/// Returns the differentiation calls of a body, each with the functions named.
pub(crate) fn calls_with_named_functions(unit: &Unit, body: &Body) -> Vec<(Op, Vec<FuncId>)> {
    let function = |value| match unit.constant(body.as_const(value)?).kind {
        ConstKind::Func(func) => Some(func),
        _ => None,
    };
    let found = find(unit, body).into_iter();
    let with_names = found.map(|(op, _)| {
        let args = unit.call_args(body, op).into_iter();
        (op, args.filter_map(function).collect())
    });
    with_names.collect()
}

/// Returns true if a function's body has differentiation calls.
pub(crate) fn has_differentiation_calls(unit: &Unit, func: FuncId) -> bool {
    let body = unit.functions[func].body.as_deref();
    body.is_some_and(|body| !find(unit, body).is_empty())
}

/// Returns the differentiation calls of a body.
fn find(unit: &Unit, body: &Body) -> Vec<(Op, Entry)> {
    let entry = |op| {
        let callee = &unit.functions[unit.callee(body, op)?];
        if callee.defined || callee.body.is_some() {
            return None;
        }
        Some((op, differentiation_call(&callee.name)?))
    };
    body.walk(body.root()).filter_map(entry).collect()
}

/// The position of calls.
#[derive(Clone, Copy)]
struct CallPosition {
    /// The function.
    site: FuncId,
    /// True if the threads of a kernel run it.
    in_kernel: bool,
}

/// Lowers a call. Returns false if the call must be left for a later link, which requires `waiting`.
fn lower_one(
    unit: &mut Unit,
    body: &mut Body,
    CallPosition { site, in_kernel }: CallPosition,
    op: Op,
    entry: Entry,
    roots: &mut Roots,
    waiting: Option<&HashSet<FuncId>>,
) -> Result<bool, Diagnostic> {
    let call = Call {
        unit,
        body,
        op,
        site,
    };
    let asks = request_kind(&call, entry)?;
    // A later link does not see device code of other sources either.
    let waiting = waiting.filter(|_| !in_kernel);
    let (args, place) = call.arguments();
    let Some((&(_, function), args)) = args.split_first() else {
        return Err(call.error(
            Code::BadRequest,
            format!("`{}` is called without a function", entry.name),
        ));
    };
    let primal = function_of(&call, function)?;
    if waiting.is_some_and(|w| w.contains(&primal)) {
        return Ok(false);
    }
    let primal = match with_body_or_wrapper(unit, primal) {
        Some(primal) => primal,
        None => {
            let call = Call {
                unit,
                body,
                op,
                site,
            };
            let mut finding = undefined_function_error(&call, primal);
            if waiting.is_none() {
                return Err(finding);
            }
            finding.severity = Severity::Note;
            roots.notes.push(finding);
            return Ok(false);
        }
    };
    let call = Call {
        unit,
        body,
        op,
        site,
    };
    let mut parsed = parse::parse(call, primal, asks, args, place)?;
    parsed.variant.concurrent = in_kernel;
    let wanted = result_form(body, op, parsed.result_place);
    if asks.size_only {
        tape_size::lower_size_query(unit, body, (op, site), &parsed, roots, wanted)?;
        return Ok(true);
    }
    let signature = parsed.variant.signature(unit);
    if !rewrite::result_scalars_match(unit, &signature, wanted) {
        let call = Call {
            unit,
            body,
            op,
            site,
        };
        return Err(result_misfit(&call, signature.results.len()));
    }
    let span = unit.span(body.ops[op].loc);
    let derivative = roots.root(unit, &parsed.variant, span);
    tape_size::check_tape_size(unit, body, (op, site), &parsed, roots, derivative);
    rewrite::rewrite(unit, body, op, &parsed, derivative, wanted);
    Ok(true)
}

fn request_kind(call: &Call<'_>, entry: Entry) -> Result<RequestKind, Diagnostic> {
    let asks = |mode, size_only| Ok(RequestKind { mode, size_only });
    let message = match entry.mode {
        EntryMode::Reverse => return asks(Mode::Combined, false),
        EntryMode::Forward => return asks(Mode::Forward, false),
        EntryMode::AugmentedForward => return asks(Mode::Augmented, false),
        EntryMode::TapeSize => return asks(Mode::Augmented, true),
        EntryMode::ReverseSplit => return asks(Mode::Reverse, false),
        EntryMode::ForwardSplit => {
            let message = format!(
                "`{}` is not supported, because a tape holds no tangents",
                entry.name
            );
            let help = "compute the tangent with `__enzyme_fwddiff`, which runs the function again";
            return Err(call.error(Code::SplitMode, message).help(help));
        }
        EntryMode::VirtualReverse | EntryMode::Batch | EntryMode::Other => {
            format!("`{}` is not supported", entry.name)
        }
    };
    let help = "remove the call; `docs/reference/interface-words.md` lists the supported names";
    Err(call.error(Code::UnsupportedKeyword, message).help(help))
}

/// Returns the function named by a call.
fn function_of(call: &Call<'_>, value: Value) -> Result<FuncId, Diagnostic> {
    let settled = activity_markers::constant_on_all_paths(call.unit, call.body, value);
    let constant = settled.and_then(|v| call.body.as_const(v));
    match constant.map(|id| &call.unit.constant(id).kind) {
        Some(ConstKind::Func(func)) => {
            let ty = call.unit.functions[*func].ty;
            if call.unit.types.is_variadic(ty) {
                let message = "a variadic function cannot be differentiated";
                return Err(call.error(Code::Variadic, message));
            }
            Ok(*func)
        }
        _ => {
            let message = "the function to differentiate is unknown at compile time";
            let help = "name the function in the call; a function pointer known only at run time has no derivative";
            Err(call.error(Code::BadRequest, message).help(help))
        }
    }
}

/// Returns the function itself if it has a body, or a wrapper if its derivative is known by name.
fn with_body_or_wrapper(unit: &mut Unit, primal: FuncId) -> Option<FuncId> {
    if unit.functions[primal].body.is_some() {
        return Some(primal);
    }
    unit.known(primal)?;
    let (name, ty) = (
        unit.functions[primal].name.clone(),
        unit.functions[primal].ty,
    );
    let symbol = format!("__gradus1_call_{name}");
    if let Some(made) = unit.function(&symbol) {
        return Some(made);
    }
    let params = unit.param_types(ty).to_vec();
    let mut body = Body::new(&params);
    let args = body.params().to_vec();
    let mut build = Builder::new(unit, &mut body);
    let call = build.call(primal, &args);
    let result = build.body.results(call).first().copied();
    build.return_(result);
    let attrs = unit.attrs(unit.functions[primal].attrs).clone();
    let func = unit.declare(&symbol, ty, attrs);
    let function = &mut unit.functions[func];
    function.linkage = Linkage::Internal;
    function.source_name = Some(name);
    function.body = Some(Box::new(body));
    Some(func)
}

fn undefined_function_error(call: &Call<'_>, primal: FuncId) -> Diagnostic {
    let function = &call.unit.functions[primal];
    let name = function.display_name();
    if function.defined {
        let message = format!("`{name}` cannot be imported into the IR");
        return call.error(Code::NotImportable, message);
    }
    let message = format!("`{name}` is not defined in this file or link");
    call.error(Code::UnknownCallee, message)
        .help("add the file that defines the function, compiled the same way, to the same link")
}

/// Returns the result form stated by the call's prototype.
fn result_form(body: &Body, op: Op, place: Option<(Value, gradus_ir::TypeId)>) -> ResultForm {
    if let Some((place, ty)) = place {
        return ResultForm::Memory(ty, place);
    }
    let value = match body.kind(op) {
        gradus_ir::OpKind::Invoke(_) => body.region_params(body.op_regions(op)[0]).first(),
        _ => body.results(op).first(),
    };
    match value {
        Some(&value) if body.has_uses(value) => ResultForm::Value(body.ty(value)),
        _ => ResultForm::Nothing,
    }
}

fn result_misfit(call: &Call<'_>, results: usize) -> Diagnostic {
    let message = match results {
        0 => "the program uses the result of the call, but the derivative returns nothing"
            .to_string(),
        1 => {
            "the result type of the call differs from the result type of the derivative".to_string()
        }
        n => format!(
            "the result type of the call is not a structure of the {n} numbers that the derivative returns"
        ),
    };
    call.error(Code::BadRequest, message).help(
        "declare the call with a result that holds the adjoint of each `out` argument in order \
         (forward mode: the tangent of the result)",
    )
}
