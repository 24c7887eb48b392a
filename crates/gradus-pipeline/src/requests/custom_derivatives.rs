//! Custom derivatives: a variant of a registered function is a small function that calls the registered
//! derivatives.
//!
//! A registered function takes the arguments of the primal, each pointer (in forward mode each float too)
//! followed by its shadow. The augmented primal returns the tape and the primal's result, each if existent.
//! The reverse function takes the result's cotangent and the tape after the arguments and returns the
//! adjoints of the floats. The forward-mode derivative returns the result and its tangent, or only the
//! tangent if the primal takes floats only. Any other form is refused.

use super::abi::leaves;
use super::calls::frame_memory;
use super::library_rules::LibraryRules;
use gradus_ad::{
    ArgActivity, Mode, ResultActivity, SignaturePart, SignatureParts, Tangents, Variant,
    begin_variant, call_variant, carries_float, end_variant,
};
use gradus_ir::{AttrValue, Builder, Code, Diagnostic, FuncId, OpKind, TypeId, Unit, Value};
use std::collections::HashMap;

/// A registered gradient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gradient {
    /// The augmented primal.
    pub augmented: FuncId,
    /// The reverse function.
    pub reverse: FuncId,
}

/// All registrations, by primal.
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomDerivatives {
    /// Gradients.
    pub gradients: HashMap<FuncId, Gradient>,
    /// Forward-mode derivatives.
    pub derivatives: HashMap<FuncId, FuncId>,
    /// Functions with a body for analyses only.
    pub opaque: Vec<FuncId>,
    /// Rules of library functions.
    pub library: LibraryRules,
}

/// A variant that calls registered functions: the function, and the required variants.
pub(crate) type CustomVariant = (FuncId, Vec<Variant>);

impl CustomDerivatives {
    /// Returns true if a function has a registration.
    pub(crate) fn has(&self, func: FuncId) -> bool {
        self.gradients.contains_key(&func)
            || self.derivatives.contains_key(&func)
            || self.opaque.contains(&func)
            || self.library.bodies.contains(&func)
    }
    /// Emits a variant of a registered function; `None` without a registration.
    ///
    /// # Errors
    /// A registered function that does not fit the request.
    pub(crate) fn make(
        &self,
        unit: &mut Unit,
        variant: &Variant,
    ) -> Option<Result<CustomVariant, Diagnostic>> {
        let gradient = self.gradients.get(&variant.func);
        let derivative = self.derivatives.get(&variant.func);
        let has_sets = variant.tangents == Tangents::Dependencies;
        let called = match (variant.mode, gradient, derivative) {
            (Mode::Forward, _, Some(_)) if has_sets => return Some(Err(no_sets(unit, variant))),
            (Mode::Forward, _, Some(derivative)) => *derivative,
            (Mode::Augmented, Some(gradient), _) => gradient.augmented,
            (Mode::Reverse, Some(gradient), _) => gradient.reverse,
            (Mode::Combined, Some(_), _) => return Some(Ok(emit_combined(unit, variant))),
            _ if self.opaque.contains(&variant.func) => {
                let message = "covers the other mode only, and the function is not defined here";
                return Some(Err(misfit(unit, variant, message)));
            }
            _ => return None,
        };
        let maker = CustomVariantEmitter { variant, called };
        Some(maker.make(unit).map(|func| (func, Vec::new())))
    }

    /// Removes the bodies for analyses.
    pub(crate) fn remove_opaque_bodies(&self, unit: &mut Unit) {
        for &func in self.opaque.iter().chain(&self.library.bodies) {
            unit.functions[func].body = None;
        }
    }
}

fn misfit(unit: &Unit, variant: &Variant, message: &str) -> Diagnostic {
    let function = &unit.functions[variant.func];
    let name = function.display_name();
    Diagnostic::error(Code::BadRequest, format!("the registered derivative of `{name}` {message}"))
        .in_function(name)
        .at(function.span.clone(), "registered for this function")
        .help("declare the derivative with each argument, and the shadow after each pointer; `gradus explain GRD0017` shows the forms")
}

/// Returns the error for dependency sets of a function with a registered tangent.
fn no_sets(unit: &Unit, variant: &Variant) -> Diagnostic {
    let function = &unit.functions[variant.func];
    let name = function.display_name();
    let message = format!("the dependencies of `{name}` are unknown: its derivative is registered");
    Diagnostic::error(Code::BadRequest, message)
        .in_function(name)
        .at(function.span.clone(), "has a registered derivative")
        .help("use dense Jacobians and Hessians for this program")
}

/// Emits a combined derivative: augmented primal, then reverse function.
fn emit_combined(unit: &mut Unit, variant: &Variant) -> CustomVariant {
    let split = |mode, primal_result| Variant {
        mode,
        primal_result,
        overwritten: vec![true; variant.args.len()],
        tape: Default::default(),
        versions: Default::default(),
        ..variant.clone()
    };
    let (forward, back) = (split(Mode::Augmented, true), split(Mode::Reverse, false));
    let signature = variant.signature(unit);
    let (mut body, mut parts) = begin_variant(&signature);
    for sweep in [&forward, &back] {
        call_variant(&mut Builder::new(unit, &mut body), sweep, &mut parts);
    }
    let func = end_variant(unit, variant, &signature, body, &parts);
    (func, vec![forward, back])
}

/// The emitter of a variant.
struct CustomVariantEmitter<'a> {
    variant: &'a Variant,
    called: FuncId,
}

impl CustomVariantEmitter<'_> {
    fn make(&self, unit: &mut Unit) -> Result<FuncId, Diagnostic> {
        let variant = self.variant;
        let bad = |unit: &Unit, message: &str| Err(misfit(unit, variant, message));
        if variant.width > 1 {
            return bad(unit, "supports one tangent or cotangent per call only");
        }
        if matches!(variant.result, ResultActivity::Dup | ResultActivity::Both) {
            return bad(unit, "has no shadow for the returned pointer");
        }
        if variant.args.contains(&ArgActivity::MaybeDup) {
            return bad(unit, "does not support a pointer with run-time activity");
        }
        let primal_ty = unit.functions[variant.func].ty;
        let params = unit.param_types(primal_ty).to_vec();
        let result = unit
            .result_type(primal_ty)
            .filter(|ty| !unit.types.is_void(*ty));
        let place = sret(unit, self.called);
        let taken = unit.param_types(unit.functions[self.called].ty).to_vec();
        let taken = taken[usize::from(place.is_some())..].to_vec();
        let plan = self.parameter_roles(unit, &params, result, &taken);
        let Some(plan) = plan else {
            return bad(unit, "has the wrong parameters");
        };
        let signature = variant.signature(unit);
        let (mut body, mut known) = begin_variant(&signature);
        if plan.iter().any(|key| matches!(key, SignaturePart::Shadow(i, _) if !known.contains_key(key) && unit.types.is_ptr(params[*i]))) {
            return bad(unit, "requires the shadow of a pointer that is inactive in this call");
        }
        let mut build = Builder::new(unit, &mut body);
        let mut args = Vec::new();
        for (key, ty) in plan.iter().zip(&taken) {
            args.push(match known.get(key) {
                Some(&value) => value,
                None => build.zero(*ty),
            });
        }
        let parts = call(&mut build, self.called, place, &args);
        let primal_args: Vec<Value> = (0..params.len())
            .map(|i| known[&SignaturePart::Primal(i)])
            .collect();
        if !self.assign_result_roles(&mut build, &params, result, parts, &primal_args, &mut known) {
            return bad(unit, "has the wrong result type");
        }
        Ok(end_variant(unit, variant, &signature, body, &known))
    }

    /// Returns the role of each parameter of the registered function.
    fn parameter_roles(
        &self,
        unit: &mut Unit,
        params: &[TypeId],
        result: Option<TypeId>,
        taken: &[TypeId],
    ) -> Option<Vec<SignaturePart>> {
        let variant = self.variant;
        let forward = variant.mode == Mode::Forward;
        let asked = |i: usize, _: &Unit| match variant.args[i] {
            ArgActivity::Const | ArgActivity::MaybeDup => false,
            ArgActivity::Dup | ArgActivity::DupNoNeed => true,
            ArgActivity::Active => forward,
        };
        let all = |i: usize, unit: &Unit| {
            unit.types.is_ptr(params[i]) || (forward && carries_float(unit, params[i]))
        };
        let ptr = unit.types.ptr();
        let cotangent = result.filter(|ty| carries_float(unit, *ty));
        let shadows: [&dyn Fn(usize, &Unit) -> bool; 2] = [&asked, &all];
        for shadowed in shadows {
            let mut keys = Vec::new();
            let mut types = Vec::new();
            for (i, &ty) in params.iter().enumerate() {
                keys.push(SignaturePart::Primal(i));
                types.push(ty);
                if shadowed(i, unit) {
                    keys.push(SignaturePart::Shadow(i, 0));
                    types.push(ty);
                }
            }
            if variant.mode == Mode::Reverse
                && let Some(ty) = cotangent
            {
                keys.push(SignaturePart::Cotangent(0));
                types.push(ty);
            }
            if types == taken {
                return Some(keys);
            }
            types.push(ptr);
            if variant.mode == Mode::Reverse && types == taken {
                keys.push(SignaturePart::Tape);
                return Some(keys);
            }
        }
        None
    }

    /// Assigns roles to the returned scalars. Returns false if their types differ from the expected types.
    fn assign_result_roles(
        &self,
        build: &mut Builder<'_>,
        params: &[TypeId],
        result: Option<TypeId>,
        parts: Vec<Value>,
        primal_args: &[Value],
        known: &mut SignatureParts,
    ) -> bool {
        let types: Vec<TypeId> = parts.iter().map(|v| build.body.ty(*v)).collect();
        let ptr = build.unit.types.ptr();
        let expected: Vec<Vec<(SignaturePart, TypeId)>> = match self.variant.mode {
            Mode::Augmented => {
                let own: Vec<_> = result
                    .map(|ty| (SignaturePart::Result, ty))
                    .into_iter()
                    .collect();
                let with_tape = [vec![(SignaturePart::Tape, ptr)], own.clone()].concat();
                let mut list = vec![with_tape, own];
                // A function of floats alone may run again for its own result.
                let numbers = params.iter().all(|ty| !build.unit.types.is_ptr(*ty));
                list.extend(numbers.then(Vec::new));
                list
            }
            Mode::Reverse | Mode::Combined => {
                let numbers = |i: &usize| carries_float(build.unit, params[*i]);
                let active = |i: &usize| self.variant.args[*i] == ArgActivity::Active;
                let list = |keep: &dyn Fn(&usize) -> bool| {
                    let kept = (0..params.len()).filter(keep);
                    kept.map(|i| (SignaturePart::Adjoint(i, 0), params[i]))
                        .collect()
                };
                vec![list(&active), list(&numbers)]
            }
            Mode::Forward => {
                let tangent = result.filter(|ty| carries_float(build.unit, *ty));
                let tangent = tangent.map(|ty| (SignaturePart::ResultShadow(0), ty));
                let own = result.map(|ty| (SignaturePart::Result, ty));
                let both = own.into_iter().chain(tangent).collect();
                let mut list = vec![both];
                let numbers = params.iter().all(|ty| !build.unit.types.is_ptr(*ty));
                list.extend(numbers.then(|| tangent.into_iter().collect()));
                list
            }
        };
        let fits = |list: &&Vec<(SignaturePart, TypeId)>| {
            list.iter().map(|(_, ty)| *ty).eq(types.iter().copied())
        };
        let Some(list) = expected.iter().find(fits) else {
            return false;
        };
        let keys: Vec<SignaturePart> = list.iter().map(|(key, _)| *key).collect();
        known.extend(keys.into_iter().zip(parts));
        let misses = self.variant.primal_result && result.is_some();
        let runs = matches!(self.variant.mode, Mode::Forward | Mode::Augmented);
        if misses && !known.contains_key(&SignaturePart::Result) && runs {
            let call = build.call(self.variant.func, primal_args);
            known.insert(SignaturePart::Result, build.body.result(call));
        }
        true
    }
}

/// Returns the structure type that a function returns through its first parameter.
fn sret(unit: &Unit, func: FuncId) -> Option<TypeId> {
    match unit.attrs(unit.functions[func].attrs).param(0, "sret") {
        Some(AttrValue::Type(ty)) => Some(*ty),
        _ => None,
    }
}

/// Calls a registered function and returns the scalars of its result.
fn call(
    build: &mut Builder<'_>,
    func: FuncId,
    place: Option<TypeId>,
    args: &[Value],
) -> Vec<Value> {
    if let Some(structure) = place {
        let memory = frame_memory(build, &[structure]);
        let args = [&[memory], args].concat();
        let call = build.call(func, &args);
        mark_sret(build, call, structure);
        return scalars(build, memory, structure);
    }
    let call = build.call(func, args);
    let Some(&result) = build.body.results(call).first() else {
        return Vec::new();
    };
    let ty = build.body.ty(result);
    if leaves(build.unit, ty) == [(0, ty)] {
        return vec![result];
    }
    let memory = frame_memory(build, &[ty]);
    build.store(result, memory);
    scalars(build, memory, ty)
}

/// Marks the first argument of a call as `sret`, as on the callee.
fn mark_sret(build: &mut Builder<'_>, call: gradus_ir::Op, structure: TypeId) {
    let mut set = gradus_ir::AttrSet::default();
    set.params.push(vec![gradus_ir::Attr {
        name: "sret".to_string(),
        value: AttrValue::Type(structure),
    }]);
    let attrs = build.unit.intern_attrs(set);
    if let OpKind::Call(info) = &mut build.body.ops[call].kind {
        info.attrs = Some(attrs);
    }
}

fn scalars(build: &mut Builder<'_>, memory: Value, structure: TypeId) -> Vec<Value> {
    let mut values = Vec::new();
    for (offset, ty) in leaves(build.unit, structure) {
        let offset = build.i64(offset as i64);
        let at = build.byte_addr(memory, offset);
        values.push(build.load(ty, at));
    }
    values
}
