//! Detection of spin loops.

use gradus_edit::may_wait;
use gradus_ir::{OpKind, parse};

/// Returns whether the loop of a test function may wait; `arms` decide on the next iteration.
fn waits(arms: &str) -> bool {
    let text = format!(
        "func @f(%p: ptr) -> void {{
           loop iter(%n = 0) {{
             %x = load volatile %p -> i64
             %c = icmp eq %x, 0
             %again, %next = if %c -> i1, i64 {{ {arms} }}
             repeat %again, %next
           }}
           return
         }}"
    );
    let unit = parse(&text, "waits.gir").unwrap_or_else(|e| panic!("{e} {:?}", e.labels));
    let func = unit.function("f").expect("is there");
    let body = unit.functions[func].body.as_deref().expect("a body");
    let is_loop = |op: &gradus_ir::Op| matches!(body.kind(*op), OpKind::Loop { .. });
    let lp = body.walk(body.root()).find(is_loop).expect("a loop");
    may_wait(&unit, body, lp)
}

#[test]
fn a_loop_waits_that_only_looks() {
    assert!(waits("yield true, %n } else { yield false, %n"));
}

/// No iteration follows an arm without a yield.
#[test]
fn an_arm_that_ends_the_program_is_no_way_on() {
    assert!(waits("yield true, %n } else { unreachable"));
    assert!(waits("unreachable } else { yield true, %n"));
}
