//! Tests of the check of control edges: a run takes all edges of all region ops but the ones that serial execution
//! leaves out, and a fault in the stated edges or values is found.

use super::unit;
use crate::bytecode::code::{CONST, Code, EdgePoint, Instr, Reg};
use crate::bytecode::decode::decode;
use crate::{Machine, Options, Trap, TrapKind, Value};
use gradus_ir::{Entity, Point, Unit};
use std::collections::HashSet;
use std::rc::Rc;

/// All region ops, with results and carried values wherever an op may have them.
const ALL: &str = "
    declare @__cxa_allocate_exception(i64) -> ptr
    declare @__cxa_throw(ptr, ptr, ptr) -> void
    global @kind: [3 x ptr] const = zero 24
    func @throws(%n: i64) -> i64 {
      %c = icmp ugt %n, 10
      if %c {
        %e = call @__cxa_allocate_exception(8)
        call @__cxa_throw(%e, @kind, null)
        unreachable
      } else { yield }
      return %n }
    func @passes(%n: i64) -> i64 {
      %r = invoke @throws(%n) -> i64 { |%v: i64| yield %v } unwind {
        %e = landingpad cleanup -> {ptr, i32} resume %e }
      return %r }
    func @g(%n: i64) -> i64 {
      %r = invoke @passes(%n) -> i64 { |%v: i64| yield %v } unwind {
        %e = landingpad catch null -> {ptr, i32} yield 100 }
      %s = switch %r -> i64 case 1 { yield 10 } case 100 { yield %n } default { yield %r }
      %l, %l2 = loop iter(%a = %s, %b = 7) -> i64, i64 {
        %d = add %a, 1 %c = icmp ult %a, 20 repeat %c, %b, %d, %a, %d }
      %f, %g = for %i < %n iter(%x = %l, %y = %l2) -> i64, i64 { %z = add %x, %i yield %y, %z }
      %p, %q, %o = par.for %j < %n reduce(custom 1000, add %f, custom %g) {
        %u = add %j, %n yield %u, %j, %n
      } { |%h: i64, %k: i64| %t = sub %h, %k yield %t }
        { |%h2: i64, %k2: i64| %t2 = xor %h2, %k2 yield %t2 }
      %w = add %p, %q %w2 = add %w, %o
      %mem = alloca i64, 1 store %w2, %mem
      scope {
        spawn { %m1 = load %mem -> i64 %m2 = add %m1, %n store %m2, %mem yield }
        sync yield }
      spmd block %n { |%rank: i64, %size: i64|
        %mine = mul %rank, 100
        %one = single copy -> i64 { %own = add %mine, 3 yield %own }
        %two = single %mine -> i64 { yield %n }
        %three = critical \"a\" -> i64 { %v1 = add %one, %two yield %v1 }
        share.for static %si < 5 { 
          %v2 = atomicrmw add monotonic %mem, %three yield }
        yield }
      %end = load %mem -> i64
      return %end }
    func @f() -> i64 {
      %a = call @g(0) %b = call @g(1) %c = call @g(3) %d = call @g(11)
      %e = add %a, %b %h = add %c, %d %r = add %e, %h return %r }";

/// Runs `@f`; `fault` may change the code of `@g` before.
fn traced(
    unit: &Unit,
    fault: impl FnOnce(&mut Code),
) -> (Machine<'_>, Result<Option<Value>, Trap>) {
    let options = Options {
        check_edges: true,
        ..Options::default()
    };
    let mut machine = Machine::with_options(unit, options);
    let g = unit.function("g").expect("it is there");
    let body = unit.functions[g].body.as_deref().expect("it has code");
    let mut code = decode(unit, &machine.symbols, g, body, true);
    fault(&mut code);
    machine.codes[g.index()] = Some(Rc::new(code));
    let outcome = machine.call("f", &[]);
    (machine, outcome)
}

#[test]
fn a_run_takes_the_edges() {
    let unit = unit(ALL);
    let (machine, outcome) = traced(&unit, |_| {});
    let outcome = outcome.unwrap_or_else(|trap| panic!("{trap}"));
    assert_eq!(
        outcome,
        Machine::new(&unit).call("f", &[]).expect("it runs")
    );
    let (mut left_out, mut kinds) = (Vec::new(), HashSet::new());
    for (func, function) in unit.functions.iter() {
        let Some(body) = function.body.as_deref() else {
            continue;
        };
        for op in body.walk(body.root()) {
            for edge in body.control_edges(op) {
                if !machine.edges_taken.contains(&(func, edge.from, edge.to)) {
                    left_out.push((body.kind(op).mnemonic(), edge.from, edge.to));
                }
            }
            kinds.extend((!body.op_regions(op).is_empty()).then(|| body.kind(op).mnemonic()));
        }
    }
    assert_eq!(kinds.len(), 12, "{kinds:?}");
    // The task runs at once. Each rank starts at the entry, in the trace.
    let left_out: Vec<_> = (left_out.into_iter())
        .map(|(name, from, to)| {
            (
                name,
                matches!(from, Point::OpEntry(_)),
                matches!(to, Point::OpExit(_)),
            )
        })
        .collect();
    assert_eq!(left_out, [("spawn", true, true), ("spmd", false, false)]);
}

/// Visits the points of a code with index.
fn points(code: &mut Code) -> impl Iterator<Item = &mut EdgePoint> {
    code.instrs.iter_mut().filter_map(|instr| match instr {
        Instr::EdgePoint(mark) => Some(&mut **mark),
        _ => None,
    })
}

/// Adds a constant that no value of the program equals.
fn wrong_value(code: &mut Code) -> Reg {
    code.consts.push(Value::i64(987_654_321));
    (code.consts.len() - 1) as Reg | CONST
}

fn assert_found(unit: &Unit, what: &str, fault: impl FnOnce(&mut Code)) {
    match traced(unit, fault).1 {
        Err(trap) => assert_eq!(trap.kind, TrapKind::ControlEdge, "{what}: {trap}"),
        Ok(value) => panic!("{what} is not found: {value:?}"),
    }
}

#[test]
fn missing_edges_are_found() {
    let unit = unit(ALL);
    let g = unit.function("g").expect("it is there");
    let body = unit.functions[g].body.as_deref().expect("it has code");
    let (machine, _) = traced(&unit, |_| {});
    let mut count = 0;
    for op in body.walk(body.root()) {
        // Ranks start with a copy of the entry; the end of a rank is on the way to the exit in all ranks.
        for edge in body.control_edges(op) {
            if !machine.edges_taken.contains(&(g, edge.from, edge.to)) {
                continue;
            }
            count += 1;
            assert_found(&unit, &format!("{:?}", (edge.from, edge.to)), |code| {
                let mut marks = points(code);
                let mark = marks
                    .find(|mark| mark.point == edge.from)
                    .expect("its mark");
                mark.edges.retain(|own| own.to != edge.to);
            });
        }
    }
    assert!(count >= 35, "{count}");
}

#[test]
fn other_values_are_found() {
    let unit = unit(ALL);
    let (mut copies, mut totals, mut sent) = (0, 0, 0);
    traced(&unit, |code| {
        for mark in points(code) {
            copies += mark.edges.iter().map(|e| e.copies.len()).sum::<usize>();
            totals += mark.totals.len();
            sent += mark.broadcast.len();
        }
    })
    .1
    .expect("it runs");
    assert_eq!((totals, sent), (3 + 1, 1));
    // The wrong source is a constant that no value of the program equals.
    for number in 0..copies {
        let mut seen = 0;
        let mut alternatives = false;
        let fault = |code: &mut Code| {
            let wrong = wrong_value(code);
            for mark in points(code) {
                for edge in &mut mark.edges {
                    let targets: Vec<_> = edge.copies.iter().map(|c| c.0).collect();
                    for (target, source) in &mut edge.copies {
                        if seen == number {
                            let same = targets.iter().filter(|t| *t == target).count();
                            alternatives = same > 1;
                            *source = wrong;
                        }
                        seen += 1;
                    }
                }
            }
        };
        let outcome = traced(&unit, fault).1;
        if !alternatives {
            match outcome {
                Err(trap) => assert_eq!(trap.kind, TrapKind::ControlEdge, "{number}: {trap}"),
                Ok(_) => panic!("copy {number} of {copies} is not found"),
            }
        }
    }
    assert_found(&unit, "a total", |code| {
        let wrong = wrong_value(code);
        let totals = points(code).flat_map(|mark| &mut mark.totals);
        totals
            .filter(|t| t.combine.is_some())
            .for_each(|t| t.value = wrong);
    });
    assert_found(&unit, "a broadcast", |code| {
        let wrong = wrong_value(code);
        let sent = points(code).flat_map(|mark| &mut mark.broadcast);
        sent.for_each(|reg| *reg = wrong);
    });
}
