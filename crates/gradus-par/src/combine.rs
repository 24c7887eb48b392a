//! Reductions: what a partial result begins with, and how two become one.

use gradus_edit::{ValueMap, clone_ops, neutral, reduced};
use gradus_ir::{Body, Builder, OpKind, ReduceOp, Region, TypeId, Value};

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
        neutral(b, self.op, self.ty)
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
            ReduceOp::Custom => self.own(b, source, map, a, x),
            op => reduced(b, op, a, x),
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
