//! Reference semantics in binary64 for the tests of this folder: math functions, formulas and emitted code.
//!
//! Values of operations and math functions come from the interpreter, which shares nothing with the formulas.
//! Emitted code is evaluated op by op.

use crate::calculus::expr::{Formula, Node};
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{BinaryOp, Body, CastOp, ConstKind, FloatPredicate, OpKind, Unit, Value};
use std::collections::HashMap;

/// Evaluates `f(args)`: by the interpreter, but for functions that yield integers or have no library function.
pub(super) fn math(f: MathFn, x: &[f64]) -> f64 {
    use MathFn::*;
    let a = x[0];
    match f {
        Tanpi if a.fract().abs() == 0.5 => f64::INFINITY,
        Lrint | Llrint => a.round_ties_even(),
        Lround | Llround => a.round(),
        Erfinv if a.abs() == 1.0 => a * f64::INFINITY,
        Erfinv => erfinv(a),
        Ilogb => f64::from(libm::ilogb(a)),
        FptosiSat => (a as i64) as f64,
        FptouiSat => (a as u64) as f64,
        IsClass | Classify => f64::from(u8::from(a.is_nan())),
        Nan => f64::NAN,
        _ => {
            let arg = |i: usize| x.get(i).copied().unwrap_or(0.0);
            let args = [arg(0), arg(1), arg(2)];
            gradus_interp::math_value(f, args, args.map(|x| x as i64))
                .unwrap_or_else(|| panic!("the interpreter does not define {f:?}"))
        }
    }
}

/// Evaluates a floating-point operation.
pub(super) fn binary(op: BinaryOp, x: &[f64]) -> f64 {
    gradus_interp::float_value(op, x[0], x[1])
        .unwrap_or_else(|| panic!("{op:?} is no floating-point operation"))
}

/// Computes the inverse of erf by bisection.
fn erfinv(a: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        match libm::erf(middle) < a {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// Computes ψ by its recurrence up to 3000 and two series terms: slow, and independent of the emitted
/// function.
pub(super) fn digamma(a: f64) -> f64 {
    let pi = std::f64::consts::PI;
    if a <= 0.0 {
        return digamma(1.0 - a) - pi / (pi * (a - a.round())).tan();
    }
    let (mut z, mut sum) = (a, 0.0);
    while z < 3000.0 {
        sum -= 1.0 / z;
        z += 1.0;
    }
    sum + z.ln() - 0.5 / z - 1.0 / (12.0 * z * z)
}

/// Evaluates a float comparison.
#[allow(
    clippy::double_comparisons,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool
)]
pub(super) fn holds(p: FloatPredicate, l: f64, r: f64) -> bool {
    use FloatPredicate::*;
    match p {
        False => false,
        True => true,
        Oeq => l == r,
        Ogt => l > r,
        Oge => l >= r,
        Olt => l < r,
        Ole => l <= r,
        One => l < r || l > r,
        Ord => !l.is_nan() && !r.is_nan(),
        Uno => l.is_nan() || r.is_nan(),
        Ueq => !(l < r || l > r),
        Ugt => !(l <= r),
        Uge => !(l < r),
        Ult => !(l >= r),
        Ule => !(l > r),
        Une => l != r,
    }
}

/// Evaluates a formula.
pub(super) fn formula(f: &Formula, args: &[f64], results: &[f64], seed: f64) -> f64 {
    let mut v = vec![0.0; f.nodes.len()];
    for (id, node) in f.live_nodes() {
        v[id] = match node {
            Node::Num(x) => *x,
            Node::Arg(k) | Node::FloatOf(k) => args[*k],
            Node::Result(j) => results[*j],
            Node::Seed => seed,
            Node::Add(a, b) => v[*a] + v[*b],
            Node::Sub(a, b) => v[*a] - v[*b],
            Node::Mul(a, b) => v[*a] * v[*b],
            Node::Div(a, b) => v[*a] / v[*b],
            Node::Neg(a) => -v[*a],
            Node::Call(f, list) => {
                let list: Vec<f64> = list.iter().map(|i| v[*i]).collect();
                math(*f, &list)
            }
            Node::CallInt(f, a, k, plus) => math(*f, &[v[*a], args[*k] + f64::from(*plus)]),
            Node::IntCall(f, k, plus, a) => math(*f, &[args[*k] + f64::from(*plus), v[*a]]),
            Node::Digamma(a) => digamma(v[*a]),
            Node::Select(p, [l, r, t, e]) => match holds(*p, v[*l], v[*r]) {
                true => v[*t],
                false => v[*e],
            },
        };
    }
    v[f.root]
}

/// Interprets a body with parameters `params` and returns the value of `wanted`. The root region may contain
/// `if` and `for`. Vectors are evaluated in their first lane.
pub(super) fn run(unit: &Unit, body: &Body, params: &[f64], wanted: Value) -> f64 {
    let mut machine = Machine {
        unit,
        body,
        values: HashMap::new(),
    };
    for (param, x) in body.params().iter().zip(params) {
        machine.values.insert(*param, *x);
    }
    machine.region(body.root());
    machine.get(wanted)
}

struct Machine<'a> {
    unit: &'a Unit,
    body: &'a Body,
    values: HashMap<Value, f64>,
}

impl Machine<'_> {
    fn get(&self, value: Value) -> f64 {
        let Some(id) = self.body.as_const(value) else {
            return self.values[&value];
        };
        self.constant(id)
    }
    fn constant(&self, id: gradus_ir::ConstId) -> f64 {
        let constant = self.unit.constant(id);
        match &constant.kind {
            ConstKind::Float(bits)
                if self
                    .unit
                    .types
                    .float_kind(constant.ty)
                    .is_some_and(|k| k.bits() == 32) =>
            {
                f64::from(f32::from_bits(*bits as u32))
            }
            ConstKind::Float(bits) => f64::from_bits(*bits as u64),
            ConstKind::Int(bits) => f64::from(*bits as u32 as i32),
            ConstKind::Aggregate(lanes) => self.constant(lanes[0]),
            _ => 0.0,
        }
    }
    /// Interprets a region and returns the operands of the terminator.
    fn region(&mut self, region: gradus_ir::Region) -> Vec<f64> {
        for op in self.body.ops_in(region) {
            let x: Vec<f64> = match self.body.kind(op) {
                OpKind::Call(_) => self.unit.call_args(self.body, op),
                _ => self.body.operands(op).collect(),
            }
            .into_iter()
            .map(|v| self.get(v))
            .collect();
            if self.body.kind(op).is_terminator() {
                return x;
            }
            let results = self.op(op, &x);
            for (value, x) in self.body.results(op).iter().zip(results) {
                self.values.insert(*value, x);
            }
        }
        Vec::new()
    }
    fn op(&mut self, op: gradus_ir::Op, x: &[f64]) -> Vec<f64> {
        let regions = self.body.op_regions(op).to_vec();
        vec![match self.body.kind(op) {
            OpKind::Binary(BinaryOp::Add) => x[0] + x[1],
            OpKind::Binary(op) => binary(*op, x),
            OpKind::FNeg => -x[0],
            OpKind::Cast(CastOp::FPTrunc) => f64::from(x[0] as f32),
            OpKind::Cast(_) | OpKind::Shuffle(_) => x[0],
            OpKind::InsertElement => x[1],
            OpKind::FCmp(p) => f64::from(u8::from(holds(*p, x[0], x[1]))),
            OpKind::Select => {
                if x[0] == 1.0 {
                    x[1]
                } else {
                    x[2]
                }
            }
            OpKind::If => return self.region(regions[usize::from(x[0] == 0.0)]),
            OpKind::For { .. } => {
                let mut carried = x[1..].to_vec();
                for i in 0..x[0] as u64 {
                    let params = self.body.region_params(regions[0]);
                    let values = std::iter::once(i as f64).chain(carried);
                    self.values.extend(params.iter().copied().zip(values));
                    carried = self.region(regions[0]);
                }
                return carried;
            }
            OpKind::Call(_) => {
                let func = self.unit.callee(self.body, op).expect("a direct call");
                match self.unit.known(func) {
                    Some(ExternalFn::Math(f)) => math(f, x),
                    _ => {
                        let body = self.unit.functions[func].body.as_ref().expect("a body");
                        let last = body.last(body.root()).expect("a return");
                        run(self.unit, body, x, body.operand(last, 0))
                    }
                }
            }
            other => panic!("the f64 reference does not support {other:?}"),
        }]
    }
}
