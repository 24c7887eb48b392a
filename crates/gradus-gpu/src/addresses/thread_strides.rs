//! Strides of a block's values: the change from a thread to the next, and per iteration of the innermost loop.
//!
//! Place: queried by the passes that compare the access order of threads and iterations. One pass over the block
//! in program order; a value without an entry is uniform and invariant.

use crate::blocks::arms::live_terminator;
use gradus_ir::{BinaryOp, Body, CastOp, Flags, Op, OpKind, Unit, Value};
use std::collections::HashMap;

/// Change of a value per step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueStride {
    /// No change.
    None,
    /// A constant.
    Const(i64),
    /// Unknown.
    Unknown,
}

impl ValueStride {
    fn plus(self, other: ValueStride) -> ValueStride {
        match (self, other) {
            (ValueStride::None, step) | (step, ValueStride::None) => step,
            (ValueStride::Const(a), ValueStride::Const(b)) => match a.checked_add(b) {
                Some(0) => ValueStride::None,
                Some(sum) => ValueStride::Const(sum),
                None => ValueStride::Unknown,
            },
            _ => ValueStride::Unknown,
        }
    }
    fn times(self, factor: Option<i64>) -> ValueStride {
        match (self, factor) {
            (ValueStride::None, _) | (_, Some(0)) => ValueStride::None,
            (ValueStride::Const(a), Some(b)) => a
                .checked_mul(b)
                .map_or(ValueStride::Unknown, ValueStride::Const),
            _ => ValueStride::Unknown,
        }
    }
    /// Returns whether the step is a single element, up or down.
    pub fn is_unit(self, bytes: i64) -> bool {
        matches!(self, ValueStride::Const(n) if n.abs() == bytes)
    }
}

/// The change per thread, and per iteration of the innermost loop.
type StridePair = [ValueStride; 2];

/// The thread and iteration strides of a block's values.
pub(crate) struct ThreadStrides<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    of: HashMap<Value, StridePair>,
}

impl<'a> ThreadStrides<'a> {
    /// Computes the strides.
    pub fn of(unit: &'a Unit, body: &'a Body, block: Op) -> ThreadStrides<'a> {
        let region = body.op_regions(block)[0];
        let mut steps = ThreadStrides {
            unit,
            body,
            of: HashMap::new(),
        };
        if let Some(&rank) = body.region_params(region).first() {
            steps
                .of
                .insert(rank, [ValueStride::Const(1), ValueStride::None]);
        }
        for op in body.walk(region) {
            steps.record_op(op);
        }
        steps
    }
    /// The change of a value per thread, and per iteration.
    pub fn get(&self, value: Value) -> StridePair {
        self.of
            .get(&value)
            .copied()
            .unwrap_or([ValueStride::None; 2])
    }

    /// Records the thread and iteration strides of `op`'s results and region parameters.
    fn record_op(&mut self, op: Op) {
        let body = self.body;
        match body.kind(op) {
            OpKind::For { .. } => {
                let region = body.op_regions(op)[0];
                let carried = body.operands(op).skip(1);
                let params = body.region_params(region);
                for (&param, initial) in params[1..].iter().zip(carried) {
                    self.of
                        .insert(param, [self.get(initial)[0], ValueStride::Unknown]);
                }
                self.of
                    .insert(params[0], [ValueStride::None, ValueStride::Const(1)]);
            }
            OpKind::Loop { .. } => {
                let params = body.region_params(body.op_regions(op)[0]);
                for (index, &param) in params.iter().enumerate() {
                    let first = self.get(body.operand(op, index))[0];
                    self.of
                        .insert(param, [first, self.iteration_stride(op, index)]);
                }
            }
            _ => {}
        }
        let both = match body.op_regions(op).is_empty() {
            true => [self.result_stride(op, 0), self.result_stride(op, 1)],
            false => [ValueStride::Unknown; 2],
        };
        if both != [ValueStride::None; 2] {
            for &result in body.results(op) {
                self.of.insert(result, both);
            }
        }
    }

    /// The change of a loop-carried value per iteration: a constant, or unknown.
    fn iteration_stride(&self, lp: Op, index: usize) -> ValueStride {
        let body = self.body;
        let region = body.op_regions(lp)[0];
        let next = live_terminator(body, region).map(|end| body.operand(end, index + 1));
        let sum = next.and_then(|next| body.def_op(next)).filter(|op| {
            let adds = matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add));
            adds && body.operand(*op, 0) == body.region_params(region)[index]
        });
        let by = sum.and_then(|op| body.as_int(self.unit, body.operand(op, 1)));
        by.map_or(ValueStride::Unknown, ValueStride::Const)
    }

    /// The change of an op's result per thread (`which` = 0) or iteration (1).
    fn result_stride(&self, op: Op, which: usize) -> ValueStride {
        let body = self.body;
        let operand = |i: usize| body.operand(op, i);
        let of = |value: Value| self.get(value)[which];
        let int = |value: Value| body.as_int(self.unit, value);
        match body.kind(op) {
            OpKind::Binary(BinaryOp::Add) => of(operand(0)).plus(of(operand(1))),
            OpKind::Binary(BinaryOp::Or) if body.ops[op].flags.has(Flags::DISJOINT) => {
                of(operand(0)).plus(of(operand(1)))
            }
            OpKind::Binary(BinaryOp::Sub) => of(operand(0)).plus(of(operand(1)).times(Some(-1))),
            OpKind::Binary(BinaryOp::Mul) => match (of(operand(0)), of(operand(1))) {
                (step, ValueStride::None) => step.times(int(operand(1))),
                (ValueStride::None, step) => step.times(int(operand(0))),
                _ => ValueStride::Unknown,
            },
            OpKind::Binary(BinaryOp::Shl) if of(operand(1)) == ValueStride::None => {
                let shift = int(operand(1)).and_then(|n| u32::try_from(n).ok());
                of(operand(0)).times(shift.and_then(|n| 1i64.checked_shl(n)))
            }
            OpKind::Cast(CastOp::ZExt | CastOp::SExt | CastOp::Trunc) | OpKind::Freeze => {
                of(operand(0))
            }
            OpKind::Addr { .. } => match self.unit.layout.address(self.unit, body, op) {
                Some(address) => address
                    .terms
                    .iter()
                    .fold(of(address.base), |sum, &(index, bytes)| {
                        sum.plus(of(index).times(Some(bytes)))
                    }),
                None => ValueStride::Unknown,
            },
            _ if body.operands(op).all(|v| of(v) == ValueStride::None) => ValueStride::None,
            _ => ValueStride::Unknown,
        }
    }
}
