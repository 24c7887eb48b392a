//! Thunks between a requested derivative and a more general derivative: named parts of a signature, calls,
//! returns.
//!
//! Variants of a function are capped. Variants beyond the cap use the *general* variant: every pointer may
//! be inactive at run time (shadow equal to primal), every float is active. A thunk calls the general
//! variant in place of the requested variant. The shadow of an inactive pointer is the pointer, the tangent
//! of an inactive float is zero, and unrequested adjoints are dropped.

use gradus_ad::{
    ArgActivity, Mode, ParamRole, ResultActivity, ResultRole, Signature, TapeOwner, Variant,
    Versions, carries_float,
};
use gradus_ir::{Body, Builder, FuncId, Linkage, TypeId, Unit, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of activity combinations of a function, per root, with a derivative of their own.
const ACTIVITIES_MAX: usize = 32;
/// Maximum number of overwritten-after combinations per activity combination with a derivative of their
/// own.
const OVERWRITTEN_SETS_MAX: usize = 4;

/// A part of a derivative's parameters or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Primal(usize),
    Shadow(usize, u32),
    Cotangent(u32),
    Tape,
    Result,
    ResultShadow(u32),
    Adjoint(usize, u32),
}

impl Key {
    pub(crate) fn of(role: ParamRole) -> Key {
        match role {
            ParamRole::Primal(i) => Key::Primal(i),
            ParamRole::Shadow(i, lane) => Key::Shadow(i, lane),
            ParamRole::Cotangent(lane) => Key::Cotangent(lane),
            ParamRole::Tape => Key::Tape,
        }
    }
    pub(crate) fn of_result(role: ResultRole) -> Key {
        match role {
            ResultRole::Tape => Key::Tape,
            ResultRole::Primal => Key::Result,
            ResultRole::Shadow(lane) => Key::ResultShadow(lane),
            ResultRole::Adjoint(i, lane) => Key::Adjoint(i, lane),
        }
    }
}

/// The values of a function under construction, by role.
pub(crate) type Parts = HashMap<Key, Value>;

/// Returns an empty body for a variant, and the body's parameters by role.
pub(crate) fn begin_variant(signature: &Signature) -> (Body, Parts) {
    let types: Vec<TypeId> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let body = Body::new(&types);
    let roles = signature.params.iter().map(|(role, _)| Key::of(*role));
    let parts = roles.zip(body.params().iter().copied()).collect();
    (body, parts)
}

/// Calls a variant on the known parts and adds the results to `parts`. An unknown pointer shadow is the
/// pointer itself; any other unknown part is zero.
pub(crate) fn call_variant(build: &mut Builder<'_>, variant: &Variant, parts: &mut Parts) {
    let callee = variant.declare(build.unit);
    let signature = variant.signature(build.unit);
    let mut args = Vec::new();
    for (role, ty) in &signature.params {
        let key = Key::of(*role);
        let own = match key {
            Key::Shadow(i, _) if build.unit.types.is_ptr(*ty) => parts.get(&Key::Primal(i)),
            _ => None,
        };
        args.push(match parts.get(&key).or(own) {
            Some(&value) => value,
            None => build.zero(*ty),
        });
    }
    let call = build.call(callee, &args);
    for (number, (role, _)) in signature.results.iter().enumerate() {
        let whole = build.body.result(call);
        let value = match signature.results.len() {
            1 => whole,
            _ => build.extract(whole, &[number as u32]),
        };
        parts.insert(Key::of_result(*role), value);
    }
}

/// Ends a variant's function: returns the parts of the signature's results. A missing part is zero.
pub(crate) fn end_variant(
    unit: &mut Unit,
    variant: &Variant,
    signature: &Signature,
    mut body: Body,
    parts: &Parts,
) -> FuncId {
    let mut build = Builder::new(unit, &mut body);
    let mut values = Vec::new();
    for (role, ty) in &signature.results {
        values.push(match parts.get(&Key::of_result(*role)) {
            Some(&value) => value,
            None => build.zero(*ty),
        });
    }
    let result = match values[..] {
        [] => None,
        [one] => Some(one),
        _ => {
            let fields = signature.results.iter().map(|(_, ty)| *ty).collect();
            let ty = build.unit.types.tuple(fields);
            let mut whole = build.poison(ty);
            for (number, part) in values.into_iter().enumerate() {
                whole = build.insert(whole, part, &[number as u32]);
            }
            Some(whole)
        }
    };
    build.return_(result);
    let func = variant.declare(unit);
    let function = &mut unit.functions[func];
    function.body = Some(Box::new(body));
    function.linkage = Linkage::Internal;
    function.derived_from = Some(variant.func);
    func
}

/// Decides which variants of each function get a derivative of their own.
#[derive(Debug, Default)]
pub(crate) struct Census {
    /// Overwritten-after combinations of the arguments, by activities.
    overwritten_by_activities: HashMap<FuncId, BTreeMap<Variant, BTreeSet<Vec<bool>>>>,
}

impl Census {
    /// Returns the variant to use in place of `variant`, or `None` if `variant` gets a derivative of its
    /// own. Beyond the cap of activities the general variant is used, beyond the cap of overwritten-after
    /// combinations the variant with everything overwritten. Both halves of a split derivative get an equal
    /// answer, since the halves share a tape.
    pub(crate) fn replacement_for(&mut self, unit: &Unit, variant: &Variant) -> Option<Variant> {
        let general = general_variant(unit, variant);
        if general == *variant || variant.tape != TapeOwner::Derivative {
            return None;
        }
        let activity = Variant {
            mode: Mode::Combined,
            primal_result: false,
            overwritten: Vec::new(),
            versions: Versions::RuntimeCheck,
            concurrent: false,
            ..variant.clone()
        };
        let own = self
            .overwritten_by_activities
            .entry(variant.func)
            .or_default();
        if !own.contains_key(&activity) && own.len() >= ACTIVITIES_MAX {
            return Some(general);
        }
        let overwritten = own.entry(activity).or_default();
        if overwritten.contains(&variant.overwritten) || variant.overwritten.iter().all(|o| *o) {
            return None;
        }
        if overwritten.len() < OVERWRITTEN_SETS_MAX {
            overwritten.insert(variant.overwritten.clone());
            return None;
        }
        Some(Variant {
            overwritten: vec![true; variant.overwritten.len()],
            ..variant.clone()
        })
    }
}

/// Returns the variant for all activities of pointers and floats.
fn general_variant(unit: &Unit, variant: &Variant) -> Variant {
    let ty = unit.functions[variant.func].ty;
    let of_arg = |(ty, own): (&TypeId, &ArgActivity)| {
        if unit.types.is_ptr(*ty) {
            ArgActivity::MaybeDup
        } else if carries_float(unit, *ty) {
            ArgActivity::Active
        } else {
            *own
        }
    };
    let args = unit.param_types(ty).iter().zip(&variant.args).map(of_arg);
    let result = match unit.result_type(ty) {
        Some(ty) if unit.types.is_ptr(ty) => ResultActivity::Dup,
        Some(ty) if unit.types.float_kind(ty).is_some() => ResultActivity::Active,
        _ => variant.result,
    };
    Variant {
        args: args.collect(),
        result,
        overwritten: vec![true; variant.overwritten.len()],
        ..variant.clone()
    }
}

/// Emits a variant as a thunk around the general variant.
pub(crate) fn emit_thunk(unit: &mut Unit, variant: &Variant, general: &Variant) -> FuncId {
    let signature = variant.signature(unit);
    let (mut body, mut parts) = begin_variant(&signature);
    call_variant(&mut Builder::new(unit, &mut body), general, &mut parts);
    end_variant(unit, variant, &signature, body, &parts)
}
