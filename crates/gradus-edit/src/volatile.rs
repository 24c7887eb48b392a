//! Volatile accesses of memory that nobody else can see are ordinary ones.
//!
//! What `volatile` promises is that accesses happen as written where somebody looks on: a device, a
//! signal handler, the other side of a `setjmp`. A stack variable whose address goes nowhere has no such
//! onlooker but the last, and functions that call `setjmp` are refused. Programs use it to have a number
//! rounded to its format, which every operation of ours is anyway. The program's own code keeps its
//! accesses: only bodies that derivatives are made of are edited.

use crate::slots::is_lifetime;
use gradus_ir::{Body, Op, OpKind, Unit};

/// Makes ordinary accesses of the volatile ones of stack memory whose address goes nowhere; gives their
/// number.
pub fn settle_volatile(unit: &Unit, body: &mut Body) -> usize {
    let volatile = |op: &Op| match body.kind(*op) {
        OpKind::Load(access) | OpKind::Store(access) => access.volatile,
        _ => false,
    };
    if !body.walk(body.root()).any(|op| volatile(&op)) {
        return 0;
    }
    let allocas = body.walk(body.root());
    let allocas = allocas.filter(|op| matches!(body.kind(*op), OpKind::Alloca(_)));
    let accesses = allocas.filter_map(|alloca| accesses(unit, body, alloca));
    let settled: Vec<Op> = accesses.flatten().filter(volatile).collect();
    for &op in &settled {
        if let OpKind::Load(access) | OpKind::Store(access) = &mut body.ops[op].kind {
            access.volatile = false;
        }
    }
    settled.len()
}

/// All loads and stores of an allocation; `None` where its address goes elsewhere.
fn accesses(unit: &Unit, body: &Body, alloca: Op) -> Option<Vec<Op>> {
    let mut found = Vec::new();
    let mut open = vec![body.result(alloca)];
    while let Some(address) = open.pop() {
        for used in body.uses(address) {
            match body.kind(used.op) {
                OpKind::Load(_) => found.push(used.op),
                OpKind::Store(_) if used.index == 1 => found.push(used.op),
                OpKind::Addr { .. } if used.index == 0 => open.push(body.result(used.op)),
                OpKind::Call(_) if is_lifetime(unit, body, used.op) => {}
                _ => return None,
            }
        }
    }
    Some(found)
}
