//! Conversion of counted loops to `for`: compares the execution before and after for all loop shapes and
//! corner-case bounds.

use crate::eval::{Outcome, refines, run};
use gradus_edit::loops_to_fors;
use gradus_ir::{
    AttrSet, BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, OpKind, Region, Unit, Value,
};

/// Value that the loop test reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TestedValue {
    Next,
    Current,
    Beyond(i64),
}

/// Guard around the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Guard {
    None,
    /// The loop's condition on its start value.
    OwnCondition,
    /// The loop in the false arm of the inverted condition.
    Inverted,
    /// `start != bound`.
    NotEqual,
}

/// Loop over `i8` from parameter 0 to parameter 1 that observes its index.
#[derive(Clone, Copy, Debug)]
struct Case {
    predicate: IntPredicate,
    step: i64,
    flags: Flags,
    tested: TestedValue,
    guard: Guard,
    /// An additional exit prevents a proof of termination.
    has_extra_exit: bool,
    negated: bool,
}

const BITS: u32 = 8;

fn observe(unit: &mut Unit) -> gradus_ir::FuncId {
    let void = unit.types.void();
    let i8 = unit.types.int(BITS);
    let ty = unit.types.func(void, vec![i8]);
    unit.declare("observe", ty, AttrSet::default())
}

fn build(case: Case, start: Option<i64>, bound: Option<i64>) -> (Unit, Body) {
    let mut unit = Unit::default();
    let show = observe(&mut unit);
    let i8 = unit.types.int(BITS);
    let mut body = Body::new(&[i8, i8]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let start = start.map_or(params[0], |n| b.int(i8, n.into()));
    let bound = bound.map_or(params[1], |n| b.int(i8, n.into()));
    let result = match case.guard {
        Guard::None => bottom_tested_loop(&mut b, case, show, start, bound),
        _ => {
            let predicate = match case.guard {
                Guard::NotEqual => IntPredicate::Ne,
                _ => case.predicate,
            };
            let mut c = b.icmp(predicate, start, bound);
            if case.guard == Guard::Inverted {
                let yes = b.bool(true);
                c = b.binary(BinaryOp::Xor, c, yes);
            }
            let (op, yes, no) = b.if_(c, &[i8]);
            let (inside, other) = if case.guard == Guard::Inverted {
                (no, yes)
            } else {
                (yes, no)
            };
            let place = b.set_insertion_end(other);
            b.yield_(&[start]);
            b.set_insertion_end(inside);
            let value = bottom_tested_loop(&mut b, case, show, start, bound);
            b.yield_(&[value]);
            b.restore_insertion_point(place);
            b.body.result(op)
        }
    };
    b.return_(Some(result));
    (unit, body)
}

/// Builds `loop (i = start) { show(i); next = i + step; again = … }`; returns the last index plus a sum.
fn bottom_tested_loop(
    b: &mut Builder,
    case: Case,
    show: gradus_ir::FuncId,
    start: Value,
    bound: Value,
) -> Value {
    let i8 = b.unit.types.int(BITS);
    let zero = b.int(i8, 0);
    let (op, region) = b.loop_(&[start, zero], &[i8, i8, i8]);
    let place = b.set_insertion_end(region);
    let (i, sum) = (
        b.body.region_params(region)[0],
        b.body.region_params(region)[1],
    );
    if case.has_extra_exit {
        b.call(show, &[i]);
    } else {
        let seven = b.int(i8, 7);
        let mixed = b.mul(sum, seven);
        let more = b.add(mixed, i);
        return finish_bottom(b, case, (op, place), (i, start, bound), more);
    }
    finish_bottom(b, case, (op, place), (i, start, bound), sum)
}

type At = (Region, Option<gradus_ir::Op>);

fn finish_bottom(
    b: &mut Builder,
    case: Case,
    (op, place): (gradus_ir::Op, At),
    (i, _start, bound): (Value, Value, Value),
    sum: Value,
) -> Value {
    let i8 = b.unit.types.int(BITS);
    let step = b.int(i8, case.step.into());
    let next = b.add(i, step);
    b.set_flags(next, case.flags);
    let read = match case.tested {
        TestedValue::Next => next,
        TestedValue::Current => i,
        TestedValue::Beyond(n) => {
            let n = b.int(i8, n.into());
            b.add(i, n)
        }
    };
    let again = if case.negated {
        let left = b.icmp(inverse_swapped(case.predicate), bound, read);
        let yes = b.bool(true);
        b.binary(BinaryOp::Xor, left, yes)
    } else {
        b.icmp(case.predicate, read, bound)
    };
    let doubled = b.add(sum, sum);
    b.repeat(again, &[next, sum], &[next, i, doubled]);
    b.restore_insertion_point(place);
    let results = b.body.results(op).to_vec();
    let three = b.int(i8, 3);
    let x = b.mul(results[0], three);
    let y = b.binary(BinaryOp::Xor, x, results[1]);
    b.add(y, results[2])
}

/// Returns the negated predicate for swapped operands: `!(b inverse a)` equals `a predicate b`.
fn inverse_swapped(p: IntPredicate) -> IntPredicate {
    use IntPredicate::*;
    match p {
        Eq => Ne,
        Ne => Eq,
        Ugt => Uge,
        Uge => Ugt,
        Ult => Ule,
        Ule => Ult,
        Sgt => Sge,
        Sge => Sgt,
        Slt => Sle,
        Sle => Slt,
    }
}

const SAMPLES: &[i64] = &[
    -128, -127, -126, -100, -3, -2, -1, 0, 1, 2, 3, 5, 64, 100, 125, 126, 127,
];

fn is_for(body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| matches!(body.kind(op), OpKind::For { .. }))
}

/// Compares the execution before and after on all sample pairs; returns whether the loop was converted.
fn check(case: Case, start: Option<i64>, bound: Option<i64>) -> bool {
    check_samples(case, start, bound, (0, 1))
}

/// Compares on every `of`-th sample pair, starting at an offset of `first`.
fn check_samples(
    case: Case,
    start: Option<i64>,
    bound: Option<i64>,
    (first, of): (usize, usize),
) -> bool {
    let (mut unit, before) = build(case, start, bound);
    let mut after = before.clone();
    loops_to_fors(&mut unit, &mut after);
    let byte = |n: i64| n as u128 & 0xff;
    for (k, &s) in SAMPLES.iter().enumerate() {
        for (l, &e) in SAMPLES.iter().enumerate() {
            if (k * 5 + l + first) % of != 0 {
                continue;
            }
            let args = [byte(s), byte(e)];
            let (was, is) = (run(&unit, &before, &args), run(&unit, &after, &args));
            assert!(
                refines(&was, &is),
                "{case:?} start {start:?}/{s} bound {bound:?}/{e}:\n{was:?}\n{is:?}"
            );
        }
    }
    is_for(&after)
}

fn all_cases() -> Vec<Case> {
    use IntPredicate::*;
    let mut cases = Vec::new();
    for predicate in [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle] {
        for step in [1, -1, 2, -2, 3, -3, 100] {
            for flags in [
                Flags::NONE,
                Flags::NSW,
                Flags::NUW,
                Flags::NSW.with(Flags::NUW),
            ] {
                for reads in [
                    TestedValue::Next,
                    TestedValue::Current,
                    TestedValue::Beyond(5),
                    TestedValue::Beyond(-1),
                ] {
                    for guard in [
                        Guard::None,
                        Guard::OwnCondition,
                        Guard::Inverted,
                        Guard::NotEqual,
                    ] {
                        for (stop, negated) in [(false, false), (true, false), (false, true)] {
                            cases.push(Case {
                                predicate,
                                step,
                                flags,
                                tested: reads,
                                guard,
                                has_extra_exit: stop,
                                negated,
                            });
                        }
                    }
                }
            }
        }
    }
    cases
}

#[test]
fn all_shapes_keep_their_meaning() {
    let mut converted = 0;
    for (n, case) in all_cases().into_iter().enumerate() {
        converted += usize::from(check_samples(case, None, None, (n, 41)));
    }
    assert!(converted > 1000, "only {converted} loops were converted");
}

#[test]
fn constant_bounds_keep_their_meaning() {
    let few: Vec<Case> = all_cases().into_iter().filter(|c| !c.negated).collect();
    for (n, case) in few.iter().enumerate() {
        for (k, &constant) in SAMPLES.iter().enumerate() {
            if (n + k) % 61 == 0 {
                check_samples(*case, Some(constant), None, (n, 17));
                check_samples(*case, None, Some(constant), (k, 17));
                let other = SAMPLES[(n + 3 * k) % SAMPLES.len()];
                check_samples(*case, Some(constant), Some(other), (n, 97));
            }
        }
    }
}

fn simple_case(predicate: IntPredicate, step: i64, flags: Flags, guard: Guard) -> Case {
    Case {
        predicate,
        step,
        flags,
        tested: TestedValue::Next,
        guard,
        has_extra_exit: false,
        negated: false,
    }
}

#[test]
fn common_loops_are_converted() {
    use IntPredicate::*;
    let nsw = Flags::NSW;
    for (case, start, bound) in [
        (
            simple_case(Slt, 1, Flags::NONE, Guard::OwnCondition),
            Some(0),
            None,
        ),
        (simple_case(Slt, 1, Flags::NONE, Guard::None), Some(0), None),
        (simple_case(Ne, 1, nsw, Guard::NotEqual), Some(0), None),
        (simple_case(Ne, 1, Flags::NONE, Guard::None), None, None),
        (simple_case(Slt, 2, nsw, Guard::OwnCondition), Some(0), None),
        (simple_case(Sle, 1, nsw, Guard::OwnCondition), Some(1), None),
        (
            simple_case(Sgt, -1, nsw, Guard::OwnCondition),
            None,
            Some(0),
        ),
        (
            simple_case(Sge, -1, Flags::NONE, Guard::OwnCondition),
            None,
            Some(0),
        ),
        (
            simple_case(Ne, 3, Flags::NONE, Guard::None),
            Some(0),
            Some(9),
        ),
        (
            simple_case(Ult, 1, Flags::NONE, Guard::OwnCondition),
            Some(0),
            None,
        ),
    ] {
        assert!(check(case, start, bound), "{case:?} is a counted loop");
    }
}

#[test]
fn uncountable_loops_stay() {
    use IntPredicate::*;
    for (case, start, bound) in [
        (simple_case(Ne, 3, Flags::NONE, Guard::None), Some(0), None),
        (
            simple_case(Ne, 3, Flags::NONE, Guard::None),
            Some(0),
            Some(10),
        ),
        (
            simple_case(Ne, -3, Flags::NONE, Guard::NotEqual),
            Some(0),
            Some(10),
        ),
        (
            simple_case(Slt, 2, Flags::NONE, Guard::OwnCondition),
            Some(0),
            None,
        ),
        (
            simple_case(Sle, 1, Flags::NONE, Guard::OwnCondition),
            Some(0),
            None,
        ),
        (simple_case(Eq, 1, Flags::NONE, Guard::None), None, None),
        (simple_case(Sgt, 1, Flags::NONE, Guard::None), None, None),
        (
            simple_case(Uge, -1, Flags::NONE, Guard::OwnCondition),
            None,
            Some(0),
        ),
    ] {
        assert!(!check(case, start, bound), "{case:?} is no counted loop");
    }
    // The NSW flag proves no bound if the program may exit before a violation.
    let leaving = Case {
        has_extra_exit: true,
        ..simple_case(Ne, 3, Flags::NSW, Guard::None)
    };
    assert!(!check(leaving, Some(0), None));
    assert!(check(
        Case {
            has_extra_exit: false,
            ..leaving
        },
        Some(0),
        None
    ));
}

#[test]
fn guard_folds_into_trip_count() {
    let case = Case {
        has_extra_exit: false,
        ..simple_case(IntPredicate::Slt, 1, Flags::NSW, Guard::OwnCondition)
    };
    for guard in [Guard::OwnCondition, Guard::Inverted] {
        let (mut unit, mut body) = build(Case { guard, ..case }, Some(0), None);
        loops_to_fors(&mut unit, &mut body);
        let ifs = body
            .walk(body.root())
            .filter(|&op| matches!(body.kind(op), OpKind::If));
        assert_eq!(ifs.count(), 0, "{guard:?}");
    }
}

/// Builds `while (i p bound) { show(i); i += step }` as a loop with its test at the top.
fn top_tested_loop(predicate: IntPredicate, step: i64, flags: Flags, swap: bool) -> (Unit, Body) {
    let mut unit = Unit::default();
    let show = observe(&mut unit);
    let i8 = unit.types.int(BITS);
    let bit = unit.types.int(1);
    let mut body = Body::new(&[i8, i8]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let zero = b.int(i8, 0);
    let (op, region) = b.loop_(&[params[0], zero], &[i8, i8]);
    let place = b.set_insertion_end(region);
    let (i, sum) = (
        b.body.region_params(region)[0],
        b.body.region_params(region)[1],
    );
    let twice = b.add(i, i);
    let mut c = b.icmp(predicate, i, params[1]);
    if swap {
        let no = b.bool(false);
        c = b.icmp(IntPredicate::Eq, c, no);
    }
    let (branch, yes, no) = b.if_(c, &[i8, i8, bit, i8]);
    let (go, stop) = if swap { (no, yes) } else { (yes, no) };
    let here = b.set_insertion_end(go);
    b.call(show, &[i]);
    let step = b.int(i8, step.into());
    let next = b.add(i, step);
    b.set_flags(next, flags);
    let more = b.add(sum, twice);
    let again = b.bool(true);
    b.yield_(&[next, more, again, sum]);
    b.set_insertion_end(stop);
    let poison = b.poison(i8);
    let leave = b.bool(false);
    let last = b.add(sum, twice);
    b.call(show, &[last]);
    b.yield_(&[poison, poison, leave, last]);
    b.restore_insertion_point(here);
    let r = b.body.results(branch).to_vec();
    b.repeat(r[2], &[r[0], r[1]], &[r[3], i]);
    b.restore_insertion_point(place);
    let results = b.body.results(op).to_vec();
    let five = b.int(i8, 5);
    let x = b.mul(results[0], five);
    let y = b.add(x, results[1]);
    b.return_(Some(y));
    (unit, body)
}

/// An induction with NSW steps and an unknown start is a truncated 64-bit sum; its sign extension for an
/// address is the sum. An induction that may wrap, or is known non-negative, is a sum in its own type.
#[test]
fn unknown_start_uses_wide_sum() {
    let both = Flags::NSW.with(Flags::NUW);
    for (flags, wide) in [(Flags::NSW, true), (Flags::NONE, false), (both, false)] {
        let (mut unit, mut body) = top_tested_loop(IntPredicate::Slt, 1, flags, false);
        loops_to_fors(&mut unit, &mut body);
        assert!(is_for(&body), "{flags:?}");
        let cut_of_sum = |op| {
            let sum = body.def_op(body.operand(op, 0));
            body.ops[op].flags.has(Flags::NSW)
                && sum.is_some_and(|sum| {
                    matches!(body.kind(sum), OpKind::Binary(BinaryOp::Add))
                        && body.ops[sum].flags.has(Flags::NSW)
                })
        };
        let found = body
            .walk(body.root())
            .filter(|op| matches!(body.kind(*op), OpKind::Cast(CastOp::Trunc)))
            .any(cut_of_sum);
        assert_eq!(found, wide, "{flags:?}");
    }
}

#[test]
fn top_tested_loops_keep_their_meaning() {
    use IntPredicate::*;
    let mut converted = 0;
    for predicate in [Eq, Ne, Ugt, Uge, Ult, Ule, Sgt, Sge, Slt, Sle] {
        for step in [1, -1, 2, -3] {
            for flags in [Flags::NONE, Flags::NSW, Flags::NUW] {
                for swap in [false, true] {
                    let (mut unit, before) = top_tested_loop(predicate, step, flags, swap);
                    let mut after = before.clone();
                    loops_to_fors(&mut unit, &mut after);
                    converted += usize::from(is_for(&after));
                    for &s in SAMPLES {
                        for &e in SAMPLES {
                            let args = [s as u128 & 0xff, e as u128 & 0xff];
                            let (was, is) = (run(&unit, &before, &args), run(&unit, &after, &args));
                            assert!(
                                refines(&was, &is),
                                "{predicate:?} {step} {flags:?} {swap} {s} {e}:\n{was:?}\n{is:?}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(converted >= 40, "only {converted} loops were converted");
}

/// Pointers that step over doubles, and an index truncated to `i32` before the comparison.
#[test]
fn pointers_and_narrow_tests_convert() {
    let mut unit = Unit::default();
    let (ptr, i64) = (unit.types.ptr(), unit.types.int(64));
    let (i32, double) = (unit.types.int(32), unit.types.f64());
    let mut body = Body::new(&[ptr, i32]);
    let (base, n) = (body.params()[0], body.params()[1]);
    let mut b = Builder::new(&mut unit, &mut body);
    let wide = b.cast(CastOp::SExt, n, i64);
    let end = b.addr(double, base, wide);
    let zero = b.i64(0);
    let (op, region) = b.loop_(&[base, zero], &[i64]);
    let place = b.set_insertion_end(region);
    let (p, sum) = (
        b.body.region_params(region)[0],
        b.body.region_params(region)[1],
    );
    let at = b.cast(CastOp::PtrToInt, p, i64);
    let more = b.add(sum, at);
    let one = b.i64(1);
    let next = b.addr(double, p, one);
    let again = b.icmp(IntPredicate::Ne, next, end);
    b.repeat(again, &[next, more], &[more]);
    b.restore_insertion_point(place);
    let first = b.body.result(op);
    let (op, region) = b.loop_(&[zero, first], &[i64]);
    b.set_insertion_end(region);
    let (i, sum) = (
        b.body.region_params(region)[0],
        b.body.region_params(region)[1],
    );
    let more = b.add(sum, i);
    let one = b.i64(1);
    let next = b.add(i, one);
    let short = b.cast(CastOp::Trunc, next, i32);
    let again = b.icmp(IntPredicate::Ne, short, n);
    b.repeat(again, &[next, more], &[more]);
    b.restore_insertion_point(place);
    let result = b.body.result(op);
    b.return_(Some(result));
    let mut after = body.clone();
    assert_eq!(loops_to_fors(&mut unit, &mut after), 2);
    let casts = after
        .walk(after.root())
        .filter(|&op| matches!(after.kind(op), OpKind::Cast(CastOp::PtrToInt)));
    assert_eq!(
        casts.count(),
        1,
        "the number of runs needs no addresses as integers"
    );
    for n in [1u128, 2, 7, 100] {
        let (was, is) = (
            run(&unit, &body, &[4096, n]),
            run(&unit, &after, &[4096, n]),
        );
        assert!(matches!(was.end, Outcome::Returned(Some(_))));
        assert_eq!(was, is);
    }
}

/// Unrolled loop up to `n & -4` in steps of four, without wrap flags.
#[test]
fn power_of_two_steps_reach_multiples() {
    for (start, by_rest) in [(0, false), (4, true), (-8, false), (2, false)] {
        let mut unit = Unit::default();
        let show = observe(&mut unit);
        let i8 = unit.types.int(8);
        let mut body = Body::new(&[i8]);
        let n = body.params()[0];
        let mut b = Builder::new(&mut unit, &mut body);
        let (start_value, four) = (b.int(i8, start), b.int(i8, 4));
        let bound = if by_rest {
            let three = b.int(i8, 3);
            let rest = b.binary(BinaryOp::And, n, three);
            b.sub(n, rest)
        } else {
            let mask = b.int(i8, -4);
            b.binary(BinaryOp::And, n, mask)
        };
        let (op, region) = b.loop_(&[start_value], &[i8]);
        let place = b.set_insertion_end(region);
        let i = b.body.region_params(region)[0];
        b.call(show, &[i]);
        let next = b.add(i, four);
        let again = b.icmp(IntPredicate::Ne, next, bound);
        b.repeat(again, &[next], &[next]);
        b.restore_insertion_point(place);
        let result = b.body.result(op);
        b.return_(Some(result));
        let mut after = body.clone();
        let converted = loops_to_fors(&mut unit, &mut after);
        assert_eq!(converted, usize::from(start % 4 == 0), "from {start}");
        for n in 0..256 {
            let (was, is) = (run(&unit, &body, &[n]), run(&unit, &after, &[n]));
            assert!(refines(&was, &is), "from {start}, n = {n}: {was:?} {is:?}");
        }
    }
}

/// Loop with its test at the top after if-conversion of the branch to selects.
#[test]
fn selects_on_test_keep_inductions() {
    let mut unit = Unit::default();
    let show = observe(&mut unit);
    let i8 = unit.types.int(8);
    let mut body = Body::new(&[i8]);
    let n = body.params()[0];
    let mut b = Builder::new(&mut unit, &mut body);
    let (zero, one) = (b.int(i8, 0), b.int(i8, 1));
    let (op, region) = b.loop_(&[zero], &[i8]);
    let place = b.set_insertion_end(region);
    let i = b.body.region_params(region)[0];
    b.call(show, &[i]);
    let leave = b.icmp(IntPredicate::Eq, i, n);
    let next = b.add(i, one);
    let kept = b.select(leave, i, next);
    let (no, yes) = (b.bool(false), b.bool(true));
    let again = b.select(leave, no, yes);
    b.repeat(again, &[kept], &[kept]);
    b.restore_insertion_point(place);
    let result = b.body.result(op);
    b.return_(Some(result));
    let mut after = body.clone();
    assert_eq!(loops_to_fors(&mut unit, &mut after), 1);
    for n in 0..256 {
        assert_eq!(run(&unit, &body, &[n]), run(&unit, &after, &[n]), "n = {n}");
    }
}

/// `for i < n { for j = i + 1 .. n }` with guards becomes exactly `for { for }`.
#[test]
fn triangle_becomes_nested_for() {
    let mut unit = Unit::default();
    let show = observe(&mut unit);
    let (i8, i64) = (unit.types.int(8), unit.types.int(64));
    let mut body = Body::new(&[i64]);
    let n = body.params()[0];
    let mut b = Builder::new(&mut unit, &mut body);
    let (zero, one) = (b.i64(0), b.i64(1));
    let some = b.icmp(IntPredicate::Sgt, n, zero);
    let (_, yes, no) = b.if_(some, &[]);
    let out = b.set_insertion_end(no);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    let (_, region) = b.loop_(&[zero], &[]);
    let around = b.set_insertion_end(region);
    let i = b.body.region_params(region)[0];
    let next = b.add(i, one);
    b.set_flags(next, Flags::NSW.with(Flags::NUW));
    let more = b.icmp(IntPredicate::Slt, next, n);
    let (_, yes, no) = b.if_(more, &[]);
    let inside = b.set_insertion_end(no);
    b.yield_(&[]);
    b.set_insertion_end(yes);
    let (_, inner) = b.loop_(&[next], &[]);
    let within = b.set_insertion_end(inner);
    let j = b.body.region_params(inner)[0];
    let product = b.mul(i, j);
    let cut = b.cast(CastOp::Trunc, product, i8);
    b.call(show, &[cut]);
    let j_next = b.add(j, one);
    b.set_flags(j_next, Flags::NSW.with(Flags::NUW));
    let again = b.icmp(IntPredicate::Ne, j_next, n);
    b.repeat(again, &[j_next], &[]);
    b.restore_insertion_point(within);
    b.yield_(&[]);
    b.restore_insertion_point(inside);
    let again = b.icmp(IntPredicate::Ne, next, n);
    b.repeat(again, &[next], &[]);
    b.restore_insertion_point(around);
    b.yield_(&[]);
    b.restore_insertion_point(out);
    b.return_(Some(n));
    let mut after = body.clone();
    assert_eq!(loops_to_fors(&mut unit, &mut after), 2);
    let structured = after
        .walk(after.root())
        .filter(|&op| !after.op_regions(op).is_empty());
    let kinds: Vec<bool> = structured
        .map(|op| matches!(after.kind(op), OpKind::For { .. }))
        .collect();
    assert_eq!(kinds, [true, true]);
    for n in [0u128, 1, 2, 3, 9, u128::from(u64::MAX)] {
        assert_eq!(run(&unit, &body, &[n]), run(&unit, &after, &[n]), "n = {n}");
    }
}

/// Guarded loops nested 20,000 deep.
#[test]
fn deep_nests_convert() {
    let mut unit = Unit::default();
    let i64 = unit.types.int(64);
    let mut body = Body::new(&[i64]);
    let n = body.params()[0];
    let mut b = Builder::new(&mut unit, &mut body);
    let (zero, one) = (b.i64(0), b.i64(1));
    let mut places = Vec::new();
    for _ in 0..20_000 {
        let some = b.icmp(IntPredicate::Sgt, n, zero);
        let (_, yes, no) = b.if_(some, &[]);
        let around = b.set_insertion_end(no);
        b.yield_(&[]);
        b.set_insertion_end(yes);
        let (_, region) = b.loop_(&[zero], &[]);
        let inside = b.set_insertion_end(region);
        places.push((around, inside, b.body.region_params(region)[0]));
    }
    for (around, inside, i) in places.into_iter().rev() {
        let next = b.add(i, one);
        let again = b.icmp(IntPredicate::Slt, next, n);
        b.repeat(again, &[next], &[]);
        b.restore_insertion_point(inside);
        b.yield_(&[]);
        b.restore_insertion_point(around);
    }
    b.return_(Some(n));
    assert_eq!(loops_to_fors(&mut unit, &mut body), 20_000);
    let structured = body
        .walk(body.root())
        .filter(|&op| !body.op_regions(op).is_empty());
    assert_eq!(structured.count(), 20_000);
}
