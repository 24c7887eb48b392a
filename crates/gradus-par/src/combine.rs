//! Reductions: what a partial result begins with, and how two become one.

use gradus_edit::{ValueMap, clone_ops};
use gradus_ir::known::MathFn;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, IntPredicate, OpKind, ReduceOp, Region, TypeId, Value,
};

/// One reduction of a `par.for`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    pub(crate) op: ReduceOp,
    pub(crate) ty: TypeId,
    /// The region that combines, of a [`ReduceOp::Custom`].
    pub(crate) region: Option<Region>,
}

/// The reductions of a `par.for`, in order.
pub(crate) fn reductions(body: &Body, op: gradus_ir::Op) -> Vec<Reduction> {
    let OpKind::ParFor { reductions, .. } = body.kind(op) else {
        return Vec::new();
    };
    let mut regions = body.op_regions(op).iter().skip(1).copied();
    let types = body.results(op).iter().map(|r| body.ty(*r));
    let one = |(&op, ty)| Reduction {
        op,
        ty,
        region: if op == ReduceOp::Custom {
            regions.next()
        } else {
            None
        },
    };
    reductions.iter().zip(types).map(one).collect()
}

impl Reduction {
    /// The value that changes nothing when it is combined with another; none for an operation of the
    /// program's own.
    pub(crate) fn identity(&self, b: &mut Builder<'_>) -> Option<Value> {
        let scalar = b.unit.types.scalar(self.ty);
        let bits = b.unit.types.int_bits(scalar).unwrap_or(64).min(127);
        let largest = (1_i128 << (bits - 1)) - 1;
        Some(match self.op {
            ReduceOp::FAdd => b.float(self.ty, -0.0),
            ReduceOp::FMul => b.float(self.ty, 1.0),
            ReduceOp::FMax | ReduceOp::FMaximum => b.float(self.ty, f64::NEG_INFINITY),
            ReduceOp::FMin | ReduceOp::FMinimum => b.float(self.ty, f64::INFINITY),
            ReduceOp::And | ReduceOp::UMin => b.int(self.ty, -1),
            ReduceOp::Mul => b.int(self.ty, 1),
            ReduceOp::Max => b.int(self.ty, -largest - 1),
            ReduceOp::Min => b.int(self.ty, largest),
            ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor | ReduceOp::UMax => b.zero(self.ty),
            ReduceOp::Custom => return None,
        })
    }

    /// `a` combined with `x`. `source` holds the region of an operation of the program's own; what
    /// that uses from outside must have entries in `map`.
    pub(crate) fn combine(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &mut ValueMap,
        a: Value,
        x: Value,
    ) -> Value {
        match self.op {
            ReduceOp::Add => b.add(a, x),
            ReduceOp::Mul => b.mul(a, x),
            ReduceOp::And => b.binary(BinaryOp::And, a, x),
            ReduceOp::Or => b.binary(BinaryOp::Or, a, x),
            ReduceOp::Xor => b.binary(BinaryOp::Xor, a, x),
            ReduceOp::Max => chosen(b, IntPredicate::Sgt, a, x),
            ReduceOp::Min => chosen(b, IntPredicate::Slt, a, x),
            ReduceOp::UMax => chosen(b, IntPredicate::Ugt, a, x),
            ReduceOp::UMin => chosen(b, IntPredicate::Ult, a, x),
            ReduceOp::FAdd => b.fadd(a, x),
            ReduceOp::FMul => b.fmul(a, x),
            ReduceOp::FMax => math(b, MathFn::Maxnum, a, x),
            ReduceOp::FMin => math(b, MathFn::Minnum, a, x),
            ReduceOp::FMaximum => math(b, MathFn::Maximum, a, x),
            ReduceOp::FMinimum => math(b, MathFn::Minimum, a, x),
            ReduceOp::Custom => self.own(b, source, map, a, x),
        }
    }

    fn own(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &mut ValueMap,
        a: Value,
        x: Value,
    ) -> Value {
        let Some(region) = self.region else {
            return a;
        };
        for (&param, value) in source.region_params(region).iter().zip([a, x]) {
            map.set(param, value);
        }
        clone_ops(source, region, b, map);
        let end = source
            .last(region)
            .filter(|end| source.operand_count(*end) == 1);
        end.map_or(a, |end| copied(b, source, map, source.operand(end, 0)))
    }
}

/// What stands for a value of `source`.
pub(crate) fn copied(b: &mut Builder<'_>, source: &Body, map: &ValueMap, value: Value) -> Value {
    match (map.get(value), source.as_const(value)) {
        (None, Some(id)) => b.constant(id),
        (copy, _) => copy.unwrap_or(value),
    }
}

fn chosen(b: &mut Builder<'_>, predicate: IntPredicate, a: Value, x: Value) -> Value {
    let first = b.icmp(predicate, a, x);
    b.select(first, a, x)
}

fn math(b: &mut Builder<'_>, f: MathFn, a: Value, x: Value) -> Value {
    let types = [b.body.ty(a), b.body.ty(x)];
    let stem = f.intrinsic().unwrap_or_default();
    let name = f.intrinsic_symbol(b.unit, stem, &types, types[0]);
    let ty = b.unit.types.func(types[0], types.to_vec());
    let func = b.unit.declare(&name, ty, AttrSet::of_pure(true));
    let call = b.call(func, &[a, x]);
    b.body.result(call)
}
