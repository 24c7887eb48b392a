//! Distance of two addresses with a common base: dependence tests.
//!
//! The distance is a polynomial. Values that differ between the two accesses (indices of loops inside the
//! frame) occur once per side. Two tests: the greatest common divisor of the coefficients leaves gaps
//! (Banerjee, *Dependence Analysis*, 1997, ch. 3). Loop indices replaced by their end values, innermost
//! first, yield a lower bound in which symbols may cancel.

use crate::memory::alias::Alias;
use crate::points_to::union_find::gcd;
use crate::scev::poly::{Monomial, Poly};
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{CastOp, Definition, Flags, Op, OpKind, Value};

/// The access to which a symbol's value belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Both,
    First,
    Second,
}

type Symbol = (Side, Value);
type Term = (Vec<Symbol>, i64);

/// Distance in bytes from the first access to the second.
#[derive(Clone, Debug)]
pub(crate) struct AddressDistance {
    constant: i64,
    terms: Vec<Term>,
    exact: bool,
    frame: Option<Op>,
    ops: [Op; 2],
}

impl AddressDistance {
    /// Returns the distance from offset `x` to offset `y`, used by two ops, during one iteration of
    /// `frame`.
    pub(crate) fn between(
        alias: &Alias,
        (first, x): (Op, &Poly),
        (second, y): (Op, &Poly),
        frame: Option<Op>,
    ) -> AddressDistance {
        let (low, overflow) = y.constant.overflowing_sub(x.constant);
        let mut distance = AddressDistance {
            constant: low,
            terms: Vec::new(),
            exact: x.exact && y.exact && !overflow,
            frame,
            ops: [first, second],
        };
        for (monomial, factor) in &y.terms {
            let symbols = distance.symbols(alias, monomial, Side::Second);
            distance.add(symbols, *factor);
        }
        for (monomial, factor) in &x.terms {
            let symbols = distance.symbols(alias, monomial, Side::First);
            match factor.checked_neg() {
                Some(factor) => distance.add(symbols, factor),
                None => distance.exact = false,
            }
        }
        distance
    }

    fn symbols(&self, alias: &Alias, monomial: &Monomial, side: Side) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = monomial
            .iter()
            .map(
                |&atom| match alias.nest.is_invariant_in(alias.body, atom, self.frame) {
                    true => (Side::Both, atom),
                    false => (side, atom),
                },
            )
            .collect();
        symbols.sort_unstable();
        symbols
    }

    fn add(&mut self, symbols: Vec<Symbol>, factor: i64) {
        if symbols.is_empty() {
            let (sum, overflow) = self.constant.overflowing_add(factor);
            self.constant = sum;
            self.exact &= !overflow;
            return;
        }
        match self.terms.iter_mut().find(|(s, _)| *s == symbols) {
            Some((_, sum)) => {
                let (wrapped, overflow) = sum.overflowing_add(factor);
                *sum = wrapped;
                self.exact &= !overflow;
            }
            None => self.terms.push((symbols, factor)),
        }
        self.terms.retain(|(_, factor)| *factor != 0);
    }

    /// Returns true if accesses of these sizes cannot overlap, for all values of the symbols (GCD test).
    pub(crate) fn excludes(&self, size_first: i64, size_second: i64) -> bool {
        let divisor = self
            .terms
            .iter()
            .fold(0u64, |g, (_, c)| gcd(g, c.unsigned_abs()));
        if divisor == 0 {
            return self.constant >= size_first
                || self
                    .constant
                    .checked_neg()
                    .is_some_and(|n| n >= size_second);
        }
        let divisor = match self.exact {
            true => divisor,
            false => 1 << divisor.trailing_zeros(),
        };
        let Ok(divisor) = i64::try_from(divisor) else {
            return false;
        };
        let rest = self.constant.rem_euclid(divisor);
        rest >= size_first && divisor - rest >= size_second
    }

    /// Returns true if accesses of these sizes cannot overlap within the ranges of the loop indices.
    pub(crate) fn excludes_by_ranges(
        &self,
        alias: &Alias,
        size_first: i64,
        size_second: i64,
    ) -> bool {
        if self.terms.is_empty() || !(self.exact || self.cannot_wrap(alias)) {
            return false;
        }
        let whole = AddressDistance {
            exact: true,
            ..self.clone()
        };
        whole.at_least(alias, size_first)
            || (whole.negated()).is_some_and(|mirror| mirror.at_least(alias, size_second))
    }

    /// Returns true if the sum is too small to wrap. The sum then holds in the integers even without
    /// no-wrap flags on its parts.
    fn cannot_wrap(&self, alias: &Alias) -> bool {
        let terms = self.terms.iter();
        let terms = terms.map(|(symbols, c)| (*c, symbols.iter().map(|s| s.1)));
        let range = (alias.forms.intervals).of_sum(alias.unit, alias.body, self.constant, terms);
        let limit = i64::MAX / 2;
        range.is_some_and(|(low, high)| -limit <= low && high <= limit)
    }

    fn negated(&self) -> Option<AddressDistance> {
        let mut mirror = self.clone();
        mirror.constant = self.constant.checked_neg()?;
        for (_, factor) in &mut mirror.terms {
            *factor = factor.checked_neg()?;
        }
        Some(mirror)
    }

    /// Returns true if the distance is never below `least`.
    fn at_least(&self, alias: &Alias, least: i64) -> bool {
        const MAX_STEPS: usize = 16;
        let mut low = self.clone();
        for _ in 0..MAX_STEPS {
            let Some((symbol, lp)) = low.innermost_index(alias) else {
                return low.exact
                    && low.constant >= least
                    && low.terms.iter().all(|(symbols, factor)| {
                        *factor > 0 && symbols.iter().all(|s| self.is_nonnegative(alias, s.1))
                    });
            };
            match low.eliminate_index(alias, symbol, lp) {
                Some(next) => low = next,
                None => return false,
            }
        }
        false
    }

    fn innermost_index(&self, alias: &Alias) -> Option<(Symbol, Op)> {
        let symbols = self.terms.iter().flat_map(|(symbols, _)| symbols);
        symbols
            .filter_map(|&symbol| Some((symbol, nonnegative_index_loop(alias, symbol.1)?.0)))
            .max_by_key(|(symbol, lp)| (alias.nest.loop_depth(*lp), *symbol))
    }

    /// Returns true if a value, sign-extended, is known to be non-negative at the accesses.
    fn is_nonnegative(&self, alias: &Alias, value: Value) -> bool {
        nonnegative_index_loop(alias, value).is_some()
            || self.is_trip_count(alias, value)
            || is_nonnegative_by_op(alias, value)
    }

    /// Returns true if a value is the 64-bit trip count of a `for` around one of the accesses, directly or
    /// through a sign-preserving extension. The trip count is at least 1 inside the loop, and no loop runs
    /// 2⁶³ times.
    fn is_trip_count(&self, alias: &Alias, value: Value) -> bool {
        let around = |lp: Op| (self.ops.iter()).any(|op| *op != lp && alias.nest.contains(lp, *op));
        let counts = |v: Value| {
            alias.unit.types.int_bits(alias.body.ty(v)) == Some(64)
                && alias.body.uses(v).any(|at| {
                    at.index == 0
                        && matches!(alias.body.kind(at.op), OpKind::For { .. })
                        && around(at.op)
                })
        };
        counts(value)
            || alias.body.uses(value).any(|at| {
                let op = &alias.body.ops[at.op];
                let keeps = match op.kind {
                    OpKind::Cast(CastOp::SExt) => true,
                    OpKind::Cast(CastOp::ZExt) => op.flags.has(Flags::NNEG),
                    _ => false,
                };
                keeps && counts(alias.body.result(at.op))
            })
    }

    /// Eliminates a loop index and returns a lower bound: the index becomes 0 in positive terms and its
    /// last value in negative terms. Returns `None` for mixed signs or factors of unknown sign.
    fn eliminate_index(&self, alias: &Alias, symbol: Symbol, lp: Op) -> Option<AddressDistance> {
        let (with, without): (Vec<Term>, Vec<Term>) =
            (self.terms.iter().cloned()).partition(|(symbols, _)| symbols.contains(&symbol));
        let mut low = AddressDistance {
            terms: without,
            ..self.clone()
        };
        let adds = with.iter().all(|(_, factor)| *factor > 0);
        let takes = with.iter().all(|(_, factor)| *factor < 0);
        let once = |symbols: &[Symbol]| symbols.iter().filter(|s| **s == symbol).count() == 1;
        let signs = with.iter().all(|(symbols, _)| {
            once(symbols) && symbols.iter().all(|s| self.is_nonnegative(alias, s.1))
        });
        if !signs || !(adds || takes) {
            return None;
        }
        if adds {
            return Some(low);
        }
        if !nonnegative_index_loop(alias, symbol.1).is_some_and(|(_, ends)| ends) {
            return None;
        }
        let trips = trip_count_if_entered(alias, lp);
        let trips = alias.forms.of_integer(alias.unit, alias.body, trips);
        let last = trips.plus(&Poly::constant(-1))?;
        low.exact &= last.exact || alias.forms.range(alias.unit, alias.body, &last).is_some();
        for (symbols, factor) in with {
            let rest: Vec<Symbol> = symbols.into_iter().filter(|s| *s != symbol).collect();
            let ends = (Monomial::new(), last.constant);
            for (monomial, times) in last.terms.iter().chain([&ends]) {
                let mut product = low.symbols(alias, monomial, symbol.0);
                product.extend_from_slice(&rest);
                product.sort_unstable();
                low.add(product, factor.checked_mul(*times)?);
            }
        }
        Some(low)
    }
}

/// Returns the trip count of a `for` under the assumption of at least one iteration: `n` for `c ? n : 0`
/// and `max(n, 0)`.
fn trip_count_if_entered(alias: &Alias, lp: Op) -> Value {
    let (unit, body) = (alias.unit, alias.body);
    let is_zero = |v: Value| body.as_int(unit, v) == Some(0);
    let trips = body.operand(lp, 0);
    let Some(op) = body.def_op(trips) else {
        return trips;
    };
    let choice = match body.kind(op) {
        OpKind::Select => Some([body.operand(op, 1), body.operand(op, 2)]),
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op);
            let largest = matches!(known, Some(ExternalFn::Integer(IntFn::Smax)));
            let args = unit.call_args(body, op);
            largest.then(|| <[Value; 2]>::try_from(args).ok()).flatten()
        }
        _ => None,
    };
    match choice {
        Some([count, none]) if is_zero(none) => count,
        Some([none, count]) if is_zero(none) => count,
        _ => trips,
    }
}

/// Returns the `for` whose index a value is, if the index is known to be non-negative. Sufficient are 64
/// bits (no loop runs 2⁶³ times), zero extension, or a bounded trip count. The flag is true if the trip
/// count, too, is non-negative as a signed number.
fn nonnegative_index_loop(alias: &Alias, atom: Value) -> Option<(Op, bool)> {
    let (index, extended) = match alias.body.def_op(atom) {
        Some(op) if matches!(alias.body.kind(op), OpKind::Cast(CastOp::ZExt)) => {
            (alias.body.operand(op, 0), true)
        }
        _ => (atom, false),
    };
    let Definition::Param(region, 0) = alias.body.values[index].def else {
        return None;
    };
    let owner = alias.body.owner(region)?;
    let OpKind::For { trip_max } = *alias.body.kind(owner) else {
        return None;
    };
    let low = |value| alias.forms.intervals.of(alias.unit, alias.body, value).0;
    let wide = alias.unit.types.int_bits(alias.body.ty(index)) == Some(64);
    let bounded = trip_max.is_some() && low(index) >= 0;
    let ends = wide || bounded || low(alias.body.operand(owner, 0)) >= 0;
    (extended || low(index) >= 0).then_some((owner, ends))
}

/// Returns true if a value, sign-extended, is non-negative by its definition.
pub(crate) fn is_nonnegative_by_op(alias: &Alias, value: Value) -> bool {
    let (unit, body) = (alias.unit, alias.body);
    unit.types
        .int_bits(body.ty(value))
        .is_some_and(|bits| bits <= 64)
        && alias.forms.intervals.of(unit, body, value).0 >= 0
}
