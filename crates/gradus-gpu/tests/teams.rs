//! Teams as loops over ranks: values that live over a barrier lie in memory of the heap, one element per rank.

use gradus_analysis::{CallGraph, Effects};
use gradus_gpu::team_to_loops;
use gradus_interp::{Machine, Value};
use gradus_ir::{Op, OpKind, Unit, parse, print, verify};

/// Each rank fills an array of its own, and reads an element and a number after the barrier.
const TEAM: &str = "
    func @f(%x: ptr, %ranks: i64) {
      spmd team %ranks { |%r: i64, %n: i64|
        %a = alloca private [3 x i64], 1
        for %i < 3 { %v = mul %i, %r %p = addr i64, %a, %i store %v, %p yield }
        %m = mul %r, 10
        barrier team
        %k = urem %r, 3
        %q = addr i64, %a, %k
        %w = load %q -> i64
        %s = add %w, %m
        %d = addr i64, %x, %r
        store %s, %d
        yield }
      return }";

/// Returns the program with the team as loops, after a check of the results of five ranks.
fn lowered(declarations: &str) -> String {
    let mut unit: Unit = parse(&format!("{declarations}{TEAM}"), "team").expect("it is a program");
    let func = unit.function("f").expect("it is there");
    let effects = Effects::of(&unit, &CallGraph::of(&unit, &[func]));
    let mut body = unit.functions[func].body.take().expect("it has code");
    let is_team = |op: &Op| matches!(body.kind(*op), OpKind::Spmd { .. });
    let team = body.walk(body.root()).find(is_team).expect("the team");
    assert!(team_to_loops(&mut unit, &mut body, func, team, &effects));
    unit.functions[func].body = Some(body);
    let text = print(&unit);
    assert!(verify(&unit).is_empty(), "{:?}\n{text}", verify(&unit));
    let mut machine = Machine::new(&unit);
    let x = machine.alloc_undefined(5 * 8).expect("memory");
    let done = machine.call("f", &[Value::ptr(x), Value::Bits(5)]);
    assert_eq!(done, Ok(None), "{text}");
    let numbers = machine.read_f64(x, 5).expect("they are written");
    let numbers: Vec<u64> = numbers.into_iter().map(f64::to_bits).collect();
    assert_eq!(numbers, [0, 11, 24, 30, 44], "{text}");
    text
}

#[test]
fn memory_of_ranks_is_aligned_and_freed() {
    let text = lowered("");
    let allocations = text.matches("call @aligned_alloc(64,").count();
    assert!(allocations > 0, "{text}");
    assert_eq!(text.matches("call @free(").count(), allocations, "{text}");
}

/// A program's own function with the name is not called.
#[test]
fn own_aligned_alloc_is_not_called() {
    let text = lowered("declare @aligned_alloc(ptr) -> i32\n");
    assert!(!text.contains("call @aligned_alloc"), "{text}");
    let allocations = text.matches("call @malloc(").count();
    assert!(allocations > 0, "{text}");
    assert_eq!(text.matches("call @free(").count(), allocations, "{text}");
}
