//! Tests of alias analysis: pairs of accesses, and the switch of each fact.

use crate::Program;
use gradus_analysis::{AliasOptions, BaseValue};

fn may_meet(p: &Program, load: &str, pointer: &str, options: &AliasOptions) -> bool {
    p.alias_with(options)
        .may_alias_any_iteration(&p.read_of(load), &p.write_to(pointer))
}

/// Checks that the load and the store are disjoint, and may alias without the fact.
fn rests_on(p: &Program, load: &str, pointer: &str, off: impl Fn(&mut AliasOptions)) {
    let mut options = AliasOptions::default();
    assert!(
        !may_meet(p, load, pointer, &options),
        "{load} and {pointer} are apart"
    );
    off(&mut options);
    assert!(
        may_meet(p, load, pointer, &options),
        "the fact was switched off"
    );
}

#[test]
fn arguments_may_be_the_same_object() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr) -> f64 { %v = load %x -> f64 store 1.0, %y return %v }",
    );
    assert!(may_meet(&p, "v", "y", &AliasOptions::default()));
    let assumed = AliasOptions {
        assume_disjoint: vec![(
            BaseValue::Value(p.value("y")),
            BaseValue::Value(p.value("x")),
        )],
        ..AliasOptions::default()
    };
    assert!(!may_meet(&p, "v", "y", &assumed));
    let assumed = AliasOptions {
        assume_disjoint_params: vec![(0, 1)],
        ..AliasOptions::default()
    };
    assert!(!may_meet(&p, "v", "y", &assumed));
}

#[test]
fn noalias_arguments_are_disjoint() {
    let p = Program::read(
        "attrs 0 = param(noalias) param()
         func @f(%x: ptr, %y: ptr) -> f64 #0 { %v = load %x -> f64 store 1.0, %y return %v }",
    );
    rests_on(&p, "v", "y", |o| o.noalias = false);
}

#[test]
fn noalias_derived_pointer_aliases() {
    let p = Program::read(
        "attrs 0 = param(noalias) param()
         func @f(%x: ptr, %n: i64) -> f64 #0 {
           %q = addr inbounds f64, %x, %n
           %v = load %x -> f64 store 1.0, %q return %v }",
    );
    assert!(may_meet(&p, "v", "q", &AliasOptions::default()));
}

#[test]
fn fresh_memory_aliases_after_escape() {
    let text = |keep: &str| {
        format!(
            "declare @malloc(i64) -> ptr
             func @f(%c: ptr) -> f64 {{
               %a = call @malloc(80)
               {keep}
               %q = load %c -> ptr
               store 1.0, %q
               %v = load %a -> f64
               return %v }}"
        )
    };
    let p = Program::read(&text(""));
    rests_on(&p, "v", "q", |o| o.escape = false);
    let p = Program::read(&text("store %a, %c"));
    assert!(may_meet(&p, "v", "q", &AliasOptions::default()));
}

#[test]
fn local_struct_contents_are_tracked() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         func @f(%x: ptr) -> f64 {
           %w = alloca {ptr, ptr}, 1
           %a = call @malloc(80)
           store %a, %w
           %q = load %w -> ptr
           store 1.0, %q
           %v = load %x -> f64
           %u = load %a -> f64
           return %v }",
    );
    assert!(!may_meet(&p, "v", "q", &AliasOptions::default()));
    assert!(may_meet(&p, "u", "q", &AliasOptions::default()));
}

#[test]
fn pointer_through_integer_is_tracked() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) -> f64 {
           %w = alloca f64, 1
           %i = ptrtoint %w -> i64
           %j = add %i, %n
           %q = inttoptr %j -> ptr
           store 1.0, %q
           %v = load %w -> f64
           return %v }",
    );
    assert!(may_meet(&p, "v", "q", &AliasOptions::default()));
}

#[test]
fn globals_and_arguments() {
    let p = Program::read(
        "global @g: f64 internal = [0.0]
         global @h: f64 internal = [0.0]
         func @f(%x: ptr) -> f64 {
           %v = load @g -> f64
           %p = addr f64, @h, 0
           store 1.0, %p
           store 1.0, %x
           return %v }",
    );
    rests_on(&p, "v", "p", |o| o.objects = false);
    assert!(
        may_meet(&p, "v", "x", &AliasOptions::default()),
        "a caller may pass &g"
    );
}

#[test]
fn constant_offsets_and_sizes() {
    let p = Program::read(
        "func @f(%x: ptr) -> f64 {
           %p = addr inbounds f64, %x, 1
           %q = addr inbounds i8, %x, 12
           %v = load %x -> f64
           %u = load %p -> f64
           store 1.0, %p
           store i8 0, %q
           return %v }",
    );
    rests_on(&p, "v", "p", |o| o.offsets = false);
    assert!(may_meet(&p, "u", "q", &AliasOptions::default()));
}

#[test]
fn one_iteration_is_not_any_iteration() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           for %i < %n {
             %p = addr inbounds f64, %x, %i
             %i1 = add nsw %i, 1
             %q = addr inbounds f64, %x, %i1
             %v = load %p -> f64
             store %v, %q
             yield
           }
           return }",
    );
    let alias = p.alias();
    let (read, write) = (p.read_of("v"), p.write_to("q"));
    assert!(!alias.may_alias(&read, &write), "x[i] and x[i+1]");
    assert!(
        alias.may_alias_any_iteration(&read, &write),
        "x[i] and x[j+1]"
    );
}

#[test]
fn interleaved_strides_are_disjoint() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           for %i < %n {
             %p = addr inbounds [2 x f64], %x, %i, 0
             %q = addr inbounds [2 x f64], %x, %i, 1
             %r = addr inbounds f64, %x, %i
             %v = load %p -> f64
             store %v, %q
             store %v, %r
             yield
           }
           return }",
    );
    rests_on(&p, "v", "q", |o| o.offsets = false);
    assert!(may_meet(&p, "v", "r", &AliasOptions::default()));
}

#[test]
fn a_stride_of_three_wraps_without_inbounds() {
    let text = |flag: &str| {
        format!(
            "func @f(%x: ptr, %i: i64, %j: i64) -> f64 {{
               %p = addr {flag} [3 x f64], %x, %i, 0
               %q = addr {flag} [3 x f64], %x, %j, 1
               %v = load %p -> f64
               store 1.0, %q
               return %v }}"
        )
    };
    assert!(!may_meet(
        &Program::read(&text("inbounds")),
        "v",
        "q",
        &AliasOptions::default()
    ));
    assert!(
        may_meet(
            &Program::read(&text("")),
            "v",
            "q",
            &AliasOptions::default()
        ),
        "24 i = 24 j + 8 has solutions modulo 2^64"
    );
}

#[test]
fn adjacent_blocks_are_disjoint() {
    let p = Program::read(
        "func @f(%s: ptr, %b: i64) {
           %cell = addr inbounds f64, %s, %b
           for %i < %b {
             %p = addr inbounds f64, %s, %i
             %q = addr inbounds f64, %cell, %i
             %v = load %p -> f64
             store %v, %q
             yield
           }
           return }",
    );
    rests_on(&p, "v", "q", |o| o.ranges = false);
}

#[test]
fn a_triangle_stays_below_its_diagonal() {
    let p = Program::read(
        "func @f(%s: ptr, %n: i64) {
           for %i < %n {
             %d = addr inbounds f64, %s, %i
             for %j < %i {
               %p = addr inbounds f64, %s, %j
               %v = load %p -> f64
               store %v, %d
               yield
             }
             yield
           }
           return }",
    );
    let alias = p.alias();
    let (read, write) = (p.read_of("v"), p.write_to("d"));
    assert!(!alias.may_alias(&read, &write), "j < i");
    let inner = p.lp(1);
    assert!(!alias.may_alias_within(&read, &write, alias.nest.enclosing_loop(inner)));
    assert!(
        alias.may_alias_any_iteration(&read, &write),
        "a later i is an earlier j"
    );
}

#[test]
fn tbaa_separates_doubles_and_pointers() {
    let p = Program::read(
        "tbaa 0 = \"root\" ()
         tbaa 1 = \"omnipotent char\" (0: 0)
         tbaa 2 = \"double\" (0: 1)
         tbaa 3 = \"any pointer\" (0: 1)
         tbaa 4 = \"ctx\" (0: 3, 8: 2)
         func @f(%c: ptr, %x: ptr) -> ptr {
           %v = load %c -> ptr !tbaa(4, 3, 0)
           %q = addr inbounds i8, %c, 8
           %u = load %q -> f64 !tbaa(4, 2, 8)
           store 1.0, %x !tbaa(2, 2, 0)
           return %v }",
    );
    rests_on(&p, "v", "x", |o| o.tbaa = false);
    assert!(
        may_meet(&p, "u", "x", &AliasOptions::default()),
        "a double in a structure"
    );
}

#[test]
fn tbaa_separates_struct_fields() {
    let p = Program::read(
        "tbaa 0 = \"root\" ()
         tbaa 1 = \"char\" (0: 0)
         tbaa 2 = \"double\" (0: 1)
         tbaa 3 = \"pair\" (0: 2, 8: 2)
         func @f(%c: ptr, %x: ptr) -> f64 {
           %v = load %c -> f64 !tbaa(3, 2, 0)
           store 1.0, %x !tbaa(3, 2, 8)
           return %v }",
    );
    rests_on(&p, "v", "x", |o| o.tbaa = false);
}

#[test]
fn alias_scopes_exclude_each_other() {
    let text = |meta: &str| {
        format!(
            "scope 0 = \"a\" in \"f\"
             scope 1 = \"b\" in \"f\"
             scope 2 = \"c\" in \"f\"
             func @f(%x: ptr, %y: ptr) -> f64 {{
               %v = load %x -> f64 !scopes(0)
               store 1.0, %y {meta}
               return %v }}"
        )
    };
    let p = Program::read(&text("!scopes(1) !noalias(0)"));
    rests_on(&p, "v", "y", |o| o.scopes = false);
    let p = Program::read(&text("!noalias(2)"));
    assert!(may_meet(&p, "v", "y", &AliasOptions::default()));
}

#[test]
fn errno_is_no_double() {
    let p = Program::read(
        "declare @exp(f64) -> f64
         declare @__errno_location() -> ptr
         func @f(%x: ptr) -> f64 {
           %v = load %x -> f64
           %q = load %x -> ptr
           %i = load %q -> i32
           %e = call @__errno_location()
           %n = load %e -> i32
           %r = call @exp(%v)
           return %r }",
    );
    let errno = p.access(p.call("exp", 0), gradus_analysis::AccessKind::Write);
    let meets = |name: &str, options: &AliasOptions| {
        p.alias_with(options).may_alias(&p.read_of(name), &errno)
    };
    let on = AliasOptions::default();
    assert!(!meets("v", &on) && !meets("i", &on));
    assert!(meets("n", &on), "that is errno itself");
    let off = AliasOptions { errno: false, ..on };
    assert!(meets("i", &off));
}

#[test]
fn induction_pointers_are_disjoint() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           %im0 = addr inbounds i8, %x, 8
           %re.end, %im.end = for %i < %n iter(%re = %x, %im = %im0) {
             %v = load %re -> f64
             store %v, %im
             %re1 = addr inbounds i8, %re, 16
             %im1 = addr inbounds i8, %im, 16
             yield %re1, %im1 }
           return }",
    );
    rests_on(&p, "v", "im", |o| o.offsets = false);
}

#[test]
fn a_structure_by_value_holds_pointers_of_the_caller() {
    let p = Program::read(
        "attrs 0 = param(byval = type {ptr, i64}) param()
         func @f(%s: ptr, %x: ptr) -> f64 #0 {
           %q = load %s -> ptr
           store 1.0, %q
           %v = load %x -> f64
           %t = load %s -> i64
           return %v }",
    );
    assert!(may_meet(&p, "v", "q", &AliasOptions::default()));
    assert!(
        !may_meet(&p, "t", "q", &AliasOptions::default()),
        "the copy is the callee's own"
    );
}

#[test]
fn three_buffers_in_a_ring() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         func @f(%n: i64) {
           %a = call @malloc(80)
           %b = call @malloc(80)
           %c = call @malloc(80)
           %e1, %e2, %e3 = for %s < %n iter(%u = %a, %v = %b, %w = %c) {
             %r = load %u -> f64
             %r2 = load %v -> f64
             store %r, %w
             yield %v, %w, %u }
           return }",
    );
    let alias = p.alias();
    let write = p.write_to("w");
    assert!(!alias.may_alias(&p.read_of("r"), &write));
    assert!(!alias.may_alias(&p.read_of("r2"), &write));
    assert!(alias.may_alias_any_iteration(&p.read_of("r"), &write));
}

#[test]
fn buffers_that_are_not_always_swapped_may_coincide() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         func @f(%n: i64, %k: i1) {
           %a = call @malloc(80)
           %b = call @malloc(80)
           %e1, %e2 = for %s < %n iter(%u = %a, %v = %b) {
             %r = load %u -> f64
             store %r, %v
             %next = select %k, %u, %v
             yield %next, %u }
           return }",
    );
    assert!(
        p.alias().may_alias(&p.read_of("r"), &p.write_to("v")),
        "next may be u"
    );
}
