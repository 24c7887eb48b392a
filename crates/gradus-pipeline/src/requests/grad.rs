//! Derivatives requested by name: chooses the active arguments, and emits the function `f_vjp` or `f_jvp`
//! for C callers.
//!
//! The emitted function is a thin wrapper around the derivative with the C ABI of its prototype. Parameters
//! are the primal's own, already lowered by the front end; by-value structures stay `byval`. Several
//! results are returned as a structure, by the target's rules ([`abi`]).

use super::abi::{self, ReturnConvention, leaves};
use super::c_layout::{self, CParameter, NAMELESS};
use super::c_names;
use super::calls::frame_memory;
use super::header::CTypes;
use super::in_kernels::is_of_gpu;
use super::{Roots, SourceArgument, source_arguments};
use crate::wire::reply::{Argument, Derivative, ResultPart, Role};
use crate::wire::request::{GradRequest, Mode};
use gradus_ad::{
    ArgActivity, ParamRole, ResultActivity, ResultRole, Signature, Tangents, Variant, carries_float,
};
use gradus_analysis::{Analyses, Effects, indirect_outputs};
use gradus_ir::{
    Attr, AttrSet, AttrValue, Body, Builder, Code, Diagnostic, FuncId, Linkage, Severity, TypeId,
    Unit, Value,
};
use std::rc::Rc;

/// The context of a request.
pub(crate) struct RequestContext<'a> {
    /// The request.
    pub request: &'a GradRequest,
    /// The function.
    pub primal: FuncId,
    /// The target.
    pub triple: &'a str,
    /// The C types of the function, if known.
    pub c_types: CTypes,
    /// Returns true if the program defines a symbol.
    pub is_taken: &'a dyn Fn(&str) -> bool,
}

/// A derivative requested by name, with its wrapper.
pub(crate) struct WrappedDerivative {
    /// The description for callers.
    pub derivative: Derivative,
    /// The function called by the wrapper.
    pub root: FuncId,
    /// Notes for the user.
    pub notes: Vec<Diagnostic>,
}

/// Declares the requested derivative and emits the wrapper.
///
/// # Errors
/// Arguments that do not exist or cannot be active, a symbol already defined, a target with an unknown ABI.
pub(crate) fn wrap(
    unit: &mut Unit,
    analyses: &mut Analyses,
    setting: &RequestContext<'_>,
    roots: &mut Roots,
) -> Result<WrappedDerivative, Vec<Diagnostic>> {
    let written = writes(unit, analyses, setting.primal);
    let (args, notes) = activities(unit, setting, &written)?;
    let one = |d| vec![d];
    let variant = variant(unit, setting, args).map_err(one)?;
    let name = symbol(unit, setting).map_err(one)?;
    let signature = variant.signature(unit);
    let parts = result_parts(unit, setting, &signature).map_err(one)?;
    let returned = return_convention(unit, setting, &signature).map_err(one)?;
    let span = unit.functions[setting.primal].span.clone();
    let passed = c_layout::c_parameters(unit, &signature);
    let mut derivative = describe(unit, setting, &variant, &passed, name.clone(), parts);
    for (argument, is_written) in derivative.primal.iter_mut().zip(written) {
        argument.is_written = is_written;
    }
    check_c_types(unit, setting, &derivative).map_err(one)?;
    let root = roots.root(unit, &variant, span);
    make(
        unit,
        setting,
        &variant,
        (&signature, &passed),
        root,
        &name,
        returned,
    );
    Ok(WrappedDerivative {
        derivative,
        root,
        notes,
    })
}

fn finding(unit: &Unit, setting: &RequestContext<'_>, code: Code, message: String) -> Diagnostic {
    let span = unit.functions[setting.primal].span.clone();
    Diagnostic::error(code, message)
        .in_function(unit.functions[setting.primal].display_name())
        .at(span, "defined here")
}

/// Returns the symbol of the wrapper.
fn symbol(unit: &Unit, setting: &RequestContext<'_>) -> Result<String, Diagnostic> {
    let name = unit.functions[setting.primal].display_name();
    let stem = match name.rsplit("::").next().unwrap_or(name) {
        name if c_names::is_identifier(name) => name.to_string(),
        _ => c_names::identifier(&unit.functions[setting.primal].name),
    };
    let name = match (&setting.request.name, setting.request.mode) {
        (Some(name), _) => name.clone(),
        (None, Mode::Forward) => format!("{stem}_jvp"),
        (None, Mode::Reverse) => format!("{stem}_vjp"),
        (None, Mode::Dependencies) => format!("{stem}_dep"),
    };
    if !c_names::is_identifier(&name) {
        let message = format!("`{name}` is not a C identifier");
        return Err(finding(unit, setting, Code::BadRequest, message)
            .help("choose an identifier with --name"));
    }
    if unit.symbol(&name).is_some() || (setting.is_taken)(&name) {
        let message = format!("the program already has a symbol `{name}`");
        let help = "choose another name for the derivative with --name";
        return Err(finding(unit, setting, Code::BadRequest, message).help(help));
    }
    Ok(name)
}

/// Returns the activity of each parameter, and notes about activities chosen for the user. `written` tells per parameter
/// whether the function writes floats through it.
fn activities(
    unit: &Unit,
    setting: &RequestContext<'_>,
    written: &[bool],
) -> Result<(Vec<ArgActivity>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let arguments = source_arguments(unit, setting.primal);
    let (wrt, mut findings) = find_all(unit, setting, &arguments, &setting.request.wrt);
    let (inactive, others) = find_all(unit, setting, &arguments, &setting.request.inactive);
    findings.extend(others);
    let params = unit.param_types(unit.functions[setting.primal].ty);
    let mut notes = Vec::new();
    let mut activities = vec![ArgActivity::Const; params.len()];
    for (number, argument) in arguments.iter().enumerate() {
        let (asked, excluded) = (wrt.contains(&number), inactive.contains(&number));
        if asked && excluded {
            let message = format!("`{}` is in both --wrt and --inactive", argument.name);
            findings.push(finding(unit, setting, Code::BadRequest, message));
        }
        for i in argument.params.clone() {
            let natural = match params[i] {
                ty if unit.types.is_ptr(ty) => ArgActivity::Dup,
                ty if carries_float(unit, ty) => ArgActivity::Active,
                _ => ArgActivity::Const,
            };
            let written = natural == ArgActivity::Dup && written[i];
            let taken = asked || setting.request.wrt.is_empty() || written;
            if taken && !excluded {
                activities[i] = natural;
            }
            if written && !asked && !excluded && !setting.request.wrt.is_empty() {
                notes.push(written_note(unit, setting, &argument.name));
            }
        }
        let dead = |i| activities[i] == ArgActivity::Const;
        if asked && !excluded && argument.params.clone().all(dead) {
            let message = format!("`{}` is an integer and has no derivative", argument.name);
            findings.push(finding(unit, setting, Code::NoSuchArgument, message));
        }
    }
    if findings.is_empty() && activities.iter().all(|a| *a == ArgActivity::Const) {
        let name = unit.functions[setting.primal].display_name();
        let message = format!("no argument of `{name}` can carry a derivative");
        findings.push(finding(unit, setting, Code::ZeroDerivative, message));
    }
    match findings.is_empty() {
        true => Ok((activities, notes)),
        false => Err(findings),
    }
}

fn written_note(unit: &Unit, setting: &RequestContext<'_>, argument: &str) -> Diagnostic {
    let message =
        format!("`{argument}` has a shadow, too, because the function writes through the pointer");
    Diagnostic {
        severity: Severity::Note,
        labels: Vec::new(),
        ..finding(unit, setting, Code::BadRequest, message)
    }
    .help(format!(
        "use --inactive {argument} if the function stores no active values there"
    ))
}

/// Returns the indices of the arguments denoted by `names`.
fn find_all(
    unit: &Unit,
    setting: &RequestContext<'_>,
    arguments: &[SourceArgument],
    names: &[String],
) -> (Vec<usize>, Vec<Diagnostic>) {
    let (mut found, mut findings) = (Vec::new(), Vec::new());
    for name in names {
        let is_called =
            |a: &SourceArgument| a.name == *name || c_names::identifier(&a.name) == *name;
        let by_name = arguments.iter().position(is_called);
        let by_place = || name.parse().ok().filter(|n| *n < arguments.len());
        match by_name.or_else(by_place) {
            Some(number) => found.push(number),
            None => {
                let known: Vec<&str> = arguments.iter().map(|a| a.name.as_str()).collect();
                let function = unit.functions[setting.primal].display_name();
                let message = format!("`{function}` has no argument `{name}`");
                let help = match known.is_empty() {
                    true => "the function has no arguments".to_string(),
                    false => format!(
                        "use one of {}, or an index from 0 to {}",
                        known.join(", "),
                        known.len() - 1
                    ),
                };
                findings.push(finding(unit, setting, Code::NoSuchArgument, message).help(help));
            }
        }
    }
    (found, findings)
}

/// The writes of a function through its parameters.
struct ParameterWrites<'a> {
    unit: &'a Unit,
    func: FuncId,
    effects: Rc<Effects>,
    /// For each parameter, true if floats are written to memory reached through pointers loaded from the
    /// pointee.
    written_through_loaded_pointers: Vec<bool>,
}

impl<'a> ParameterWrites<'a> {
    fn of(unit: &'a Unit, analyses: &mut Analyses, func: FuncId) -> Self {
        let closure = analyses.call_graph(unit, &[func]);
        ParameterWrites {
            unit,
            func,
            effects: analyses.effects_over(unit, &closure),
            written_through_loaded_pointers: indirect_outputs(unit, analyses, &closure, func),
        }
    }

    /// Returns true if floats are written through a parameter, or through pointers loaded through it:
    /// `y->p[i]`, the array behind a Fortran descriptor.
    fn through(&self, index: usize) -> bool {
        self.written_through_loaded_pointers.get(index) == Some(&true) || !self.is_read_only(index)
    }

    /// Returns true if the pointee of a parameter is not written. LLVM states it, or the effects of the
    /// body show it: LLVM sees only a call for a parallel region.
    fn is_read_only(&self, index: usize) -> bool {
        let attrs = self.unit.attrs(self.unit.functions[self.func].attrs);
        let stated = ["readonly", "readnone"]
            .iter()
            .any(|name| attrs.param(index, name).is_some());
        let shown = self.effects.of_function(self.func).is_some_and(|all| {
            let param = all.param(index);
            param.writes.is_nothing() && !param.captures && !param.returned && !all.reachable.writes
        });
        stated || shown
    }
}

/// Returns whether the function writes floats through each parameter.
fn writes(unit: &Unit, analyses: &mut Analyses, func: FuncId) -> Vec<bool> {
    let written = ParameterWrites::of(unit, analyses, func);
    let params = unit.param_types(unit.functions[func].ty).iter();
    let through = |(i, ty): (usize, &TypeId)| unit.types.is_ptr(*ty) && written.through(i);
    params.enumerate().map(through).collect()
}

fn variant(
    unit: &Unit,
    setting: &RequestContext<'_>,
    args: Vec<ArgActivity>,
) -> Result<Variant, Diagnostic> {
    let ty = unit.functions[setting.primal].ty;
    if unit.types.is_variadic(ty) {
        let message = "a variadic function cannot be differentiated".to_string();
        return Err(finding(unit, setting, Code::Variadic, message));
    }
    let forward = setting.request.mode != Mode::Reverse;
    let result = match unit.result_type(ty) {
        Some(ty) if carries_float(unit, ty) => ResultActivity::Active,
        Some(ty) if unit.types.is_ptr(ty) && forward => ResultActivity::Dup,
        _ => ResultActivity::Const,
    };
    Ok(Variant {
        func: setting.primal,
        mode: match forward {
            true => gradus_ad::Mode::Forward,
            false => gradus_ad::Mode::Combined,
        },
        width: setting.request.width.max(1),
        args,
        result,
        primal_result: setting.request.with_primal,
        overwritten: Vec::new(),
        tape: Default::default(),
        versions: Default::default(),
        strong_zero: false,
        tangents: match setting.request.mode {
            Mode::Dependencies => Tangents::Dependencies,
            Mode::Forward | Mode::Reverse => Tangents::Numbers,
        },
        concurrent: is_of_gpu(setting.triple),
        outermost: false,
    })
}

/// Returns the type of the structure with all results.
fn results_type(unit: &mut Unit, signature: &Signature) -> TypeId {
    let fields = signature.results.iter().map(|(_, ty)| *ty).collect();
    unit.types.tuple(fields)
}

/// Determines how C returns the results; `None` for fewer than two results.
fn return_convention(
    unit: &mut Unit,
    setting: &RequestContext<'_>,
    signature: &Signature,
) -> Result<Option<ReturnConvention>, Diagnostic> {
    if signature.results.len() < 2 {
        return Ok(None);
    }
    let all = results_type(unit, signature);
    let scalars = leaves(unit, all);
    let plain = unit
        .types
        .tuple(scalars.iter().map(|(_, ty)| *ty).collect());
    if leaves(unit, plain) != scalars {
        let message = "the results do not form a C structure".to_string();
        return Err(finding(unit, setting, Code::BadRequest, message)
            .help("request fewer arguments at a time with --wrt"));
    }
    abi::return_convention(unit, all, setting.triple).map(Some)
}

/// Emits the wrapper around the derivative `root`.
fn make(
    unit: &mut Unit,
    setting: &RequestContext<'_>,
    variant: &Variant,
    (signature, passed): (&Signature, &[CParameter]),
    root: FuncId,
    name: &str,
    returned: Option<ReturnConvention>,
) {
    let all = results_type(unit, signature);
    let mut params: Vec<TypeId> = passed.iter().map(|one| one.ty).collect();
    let in_memory = returned == Some(ReturnConvention::InMemory);
    if in_memory {
        let pointer = unit.types.ptr();
        params.insert(0, pointer);
    }
    let result_ty = match (returned, signature.results.as_slice()) {
        (Some(ReturnConvention::InRegisters(ty)), _) => ty,
        (None, [(_, ty)]) => *ty,
        _ => unit.types.void(),
    };
    let ty = unit.types.func(result_ty, params.clone());
    let attrs = attributes(
        unit,
        variant.func,
        (signature, passed),
        in_memory.then_some(all),
    );
    let func = unit.declare(name, ty, attrs);
    let mut body = Body::new(&params);
    let args: Vec<Value> = body.params()[usize::from(in_memory)..].to_vec();
    let mut build = Builder::new(unit, &mut body);
    let args = c_layout::arguments(&mut build, signature, passed, &args);
    let call = build.call(root, &args);
    let result = build.body.results(call).first().copied();
    let value = match (returned, result) {
        (Some(ReturnConvention::InMemory), Some(result)) => {
            let place = build.body.params()[0];
            build.store(result, place);
            None
        }
        (Some(ReturnConvention::InRegisters(ty)), Some(result)) if ty != all => {
            let memory = frame_memory(&mut build, &[ty, all]);
            build.store(result, memory);
            Some(build.load(ty, memory))
        }
        _ => result,
    };
    build.return_(value);
    let names = argument_names(unit, setting, passed);
    let function = &mut unit.functions[func];
    function.body = Some(Box::new(body));
    function.linkage = Linkage::External;
    function.derived_from = Some(setting.primal);
    function.param_names = names.into_iter().map(Some).collect();
    if in_memory {
        function.param_names.insert(0, Some("result".to_string()));
    }
}

/// Returns the attributes that determine argument passing.
fn attributes(
    unit: &Unit,
    primal: FuncId,
    (signature, passed): (&Signature, &[CParameter]),
    result_in_memory: Option<TypeId>,
) -> AttrSet {
    const PASSING: &[&str] = &["byval", "signext", "zeroext", "inreg", "align", "noext"];
    let own = unit.attrs(unit.functions[primal].attrs);
    let mut set = AttrSet::default();
    if let Some(ty) = result_in_memory {
        let sret = Attr {
            name: "sret".to_string(),
            value: AttrValue::Type(ty),
        };
        set.params.push(vec![sret]);
    }
    for CParameter { role, .. } in passed {
        let list = match role {
            ParamRole::Primal(i) => own.params.get(*i).map_or(&[][..], Vec::as_slice),
            _ => &[],
        };
        let by_value = list.iter().any(|a| a.name == "byval");
        let kept = list
            .iter()
            .filter(|a| PASSING.contains(&a.name.as_str()) && (a.name != "align" || by_value));
        set.params.push(kept.cloned().collect());
    }
    if let [(ResultRole::Primal | ResultRole::Shadow(_), _)] = signature.results[..] {
        let kept = own
            .result
            .iter()
            .filter(|a| PASSING.contains(&a.name.as_str()));
        set.result = kept.cloned().collect();
    }
    set
}

// ---- description for callers ----------------------------------------------------------------

/// Returns the source name of parameter `index` of the primal, with a number if a structure takes several
/// parameters.
fn param_name(unit: &Unit, primal: FuncId, index: usize) -> String {
    let arguments = source_arguments(unit, primal);
    let argument = arguments.iter().find(|a| a.params.contains(&index));
    match argument {
        Some(a) if a.params.len() > 1 => format!("{}_{}", a.name, index - a.params.start),
        Some(a) => a.name.clone(),
        None => format!("arg{index}"),
    }
}

fn lane_name(setting: &RequestContext<'_>, stem: &str, lane: u32) -> String {
    match setting.request.width {
        0 | 1 => stem.to_string(),
        _ => format!("{stem}{lane}"),
    }
}

fn argument_names(unit: &Unit, setting: &RequestContext<'_>, passed: &[CParameter]) -> Vec<String> {
    let suffix = match setting.request.mode {
        Mode::Forward => "tan",
        Mode::Reverse => "adj",
        Mode::Dependencies => "dep",
    };
    let name = |one: &CParameter| match &one.role {
        ParamRole::Primal(i) => param_name(unit, setting.primal, *i),
        ParamRole::Shadow(i, lane) => {
            let own = param_name(unit, setting.primal, *i);
            lane_name(setting, &format!("{own}_{suffix}"), *lane)
        }
        ParamRole::Cotangent(lane) => {
            let whole = lane_name(setting, "result_adj", *lane);
            match one.part {
                Some((_, number)) => format!("{whole}_{number}"),
                None => whole,
            }
        }
        ParamRole::Tape => "tape".to_string(),
    };
    let params = passed.iter().copied().enumerate();
    let (own, others): (Vec<_>, Vec<_>) =
        params.partition(|(_, one)| matches!(one.role, ParamRole::Primal(_)));
    // The primal's names come first; later names are changed on a conflict.
    let order: Vec<(usize, CParameter)> = own.into_iter().chain(others).collect();
    let made = c_names::distinct(order.iter().map(|(_, one)| name(one)).collect());
    let mut placed: Vec<(usize, String)> = order.iter().map(|(at, _)| *at).zip(made).collect();
    placed.sort();
    placed.into_iter().map(|(_, name)| name).collect()
}

/// Returns the parts of the result, scalar by scalar.
fn result_parts(
    unit: &mut Unit,
    setting: &RequestContext<'_>,
    signature: &Signature,
) -> Result<Vec<ResultPart>, Diagnostic> {
    let tangent_stem = match setting.request.mode {
        Mode::Dependencies => "value_dep",
        Mode::Forward | Mode::Reverse => "value_tan",
    };
    let mut parts = Vec::new();
    for &(role, ty) in &signature.results {
        let (stem, role) = match role {
            ResultRole::Primal => ("value".to_string(), Role::PrimalResult),
            ResultRole::Shadow(lane) => (
                lane_name(setting, tangent_stem, lane),
                Role::ResultTangent(lane),
            ),
            ResultRole::Adjoint(i, lane) => {
                let own = param_name(unit, setting.primal, i);
                (lane_name(setting, &own, lane), Role::Adjoint(i, lane))
            }
            ResultRole::Tape => ("tape".to_string(), Role::PrimalResult),
        };
        let scalars = leaves(unit, ty);
        for (number, (_, scalar)) in scalars.iter().enumerate() {
            parts.push(ResultPart {
                name: match scalars.len() {
                    1 => stem.clone(),
                    _ => format!("{stem}_{number}"),
                },
                c_type: super::header::c_type_of(unit, *scalar),
                role,
            });
        }
    }
    let names = c_names::distinct(parts.iter().map(|p| p.name.clone()).collect());
    for (part, name) in parts.iter_mut().zip(names) {
        part.name = name;
    }
    Ok(parts)
}

/// Returns float type and number of members of a parameter that is a by-value structure in memory, if all
/// members have a single float type and fill the structure.
fn uniform_float_members(unit: &Unit, func: FuncId, index: usize) -> Option<(String, u64)> {
    let Some(AttrValue::Type(ty)) = unit.attrs(unit.functions[func].attrs).param(index, "byval")
    else {
        return None;
    };
    let numbers = leaves(unit, *ty);
    let (_, elem) = *numbers.first()?;
    unit.types.float_kind(elem)?;
    let size_bytes = unit.layout.size_bytes(unit, elem);
    let even = |(i, (at, ty)): (usize, &(u64, TypeId))| *ty == elem && *at == i as u64 * size_bytes;
    let fills = unit.layout.size_bytes(unit, *ty) == numbers.len() as u64 * size_bytes;
    (fills && numbers.iter().enumerate().all(even))
        .then(|| (super::header::c_type_of(unit, elem), numbers.len() as u64))
}

/// Returns the C definitions of the by-value structures without a name in the source.
fn structures(unit: &Unit, setting: &RequestContext<'_>) -> Vec<String> {
    let primal = setting.primal;
    let types = unit.param_types(unit.functions[primal].ty);
    let of_param = |(index, ty): (usize, &TypeId)| {
        let c_type = setting.c_types.param(unit, primal, index, *ty);
        let made = setting.c_types.is_invented_tag(unit, primal, index);
        made.then(|| c_layout::structure_definition(unit, primal, index, &c_type))?
    };
    types.iter().enumerate().filter_map(of_param).collect()
}

/// Checks that the header can spell the derivative.
///
/// # Errors
/// GRD0017: a value of a type without a name in C, and a by-value structure without a definition.
fn check_c_types(
    unit: &Unit,
    setting: &RequestContext<'_>,
    derivative: &Derivative,
) -> Result<(), Diagnostic> {
    let primal = setting.primal;
    let undefined = |(index, argument): (usize, &Argument)| {
        let defined = |text: &String| text.starts_with(&format!("{} {{", argument.c_type));
        let made = setting.c_types.is_invented_tag(unit, primal, index);
        (made && !derivative.structures.iter().any(defined)).then(|| argument.name.clone())
    };
    let mut own = derivative.primal.iter().enumerate();
    let nameless = own.find_map(undefined).or_else(|| {
        let mut arguments = derivative.arguments.iter();
        let argument = arguments
            .find(|a| a.c_type == NAMELESS)
            .map(|a| a.name.clone());
        let mut parts = derivative.results.iter();
        argument.or_else(|| parts.find(|p| p.c_type == NAMELESS).map(|p| p.name.clone()))
    });
    let Some(name) = nameless else {
        // Not an error: C has all types.
        return Ok(());
    };
    let message = format!("`{name}` has a type without a C equivalent");
    let help = "pass the structure by address, or give the type a tag: `struct point { … }`";
    Err(finding(unit, setting, Code::BadRequest, message).help(help))
}

/// Returns the role of the primal's argument `i`.
fn own_role(variant: &Variant, i: usize) -> Role {
    match variant.args[i] {
        ArgActivity::Const => Role::Inactive(i),
        _ => Role::Active(i),
    }
}

/// Describes the primal's arguments; [`wrap`] adds whether the function writes through an argument.
fn primal_arguments(unit: &Unit, setting: &RequestContext<'_>, variant: &Variant) -> Vec<Argument> {
    let primal = setting.primal;
    let types = unit.param_types(unit.functions[primal].ty);
    let source_names: Vec<String> = (0..types.len())
        .map(|i| param_name(unit, primal, i))
        .collect();
    let c_names = c_names::distinct(source_names.clone());
    types
        .iter()
        .zip(source_names.into_iter().zip(c_names))
        .enumerate()
        .map(|(i, (ty, (source_name, name)))| Argument {
            name,
            source_name,
            c_type: setting.c_types.param(unit, primal, i, *ty),
            role: own_role(variant, i),
            descriptor: setting.c_types.descriptor(unit, primal, i),
            elements: uniform_float_members(unit, primal, i),
            shape: setting.c_types.shape(unit, primal, i),
            is_written: false,
        })
        .collect()
}

fn describe(
    unit: &Unit,
    setting: &RequestContext<'_>,
    variant: &Variant,
    passed: &[CParameter],
    name: String,
    results: Vec<ResultPart>,
) -> Derivative {
    let primal = setting.primal;
    let active = |i: usize| own_role(variant, i);
    let own = primal_arguments(unit, setting, variant);
    let is_descriptor = |i: &usize| setting.c_types.is_descriptor(unit, primal, *i);
    let descriptors = (0..own.len()).filter(is_descriptor);
    let descriptors = descriptors.map(|i| own[i].name.clone()).collect();
    let names = argument_names(unit, setting, passed);
    let arguments = passed.iter().zip(names);
    let arguments = arguments.map(|(&CParameter { role, ty, .. }, name)| {
        let role_is_own = matches!(role, ParamRole::Primal(_));
        let (c_type, role) = match role {
            ParamRole::Primal(i) => (setting.c_types.param(unit, primal, i, ty), active(i)),
            ParamRole::Shadow(i, lane) => (
                setting.c_types.shadow(unit, primal, i, ty),
                Role::Shadow(i, lane),
            ),
            ParamRole::Cotangent(lane) => {
                (super::header::c_type_of(unit, ty), Role::Cotangent(lane))
            }
            ParamRole::Tape => ("void *".to_string(), Role::Inactive(0)),
        };
        let source_name = match role {
            Role::Inactive(i) | Role::Active(i) if role_is_own => param_name(unit, primal, i),
            _ => name.clone(),
        };
        Argument {
            name,
            source_name,
            c_type,
            role,
            descriptor: None,
            elements: None,
            shape: None,
            is_written: false,
        }
    });
    let mut derivative = Derivative {
        name,
        function: unit.functions[primal].name.clone(),
        source_name: unit.functions[primal].display_name().to_string(),
        mode: setting.request.mode,
        width: variant.width,
        primal: own,
        arguments: arguments.collect(),
        results,
        prototype: String::new(),
        primal_prototype: String::new(),
        primal_result: String::new(),
        result: String::new(),
        descriptors,
        structures: structures(unit, setting),
        is_zero: false,
        computes_single: false,
    };
    let result = unit.result_type(unit.functions[primal].ty);
    let result = setting.c_types.result(unit, primal, result);
    derivative.primal_prototype =
        super::header::prototype(&result, &derivative.function, &derivative.primal);
    let returned = super::header::returned_type(&derivative);
    derivative.prototype =
        super::header::prototype(&returned, &derivative.name, &derivative.arguments);
    derivative.primal_result = result;
    derivative.result = returned;
    derivative
}
