//! Tests of control flow, calls, exceptions and linearised replay.

use super::{run, trap, unit};
use crate::state::machine::Options;
use crate::{Machine, ReplayMode, ReplayStep, TrapKind, Value};

fn int(text: &str) -> i64 {
    match run(text) {
        Ok(Some(value)) => value.as_i64().expect("it is defined"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn loops_carry_values() {
    // Fibonacci: the carried values are swapped.
    let text = "func @f() -> i64 {
        %a, %b = for %i < 10 iter(%x = 0, %y = 1) { %z = add %x, %y yield %y, %z }
        return %a }";
    assert_eq!(int(text), 55);
    let text = "func @f() -> i64 { %a = for %i < 0 iter(%x = 7) { unreachable } return %a }";
    assert_eq!(int(text), 7);
    // The least power of 2 that is at least 1000, and the number of doublings.
    let text = "func @f() -> i64 {
        %p, %k = loop iter(%x = 1, %n = 0) -> i64, i64 {
          %y = mul %x, 2 %m = add %n, 1
          %again = icmp ult %y, 1000
          repeat %again, %y, %m, %y, %m }
        %q = mul %p, 100 %r = add %q, %k
        return %r }";
    assert_eq!(int(text), 102_410);
}

#[test]
fn branches_choose() {
    let text = "func @g(%x: i64) -> i64 {
        %r = switch %x -> i64 case 1 { yield 10 } case 3 { yield 30 } default { yield -1 }
        %c = icmp sgt %r, 20
        %s = if %c -> i64 { yield 1 } else { yield 0 }
        %t = add %r, %s
        return %t }
      func @f() -> i64 {
        %a = call @g(1) %b = call @g(2) %c = call @g(3)
        %d = mul %a, 10000 %e = mul %b, 100 %g = add %d, %e %h = add %g, %c return %h }";
    assert_eq!(int(text), 100_000 - 100 + 31);
}

#[test]
fn deep_calls_need_no_host_stack() {
    let text = "func @g(%n: i64) -> i64 {
        %c = icmp eq %n, 0
        %r = if %c -> i64 { yield 0 } else {
          %m = sub %n, 1 %s = call @g(%m) %t = add %s, 1 yield %t }
        return %r }
      func @f() -> i64 { %a = call @g(100000) return %a }";
    assert_eq!(int(text), 100_000);
    let endless = "func @f() { call @f() return }";
    assert_eq!(trap(endless), TrapKind::Limit);
}

#[test]
fn deep_regions_need_no_stack() {
    let depth = 20_000;
    let mut text = String::from("func @f() -> i64 {\n%c = icmp eq 1, 1\n");
    for i in 0..depth {
        text.push_str(&format!("%v{i} = if %c -> i64 {{\n"));
    }
    text.push_str("yield 3 } else { yield 4 }\n");
    for i in (1..depth).rev() {
        text.push_str(&format!("yield %v{i} }} else {{ yield 4 }}\n"));
    }
    text.push_str("return %v0 }");
    assert_eq!(int(&text), 3);
}

#[test]
fn limits_hold() {
    let unit = unit("func @f() { loop { repeat true } return }");
    let options = Options {
        max_steps: 1000,
        ..Options::default()
    };
    let mut machine = Machine::with_options(&unit, options);
    assert_eq!(
        machine.call("f", &[]).map_err(|t| t.kind),
        Err(TrapKind::Limit)
    );
    assert_eq!(
        trap(
            "declare @malloc(i64) -> ptr
        func @f() { loop { %p = call @malloc(1000000000) repeat true } return }"
        ),
        TrapKind::Limit
    );
    assert_eq!(trap("func @f() { unreachable }"), TrapKind::Unreachable);
}

const THROW: &str = "
    declare @__cxa_allocate_exception(i64) -> ptr
    declare @__cxa_throw(ptr, ptr, ptr) -> void
    declare @__cxa_begin_catch(ptr) -> ptr
    declare @__cxa_end_catch() -> void
    declare @llvm.eh.typeid.for.p0(ptr) -> i32
    global @kind: [3 x ptr] const = zero 24
    global @derived: [3 x ptr] const = zero 24 relocations(16: @kind)
    global @other: [3 x ptr] const = zero 24
    func @throws(%n: i64) -> i64 {
      %c = icmp ugt %n, 10
      if %c {
        %e = call @__cxa_allocate_exception(8)
        store %n, %e
        call @__cxa_throw(%e, @derived, null)
        unreachable
      } else { yield }
      return %n }
    func @middle(%n: i64) -> i64 { %a = call @throws(%n) %b = add %a, 1 return %b }
";

#[test]
fn exceptions_reach_matching_pads() {
    let text = format!(
        "{THROW}
         func @g(%n: i64) -> i64 {{
           %r = invoke @middle(%n) -> i64 {{ |%v: i64| yield %v }} unwind {{
             %e = landingpad catch @other catch @kind -> {{ptr, i32}}
             %s = extractvalue [1] %e
             %id = call @llvm.eh.typeid.for.p0(@kind)
             %ours = icmp eq %s, %id
             if %ours {{ yield }} else {{ unreachable }}
             %p = extractvalue [0] %e
             %q = call @__cxa_begin_catch(%p)
             %x = load %q -> i64
             call @__cxa_end_catch()
             %y = mul %x, 1000
             yield %y }}
           return %r }}
         func @f() -> i64 {{ %a = call @g(5) %b = call @g(11) %c = add %a, %b return %c }}"
    );
    assert_eq!(int(&text), 6 + 11_000);
}

#[test]
fn cleanups_run_during_unwinding() {
    let text = format!(
        "{THROW}
         global @cleaned: i64 = [0]
         func @h(%n: i64) -> i64 {{
           %r = invoke @middle(%n) -> i64 {{ |%v: i64| yield %v }} unwind {{
             %e = landingpad cleanup -> {{ptr, i32}}
             store 1, @cleaned
             resume %e }}
           return %r }}
         func @f() -> i64 {{
           %r = invoke @h(11) -> i64 {{ |%v: i64| yield 0 }} unwind {{
             %e = landingpad catch null -> {{ptr, i32}}
             %x = load @cleaned -> i64
             yield %x }}
           return %r }}"
    );
    assert_eq!(int(&text), 1);
    let text = format!("{THROW} func @f() -> i64 {{ %a = call @middle(12) return %a }}");
    assert_eq!(trap(&text), TrapKind::Uncaught);
}

#[test]
fn structures_by_value_are_copies() {
    let text = "attrs 0 = param(byval = type [2 x i64])
      func @g(%p: ptr) -> void #0 { store 9, %p return }
      func @f() -> i64 { %p = alloca [2 x i64], 1 store 1, %p call @g(%p)
        %a = load %p -> i64 return %a }";
    assert_eq!(int(text), 1);
}

#[test]
fn arguments_must_fit() {
    let unit = unit("func @f(%x: i64) -> i64 { return %x }");
    let mut machine = Machine::new(&unit);
    assert_eq!(
        machine.call("f", &[]).map_err(|t| t.kind),
        Err(TrapKind::BadCall)
    );
    assert_eq!(
        machine.call("g", &[]).map_err(|t| t.kind),
        Err(TrapKind::BadCall)
    );
    assert_eq!(machine.call("f", &[Value::i64(4)]), Ok(Some(Value::i64(4))));
}

/// A replay follows the recorded control flow through branches, selects and loop iterations. A replay with
/// more comparisons than recorded traps; a replay with fewer comparisons is detectable.
#[test]
fn replay_follows_recorded_branches() {
    let unit = unit(
        "func @f(%x: f64) -> f64 {
        %c = fcmp oeq %x, 0.0
        %r = select %c, 5.0, %x
        %n = loop iter(%y = %x) -> f64 { %z = fadd %y, 1.0 %again = fcmp olt %z, 3.0 repeat %again, %z, %z }
        %s = fadd %r, %n
        return %s }
      func @g(%x: f64) -> f64 { %c = fcmp oeq %x, 0.0 %r = select %c, 5.0, %x return %r }",
    );
    let mut first = Machine::new(&unit);
    first.start_recording();
    let number = |value: Option<Value>| value.and_then(|v| v.as_f64()).expect("a number");
    assert_eq!(
        number(first.call("f", &[Value::f64(0.0)]).expect("it runs")),
        8.0
    );
    let way = first.recorded_steps();
    assert_eq!(way.len(), 4);
    let follow = |name: &str, x: f64, way: &[ReplayStep]| {
        let mut machine = Machine::new(&unit);
        machine.start_replay(way.to_vec(), ReplayMode::Exact);
        let value = machine.call(name, &[Value::f64(x)]);
        (value.ok().map(number), machine.has_replayed_all())
    };
    assert_eq!(follow("f", 7.0, &way), (Some(5.0 + 10.0), true));
    assert_eq!(follow("g", 7.0, &way), (Some(5.0), false));
    assert_eq!(follow("f", 7.0, &way[..3]).0, None);
}

/// With linearised functions, finite differences of a program equal the slope for any step, even for a
/// rapidly oscillating function. The function value at the recorded point is unchanged.
#[test]
fn functions_can_be_linearized() {
    let unit = unit(
        "declare @sin(f64) -> f64
      func @f(%x: f64) -> f64 {
        %b = fmul %x, 1000000000.0
        %s = call @sin(%b)
        %r = fmul %s, %x
        return %r }",
    );
    let mut first = Machine::new(&unit);
    first.start_recording();
    let x = 0.7;
    let own = first.call("f", &[Value::f64(x)]).expect("it runs");
    let way = first.recorded_steps();
    let followed = |curves: ReplayMode, at: f64| {
        let mut machine = Machine::new(&unit);
        machine.start_replay(way.clone(), curves);
        let value = machine.call("f", &[Value::f64(at)]).expect("it runs");
        assert!(machine.has_replayed_all());
        value.and_then(|v| v.as_f64()).expect("a number")
    };
    assert_eq!(
        Some(followed(ReplayMode::Linearized, x)),
        own.and_then(|v| v.as_f64())
    );
    let slope = |curves| (followed(curves, x + 1e-3) - followed(curves, x - 1e-3)) / 2e-3;
    let true_slope = (1e9 * x).sin() + x * 1e9 * (1e9 * x).cos();
    let error = |slope: f64| (slope / true_slope - 1.0).abs();
    assert!(
        error(slope(ReplayMode::Linearized)) < 1e-7,
        "{}",
        slope(ReplayMode::Linearized)
    );
    assert!(error(slope(ReplayMode::Exact)) > 0.5);
}

/// With linearised products and quotients a program is affine: finite differences equal the slope for any
/// step.
#[test]
fn products_can_be_linearized() {
    let unit = unit(
        "func @f(%x: f64) -> f64 {
        %a = fmul %x, %x
        %p = insertelement <2 x f64> poison, %a, 0
        %q = insertelement %p, %x, 1
        %b = fdiv %q, <2 x f64> splat 2 4.0
        %c = extractelement %b, 0
        %d = fdiv %c, %x
        %e = fdiv %x, %a
        %r = fadd %d, %e
        return %r }",
    );
    let mut first = Machine::new(&unit);
    first.start_recording();
    let x = 0.5;
    first.call("f", &[Value::f64(x)]).expect("it runs");
    let way = first.recorded_steps();
    let followed = |at: f64| {
        let mut machine = Machine::new(&unit);
        machine.start_replay(way.clone(), ReplayMode::Linearized);
        let value = machine.call("f", &[Value::f64(at)]).expect("it runs");
        assert!(machine.has_replayed_all());
        value.and_then(|v| v.as_f64()).expect("a number")
    };
    // x / 4 + 1 / x has the slope 1/4 − 1/x².
    let slope = (followed(x + 10.0) - followed(x - 10.0)) / 20.0;
    assert!((slope + 3.75).abs() < 1e-6, "{slope}");
}
