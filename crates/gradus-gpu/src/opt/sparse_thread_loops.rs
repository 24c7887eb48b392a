//! Strip-mines sparse thread loops: loops in which only every k-th thread is active step by k threads.
//!
//! ```text
//! for t < n { if (t + c) & k == 0 { … } }
//!     →   if k + 1 is a power of two, and no small one {
//!             for j < … { t = (-c & k) + j · (k + 1); if (t + c) & k == 0 { … } }
//!         } else { as before }
//! ```
//!
//! The pattern is a tree reduction in shared memory, `if (t % (2 * s) == 0) a[t] += a[t + s]` with doubled
//! `s`. A block of 512 threads runs nine such loops; each tests all threads, and the last test holds for a
//! single thread. A remainder by a power of two arrives as a mask; a remainder by another divisor is
//! accepted if nothing is added to the thread index.
//!
//! Place: after [`crate::grid_to_loops`]. Skipped iterations have no effect, because the test does not hold. The test
//! itself stays.

use crate::{Options, PassOutcome};
use gradus_analysis::PassContext;
use gradus_edit::{ValueMap, clone_ops_within, is_removable};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, Region, Unit, Value};

/// Minimum step: below, testing all threads with vectors costs no more.
const MIN_STEP: i64 = 8;
/// Limit of inspected conjuncts.
const MAX_CONJUNCTS: usize = 16;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    _facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    if options.sparse_thread_loops {
        let loops = body.walk(body.root());
        let found: Vec<SparseLoop> = loops
            .filter_map(|op| match_sparse_loop(unit, body, op))
            .collect();
        for loop_of_few in found {
            strip_mine(unit, body, &loop_of_few);
        }
    }
    PassOutcome::default()
}

/// A thread loop with active threads at a constant distance.
#[derive(Clone, Copy, Debug)]
struct SparseLoop {
    lp: Op,
    apart: ActiveThreads,
}

/// The active threads.
#[derive(Clone, Copy, Debug)]
enum ActiveThreads {
    /// Active if `(rank + plus) & mask == 0`.
    Masked { plus: Option<Value>, mask: Value },
    /// Active if the rank is a multiple of `of`. A negative `signed` divisor is not strip-mined.
    Multiples { of: Value, signed: bool },
}

fn match_sparse_loop(unit: &Unit, body: &Body, lp: Op) -> Option<SparseLoop> {
    let counted = matches!(body.kind(lp), OpKind::For { .. }) && body.operand_count(lp) == 1;
    counted.then_some(())?;
    let long = unit.types.int_bits(body.ty(body.operand(lp, 0))) == Some(64);
    long.then_some(())?;
    let region = body.op_regions(lp)[0];
    let rank = body.region_params(region)[0];
    let does = |op: &Op| {
        let idle = is_removable(unit, body, *op) && body.op_regions(*op).is_empty();
        !idle && !body.kind(*op).is_terminator()
    };
    let mut doing = body.ops_in(region).filter(does);
    let branch = doing
        .next()
        .filter(|op| matches!(body.kind(*op), OpKind::If))?;
    let other = body.op_regions(branch)[1];
    let only_then = doing.next().is_none() && body.first(other) == body.last(other);
    only_then.then_some(())?;
    let trips = body.as_int(unit, body.operand(lp, 0));
    let tests = conjuncts(unit, body, body.operand(branch, 0));
    let apart = tests
        .into_iter()
        .find_map(|test| match_active_threads(unit, body, region, (rank, trips), test))?;
    Some(SparseLoop { lp, apart })
}

/// The conjuncts of a condition.
fn conjuncts(unit: &Unit, body: &Body, condition: Value) -> Vec<Value> {
    let mut all = vec![condition];
    let mut next = 0;
    while let Some(&value) = all.get(next).filter(|_| all.len() < MAX_CONJUNCTS) {
        next += 1;
        let Some(op) = body.def_op(value) else {
            continue;
        };
        let no = |index| body.as_int(unit, body.operand(op, index)) == Some(0);
        match body.kind(op) {
            OpKind::Binary(BinaryOp::And) => all.extend(body.operands(op)),
            OpKind::Select if no(2) => all.extend(body.operands(op).take(2)),
            _ => {}
        }
    }
    all
}

fn match_active_threads(
    unit: &Unit,
    body: &Body,
    region: Region,
    (rank, trips): (Value, Option<i64>),
    test: Value,
) -> Option<ActiveThreads> {
    let common = |v: Value| !body.is_defined_in(v, region);
    let compare = body.def_op(test)?;
    let is_zero = matches!(body.kind(compare), OpKind::ICmp(IntPredicate::Eq))
        && body.as_int(unit, body.operand(compare, 1)) == Some(0);
    let rest = body.def_op(body.operand(compare, 0)).filter(|_| is_zero)?;
    let (left, right) = (
        body.operand(rest, 0),
        *body.operands(rest).collect::<Vec<_>>().get(1)?,
    );
    let bits = unit
        .types
        .int_bits(body.ty(left))
        .filter(|bits| matches!(bits, 32 | 64))?;
    // The rank, or the rank truncated.
    let is_rank = |v: Value| {
        let cast = body
            .def_op(v)
            .filter(|op| matches!(body.kind(*op), OpKind::Cast(CastOp::Trunc)));
        v == rank || cast.is_some_and(|op| body.operand(op, 0) == rank)
    };
    let is_variable = |v: &Value| body.as_const(*v).is_none();
    match body.kind(rest) {
        OpKind::Binary(BinaryOp::And) => {
            let sides = [(left, right), (right, left)];
            let (place, mask) = sides.into_iter().find(|(_, mask)| common(*mask))?;
            Some(mask).filter(is_variable)?;
            if is_rank(place) {
                return Some(ActiveThreads::Masked { plus: None, mask });
            }
            let sum = body
                .def_op(place)
                .filter(|op| matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add)))?;
            let sides = [(0, 1), (1, 0)].map(|(a, b)| (body.operand(sum, a), body.operand(sum, b)));
            let (_, plus) = sides
                .into_iter()
                .find(|(own, plus)| is_rank(*own) && common(*plus))?;
            Some(ActiveThreads::Masked {
                plus: Some(plus),
                mask,
            })
        }
        OpKind::Binary(kind @ (BinaryOp::URem | BinaryOp::SRem)) => {
            let whole = trips.is_some_and(|n| n < 1 << (bits - 1).min(62));
            let fits = whole && is_rank(left) && common(right) && is_variable(&right);
            let signed = matches!(kind, BinaryOp::SRem);
            fits.then_some(ActiveThreads::Multiples { of: right, signed })
        }
        _ => None,
    }
}

/// Emits the loop with a step, under a run-time test of the step.
fn strip_mine(unit: &mut Unit, body: &mut Body, sparse: &SparseLoop) {
    let lp = sparse.lp;
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(lp);
    b.loc = b.body.ops[lp].loc;
    let trips = b.body.operand(lp, 0);
    let ty = b.body.ty(trips);
    let (first, step, far) = match sparse.apart {
        ActiveThreads::Masked { plus, mask } => {
            let narrow = b.body.ty(mask);
            let (zero, one) = (b.zero(narrow), b.int(narrow, 1));
            let plus = plus.unwrap_or(zero);
            // Freezes both values: with a trip count of zero the original loop never evaluates the test.
            let [plus, mask] = [plus, mask].map(|v| b.value(OpKind::Freeze, &[v], narrow));
            let minus = b.sub(zero, plus);
            let first = match is_planted(Mutant::SparseLoopFromZero) {
                true => zero,
                false => b.binary(BinaryOp::And, minus, mask),
            };
            let next = b.add(mask, one);
            let both = b.binary(BinaryOp::And, mask, next);
            let even = b.icmp(IntPredicate::Eq, both, zero);
            let least = b.int(narrow, i128::from(MIN_STEP) - 1);
            let far = b.icmp(IntPredicate::Sge, mask, least);
            let (first, mask) = (
                b.cast(CastOp::ZExt, first, ty),
                b.cast(CastOp::ZExt, mask, ty),
            );
            let one = b.int(ty, 1);
            (first, b.add(mask, one), b.binary(BinaryOp::And, even, far))
        }
        ActiveThreads::Multiples { of, signed } => {
            let narrow = b.body.ty(of);
            let of = b.value(OpKind::Freeze, &[of], narrow);
            let least = b.int(narrow, MIN_STEP.into());
            let predicate = match signed {
                true => IntPredicate::Sge,
                false => IntPredicate::Uge,
            };
            let far = b.icmp(predicate, of, least);
            (b.zero(ty), b.cast(CastOp::ZExt, of, ty), far)
        }
    };
    let (_, yes, no) = b.if_(far, &[]);
    let back = b.set_insertion_end(yes);
    let some = b.icmp(IntPredicate::Ult, first, trips);
    let (one, zero) = (b.int(ty, 1), b.zero(ty));
    let rest = b.sub(trips, first);
    let before = b.sub(rest, one);
    let whole = b.binary(BinaryOp::UDiv, before, step);
    let count = match is_planted(Mutant::SparseLoopLastLost) {
        true => whole,
        false => b.add(whole, one),
    };
    let count = b.select(some, count, zero);
    let (made, into) = b.for_(count, &[]);
    b.body.ops[made].flags = b.body.ops[lp].flags;
    let number = b.body.region_params(into)[0];
    b.set_insertion_end(into);
    let far = b.mul(number, step);
    let rank = b.add(first, far);
    let region = b.body.op_regions(lp)[0];
    let mut local = ValueMap::zip(b.body.region_params(region), &[rank]);
    clone_ops_within(region, b, &mut local);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    b.yield_(&[]);
    let end = {
        b.set_insertion_end(no);
        b.yield_(&[])
    };
    b.restore_insertion_point(back);
    b.body.detach(lp);
    b.body.insert_before(end, lp);
}
