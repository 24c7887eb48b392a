//! Selects loops for thread interchange: all threads run an iteration before any thread runs the next.
//!
//! Interchange pays off if neighbouring threads access contiguous memory, and successive iterations of a
//! thread do not.
//!
//! ```text
//! for t { for k { s[t] += a[k·n + t] } }   →   for k { for t { s[t] += a[k·n + t] } }
//! ```
//!
//! A loop that sums uniform loads per thread also profits. A compiler may not reassociate a floating-point
//! sum and emits scalar code, but the sums of neighbouring threads form a vector.
//!
//! ```text
//! for t { for k { s[t] += f(a[k], t) } }   →   for k { for t { s[t] += f(a[k], t) } }
//! ```
//!
//! A divergent loop is a candidate if the trip counts of the threads are close. One form continues while an
//! index of thread stride 1 is below a uniform limit. In the other form, the trip count is the distance from
//! such an index to a limit, divided by a uniform stride.
//!
//! Place: before [`crate::blocks::skeleton`], which splits at these loops as at loops with a barrier. A GPU may run the
//! threads in this order, unless a thread waits for another thread: kernels with atomics, volatile accesses
//! or calls with side effects keep their order. Profitability is estimated from thread and iteration strides
//! of the addresses; a wrong estimate costs time only.

use crate::addresses::thread_strides::{ThreadStrides, ValueStride};
use crate::blocks::arms::live_terminator;
use gradus_edit::is_pure;
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{AllocaStorage, BinaryOp, Body, CastOp, Op, OpKind, Region, TypeId, Unit, Value};

/// Minimum number of threads in the first dimension.
const MIN_THREADS: i64 = 8;
/// A loop with at most this many ops over all iterations is unrolled instead.
const MAX_UNROLLED_OPS: i64 = 400;

/// A loop that profits from interchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterchangeLoop {
    /// The loop.
    pub op: Op,
    /// The trip counts of the threads are close, though not equal.
    pub close_trip_counts: bool,
}

/// The loops of a block that profit from interchange; loops with nested loops are excluded.
pub(crate) fn interchange_loops(unit: &Unit, body: &Body, block: Op) -> Vec<InterchangeLoop> {
    let region = body.op_regions(block)[0];
    let extent = body.operands(block).next();
    let few = extent.and_then(|n| body.as_int(unit, n));
    if few.is_some_and(|n| n < MIN_THREADS) || !is_order_unobservable(unit, body, region) {
        return Vec::new();
    }
    let steps = ThreadStrides::of(unit, body, block);
    let mut gaining = Vec::new();
    for op in body.walk(region) {
        let nearly_common = steps.trip_counts_are_close(op);
        let counted = matches!(body.kind(op), OpKind::For { .. });
        if (counted || nearly_common) && steps.is_profitable(op) {
            gaining.push(InterchangeLoop {
                op,
                close_trip_counts: nearly_common,
            });
        }
    }
    gaining
}

/// Returns whether no thread can wait for another thread, and the thread order is not observable.
fn is_order_unobservable(unit: &Unit, body: &Body, region: Region) -> bool {
    body.walk(region).all(|op| match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } | OpKind::Fence { .. } => false,
        OpKind::Critical(_) => false,
        OpKind::Call(_) => is_pure(unit, body, op),
        _ => true,
    })
}

impl ThreadStrides<'_> {
    /// Returns whether the trip counts of a loop's threads are close.
    fn trip_counts_are_close(&self, lp: Op) -> bool {
        match self.body.kind(lp) {
            OpKind::For { .. } => self.has_close_quotient(self.body.operand(lp, 0)),
            OpKind::Loop { .. } => self.has_uniform_bound(lp),
            _ => false,
        }
    }

    /// Matches a trip count of the form `d / uniform ± uniform`, for a dividend `d` with thread stride 1 or
    /// -1. A `select` may yield a uniform value for some threads.
    fn has_close_quotient(&self, mut trips: Value) -> bool {
        let body = self.body;
        let common = |value: Value| self.get(value)[0] == ValueStride::None;
        while let Some(op) = body.def_op(trips) {
            let operand = |i: usize| body.operand(op, i);
            trips = match body.kind(op) {
                OpKind::Binary(BinaryOp::UDiv | BinaryOp::SDiv | BinaryOp::LShr) => {
                    return common(operand(1))
                        && matches!(self.get(operand(0))[0], ValueStride::Const(1 | -1));
                }
                OpKind::Binary(BinaryOp::Add | BinaryOp::Sub) if common(operand(1)) => operand(0),
                OpKind::Select if common(operand(2)) => operand(1),
                OpKind::Cast(CastOp::ZExt | CastOp::SExt | CastOp::Trunc) => operand(0),
                _ => return false,
            };
        }
        false
    }

    /// Returns whether each thread continues while an index of thread stride 1 compares with a uniform
    /// bound.
    fn has_uniform_bound(&self, lp: Op) -> bool {
        let body = self.body;
        let again = live_terminator(body, body.op_regions(lp)[0]).map(|end| body.operand(end, 0));
        let test = again.and_then(|again| body.def_op(again));
        let test = test.filter(|op| matches!(body.kind(*op), OpKind::ICmp(_)));
        let sides = test.map(|op| [0, 1].map(|i| self.get(body.operand(op, i))[0]));
        let one_further = |step: ValueStride| matches!(step, ValueStride::Const(1));
        sides.is_some_and(|[a, b]| {
            one_further(a) && b == ValueStride::None || a == ValueStride::None && one_further(b)
        })
    }

    /// Returns whether interchange is profitable: more accesses are contiguous across threads than not, and
    /// none is contiguous across iterations. A loop with uniform loads that carries a sum per thread is
    /// profitable, too.
    fn is_profitable(&self, lp: Op) -> bool {
        let (unit, body) = (self.unit, self.body);
        let region = body.op_regions(lp)[0];
        let trips = match body.kind(lp) {
            OpKind::For { .. } => body.as_int(unit, body.operand(lp, 0)),
            _ => None,
        };
        let ops = body.walk(region).count() as i64;
        if trips.is_some_and(|trips| trips.saturating_mul(ops) <= MAX_UNROLLED_OPS) {
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
                _ if self.is_private_memory(address) => scattered += 1,
                ValueStride::None if matches!(body.kind(op), OpKind::Store(_)) => scattered += 1,
                ValueStride::None => common += i64::from(turn != ValueStride::None),
                _ if thread.is_unit(bytes) => {
                    gaining += i64::from(turn != ValueStride::None && !turn.is_unit(bytes))
                }
                _ if turn.is_unit(bytes) => return false,
                _ => scattered += 1,
            }
        }
        let adds_up = || common > 0 && scattered == 0 && self.carries_private_sum(lp);
        gaining > scattered || adds_up()
    }

    /// Returns whether a loop carries a floating-point sum that differs between threads.
    fn carries_private_sum(&self, lp: Op) -> bool {
        let body = self.body;
        let region = body.op_regions(lp)[0];
        let Some(end) = body.last(region) else {
            return false;
        };
        let is_sum = |value: Value| {
            let kind = body.def_op(value).map(|op| body.kind(op));
            let adds = matches!(kind, Some(OpKind::Binary(BinaryOp::FAdd | BinaryOp::FSub)));
            adds && self.get(value)[0] != ValueStride::None
        };
        body.operands(end).any(is_sum)
    }

    /// Returns whether an address points into private memory of a thread.
    fn is_private_memory(&self, address: Value) -> bool {
        let body = self.body;
        let base = body.def_op(body.address_base(address));
        base.is_some_and(|op| {
            matches!(body.kind(op), OpKind::Alloca(info) if info.storage != AllocaStorage::Shared)
        })
    }
}

/// Returns whether a call is a single instruction, also for vectors.
fn is_vector_call(unit: &Unit, body: &Body, op: Op) -> bool {
    use MathFn::{Ceil, Copysign, Fabs, Floor, Fma, Sqrt};
    match unit.known_callee(body, op) {
        Some(ExternalFn::Integer(_)) => true,
        Some(ExternalFn::Math(f)) => matches!(f, Ceil | Copysign | Fabs | Floor | Fma | Sqrt),
        _ => false,
    }
}
