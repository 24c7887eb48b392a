//! Tests of clobbers.

use crate::Program;
use gradus_analysis::{AliasOptions, BaseValue, Clobbers, ExitClobbers};

fn with<R>(p: &Program, look: impl FnOnce(&Clobbers) -> R) -> R {
    let alias = p.alias();
    look(&Clobbers::of(&alias, &p.effects, ExitClobbers::default()))
}

fn clobbered(p: &Program, name: &str) -> bool {
    with(p, |c| c.clobbered_after(p.op(name)))
}

#[test]
fn only_later_writes_clobber() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr) -> f64 {
           %v = load %x -> f64
           store 1.0, %x
           %u = load %x -> f64
           %y1 = addr inbounds f64, %y, 1
           %w = load %y1 -> f64
           return %u }",
    );
    assert!(clobbered(&p, "v") && !clobbered(&p, "u") && !clobbered(&p, "w"));
    with(&p, |c| {
        assert_eq!(c.fate(p.op("v")).written_by, Some(p.store("x")))
    });
}

#[test]
fn branches_exclude_unless_looped() {
    let text = |open: &str, close: &str| {
        format!(
            "func @f(%x: ptr, %c: i1, %n: i64) {{
               {open}
               if %c {{ %v = load %x -> f64 yield }} else {{ store 1.0, %x yield }}
               {close}
               return }}"
        )
    };
    assert!(!clobbered(&Program::read(&text("", "")), "v"));
    assert!(clobbered(
        &Program::read(&text("for %i < %n {", "yield }")),
        "v"
    ));
}

#[test]
fn store_before_load_in_loop_clobbers() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           for %i < %n {
             store 2.0, %x
             %v = load %x -> f64
             yield }
           return }",
    );
    assert!(clobbered(&p, "v"));
    with(&p, |c| {
        assert_eq!(c.fate(p.op("v")).written_by, Some(p.store("x")));
        assert!(!c.invariant_in(p.op("v"), p.lp(0)));
    });
}

#[test]
fn frees_differ_from_writes() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         declare @free(ptr)
         func @f(%x: ptr, %n: i64) {
           %a = call @malloc(80)
           %v = load %x -> f64
           store %v, %a
           %u = load %a -> f64
           call @free(%a)
           return }",
    );
    assert!(!clobbered(&p, "v"), "malloc and free do not touch x");
    with(&p, |c| {
        let fate = c.fate(p.op("u"));
        assert!(fate.written_by.is_none() && fate.freed_by == [p.call("free", 0)]);
        assert!(fate.ended_by.is_empty() && !fate.is_unmodified());
        assert!(c.fate(p.op("v")).freed_by.is_empty());
    });
}

#[test]
fn lifetime_markers_end_a_local() {
    let p = Program::read(
        "declare @llvm.lifetime.start.p0(i64, ptr)
         declare @llvm.lifetime.end.p0(i64, ptr)
         func @f(%n: i64) {
           %a = alloca f64, 1
           for %i < %n {
             call @llvm.lifetime.start.p0(8, %a)
             %v = load %a -> f64
             call @llvm.lifetime.end.p0(8, %a)
             yield }
           return }",
    );
    with(&p, |c| {
        let fate = c.fate(p.op("v"));
        assert!(fate.written_by.is_none() && fate.freed_by.is_empty());
        assert_eq!(
            fate.ended_by.len(),
            2,
            "the start in the next iteration too"
        );
    });
}

#[test]
fn iteration_local_memory_unmodified() {
    let text = |carry: &str| {
        format!(
            "declare @malloc(i64) -> ptr
             declare @free(ptr)
             func @f(%x: ptr, %n: i64) {{
               %end = for %i < %n iter(%old = ptr null) {{
                 %a = call @malloc(80)
                 store 1.0, %a
                 %v = load {carry} -> f64
                 yield %a }}
               return }}"
        )
    };
    assert!(!clobbered(&Program::read(&text("%a")), "v"));
    // The points-to sets do not separate the previous iteration's object from the object stored to in this
    // iteration.
    assert!(clobbered(&Program::read(&text("%old")), "v"));
}

#[test]
fn memcpy_clobbers_loads() {
    let p = Program::read(
        "declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
         func @f(%x: ptr, %n: i64) {
           %a = alloca f64, %n
           %v = load %a -> f64
           call @llvm.memcpy.p0.p0.i64(%a, %x, 80, false)
           %u = load %a -> f64
           return }",
    );
    assert!(clobbered(&p, "v") && !clobbered(&p, "u"));
    let copy = p.call("llvm.memcpy.p0.p0.i64", 0);
    with(&p, |c| {
        assert!(!c.clobbered_after(copy), "its source stays")
    });
}

#[test]
fn caller_may_write_after_end() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr) -> f64 {
           %w = alloca f64, 1
           %v = load %x -> f64
           %u = load %y -> f64
           %t = load %w -> f64
           %q = load %x -> ptr
           %s = load %q -> f64
           return %v }",
    );
    let alias = p.alias();
    let after = ExitClobbers {
        params: vec![true, false],
        others: false,
        frame: true,
    };
    let c = Clobbers::of(&alias, &p.effects, after);
    assert!(c.clobbered_after(p.op("v")) && !c.clobbered_after(p.op("u")));
    assert!(c.clobbered_after(p.op("t")), "the frame is gone");
    assert!(
        c.clobbered_after(p.op("s")),
        "a loaded pointer may point there"
    );
    assert!(c.fate(p.op("v")).after_end && c.fate(p.op("v")).written_by.is_none());
}

#[test]
fn disjointness_removes_clobbers() {
    let p = Program::read(
        "func @f(%x: ptr, %y: ptr, %n: i64) {
           for %i < %n {
             %p = addr inbounds f64, %x, %i
             %q = addr inbounds f64, %y, %i
             %v = load %p -> f64
             store %v, %q
             yield }
           return }",
    );
    assert!(clobbered(&p, "v"));
    let alias = p.alias_with(&AliasOptions {
        assume_disjoint: vec![(
            BaseValue::Value(p.value("x")),
            BaseValue::Value(p.value("y")),
        )],
        ..AliasOptions::default()
    });
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    assert!(!c.clobbered_after(p.op("v")));
}

#[test]
fn errno_does_not_clobber_math_inputs() {
    let p = Program::read(
        "declare @exp(f64) -> f64
         func @f(%x: ptr, %n: i64) {
           for %i < %n {
             %v = load %x -> f64
             %e = call @exp(%v)
             yield }
           return }",
    );
    assert!(!clobbered(&p, "v"));
}

/// Returns a kernel in which a loop with a barrier reads memory that another thread may write.
fn kernel(before: &str, inside: &str, after: &str) -> Program {
    Program::read(&format!(
        "func @meet() {{ barrier block return }}
         func @f(%x: ptr, %n: i64) {{
           spmd block 8 {{ |%t: i64, %m: i64|
             %s = alloca shared [8 x f64], 1
             %own = addr inbounds f64, %s, %t
             %other = addr inbounds f64, %s, 5
             {before}
             for %i < %n {{
               {inside}
               %v = load %other -> f64
               %u = load %x -> f64
               barrier block
               yield }}
             {after}
             yield }}
           return }}"
    ))
}

#[test]
fn barriers_expose_writes_of_ranks() {
    let unchanged = |before: &str, inside: &str, after: &str| {
        let p = kernel(before, inside, after);
        with(&p, |c| {
            let of = |name: &str| c.invariant_in(p.op(name), p.lp(1));
            assert_eq!(of("u"), !inside.contains("call"), "nobody here writes x");
            of("v")
        })
    };
    let store = "store 1.0, %own";
    assert!(unchanged("", "", ""));
    assert!(!unchanged(store, "barrier block", ""));
    assert!(!unchanged(store, "call @meet()", ""));
    let met = format!("{store} barrier block");
    assert!(unchanged(&met, "barrier block", "barrier block"));
    assert!(!unchanged(&met, "barrier grid", "barrier block"));
    // Ranks with fewer iterations are after the loop while other ranks are still inside.
    assert!(!unchanged("barrier block", "barrier block", store));
    let met = format!("barrier block {store}");
    assert!(unchanged("barrier block", "barrier block", &met));
    assert!(!unchanged(
        "if true { barrier block yield }",
        "barrier block",
        store
    ));
}

#[test]
fn barrier_exposes_writes_of_callers() {
    let p = Program::read(
        "func @f(%x: ptr, %n: i64) {
           %own = alloca f64, 1
           store 1.0, %own
           for %i < %n {
             barrier block
             %v = load %x -> f64
             %u = load %own -> f64
             yield }
           return }",
    );
    with(&p, |c| {
        assert!(!c.invariant_in(p.op("v"), p.lp(0)));
        assert!(c.invariant_in(p.op("u"), p.lp(0)));
    });
}
