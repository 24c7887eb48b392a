//! Detection of spin loops.

use gradus_edit::may_spin;
use gradus_ir::{OpKind, parse};

/// Returns whether the loop of a test function may wait; `arms` decide on the next iteration.
fn may_spin_with_arms(arms: &str) -> bool {
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
    may_spin(&unit, body, lp)
}

#[test]
fn volatile_polling_loop_spins() {
    assert!(may_spin_with_arms(
        "yield true, %n } else { yield false, %n"
    ));
}

/// No iteration follows an arm without a yield.
#[test]
fn arm_without_yield_does_not_repeat() {
    assert!(may_spin_with_arms("yield true, %n } else { unreachable"));
    assert!(may_spin_with_arms("unreachable } else { yield true, %n"));
}
