//! Factors that are powers of two are moved to the seed.
//!
//! `y = (0.5 s) b` gives `b` the part `seed · (0.5 s)` and `s` the part `0.5 (seed · b)`. As `(0.5 seed) · s` and
//! `(0.5 seed) · b` the two share a product, and with them all that the seed goes to in this way: the fluxes
//! through the faces of a cell, each with the mean of two coefficients. Where the seed is itself a product with
//! a factor from outside, a step's length, that one takes the power: it is multiplied once, before the loop. Only
//! powers of two near one are moved: that rounds nothing, as long as all products are normal numbers.

use super::return_sweep::ReturnSweep;
use crate::calculus;
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{BinaryOp, Body, Op, OpKind, Value};

/// The powers of two that are moved: from one over this to this.
const GREATEST: f64 = 16.0;

impl ReturnSweep<'_, '_, '_, '_> {
    /// What `op` adds to an operand's adjoint, with a factor moved to the seed where it is shared there and
    /// nothing is computed twice for it. `operands` are those of `op` whose values in the return sweep are
    /// known.
    pub(super) fn with_scaled_seed(
        &mut self,
        op: Op,
        seed: Value,
        part: Value,
        operands: &[(Value, Value)],
    ) -> Value {
        let out = &self.out.body;
        let Some([first, factor]) = product(out, part).filter(|[first, _]| *first == seed) else {
            return part;
        };
        if self.is_power_of_two(factor) {
            // The seed is itself a product that goes nowhere else.
            return match product(out, first) {
                Some([seed, other]) if self.is_own_seed(op) => self.regrouped(seed, factor, other),
                _ => part,
            };
        }
        let once = |&(primal, value): &(Value, Value)| {
            value == factor && self.facts.body.uses(primal).nth(1).is_none()
        };
        match product(out, factor) {
            Some([other, power])
                if self.is_power_of_two(power)
                    && self.is_made_here(factor)
                    && self.is_made_here(other)
                    && operands.iter().any(once) =>
            {
                let twice = planted(Mutant::PowerTakenTwice);
                self.regrouped(seed, power, if twice { factor } else { other })
            }
            _ => part,
        }
    }

    fn regrouped(&mut self, seed: Value, power: Value, other: Value) -> Value {
        // A factor of the seed from outside takes the power with it, once for all.
        let outside = product(&self.out.body, seed).and_then(|[a, b]| {
            let home = |v: Value| self.out.body.region_of(v);
            let from_outside = |v: Value| home(v).is_some_and(|home| home != self.region());
            [(a, b), (b, a)].into_iter().find(|(_, v)| from_outside(*v))
        });
        let mut b = self.out.build();
        let scaled = match outside {
            Some((seed, factor)) => {
                let factor = b.fmul(factor, power);
                b.fmul(seed, factor)
            }
            None => b.fmul(seed, power),
        };
        b.fmul(scaled, other)
    }

    fn is_power_of_two(&self, value: Value) -> bool {
        let id = self.out.body.as_const(value);
        let number = id.and_then(|id| calculus::number(self.out.unit, id));
        number.is_some_and(|x| {
            let fraction = x.abs().to_bits() << 12;
            fraction == 0 && (1.0 / GREATEST..=GREATEST).contains(&x.abs())
        })
    }

    /// Whether the adjoint of an op's result is a product that was made for it alone: others hand on what
    /// they are given.
    fn is_own_seed(&self, op: Op) -> bool {
        let body = self.facts.body;
        let mut uses = body.uses(body.result(op));
        let makes = |user: Op| {
            let kind = body.kind(user);
            matches!(kind, OpKind::Binary(BinaryOp::FMul) | OpKind::Call(_))
        };
        uses.next().is_some_and(|only| makes(only.op)) && uses.next().is_none()
    }

    /// Whether a value is computed by the region that is being written, and so may differ each time.
    fn is_made_here(&self, value: Value) -> bool {
        let out = &self.out.body;
        let made = out.def_op(value).and_then(|op| out.parent(op));
        made == Some(self.region())
    }
}

/// The factors of a product.
fn product(body: &Body, value: Value) -> Option<[Value; 2]> {
    let op = body.def_op(value)?;
    let factors = matches!(body.kind(op), OpKind::Binary(BinaryOp::FMul));
    factors.then(|| [body.operand(op, 0), body.operand(op, 1)])
}
