//! Tests of the interpreter's speed, as the number of executed instructions.

use super::unit;
use crate::{Machine, Value};

/// A matrix product: the number of instructions is at most a constant times the number of multiplications.
#[test]
fn instructions_are_proportional_to_ops() {
    let unit = unit(
        "func @mm(%n: i64, %a: ptr, %b: ptr, %c: ptr) {
           for %i < %n { for %j < %n {
             %s = for %k < %n iter(%t = 0.0) {
               %r = mul %i, %n %ik = add %r, %k %p = addr inbounds f64, %a, %ik
               %u = mul %k, %n %kj = add %u, %j %q = addr inbounds f64, %b, %kj
               %x = load %p -> f64 %y = load %q -> f64 %z = fmul %x, %y %v = fadd %t, %z
               yield %v }
             %w = mul %i, %n %ij = add %w, %j %o = addr inbounds f64, %c, %ij
             store %s, %o
             yield }
           yield }
           return }",
    );
    let n = 60usize;
    let mut machine = Machine::new(&unit);
    let ones = vec![1.0; n * n];
    let a = machine.alloc_f64(&ones).expect("it fits");
    let b = machine.alloc_f64(&ones).expect("it fits");
    let c = machine
        .alloc_undefined((n * n * 8) as u64)
        .expect("it fits");
    let args = [
        Value::i64(n as i64),
        Value::ptr(a),
        Value::ptr(b),
        Value::ptr(c),
    ];
    assert_eq!(machine.call("mm", &args), Ok(None));
    assert_eq!(machine.read_f64(c, n * n), Ok(vec![n as f64; n * n]));
    assert!(machine.steps() < 14 * (n * n * n) as u64);
}
