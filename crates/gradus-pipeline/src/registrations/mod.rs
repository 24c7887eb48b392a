//! Registrations of a program, by variables with reserved names or by attributes: custom derivatives,
//! inactive functions, functions that resemble known functions, allocators.
//!
//! Flow: [`read`] runs before the early pipeline, during which the named functions stay calls. After the
//! import, [`Registrations::apply`] adds the registrations to the unit and returns the rules queried by the
//! worklist ([`crate::requests::custom_derivatives`]).

pub(crate) mod blas;
mod contradictions;
mod marks;

use crate::requests::calls;
use crate::requests::custom_derivatives::{CustomDerivatives, Gradient};
use gradus_ir::externals::{
    CALL_SITE_PREFIX, Registration, differentiation_call, is_hook, is_reserved, lookup,
    registration_named,
};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AttrSet, Body, Builder, Code, Diagnostic, FloatPredicate, FuncId, OpKind, SourceSpan, Type,
    Unit, Value,
};
use gradus_llvm::{Host, InitCell};
use marks::Marks;
use std::collections::BTreeSet;

/// The variable with clang's `__attribute__((annotate("…")))` data: function, text, file, line, arguments.
const ANNOTATIONS: &str = "llvm.global.annotations";

/// The registrations of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registrations {
    gradients: Vec<[String; 3]>,
    derivatives: Vec<[String; 2]>,
    inactive: BTreeSet<String>,
    like: Vec<(String, String)>,
    allocations: Vec<(String, u8, Option<String>)>,
}

fn misfit(variable: &str, expected: &str) -> Diagnostic {
    let message = format!("the registration `{variable}` does not hold {expected}");
    Diagnostic::error(Code::BadRequest, message)
        .help("write the functions and strings into the initialiser, which the compiler reads")
}

/// Reports interface words that the module uses without a definition and that are missing from the table.
pub(crate) fn unknown_words(host: &Host) -> Vec<Diagnostic> {
    let unknown = |name: &str| {
        is_reserved(name)
            && differentiation_call(name).is_none()
            && registration_named(name) == Some(None)
    };
    let refuse = |(name, span): (String, Option<SourceSpan>)| {
        let why = match name.contains("__enzyme_") {
            true => "is not a name of the call interface",
            false => "is not a name of the call interface under any prefix",
        };
        marks::refuse_word(&name, why, span)
    };
    host.undefined(&unknown).into_iter().map(refuse).collect()
}

/// Reads the program's registrations. Inactive instructions are outlined in the host.
///
/// # Errors
/// Variables whose contents contradict their names, and unsupported words.
pub(crate) fn read(host: &mut Host) -> Result<Registrations, Vec<Diagnostic>> {
    let mut found = Registrations::default();
    let mut marks = Marks::default();
    for variable in host.defined_variables() {
        let lost = is_planted(Mutant::StaticRegistrationsLost) && host.is_static(&variable);
        let words = || host.initializer_cells(&variable).unwrap_or_default();
        if variable.starts_with(CALL_SITE_PREFIX) {
            // Gradus emitted the variable: the name of a device function defined in another file.
            continue;
        }
        if variable == ANNOTATIONS {
            let words = words();
            let each = words.chunks_exact(marks::WORDS_PER_ANNOTATION);
            each.for_each(|words| marks.annotation(words, &mut found));
        } else if let Some(kind) = registration_named(&variable).filter(|_| !lost) {
            let taken = match kind {
                Some(Registration::InactiveGlobal) => {
                    variables(&variable, &words()).map(|list| marks.inactive_variables.extend(list))
                }
                Some(kind) => found.record(kind, &variable, &words()),
                None if host.is_private(&variable) => Ok(()),
                None => {
                    let why = "is not a registration of the call interface";
                    Err(marks::refuse_word(&variable, why, None))
                }
            };
            marks.findings.extend(taken.err());
        }
    }
    let (list, instructions) = host.marks();
    list.into_iter()
        .for_each(|mark| marks.record(mark, &mut found));
    for hook in host
        .defined_functions()
        .into_iter()
        .filter(|name| is_hook(name))
    {
        let span = host.source_line(&hook).map(|line| SourceSpan {
            file: line.file,
            line: line.line,
            column: 0,
            called_at: None,
        });
        let why = "is a hook of the call interface that Gradus does not call";
        marks.findings.push(marks::refuse_word(&hook, why, span));
    }
    for (function, name) in &found.like {
        if lookup(name).is_none() {
            let message =
                format!("`{function}` is registered like `{name}`, which is not a known function");
            let help = "name a function of the C library, such as \"log1p\"";
            let finding = Diagnostic::error(Code::BadRequest, message).help(help);
            marks.findings.push(finding);
        }
    }
    marks.complete(host, &instructions, &mut found);
    marks.findings.extend(contradictions::of(host, &found));
    match marks.findings.is_empty() {
        true => Ok(found),
        false => Err(marks.findings),
    }
}

/// Returns the variables named by a registration.
fn variables(variable: &str, words: &[InitCell]) -> Result<Vec<String>, Diagnostic> {
    let name = |word: &InitCell| match word {
        InitCell::Variable(name) => Some(Some(name.clone())),
        InitCell::Number(0) => Some(None),
        _ => None,
    };
    let names: Option<Vec<Option<String>>> = words.iter().map(name).collect();
    let names = names.ok_or_else(|| misfit(variable, "variables only"))?;
    Ok(names.into_iter().flatten().collect())
}

impl Registrations {
    /// Registers an inactive function.
    pub(crate) fn add_inactive(&mut self, function: String) {
        self.inactive.insert(function);
    }

    /// Registers a function that resembles a known function.
    pub(crate) fn add_like(&mut self, function: String, name: String) {
        self.like.push((function, name));
    }

    /// Registers a gradient of a function: augmented primal, reverse function.
    pub(crate) fn add_gradient(&mut self, function: String, augmented: String, reverse: String) {
        self.gradients.push([function, augmented, reverse]);
    }

    /// Registers a forward-mode derivative.
    pub(crate) fn add_derivative(&mut self, function: String, derivative: String) {
        self.derivatives.push([function, derivative]);
    }

    fn record(
        &mut self,
        kind: Registration,
        variable: &str,
        words: &[InitCell],
    ) -> Result<(), Diagnostic> {
        use Registration as Kind;
        match (kind, words) {
            (
                Kind::Gradient,
                [
                    InitCell::Function(f),
                    InitCell::Function(a),
                    InitCell::Function(r),
                ],
            ) => {
                self.gradients.push([f.clone(), a.clone(), r.clone()]);
            }
            (Kind::Gradient, _) => {
                let expected = "a function, the augmented primal and the reverse pass";
                return Err(misfit(variable, expected));
            }
            (Kind::Derivative, [InitCell::Function(f), InitCell::Function(d)]) => {
                self.derivatives.push([f.clone(), d.clone()]);
            }
            (Kind::Derivative, _) => {
                return Err(misfit(variable, "a function and the derivative"));
            }
            (Kind::Inactive, words) => {
                for word in words {
                    match word {
                        InitCell::Function(name) => self.inactive.insert(name.clone()),
                        InitCell::Number(0) => false,
                        _ => return Err(misfit(variable, "functions only")),
                    };
                }
            }
            (Kind::Like, [InitCell::Function(f), InitCell::Text(name)]) => {
                self.like.push((f.clone(), name.clone()));
            }
            (Kind::Like, _) => {
                return Err(misfit(
                    variable,
                    "a function and the name of a known function",
                ));
            }
            (Kind::Allocation, [InitCell::Function(f), InitCell::Number(size), rest @ ..]) => {
                let size = u8::try_from(*size)
                    .map_err(|_| misfit(variable, "the index of the size argument"))?;
                let free = rest.iter().find_map(|word| match word {
                    InitCell::Function(name) => Some(name.clone()),
                    _ => None,
                });
                self.allocations.push((f.clone(), size, free));
            }
            (Kind::Allocation, _) => {
                let expected = "an allocation function, the index of the size argument, and the deallocation function";
                return Err(misfit(variable, expected));
            }
            (Kind::Hint, _) => {}
            (Kind::Unsupported | Kind::InactiveGlobal, _) => {
                let why = "is an unsupported registration";
                return Err(marks::refuse_word(variable, why, None));
            }
        }
        Ok(())
    }

    /// Returns the functions that must stay calls until registrations are applied.
    pub(crate) fn functions_kept_as_calls(&self) -> Vec<String> {
        let rules = self.gradients.iter().map(|[f, ..]| f);
        let rules = rules.chain(self.derivatives.iter().map(|[f, _]| f));
        let stated = self.inactive.iter().chain(self.like.iter().map(|(f, _)| f));
        let frees = self
            .allocations
            .iter()
            .filter_map(|(_, _, free)| free.as_ref());
        let memory = self.allocations.iter().map(|(f, ..)| f).chain(frees);
        let all: BTreeSet<&String> = rules.chain(stated).chain(memory).collect();
        all.into_iter().cloned().collect()
    }

    /// Returns the functions called by derivatives, which must be imported too.
    pub(crate) fn derivative_functions(&self) -> Vec<String> {
        let sweeps = self.gradients.iter().flat_map(|[_, a, r]| [a, r]);
        let all = sweeps.chain(self.derivatives.iter().map(|[_, d]| d));
        all.cloned().collect()
    }

    /// Adds the registrations to the unit, before requests are read.
    ///
    /// # Errors
    /// Functions that contradict their registration.
    pub(crate) fn apply(&self, unit: &mut Unit) -> Result<CustomDerivatives, Vec<Diagnostic>> {
        let mut findings = Vec::new();
        let mut stated: Vec<FuncId> = Vec::new();
        for name in &self.inactive {
            if let Some(func) = unit.function(name) {
                unit.declare_inactive(func);
                stated.push(func);
            }
        }
        let frees = self
            .allocations
            .iter()
            .filter_map(|(_, _, free)| free.as_ref());
        let frees: Vec<(String, String)> = frees.map(|f| (f.clone(), "free".to_string())).collect();
        for (name, like) in self.like.iter().chain(&frees) {
            let Some(func) = unit.function(name) else {
                continue;
            };
            match unit.declare_equivalent(func, like) {
                true => stated.push(func),
                false => findings.push(error_at_function(
                    unit,
                    func,
                    format!("does not have the type of `{like}`"),
                )),
            }
        }
        for (name, size, _) in &self.allocations {
            let Some(func) = unit.function(name) else {
                continue;
            };
            let ty = unit.functions[func].ty;
            let sized = unit.param_types(ty).get(usize::from(*size));
            let sized = sized.is_some_and(|ty| unit.types.int_bits(*ty).is_some());
            let gives = unit.result_type(ty).is_some_and(|ty| unit.types.is_ptr(ty));
            match sized && gives {
                true => {
                    unit.declare_allocator(func, *size);
                    stated.push(func);
                }
                false => findings.push(error_at_function(
                    unit,
                    func,
                    "does not return a pointer or has no integer at the size argument".into(),
                )),
            }
        }
        for &func in &stated {
            if calls::has_differentiation_calls(unit, func) {
                findings.push(error_at_function(
                    unit,
                    func,
                    "contains a differentiation call".into(),
                ));
            } else {
                // The registration states the effects: the body is not analysed.
                unit.functions[func].body = None;
            }
        }
        let rules = self.rules(unit, &mut findings);
        match findings.is_empty() {
            true => Ok(rules),
            false => Err(findings),
        }
    }

    fn rules(&self, unit: &mut Unit, findings: &mut Vec<Diagnostic>) -> CustomDerivatives {
        let mut rules = CustomDerivatives::default();
        let mut find = |unit: &Unit, name: &String| {
            let found = unit.function(name);
            if found.is_none() {
                let message = format!(
                    "`{name}` is registered as a derivative, but not defined in this file or link"
                );
                let help = "define the function in the same file or the same link";
                findings.push(Diagnostic::error(Code::BadRequest, message).help(help));
            }
            found
        };
        for [primal, augmented, reverse] in &self.gradients {
            let Some(primal) = unit.function(primal) else {
                continue;
            };
            if let (Some(augmented), Some(reverse)) = (find(unit, augmented), find(unit, reverse)) {
                rules
                    .gradients
                    .insert(primal, Gradient { augmented, reverse });
                rules.opaque.extend(make_opaque(unit, primal));
                make_result_depend_on_args(unit, primal);
            }
        }
        for [primal, derivative] in &self.derivatives {
            let Some(primal) = unit.function(primal) else {
                continue;
            };
            if let Some(derivative) = find(unit, derivative) {
                rules.derivatives.insert(primal, derivative);
                rules.opaque.extend(make_opaque(unit, primal));
                make_result_depend_on_args(unit, primal);
            }
        }
        rules
    }
}

fn error_at_function(unit: &Unit, func: FuncId, what: String) -> Diagnostic {
    let function = &unit.functions[func];
    let name = function.display_name();
    Diagnostic::error(
        Code::BadRequest,
        format!("the registered function `{name}` {what}"),
    )
    .at(function.span.clone(), "defined here")
    .help("remove the registration, or register another function")
}

/// Makes the result of a function with a custom derivative depend on its float arguments for analyses,
/// whatever the body computes: a rounding function may be registered with the slope of a straight line. The
/// value is unchanged, except that a NaN argument is returned itself.
fn make_result_depend_on_args(unit: &mut Unit, func: FuncId) {
    let params = unit.param_types(unit.functions[func].ty).to_vec();
    if calls::has_differentiation_calls(unit, func) {
        return;
    }
    let Some(mut body) = unit.functions[func].body.take() else {
        // Not an error: for analyses, the result of a declaration depends on its arguments.
        return;
    };
    let last = body.last(body.root());
    let returned = last.filter(|op| matches!(body.kind(*op), OpKind::Return));
    let own = returned.and_then(|op| body.operands(op).next());
    if let (Some(op), Some(own)) = (returned, own)
        && matches!(unit.types.get(body.ty(own)), Type::Float(_))
    {
        let ty = body.ty(own);
        let numbers = body.params().to_vec().into_iter().zip(params);
        let numbers: Vec<Value> = numbers
            .filter(|(_, of)| *of == ty)
            .map(|(p, _)| p)
            .collect();
        let mut build = Builder::new(unit, &mut body);
        build.set_insertion_before(op);
        let mut value = own;
        for number in numbers {
            let is_number = build.fcmp(FloatPredicate::Ord, number, number);
            value = build.select(is_number, value, number);
        }
        body.set_operands(op, &[value]);
    }
    unit.functions[func].body = Some(body);
}

/// Gives a bodiless function a body that calls an unknown function, for analyses to see an ordinary
/// function. The body is removed after all derivatives are emitted.
fn make_opaque(unit: &mut Unit, func: FuncId) -> Option<FuncId> {
    if unit.functions[func].body.is_some() {
        return None;
    }
    let (ty, name) = (unit.functions[func].ty, unit.functions[func].name.clone());
    if unit.types.is_variadic(ty) {
        return None;
    }
    let params = unit.param_types(ty).to_vec();
    let unknown = unit.declare(&format!("__gradus1_opaque_{name}"), ty, AttrSet::default());
    let mut body = Body::new(&params);
    let args = body.params().to_vec();
    let mut build = Builder::new(unit, &mut body);
    let call = build.call(unknown, &args);
    let result = build.body.results(call).first().copied();
    build.return_(result);
    unit.functions[func].body = Some(Box::new(body));
    Some(func)
}
