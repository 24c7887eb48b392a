//! Memory patterns of benchmark programs after inlining: the facts required for a gradient with minimal
//! tape.

use crate::Program;
use gradus_analysis::{Clobbers, ExitClobbers, Variance};

const STENCIL: &str = "
declare @malloc(i64) -> ptr
declare @free(ptr)
declare @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
func @f(%x: ptr, %k: ptr, %n: i64, %steps: i64) -> f64 {
  %bytes = shl nuw nsw %n, 3
  %a = call @malloc(%bytes)
  %b = call @malloc(%bytes)
  call @llvm.memcpy.p0.p0.i64(%a, %x, %bytes, false)
  call @llvm.memcpy.p0.p0.i64(%b, %x, %bytes, false)
  %u.end, %next.end = for %s < %steps iter(%u = %a, %next = %b) {
    for %i < %n {
      %kp = addr inbounds f64, %k, %i
      %kv = load %kp -> f64
      %up = addr inbounds f64, %u, %i
      %west = addr inbounds i8, %up, -8
      %uv = load %up -> f64
      %wv = load %west -> f64
      %d = fsub %uv, %wv
      %new = fmul %kv, %d
      %np = addr inbounds f64, %next, %i
      store %new, %np
      yield }
    yield %next, %u }
  %sum = for %c < %n iter(%acc = 0.0) {
    %ep = addr inbounds f64, %u.end, %c
    %ev = load %ep -> f64
    %more = fadd %acc, %ev
    yield %more }
  call @free(%a)
  call @free(%b)
  return %sum
}";

#[test]
fn stencil_buffers_disjoint_per_step() {
    let p = Program::read(STENCIL);
    let alias = p.alias();
    let (read, write) = (p.read_of("uv"), p.write_to("np"));
    assert!(!alias.may_alias_within(&read, &write, Some(p.lp(0))));
    assert!(
        alias.may_alias_any_iteration(&read, &write),
        "the next step writes there"
    );
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    assert!(c.invariant_in(p.op("uv"), p.lp(1)) && !c.invariant_in(p.op("uv"), p.lp(0)));
    assert!(c.written_after(p.op("uv")));
    assert!(c.fate(p.op("uv")).written_by.is_some());
    assert!(
        !c.clobbered_after(p.op("kv")),
        "the coefficients are only read"
    );
    let fate = c.fate(p.op("ev"));
    assert!(fate.written_by.is_none() && fate.freed_by.len() == 2);
}

#[test]
fn stencil_coefficients_vary_in_one_loop_only() {
    let p = Program::read(STENCIL);
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let variance = Variance::of(&c, &p.effects);
    assert_eq!(variance.loops(p.value("kv")), [p.lp(1)]);
    assert_eq!(variance.loops(p.value("uv")), [p.lp(0), p.lp(1)]);
    assert_eq!(
        variance.loops(p.value("np")),
        [p.lp(0), p.lp(1)],
        "a swapped address"
    );
}

const GMM: &str = r#"
tbaa 0 = "root" ()
tbaa 1 = "char" (0: 0)
tbaa 2 = "double" (0: 1)
tbaa 3 = "int" (0: 1)
tbaa 4 = "any pointer" (0: 1)
tbaa 5 = "gmm_ctx" (0: 3, 4: 3, 8: 4)
declare @malloc(i64) -> ptr
declare @exp(f64) -> f64
func @f(%ctx: ptr, %x: ptr) -> f64 {
  %d32 = load %ctx -> i32 !tbaa(5, 3, 0)
  %d = sext %d32 -> i64
  %np = addr inbounds i8, %ctx, 4
  %n32 = load %np -> i32 !tbaa(5, 3, 4)
  %n = sext %n32 -> i64
  %bytes = shl nuw nsw %d, 3
  %centred = call @malloc(%bytes)
  %expq = call @malloc(%bytes)
  for %j < %d {
    %xp = addr inbounds f64, %x, %j
    %xv = load %xp -> f64 !tbaa(2, 2, 0)
    %e = call @exp(%xv)
    %ep = addr inbounds f64, %expq, %j
    store %e, %ep !tbaa(2, 2, 0)
    yield }
  %sum = for %i < %n iter(%acc = 0.0) {
    %row = mul nsw %i, %d
    %dpp = addr inbounds i8, %ctx, 8
    %data = load %dpp -> ptr !tbaa(5, 4, 8)
    for %j2 < %d {
      %at = add nsw %row, %j2
      %dp = addr inbounds f64, %data, %at
      %dv = load %dp -> f64 !tbaa(2, 2, 0)
      %mp = addr inbounds f64, %x, %j2
      %mv = load %mp -> f64 !tbaa(2, 2, 0)
      %cv = fsub %dv, %mv
      %cp = addr inbounds f64, %centred, %j2
      store %cv, %cp !tbaa(2, 2, 0)
      yield }
    %sq = for %j3 < %d iter(%s = 0.0) {
      %rp = addr inbounds f64, %centred, %j3
      %rv = load %rp -> f64 !tbaa(2, 2, 0)
      %qp = addr inbounds f64, %expq, %j3
      %qv = load %qp -> f64 !tbaa(2, 2, 0)
      %t = fmul %rv, %qv
      %s2 = fadd %s, %t
      yield %s2 }
    %more = fadd %acc, %sq
    yield %more }
  return %sum
}"#;

#[test]
fn gmm_saves_only_clobbered_work_array() {
    let p = Program::read(GMM);
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    for name in ["d32", "n32", "data", "dv", "mv", "xv", "qv"] {
        assert!(!c.clobbered_after(p.op(name)), "{name} can be read again");
    }
    assert!(
        c.clobbered_after(p.op("rv")),
        "the next point overwrites it"
    );
    assert!(c.invariant_in(p.op("rv"), p.lp(3)) && !c.invariant_in(p.op("rv"), p.lp(1)));
}

#[test]
fn gmm_variance_follows_what_a_value_depends_on() {
    let p = Program::read(GMM);
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let variance = Variance::of(&c, &p.effects);
    assert_eq!(
        variance.loops(p.value("qv")),
        [p.lp(3)],
        "not in the loop over points"
    );
    assert_eq!(variance.loops(p.value("mv")), [p.lp(2)]);
    assert_eq!(variance.loops(p.value("data")), []);
    assert_eq!(variance.loops(p.value("dv")), [p.lp(1), p.lp(2)]);
    assert_eq!(variance.loops(p.value("e")), [p.lp(0)]);
    assert_eq!(
        variance.loops(p.value("sq")),
        [p.lp(1)],
        "made once per point"
    );
}

#[test]
fn fft_parts_and_halves_of_one_array() {
    // Real and imaginary parts never alias; low and high halves alias, over all stages.
    let p = Program::read(
        "func @f(%a: ptr, %n: i64, %half: i64) {
           for %k < %half {
             %low = addr inbounds [2 x f64], %a, %k, 0
             %lowi = addr inbounds [2 x f64], %a, %k, 1
             %kh = add nuw nsw %k, %half
             %high = addr inbounds [2 x f64], %a, %kh, 0
             %lv = load %low -> f64
             %iv = load %lowi -> f64
             %hv = load %high -> f64
             store %lv, %high
             yield }
           return }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    assert!(!c.clobbered_after(p.op("iv")) && !c.clobbered_after(p.op("lv")));
    assert!(c.clobbered_after(p.op("hv")));
}

#[test]
fn twiddles_do_not_vary_with_the_block() {
    let p = Program::read(
        "func @f(%stages: i64, %blocks: i64, %half: i64, %w: ptr) {
           for %s < %stages {
             %x = cast.dummy %s
             yield }
           return }"
            .replace(
                "%x = cast.dummy %s",
                "
             %sf = uitofp %s -> f64
             for %b < %blocks {
               %last = for %k < %half iter(%tw = 1.0) {
                 %next = fmul %tw, %sf
                 yield %next }
               yield }",
            )
            .as_str(),
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    let variance = Variance::of(&c, &p.effects);
    assert_eq!(variance.loops(p.value("next")), [p.lp(0), p.lp(2)]);
    assert_eq!(variance.loops(p.value("last")), [p.lp(0)]);
}

#[test]
fn cg_matrix_is_unmodified_after_setup() {
    let p = Program::read(
        "declare @malloc(i64) -> ptr
         func @f(%col: ptr, %x: ptr, %n: i64, %iters: i64) -> f64 {
           %val = call @malloc(800)
           %dir = call @malloc(800)
           %img = call @malloc(800)
           for %z < %n {
             %vz = addr inbounds f64, %val, %z
             store 1.0, %vz
             %dz = addr inbounds f64, %dir, %z
             store 1.0, %dz
             yield }
           for %it < %iters {
             for %i < %n {
               %cp = addr inbounds i32, %col, %i
               %cv = load %cp -> i32
               %ci = sext %cv -> i64
               %vp = addr inbounds f64, %val, %i
               %vv = load %vp -> f64
               %gp = addr inbounds f64, %dir, %ci
               %gv = load %gp -> f64
               %m = fmul %vv, %gv
               %ip = addr inbounds f64, %img, %i
               store %m, %ip
               yield }
             for %i2 < %n {
               %jp = addr inbounds f64, %img, %i2
               %jv = load %jp -> f64
               %dp = addr inbounds f64, %dir, %i2
               store %jv, %dp
               yield }
             yield }
           return 0.0 }",
    );
    let alias = p.alias();
    let c = Clobbers::of(&alias, &p.effects, ExitClobbers::default());
    assert!(!c.clobbered_after(p.op("cv")) && !c.clobbered_after(p.op("vv")));
    assert!(c.clobbered_after(p.op("gv")) && c.clobbered_after(p.op("jv")));
    assert!(
        c.invariant_in(p.op("gv"), p.lp(2)),
        "dir stays during the product"
    );
    let variance = Variance::of(&c, &p.effects);
    assert_eq!(variance.loops(p.value("vv")), [p.lp(2)]);
    assert_eq!(
        variance.loops(p.value("gp")),
        [p.lp(2)],
        "the address repeats"
    );
}
