//! What one iteration of a loop gives: the least or greatest number, and what the last one leaves.
//!
//! A derivative of `if (x > most) most = x` goes to the iteration that raised it last. Followed through the loop, that
//! takes a comparison kept of every iteration and goes from one to the next, in both sweeps. Here the loop gives the
//! number alone; a second one, whose iterations are independent as well, finds which of them gave it, and what that one
//! computes is computed once more behind it. That is what is differentiated. So it is with what iteration n − 1 of n
//! leaves, of which it is known that it does (`lastprivate`).
//!
//! 1. The loop's iterations are independent, and it carries a reduction by which the less or the greater of two floats is
//!    taken, combined once in an iteration, or a float that one iteration sets, which nothing looks at.
//! 2. What is given can be computed again: by arithmetic, mathematical functions, branches and loops, and by loads of
//!    what the loop leaves as it is.
//! 3. Where two give the same number, the first keeps it or the last takes it, as the comparison says; what the loop
//!    begins with comes first. Numbers are the same if they have the same bits. Where none has, as numbers may be rounded
//!    otherwise when they are computed again (vectors of functions, sums that may be regrouped), a third loop goes through
//!    all of them in their order.
//!
//! Place: in what is differentiated, when it is simplified; the program itself runs as it did.

use crate::{Facts, dce};
use gradus_analysis::{AfterEnd, Alias, Clobbers};
use gradus_edit::{Carried, Combines, Extreme, ValueMap, carried_value, clone_op_within, is_pure};
use gradus_ir::known::Known;
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Definition, Flags, FloatKind, FloatPredicate, IntPredicate,
    Op, OpKind, ReduceOp, Region, Type, Unit, Value,
};
use std::collections::HashSet;

/// Numbers that take more ops are left to the loop.
const MOST_OPS: usize = 1000;
/// So many such loops may stand in one another.
const DEEPEST: usize = 4;
/// The number of no iteration.
const NONE: i64 = -1;

/// A number that a loop carries, and that one iteration gives.
struct Winner {
    lp: Op,
    /// Which of the carried values.
    index: usize,
    /// What an iteration gives.
    given: Value,
    /// The ops of the loop's region that it takes, in order.
    ops: Vec<Op>,
    by: By,
}

/// Which iteration it is.
#[derive(Clone, Copy)]
enum By {
    /// The first or the last one that gave the greatest or least number.
    Comparison { first: bool, greatest: bool },
    /// The one of this number, if there are as many.
    Number(Value),
}

/// Whether a body may have such loops.
pub fn has_winners(unit: &Unit, body: &Body) -> bool {
    !candidates(unit, body).is_empty()
}

/// Has what is made of a loop's extreme numbers come from the iteration that gave them; says how many there are.
pub fn winners(unit: &mut Unit, body: &mut Body, facts: &Facts) -> usize {
    let mut count = 0;
    for _ in 0..DEEPEST {
        let found = innermost(unit, body, facts);
        if found.is_empty() {
            break;
        }
        for one in &found {
            rebuild(unit, body, one);
        }
        count += found.len();
    }
    if count > 0 {
        // What the loop carried for it, where nothing else wants it.
        dce::run(unit, body, facts);
    }
    count
}

/// The loops' numbers that can be computed again, without those of loops around other such loops.
fn innermost(unit: &Unit, body: &Body, facts: &Facts) -> Vec<Winner> {
    let mut found = candidates(unit, body);
    if found.is_empty() {
        return found;
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, AfterEnd::default());
    found.retain(|one| {
        let all = one.ops.iter().flat_map(|op| with_inner(body, *op));
        let mut reads = all.flat_map(|op| clobbers.reads_of(op));
        reads.all(|read| !clobbers.destroyed_in(read, one.lp))
    });
    let loops: HashSet<Op> = found.iter().map(|one| one.lp).collect();
    found.retain(|one| {
        let mut inside = body.walk(body.op_regions(one.lp)[0]);
        !inside.any(|op| loops.contains(&op))
    });
    found
}

fn candidates(unit: &Unit, body: &Body) -> Vec<Winner> {
    let loops = body.walk(body.root()).filter(|op| {
        matches!(body.kind(*op), OpKind::For { .. }) && body.ops[*op].flags.has(Flags::INDEPENDENT)
    });
    let all = loops.flat_map(|lp| {
        let carried = 0..body.operand_count(lp) - 1;
        carried.filter_map(move |index| winner(unit, body, lp, index))
    });
    all.collect()
}

fn winner(unit: &Unit, body: &Body, lp: Op, index: usize) -> Option<Winner> {
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
    let end = body.last(region);
    let end = end.filter(|end| matches!(body.kind(*end), OpKind::Yield))?;
    let next = body.operand(end, index);
    let (given, by) = match carried_value(unit, body, lp, index) {
        Some(Carried::Constant) => return None,
        Some(Carried::Reduced(combines)) => combined(unit, body, combines, carried, next)?,
        None => set_once(body, region, carried, next)?,
    };
    let ops = again(unit, body, region, given)?;
    Some(Winner {
        lp,
        index,
        given,
        ops,
        by,
    })
}

/// What a carried value becomes in one iteration, `i == n ? given : carried`, if nothing else looks at it.
fn set_once(body: &Body, region: Region, carried: Value, next: Value) -> Option<(Value, By)> {
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
    let inside = body
        .region_of(at)
        .is_some_and(|r| body.is_inside(r, region));
    (!inside && body.operand(select, kept) == carried)
        .then(|| (body.operand(select, set), By::Number(at)))
}

/// What is combined with a carried value, and which of two same ones is taken.
fn combined(
    unit: &Unit,
    body: &Body,
    combines: Combines,
    carried: Value,
    next: Value,
) -> Option<(Value, By)> {
    use FloatPredicate::{Oge, Ogt, Olt};
    let greatest = match combines {
        Combines::By(ReduceOp::FMax) => true,
        Combines::By(ReduceOp::FMin) => false,
        Combines::Choice { predicate, .. } => matches!(predicate, Ogt | Oge),
        Combines::By(_) => return None,
    };
    let op = body.def_op(next)?;
    let (both, first) = match body.kind(op) {
        OpKind::Select => {
            let choice = Extreme::of(body, next)?;
            // Of two same numbers the second is taken where the comparison is strict.
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
    Some((given, By::Comparison { first, greatest }))
}

/// The ops of a loop's region by which a value comes from its index, in order, if all can be done once more.
fn again(unit: &Unit, body: &Body, region: Region, value: Value) -> Option<Vec<Op>> {
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
        for inner in with_inner(body, op) {
            if wanted.len() > MOST_OPS || !may_be_repeated(unit, body, inner) {
                return None;
            }
            open.extend(body.operands(inner));
        }
    }
    let ops = body.ops_in(region).filter(|op| wanted.contains(op));
    Some(ops.collect())
}

fn with_inner(body: &Body, op: Op) -> impl Iterator<Item = Op> + '_ {
    let inner = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
    std::iter::once(op).chain(inner)
}

fn may_be_repeated(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) => access.is_plain(),
        OpKind::Alloca(_) => false,
        OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
        OpKind::Yield | OpKind::Repeat => true,
        OpKind::Call(_) => {
            let known = unit.callee(body, op).and_then(|func| unit.known(func));
            matches!(known, Some(Known::Math(_))) || is_pure(unit, body, op)
        }
        _ => is_pure(unit, body, op),
    }
}

/// Behind the loop: which iteration gave the number, and its number computed again, of which everything is made then.
fn rebuild(unit: &mut Unit, body: &mut Body, found: &Winner) {
    let lp = found.lp;
    let Some(after) = body.next(lp) else {
        unreachable!("a terminator stands behind a loop");
    };
    let result = body.results(lp)[found.index];
    let initial = body.operand(lp, 1 + found.index);
    let ty = body.ty(result);
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.at_op(after);
    let (nobody, which, bits) = match found.by {
        By::Number(at) => {
            let trips = b.body.operand(lp, 0);
            // Where the loop does not run, nobody has asked for that number.
            let ty = b.body.ty(at);
            let at = b.value(OpKind::Freeze, &[at], ty);
            let nobody = b.icmp(IntPredicate::Uge, at, trips);
            (nobody, at, None)
        }
        By::Comparison { first, greatest } => {
            let (nobody, which, bits) = compared(&mut b, found, [first, greatest]);
            (nobody, which, b.body.def_op(bits))
        }
    };
    let (choice, yes, no) = b.if_(nobody, &[ty]);
    let back = b.at_end(yes);
    b.yield_(&[initial]);
    b.at_end(no);
    let given = once_more(&mut b, found, which);
    b.yield_(&[given]);
    b.restore(back);
    let winner = b.body.result(choice);
    b.body.replace_uses(result, winner);
    if let Some(cast) = bits {
        b.body.set_operand(cast, 0, result);
    }
}

/// Whether what the loop begins with is its number, the iteration that gave it otherwise, and the number's bits.
fn compared(
    b: &mut Builder<'_>,
    found: &Winner,
    [first, greatest]: [bool; 2],
) -> (Value, Value, Value) {
    let result = b.body.results(found.lp)[found.index];
    let initial = b.body.operand(found.lp, 1 + found.index);
    let kind = b.unit.types.float_kind(b.body.ty(result));
    let width = b.unit.types.int(kind.map_or(64, FloatKind::bits));
    let bits = b.value(OpKind::Cast(CastOp::BitCast), &[result], width);
    let seen = search(b, found, bits, first);
    let none = b.i64(NONE);
    let begin = b.cast(CastOp::BitCast, initial, width);
    let kept = b.icmp(IntPredicate::Eq, begin, bits);
    let unseen = b.icmp(IntPredicate::Eq, seen, none);
    let zero = b.bool(false);
    let lost = b.select(kept, zero, unseen);
    let long = b.body.ty(seen);
    let (choice, yes, no) = b.if_(lost, &[long]);
    let back = b.at_end(yes);
    let which = in_order(b, found, [first, greatest]);
    b.yield_(&[which]);
    b.at_end(no);
    b.yield_(&[seen]);
    b.restore(back);
    let which = b.body.result(choice);
    let mut nobody = b.icmp(IntPredicate::Eq, which, none);
    if first {
        nobody = b.binary(BinaryOp::Or, nobody, kept);
    }
    (nobody, which, bits)
}

/// The iteration whose number is the greatest or least as all are computed again, one after the other.
fn in_order(b: &mut Builder<'_>, found: &Winner, [first, greatest]: [bool; 2]) -> Value {
    let trips = b.body.operand(found.lp, 0);
    let (initial, none) = (b.body.operand(found.lp, 1 + found.index), b.i64(NONE));
    let (lp, region) = b.for_(trips, &[none, initial]);
    let back = b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let given = once_more(b, found, params[0]);
    let predicate = match (greatest, first) {
        (true, true) => FloatPredicate::Ogt,
        (true, false) => FloatPredicate::Oge,
        (false, true) => FloatPredicate::Olt,
        (false, false) => FloatPredicate::Ole,
    };
    let better = b.fcmp(predicate, given, params[2]);
    let number = number_of(b, params[0]);
    let next = b.select(better, number, params[1]);
    let best = b.select(better, given, params[2]);
    b.yield_(&[next, best]);
    b.restore(back);
    b.body.results(lp)[0]
}

/// A loop's index as a number of 64 bits.
fn number_of(b: &mut Builder<'_>, index: Value) -> Value {
    let long = b.unit.types.int(64);
    match b.body.ty(index) == long {
        true => index,
        false => b.cast(CastOp::ZExt, index, long),
    }
}

/// The first or the last iteration that gave a number with these bits; [`NONE`] where that was none.
fn search(b: &mut Builder<'_>, found: &Winner, sought: Value, first: bool) -> Value {
    let trips = b.body.operand(found.lp, 0);
    let none = b.i64(NONE);
    let (lp, region) = b.for_(trips, &[none]);
    b.body.ops[lp].flags = Flags::INDEPENDENT;
    let back = b.at_end(region);
    let params = b.body.region_params(region).to_vec();
    let bits = b.body.ty(sought);
    let given = once_more(b, found, params[0]);
    let given = b.cast(CastOp::BitCast, given, bits);
    let same = b.icmp(IntPredicate::Eq, given, sought);
    let number = number_of(b, params[0]);
    let here = b.select(same, number, none);
    let earlier = match first {
        true => IntPredicate::Ult,
        false => IntPredicate::Sgt,
    };
    let better = b.icmp(earlier, here, params[1]);
    let next = b.select(better, here, params[1]);
    b.yield_(&[next]);
    b.restore(back);
    b.body.result(lp)
}

/// What iteration `index` gives, where the builder stands.
fn once_more(b: &mut Builder<'_>, found: &Winner, index: Value) -> Value {
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
    map.get_or_same(found.given)
}
