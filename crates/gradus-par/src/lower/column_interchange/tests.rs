//! Tests of column interchange: legality and profitability.

use crate::{Options, lower};
use gradus_analysis::Analyses;
use gradus_ir::{Body, Flags, OpKind, Region, parse, verify};

/// Returns true if lowering interchanges the program's parallel loop with a loop down columns.
fn is_interchanged(code: &str) -> bool {
    is_interchanged_with(code, Options::default())
}

fn is_interchanged_with(code: &str, options: Options) -> bool {
    let text = format!(
        "attrs 0 = param(noalias) param(noalias) param(noalias)
         func @f(%a: ptr, %o: ptr, %list: ptr, %n: i64, %m: i64) -> void #0 {{ {code} return }}"
    );
    let mut unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}\n{text}", e.labels));
    let f = unit.function("f").expect("it is there");
    let made = lower(&mut unit, &mut Analyses::default(), &[f], &options).made;
    assert!(verify(&unit).is_empty(), "{}", gradus_ir::print(&unit));
    let bodies = made
        .iter()
        .filter_map(|func| unit.functions[*func].body.as_deref());
    bodies.into_iter().any(has_interchanged_nest)
}

/// Returns true if an independent loop is nested in a loop nested in a further loop.
fn has_interchanged_nest(body: &Body) -> bool {
    let is_loop = |region: Region| {
        let owner = body.owner(region)?;
        matches!(body.kind(owner), OpKind::For { .. }).then_some(owner)
    };
    body.walk(body.root()).any(|op| {
        let free = body.ops[op].flags.has(Flags::INDEPENDENT);
        let around = body.parent(op).and_then(is_loop);
        let rows = around.and_then(|rows| body.parent(rows)).and_then(is_loop);
        free && rows.is_some()
    })
}

/// Builds sums down columns; `at` computes the element's index from column `%j` and row `%i`.
fn sums(at: &str, length: &str) -> String {
    format!(
        "par.for %j < %n {{
           %s = for %i < {length} iter(%c = f64 0.0) {{ {at}
             %p = addr inbounds f64, %a, %k %x = load %p -> f64 %d = fadd %c, %x yield %d }}
           %q = addr inbounds f64, %o, %j store %s, %q yield }}"
    )
}

const DOWN: &str = "%r = mul nsw %i, %n %k = add nsw %r, %j";

#[test]
fn column_sums_are_interchanged() {
    assert!(is_interchanged(&sums(DOWN, "%m")));
}

#[test]
fn sums_in_memory_are_interchanged() {
    let code = format!(
        "par.for %j < %n {{ %q = addr inbounds f64, %o, %j
           for %i < %m {{ {DOWN} %p = addr inbounds f64, %a, %k %x = load %p -> f64
             %s = load %q -> f64 %t = fadd %s, %x store %t, %q yield }}
           yield }}"
    );
    assert!(is_interchanged(&code));
}

#[test]
fn rows_and_short_columns_unchanged() {
    assert!(!is_interchanged(&sums(
        "%r = mul nsw %j, %m %k = add nsw %r, %i",
        "%m"
    )));
    assert!(!is_interchanged(&sums(DOWN, "4")));
    assert!(!is_interchanged(&sums("%k = add nsw %i, %j", "%m")));
}

#[test]
fn variant_column_length_unchanged() {
    assert!(!is_interchanged(&sums(DOWN, "%j")));
}

#[test]
fn shared_store_is_not_interchanged() {
    let one = sums(DOWN, "%m").replace("yield %d", "store %x, %o yield %d");
    assert!(!is_interchanged(&one));
}

#[test]
fn index_array_is_not_interchanged() {
    let listed = format!("{DOWN} %e = addr i64, %list, %k %l = load %e -> i64");
    assert!(!is_interchanged(
        &sums(&listed, "%m").replace("%a, %k", "%a, %l")
    ));
}

#[test]
fn atomics_are_not_interchanged() {
    let atomic = sums(DOWN, "%m").replace(
        "yield %d",
        "%z = addr f64, %o, 0 %y = atomicrmw fadd monotonic %z, %x yield %d",
    );
    assert!(!is_interchanged(&atomic));
}

#[test]
fn interchange_requires_race_freedom() {
    let options = Options {
        race_free: false,
        ..Options::default()
    };
    assert!(!is_interchanged_with(&sums(DOWN, "%m"), options));
}
