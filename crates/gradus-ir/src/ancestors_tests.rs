//! Tests of the queries on nesting.

use crate::{Body, Op, OpKind, Unit, Value, parse};

/// Parses a function `@f` and passes it to `check`.
fn with_body(code: &str, check: impl Fn(&Unit, &Body)) {
    let text = format!("func @f(%n: i64, %c: i1, %p: ptr) {{ {code} return }}");
    let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let f = unit.function("f").expect("it is there");
    let body = unit.functions[f].body.as_deref().expect("it has code");
    check(&unit, body);
}

fn named(body: &Body, name: &str) -> Value {
    let mut values = body.values.ids();
    let found = values.find(|value| body.name(*value) == Some(name));
    found.unwrap_or_else(|| panic!("no value %{name}"))
}

fn def(body: &Body, name: &str) -> Op {
    body.def_op(named(body, name)).expect("an op defines it")
}

const NESTED: &str = "
    %a = add %n, 1
    for independent %i < %n {
      %b = add %i, 1
      if %c { %d = add %b, 1 yield } else { %e = add %b, 2 yield }
      %g = add %b, 3
      yield
    }
    %h = add %a, 4";

#[test]
fn ancestors_are_listed_from_inside() {
    with_body(NESTED, |_, body| {
        let kinds = |op| {
            let around = body.ancestors(op).map(|at| body.kind(at).clone());
            around.collect::<Vec<OpKind>>()
        };
        assert_eq!(
            kinds(def(body, "d")),
            [OpKind::If, OpKind::For { trip_max: None }]
        );
        assert_eq!(kinds(def(body, "a")), []);
        let lp = body.ancestors(def(body, "b")).next().expect("a loop");
        assert!(body.is_independent(lp) && body.is_ancestor(lp, lp));
        assert!(body.is_ancestor(lp, def(body, "e")) && !body.is_ancestor(lp, def(body, "h")));
        assert!(body.is_in_loop(def(body, "g")) && !body.is_in_loop(lp));
        assert_eq!(body.ancestor_in(body.root(), def(body, "e")), Some(lp));
        assert_eq!(body.ancestor_in(body.op_regions(lp)[0], lp), None);
    });
}

#[test]
fn values_are_defined_in_nested_and_visible_in_inner_regions() {
    with_body(NESTED, |_, body| {
        let (inner, outer) = (body.region_of(named(body, "d")), body.root());
        let inner = inner.expect("a region");
        assert!(body.is_defined_in(named(body, "d"), outer));
        assert!(!body.is_defined_in(named(body, "b"), inner));
        assert!(body.is_visible_in(named(body, "i"), inner));
        assert!(!body.is_visible_in(named(body, "d"), outer));
        let one = body.operand(def(body, "a"), 1);
        assert!(!body.is_defined_in(one, outer) && body.is_visible_in(one, outer));
    });
}

#[test]
fn definitions_dominate_later_and_nested_ops() {
    with_body(NESTED, |_, body| {
        let dominates = |value, op| body.dominates(named(body, value), def(body, op));
        assert!(dominates("n", "h") && dominates("i", "e") && dominates("a", "d"));
        assert!(dominates("b", "g") && dominates("b", "e"));
        assert!(!dominates("d", "e") && !dominates("d", "g") && !dominates("i", "h"));
        assert!(!dominates("h", "a") && !dominates("h", "b") && !dominates("a", "a"));
    });
}

#[test]
fn address_base_skips_offsets() {
    with_body(
        "%q = addr f64, %p, %n %r = addr f64, %q, 1 %v = load %r -> ptr %s = addr i8, %v, 1",
        |_, body| {
            let base = |name| body.address_base(named(body, name));
            assert_eq!(base("r"), named(body, "p"));
            assert_eq!(base("s"), named(body, "v"));
        },
    );
}

#[test]
fn kinds_of_constants_are_read() {
    with_body(
        "store null, %p %u = add i64 undef, %n %v = add i64 poison, %n",
        |unit, body| {
            let store = body.first(body.root()).expect("a store");
            let (undef, poison) = (
                body.operand(def(body, "u"), 0),
                body.operand(def(body, "v"), 0),
            );
            assert!(body.is_null(unit, body.operand(store, 0)));
            assert!(!body.is_null(unit, named(body, "p")) && !body.is_null(unit, undef));
            assert!(body.is_poison(unit, poison) && !body.is_poison(unit, undef));
            assert!(body.is_undef_or_poison(unit, undef) && body.is_undef_or_poison(unit, poison));
        },
    );
}
