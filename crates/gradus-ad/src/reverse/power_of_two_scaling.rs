//! Power-of-two scaling: moves factors that are powers of two from partial derivatives to the seed.
//!
//! `y = (0.5 s) b` contributes `seed · (0.5 s)` to `b` and `0.5 (seed · b)` to `s`. Rewritten as `(0.5 seed)
//! · s` and `(0.5 seed) · b`, both contributions share a product, also with other contributions of the seed.
//! An example are fluxes through the faces of a cell, each with the mean of two coefficients.
//!
//! If the seed is itself a product with a loop-invariant factor, such as a step length, the power is
//! multiplied into that factor once, before the loop. Only powers of two near one are moved, which changes no
//! rounding as long as all products are normal numbers.

use crate::calculus;
use crate::reverse::reverse_pass::ReversePass;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Op, OpKind, Value};

/// Upper bound of the moved powers of two; the lower bound is its reciprocal.
const POWER_MAX: f64 = 16.0;

impl ReversePass<'_, '_, '_, '_> {
    /// Returns the contribution of `op` to an operand's adjoint, with a factor moved to the seed. The factor
    /// is moved if the scaled seed is shared and no product is computed twice. `operands` are the operands of
    /// `op` with known values in the reverse pass.
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
            // The seed is a product without other uses.
            return match product(out, first) {
                Some([seed, other]) if self.is_exclusive_seed(op) => {
                    self.move_factor_to_seed(seed, factor, other)
                }
                _ => part,
            };
        }
        let once = |&(primal, value): &(Value, Value)| {
            value == factor && self.facts.body.uses(primal).nth(1).is_none()
        };
        match product(out, factor) {
            Some([other, power])
                if self.is_power_of_two(power)
                    && self.is_computed_here(factor)
                    && self.is_computed_here(other)
                    && operands.iter().any(once) =>
            {
                let twice = is_planted(Mutant::PowerOfTwoAppliedTwice);
                self.move_factor_to_seed(seed, power, if twice { factor } else { other })
            }
            _ => part,
        }
    }

    fn move_factor_to_seed(&mut self, seed: Value, power: Value, other: Value) -> Value {
        // A loop-invariant factor of the seed absorbs the power, computed once.
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
            fraction == 0 && (1.0 / POWER_MAX..=POWER_MAX).contains(&x.abs())
        })
    }

    /// Returns true if the adjoint of an op's result is a product emitted for the result alone: the single
    /// user multiplies, while other users pass on a seed that they received.
    fn is_exclusive_seed(&self, op: Op) -> bool {
        let body = self.facts.body;
        let mut uses = body.uses(body.result(op));
        let makes = |user: Op| {
            let kind = body.kind(user);
            matches!(kind, OpKind::Binary(BinaryOp::FMul) | OpKind::Call(_))
        };
        uses.next().is_some_and(|only| makes(only.op)) && uses.next().is_none()
    }

    /// Returns true if a value is computed in the region under construction, and may differ per execution.
    fn is_computed_here(&self, value: Value) -> bool {
        let out = &self.out.body;
        let made = out.def_op(value).and_then(|op| out.parent(op));
        made == Some(self.region())
    }
}

/// Returns the factors of a product.
fn product(body: &Body, value: Value) -> Option<[Value; 2]> {
    let op = body.def_op(value)?;
    let factors = matches!(body.kind(op), OpKind::Binary(BinaryOp::FMul));
    factors.then(|| [body.operand(op, 0), body.operand(op, 1)])
}
