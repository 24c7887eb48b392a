//! Turns volatile accesses of non-escaping stack slots into plain accesses.
//!
//! `volatile` guarantees accesses as written for an external observer: a device, a signal handler or the code
//! after `longjmp`. Only `longjmp` can observe a non-escaping stack slot, and functions that call `setjmp`
//! are refused. Programs use `volatile` to round a number to its format, which every GIR operation does.
//!
//! The program's own code keeps volatile accesses; the pass edits only bodies to differentiate.

use gradus_ir::{Body, Op, OpKind, Unit};

/// Turns volatile loads and stores of non-escaping allocas into plain accesses; returns the number of changed
/// accesses.
pub fn volatile_slots_to_plain(unit: &Unit, body: &mut Body) -> usize {
    let volatile = |op: &Op| match body.kind(*op) {
        OpKind::Load(access) | OpKind::Store(access) => access.volatile,
        _ => false,
    };
    if !body.walk(body.root()).any(|op| volatile(&op)) {
        return 0;
    }
    let allocas = body.walk(body.root());
    let allocas = allocas.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
    let accesses = allocas.filter_map(|alloca| accesses_if_private(unit, body, alloca));
    let settled: Vec<Op> = accesses.flatten().filter(volatile).collect();
    for &op in &settled {
        if let OpKind::Load(access) | OpKind::Store(access) = &mut body.ops[op].kind {
            access.volatile = false;
        }
    }
    settled.len()
}

/// Returns all loads and stores of an alloca; `None` if the address escapes.
fn accesses_if_private(unit: &Unit, body: &Body, alloca: Op) -> Option<Vec<Op>> {
    let mut found = Vec::new();
    let mut open = vec![body.result(alloca)];
    while let Some(address) = open.pop() {
        for used in body.uses(address) {
            match body.kind(used.op) {
                OpKind::Load(_) => found.push(used.op),
                OpKind::Store(_) if used.index == 1 => found.push(used.op),
                OpKind::Addr { .. } if used.index == 0 => open.push(body.result(used.op)),
                OpKind::Call(_) if unit.is_lifetime_marker(body, used.op) => {}
                _ => return None,
            }
        }
    }
    Some(found)
}
