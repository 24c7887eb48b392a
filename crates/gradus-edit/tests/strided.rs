//! Conversion of loops with an unknown positive step to `for`: compares the execution before and after for
//! all bounds, steps and flags.

use crate::eval::{refines, run};
use gradus_edit::strided_to_for;
use gradus_ir::{AttrSet, Body, Builder, Flags, FuncId, IntPredicate, Op, Unit, Value};

const STARTS: [i64; 9] = [-128, -127, -3, 0, 1, 5, 100, 126, 127];
const STEPS: [i64; 6] = [1, 2, 3, 7, 64, 127];

/// Loop under test: predicate, flags and form of the test.
#[derive(Clone, Copy, Debug)]
struct Case {
    predicate: IntPredicate,
    flags: Flags,
    guarded: bool,
    /// The bound is the left operand of the comparison.
    swapped: bool,
}

/// Builds a loop over `i8` from parameter 0 to parameter 1 with step parameter 2. The loop observes its index
/// and returns the final index.
fn build(case: Case) -> (Unit, Body, Op) {
    let mut unit = Unit::default();
    let (void, i8) = (unit.types.void(), unit.types.int(8));
    let ty = unit.types.func(void, vec![i8]);
    let show = unit.declare("observe", ty, AttrSet::default());
    let mut body = Body::new(&[i8, i8, i8]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let (lp, result) = match case.guarded {
        false => strided_loop(&mut b, case, show, &params),
        true => {
            let some = b.icmp(case.predicate, params[0], params[1]);
            let (choice, yes, no) = b.if_(some, &[i8]);
            let place = b.set_insertion_end(no);
            b.yield_(&[params[0]]);
            b.set_insertion_end(yes);
            let (lp, last) = strided_loop(&mut b, case, show, &params);
            b.yield_(&[last]);
            b.restore_insertion_point(place);
            (lp, b.body.result(choice))
        }
    };
    b.return_(Some(result));
    (unit, body, lp)
}

fn strided_loop(b: &mut Builder<'_>, case: Case, show: FuncId, params: &[Value]) -> (Op, Value) {
    let i8 = b.unit.types.int(8);
    let (lp, region) = b.loop_(&[params[0]], &[i8]);
    let index = b.body.region_params(region)[0];
    let place = b.set_insertion_end(region);
    b.call(show, &[index]);
    let next = b.add(index, params[2]);
    b.set_flags(next, case.flags);
    let again = match case.swapped {
        true => b.icmp(case.predicate.swapped(), params[1], next),
        false => b.icmp(case.predicate, next, params[1]),
    };
    b.repeat(again, &[next], &[next]);
    b.restore_insertion_point(place);
    (lp, b.body.result(lp))
}

/// Returns whether the loop was converted; asserts equal behaviour for positive steps.
fn check_conversion(case: Case) -> bool {
    let (mut unit, before, lp) = build(case);
    let mut after = before.clone();
    let step = after.params()[2];
    let made = strided_to_for(&mut unit, &mut after, lp, &[step]);
    let byte = |n: i64| n as u128 & 0xff;
    for start in STARTS {
        for bound in STARTS {
            for step in STEPS {
                let args = [byte(start), byte(bound), byte(step)];
                let (was, is) = (run(&unit, &before, &args), run(&unit, &after, &args));
                assert!(
                    refines(&was, &is),
                    "{case:?} from {start} to {bound} by {step}:\n{was:?}\n{is:?}"
                );
            }
        }
    }
    made.is_some()
}

#[test]
fn positive_steps_need_wrap_flags() {
    use IntPredicate::{Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    for predicate in [Slt, Ult, Sle, Ule, Sgt, Sge, Ugt, Uge, Ne] {
        for flags in [Flags::NONE, Flags::NSW, Flags::NUW] {
            for (guarded, swapped) in [(true, false), (true, true), (false, false)] {
                let case = Case {
                    predicate,
                    flags,
                    guarded,
                    swapped,
                };
                let promised = predicate == Slt && flags == Flags::NSW
                    || predicate == Ult && flags == Flags::NUW;
                assert_eq!(check_conversion(case), promised && guarded, "{case:?}");
            }
        }
    }
}

#[test]
fn unknown_sign_is_not_converted() {
    let case = Case {
        predicate: IntPredicate::Slt,
        flags: Flags::NSW,
        guarded: true,
        swapped: false,
    };
    let (mut unit, mut body, lp) = build(case);
    assert!(strided_to_for(&mut unit, &mut body, lp, &[]).is_none());
}
