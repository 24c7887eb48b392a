//! Index widening: index arithmetic on ranks is computed in 64 bits, the width of addresses.
//!
//! ```text
//! sext (x + trunc t)   →   sext x + t
//! ```
//!
//! A rank has 64 bits here and 32 bits in CUDA: kernels truncate a rank, add to the result, and extend the
//! sum. An optimiser that reassociates such sums drops the no-wrap flags, and then needs a run-time test to
//! prove contiguous accesses of neighbouring threads. (Compilers widen narrow induction variables; here the
//! induction variable is wide already.)
//!
//! Place: before [`crate::fission`]. Only blocks with few threads in the first dimension are widened: with
//! many threads the run-time test is cheaper than the other widened code, such as comparisons of ranks. A
//! rank plus or minus a constant stays, because compilers track such sums. Addresses without a constant
//! thread stride stay: such accesses are gathers, and narrow indices gather faster.

use crate::addresses::thread_strides::{ThreadStrides, ValueStride};
use crate::blocks::blocks_to_lower;
use crate::{Options, PassOutcome};
use gradus_analysis::{Alias, Intervals, PassContext};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, Flags, Op, OpKind, TypeId, Unit, Value};
use std::collections::HashMap;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    _options: &Options,
) -> PassOutcome {
    let blocks = blocks_to_lower(body);
    if blocks.is_empty() {
        return PassOutcome::default();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let mut plan = WideningPlan::default();
    let is_short = |block: &Op| {
        let row = body.operands(*block).next();
        let threads = row.and_then(|row| body.as_int(unit, row));
        threads.is_some_and(|n| n <= MAX_ROW_THREADS)
    };
    for block in blocks.into_iter().filter(is_short) {
        let steps = ThreadStrides::of(unit, body, block);
        let region = body.op_regions(block)[0];
        for op in body.walk(region) {
            plan.record_op(unit, body, &alias.forms.intervals, op);
            let grows = |op: Op| matches!(steps.get(body.result(op))[0], ValueStride::Const(_));
            if plan.is_planned_extension(unit, body, &alias.forms.intervals, op) && grows(op) {
                plan.casts.push(op);
            }
        }
    }
    let long = unit.types.int(ADDRESS_BITS);
    let b = &mut Builder::new(unit, body);
    for cast in std::mem::take(&mut plan.casts) {
        let wide = plan.emit_wide_value(b, b.body.operand(cast, 0), long);
        let result = b.body.result(cast);
        b.body.replace_uses(result, wide);
        b.body.erase(cast);
    }
    PassOutcome::default()
}

/// Limit of threads in the first dimension for which a run-time test is not worthwhile.
const MAX_ROW_THREADS: i64 = 64;
/// Width of addresses, in bits.
const ADDRESS_BITS: u32 = 64;

/// Derivation of the wide form of a narrow signed integer.
#[derive(Clone, Copy, Debug)]
enum WideForm {
    /// The operand of a lossless truncation.
    Truncated(Value),
    /// The same operation on wide operands; the operation does not wrap.
    Recomputed {
        op: Op,
        /// The value is a single narrow value combined with constants only.
        constant: bool,
    },
}

#[derive(Debug, Default)]
struct WideningPlan {
    /// Narrow values derived from a truncated wide value.
    known: HashMap<Value, WideForm>,
    /// The extensions of such values.
    casts: Vec<Op>,
    /// Emitted wide values, by narrow value.
    made: HashMap<Value, Value>,
}

impl WideningPlan {
    fn record_op(&mut self, unit: &Unit, body: &Body, intervals: &Intervals, op: Op) {
        let bits = |value: Value| unit.types.int_bits(body.ty(value));
        let how = match body.kind(op) {
            OpKind::Cast(CastOp::Trunc) => {
                let from = body.operand(op, 0);
                let (low, high) = intervals.of(unit, body, from);
                let short = bits(body.result(op)).filter(|bits| (2..ADDRESS_BITS).contains(bits));
                let fits = short.is_some_and(|bits| {
                    let least = i64::MIN >> (ADDRESS_BITS - bits);
                    low >= least && high <= !least
                });
                (fits && bits(from) == Some(ADDRESS_BITS)).then_some(WideForm::Truncated(from))
            }
            OpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul)
                if (body.ops[op].flags.has(Flags::NSW)
                    || is_planted(Mutant::WrappingIndexWidened))
                    && body.operands(op).any(|v| self.known.contains_key(&v)) =>
            {
                let variable = |v: &Value| body.as_const(*v).is_none();
                let varying: Vec<Value> = body.operands(op).filter(variable).collect();
                let constant = match varying[..] {
                    [one] => !matches!(
                        self.known.get(&one),
                        Some(WideForm::Recomputed {
                            constant: false,
                            ..
                        })
                    ),
                    _ => false,
                };
                Some(WideForm::Recomputed { op, constant })
            }
            _ => None,
        };
        if let Some(how) = how {
            self.known.insert(body.result(op), how);
        }
    }

    /// Returns whether an op extends a planned value to 64 bits without changing the value.
    fn is_planned_extension(
        &self,
        unit: &Unit,
        body: &Body,
        intervals: &Intervals,
        op: Op,
    ) -> bool {
        let OpKind::Cast(cast) = *body.kind(op) else {
            return false;
        };
        let from = body.operand(op, 0);
        let signed = match cast {
            CastOp::SExt => true,
            CastOp::ZExt => {
                body.ops[op].flags.has(Flags::NNEG) || intervals.of(unit, body, from).0 >= 0
            }
            _ => false,
        };
        let long = unit.types.int_bits(body.ty(body.result(op))) == Some(ADDRESS_BITS);
        let mixed = matches!(
            self.known.get(&from),
            Some(WideForm::Recomputed {
                constant: false,
                ..
            })
        );
        signed && long && mixed
    }

    /// Emits the wide form of a narrow value.
    fn emit_wide_value(&mut self, b: &mut Builder<'_>, value: Value, long: TypeId) -> Value {
        let mut open = vec![value];
        while let Some(&value) = open.last() {
            let how = self.known.get(&value).copied();
            let wide = match how {
                _ if self.made.contains_key(&value) => None,
                Some(WideForm::Recomputed { op, .. }) => {
                    let operands: Vec<Value> = b.body.operands(op).collect();
                    let waits =
                        |v: &&Value| self.known.contains_key(v) && !self.made.contains_key(v);
                    let missing: Vec<Value> = operands.iter().filter(waits).copied().collect();
                    if !missing.is_empty() {
                        open.extend(missing);
                        continue;
                    }
                    Some(self.emit_wide_op(b, op, long))
                }
                Some(WideForm::Truncated(from)) => Some(from),
                None => None,
            };
            if let Some(wide) = wide {
                self.made.insert(value, wide);
            }
            open.pop();
        }
        self.made[&value]
    }

    /// Emits the operation on wide operands, at the narrow operation.
    fn emit_wide_op(&self, b: &mut Builder<'_>, op: Op, long: TypeId) -> Value {
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let OpKind::Binary(binary) = *b.body.kind(op) else {
            return b.body.result(op);
        };
        let operand = |b: &mut Builder<'_>, index: usize| {
            let short = b.body.operand(op, index);
            match self.made.get(&short) {
                Some(&wide) => wide,
                None => b.cast(CastOp::SExt, short, long),
            }
        };
        let (first, second) = (operand(b, 0), operand(b, 1));
        let wide = b.binary(binary, first, second);
        b.set_flags(wide, Flags::NSW);
        wide
    }
}
