//! Argmin/argmax reductions and `lastprivate` values: recomputes the selected iteration outside the loop.
//!
//! The adjoint of `if (x > most) most = x` flows to the last iteration that raised the maximum.
//! Differentiating the loop directly would save a comparison per iteration and serialise the iterations in
//! both passes. The rewritten program has three parts:
//!
//! - the loop, which yields only the extremal value;
//! - a second independent loop, which finds the selected iteration;
//! - a recomputation of the selected iteration's value, which AD differentiates.
//!
//! The value set by a known iteration n − 1 of n (`lastprivate`) is treated alike.
//!
//! 1. The loop is independent and carries a float minimum or maximum, combined once per iteration, or a float
//!    set by a single iteration and not read otherwise.
//! 2. The iteration's value can be recomputed: by arithmetic, math functions, branches and loops, and by
//!    loads from memory that the loop does not clobber.
//! 3. Among equal values the comparison determines whether the first or the last iteration is selected; the
//!    initial value comes first. Values are equal if their bits are equal. If no recomputed value has the bits
//!    of the result, rounding differed (vectorised functions, reassociated sums). A third loop then recomputes
//!    all iterations in order.
//!
//! Runs in the simplification of bodies to differentiate; the primal program is unchanged.

use crate::scalar::dce;
use gradus_analysis::{Alias, Clobbers, ExitClobbers, PassContext};
use gradus_edit::{
    CarriedValue, MinMax, ReductionKind, ValueMap, carried_value, clone_op_within, is_pure,
};
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Definition, Flags, FloatKind, FloatPredicate, IntPredicate,
    Op, OpKind, ReduceOp, Region, Type, Unit, Value,
};
use std::collections::HashSet;

/// Maximum number of ops to recompute a value.
const OPS_MAX: usize = 1000;
/// Maximum nesting depth of such loops.
const DEPTH_MAX: usize = 4;
/// Sentinel iteration number: no iteration is selected.
const NO_ITERATION: i64 = -1;

/// Carried value that a single iteration determines.
struct SelectedIteration {
    lp: Op,
    /// Index among the carried values.
    index: usize,
    /// Value that an iteration contributes.
    contribution: Value,
    /// Ops of the loop's region that compute the contribution, in order.
    ops: Vec<Op>,
    selected_by: SelectedBy,
}

/// Selection of the iteration.
#[derive(Clone, Copy)]
enum SelectedBy {
    /// First or last iteration with the minimum or maximum.
    Extremum { first: bool, greatest: bool },
    /// Iteration with the given number, if the trip count exceeds the number.
    Index(Value),
}

/// Returns whether a body may have such loops.
pub fn has_argminmax(unit: &Unit, body: &Body) -> bool {
    !candidates(unit, body).is_empty()
}

/// Rewrites min/max results to the recomputed value of the selected iteration; returns the number of
/// rewritten results.
pub fn recompute_argminmax(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    let mut count = 0;
    for _ in 0..DEPTH_MAX {
        let found = innermost_candidates(unit, body, facts);
        if found.is_empty() {
            break;
        }
        for one in &found {
            rewrite_result(unit, body, one);
        }
        count += found.len();
    }
    if count > 0 {
        // Removes carried values that became dead.
        dce::run(unit, body, facts);
    }
    count
}

/// Returns the recomputable carried values, excluding loops that contain other such loops.
fn innermost_candidates(unit: &Unit, body: &Body, facts: &PassContext) -> Vec<SelectedIteration> {
    let mut found = candidates(unit, body);
    if found.is_empty() {
        return found;
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
    found.retain(|one| {
        let all = one.ops.iter().flat_map(|op| with_nested_ops(body, *op));
        let mut reads = all.flat_map(|op| clobbers.reads_of(op));
        reads.all(|read| !clobbers.clobbered_in(read, one.lp))
    });
    let loops: HashSet<Op> = found.iter().map(|one| one.lp).collect();
    found.retain(|one| {
        let mut inside = body.walk(body.op_regions(one.lp)[0]);
        !inside.any(|op| loops.contains(&op))
    });
    found
}

fn candidates(unit: &Unit, body: &Body) -> Vec<SelectedIteration> {
    let loops = body.walk(body.root());
    let loops = loops.filter(|op| body.is_independent(*op));
    let all = loops.flat_map(|lp| {
        let carried = 0..body.operand_count(lp) - 1;
        carried.filter_map(move |index| match_candidate(unit, body, lp, index))
    });
    all.collect()
}

fn match_candidate(unit: &Unit, body: &Body, lp: Op, index: usize) -> Option<SelectedIteration> {
    let result = body.results(lp)[index];
    let kind = unit.types.get(body.ty(result));
    let is_float = matches!(kind, Type::Float(FloatKind::F32 | FloatKind::F64));
    let trips = unit.types.int_bits(body.ty(body.operand(lp, 0)));
    let is_bits = |op: Op| matches!(body.kind(op), OpKind::Cast(CastOp::BitCast));
    if !is_float
        || trips.is_none_or(|bits| bits > 64)
        || body.uses(result).all(|used| is_bits(used.op))
    {
        return None;
    }
    let region = body.op_regions(lp)[0];
    let carried = body.region_params(region)[1 + index];
    let end = body.yield_of(region)?;
    let next = body.operand(end, index);
    let (given, by) = match carried_value(unit, body, lp, index) {
        Some(CarriedValue::Constant) => return None,
        Some(CarriedValue::Reduced(combines)) => {
            match_min_max(unit, body, combines, carried, next)?
        }
        None => match_single_assignment(body, region, carried, next)?,
    };
    let ops = recomputable_ops(unit, body, region, given)?;
    Some(SelectedIteration {
        lp,
        index,
        contribution: given,
        ops,
        selected_by: by,
    })
}

/// Matches `i == n ? given : carried` as the next value, if the carried value has no other use.
fn match_single_assignment(
    body: &Body,
    region: Region,
    carried: Value,
    next: Value,
) -> Option<(Value, SelectedBy)> {
    let select = body.def_op(next)?;
    let is_here = |op: Op| body.parent(op) == Some(region);
    let is_alone = body.uses(carried).all(|used| used.op == select);
    if !matches!(body.kind(select), OpKind::Select) || !is_here(select) || !is_alone {
        return None;
    }
    let test = body.def_op(body.operand(select, 0))?;
    let (set, kept) = match body.kind(test) {
        OpKind::ICmp(IntPredicate::Eq) => (1, 2),
        OpKind::ICmp(IntPredicate::Ne) => (2, 1),
        _ => return None,
    };
    let number = body.region_params(region)[0];
    let compared = [body.operand(test, 0), body.operand(test, 1)];
    let other = compared.iter().position(|v| *v == number)?;
    let at = compared[1 - other];
    let inside = body.is_defined_in(at, region);
    (!inside && body.operand(select, kept) == carried)
        .then(|| (body.operand(select, set), SelectedBy::Index(at)))
}

/// Returns the value combined with the carried value, and which of equal values is selected.
fn match_min_max(
    unit: &Unit,
    body: &Body,
    combines: ReductionKind,
    carried: Value,
    next: Value,
) -> Option<(Value, SelectedBy)> {
    use FloatPredicate::{Oge, Ogt, Olt};
    let greatest = match combines {
        ReductionKind::By(ReduceOp::FMax) => true,
        ReductionKind::By(ReduceOp::FMin) => false,
        ReductionKind::Choice { predicate, .. } => matches!(predicate, Ogt | Oge),
        ReductionKind::By(_) => return None,
    };
    let op = body.def_op(next)?;
    let (both, first) = match body.kind(op) {
        OpKind::Select => {
            let choice = MinMax::of(body, next)?;
            // A strict comparison selects the second of equal operands.
            let strict = matches!(choice.predicate, Olt | Ogt);
            (
                [choice.first, choice.second],
                strict == (choice.second == carried),
            )
        }
        OpKind::Call(_) => match unit.call_args(body, op)[..] {
            [a, b] => ([a, b], a == carried),
            _ => return None,
        },
        _ => return None,
    };
    let given = both[usize::from(both[0] == carried)];
    both.contains(&carried).then_some(())?;
    Some((given, SelectedBy::Extremum { first, greatest }))
}

/// Returns the ops of a loop's region that compute a value from the index, in order, if all can be
/// recomputed.
fn recomputable_ops(unit: &Unit, body: &Body, region: Region, value: Value) -> Option<Vec<Op>> {
    let params = body.region_params(region);
    let (mut open, mut wanted) = (vec![value], HashSet::new());
    while let Some(value) = open.pop() {
        if params[1..].contains(&value) {
            return None;
        }
        let Definition::Result(op, _) = body.values[value].def else {
            continue;
        };
        if body.parent(op) != Some(region) || !wanted.insert(op) {
            continue;
        }
        for inner in with_nested_ops(body, op) {
            if wanted.len() > OPS_MAX || !can_recompute(unit, body, inner) {
                return None;
            }
            open.extend(body.operands(inner));
        }
    }
    let ops = body.ops_in(region).filter(|op| wanted.contains(op));
    Some(ops.collect())
}

fn with_nested_ops(body: &Body, op: Op) -> impl Iterator<Item = Op> + '_ {
    let inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
    std::iter::once(op).chain(inner)
}

fn can_recompute(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) => access.is_plain(),
        OpKind::Alloca(_) => false,
        OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
        OpKind::Yield | OpKind::Repeat => true,
        OpKind::Call(_) => {
            let known = unit.known_callee(body, op);
            matches!(known, Some(ExternalFn::Math(_))) || is_pure(unit, body, op)
        }
        _ => is_pure(unit, body, op),
    }
}

/// After the loop, finds the selected iteration, recomputes its value and replaces the uses of the loop's
/// result.
fn rewrite_result(unit: &mut Unit, body: &mut Body, found: &SelectedIteration) {
    let lp = found.lp;
    let Some(after) = body.next(lp) else {
        unreachable!("a terminator follows a loop");
    };
    let result = body.results(lp)[found.index];
    let initial = body.operand(lp, 1 + found.index);
    let ty = body.ty(result);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(after);
    let (nobody, which, bits) = match found.selected_by {
        SelectedBy::Index(at) => {
            let trips = b.body.operand(lp, 0);
            // A loop without iterations has no selected iteration.
            let ty = b.body.ty(at);
            let at = b.value(OpKind::Freeze, &[at], ty);
            let nobody = b.icmp(IntPredicate::Uge, at, trips);
            (nobody, at, None)
        }
        SelectedBy::Extremum { first, greatest } => {
            let (nobody, which, bits) = emit_selection(&mut b, found, [first, greatest]);
            (nobody, which, b.body.def_op(bits))
        }
    };
    let (choice, yes, no) = b.if_(nobody, &[ty]);
    let back = b.set_insertion_end(yes);
    b.yield_(&[initial]);
    b.set_insertion_end(no);
    let given = recompute_iteration(&mut b, found, which);
    b.yield_(&[given]);
    b.restore_insertion_point(back);
    let winner = b.body.result(choice);
    b.body.replace_uses(result, winner);
    if let Some(cast) = bits {
        b.body.set_operand(cast, 0, result);
    }
}

/// Returns whether the initial value is selected, otherwise the number of the selected iteration, and the
/// bits of the result.
fn emit_selection(
    b: &mut Builder<'_>,
    found: &SelectedIteration,
    [first, greatest]: [bool; 2],
) -> (Value, Value, Value) {
    let result = b.body.results(found.lp)[found.index];
    let initial = b.body.operand(found.lp, 1 + found.index);
    let kind = b.unit.types.float_kind(b.body.ty(result));
    let width = b.unit.types.int(kind.map_or(64, FloatKind::bits));
    let bits = b.value(OpKind::Cast(CastOp::BitCast), &[result], width);
    let seen = emit_search(b, found, bits, first);
    let none = b.i64(NO_ITERATION);
    let begin = b.cast(CastOp::BitCast, initial, width);
    let kept = b.icmp(IntPredicate::Eq, begin, bits);
    let unseen = b.icmp(IntPredicate::Eq, seen, none);
    let zero = b.bool(false);
    let lost = b.select(kept, zero, unseen);
    let long = b.body.ty(seen);
    let (choice, yes, no) = b.if_(lost, &[long]);
    let back = b.set_insertion_end(yes);
    let which = emit_serial_search(b, found, [first, greatest]);
    b.yield_(&[which]);
    b.set_insertion_end(no);
    b.yield_(&[seen]);
    b.restore_insertion_point(back);
    let which = b.body.result(choice);
    let mut nobody = b.icmp(IntPredicate::Eq, which, none);
    if first {
        nobody = b.binary(BinaryOp::Or, nobody, kept);
    }
    (nobody, which, bits)
}

/// Emits a serial loop that recomputes all values and returns the selected iteration.
fn emit_serial_search(
    b: &mut Builder<'_>,
    found: &SelectedIteration,
    [first, greatest]: [bool; 2],
) -> Value {
    let trips = b.body.operand(found.lp, 0);
    let (initial, none) = (
        b.body.operand(found.lp, 1 + found.index),
        b.i64(NO_ITERATION),
    );
    let (lp, region) = b.for_(trips, &[none, initial]);
    let back = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let given = recompute_iteration(b, found, params[0]);
    let predicate = match (greatest, first) {
        (true, true) => FloatPredicate::Ogt,
        (true, false) => FloatPredicate::Oge,
        (false, true) => FloatPredicate::Olt,
        (false, false) => FloatPredicate::Ole,
    };
    let better = b.fcmp(predicate, given, params[2]);
    let number = gradus_edit::to_i64(b, params[0]);
    let next = b.select(better, number, params[1]);
    let best = b.select(better, given, params[2]);
    b.yield_(&[next, best]);
    b.restore_insertion_point(back);
    b.body.results(lp)[0]
}

/// Returns the first or last iteration whose value has the given bits; [`NO_ITERATION`] if there is none.
fn emit_search(
    b: &mut Builder<'_>,
    found: &SelectedIteration,
    sought: Value,
    first: bool,
) -> Value {
    let trips = b.body.operand(found.lp, 0);
    let none = b.i64(NO_ITERATION);
    let (lp, region) = b.for_(trips, &[none]);
    b.body.ops[lp].flags = Flags::INDEPENDENT;
    let back = b.set_insertion_end(region);
    let params = b.body.region_params(region).to_vec();
    let bits = b.body.ty(sought);
    let given = recompute_iteration(b, found, params[0]);
    let given = b.cast(CastOp::BitCast, given, bits);
    let same = b.icmp(IntPredicate::Eq, given, sought);
    let number = gradus_edit::to_i64(b, params[0]);
    let here = b.select(same, number, none);
    let earlier = match first {
        true => IntPredicate::Ult,
        false => IntPredicate::Sgt,
    };
    let better = b.icmp(earlier, here, params[1]);
    let next = b.select(better, here, params[1]);
    b.yield_(&[next]);
    b.restore_insertion_point(back);
    b.body.result(lp)
}

/// Recomputes the contribution of iteration `index` at the builder's insertion point.
fn recompute_iteration(b: &mut Builder<'_>, found: &SelectedIteration, index: Value) -> Value {
    let old = b.body.region_params(b.body.op_regions(found.lp)[0])[0];
    let ty = b.body.ty(old);
    let index = match b.body.ty(index) == ty {
        true => index,
        false => b.cast(CastOp::Trunc, index, ty),
    };
    let mut map = ValueMap::zip(&[old], &[index]);
    for &op in &found.ops {
        clone_op_within(op, b, &mut map);
    }
    map.get_or_same(found.contribution)
}
