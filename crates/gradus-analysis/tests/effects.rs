//! Tests of function summaries.

use crate::Program;
use gradus_analysis::{AccessKind, AccessSummary, Effects, Extent, FunctionEffects, MemoryRegion};

fn summary(p: &Program, name: &str) -> FunctionEffects {
    let func = p.unit.function(name).expect("the text has it");
    let found = p.effects.of_function(func);
    found.expect("it is in the closure").clone()
}

#[test]
fn argument_effects_are_byte_ranges() {
    let p = Program::read(
        "func @g(%x: ptr, %out: ptr, %n: i64) {
           %v = load %x -> f64
           %q = addr inbounds f64, %out, 2
           store %v, %q
           %r = addr inbounds f64, %x, %n
           %u = load %r -> f64
           return }
         func @f(%x: ptr, %y: ptr) { call @g(%x, %y, 3) return }",
    );
    let g = summary(&p, "g");
    assert_eq!(g.param(0).reads, Extent::Object);
    assert_eq!(g.param(0).writes, Extent::Nothing);
    assert_eq!(g.param(1).writes, Extent::Bytes(16, 24));
    assert!(!g.param(0).captures && !g.param(1).captures);
    assert_eq!(
        (g.reachable, g.errno, g.inaccessible),
        (
            AccessSummary::NONE,
            AccessSummary::NONE,
            AccessSummary::NONE
        )
    );
    assert!(!g.may_throw && !g.may_not_return && !g.calls_unknown);
    let write = p.access(p.call("g", 0), AccessKind::Write);
    assert_eq!((write.offset, write.size), (16, Some(8)));
    assert_eq!(write.place, MemoryRegion::At(p.value("y")));
}

#[test]
fn malloc_wrapper_returns_fresh() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         declare @abort()
         func @doubles(%n: i64) -> ptr {
           %b = shl %n, 3
           %a = call @malloc(%b)
           %bad = icmp eq %a, null
           if %bad { call @abort() unreachable } else { yield }
           return %a }
         func @f(%x: ptr) -> f64 {
           %a = call @doubles(8)
           %v = load %x -> f64
           store %v, %a
           return %v }",
    );
    let doubles = summary(&p, "doubles");
    assert!(doubles.returns_fresh && !doubles.returns_other && doubles.may_not_return);
    assert!(!p.alias().may_alias(&p.read_of("v"), &p.write_to("a")));
}

#[test]
fn recursion_reaches_a_fixed_point() {
    let p = Program::read(
        "func @odd(%x: ptr, %n: i64) {
           %z = icmp eq %n, 0
           if %z { yield } else {
             %m = sub %n, 1
             call @even(%x, %m)
             yield }
           return }
         func @even(%x: ptr, %n: i64) {
           store 1.0, %x
           %z = icmp eq %n, 0
           if %z { yield } else {
             %m = sub %n, 1
             call @odd(%x, %m)
             yield }
           return }
         func @f(%x: ptr) { call @odd(%x, 7) return }",
    );
    let odd = summary(&p, "odd");
    assert_eq!(odd.param(0).writes, Extent::Object);
    assert_eq!(odd.param(0).reads, Extent::Nothing);
    assert!(!odd.reachable.reads && !odd.calls_unknown && odd.may_not_return);
}

#[test]
fn unknown_callee_has_all_effects() {
    let p = Program::read(
        "declare @mystery(ptr)
         func @f(%x: ptr, %y: ptr) -> f64 {
           %w = alloca f64, 1
           %v = load %y -> f64
           call @mystery(%x)
           %u = load %w -> f64
           return %v }",
    );
    let call = p.call("mystery", 0);
    let list = p.effects.of_op(&p.unit, p.body(), call);
    let reachable = |kind| {
        list.iter()
            .any(|a| a.place == MemoryRegion::Reachable && a.kind == kind)
    };
    assert!(reachable(AccessKind::Read) && reachable(AccessKind::Write));
    assert!(reachable(AccessKind::Free));
    let meets = |name: &str| {
        list.iter()
            .any(|a| a.is_clobber() && p.alias().may_alias(&p.read_of(name), a))
    };
    assert!(meets("v") && !meets("u"), "the local never left");
}

#[test]
fn attributes_refine_effects() {
    let text = |attrs: &str| {
        format!(
            "attrs 0 = {attrs}
             declare @g(ptr) -> i64 #0
             func @f(%x: ptr) -> i64 {{ %r = call @g(%x) return %r }}"
        )
    };
    let of = |attrs: &str| {
        let p = Program::read(&text(attrs));
        p.effects.of_call(&p.unit, p.body(), p.call("g", 0))
    };
    // memory(argmem: read): bit 0 of location 0.
    let reads = of("fn(nounwind, willreturn, memory = 1) param(captures = 0)");
    assert_eq!(reads.param(0).reads, Extent::Object);
    assert!(!reads.writes_memory() && !reads.reachable.reads && !reads.errno.writes);
    assert!(!reads.param(0).captures && !reads.may_throw && !reads.may_not_return);
    // memory(errnomem: write): bit 1 of location 2.
    let sets = of("fn(memory = 32)");
    assert!(sets.errno.writes && !sets.writes_memory() && !sets.reads_memory());
    let readonly = of("param(readonly)");
    assert!(readonly.param(0).writes.is_nothing() && readonly.reachable.writes);
}

#[test]
fn later_function_uses_attributes() {
    let p = Program::read(
        "declare @sin(f64) -> f64
         func @f(%x: f64) -> f64 { %r = call @sin(%x) return %r }",
    );
    let nothing = Effects::default();
    let list = nothing.of_op(&p.unit, p.body(), p.call("sin", 0));
    assert!(
        list.iter().all(|a| a.place == MemoryRegion::Errno),
        "{list:?}"
    );
}
