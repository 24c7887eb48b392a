//! Tests of trip counts, availability, affine forms and access ranges.

use crate::Program;
use gradus_analysis::{
    AccessRanges, AliasOptions, Availability, BaseValue, Bound, BoundId, Clobbers, Disjointness,
    ExitClobbers, affine, trip_max,
};
use gradus_ir::{Op, Value};
use std::collections::HashMap;

/// Returns the ops that compute a value at the entry of the body.
fn at_entry(known: &Availability, p: &Program, name: &str) -> Option<Vec<Op>> {
    let body = p.body();
    known.ops_before(p.value(name), body.first(body.root())?)
}

#[test]
fn bounds_of_trip_counts() {
    let p = Program::read(
        "func @f(%n: i64) {
           for %i < %n { yield }
           loop trip_max 9 iter(%k = 0) { repeat false, %k }
           loop iter(%k2 = 0) { repeat false, %k2 }
           for %j < 7 { yield }
           return }",
    );
    let max = |lp| trip_max(&p.unit, p.body(), p.lp(lp));
    assert_eq!(max(0), None);
    assert_eq!(max(1), Some(9));
    assert_eq!(max(2), None);
    assert_eq!(max(3), Some(7));
}

#[test]
fn arithmetic_hoists_and_traps_do_not() {
    let p = Program::read(
        "func @f(%n: i64, %m: i64, %x: ptr) {
           for %i < %n {
             %half = lshr %m, 1
             %t = add %half, 3
             %q = udiv %m, %n
             %w = add %t, %i
             %v = load %x -> i64
             for %j < %t { yield }
             yield }
           return }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let known = Availability::new(&c);
    assert_eq!(
        known.ops_before(p.value("t"), p.lp(0)),
        Some(vec![p.op("half"), p.op("t")])
    );
    assert_eq!(
        known.ops_before(p.value("t"), p.lp(1)),
        Some(vec![]),
        "it is visible there"
    );
    assert_eq!(
        known.ops_before(p.value("q"), p.lp(0)),
        None,
        "n may be 0 there"
    );
    assert_eq!(
        known.ops_before(p.value("w"), p.lp(0)),
        None,
        "it depends on the index"
    );
    assert_eq!(
        known.ops_before(p.value("v"), p.lp(0)),
        None,
        "x may not be valid there"
    );
    assert_eq!(at_entry(&known, &p, "n"), Some(vec![]));
}

#[test]
fn valid_unmodified_load_hoists() {
    let text = |write: &str| {
        format!(
            "attrs 0 = param() param(dereferenceable = 8) param()
             func @f(%n: i64, %c: ptr, %x: ptr) #0 {{
               for %i < %n {{
                 {write}
                 %v = load %c -> i64
                 for %j < %v {{ yield }}
                 yield }}
               return }}"
        )
    };
    for (write, moves) in [("", true), ("store 1, %x", false)] {
        let p = Program::read(&text(write));
        let alias = p.alias();
        let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
        let found = Availability::new(&c).ops_before(p.value("v"), p.lp(0));
        assert_eq!(found.is_some(), moves, "{write}");
    }
}

const ROWS: &str = "
func @f(%x: ptr, %n: i64, %d: i64, %y: ptr, %c: i1) {
  for %i < %n {
    %row = mul nsw %i, %d
    %out = addr inbounds f64, %y, %i
    for %j < %d {
      %at = add nsw %row, %j
      %p = addr inbounds f64, %x, %at
      %q = addr inbounds i8, %p, 16
      %v = load %q -> f64
      yield }
    store 1.0, %out
    yield }
  return }";

#[test]
fn an_address_is_affine_in_its_loops() {
    let p = Program::read(ROWS);
    let alias = p.alias();
    let whole = affine(&alias, p.value("q"), Some(p.lp(0))).expect("it is affine");
    assert_eq!(whole.start, Some(BaseValue::Value(p.value("x"))));
    assert_eq!(whole.constant, 16);
    assert_eq!(whole.terms.len(), 2);
    let (outer, inner) = (&whole.terms[0], &whole.terms[1]);
    assert_eq!(
        (outer.lp, outer.coefficient, &outer.factors[..]),
        (p.lp(0), 8, &[p.value("d")][..])
    );
    assert_eq!(
        (inner.lp, inner.coefficient, inner.factors.len()),
        (p.lp(1), 8, 0)
    );
    assert_eq!(whole.constant_step(p.lp(1)), Some(8));
    assert_eq!(whole.constant_step(p.lp(0)), None);
    let rows = affine(&alias, p.value("q"), Some(p.lp(1))).expect("it is affine");
    assert_eq!((rows.terms.len(), rows.invariant.len()), (1, 1));
}

/// Evaluates a bound for given values.
fn number(e: &AccessRanges, id: BoundId, known: &HashMap<Value, i128>) -> i128 {
    let of = |id: &BoundId| number(e, *id, known);
    match &e.bounds[id.0 as usize] {
        Bound::Constant(n) => i128::from(*n),
        Bound::Signed(v) | Bound::Unsigned(v) => known[v],
        Bound::Add(a, b) => of(a) + of(b),
        Bound::Mul(a, b) => of(a) * of(b),
        Bound::Min(a, b) => of(a).min(of(b)),
        Bound::Max(a, b) => of(a).max(of(b)),
    }
}

/// Returns the bytes touched behind a pointer, for given arguments.
fn bytes(p: &Program, pointer: &str, numbers: &[(&str, i128)]) -> Option<(i128, i128)> {
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let body = p.body();
    let entry = body.first(body.root()).expect("the body has ops");
    let e = AccessRanges::of(&Availability::new(&c), &p.effects, entry);
    let known: HashMap<Value, i128> = numbers.iter().map(|(n, x)| (p.value(n), *x)).collect();
    let extent = e
        .of_root(BaseValue::Value(p.value(pointer)))
        .expect("it is touched");
    let (low, high) = extent.range?;
    Some((number(&e, low, &known), number(&e, high, &known)))
}

#[test]
fn extents_of_rows() {
    let p = Program::read(ROWS);
    let numbers = [("n", 5), ("d", 3)];
    assert_eq!(bytes(&p, "x", &numbers), Some((16, 16 + 8 * 15)));
    assert_eq!(bytes(&p, "y", &numbers), Some((0, 40)));
}

/// An optimiser that reassociates an index drops its no-wrap flags; the range receives a condition.
#[test]
fn extents_of_a_regrouped_index() {
    let text = "func @f(%x: ptr, %n: i32, %m: i32) {
           %square = mul %n, %n
           %trips = zext %m -> i64
           for %i < %trips {
             %short = trunc nuw nsw %i -> i32
             %row = mul %square, %short
             %at = sext %row -> i64
             %p = addr inbounds f64, %x, %at
             %v = load %p -> f64
             yield }
           return }";
    let p = Program::read(text);
    let numbers = [("n", 3), ("trips", 5), ("square", 9)];
    assert_eq!(bytes(&p, "x", &numbers), Some((0, 8 * 36 + 8)));
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let entry = p.body().first(p.body().root()).expect("the body has ops");
    let e = AccessRanges::of(&Availability::new(&c), &p.effects, entry);
    let [condition] = e.conditions[..] else {
        panic!("{:?}", e.conditions);
    };
    assert_eq!(condition.within, (-(1 << 31), (1 << 31) - 1));
    let known: HashMap<Value, i128> = numbers.iter().map(|(n, x)| (p.value(n), *x)).collect();
    let (low, high) = condition.range;
    let range = (number(&e, low, &known), number(&e, high, &known));
    assert_eq!(range, (0, 36));
}

/// A shift by a variable amount has no range; the smallest amount does not bound it.
#[test]
fn extents_of_powers_of_two() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           for %i < %n {
             %at = shl 1, %i
             %p = addr inbounds f64, %x, %at
             %v = load %p -> f64
             %twice = shl %i, 1
             %q = addr inbounds f64, %y, %twice
             %w = load %q -> f64
             yield }
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 5)]), None);
    assert_eq!(bytes(&p, "y", &[("n", 5)]), Some((0, 72)));
}

#[test]
fn extents_of_a_periodic_grid() {
    // bruss: the rows of neighbours wrap around. Each select operand counts only under its condition.
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           %last = add nsw %n, -1
           for %i < %n {
             %first = icmp eq %i, 0
             %before = add nsw %i, -1
             %up = select %first, %last, %before
             %row = mul nsw %up, %n
             for %j < %n {
               %at = add nsw %row, %j
               %p = addr inbounds f64, %x, %at
               %v = load %p -> f64
               yield }
             %inside = icmp slt %i, %last
             %after = add nsw %i, 1
             %down = select %inside, %after, 0
             %next = mul nsw %down, %n
             %q = addr inbounds f64, %x, %next
             %w = load %q -> f64
             yield }
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 4), ("last", 3)]), Some((0, 128)));
}

#[test]
fn extents_of_triangles_and_of_gathers() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           for %i < %n {
             for %j < %i {
               %p = addr inbounds f64, %x, %j
               %v = load %p -> i64
               %q = addr inbounds f64, %y, %v
               store 1.0, %q
               yield }
             yield }
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 6)]), Some((0, 40)));
    assert_eq!(
        bytes(&p, "y", &[("n", 6)]),
        None,
        "an index from memory has no bounds"
    );
}

#[test]
fn extents_of_copies() {
    let p = Program::read(
        "declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
         func @f(%x: ptr, %y: ptr, %n: i64) {
           %q = addr inbounds f64, %x, 2
           call @llvm.memcpy.p0.p0.i64(%y, %q, %n, false)
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 100)]), Some((16, 116)));
    assert_eq!(bytes(&p, "y", &[("n", 100)]), Some((0, 100)));
}

#[test]
fn extents_of_select_on_last_index() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           %last = add nsw %n, -1
           for %i < %n {
             %end = icmp eq %i, %last
             %after = add nsw %i, 1
             %down = select %end, 0, %after
             %q = addr inbounds f64, %x, %down
             %w = load %q -> f64
             yield }
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 4), ("last", 3)]), Some((0, 32)));
}

#[test]
fn an_unsigned_condition_on_an_unknown_limit_says_nothing() {
    // For negative n, `i < n` holds unsigned for every i, and x[i + 1] beyond n is touched.
    let p = Program::read(
        "func @f(%x: ptr, %n: i64, %m: i64) {
           for %i < %m {
             %low = icmp ult %i, %n
             %after = add nsw %i, 1
             %down = select %low, %after, 0
             %q = addr inbounds f64, %x, %down
             %w = load %q -> f64
             yield }
           return }",
    );
    assert_eq!(bytes(&p, "x", &[("n", -1), ("m", 4)]), Some((0, 40)));
}

#[test]
fn induction_pointer_is_affine() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) -> f64 {
           %end, %sum = for %i < %n iter(%p = %x, %s = 0.0) {
             %v = load %p -> f64
             %t = fadd %s, %v
             %q = addr inbounds i8, %p, 16
             yield %q, %t }
           %w = load %end -> f64
           return %sum }",
    );
    assert_eq!(bytes(&p, "x", &[("n", 5)]), Some((0, 88)));
    let alias = p.alias();
    let a = affine(&alias, p.value("p"), Some(p.lp(0))).expect("it is affine");
    assert_eq!(a.constant_step(p.lp(0)), Some(16));
    assert_eq!(a.start, Some(BaseValue::Value(p.value("x"))));
}

#[test]
fn extents_of_bruss_from_llvm() {
    // Narrow neighbours: a truncated index minus one, a sum shifted left and right, a masked sum.
    let p = Program::read(
        "func @f(%x: ptr, %n32: i32) {
           %sub = add nsw %n32, i32 -1
           %last = sext %sub -> i64
           %n = zext nneg %n32 -> i64
           for %i < %n {
             %first = icmp eq %i, 0
             %t = trunc %i -> i32
             %before = add %t, i32 -1
             %up = select %first, %sub, %before
             %row32 = mul nsw %up, %n32
             %row = sext %row32 -> i64
             %p = addr inbounds nusw f64, %x, %row
             %v = load %p -> f64
             %here = mul nuw nsw %i, %n
             for %k < %last {
               %j = add nuw nsw 1, %k
               %s = shl %j, 32
               %s1 = add %s, -4294967296
               %west = ashr exact %s1, 32
               %aw = add nuw nsw %here, %west
               %pw = addr inbounds nusw f64, %x, %aw
               %vw = load %pw -> f64
               %c = icmp slt %j, %last
               %next = add nuw nsw %j, 1
               %east = select %c, %next, 0
               %sum = add nuw %east, %here
               %ae = and %sum, 4294967295
               %pe = addr inbounds nusw f64, %x, %ae
               %ve = load %pe -> f64
               yield }
             yield }
           return }",
    );
    let numbers = [("n32", 5), ("n", 5), ("sub", 4), ("last", 4)];
    assert_eq!(bytes(&p, "x", &numbers), Some((0, 200)));
}

#[test]
fn wrapping_narrow_arithmetic_is_kept() {
    let p = Program::read(
        "func @f(%x: ptr, %a: i32, %b: i32) -> f64 {
           %c = add %a, %b
           %i = sext %c -> i64
           %j = sext %b -> i64
           %s = shl %j, 40
           %k = ashr %s, 40
           %small = and %a, i32 255
           %d = add %small, i32 1
           %m = sext %d -> i64
           return 0.0 }",
    );
    let alias = p.alias();
    let parts = |name: &str| {
        let form = alias.forms.of_integer(&p.unit, p.body(), p.value(name));
        (form.terms[0].0.to_vec(), form.constant)
    };
    assert_eq!(parts("i"), (vec![p.value("c")], 0));
    assert_eq!(
        parts("k"),
        (vec![p.value("k")], 0),
        "b has 32 bits, 24 are left"
    );
    assert_eq!(parts("m"), (vec![p.value("small")], 1));
}

#[test]
fn always_executed_load_hoists() {
    let text = |between: &str| {
        format!(
            "declare @puts(ptr) -> i32
             func @f(%c: ptr, %x: ptr) {{
               %a = addr i8, %c, 4
               {between}
               %v = load %a -> i64
               return }}"
        )
    };
    for (between, moves) in [
        ("", true),
        ("for %i < 3 { yield }", true),
        ("%u = load %x -> f64", true),
        ("loop { %t = load %x -> i1 repeat %t }", false),
        ("call %x() : fn() -> void", false),
    ] {
        let p = Program::read(&text(between));
        let alias = p.alias();
        let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
        let found = at_entry(&Availability::new(&c), &p, "v");
        assert_eq!(found.is_some(), moves, "{between}");
    }
}

#[test]
fn overlap_check_is_proposed() {
    // bruss: the right-hand side may overlap the state or the structure of constants.
    let p = Program::read(
        "func @f(%ctx: ptr, %x: ptr, %dx: ptr, %n: i64, %ro: ptr) {
           %k = load %ctx -> f64
           for %i < %n {
             %p = addr inbounds f64, %x, %i
             %v = load %p -> f64
             %q = addr inbounds f64, %dx, %i
             store %v, %q
             yield }
           %late = load %ro -> f64
           return }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let body = p.body();
    let entry = body.first(body.root()).expect("the body has ops");
    let test = Disjointness::of(&c, &p.effects, entry).expect("it is worth a test");
    let name = |root: BaseValue| match root {
        BaseValue::Value(value) => body.name(value).unwrap_or_default().to_string(),
        BaseValue::Global(_) => String::new(),
    };
    let pairs: Vec<_> = test
        .assumptions()
        .iter()
        .map(|(a, b)| (name(*a), name(*b)))
        .collect();
    assert_eq!(
        pairs,
        [("dx", "ctx"), ("dx", "x")].map(|(a, b)| (a.into(), b.into()))
    );
    let options = AliasOptions {
        assume_disjoint: test.assumptions(),
        ..AliasOptions::default()
    };
    let fast = p.alias_with(&options);
    let c = Clobbers::of(&fast, &p.effects, ExitClobbers::default());
    assert!(!c.clobbered_after(p.op("v")) && !c.clobbered_after(p.op("k")));
    assert!(
        Disjointness::of(&c, &p.effects, entry).is_none(),
        "nothing is left to gain"
    );
}

#[test]
fn no_overlap_check_for_gathers() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           for %i < %n {
             %p = addr inbounds i64, %x, %i
             %v = load %p -> i64
             %q = addr inbounds i64, %y, %v
             store %v, %q
             yield }
           return }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let body = p.body();
    let entry = body.first(body.root()).expect("the body has ops");
    assert!(c.clobbered_after(p.op("v")) && Disjointness::of(&c, &p.effects, entry).is_none());
}

#[test]
fn noreturn_loop_has_no_recurrence() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           %p, %q = for %i < %n iter(%a = %x, %b = %y) { unreachable }
           store 1.0, %p
           %v = load %q -> f64
           return }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    assert!(at_entry(&Availability::new(&c), &p, "v").is_none());
}
