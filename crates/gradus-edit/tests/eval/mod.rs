//! Evaluator of integer bodies for tests of edits. Models poison, undefined behaviour and infinite loops, and
//! records the observable behaviour (calls of `observe`).

use gradus_ir::integers::{fold_binary, fold_cast, fold_icmp};
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Entity, Flags, Op, OpKind, Region, Type, Unit, Value,
};

/// Outcome of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Returned with the result; `None` is poison.
    Returned(Option<u128>),
    /// Undefined behaviour.
    Undefined,
    /// The execution exceeded its step limit.
    OutOfFuel,
}

/// Execution: observed values and outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Observed values; `None` is poison.
    pub observed: Vec<Option<u128>>,
    /// Outcome.
    pub end: Outcome,
}

struct Machine<'a> {
    unit: &'a Unit,
    body: &'a Body,
    /// Current value of each SSA value; the outer `None` means undefined so far.
    values: Vec<Option<Option<u128>>>,
    observed: Vec<Option<u128>>,
    fuel: u32,
}

/// Executes a body with integer arguments.
pub fn run(unit: &Unit, body: &Body, args: &[u128]) -> Execution {
    let mut machine = Machine {
        unit,
        body,
        values: vec![None; body.values.len()],
        observed: Vec::new(),
        fuel: 6_000,
    };
    for (&param, &arg) in body.params().iter().zip(args) {
        machine.set(param, Some(arg));
    }
    let end = match machine.region(body.root()) {
        Ok(values) => Outcome::Returned(values.first().copied().flatten()),
        Err(end) => end,
    };
    Execution {
        observed: machine.observed,
        end,
    }
}

impl Machine<'_> {
    fn bits(&self, value: Value) -> u32 {
        match self.unit.types.get(self.body.ty(value)) {
            Type::Int(bits) => *bits,
            Type::Ptr(_) => 64,
            other => panic!("the evaluator does not know {other:?}"),
        }
    }

    fn get(&self, value: Value) -> Option<u128> {
        if let Some(id) = self.body.as_const(value) {
            return match self.unit.constant(id).kind {
                ConstKind::Int(n) => Some(n),
                ConstKind::Zero => Some(0),
                ConstKind::Poison => None,
                ref other => panic!("the evaluator does not know {other:?}"),
            };
        }
        self.values[value.index()].unwrap_or_else(|| panic!("{value:?} is used before it is given"))
    }

    fn set(&mut self, value: Value, to: Option<u128>) {
        self.values[value.index()] = Some(to);
    }

    /// Executes a region; returns its terminator's operands.
    fn region(&mut self, region: Region) -> Result<Vec<Option<u128>>, Outcome> {
        for op in self.body.ops_in(region) {
            self.fuel = self.fuel.checked_sub(1).ok_or(Outcome::OutOfFuel)?;
            if self.body.kind(op).is_terminator() {
                return Ok(self.body.operands(op).map(|v| self.get(v)).collect());
            }
            let results = self.op(op)?;
            for (&value, result) in self.body.results(op).iter().zip(results) {
                self.set(value, result);
            }
        }
        panic!("a region without a terminator")
    }

    fn op(&mut self, op: Op) -> Result<Vec<Option<u128>>, Outcome> {
        let a: Vec<Option<u128>> = match self.body.kind(op) {
            OpKind::Call(_) => vec![],
            _ => self.body.operands(op).map(|v| self.get(v)).collect(),
        };
        let regions = self.body.op_regions(op);
        Ok(match self.body.kind(op) {
            OpKind::If => {
                let c = a[0].ok_or(Outcome::Undefined)?;
                self.region(regions[usize::from(c == 0)])?
            }
            OpKind::Loop { trip_max } => self.run_loop(op, regions[0], a, *trip_max)?,
            OpKind::For { trip_max } => {
                let n = a[0].ok_or(Outcome::Undefined)?;
                assert!(
                    trip_max.is_none_or(|m| n <= u128::from(m)),
                    "trip_max is broken"
                );
                let mut carried = a[1..].to_vec();
                for i in 0..n {
                    let params = self.body.region_params(regions[0]);
                    self.set(params[0], Some(i));
                    for (&p, &v) in params[1..].iter().zip(&carried) {
                        self.set(p, v);
                    }
                    carried = self.region(regions[0])?;
                }
                carried
            }
            OpKind::Call(_) => {
                let shown = self.get(self.body.operand(op, 1));
                self.observed.push(shown);
                vec![]
            }
            OpKind::Select => vec![a[0].and_then(|c| a[if c == 0 { 2 } else { 1 }])],
            _ => vec![self.scalar(op, &a)?],
        })
    }

    fn run_loop(
        &mut self,
        op: Op,
        region: Region,
        mut carried: Vec<Option<u128>>,
        trip_max: Option<u64>,
    ) -> Result<Vec<Option<u128>>, Outcome> {
        let count = self.body.operand_count(op);
        for trips in 1.. {
            assert!(trip_max.is_none_or(|m| trips <= m), "trip_max is broken");
            let params = self.body.region_params(region);
            for (&p, &v) in params.iter().zip(&carried) {
                self.set(p, v);
            }
            let said = self.region(region)?;
            if said[0].ok_or(Outcome::Undefined)? == 0 {
                return Ok(said[1 + count..].to_vec());
            }
            carried = said[1..=count].to_vec();
        }
        unreachable!()
    }

    fn scalar(&self, op: Op, a: &[Option<u128>]) -> Result<Option<u128>, Outcome> {
        let result = self.body.result(op);
        let operand = |i: usize| self.body.operand(op, i);
        let flags = self.body.ops[op].flags;
        Ok(match *self.body.kind(op) {
            OpKind::Binary(binary) => {
                let division = matches!(
                    binary,
                    BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::URem | BinaryOp::SRem
                );
                if division && a[1].unwrap_or(0) == 0 {
                    return Err(Outcome::Undefined);
                }
                let (Some(x), Some(y)) = (a[0], a[1]) else {
                    return Ok(None);
                };
                let bits = self.bits(result);
                fold_binary(binary, bits, x, y)
                    .filter(|_| !violates_wrap_flags(binary, flags, bits, x, y))
            }
            OpKind::ICmp(p) => {
                let bits = self.bits(operand(0));
                a[0].zip(a[1])
                    .map(|(x, y)| u128::from(fold_icmp(p, bits, x, y)))
            }
            OpKind::Cast(cast) => {
                let (from, to) = (self.bits(operand(0)), self.bits(result));
                let whole = a[0].and_then(|x| match cast {
                    CastOp::PtrToInt => Some(x),
                    _ => fold_cast(cast, from, to, x),
                });
                whole.filter(|&r| {
                    let x = a[0].unwrap_or_default();
                    let nuw =
                        !flags.has(Flags::NUW) || fold_cast(CastOp::ZExt, to, from, r) == Some(x);
                    let nsw =
                        !flags.has(Flags::NSW) || fold_cast(CastOp::SExt, to, from, r) == Some(x);
                    cast != CastOp::Trunc || (nuw && nsw)
                })
            }
            OpKind::Addr { .. } => {
                let address = self
                    .unit
                    .layout
                    .address(self.unit, self.body, op)
                    .expect("scalar");
                let mut sum = self
                    .get(address.base)
                    .map(|b| b.wrapping_add(address.offset as u128));
                for (value, stride) in address.terms {
                    let bits = self.bits(value);
                    let index = self
                        .get(value)
                        .and_then(|v| fold_cast(CastOp::SExt, bits, 64, v));
                    sum = sum
                        .zip(index)
                        .map(|(s, i)| s.wrapping_add(i.wrapping_mul(stride as u128)));
                }
                sum.map(|s| s & u128::from(u64::MAX))
            }
            OpKind::Freeze => Some(a[0].unwrap_or(0)),
            ref other => panic!("the evaluator does not know {other:?}"),
        })
    }
}

/// Returns whether the op violates its NSW or NUW flags.
fn violates_wrap_flags(op: BinaryOp, flags: Flags, bits: u32, x: u128, y: u128) -> bool {
    let wide = |cast: CastOp, v: u128| fold_cast(cast, bits, 128, v).unwrap_or(v);
    let exact = |cast: CastOp| {
        let (x, y) = (wide(cast, x), wide(cast, y));
        let result = match op {
            BinaryOp::Add => x.wrapping_add(y),
            BinaryOp::Sub => x.wrapping_sub(y),
            BinaryOp::Mul => x.wrapping_mul(y),
            _ => return true,
        };
        let cut = fold_cast(CastOp::Trunc, 128, bits, result).unwrap_or(result);
        wide(cast, cut) == result
    };
    (flags.has(Flags::NSW) && !exact(CastOp::SExt))
        || (flags.has(Flags::NUW) && !exact(CastOp::ZExt))
}

/// Returns whether `after` refines `before`: equal observations and result unless `before` is undefined or
/// poison.
pub fn refines(before: &Execution, after: &Execution) -> bool {
    let value = |b: &Option<u128>, a: &Option<u128>| b.is_none() || a == b;
    if before.end == Outcome::Undefined {
        return true;
    }
    if before.end == Outcome::OutOfFuel {
        // Both executions were cut off; the common prefix of observations must agree.
        let common = before
            .observed
            .iter()
            .zip(&after.observed)
            .all(|(b, a)| value(b, a));
        return after.end == Outcome::OutOfFuel && common;
    }
    let same_length = before.observed.len() == after.observed.len();
    let shown = before
        .observed
        .iter()
        .zip(&after.observed)
        .all(|(b, a)| value(b, a));
    let end = match (&before.end, &after.end) {
        (Outcome::Returned(b), Outcome::Returned(a)) => value(b, a),
        _ => false,
    };
    same_length && shown && end
}
