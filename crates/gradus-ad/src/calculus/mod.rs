//! Derivatives of single ops: each formula is written once.
//!
//! [`rule`] returns the [`Rule`] of an op. Forward mode takes the tangent from the rule, reverse mode the
//! adjoint contributions, the tape plan the required values, and the manual the text. All four readings
//! evaluate one page, `formulas`. Formulas apply element-wise to vectors, in the op's float format.
//!
//! Ops that only move values (select, shuffles, insert and extract, bitcasts, loads and stores, reductions)
//! have no formula.

mod build;
mod complex;
mod digamma;
mod expr;
#[cfg(test)]
mod f64_reference;
mod formulas;
pub(crate) mod legalize;
mod manual;
#[cfg(test)]
mod tests;

pub use crate::calculus::legalize::cas_loops::recognize_atomic_add;
pub use crate::calculus::legalize::devirtualize::{address_taken_rules, compare_with_library};
pub use crate::calculus::legalize::libm::legalize_calls;
pub use crate::calculus::manual::manual;
pub use build::{math_call, math_call_with_result};
pub use formulas::MISSING_DERIVATIVES;

use crate::calculus::expr::{Formula, FormulaBuilder, Node};
use formulas::{Function, RuleInputs, always_finite};
use gradus_ir::externals::{ComplexFn, ExternalFn, MathFn, MultiResultMathFn};
use gradus_ir::{
    Body, CastOp, ConstId, ConstKind, FloatKind, Op, OpKind, Type, TypeId, Unit, Value,
};

/// Primal values that a partial derivative of an op reads. Constant arguments do not count, because they are
/// available everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Bit `i`: argument `i`.
    pub args: u32,
    /// The op's result.
    pub result: bool,
}

impl Uses {
    /// Returns the union of both uses.
    #[must_use]
    pub fn or(self, other: Uses) -> Uses {
        Uses {
            args: self.args | other.args,
            result: self.result || other.result,
        }
    }
    /// Returns true if argument `i` is read.
    pub fn arg(self, i: usize) -> bool {
        self.args >> i & 1 == 1
    }
    /// Returns true if nothing is read: the op is linear in the argument, or independent of the argument.
    pub fn is_none(self) -> bool {
        self == Uses::default()
    }
}

/// An argument of a rule.
#[derive(Clone, Debug)]
struct Argument {
    ty: TypeId,
    constant: Option<ConstId>,
    /// The number that a constant holds in all its lanes.
    number: Option<f64>,
    float: bool,
}

/// The derivative of one op.
#[derive(Clone, Debug)]
pub struct Rule {
    function: Function,
    first_operand: usize,
    args: Vec<Argument>,
    result_ty: TypeId,
    /// Formulas by argument and member of the result; empty for non-float arguments.
    formulas: Vec<Vec<Formula>>,
}

impl Rule {
    /// Returns the number of arguments, including non-float arguments.
    pub fn arg_count(&self) -> usize {
        self.args.len()
    }
    /// Returns the operand index of argument `i`.
    pub fn operand(&self, i: usize) -> usize {
        self.first_operand + i
    }
    /// Returns the float arguments.
    pub fn float_args(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.args.len()).filter(|&i| self.args[i].float)
    }
    /// Returns the values that the partial by argument `i` reads.
    pub fn uses(&self, i: usize) -> Uses {
        let mut uses = Uses::default();
        for formula in &self.formulas[i] {
            for (_, node) in formula.live_nodes() {
                match *node {
                    Node::Result(_) => uses.result = true,
                    Node::Arg(k) => uses.args |= 1 << k,
                    _ => {}
                }
                if let Some(k) = node.int_arg().filter(|&k| self.args[k].constant.is_none()) {
                    uses.args |= 1 << k;
                }
            }
        }
        uses
    }
    /// Returns true if the partial by argument `i` is zero everywhere.
    pub fn zero(&self, i: usize) -> bool {
        self.formulas[i].iter().all(Formula::is_zero)
    }
    /// Returns true if the partial by argument `i` may be infinite or NaN although all arguments are finite,
    /// apart from overflow of products. A zero seed then does not yield zero, and an adjoint that comes
    /// through a select must include the condition. A partial that reads an infinite value is infinite too:
    /// callers must also check the ops that define the values in [`Rule::uses`].
    pub fn maybe_infinite(&self, i: usize) -> bool {
        let nonzero = |k: usize| self.args[k].number.is_some_and(|n| n != 0.0);
        let formulas = &self.formulas[i];
        !formulas.iter().all(Formula::is_polynomial) && !always_finite(self.function, i, &nonzero)
    }
    /// Returns true if the result may be infinite or NaN although all arguments are finite, apart from
    /// overflow of sums and products.
    pub fn result_maybe_infinite(&self) -> bool {
        let nonzero = |k: usize| self.args[k].number.is_some_and(|n| n != 0.0);
        formulas::result_may_be_infinite(self.function, &nonzero)
    }
}

/// Returns the rule of a float op; `None` if the op is outside of the calculus or has no derivative.
pub fn rule(unit: &Unit, body: &Body, op: Op) -> Option<Rule> {
    let function = function(unit, body, op)?;
    let first_operand = usize::from(matches!(body.kind(op), OpKind::Call(_)));
    let values: Vec<Value> = match body.kind(op) {
        OpKind::Call(_) => unit.call_args(body, op),
        _ => body.operands(op).collect(),
    };
    let args: Vec<Argument> = values.iter().map(|v| argument(unit, body, *v)).collect();
    let result_ty = body.ty(*body.results(op).first()?);
    if function.results() == 2 && !is_pair(unit, result_ty) {
        return None;
    }
    let formulas = (0..args.len())
        .map(|i| write(function, i, &args))
        .collect::<Option<Vec<_>>>()?;
    let rule = Rule {
        function,
        first_operand,
        args,
        result_ty,
        formulas,
    };
    rule.all_functions_exist(unit).then_some(rule)
}

fn is_pair(unit: &Unit, ty: TypeId) -> bool {
    matches!(unit.types.get(ty), Type::Struct { fields, .. } if fields.len() == 2)
}

/// Returns the formulas of argument `i`, one per member of the result.
fn write(function: Function, i: usize, args: &[Argument]) -> Option<Vec<Formula>> {
    if !args[i].float {
        return Some(Vec::new());
    }
    (0..function.results())
        .map(|j| {
            let page = FormulaBuilder::default();
            let given = RuleInputs {
                args: (args.iter().enumerate())
                    .map(|(k, arg)| match arg.number {
                        Some(n) => page.num(n),
                        None => page.put(Node::Arg(k)),
                    })
                    .collect(),
                results: (0..function.results())
                    .map(|k| page.put(Node::Result(k)))
                    .collect(),
                seed: page.put(Node::Seed),
            };
            let root = function.times_partial(i, j, &given)?;
            Some(page.finish(root))
        })
        .collect()
}

fn function(unit: &Unit, body: &Body, op: Op) -> Option<Function> {
    Some(match body.kind(op) {
        OpKind::Binary(op) if op.is_float() => Function::Binary(*op),
        OpKind::FNeg => Function::Neg,
        OpKind::Cast(CastOp::FPExt | CastOp::FPTrunc) => Function::Convert,
        OpKind::Cast(CastOp::FPToUI | CastOp::FPToSI | CastOp::UIToFP | CastOp::SIToFP) => {
            Function::LocallyConstant
        }
        OpKind::Call(_) => match unit.known_callee(body, op)? {
            ExternalFn::Math(f) => Function::Math(f),
            ExternalFn::MathOut(MultiResultMathFn::SincosPair) => Function::Sincos,
            ExternalFn::MathOut(MultiResultMathFn::SincospiPair) => Function::Sincospi,
            ExternalFn::MathOut(MultiResultMathFn::ModfPair) => Function::Modf,
            ExternalFn::MathOut(MultiResultMathFn::FrexpPair) => Function::Frexp,
            ExternalFn::Complex(ComplexFn::Mul) => Function::ComplexMul,
            ExternalFn::Complex(ComplexFn::Div) => Function::ComplexDiv,
            ExternalFn::Complex(ComplexFn::Arg) => return None,
            ExternalFn::Complex(f) => Function::Complex(f),
            _ => return None,
        },
        _ => return None,
    })
}

fn argument(unit: &Unit, body: &Body, value: Value) -> Argument {
    let ty = body.ty(value);
    let constant = body.as_const(value);
    Argument {
        ty,
        constant,
        number: constant.and_then(|id| number(unit, id)),
        float: unit.types.float_kind(ty).is_some(),
    }
}

/// Returns the number that a constant holds in all lanes, if binary64 represents it exactly.
pub(crate) fn number(unit: &Unit, id: ConstId) -> Option<f64> {
    let constant = unit.constant(id);
    match &constant.kind {
        ConstKind::Float(bits) => match unit.types.float_kind(constant.ty)? {
            FloatKind::F64 => Some(f64::from_bits(*bits as u64)),
            FloatKind::F32 => Some(f64::from(f32::from_bits(*bits as u32))),
            _ => None,
        },
        ConstKind::Int(bits) => {
            let width = unit.types.int_bits(constant.ty)?.min(128);
            let shift = 128 - width;
            let signed = (*bits as i128) << shift >> shift;
            (signed.unsigned_abs() < 1 << 31).then_some(signed as f64)
        }
        ConstKind::Zero => Some(0.0),
        ConstKind::Aggregate(lanes) => {
            let first = *lanes.first()?;
            let same = lanes.iter().all(|lane| *lane == first);
            same.then(|| number(unit, first))?
        }
        _ => None,
    }
}

impl Rule {
    /// Returns true if all functions in the formulas exist in the op's float format.
    fn all_functions_exist(&self, unit: &Unit) -> bool {
        let Some(ty) = self.float_ty() else {
            return false;
        };
        self.formulas.iter().flatten().all(|formula| {
            formula.live_nodes().all(|(_, node)| match node {
                Node::Call(f, _) => build::exists(unit, *f, ty),
                Node::CallInt(f, _, k, _) | Node::IntCall(f, k, ..) => {
                    build::exists_with(unit, *f, ty, self.args[*k].ty)
                }
                Node::Digamma(_) => digamma::is_supported(unit, ty),
                _ => true,
            })
        })
    }
    /// Returns the type in which the formulas are computed.
    fn float_ty(&self) -> Option<TypeId> {
        self.args.iter().find(|a| a.float).map(|a| a.ty)
    }
    /// Returns the math function of the rule, if any.
    pub fn math(&self) -> Option<MathFn> {
        match self.function {
            Function::Math(f) => Some(f),
            _ => None,
        }
    }
}
