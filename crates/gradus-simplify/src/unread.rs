//! Memory of the body's own that nobody reads: what is written there goes, and the memory with it.
//!
//! It is seen to be unread where its address is used for nothing but stores into it, fills, frees and
//! marks of its life. A parallel loop that only wrote there is then empty, and dead.

use crate::Facts;
use gradus_ir::known::{Known, MarkerFn, MemoryFn};
use gradus_ir::{Body, Op, OpKind, Unit};

/// Removes what is written to memory that nobody reads.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, _: &Facts) -> bool {
    let made: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| makes_memory(unit, body, op))
        .collect();
    let mut changed = false;
    for op in made {
        if let Some(users) = only_written(unit, body, op) {
            for user in users.into_iter().rev() {
                body.erase(user);
            }
            body.erase(op);
            changed = true;
        }
    }
    changed
}

fn makes_memory(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Alloca(info) => !info.inalloca,
        OpKind::Call(_) => matches!(
            known(unit, body, op),
            Some(Known::Memory(MemoryFn::Malloc | MemoryFn::Calloc))
        ),
        _ => false,
    }
}

fn known(unit: &Unit, body: &Body, op: Op) -> Option<Known> {
    unit.known(unit.callee(body, op)?)
}

/// All that uses the memory made by `op`, users after what they use; `None` where one of them may read
/// it or hand its address on.
fn only_written(unit: &Unit, body: &Body, op: Op) -> Option<Vec<Op>> {
    let mut users = Vec::new();
    let mut open = vec![body.result(op)];
    while let Some(address) = open.pop() {
        for used in body.uses(address) {
            let only_writes = match body.kind(used.op) {
                OpKind::Addr { .. } if used.index == 0 => {
                    open.push(body.result(used.op));
                    true
                }
                OpKind::Store(access) => used.index == 1 && access.is_plain(),
                OpKind::Call(info) => {
                    info.bundles.is_empty() && fills_or_ends(unit, body, used.op, used.index)
                }
                _ => false,
            };
            if !only_writes {
                return None;
            }
            if !users.contains(&used.op) {
                users.push(used.op);
            }
        }
    }
    Some(users)
}

/// Whether a call that gets the address as this operand fills the memory, frees it or marks its life.
fn fills_or_ends(unit: &Unit, body: &Body, call: Op, index: u32) -> bool {
    let unused = body.results(call).iter().all(|v| !body.has_uses(*v));
    let own = match known(unit, body, call) {
        Some(Known::Memory(MemoryFn::Free | MemoryFn::MemsetIntrinsic)) => index == 1,
        Some(Known::Marker(MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd)) => true,
        _ => false,
    };
    own && unused
}
