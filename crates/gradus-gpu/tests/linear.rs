//! Cost of kernels in interpreter steps: uniform code runs once.

use gradus_analysis::{CallGraph, Effects};
use gradus_gpu::{Options, lower};
use gradus_interp::{Machine, Value};
use gradus_ir::Unit;

/// Steps of a kernel that divides each of `n` elements by the sum of all. Blocks have 8 threads, and the
/// last blocks have no elements.
fn steps_of_norm(n: u64) -> u64 {
    let page = include_str!("../cases/uniform-guards/norm.md");
    let program = page
        .split("```gir")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let mut unit: Unit =
        gradus_ir::parse(program.expect("the page holds a program"), "norm.md").expect("it is one");
    let functions: Vec<_> = unit.functions.ids().collect();
    let effects = Effects::of(&unit, &CallGraph::of(&unit, &functions));
    lower(&mut unit, &functions, &effects, &Options::default());
    let mut machine = Machine::new(&unit);
    let ones = vec![1.0; n as usize + 1];
    let x = machine.alloc_f64(&ones).expect("memory");
    let y = machine.alloc_f64(&ones).expect("memory");
    let blocks = n / 4 + 3;
    let args = [
        Value::ptr(y),
        Value::ptr(x),
        Value::Bits(n),
        Value::Bits(blocks),
    ];
    machine.call("f", &args).expect("it runs");
    machine.steps()
}

#[test]
fn a_guarded_norm_takes_linear_time() {
    let (few, many) = (steps_of_norm(64), steps_of_norm(1024));
    assert!(
        many < 20 * few,
        "{few} steps for 64 elements, {many} for 1024"
    );
}
