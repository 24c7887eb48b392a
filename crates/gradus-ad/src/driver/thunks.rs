//! Thunks between a requested derivative and a more general derivative: named parts of a signature, calls,
//! returns.
//!
//! Variants of a function are capped. Variants beyond the cap use the *general* variant: every pointer may
//! be inactive at run time (shadow equal to primal), every float is active. A thunk calls the general
//! variant in place of the requested variant. The shadow of an inactive pointer is the pointer, the tangent
//! of an inactive float is zero, and unrequested adjoints are dropped.
//!
//! Place in the flow: the worklist of gradus-pipeline asks [`VariantCaps`] before each variant. Derivatives that the
//! program registers are built from the same parts.

use crate::variant::{
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

/// A part of a derivative's parameters or results. The last field of a part with lanes is the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignaturePart {
    /// The primal argument.
    Primal(usize),
    /// The shadow of an argument.
    Shadow(usize, u32),
    /// The cotangent of the result.
    Cotangent(u32),
    /// The tape.
    Tape,
    /// The primal result.
    Result,
    /// The shadow or tangent of the result.
    ResultShadow(u32),
    /// The adjoint of an argument.
    Adjoint(usize, u32),
}

impl SignaturePart {
    /// Returns the part of a parameter.
    pub fn of(role: ParamRole) -> SignaturePart {
        match role {
            ParamRole::Primal(i) => SignaturePart::Primal(i),
            ParamRole::Shadow(i, lane) => SignaturePart::Shadow(i, lane),
            ParamRole::Cotangent(lane) => SignaturePart::Cotangent(lane),
            ParamRole::Tape => SignaturePart::Tape,
        }
    }
    /// Returns the part of a result.
    pub fn of_result(role: ResultRole) -> SignaturePart {
        match role {
            ResultRole::Tape => SignaturePart::Tape,
            ResultRole::Primal => SignaturePart::Result,
            ResultRole::Shadow(lane) => SignaturePart::ResultShadow(lane),
            ResultRole::Adjoint(i, lane) => SignaturePart::Adjoint(i, lane),
        }
    }
}

/// The values of a function under construction, by role.
pub type SignatureParts = HashMap<SignaturePart, Value>;

/// Returns an empty body for a variant, and the body's parameters by role.
pub fn begin_variant(signature: &Signature) -> (Body, SignatureParts) {
    let types: Vec<TypeId> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let body = Body::new(&types);
    let roles = signature
        .params
        .iter()
        .map(|(role, _)| SignaturePart::of(*role));
    let parts = roles.zip(body.params().iter().copied()).collect();
    (body, parts)
}

/// Calls a variant on the known parts and adds the results to `parts`. An unknown pointer shadow is the
/// pointer itself; any other unknown part is zero.
pub fn call_variant(build: &mut Builder<'_>, variant: &Variant, parts: &mut SignatureParts) {
    let callee = variant.declare(build.unit);
    let signature = variant.signature(build.unit);
    let mut args = Vec::new();
    for (role, ty) in &signature.params {
        let key = SignaturePart::of(*role);
        let own = match key {
            SignaturePart::Shadow(i, _) if build.unit.types.is_ptr(*ty) => {
                parts.get(&SignaturePart::Primal(i))
            }
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
        parts.insert(SignaturePart::of_result(*role), value);
    }
}

/// Ends a variant's function: returns the parts of the signature's results. A missing part is zero.
pub fn end_variant(
    unit: &mut Unit,
    variant: &Variant,
    signature: &Signature,
    mut body: Body,
    parts: &SignatureParts,
) -> FuncId {
    let mut build = Builder::new(unit, &mut body);
    let mut values = Vec::new();
    for (role, ty) in &signature.results {
        values.push(match parts.get(&SignaturePart::of_result(*role)) {
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

/// The caps on variants per function: decides which variants get a derivative of their own.
#[derive(Debug, Default)]
pub struct VariantCaps {
    /// Overwritten-after combinations of the arguments, by activities.
    overwritten_by_activities: HashMap<FuncId, BTreeMap<Variant, BTreeSet<Vec<bool>>>>,
}

impl VariantCaps {
    /// Returns the variant to use in place of `variant`, or `None` if `variant` gets a derivative of its
    /// own. Beyond the cap of activities the general variant is used, beyond the cap of overwritten-after
    /// combinations the variant with everything overwritten. Both halves of a split derivative get an equal
    /// answer, since the halves share a tape.
    pub fn replacement_for(&mut self, unit: &Unit, variant: &Variant) -> Option<Variant> {
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
pub fn emit_thunk(unit: &mut Unit, variant: &Variant, general: &Variant) -> FuncId {
    let signature = variant.signature(unit);
    let (mut body, mut parts) = begin_variant(&signature);
    call_variant(&mut Builder::new(unit, &mut body), general, &mut parts);
    end_variant(unit, variant, &signature, body, &parts)
}
