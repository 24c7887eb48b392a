//! Reductions of a `par.for`: the identity of a partial result and the combination of two partial results.

use gradus_edit::{MinMax, ValueMap, clone_ops, combine, identity};
use gradus_ir::{Body, Builder, ConstId, ConstKind, OpKind, ReduceOp, Region, TypeId, Unit, Value};

/// One reduction of a `par.for`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    pub(crate) op: ReduceOp,
    pub(crate) ty: TypeId,
    /// The combining region of a [`ReduceOp::Custom`].
    pub(crate) region: Option<Region>,
    /// The min/max of the iterations' contribution, see [`Bounded`].
    pub(crate) bounded: Option<Bounded>,
}

/// A bounded min/max: iterations contribute `x < n ? x : n` with a constant `n`, the initial value of their
/// partial results. The combining region makes the identical comparison, `x < t ? x : t`.
///
/// A partial result once combined with `n` never exceeds `n`, or is NaN for good. From then on `x < t ? x : t`
/// equals, bit for bit, the combination with `x < n ? x : n`, in one comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded {
    choice: MinMax,
    bound: ConstId,
}

impl Bounded {
    /// Returns the min/max that defines `given`, if the iterations of `iteration` compute the min/max and
    /// `region` combines by it. A min/max computed before the loop does not qualify: the loop has only the
    /// result, not the operands.
    fn of(
        unit: &Unit,
        body: &Body,
        [iteration, region]: [Region; 2],
        given: Value,
    ) -> Option<Bounded> {
        let choice = MinMax::of(body, given)?;
        if !body.is_defined_in(given, iteration) {
            return None;
        }
        let bound = body.as_const(choice.second)?;
        let end = body
            .last(region)
            .filter(|end| body.operand_count(*end) == 1)?;
        let combined = MinMax::of(body, body.operand(end, 0))?;
        let params = body.region_params(region);
        let same = combined.predicate == choice.predicate
            && params == [combined.second, combined.first]
            && body.as_const(choice.first).is_none();
        (same && is_float_not_nan(unit, bound)).then_some(Bounded { choice, bound })
    }

    /// Returns the initial value of partial results.
    pub(crate) fn bound(&self, b: &mut Builder<'_>) -> Value {
        b.constant(self.bound)
    }

    /// Combines an iteration's contribution into `total`, which already includes the bound.
    pub(crate) fn accumulate_unbounded(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &ValueMap,
        total: Value,
    ) -> Value {
        let value = copied_value(b, source, map, self.choice.first);
        self.choice.emit(b, value, total)
    }
}

/// Returns true for a 32- or 64-bit float constant that is not NaN; infinity qualifies.
fn is_float_not_nan(unit: &Unit, constant: ConstId) -> bool {
    let constant = unit.constant(constant);
    let kind = unit.types.float_kind(constant.ty);
    match (&constant.kind, kind.map(|kind| kind.bits())) {
        (ConstKind::Zero, Some(_)) => true,
        (ConstKind::Float(bits), Some(64)) => {
            u64::try_from(*bits).is_ok_and(|bits| !f64::from_bits(bits).is_nan())
        }
        (ConstKind::Float(bits), Some(32)) => {
            u32::try_from(*bits).is_ok_and(|bits| !f32::from_bits(bits).is_nan())
        }
        _ => false,
    }
}

/// Returns the reductions of a `par.for`, in order.
pub(crate) fn reductions(unit: &Unit, body: &Body, op: gradus_ir::Op) -> Vec<Reduction> {
    let OpKind::ParFor { reductions, .. } = body.kind(op) else {
        unreachable!("only parallel loops have reductions");
    };
    let regions = body.op_regions(op);
    let mut own = regions.iter().skip(1).copied();
    let types = body.results(op).iter().map(|r| body.ty(*r));
    let end = body.last(regions[0]);
    let one = |(index, (&op, ty))| {
        let region = if op == ReduceOp::Custom {
            own.next()
        } else {
            None
        };
        let given = end.and_then(|end| body.operands(end).nth(index));
        let bounded = region.zip(given);
        Reduction {
            op,
            ty,
            region,
            bounded: bounded
                .and_then(|(region, given)| Bounded::of(unit, body, [regions[0], region], given)),
        }
    };
    reductions.iter().zip(types).enumerate().map(one).collect()
}

impl Reduction {
    /// Returns the identity of the combination. A user-defined reduction has no identity unless bounded.
    pub(crate) fn identity(&self, b: &mut Builder<'_>) -> Option<Value> {
        match self.bounded {
            Some(bounded) => Some(bounded.bound(b)),
            None => identity(b, self.op, self.ty),
        }
    }

    /// Combines `a` with `x`. `source` holds the region of a user-defined reduction; values the region uses
    /// from outside need entries in `map`.
    pub(crate) fn combine(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &mut ValueMap,
        a: Value,
        x: Value,
    ) -> Value {
        match self.op {
            ReduceOp::Custom => self.combine_custom(b, source, map, a, x),
            op => combine(b, op, a, x),
        }
    }

    fn combine_custom(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &mut ValueMap,
        a: Value,
        x: Value,
    ) -> Value {
        let Some(region) = self.region else {
            unreachable!("a verified user-defined reduction has a region");
        };
        for (&param, value) in source.region_params(region).iter().zip([a, x]) {
            map.set(param, value);
        }
        clone_ops(source, region, b, map);
        let end = source.last(region);
        match end.filter(|end| matches!(source.kind(*end), OpKind::Yield)) {
            Some(end) => copied_value(b, source, map, source.operand(end, 0)),
            // The combining region is no-return: nothing reads the value.
            None => a,
        }
    }
}

/// Returns the copy of `value`, a value of a `source` body other than the builder's. Constants are re-created;
/// any other value has an entry in `map`.
pub(crate) fn copied_value(
    b: &mut Builder<'_>,
    source: &Body,
    map: &ValueMap,
    value: Value,
) -> Value {
    match (map.get(value), source.as_const(value)) {
        (Some(copy), _) => copy,
        (None, Some(id)) => b.constant(id),
        (None, None) => unreachable!("a value of another body has no copy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::lower::lowered;
    use gradus_edit::MinMax;
    use gradus_ir::{OpKind, Symbol, verify};

    /// Returns true if the loop lowered from a reduction of `given` with combiner `combined` compares the
    /// partial result with `%x` itself.
    fn is_bounded(given: &str, combined: &str) -> bool {
        let text = format!(
            "func @f(%p: ptr, %n: i64) -> f64 {{
               %s = par.for %i < %n reduce(custom 1.0e9) {{
                 %a = addr f64, %p, %i %x = load %a -> f64 {given} yield %v
               }} {{ |%t: f64, %y: f64| {combined} yield %m }}
               return %s }}"
        );
        let unit = lowered(&text);
        let Some(Symbol::Func(range)) = unit.symbol("f.gr_range") else {
            panic!("it is there");
        };
        let body = unit.functions[range].body.as_deref().expect("it has code");
        let is_loop = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::For { .. });
        let op = body.walk(body.root()).find(is_loop).expect("the loop");
        let region = body.op_regions(op)[0];
        let end = body.last(region).expect("it ends");
        let next = MinMax::of(body, body.operand(end, 0));
        let total = body.region_params(region)[1];
        let load = |c: MinMax| {
            matches!(
                body.def_op(c.first).map(|o| body.kind(o)),
                Some(OpKind::Load(_))
            )
        };
        next.is_some_and(|c| c.second == total && load(c)) && body.region_params(region).len() == 2
    }

    #[test]
    fn bounded_min_has_one_comparison() {
        let given = "%c = fcmp olt %x, 1.0e300 %v = select %c, %x, 1.0e300";
        let combined = "%d = fcmp olt %y, %t %m = select %d, %y, %t";
        assert!(is_bounded(given, combined));
        assert!(is_bounded(
            "%c = fcmp uge %x, 1.0e300 %v = select %c, 1.0e300, %x",
            combined
        ));
        // NaN would persist; a different comparison; a comparison with a value of the iteration.
        let mirrored = "%d = fcmp olt %t, %y %m = select %d, %t, %y";
        assert!(!is_bounded(given, mirrored));
        assert!(!is_bounded(
            "%c = fcmp ogt %x, 1.0e300 %v = select %c, %x, 1.0e300",
            combined
        ));
        assert!(!is_bounded(
            "%b = fmul %x, %x %c = fcmp olt %x, %b %v = select %c, %x, %b",
            combined
        ));
    }

    /// The loop has the result of a min/max computed before the loop, not the operands.
    #[test]
    fn min_before_loop_is_not_bounded() {
        let text = "func @f(%o: f64, %n: i64) -> f64 {
            %c = fcmp olt %o, 1.0e300 %v = select %c, %o, 1.0e300
            %s = par.for %i < %n reduce(custom 1.0e9) { yield %v } {
              |%t: f64, %y: f64| %d = fcmp olt %y, %t %m = select %d, %y, %t yield %m
            }
            return %s }";
        let unit = lowered(text);
        assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
    }
}
