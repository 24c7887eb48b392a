//! Exposing final values of carried values as loop results.

use gradus_edit::expose_final_values;
use gradus_ir::{Op, OpKind, parse, verify_function};

/// Loop with a sum, an address, a product and an already exposed value.
const LOOP: &str = "func @f(%n: i64, %p: ptr) -> i64 {
  %r = loop iter(%i = 0, %q = %p, %k = 1, %j = 0) -> i64 {
    %next = add %i, %n
    %b = addr f64, %q, %n
    %twice = mul %k, 2
    %more = add %j, 1
    %c = icmp slt %next, 9
    repeat %c, %next, %b, %twice, %more, %more
  }
  return %r
}
";

#[test]
fn sums_and_addresses_become_results() {
    let mut unit = parse(LOOP, "ends.gir").expect("parses");
    let func = unit.function("f").expect("is there");
    let mut body = unit.functions[func].body.take().expect("a body");
    assert_eq!(expose_final_values(&unit, &mut body), 2);
    assert_eq!(expose_final_values(&unit, &mut body), 0);
    let mut ops = body.walk(body.root());
    let lp: Op = ops
        .find(|op| matches!(body.kind(*op), OpKind::Loop { .. }))
        .expect("a loop");
    let end = body.last(body.op_regions(lp)[0]).expect("a repeat");
    let given: Vec<_> = body.operands(end).skip(5).collect();
    let [more, next, address] = given[..] else {
        panic!("three results");
    };
    assert_eq!(
        [more, next, address],
        [4, 1, 2].map(|n| body.operand(end, n))
    );
    unit.functions[func].body = Some(body);
    let findings = verify_function(&unit, func);
    assert!(findings.is_empty(), "{findings:?}");
}
