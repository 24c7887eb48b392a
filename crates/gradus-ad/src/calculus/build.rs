//! Formulas as code: tangents, adjoint contributions, and calls of math functions.
//!
//! Math functions are emitted as LLVM intrinsics if possible, which keeps errno out of the derivative.
//! Otherwise the C library's function is called, with the attributes of a pure function.

use super::digamma;
use super::formulas::Function;
use super::{Argument, Rule};
use crate::calculus::expr::{Formula, Node};
use gradus_ir::externals::MathFn;
use gradus_ir::{AttrSet, Builder, CastOp, FloatKind, OpKind, Type, TypeId, Unit, Value};

/// Primal values that a formula is built from.
struct Primal<'a> {
    args: &'a [Option<Value>],
    result: Option<Value>,
}

impl Rule {
    /// Emits the contribution to the adjoint of argument `i`: the sum of `seed · ∂result/∂argument`, in the
    /// argument's type. Returns `None` if the contribution is zero everywhere. `args` and `result` are the
    /// primal's values, at least those in [`Rule::uses`]; `seed` is the adjoint of the result.
    pub fn build_adjoint(
        &self,
        b: &mut Builder<'_>,
        i: usize,
        args: &[Option<Value>],
        result: Option<Value>,
        seed: Value,
    ) -> Option<Value> {
        let primal = Primal { args, result };
        let mut sum: Option<Value> = None;
        for (j, formula) in self.formulas[i].iter().enumerate() {
            if formula.is_zero() {
                continue;
            }
            let seed = self.member(b, seed, j);
            let term = self.build(b, formula, &primal, seed);
            sum = Some(match sum {
                Some(sum) => b.fadd(sum, term),
                None => term,
            });
        }
        let sum = sum?;
        Some(self.convert_seed(b, sum, self.args[i].ty))
    }

    /// Emits the tangent of the result: the sum of `tangent · ∂result/∂argument` over all arguments. Returns
    /// `None` if the sum is zero, because no tangent is given or all partials are zero.
    pub fn build_tangent(
        &self,
        b: &mut Builder<'_>,
        args: &[Option<Value>],
        result: Option<Value>,
        tangents: &[Option<Value>],
    ) -> Option<Value> {
        let primal = Primal { args, result };
        let members: Vec<Option<Value>> = (0..self.function.results())
            .map(|j| self.member_tangent(b, j, &primal, tangents))
            .collect();
        if self.function.results() == 1 {
            let sum = members[0]?;
            return Some(self.convert_seed(b, sum, self.result_ty));
        }
        if members.iter().all(Option::is_none) {
            return None;
        }
        let mut pair = b.zero(self.result_ty);
        for (j, member) in members.into_iter().enumerate() {
            if let Some(member) = member {
                pair = b.insert(pair, member, &[j as u32]);
            }
        }
        Some(pair)
    }

    fn member_tangent(
        &self,
        b: &mut Builder<'_>,
        j: usize,
        primal: &Primal<'_>,
        tangents: &[Option<Value>],
    ) -> Option<Value> {
        let mut sum: Option<Value> = None;
        for i in self.float_args() {
            let Some(tangent) = tangents.get(i).copied().flatten() else {
                continue;
            };
            let formula = &self.formulas[i][j];
            if formula.is_zero() {
                continue;
            }
            sum = Some(match (sum, &formula.nodes[formula.root]) {
                (Some(sum), &Node::Neg(inner)) => {
                    let term = self.build_node(b, formula, inner, primal, tangent);
                    b.fsub(sum, term)
                }
                (Some(sum), _) => {
                    let term = self.build(b, formula, primal, tangent);
                    b.fadd(sum, term)
                }
                (None, _) => self.build(b, formula, primal, tangent),
            });
        }
        sum
    }

    fn member(&self, b: &mut Builder<'_>, value: Value, j: usize) -> Value {
        match self.function.results() {
            1 => value,
            _ => b.extract(value, &[j as u32]),
        }
    }

    /// Converts a seed from one float format to the other, for float conversions only.
    fn convert_seed(&self, b: &mut Builder<'_>, value: Value, ty: TypeId) -> Value {
        if self.function != Function::Convert {
            return value;
        }
        let bits = |b: &Builder<'_>, ty| b.unit.types.float_kind(ty).map_or(0, FloatKind::bits);
        let from = b.body.ty(value);
        let op = if bits(b, from) < bits(b, ty) {
            CastOp::FPExt
        } else {
            CastOp::FPTrunc
        };
        b.cast(op, value, ty)
    }

    fn build(
        &self,
        b: &mut Builder<'_>,
        formula: &Formula,
        primal: &Primal<'_>,
        seed: Value,
    ) -> Value {
        self.build_node(b, formula, formula.root, primal, seed)
    }

    /// Emits the nodes on which node `root` of a formula depends, in order.
    fn build_node(
        &self,
        b: &mut Builder<'_>,
        formula: &Formula,
        root: usize,
        primal: &Primal<'_>,
        seed: Value,
    ) -> Value {
        let one = |b: &mut Builder<'_>, id: usize| {
            let ty = self.float_ty().unwrap_or_else(|| b.body.ty(seed));
            match formula.nodes[id] {
                Node::Num(x) => Some(b.float(ty, x)),
                Node::Seed => Some(seed),
                _ => None,
            }
        };
        let mut values: Vec<Option<Value>> = vec![None; root + 1];
        for id in dependencies(formula, root) {
            let value = match one(b, id) {
                Some(value) => value,
                None => self.build_step(b, &formula.nodes[id], &values, primal),
            };
            values[id] = Some(value);
        }
        values[root].expect("the root node has a value")
    }

    fn build_step(
        &self,
        b: &mut Builder<'_>,
        node: &Node,
        values: &[Option<Value>],
        primal: &Primal<'_>,
    ) -> Value {
        let at = |id: usize| values[id].expect("the operands of a node precede the node");
        match node {
            Node::Num(_) | Node::Seed => {
                unreachable!("constants and seeds have values before the walk")
            }
            Node::Arg(k) => self.arg(b, *k, primal),
            Node::Result(j) => {
                let result = primal.result.expect("the result is among the uses");
                self.member(b, result, *j)
            }
            Node::Add(l, r) => b.fadd(at(*l), at(*r)),
            Node::Sub(l, r) => b.fsub(at(*l), at(*r)),
            Node::Mul(l, r) if is_one(b, at(*l)) => at(*r),
            Node::Mul(l, r) => b.fmul(at(*l), at(*r)),
            Node::Div(l, r) => b.fdiv(at(*l), at(*r)),
            Node::Neg(a) => b.fneg(at(*a)),
            Node::Call(f, args) => {
                let args: Vec<Value> = args.iter().map(|id| at(*id)).collect();
                math_call(b, *f, &args)
            }
            Node::CallInt(f, a, k, plus) => {
                let n = self.int_plus(b, *k, *plus, primal);
                math_call(b, *f, &[at(*a), n])
            }
            Node::IntCall(f, k, plus, a) => {
                let n = self.int_plus(b, *k, *plus, primal);
                math_call(b, *f, &[n, at(*a)])
            }
            Node::FloatOf(k) => {
                let n = self.arg(b, *k, primal);
                self.int_to_float(b, n)
            }
            Node::Digamma(a) => digamma::emit_call(b, at(*a)),
            Node::Select(p, [l, r, then, otherwise]) => {
                let c = b.fcmp(*p, at(*l), at(*r));
                b.select(c, at(*then), at(*otherwise))
            }
        }
    }

    fn arg(&self, b: &mut Builder<'_>, k: usize, primal: &Primal<'_>) -> Value {
        match self.args[k].constant {
            Some(id) => b.constant(id),
            None => primal.args[k].expect("the argument is among the uses"),
        }
    }

    fn int_plus(&self, b: &mut Builder<'_>, k: usize, plus: i32, primal: &Primal<'_>) -> Value {
        let Argument { ty, number, .. } = self.args[k];
        if let Some(n) = number {
            return b.int(ty, n as i128 + i128::from(plus));
        }
        let n = self.arg(b, k, primal);
        match plus {
            0 => n,
            _ => {
                let plus = b.int(ty, i128::from(plus));
                b.add(n, plus)
            }
        }
    }

    /// Converts an integer to the float type of the formulas; a scalar is broadcast to all lanes.
    fn int_to_float(&self, b: &mut Builder<'_>, n: Value) -> Value {
        let int_ty = b.body.ty(n);
        let ty = self.float_ty().unwrap_or(int_ty);
        let lanes = match *b.unit.types.get(ty) {
            Type::Vector { len, .. } => len,
            _ => return b.cast(CastOp::SIToFP, n, ty),
        };
        if matches!(b.unit.types.get(int_ty), Type::Vector { .. }) {
            return b.cast(CastOp::SIToFP, n, ty);
        }
        let elem = b.unit.types.scalar(ty);
        let x = b.cast(CastOp::SIToFP, n, elem);
        let (poison, first) = (b.poison(ty), b.i64(0));
        let vector = b.value(OpKind::InsertElement, &[poison, x, first], ty);
        let mask = vec![0; lanes as usize].into_boxed_slice();
        b.value(OpKind::Shuffle(mask), &[vector, poison], ty)
    }
}

/// Returns true if a value is the constant one, as seeds often are.
fn is_one(b: &Builder<'_>, value: Value) -> bool {
    let id = b.body.as_const(value);
    id.and_then(|id| super::number(b.unit, id)) == Some(1.0)
}

/// Returns the nodes on which node `root` depends, in order.
fn dependencies(formula: &Formula, root: usize) -> Vec<usize> {
    let mut need = vec![false; root + 1];
    need[root] = true;
    for id in (0..=root).rev() {
        if need[id] {
            formula.nodes[id]
                .inputs()
                .iter()
                .for_each(|&i| need[i] = true);
        }
    }
    (0..=root).filter(|&id| need[id]).collect()
}

/// Returns true if `f` can be called on floats of type `ty`.
pub(super) fn exists(unit: &Unit, f: MathFn, ty: TypeId) -> bool {
    let Some(kind) = unit.types.float_kind(ty) else {
        return false;
    };
    let scalable = matches!(unit.types.get(ty), Type::Vector { scalable: true, .. });
    match f.intrinsic() {
        _ if scalable || kind == FloatKind::PpcF128 => false,
        Some(_) => true,
        None => is_in_c(unit, f, ty),
    }
}

/// Returns true if `f` can be called on floats of type `ty` and an integer of type `int`.
pub(super) fn exists_with(unit: &Unit, f: MathFn, ty: TypeId, int: TypeId) -> bool {
    exists(unit, f, ty) && (!is_wide(unit, int) || is_in_c(unit, f, ty))
}

/// Returns true if C has `f` for floats of type `ty`.
fn is_in_c(unit: &Unit, f: MathFn, ty: TypeId) -> bool {
    let suffix = unit.types.float_kind(ty).and_then(c_suffix);
    unit.types.scalar(ty) == ty && suffix.is_some() && f.c_name().is_some()
}

/// Returns true if an integer type has a width other than that of C's `int`.
fn is_wide(unit: &Unit, ty: TypeId) -> bool {
    unit.types.int_bits(ty).is_some_and(|bits| bits != 32)
}

fn c_suffix(kind: FloatKind) -> Option<&'static str> {
    match kind {
        FloatKind::F64 => Some(""),
        FloatKind::F32 => Some("f"),
        FloatKind::X86F80 | FloatKind::F128 => Some("l"),
        FloatKind::F16 | FloatKind::BF16 | FloatKind::PpcF128 => None,
    }
}

/// Emits `f(args)` for a function with a float result. All floats have the type of the result; integers are
/// as [`MathFn::params`] specifies. The call has the builder's fast-math flags.
pub fn math_call(b: &mut Builder<'_>, f: MathFn, args: &[Value]) -> Value {
    let float = f.params().find('f').unwrap_or_default();
    let float = b.body.ty(args[float]);
    math_call_with_result(b, f, args, float)
}

/// Emits `f(args)` with a result of type `result`, for example the integer of `lround`.
pub fn math_call_with_result(
    b: &mut Builder<'_>,
    f: MathFn,
    args: &[Value],
    result: TypeId,
) -> Value {
    let types: Vec<TypeId> = args.iter().map(|v| b.body.ty(*v)).collect();
    let float = f.params().find('f').map_or(result, |at| types[at]);
    let wide_int = types.iter().any(|ty| is_wide(b.unit, *ty));
    let (name, intrinsic) = match f.intrinsic() {
        // The back end has no intrinsic for an exponent of a width other than that of `int`.
        Some(stem) if !wide_int || !is_in_c(b.unit, f, float) => {
            (f.intrinsic_symbol(b.unit, stem, &types, result), true)
        }
        _ => (c_function(b.unit, f, float, wide_int), false),
    };
    let ty = b.unit.types.func(result, types);
    let attrs = AttrSet::pure_function(intrinsic);
    let func = b.unit.declare(&name, ty, attrs);
    let call = b.call(func, args);
    let value = b.body.result(call);
    b.set_flags(value, b.fast_math);
    value
}

fn c_function(unit: &Unit, f: MathFn, ty: TypeId, wide_int: bool) -> String {
    let kind = unit.types.float_kind(ty).unwrap_or(FloatKind::F64);
    let (Some(name), Some(suffix)) = (f.c_name(), c_suffix(kind)) else {
        unreachable!("the C library has no {f:?} for the format {kind:?}");
    };
    match f {
        MathFn::Ldexp | MathFn::Scalbn if wide_int => format!("scalbln{suffix}"),
        _ => format!("{name}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::exists_with;
    use gradus_ir::externals::MathFn;
    use gradus_ir::{FloatKind, Unit};

    /// C has `scalbln` for three scalar formats, and no power with an integer exponent.
    #[test]
    fn a_function_of_a_wide_integer_exists_where_c_has_it() {
        let mut unit = Unit::default();
        let [half, single, double] =
            [FloatKind::F16, FloatKind::F32, FloatKind::F64].map(|kind| unit.types.float(kind));
        let (int, long) = (unit.types.int(32), unit.types.int(64));
        let (doubles, longs) = (unit.types.vector(double, 2), unit.types.vector(long, 2));
        let exists = |f, ty, int| exists_with(&unit, f, ty, int);
        assert!(exists(MathFn::Ldexp, half, int) && exists(MathFn::Powi, double, int));
        assert!(exists(MathFn::Ldexp, single, long) && exists(MathFn::Ldexp, double, long));
        assert!(!exists(MathFn::Ldexp, half, long));
        assert!(!exists(MathFn::Ldexp, doubles, longs));
        assert!(!exists(MathFn::Powi, double, long));
    }
}
