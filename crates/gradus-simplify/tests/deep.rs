//! Deeply nested and long programs: no recursion over nesting, no quadratic time.

use gradus_analysis::{AliasOptions, Effects, PassContext};
use gradus_edit::promote_slots;
use gradus_ir::{Body, Builder, IntPredicate, Unit};
use gradus_simplify::{PASSES, simplify};

/// Builds branches and loops in alternation, nested `levels` deep, with a slot that the innermost level
/// stores to.
fn nest(levels: usize) -> (Unit, Body) {
    let mut unit = Unit::default();
    let (i64, f64) = (unit.types.int(64), unit.types.f64());
    let ptr = unit.types.ptr();
    let mut body = Body::new(&[i64, f64, ptr]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let mut open = Vec::new();
    let mut index = params[0];
    for _ in 0..levels {
        let c = b.icmp(IntPredicate::Sgt, index, params[0]);
        let (_, yes, no) = b.if_(c, &[]);
        let around = b.set_insertion_end(no);
        b.yield_(&[]);
        b.set_insertion_end(yes);
        let zero = b.float(f64, 0.0);
        let (op, region) = b.for_(params[0], &[zero]);
        let inside = b.set_insertion_end(region);
        let region_params = b.body.region_params(region).to_vec();
        index = region_params[0];
        open.push((around, inside, op, region_params[1]));
    }
    b.store(params[1], params[2]);
    for (around, inside, op, carried) in open.into_iter().rev() {
        let at = b.addr(f64, params[2], params[0]);
        let old = b.load(f64, at);
        let sum = b.fadd(old, carried);
        b.yield_(&[sum]);
        b.restore_insertion_point(inside);
        let result = b.body.result(op);
        b.store(result, at);
        b.yield_(&[]);
        b.restore_insertion_point(around);
    }
    b.return_(None);
    (unit, body)
}

/// Builds a sequence of branches that each store to a slot.
fn branch_sequence(length: usize) -> (Unit, Body) {
    let mut unit = Unit::default();
    let (i64, f64) = (unit.types.int(64), unit.types.f64());
    let ptr = unit.types.ptr();
    let mut body = Body::new(&[i64, f64, ptr]);
    let params = body.params().to_vec();
    let mut b = Builder::new(&mut unit, &mut body);
    let slot = b.alloca(f64);
    b.store(params[1], slot);
    for n in 0..length {
        let n = b.i64(n as i64 % 7);
        let c = b.icmp(IntPredicate::Sgt, params[0], n);
        let (_, yes, no) = b.if_(c, &[]);
        let around = b.set_insertion_end(no);
        b.yield_(&[]);
        b.set_insertion_end(yes);
        let old = b.load(f64, slot);
        let p = b.addr(f64, params[2], n);
        let more = b.load(f64, p);
        let sum = b.fadd(old, more);
        b.store(sum, slot);
        b.store(sum, p);
        b.yield_(&[]);
        b.restore_insertion_point(around);
    }
    b.return_(None);
    (unit, body)
}

fn run_on_program(
    make: impl Fn() -> (Unit, Body),
    run: impl Fn(&mut Unit, &mut Body, &PassContext),
) {
    let (mut unit, mut body) = make();
    let (effects, alias) = (Effects::default(), AliasOptions::default());
    let facts = PassContext {
        function: None,
        effects: &effects,
        alias: &alias,
    };
    run(&mut unit, &mut body, &facts);
}

#[test]
fn deep_nests_do_not_overflow() {
    for pass in PASSES {
        run_on_program(
            || nest(10_000),
            |unit, body, facts| {
                (pass.run)(unit, body, facts);
            },
        );
    }
    run_on_program(
        || nest(10_000),
        |unit, body, facts| {
            promote_slots(unit, body);
            simplify(unit, body, facts);
        },
    );
}

/// Benchmarks measure the growth of time with length; the test only checks completion.
#[test]
fn long_programs_complete() {
    run_on_program(
        || branch_sequence(8_000),
        |unit, body, facts| {
            promote_slots(unit, body);
            simplify(unit, body, facts);
        },
    );
}
