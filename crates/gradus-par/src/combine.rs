//! Reductions: what a partial result begins with, and how two become one.

use gradus_edit::{Extreme, ValueMap, clone_ops, neutral, reduced};
use gradus_ir::{Body, Builder, ConstId, ConstKind, OpKind, ReduceOp, Region, TypeId, Unit, Value};

/// One reduction of a `par.for`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    pub(crate) op: ReduceOp,
    pub(crate) ty: TypeId,
    /// The region that combines, of a [`ReduceOp::Custom`].
    pub(crate) region: Option<Region>,
    /// What iterations contribute, where it is a choice as [`Bounded`] says.
    pub(crate) bounded: Option<Bounded>,
}

/// A least or greatest number that the program itself compares for: iterations contribute `x < n ? x : n`
/// with a number `n`, that which their own totals begin with, and contributions are combined by the same
/// comparison, `x < t ? x : t`.
///
/// A total that was combined with `n` once is not above it, or is none of the numbers, for good. From then
/// on `x < t ? x : t` is, bit for bit, what combining it with `x < n ? x : n` gives, in one comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded {
    choice: Extreme,
    bound: ConstId,
}

impl Bounded {
    /// Returns the min or max that `given` is, if the iterations of `iteration` contribute it and `region` combines
    /// it. A min or max made before the loop is none: the loop has its result, and not the numbers that it
    /// compares.
    fn of(
        unit: &Unit,
        body: &Body,
        [iteration, region]: [Region; 2],
        given: Value,
    ) -> Option<Bounded> {
        let choice = Extreme::of(body, given)?;
        let made = body.region_of(given)?;
        if !body.is_inside(made, iteration) {
            return None;
        }
        let bound = body.as_const(choice.second)?;
        let end = body
            .last(region)
            .filter(|end| body.operand_count(*end) == 1)?;
        let combined = Extreme::of(body, body.operand(end, 0))?;
        let params = body.region_params(region);
        let same = combined.predicate == choice.predicate
            && params == [combined.second, combined.first]
            && body.as_const(choice.first).is_none();
        (same && is_number(unit, bound)).then_some(Bounded { choice, bound })
    }

    /// The number that totals begin with.
    pub(crate) fn bound(&self, b: &mut Builder<'_>) -> Value {
        b.constant(self.bound)
    }

    /// `total` and an iteration's contribution, where `total` was combined with the bound before.
    pub(crate) fn next(
        &self,
        b: &mut Builder<'_>,
        source: &Body,
        map: &ValueMap,
        total: Value,
    ) -> Value {
        let value = copied(b, source, map, self.choice.first);
        self.choice.again(b, value, total)
    }
}

/// Whether a constant is a number of 32 or 64 bits, or infinite.
fn is_number(unit: &Unit, constant: ConstId) -> bool {
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

/// The reductions of a `par.for`, in order.
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
    /// The value that changes nothing when it is combined with another; none for an operation of the
    /// program's own, but for a bounded one.
    pub(crate) fn identity(&self, b: &mut Builder<'_>) -> Option<Value> {
        match self.bounded {
            Some(bounded) => Some(bounded.bound(b)),
            None => neutral(b, self.op, self.ty),
        }
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
            unreachable!("a verified reduction of the program's own has a region");
        };
        for (&param, value) in source.region_params(region).iter().zip([a, x]) {
            map.set(param, value);
        }
        clone_ops(source, region, b, map);
        let end = source.last(region);
        match end.filter(|end| matches!(source.kind(*end), OpKind::Yield)) {
            Some(end) => copied(b, source, map, source.operand(end, 0)),
            // Control does not come to the end of what combines: nothing reads what is given here.
            None => a,
        }
    }
}

/// What stands for a value of `source`, a body other than the builder's: constants stand for themselves, and other
/// values have an entry in `map`.
pub(crate) fn copied(b: &mut Builder<'_>, source: &Body, map: &ValueMap, value: Value) -> Value {
    match (map.get(value), source.as_const(value)) {
        (Some(copy), _) => copy,
        (None, Some(id)) => b.constant(id),
        (None, None) => unreachable!("a value of another body has no copy"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, lower};
    use gradus_edit::Extreme;
    use gradus_ir::{FuncId, OpKind, Symbol, parse, verify};

    /// Whether the loop that is made of one which contributes `given`, combined by `combined`, compares
    /// what it has so far with `%x` itself.
    fn is_bounded(given: &str, combined: &str) -> bool {
        let text = format!(
            "func @f(%p: ptr, %n: i64) -> f64 {{
               %s = par.for %i < %n reduce(custom 1.0e9) {{
                 %a = addr f64, %p, %i %x = load %a -> f64 {given} yield %v
               }} {{ |%t: f64, %y: f64| {combined} yield %m }}
               return %s }}"
        );
        let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let all: Vec<FuncId> = unit.functions.ids().collect();
        lower(&mut unit, &all, &Options::default());
        let Some(Symbol::Func(range)) = unit.symbol("f.gr_range") else {
            panic!("it is there");
        };
        let body = unit.functions[range].body.as_deref().expect("it has code");
        let is_loop = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::For { .. });
        let op = body.walk(body.root()).find(is_loop).expect("the loop");
        let region = body.op_regions(op)[0];
        let end = body.last(region).expect("it ends");
        let next = Extreme::of(body, body.operand(end, 0));
        let total = body.region_params(region)[1];
        let load = |c: Extreme| {
            matches!(
                body.def_op(c.first).map(|o| body.kind(o)),
                Some(OpKind::Load(_))
            )
        };
        next.is_some_and(|c| c.second == total && load(c)) && body.region_params(region).len() == 2
    }

    #[test]
    fn the_neutral_value_is_met_once() {
        let given = "%c = fcmp olt %x, 1.0e300 %v = select %c, %x, 1.0e300";
        let combined = "%d = fcmp olt %y, %t %m = select %d, %y, %t";
        assert!(is_bounded(given, combined));
        assert!(is_bounded(
            "%c = fcmp uge %x, 1.0e300 %v = select %c, 1.0e300, %x",
            combined
        ));
        // What is no number stays there, another comparison, one with a value of the iteration's own.
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

    /// The loop has the min or max made before it, and not its operands.
    #[test]
    fn what_is_made_before_the_loop_is_contributed_as_it_is() {
        let text = "func @f(%o: f64, %n: i64) -> f64 {
            %c = fcmp olt %o, 1.0e300 %v = select %c, %o, 1.0e300
            %s = par.for %i < %n reduce(custom 1.0e9) { yield %v } {
              |%t: f64, %y: f64| %d = fcmp olt %y, %t %m = select %d, %y, %t yield %m
            }
            return %s }";
        let mut unit = parse(text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
        let all: Vec<FuncId> = unit.functions.ids().collect();
        lower(&mut unit, &all, &Options::default());
        assert!(verify(&unit).is_empty(), "{:?}", verify(&unit));
    }
}
