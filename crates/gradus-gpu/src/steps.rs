//! Loops that threads run in step: where threads that follow each other read what lies side by side, and
//! one thread what lies far apart, all threads make one iteration before any makes the next.
//!
//! ```text
//! for t { for k { s[t] += a[k·n + t] } }   →   for k { for t { s[t] += a[k·n + t] } }
//! ```
//!
//! So does a loop that adds up, for each thread, what all of them read: a compiler may not regroup such a sum and
//! leaves it one number at a time, but the sums of many threads are a vector.
//!
//! ```text
//! for t { for k { s[t] += f(a[k], t) } }   →   for k { for t { s[t] += f(a[k], t) } }
//! ```
//!
//! Loops that threads leave one by one may be run in step, too, where all leave at about the same time: each goes on
//! while its place, one further than its neighbour's, is below a limit that they have in common; or the number of
//! its iterations is what is left behind its place, divided by the stride that they have in common.
//!
//! Place: before [`crate::spine`], which cuts at these loops as it does at loops that hold a barrier.
//! This order of threads is one that a GPU may take, unless one thread waits for another: kernels with
//! atomics, volatile accesses or calls that do something keep their order. Whether a loop gains is
//! guessed from how its addresses change from thread to thread and from iteration to iteration; a wrong
//! guess costs time alone.

use crate::cut::reached_end;
use gradus_edit::is_pure;
use gradus_ir::known::{Known, MathFn};
use gradus_ir::{
    AllocaPlace, BinaryOp, Body, CastOp, Flags, Op, OpKind, Region, TypeId, Unit, Value,
};
use std::collections::HashMap;

/// The fewest threads side by side that a gain is expected from.
const LEAST_THREADS: i64 = 8;
/// A loop of so many ops in all its iterations is unrolled instead.
const UNROLLED: i64 = 400;

/// A loop that gains from being run in step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InStep {
    /// The loop.
    pub op: Op,
    /// Whether its threads leave it at about the same time, if not together.
    pub nearly_common: bool,
}

/// The loops of a block that gain from being run in step; without nested loops.
pub(crate) fn in_step(unit: &Unit, body: &Body, block: Op) -> Vec<InStep> {
    let region = body.op_regions(block)[0];
    let extent = body.operands(block).next();
    let few = extent.and_then(|n| body.as_int(unit, n));
    if few.is_some_and(|n| n < LEAST_THREADS) || !is_orderless(unit, body, region) {
        return Vec::new();
    }
    let steps = Steps::of(unit, body, block);
    let mut gaining = Vec::new();
    for op in body.walk(region) {
        let nearly_common = steps.leave_nearly_together(op);
        let counted = matches!(body.kind(op), OpKind::For { .. });
        if (counted || nearly_common) && steps.gains(op) {
            gaining.push(InStep { op, nearly_common });
        }
    }
    gaining
}

/// Whether no thread can wait for another, and nobody sees the order in which threads run.
fn is_orderless(unit: &Unit, body: &Body, region: Region) -> bool {
    body.walk(region).all(|op| match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } | OpKind::Fence { .. } => false,
        OpKind::Critical(_) => false,
        OpKind::Call(_) => is_pure(unit, body, op),
        _ => true,
    })
}

/// What one step adds to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    None,
    /// So much.
    By(i64),
    /// Something else.
    Other,
}

impl Step {
    fn plus(self, other: Step) -> Step {
        match (self, other) {
            (Step::None, step) | (step, Step::None) => step,
            (Step::By(a), Step::By(b)) => match a.checked_add(b) {
                Some(0) => Step::None,
                Some(sum) => Step::By(sum),
                None => Step::Other,
            },
            _ => Step::Other,
        }
    }
    fn times(self, factor: Option<i64>) -> Step {
        match (self, factor) {
            (Step::None, _) | (_, Some(0)) => Step::None,
            (Step::By(a), Some(b)) => a.checked_mul(b).map_or(Step::Other, Step::By),
            _ => Step::Other,
        }
    }
    /// Whether it goes from one element to the next or to the last.
    fn is_next(self, bytes: i64) -> bool {
        matches!(self, Step::By(n) if n.abs() == bytes)
    }
}

/// From thread to thread, and from iteration to iteration of the innermost loop.
type Both = [Step; 2];

/// The steps of the values of a block.
pub(crate) struct Steps<'a> {
    unit: &'a Unit,
    body: &'a Body,
    of: HashMap<Value, Both>,
}

impl<'a> Steps<'a> {
    /// Finds them.
    pub fn of(unit: &'a Unit, body: &'a Body, block: Op) -> Steps<'a> {
        let region = body.op_regions(block)[0];
        let mut steps = Steps {
            unit,
            body,
            of: HashMap::new(),
        };
        if let Some(&rank) = body.region_params(region).first() {
            steps.of.insert(rank, [Step::By(1), Step::None]);
        }
        for op in body.walk(region) {
            steps.enter(op);
        }
        steps
    }
    /// What one step adds to a value: from thread to thread, and from iteration to iteration.
    pub fn get(&self, value: Value) -> Both {
        self.of.get(&value).copied().unwrap_or([Step::None; 2])
    }

    /// Enters what an op gives, and what its regions begin with.
    fn enter(&mut self, op: Op) {
        let body = self.body;
        match body.kind(op) {
            OpKind::For { .. } => {
                let region = body.op_regions(op)[0];
                let carried = body.operands(op).skip(1);
                let params = body.region_params(region);
                for (&param, initial) in params[1..].iter().zip(carried) {
                    self.of.insert(param, [self.get(initial)[0], Step::Other]);
                }
                self.of.insert(params[0], [Step::None, Step::By(1)]);
            }
            OpKind::Loop { .. } => {
                let params = body.region_params(body.op_regions(op)[0]);
                for (index, &param) in params.iter().enumerate() {
                    let first = self.get(body.operand(op, index))[0];
                    self.of.insert(param, [first, self.turn(op, index)]);
                }
            }
            _ => {}
        }
        let both = match body.op_regions(op).is_empty() {
            true => [self.result(op, 0), self.result(op, 1)],
            false => [Step::Other; 2],
        };
        if both != [Step::None; 2] {
            for &result in body.results(op) {
                self.of.insert(result, both);
            }
        }
    }

    /// What an iteration of a loop adds to what it carries: a number, or something.
    fn turn(&self, lp: Op, index: usize) -> Step {
        let body = self.body;
        let region = body.op_regions(lp)[0];
        let next = reached_end(body, region).map(|end| body.operand(end, index + 1));
        let sum = next.and_then(|next| body.def_op(next)).filter(|op| {
            let adds = matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add));
            adds && body.operand(*op, 0) == body.region_params(region)[index]
        });
        let by = sum.and_then(|op| body.as_int(self.unit, body.operand(op, 1)));
        by.map_or(Step::Other, Step::By)
    }

    /// Whether the threads of a loop leave it at about the same time.
    fn leave_nearly_together(&self, lp: Op) -> bool {
        match self.body.kind(lp) {
            OpKind::For { .. } => self.is_share(self.body.operand(lp, 0)),
            OpKind::Loop { .. } => self.goes_on_below(lp),
            _ => false,
        }
    }

    /// Whether a number of iterations is a place one further than its neighbour's, or that far from what all have in
    /// common, divided by what they have in common; or that for some threads, and the same for all others.
    fn is_share(&self, mut trips: Value) -> bool {
        let body = self.body;
        let common = |value: Value| self.get(value)[0] == Step::None;
        while let Some(op) = body.def_op(trips) {
            let operand = |i: usize| body.operand(op, i);
            trips = match body.kind(op) {
                OpKind::Binary(BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::LShr) => {
                    return common(operand(1))
                        && matches!(self.get(operand(0))[0], Step::By(1 | -1));
                }
                OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if common(operand(1)) => operand(0),
                OpKind::Select if common(operand(2)) => operand(1),
                OpKind::Cast(CastOp::ZExt | CastOp::SExt | CastOp::Trunc) => operand(0),
                _ => return false,
            };
        }
        false
    }

    /// Whether each thread goes on while a place one further than its neighbour's has not reached what all have
    /// in common.
    fn goes_on_below(&self, lp: Op) -> bool {
        let body = self.body;
        let again = reached_end(body, body.op_regions(lp)[0]).map(|end| body.operand(end, 0));
        let test = again.and_then(|again| body.def_op(again));
        let test = test.filter(|op| matches!(body.kind(*op), OpKind::ICmp(_)));
        let sides = test.map(|op| [0, 1].map(|i| self.get(body.operand(op, i))[0]));
        let one_further = |step: Step| matches!(step, Step::By(1));
        sides.is_some_and(|[a, b]| {
            one_further(a) && b == Step::None || a == Step::None && one_further(b)
        })
    }

    /// What one step adds to the result of an op.
    fn result(&self, op: Op, which: usize) -> Step {
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
                (step, Step::None) => step.times(int(operand(1))),
                (Step::None, step) => step.times(int(operand(0))),
                _ => Step::Other,
            },
            OpKind::Binary(BinaryOp::Shl) if of(operand(1)) == Step::None => {
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
                None => Step::Other,
            },
            _ if body.operands(op).all(|v| of(v) == Step::None) => Step::None,
            _ => Step::Other,
        }
    }

    /// Whether more accesses of a loop lie side by side from thread to thread than do not, and none does
    /// from iteration to iteration; or whether all threads read the same, and each adds up.
    fn gains(&self, lp: Op) -> bool {
        let (unit, body) = (self.unit, self.body);
        let region = body.op_regions(lp)[0];
        let trips = match body.kind(lp) {
            OpKind::For { .. } => body.as_int(unit, body.operand(lp, 0)),
            _ => None,
        };
        let ops = body.walk(region).count() as i64;
        if trips.is_some_and(|trips| trips.saturating_mul(ops) <= UNROLLED) {
            return false;
        }
        let (mut gaining, mut scattered, mut common) = (0, 0, 0);
        for op in body.walk(region) {
            let (address, ty): (Value, TypeId) = match body.kind(op) {
                OpKind::Load(_) => (body.operand(op, 0), body.ty(body.result(op))),
                OpKind::Store(_) => (body.operand(op, 1), body.ty(body.operand(op, 0))),
                OpKind::Call(_) if is_vector_call(unit, body, op) => continue,
                OpKind::Call(_) | OpKind::Alloca(_) | OpKind::Barrier(_) => return false,
                OpKind::For { .. } | OpKind::Loop { .. } | OpKind::Spmd { .. } => return false,
                _ => continue,
            };
            let bytes = unit.layout.store_bytes(unit, ty) as i64;
            let [thread, turn] = self.get(address);
            match thread {
                _ if self.is_own_memory(address) => scattered += 1,
                Step::None if matches!(body.kind(op), OpKind::Store(_)) => scattered += 1,
                Step::None => common += i64::from(turn != Step::None),
                _ if thread.is_next(bytes) => {
                    gaining += i64::from(turn != Step::None && !turn.is_next(bytes))
                }
                _ if turn.is_next(bytes) => return false,
                _ => scattered += 1,
            }
        }
        let adds_up = || common > 0 && scattered == 0 && self.adds_up(lp);
        gaining > scattered || adds_up()
    }

    /// Whether a loop carries a floating-point sum that differs from thread to thread.
    fn adds_up(&self, lp: Op) -> bool {
        let body = self.body;
        let region = body.op_regions(lp)[0];
        let Some(end) = body.last(region) else {
            return false;
        };
        let is_sum = |value: Value| {
            let kind = body.def_op(value).map(|op| body.kind(op));
            let adds = matches!(kind, Some(OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub)));
            adds && self.get(value)[0] != Step::None
        };
        body.operands(end).any(is_sum)
    }

    /// Whether an address leads into what each thread has of its own.
    fn is_own_memory(&self, mut address: Value) -> bool {
        let body = self.body;
        while let Some(op) = body.def_op(address) {
            match body.kind(op) {
                OpKind::Addr { .. } => address = body.operand(op, 0),
                OpKind::Alloca(info) => return info.place != AllocaPlace::Shared,
                _ => return false,
            }
        }
        false
    }
}

/// Whether a call is one instruction, also of vectors.
fn is_vector_call(unit: &Unit, body: &Body, op: Op) -> bool {
    use MathFn::{Ceil, Copysign, Fabs, Floor, Fma, Sqrt};
    match unit.callee(body, op).and_then(|func| unit.known(func)) {
        Some(Known::Integer(_)) => true,
        Some(Known::Math(f)) => matches!(f, Ceil | Copysign | Fabs | Floor | Fma | Sqrt),
        _ => false,
    }
}
