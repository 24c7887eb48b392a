//! Indirect calls: a dispatch function that calls the derivative of the actual callee.
//!
//! Points-to analysis yields the possible callees of an address. Each indirect call has a dispatch function,
//! which takes the address next to the call's arguments. The dispatch function compares the address with each
//! possible callee and calls the matching derivative. One generic variant per callee serves all indirect
//! calls: pointers with or without shadows, active floats. An inactive callee is called as it is. An unknown
//! address ends the program with a message, because a zero derivative would be a guess.

use crate::analysis::body_facts::BodyFacts;
use crate::emit::builder::DerivativeBuilder;
use crate::emit::libc;
use crate::emit::stop_message::stop_message;
use crate::variant::indirect_calls::indirect_variant;
use crate::variant::{
    ArgActivity, Mode, ParamRole, ResultActivity, ResultRole, Signature, Variant,
};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    Body, Builder, Code, FuncId, IntPredicate, Linkage, Op, Region, TypeId, Unit, Value,
};

/// Symbol prefix of the dispatch functions while the derivatives of one root are built.
pub const CALL_PREFIX: &str = "__gradus1_call_";

/// Replacement of an indirect call.
pub(crate) struct Dispatch {
    /// The dispatch function. Parameters: the address, then the parameters of `signature`.
    pub func: FuncId,
    /// Signature of the derivatives.
    pub signature: Signature,
    /// Derivatives that the dispatch function calls.
    pub needs: Vec<Variant>,
}

/// Returns the dispatch function of an indirect call; `None` if no possible callee is known.
pub(crate) fn dispatch_function(
    unit: &mut Unit,
    facts: &BodyFacts<'_>,
    op: Op,
    mode: Mode,
    caller: &Variant,
) -> Option<Dispatch> {
    let targets = facts.pointer_targets(op)?.to_vec();
    let &(first, _) = targets.first()?;
    let signature = variant_at_call(unit, facts, op, first, (mode, caller)).signature(unit);
    let mut needs = Vec::new();
    for &(func, active) in &targets {
        if active {
            needs.push(variant_at_call(unit, facts, op, func, (mode, caller)));
        }
    }
    let name = format!(
        "{CALL_PREFIX}{}_{}",
        gradus_ir::Entity::index(op),
        indirect_variant(unit, caller.func, mode, caller).symbol(unit)
    );
    if let Some(func) = unit.function(&name) {
        return Some(Dispatch {
            func,
            signature,
            needs,
        });
    }
    let ptr = unit.types.ptr();
    let mut params = vec![ptr];
    params.extend(signature.params.iter().map(|(_, ty)| *ty));
    let given = unit.result_type(signature.ty);
    let given = given.filter(|ty| !unit.types.is_void(*ty));
    let result_ty = given.unwrap_or_else(|| unit.types.void());
    let ty = unit.types.func(result_ty, params.clone());
    let mut body = Body::new(&params);
    let mut maker = DispatchBuilder {
        signature: &signature,
        result_ty: given,
        message: message(unit, facts, op),
        b: Builder::new(unit, &mut body),
    };
    maker.emit_comparisons(&targets, &needs);
    let func = unit.define(name, ty, Linkage::Internal, body);
    Some(Dispatch {
        func,
        signature,
        needs,
    })
}

/// Returns the variant of a function that serves an indirect call: integers that carry active floats at the call are
/// active.
fn variant_at_call(
    unit: &Unit,
    facts: &BodyFacts<'_>,
    op: Op,
    func: FuncId,
    (mode, caller): (Mode, &Variant),
) -> Variant {
    let mut variant = indirect_variant(unit, func, mode, caller);
    let carries = |value: Value| facts.is_active(value) && facts.holds_float(unit, value);
    let args = unit.call_args(facts.body, op);
    for (activity, arg) in variant.args.iter_mut().zip(args) {
        if *activity == ArgActivity::Const && carries(arg) {
            *activity = ArgActivity::Active;
        }
    }
    if variant.result == ResultActivity::Const && facts.call_result(op).is_some_and(carries) {
        variant.result = ResultActivity::Active;
    }
    variant
}

/// Returns the function that ends the program at a call that cannot be dispatched.
pub(crate) fn unknown_callee_stop(unit: &mut Unit, facts: &BodyFacts<'_>, op: Op) -> FuncId {
    let text = message(unit, facts, op);
    stop_with_message(unit, &text)
}

/// Returns a function that prints `text` and ends the program.
pub(crate) fn stop_with_message(unit: &mut Unit, text: &str) -> FuncId {
    let void = unit.types.void();
    let ty = unit.types.func(void, vec![]);
    let mut body = Body::new(&[]);
    emit_stop(&mut Builder::new(unit, &mut body), text);
    let name = unit.fresh_name(&format!("{CALL_PREFIX}none"));
    unit.define(name, ty, Linkage::Internal, body)
}

/// Emits a test that prints `text` and ends the program unless `fine` is true.
pub(crate) fn stop_unless(out: &mut DerivativeBuilder<'_>, fine: Value, text: &str) {
    let stop = stop_with_message(out.unit, text);
    let mut b = out.build();
    let (_, yes, no) = b.if_(fine, &[]);
    let back = b.set_insertion_end(yes);
    b.yield_(&[]);
    b.set_insertion_end(no);
    b.call(stop, &[]);
    b.yield_(&[]);
    b.restore_insertion_point(back);
}

/// Returns the message for an unknown callee address.
fn message(unit: &Unit, facts: &BodyFacts<'_>, op: Op) -> String {
    let place = match unit.span(facts.body.ops[op].loc) {
        Some(span) => format!("{}:{}: ", span.file, span.line),
        None => String::new(),
    };
    let text = format!("{place}the target of an indirect call has no known derivative");
    stop_message(Code::UnknownIndirectTarget, &text)
}

struct DispatchBuilder<'a> {
    signature: &'a Signature,
    result_ty: Option<TypeId>,
    message: String,
    b: Builder<'a>,
}

impl DispatchBuilder<'_> {
    /// Emits one comparison per target, each within the `else` arm of the comparison before.
    fn emit_comparisons(&mut self, targets: &[(FuncId, bool)], needs: &[Variant]) {
        let address = self.b.body.params()[0];
        let mut variants = needs.iter();
        let mut open: Vec<(Op, (Region, Option<Op>))> = Vec::new();
        for &(func, active) in targets {
            // Library functions with a rule of their own: `calculus::compare_with_library` compares the address with
            // them beforehand.
            if (self.b.unit.known(func)).is_some_and(ExternalFn::needs_direct_call) {
                continue;
            }
            let other = self.b.func(func);
            let same = self.b.icmp(IntPredicate::Eq, address, other);
            let results: Vec<TypeId> = self.result_ty.into_iter().collect();
            let (op, yes, no) = self.b.if_(same, &results);
            let outside = self.b.set_insertion_end(yes);
            let value = match (active, variants.as_slice().first()) {
                (true, Some(variant)) => {
                    variants.next();
                    self.derivative(variant)
                }
                _ => self.call_inactive(func),
            };
            self.b.yield_(value.as_slice());
            self.b.set_insertion_end(no);
            open.push((op, outside));
        }
        emit_stop(&mut self.b, &self.message);
        while let Some((op, outside)) = open.pop() {
            self.b.restore_insertion_point(outside);
            let value = self.b.body.results(op).first().copied();
            match open.is_empty() {
                true => self.b.return_(value),
                false => self.b.yield_(value.as_slice()),
            };
        }
    }

    fn derivative(&mut self, variant: &Variant) -> Option<Value> {
        let func = variant.declare(self.b.unit);
        let args = self.b.body.params()[1..].to_vec();
        let call = self.b.call(func, &args);
        self.b.body.results(call).first().copied()
    }

    /// Calls an inactive function directly. The shadow of each pointer result is the pointer itself.
    fn call_inactive(&mut self, func: FuncId) -> Option<Value> {
        let is_return = self
            .signature
            .params
            .iter()
            .any(|(r, _)| *r == ParamRole::Tape);
        let mut result = None;
        if !is_return {
            let params = self.b.body.params()[1..].to_vec();
            let args: Vec<Value> = (self.signature.params.iter().zip(params))
                .filter(|((role, _), _)| matches!(role, ParamRole::Primal(_)))
                .map(|(_, value)| value)
                .collect();
            let call = self.b.call(func, &args);
            result = self.b.body.results(call).first().copied();
        }
        let mut values = Vec::new();
        for (role, ty) in &self.signature.results {
            values.push(match (role, result) {
                (ResultRole::Primal, Some(result)) => result,
                (ResultRole::Shadow(_), Some(result)) if self.b.unit.types.is_ptr(*ty) => result,
                _ => self.b.zero(*ty),
            });
        }
        match values.as_slice() {
            [] => None,
            [one] => Some(*one),
            several => {
                let ty = self.result_ty?;
                let mut whole = self.b.poison(ty);
                for (number, &value) in several.iter().enumerate() {
                    whole = self.b.insert(whole, value, &[number as u32]);
                }
                Some(whole)
            }
        }
    }
}

/// Prints a message and ends the program.
pub(super) fn emit_stop(b: &mut Builder<'_>, message: &str) {
    let text = text(b, message);
    libc::emit_message(b, text, message.len());
    libc::emit_abort(b);
}

/// Adds a message as a constant of the module.
fn text(b: &mut Builder<'_>, message: &str) -> Value {
    let unit = &mut *b.unit;
    let name = unit.fresh_name("__gradus1_message");
    let global = unit.add_string(name, message);
    let ptr = unit.types.ptr();
    let id = (unit.consts).intern(ptr, gradus_ir::ConstKind::Global { global, offset: 0 });
    b.constant(id)
}
