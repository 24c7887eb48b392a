//! How much one iteration of a loop is, in simple operations: enough to see that a loop is too small
//! for a fork, not to predict a time.
//!
//! Loops inside with a trip count that is known before the parallel loop starts count in full; others
//! are taken to run [`UNKNOWN_TRIPS`] times. A call of unknown code is taken to be large, so that it is
//! left to the run time.

use gradus_ir::known::{Known, MathFn};
use gradus_ir::{BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Region, Unit, Value};
use std::collections::HashMap;

const UNKNOWN_TRIPS: u64 = 16;
const CALL: u64 = 2_000;
const MATH: u64 = 25;
const DIVISION: u64 = 10;
/// More runs than this, or operations, are as good as this many.
const LARGE: u64 = 1 << 16;
/// Trip counts that are multiplied with each other; of further ones nothing is assumed.
const FACTORS: usize = 2;

/// Work per iteration: a number, and multiples of values that are known before the loop starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub(crate) fixed: u64,
    pub(crate) terms: Vec<(Vec<Value>, u64)>,
    /// Whether it calls functions that are not known by name.
    pub(crate) calls: bool,
}

/// The work of one run of `region`.
pub(crate) fn of(unit: &Unit, body: &Body, region: Region) -> Work {
    let mut work = Work::default();
    // How often each region runs: a number, and values to multiply it with.
    let mut runs: HashMap<Region, (u64, Vec<Value>)> = HashMap::from([(region, (1, Vec::new()))]);
    for op in body.walk(region) {
        let Some((times, factors)) = body.parent(op).and_then(|r| runs.get(&r)).cloned() else {
            continue;
        };
        let cost = cost(unit, body, op);
        work.calls |= cost == CALL;
        let cost = times.saturating_mul(cost);
        match work.terms.iter_mut().find(|(known, _)| *known == factors) {
            _ if factors.is_empty() => work.fixed = work.fixed.saturating_add(cost),
            Some((_, sum)) => *sum = sum.saturating_add(cost),
            None => work.terms.push((factors.clone(), cost)),
        }
        let trips = trips(unit, body, region, op);
        for &inner in body.op_regions(op) {
            let (mut times, mut factors) = (times, factors.clone());
            match trips {
                Trips::Number(n) => times = times.saturating_mul(n),
                Trips::Value(value) if factors.len() < FACTORS => factors.push(value),
                Trips::Value(_) => times = times.saturating_mul(UNKNOWN_TRIPS),
            }
            runs.insert(inner, (times, factors));
        }
    }
    work
}

enum Trips {
    Number(u64),
    Value(Value),
}

/// How often the regions of `op` run for each run of `op` itself.
fn trips(unit: &Unit, body: &Body, region: Region, op: Op) -> Trips {
    match body.kind(op) {
        OpKind::For { .. } | OpKind::ShareFor { .. } | OpKind::ParFor { .. } => {
            let count = body.operand(op, 0);
            if let Some(n) = body.as_int(unit, count) {
                return Trips::Number(u64::try_from(n).unwrap_or(UNKNOWN_TRIPS));
            }
            let inside = body
                .region_of(count)
                .is_some_and(|r| body.is_inside(r, region));
            match inside {
                true => Trips::Number(UNKNOWN_TRIPS),
                false => Trips::Value(count),
            }
        }
        OpKind::Loop { .. } => Trips::Number(UNKNOWN_TRIPS),
        _ => Trips::Number(1),
    }
}

fn cost(unit: &Unit, body: &Body, op: Op) -> u64 {
    match body.kind(op) {
        OpKind::Binary(
            BinaryOp::FDiv
            | BinaryOp::FRem
            | BinaryOp::SDiv
            | BinaryOp::UDiv
            | BinaryOp::SRem
            | BinaryOp::URem,
        ) => DIVISION,
        OpKind::Call(_) | OpKind::Invoke(_) => match unit.callee(body, op) {
            Some(func) => match unit.known(func) {
                Some(Known::Math(id)) if is_instruction(id) => 1,
                Some(Known::Math(MathFn::Sqrt)) => DIVISION,
                Some(Known::Math(_) | Known::MathOut(_)) => MATH,
                Some(Known::Marker(_)) => 0,
                _ => CALL,
            },
            None => CALL,
        },
        kind if kind.is_terminator() => 0,
        OpKind::Cast(_) | OpKind::Addr { .. } | OpKind::Alloca(_) | OpKind::If => 0,
        _ => 1,
    }
}

/// Whether processors have an instruction for it, or a few.
fn is_instruction(id: MathFn) -> bool {
    use MathFn::*;
    matches!(
        id,
        Fma | Fmuladd
            | Fabs
            | Copysign
            | Maxnum
            | Minnum
            | Maximum
            | Minimum
            | MaximumNum
            | MinimumNum
    )
}

impl Work {
    /// The work of `trips` iterations, without overflow: large numbers are cut down to what is still
    /// far above every threshold. Gives the work of one iteration too, at least 1.
    pub(crate) fn values(&self, b: &mut Builder<'_>, trips: Value) -> (Value, Value) {
        let number = |n: u64| i64::try_from(n.clamp(1, LARGE)).unwrap_or(1);
        let mut sum = b.i64(number(self.fixed));
        for (factors, cost) in &self.terms {
            let mut product = b.i64(number(*cost));
            for &factor in factors {
                let factor = crate::serial::wide(b, factor);
                let factor = at_most(b, factor, LARGE);
                product = b.mul(product, factor);
            }
            sum = b.add(sum, product);
        }
        let one = at_most(b, sum, 1 << 46);
        let trips = at_most(b, trips, LARGE);
        let all = b.mul(trips, one);
        (all, one)
    }
}

fn at_most(b: &mut Builder<'_>, value: Value, limit: u64) -> Value {
    if b.body.as_const(value).is_some() {
        return value;
    }
    let limit = b.i64(i64::try_from(limit).unwrap_or(i64::MAX));
    let less = b.icmp(IntPredicate::Ult, value, limit);
    b.select(less, value, limit)
}
