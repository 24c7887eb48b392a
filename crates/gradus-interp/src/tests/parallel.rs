//! Tests of parallel ops with serial semantics, in rank order and in random orders.

use super::unit;
use crate::state::machine::Options;
use crate::{Machine, Value};

/// Returns the result of `@f`, equal in rank order and in three random orders.
fn result_in_any_order(text: &str) -> i64 {
    let unit = unit(text);
    let run = |random_order| {
        let options = Options {
            random_order,
            check_edges: true,
            ..Options::default()
        };
        let mut machine = Machine::with_options(&unit, options);
        match machine.call("f", &[]) {
            Ok(Some(value)) => value.as_i64().expect("it is defined"),
            other => panic!("{other:?}"),
        }
    };
    let own = run(None);
    for seed in [1, 2, 12345] {
        assert_eq!(run(Some(seed)), own);
    }
    own
}

#[test]
fn par_for_reduces() {
    let text = "func @f() -> i64 {
        %s, %m = par.for %i < 7, %j < 5 reduce(add 100, umax 0) {
          %x = mul %i, 10 %y = add %x, %j yield %y, %y }
        %t = mul %m, 10000 %r = add %s, %t return %r }";
    assert_eq!(
        result_in_any_order(text),
        100 + 5 * 210 + 7 * 10 + 64 * 10_000
    );
}

#[test]
fn barriers_synchronize_ranks() {
    // Each rank writes a private cell, then reads the neighbour's cell.
    let text = "func @f() -> i64 {
        %x = alloca [8 x i64], 1 %y = alloca [8 x i64], 1
        spmd block 8 { |%r: i64, %n: i64|
          %p = addr i64, %x, %r %v = mul %r, %r store %v, %p
          barrier block
          %a = add %r, 1 %b = urem %a, %n %q = addr i64, %x, %b
          %w = load %q -> i64 %z = addr i64, %y, %r store %w, %z
          yield }
        %p3 = addr i64, %y, 3 %p7 = addr i64, %y, 7
        %u = load %p3 -> i64 %t = load %p7 -> i64 %m = mul %u, 100 %s = add %m, %t
        return %s }";
    assert_eq!(result_in_any_order(text), 1600);
}

#[test]
fn a_tree_reduction_in_shared_memory() {
    let text = "func @f() -> i64 {
        %out = alloca i64, 1
        spmd grid 3 { |%b: i64, %nb: i64|
          spmd block 8 { |%t: i64, %n: i64|
            %s = alloca shared [8 x i64], 1
            %p = addr i64, %s, %t %g = mul %b, %n %v = add %g, %t store %v, %p
            %d = loop iter(%w = 4) -> i64 {
              barrier block
              %c = icmp ult %t, %w
              if %c {
                %o = add %t, %w %q = addr i64, %s, %o
                %x = load %q -> i64 %y = load %p -> i64 %z = add %x, %y store %z, %p
                yield
              } else { yield }
              %h = lshr %w, 1 %again = icmp ne %h, 0
              repeat %again, %h, %h }
            barrier block
            %first = icmp eq %t, 0
            if %first { %z2 = load %s -> i64 %k = icmp eq %b, 2
              if %k { store %z2, %out yield } else { yield } yield } else { yield }
            yield }
          yield }
        %r = load %out -> i64
        return %r }";
    assert_eq!(result_in_any_order(text), (16..24).sum::<i64>());
}

#[test]
fn worksharing_runs_iterations_once() {
    for (schedule, chunk) in [
        ("static", ""),
        ("static chunked", "chunk 3"),
        ("dynamic", ""),
        ("dynamic chunked", "chunk 2"),
        ("guided", ""),
    ] {
        let text = format!(
            "func @f() -> i64 {{
               %x = alloca [17 x i64], 1
               for %k < 17 {{ %p = addr i64, %x, %k store 0, %p yield }}
               spmd team 4 {{ |%r: i64, %n: i64|
                 share.for {schedule} %i < 17 {chunk} {{
                   %q = addr i64, %x, %i %a = load %q -> i64 %b = add %a, 1 store %b, %q yield }}
                 single {{ %a2 = load %x -> i64 %b2 = add %a2, 100 store %b2, %x yield }}
                 critical \"c\" {{ %a3 = load %x -> i64 %b3 = add %a3, 1000 store %b3, %x yield }}
                 yield }}
               %s = for %m < 17 iter(%t = 0) {{
                 %q2 = addr i64, %x, %m %v = load %q2 -> i64 %w = add %t, %v yield %w }}
               return %s }}"
        );
        assert_eq!(result_in_any_order(&text), 17 + 100 + 4000, "{schedule}");
    }
}

#[test]
fn barriers_in_callees_and_early_exits() {
    let text = "func @meet() { barrier block
        return }
      func @f() -> i64 {
        %x = alloca i64, 1 store 0, %x
        spmd block 4 { |%r: i64, %n: i64|
          %stays = icmp ult %r, 3
          if %stays { call @meet() %a = load %x -> i64 %b = add %a, 1 store %b, %x yield }
          else { store 10, %x yield }
          yield }
        %s = load %x -> i64 return %s }";
    assert_eq!(result_in_any_order(text), 13);
}

#[test]
fn tasks_run_undeferred() {
    let text = "func @fib(%n: i64) -> i64 {
        %c = icmp ult %n, 2
        %r = if %c -> i64 { yield %n } else {
          %p = alloca i64, 1 %m = sub %n, 1 %k = sub %n, 2
          scope { spawn { %a = call @fib(%m) store %a, %p yield }
            %b = call @fib(%k) sync
            %d = load %p -> i64 %e = add %b, %d store %e, %p yield }
          %s = load %p -> i64 yield %s }
        return %r }
      func @f() -> i64 { %a = call @fib(12) return %a }";
    assert_eq!(result_in_any_order(text), 144);
    assert_eq!(Value::i64(1).as_i64(), Some(1));
}

#[test]
fn single_runs_once_and_broadcasts() {
    let text = "func @f() -> i64 {
        %x = alloca i64, 1 store 0, %x
        spmd team 4 { |%r: i64, %n: i64|
          %mine = mul %r, 1000
          %who = single copy -> i64 { %one = add %mine, 7 yield %one }
          %again = single copy -> i64 { %two = add %who, 1 yield %two }
          %own = single %mine -> i64 { yield 5 }
          %d = sub %again, %who
          %five = icmp eq %own, 5
          %part = select %five, 100, 10
          %sum = critical \"c\" -> i64 {
            %a = load %x -> i64 %b = add %a, %part %c = add %b, %d store %c, %x yield %c }
          yield }
        %s = load %x -> i64 return %s }";
    assert_eq!(result_in_any_order(text), 100 + 3 * 10 + 4);
}

#[test]
fn custom_reductions_use_their_region() {
    let text = "func @f() -> i64 {
        %p, %c, %m = par.for %i < 5 reduce(mul 1, custom 1000, max 0) {
          %x = add %i, 1 yield %x, %i, %x
        } { |%a: i64, %b: i64| %t = sub %a, %b yield %t }
        %q = mul %c, 1000 %r = add %p, %q %s = add %r, %m return %s }";
    assert_eq!(result_in_any_order(text), 120 + 990 * 1000 + 5);
}

#[test]
fn default_team_size_and_conditions() {
    let text = "func @f() -> i64 {
        %x = alloca i64, 1 store 0, %x
        spmd team 0 { |%r: i64, %n: i64|
          %k = scope -> i64 {
            %c = icmp ult %r, 2 %d = icmp eq %r, 1
            spawn when serial %c, %d { %a = load %x -> i64 %b = add %a, %n store %b, %x yield }
            sync
            %y = add %r, %n yield %y }
          %a2 = load %x -> i64 %b2 = add %a2, %k store %b2, %x
          yield }
        %s = load %x -> i64 return %s }";
    let unit = unit(text);
    for team in [1u64, 3] {
        let options = Options {
            team,
            check_edges: true,
            ..Options::default()
        };
        let mut machine = Machine::with_options(&unit, options);
        let sum = (0..team).map(|r| 2 * team + r).sum::<u64>();
        match machine.call("f", &[]) {
            Ok(Some(value)) => assert_eq!(value.as_i64(), Some(sum as i64)),
            other => panic!("{other:?}"),
        }
    }
}
