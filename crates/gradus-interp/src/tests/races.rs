//! Tests of race detection: all races are found in any order, without false positives.

use super::unit;
use crate::state::machine::Options;
use crate::{Machine, TrapKind};

/// Returns whether `@f` has a race, with four ranks in a team without a stated size.
fn races(text: &str) -> bool {
    let unit = unit(text);
    let options = Options {
        races: true,
        team: 4,
        ..Options::default()
    };
    match Machine::with_options(&unit, options).call("f", &[]) {
        Ok(_) => false,
        Err(trap) if trap.kind == TrapKind::Race => true,
        Err(trap) => panic!("{trap}\n{text}"),
    }
}

/// Returns the text of `@f` with the given ops and an array `%x` of zeros.
fn with_array(ops: &str) -> String {
    format!(
        "func @add(%p: ptr) -> void {{ %a = load %p -> i64 %b = add %a, 1 store %b, %p return }}
         func @f() -> void {{
           %x = alloca [16 x i64], 1
           for %k < 16 {{ %p = addr i64, %x, %k store 0, %p yield }}
           {ops}
           return }}"
    )
}

#[test]
fn conflicting_iterations_race() {
    let own = "par.for %i < 8 { %q = addr i64, %x, %i call @add(%q) yield }";
    assert!(!races(&with_array(own)));
    let one = "par.for %i < 8 { call @add(%x) yield }";
    assert!(races(&with_array(one)));
    let alone = "par.for %i < 1 { call @add(%x) yield }";
    assert!(!races(&with_array(alone)));
    let neighbour = "par.for %i < 8 { %j = add %i, 1 %q = addr i64, %x, %j %v = load %q -> i64
        %r = addr i64, %x, %i store %v, %r yield }";
    assert!(races(&with_array(neighbour)));
    let read = "par.for %i < 8 { %v = load %x -> i64 yield }";
    assert!(!races(&with_array(read)));
    let halves = "par.for %i < 2 { %q = addr i32, %x, %i store i32 7, %q yield }";
    assert!(!races(&with_array(halves)));
    let read_by_all = "par.for %i < 8 { %v = load %x -> i64 %last = icmp eq %i, 7
        if %last { store 1, %x yield } else { yield } yield }";
    assert!(races(&with_array(read_by_all)));
}

#[test]
fn atomics_and_locks_prevent_races() {
    let atomic = "par.for %i < 8 { %v = atomicrmw add monotonic %x, 1 yield }";
    assert!(!races(&with_array(atomic)));
    let half = "par.for %i < 8 { %v = atomicrmw add monotonic %x, 1 %w = load %x -> i64 yield }";
    assert!(races(&with_array(half)));
    let locked = "par.for %i < 8 { critical \"a\" { call @add(%x) yield } yield }";
    assert!(!races(&with_array(locked)));
    let other = "par.for %i < 8 { %c = icmp eq %i, 3
        if %c { critical \"a\" { call @add(%x) yield } yield }
        else { critical \"b\" { call @add(%x) yield } yield } yield }";
    assert!(races(&with_array(other)));
    let outside = "critical \"a\" { par.for %i < 8 { call @add(%x) yield } yield }";
    assert!(races(&with_array(outside)));
}

#[test]
fn inner_and_outer_iterations_race() {
    let apart = "par.for %i < 4 { par.for %j < 4 {
        %a = mul %i, 4 %b = add %a, %j %q = addr i64, %x, %b call @add(%q) yield } yield }";
    assert!(!races(&with_array(apart)));
    let across = "par.for %i < 4 { par.for %j < 4 {
        %q = addr i64, %x, %j call @add(%q) yield } yield }";
    assert!(races(&with_array(across)));
    let after = "par.for %i < 4 { %q = addr i64, %x, %i call @add(%q) yield }
        par.for %h < 4 { %j = sub 3, %h %r = addr i64, %x, %j call @add(%r) yield }";
    assert!(!races(&with_array(after)));
}

#[test]
fn tasks_race_until_sync() {
    let task = "spawn { call @add(%x) yield }";
    let scope = |ops: &str| with_array(&format!("scope {{ {ops} yield }} call @add(%x)"));
    assert!(!races(&scope(&format!("call @add(%x) {task}"))));
    assert!(races(&scope(&format!("{task} call @add(%x)"))));
    assert!(races(&scope(&format!("{task} {task}"))));
    assert!(!races(&scope(&format!("{task} sync call @add(%x) {task}"))));
    let inner = format!("spawn {{ {task} yield }}");
    assert!(!races(&scope(&inner)));
    assert!(races(&scope(&format!("{inner} {task}"))));
    let at_once = "%no = icmp eq 1, 2 spawn when %no { call @add(%x) yield } call @add(%x)";
    assert!(!races(&scope(at_once)));
}

#[test]
fn ranks_race_between_barriers() {
    let team = |ops: &str| with_array(&format!("spmd team 0 {{ |%r: i64, %n: i64| {ops} yield }}"));
    let own = "%q = addr i64, %x, %r call @add(%q)";
    let neighbour = "%t = add %r, 1 %s = addr i64, %x, %t call @add(%s)";
    assert!(!races(&team(own)));
    assert!(races(&team(&format!("{own} {neighbour}"))));
    assert!(!races(&team(&format!("{own} barrier team {neighbour}"))));
    assert!(races(&team("call @add(%x)")));
    assert!(!races(&team("single { call @add(%x) yield }")));
    let shared = |i: &str, q: &str| {
        format!("share.for static {i} < 16 {{ {q} = addr i64, %x, {i} call @add({q}) yield }}")
    };
    let (first, second) = (shared("%i", "%q"), shared("%j", "%s"));
    assert!(!races(&team(&format!("{first} {second}"))));
}

#[test]
fn masked_vector_accesses_race() {
    let program = |stored: &str, loaded: &str| {
        let head = "declare @llvm.masked.store.v2i64.p0(<2 x i64>, ptr, <2 x i1>) -> void
             declare @llvm.masked.load.v2i64.p0(ptr, <2 x i1>, <2 x i64>) -> <2 x i64>\n";
        let ops = format!(
            "par.for %i < 4 {{ %j = mul %i, 2 %q = addr i64, %x, %j %c = icmp eq %i, 1
               if %c {{ {stored} yield }} else {{ {loaded} yield }} yield }}"
        );
        format!("{head}{}", with_array(&ops))
    };
    let store = |place: &str, mask: &str| {
        format!("call @llvm.masked.store.v2i64.p0(<2 x i64> {{1, 2}}, {place}, <2 x i1> {mask})")
    };
    let load = |place: &str, mask: &str| {
        format!("%v = call @llvm.masked.load.v2i64.p0({place}, <2 x i1> {mask}, <2 x i64> zero)")
    };
    let (both, first) = ("{true, true}", "{true, false}");
    assert!(!races(&program(&store("%q", both), &load("%q", both))));
    let second = "{false, true}";
    let at_two = |mask: &str| format!("%r = addr i64, %x, 2 {}", load("%r", mask));
    assert!(races(&program(&store("%q", both), &at_two(both))));
    assert!(!races(&program(&store("%q", first), &at_two(second))));
    assert!(races(&program(&store("%x", both), &store("%x", both))));
}
