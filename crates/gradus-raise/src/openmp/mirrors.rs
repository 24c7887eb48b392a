//! Carried values that stand for memory of the thread's own.
//!
//! An optimiser keeps a sum in a register and still writes it to memory in every iteration, where the
//! code behind the loop finds it. As a read of that memory it is again what the source said: a variable
//! in which iterations gather, and which ranks combine.

use super::loops::is_marker;
use gradus_ir::{Body, Builder, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Makes reads of memory of those values carried by `lp`, a `for`, that the memory holds, too.
pub(super) fn to_memory(unit: &mut Unit, body: &mut Body, lp: Op) {
    for index in 0..body.operand_count(lp) - 1 {
        if let Some(slot) = mirrored(unit, body, lp, index) {
            read(unit, body, lp, index, body.result(slot));
        }
    }
}

/// The slot that holds carried value `index` whenever an iteration begins: what the loop starts from was
/// written there last, and each iteration writes the next value there and nothing else.
fn mirrored(unit: &Unit, body: &Body, lp: Op, index: usize) -> Option<Op> {
    let region = body.op_regions(lp)[0];
    let next = body.operand(body.last(region)?, index);
    let writes = |op: Op| {
        matches!(body.kind(op), OpKind::Store(access) if access.is_plain())
            && body.operand(op, 0) == next
            && body.parent(op) == Some(region)
    };
    let write = body.uses(next).map(|at| at.op).find(|op| writes(*op))?;
    let slot = body.def_op(body.operand(write, 1))?;
    if !matches!(body.kind(slot), OpKind::Alloca(_)) {
        return None;
    }
    let inside: HashSet<Op> = body.walk(region).collect();
    let mut within = body
        .uses(body.result(slot))
        .map(|at| at.op)
        .filter(|op| inside.contains(op));
    let alone = within.all(|op| op == write || matches!(body.kind(op), OpKind::Load(_)));
    let initial = body.operand(lp, 1 + index);
    (alone && written_before(unit, body, slot, lp) == Some(initial)).then_some(slot)
}

/// What a slot surely holds when `lp` begins. Whoever else may know its address learns it later.
fn written_before(unit: &Unit, body: &Body, slot: Op, lp: Op) -> Option<Value> {
    let address = body.result(slot);
    let users: HashSet<Op> = body.uses(address).map(|at| at.op).collect();
    let mut last = None;
    let before = body.walk(body.root()).take_while(|op| *op != lp);
    for op in before.filter(|op| users.contains(op)) {
        match body.kind(op) {
            OpKind::Load(_) => {}
            OpKind::Store(access) if access.is_plain() && body.operand(op, 0) != address => {
                last = Some(op);
            }
            _ if is_marker(unit, body, op) => {}
            _ => return None,
        }
    }
    let write = last?;
    let mut region = body.parent(lp)?;
    let mut surely = false;
    // A loop around could come back with the address known.
    while let Some(owner) = body.owner(region) {
        surely |= body.parent(write) == Some(region);
        if !matches!(body.kind(owner), OpKind::If) {
            return None;
        }
        region = body.parent(owner)?;
    }
    surely |= body.parent(write) == Some(region);
    surely.then(|| body.operand(write, 0))
}

/// Puts reads of `address` in the place of carried value `index`.
fn read(unit: &mut Unit, body: &mut Body, lp: Op, index: usize, address: Value) {
    let region = body.op_regions(lp)[0];
    let param = body.region_params(region)[1 + index];
    let result = body.results(lp)[index];
    let ty = body.ty(param);
    let mut b = Builder::new(unit, body);
    if let Some(first) = b.body.first(region) {
        b.at_op(first);
    }
    let now = b.load(ty, address);
    b.body.replace_uses(param, now);
    if b.body.has_uses(result)
        && let Some(after) = b.body.next(lp)
    {
        b.at_op(after);
        let last = b.load(ty, address);
        b.body.replace_uses(result, last);
    }
}
