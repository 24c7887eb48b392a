//! Loops of tasks become parallel loops over their pieces.
//!
//! Each piece is a task: it runs the task's function for a range of iterations, with what the task takes along in
//! memory of its own. Without a clause there are as many as leave something to share, and the parallel loop is split
//! as is worth it. With one the pieces are what the program asks for, each of them worth a task, since it may rely on
//! them: what a piece has of its own (`firstprivate`) goes on from one iteration to the next, and iterations of one
//! piece may meet in memory. So many iterations have a piece:
//! - `grainsize(g)`: `g` or more, in as many pieces as have that, alike but for one iteration; `strict`: `g`, and the
//!   last piece what is left;
//! - `num_tasks(m)`: what makes `m` pieces, alike but for one iteration.
//!
//! Where the `if` clause says no, and where no region is around, pieces run in their order. A `final` clause is for
//! what is made inside of the pieces.

use super::calls::{Step, reason};
use super::tasks::{
    Conditions, DESTRUCTORS, DETACHABLE, Made, filled, filling, final_flag, is_null,
    is_plain_filling, leads_to, made, may_have, run, spawn,
};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, FuncId, IntPredicate, Op, OpKind, Unit, Value};

/// Which iterations are a piece.
#[derive(Clone, Copy)]
enum Clause {
    /// Any.
    None,
    /// `grainsize`.
    Grain(Value),
    /// `grainsize(strict: …)`.
    Strict(Value),
    /// `num_tasks`.
    Pieces(Value),
}

/// So many pieces has a loop that does not say how many.
const PIECES: i128 = 1024;

/// A loop of tasks as it is handed over.
struct TaskLoop {
    alloc: Op,
    made: Made,
    /// The ops that fill in the task.
    fill: Vec<Op>,
    /// Where the task's bounds lie.
    bounds: [Value; 2],
    lower: Value,
    upper: Value,
    stride: Value,
    clause: Clause,
    /// Whether a task is told that it has the last iteration.
    tells_last: bool,
}

/// How pieces are run.
#[derive(Clone, Copy)]
enum Way {
    /// As iterations of a parallel loop.
    AtOnce,
    /// As tasks, that no region may be around.
    Tasks,
    /// One after the other.
    InOrder,
}

/// Raises the loop that `call` hands over; an `orphaned` one may stand outside of all regions. Gives the function that
/// it calls now.
pub(super) fn raise(
    unit: &mut Unit,
    body: &mut Body,
    alloc: Op,
    call: Op,
    orphaned: bool,
) -> Step<FuncId> {
    let given = unit.call_args(body, call);
    let found = read(unit, body, alloc, call).map_err(|text| reason(unit, body, call, text))?;
    let asked = body.as_int(unit, given[3]);
    let flags = unit.call_args(body, alloc)[2];
    let known = body.as_int(unit, flags);
    let mut b = Builder::new(unit, body);
    b.at_op(call);
    b.loc = b.body.ops[call].loc;
    let serial = final_flag(&mut b, flags, known);
    let pieces = Pieces::of(&mut b, &found);
    let way = match orphaned {
        true => Way::Tasks,
        false => Way::AtOnce,
    };
    match asked {
        Some(0) => found.put(&mut b, &pieces, Way::InOrder, serial),
        Some(_) => found.put(&mut b, &pieces, way, serial),
        None => {
            let ty = b.body.ty(given[3]);
            let zero = b.int(ty, 0);
            let condition = b.icmp(IntPredicate::Ne, given[3], zero);
            let (_, deferred, otherwise) = b.if_(condition, &[]);
            for (region, way) in [(deferred, way), (otherwise, Way::InOrder)] {
                b.at_end(region);
                found.put(&mut b, &pieces, way, serial);
                b.at_end(region);
                b.yield_(&[]);
            }
        }
    }
    body.erase(call);
    for &op in found.fill.iter().rev() {
        body.erase(op);
    }
    body.erase(alloc);
    Ok(found.made.entry)
}

/// What is handed over.
fn read(unit: &Unit, body: &Body, alloc: Op, call: Op) -> Result<TaskLoop, &'static str> {
    let given = unit.call_args(body, call);
    const UNKNOWN: &str = "this loop of tasks is made in a way that is not understood";
    const TAKEN: &str = "what this loop of tasks takes along is not understood";
    let last = match given.len() {
        11 => Some((None, given[10])),
        12 => Some((Some(given[10]), given[11])),
        _ => None,
    };
    let (strict, duplicate) = last.ok_or(UNKNOWN)?;
    let made = made(unit, body, alloc).ok_or(UNKNOWN)?;
    if may_have(
        unit,
        body,
        unit.call_args(body, alloc)[2],
        DESTRUCTORS | DETACHABLE,
    ) {
        return Err("the tasks of this loop take objects with destructors along, or are detached");
    }
    let fill = filling(unit, body, alloc, call).ok_or(TAKEN)?;
    let stored = |address: Value| {
        let is_store = |op: &&Op| {
            matches!(body.kind(**op), OpKind::Store(_)) && body.operand(**op, 1) == address
        };
        let store = fill.iter().rev().find(is_store);
        store.map(|&op| body.operand(op, 0)).ok_or(TAKEN)
    };
    if !fill.iter().all(|&op| is_plain_filling(unit, body, op)) {
        return Err(TAKEN);
    }
    // What copies a task for a part of the loop also says to it whether it is the last one.
    let tells_last = !is_null(unit, body, duplicate);
    if tells_last && !leads_to(body, given[5], body.result(alloc)) {
        return Err("where this loop of tasks says which part is the last is not understood");
    }
    let stride = match body.def_op(given[6]).filter(|op| fill.contains(op)) {
        Some(load) => stored(body.operand(load, 0))?,
        None => given[6],
    };
    let is_strict = strict.is_some_and(|strict| body.as_int(unit, strict) != Some(0));
    let clause = match body.as_int(unit, given[8]) {
        Some(0) => Clause::None,
        Some(1) if is_strict => Clause::Strict(given[9]),
        Some(1) => Clause::Grain(given[9]),
        Some(2) => Clause::Pieces(given[9]),
        _ => return Err(UNKNOWN),
    };
    let (lower, upper) = (stored(given[4])?, stored(given[5])?);
    let ty = body.ty(lower);
    let alike = [upper, stride, given[9]].iter().all(|v| body.ty(*v) == ty);
    alike.then_some(()).ok_or(UNKNOWN)?;
    Ok(TaskLoop {
        alloc,
        made,
        fill,
        bounds: [given[4], given[5]],
        lower,
        upper,
        stride,
        clause,
        tells_last,
    })
}

// ---- which iterations a piece has --------------------------------------------------------------

/// The pieces of a loop.
struct Pieces {
    count: Value,
    of_each: OfEach,
}

/// How many iterations a piece has.
#[derive(Clone, Copy)]
enum OfEach {
    /// So many, or one more: the first so many pieces.
    Even(Value, Value, Value),
    /// So many, as long as there are, of so many in all.
    Fixed(Value, Value),
}

impl Pieces {
    fn of(b: &mut Builder<'_>, lp: &TaskLoop) -> Pieces {
        let trips = trips(b, lp);
        let ty = b.body.ty(trips);
        let zero = b.int(ty, 0);
        let count = match lp.clause {
            Clause::None => {
                let most = b.int(ty, PIECES);
                least(b, most, trips)
            }
            Clause::Grain(grain) => {
                let grain = one_at_least(b, grain);
                let whole = b.binary(BinaryOp::UDiv, trips, grain);
                let some = one_at_least(b, whole);
                let none = b.icmp(IntPredicate::Eq, trips, zero);
                b.select(none, zero, some)
            }
            Clause::Strict(grain) => {
                let grain = one_at_least(b, grain);
                let whole = b.binary(BinaryOp::UDiv, trips, grain);
                let left = b.binary(BinaryOp::URem, trips, grain);
                let more = b.icmp(IntPredicate::Ne, left, zero);
                let more = b.cast(CastOp::ZExt, more, ty);
                return Pieces {
                    count: b.add(whole, more),
                    of_each: OfEach::Fixed(grain, trips),
                };
            }
            Clause::Pieces(wanted) => {
                let wanted = one_at_least(b, wanted);
                least(b, wanted, trips)
            }
        };
        let by = one_at_least(b, count);
        let each = b.binary(BinaryOp::UDiv, trips, by);
        let more = b.binary(BinaryOp::URem, trips, by);
        let one = b.int(ty, 1);
        let longer = b.add(each, one);
        Pieces {
            count,
            of_each: OfEach::Even(each, longer, more),
        }
    }

    /// The number of the first iteration of a piece, and of its last one.
    fn range(&self, b: &mut Builder<'_>, piece: Value) -> (Value, Value) {
        let ty = b.body.ty(piece);
        let one = b.int(ty, 1);
        let (first, length) = match self.of_each {
            OfEach::Even(each, longer, more) => {
                let whole = b.mul(piece, each);
                let before = least(b, piece, more);
                let is_longer = b.icmp(IntPredicate::Ult, piece, more);
                (b.add(whole, before), b.select(is_longer, longer, each))
            }
            OfEach::Fixed(each, trips) => {
                let first = b.mul(piece, each);
                let left = b.sub(trips, first);
                (first, least(b, each, left))
            }
        };
        let end = b.add(first, length);
        (first, b.sub(end, one))
    }
}

/// How many iterations there are.
fn trips(b: &mut Builder<'_>, lp: &TaskLoop) -> Value {
    let ty = b.body.ty(lp.lower);
    let zero = b.int(ty, 0);
    let span = b.sub(lp.upper, lp.lower);
    let reach = b.add(span, lp.stride);
    let trips = match b.body.as_int(b.unit, lp.stride) {
        Some(1) => reach,
        _ => b.binary(BinaryOp::SDiv, reach, lp.stride),
    };
    let some = b.icmp(IntPredicate::Sgt, trips, zero);
    b.select(some, trips, zero)
}

fn one_at_least(b: &mut Builder<'_>, value: Value) -> Value {
    if b.body.as_int(b.unit, value).is_some_and(|n| n > 0) {
        return value;
    }
    let ty = b.body.ty(value);
    let (zero, one) = (b.int(ty, 0), b.int(ty, 1));
    let none = b.icmp(IntPredicate::Eq, value, zero);
    b.select(none, one, value)
}

/// The lesser of two numbers without signs.
fn least(b: &mut Builder<'_>, first: Value, second: Value) -> Value {
    let is_first = b.icmp(IntPredicate::Ult, first, second);
    b.select(is_first, first, second)
}

// ---- the loop ----------------------------------------------------------------------------------

impl TaskLoop {
    /// Puts the loop over the pieces at the builder's place.
    fn put(&self, b: &mut Builder<'_>, pieces: &Pieces, way: Way, serial: Option<Value>) {
        // A piece that the program names is worth a task.
        let worth = (!matches!(self.clause, Clause::None)).then_some(1);
        let piece = over(b, pieces.count, way, serial, worth);
        let (memory, map) = filled(b, self.alloc, self.made.size, self.made.shared, &self.fill);
        let [low, high] = self.bounds.map(|at| map.get_or_same(at));
        let (first, last) = pieces.range(b, piece);
        for (number, at) in [(first, low), (last, high)] {
            let steps = b.mul(number, self.stride);
            let bound = b.add(self.lower, steps);
            b.store(bound, at);
        }
        if self.tells_last {
            // Behind the bounds: the stride, and whether this is the last piece.
            let offset = b.i64(16);
            let flag = b.byte_addr(high, offset);
            let ty = b.body.ty(piece);
            let one = b.int(ty, 1);
            let next = b.add(piece, one);
            let is_last = b.icmp(IntPredicate::Eq, next, pieces.count);
            let int = b.unit.types.int(32);
            let is_last = b.cast(CastOp::ZExt, is_last, int);
            b.store(is_last, flag);
        }
        run(b, self.made.entry, memory);
        b.yield_(&[]);
    }
}

/// A loop over pieces; the builder goes to where the code of one stands. Gives its number.
fn over(
    b: &mut Builder<'_>,
    count: Value,
    way: Way,
    serial: Option<Value>,
    worth: Option<u64>,
) -> Value {
    let never = Some(b.bool(false));
    let task: Option<Conditions> = match way {
        Way::Tasks => Some((None, serial)),
        Way::InOrder => Some((never, serial)),
        Way::AtOnce => serial.map(|_| (never, serial)),
    };
    if !matches!(way, Way::AtOnce) {
        let scope = b.op(OpKind::Scope, &[], &[], 1);
        let all = b.body.op_regions(scope)[0];
        b.at_end(all);
        let end = b.yield_(&[]);
        b.at_op(end);
    }
    let (_, region) = match way {
        Way::AtOnce => b.par_for(count, &[], worth),
        Way::Tasks | Way::InOrder => b.for_(count, &[]),
    };
    b.at_end(region);
    if let Some(conditions) = task {
        let end = b.yield_(&[]);
        b.at_op(end);
        spawn(b, conditions);
    }
    b.body.region_params(region)[0]
}
