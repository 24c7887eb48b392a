//! Tests of loop fusion: legality and profitability.

use super::{fuse_parallel_loops, merge_branches_around_loops};
use gradus_analysis::{AliasOptions, Analyses};
use gradus_ir::{FuncId, OpKind, Unit, parse, verify};

/// Parses a program with disjoint arrays, an index array, a number and a boolean.
fn unit(code: &str) -> (Unit, FuncId) {
    let text = format!(
        "attrs 0 = param(noalias) param(noalias) param(noalias) param(noalias)
         func @f(%a: ptr, %b: ptr, %t: ptr, %list: ptr, %n: i64, %m: i64, %c: i1) -> void #0 {{
           {code}
           return }}"
    );
    let unit = parse(&text, "program").unwrap_or_else(|e| panic!("{e} {:?}\n{text}", e.labels));
    let f = unit.function("f").expect("it is there");
    (unit, f)
}

/// Returns the number of parallel loops after fusion.
fn loops(code: &str) -> usize {
    let (mut unit, f) = unit(code);
    merge_branches_around_loops(&mut unit, &[f]);
    fuse_parallel_loops(
        &mut unit,
        &mut Analyses::default(),
        &[f],
        &AliasOptions::default(),
    );
    assert!(verify(&unit).is_empty(), "{}", gradus_ir::print(&unit));
    let body = unit.functions[f].body.as_deref().expect("it has code");
    let is_loop = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::ParFor { .. });
    body.walk(body.root()).filter(is_loop).count()
}

/// Builds `t[at] = value` for every index `i`, then `b[i] = t[other]`.
fn writes_then_reads(first: &str, at: &str, second: &str, other: &str) -> String {
    format!(
        "par.for %i < %n {{ {first} %p = addr f64, %t, {at} store f64 1.0, %p yield }}
         par.for %j < %n {{ {second} %q = addr f64, %t, {other} %x = load %q -> f64
           %r = addr f64, %b, %j store %x, %r yield }}"
    )
}

#[test]
fn equal_iterations_fuse() {
    assert_eq!(loops(&writes_then_reads("", "%i", "", "%j")), 1);
}

#[test]
fn neighbour_access_prevents_fusion() {
    let next = "%k = add nsw %j, 1";
    assert_eq!(loops(&writes_then_reads("", "%i", next, "%k")), 2);
    let back = "%l = sub nsw %n, 1 %k = sub nsw %l, %j";
    assert_eq!(loops(&writes_then_reads("", "%i", back, "%k")), 2);
    assert_eq!(loops(&writes_then_reads("", "%i", "", "0")), 2);
}

#[test]
fn equal_index_arrays_fuse() {
    let by =
        |i: &str, list: &str| format!("%e{i} = addr i64, {list}, %{i} %k{i} = load %e{i} -> i64");
    let (one, other) = (by("i", "%list"), by("j", "%list"));
    assert_eq!(loops(&writes_then_reads(&one, "%ki", &other, "%kj")), 1);
    let elsewhere = by("j", "%a");
    assert_eq!(loops(&writes_then_reads(&one, "%ki", &elsewhere, "%kj")), 2);
}

#[test]
fn uniform_store_prevents_fusion() {
    assert_eq!(loops(&writes_then_reads("", "0", "", "0")), 2);
}

#[test]
fn mutated_index_array_prevents_fusion() {
    let code = "
        par.for %i < %n { %e = addr i64, %list, %i %k = load %e -> i64
          %p = addr f64, %t, %k store f64 1.0, %p yield }
        par.for %j < %n { %f = addr i64, %list, %j %g = load %f -> i64
          %q = addr f64, %t, %g %x = load %q -> f64
          %r = addr f64, %b, %j store %x, %r
          %next = add %g, 1 store %next, %f yield }";
    assert_eq!(loops(code), 2);
}

#[test]
fn conditional_store_prevents_fusion() {
    let code = "
        par.for %i < %n { %e = addr i64, %list, %i %k = load %e -> i64
          %some = icmp sgt %i, 3
          if %some { %p = addr f64, %t, %k store f64 1.0, %p yield } else { yield }
          yield }
        par.for %j < %n { %f = addr i64, %list, %j %g = load %f -> i64
          %few = icmp sgt %j, 3
          if %few { %q = addr f64, %t, %g %x = load %q -> f64
            %r = addr f64, %b, %j store %x, %r yield } else { yield }
          yield }";
    assert_eq!(loops(code), 2);
}

#[test]
fn equal_row_loops_fuse() {
    let rows = |length: &str| {
        format!(
            "par.for %i < %n {{ %s = mul nsw %i, %m
               for %k < %m {{ %e = add nsw %s, %k %p = addr f64, %t, %e store f64 1.0, %p yield }}
               yield }}
             par.for %j < %n {{ %u = mul nsw %j, %m
               for %g < {length} {{ %f = add nsw %u, %g %q = addr f64, %t, %f %x = load %q -> f64
                 %r = addr f64, %b, %f store %x, %r yield }}
               yield }}"
        )
    };
    assert_eq!(loops(&rows("%m")), 1);
    assert_eq!(loops(&rows("%n")), 2);
}

#[test]
fn inner_loops_match_one_to_one() {
    let code = "
        par.for %i < %n { %s = mul nsw %i, %m
          for %k < %m { %e = add nsw %s, %k %d = add nsw %e, %k
            %p = addr f64, %t, %d store f64 1.0, %p yield }
          yield }
        par.for %j < %n { %u = mul nsw %j, %m
          for %g < %m { %f = add nsw %u, %g
            for %l < %m { %v = add nsw %f, %l %q = addr f64, %t, %v %x = load %q -> f64
              %r = addr f64, %b, %v store %x, %r yield }
            yield }
          yield }";
    assert_eq!(loops(code), 2);
}

#[test]
fn accesses_within_stride_fuse() {
    let code = |at: &str| {
        format!(
            "par.for %i < %n {{ %s = mul nsw %i, 16 %p = addr inbounds i8, %t, %s store f64 1.0, %p yield }}
             par.for %j < %n {{ %u = mul nsw %j, 16 %o = add nsw %u, {at}
               %q = addr inbounds i8, %t, %o %x = load %q -> f64
               %r = addr f64, %b, %j store %x, %r yield }}"
        )
    };
    assert_eq!(loops(&code("4")), 1);
    assert_eq!(loops(&code("12")), 2);
}

#[test]
fn equal_conditions_are_merged() {
    let code = "
        if %c { par.for %i < %n { %p = addr f64, %t, %i store f64 1.0, %p yield } yield } else { yield }
        %d = add nsw %m, 1
        if %c { par.for %j < %n { %q = addr f64, %t, %j %x = load %q -> f64
          %r = addr f64, %b, %j store %x, %r yield } yield } else { yield }";
    assert_eq!(loops(code), 1);
    let changed = code.replace("%d = add nsw %m, 1", "store %m, %a");
    assert_eq!(loops(&changed), 2);
}

#[test]
fn reductions_fuse_unless_used() {
    let code = |used: &str, reduce: &str, given: &str| {
        format!(
            "%s = par.for %i < %n reduce(fadd 0.0) {{ %p = addr f64, %t, %i %w = load %p -> f64 yield %w }}
             par.for %j < %n {reduce} {{ %q = addr f64, %t, %j %x = load %q -> f64
               %y = fmul %x, {used} %r = addr f64, %b, %j store %y, %r yield {given} }}
             store %s, %a"
        )
    };
    let sum = |used: &str| {
        code(used, "reduce(fmax 0.0)", "%y").replacen("par.for %j", "%z = par.for %j", 1)
    };
    assert_eq!(loops(&sum("f64 2.0")), 1);
    assert_eq!(loops(&sum("%s")), 2);
    assert_eq!(loops(&code("f64 2.0", "", "")), 2);
}

#[test]
fn unequal_or_unrelated_loops_unfused() {
    let code = writes_then_reads("", "%i", "", "%j").replace("par.for %j < %n", "par.for %j < %m");
    assert_eq!(loops(&code), 2);
    let code = "
        par.for %i < %n { %p = addr f64, %t, %i store f64 1.0, %p yield }
        par.for %j < %n { %r = addr f64, %b, %j store f64 2.0, %r yield }";
    assert_eq!(loops(code), 2);
}

#[test]
fn dependence_between_prevents_fusion() {
    let code = |between: &str| {
        writes_then_reads("", "%i", "", "%j").replacen(
            "par.for %j",
            &format!("{between} par.for %j"),
            1,
        )
    };
    assert_eq!(loops(&code("%y = load %a -> f64")), 1);
    assert_eq!(loops(&code("%y = load %t -> f64")), 2);
    assert_eq!(loops(&code("store f64 2.0, %t")), 2);
}

#[test]
fn atomics_prevent_fusion() {
    let code = "
        par.for %i < %n { %e = addr i64, %list, %i %k = load %e -> i64
          %p = addr f64, %t, %k %o = atomicrmw fadd monotonic %p, f64 1.0 yield }
        par.for %j < %n { %f = addr i64, %list, %j %g = load %f -> i64
          %q = addr f64, %t, %g %x = load %q -> f64
          %r = addr f64, %b, %j store %x, %r yield }";
    assert_eq!(loops(code), 2);
}

#[test]
fn fusion_requires_race_freedom() {
    let (mut unit, f) = unit(&writes_then_reads("", "%i", "", "%j"));
    let options = AliasOptions {
        race_free: false,
        ..AliasOptions::default()
    };
    assert!(fuse_parallel_loops(&mut unit, &mut Analyses::default(), &[f], &options).is_empty());
}
