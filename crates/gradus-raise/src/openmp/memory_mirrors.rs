//! Memory mirrors: carried values that duplicate private memory of the thread.
//!
//! An optimiser keeps a sum in a register and still stores it to memory in every iteration, for the code after
//! the loop. Replacing the carried value by a load of the memory restores the source: an accumulation variable
//! that ranks combine.

use gradus_ir::{Body, Builder, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Replaces values carried by the `for` loop `lp` by loads of memory that mirrors them.
pub(super) fn replace_mirrored_values(unit: &mut Unit, body: &mut Body, lp: Op) {
    for index in 0..body.operand_count(lp) - 1 {
        if let Some(slot) = mirroring_slot(unit, body, lp, index) {
            replace_by_loads(unit, body, lp, index, body.result(slot));
        }
    }
}

/// Returns the slot that holds carried value `index` at the start of every iteration: the initial value was
/// stored last before the loop, and each iteration stores the next value.
fn mirroring_slot(unit: &Unit, body: &Body, lp: Op, index: usize) -> Option<Op> {
    let region = body.op_regions(lp)[0];
    let next = body.operand(body.last(region)?, index);
    let slot = stored_slot(body, next)?;
    let mut writers: HashSet<Op> = HashSet::new();
    for at in body.uses(body.result(slot)) {
        let inside: Vec<Op> = body.ancestors(at.op).take_while(|op| *op != lp).collect();
        let is_inside = inside.last().copied().unwrap_or(at.op);
        if body.parent(is_inside) != Some(region) {
            continue;
        }
        match body.kind(at.op) {
            OpKind::Load(_) => {}
            OpKind::Store(access) if access.is_plain() && at.index == 1 => {
                writers.insert(at.op);
                writers.extend(inside);
            }
            _ => return None,
        }
    }
    let held = SlotContent { body, writers };
    let param = body.region_params(region)[1 + index];
    let initial = body.operand(lp, 1 + index);
    let mirrors = held.content_after_region(region, param, 0) == Some(next);
    (mirrors && contains_before(unit, body, slot, lp, initial)).then_some(slot)
}

/// Returns the slot to which a value is stored, at its definition or in the branch or loop that yields it.
fn stored_slot(body: &Body, value: Value) -> Option<Op> {
    let mut open = vec![value];
    let mut seen: HashSet<Value> = HashSet::new();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        for at in body.uses(value) {
            if matches!(body.kind(at.op), OpKind::Store(_)) && at.index == 0 {
                let slot = body.def_op(body.operand(at.op, 1));
                let slot = slot.filter(|slot| matches!(body.kind(*slot), OpKind::Alloca(_)));
                if slot.is_some() {
                    return slot;
                }
            }
        }
        let Some(op) = body.def_op(value) else {
            continue;
        };
        for &region in body.op_regions(op) {
            open.extend(
                body.last(region)
                    .into_iter()
                    .flat_map(|end| body.operands(end)),
            );
        }
    }
    None
}

/// The content of a slot during an iteration.
struct SlotContent<'a> {
    body: &'a Body,
    /// The stores to the slot, and branches and loops that contain stores.
    writers: HashSet<Op>,
}

/// The maximum nesting depth.
const DEPTH_MAX: u32 = 64;

impl SlotContent<'_> {
    /// Returns the slot's content at the end of a region entered with content `now`.
    fn content_after_region(&self, region: Region, mut now: Value, depth: u32) -> Option<Value> {
        let body = self.body;
        for op in body.ops_in(region).filter(|op| self.writers.contains(op)) {
            now = match body.kind(op) {
                OpKind::Store(_) => body.operand(op, 0),
                _ if depth == DEPTH_MAX => return None,
                OpKind::If => self.content_after_branch(op, now, depth)?,
                OpKind::Loop { .. } => self.content_after_loop(op, now, depth)?,
                _ => return None,
            };
        }
        Some(now)
    }

    /// Returns the branch result equal to the slot's content at the end of both arms.
    fn content_after_branch(&self, op: Op, now: Value, depth: u32) -> Option<Value> {
        let body = self.body;
        let mut fitting: Vec<Value> = body.results(op).to_vec();
        for &arm in body.op_regions(op) {
            let held = self.content_after_region(arm, now, depth + 1)?;
            let end = body.yield_of(arm)?;
            fitting.retain(|result| {
                let number = body.results(op).iter().position(|r| r == result);
                number.is_some_and(|n| body.operand(end, n) == held)
            });
        }
        fitting.first().copied()
    }

    /// Returns the loop result equal to the slot's content at the end of the last trip.
    fn content_after_loop(&self, op: Op, now: Value, depth: u32) -> Option<Value> {
        let body = self.body;
        let region = body.op_regions(op)[0];
        let carried = body.operands(op).position(|initial| initial == now)?;
        let held =
            self.content_after_region(region, body.region_params(region)[carried], depth + 1)?;
        let end = body.last(region)?;
        if !matches!(body.kind(end), OpKind::Repeat) || body.operand(end, 1 + carried) != held {
            return None;
        }
        let mut given = body.operands(end).skip(1 + body.operand_count(op));
        let number = given.position(|value| value == held)?;
        body.results(op).get(number).copied()
    }
}

/// Returns true if the slot must contain `value` before `lp`: stored or loaded there, without a later store.
/// The address escapes at most later.
fn contains_before(unit: &Unit, body: &Body, slot: Op, lp: Op, value: Value) -> bool {
    let address = body.result(slot);
    let users: HashSet<Op> = body.uses(address).map(|at| at.op).collect();
    let mut written = None;
    let mut read = false;
    let before = body.walk(body.root()).take_while(|op| *op != lp);
    for op in before.filter(|op| users.contains(op)) {
        match body.kind(op) {
            OpKind::Load(_) => read |= body.result(op) == value,
            OpKind::Store(access) if access.is_plain() && body.operand(op, 0) != address => {
                (written, read) = (Some(op), false);
            }
            _ if unit.marker_callee(body, op).is_some() => {}
            _ => return false,
        }
    }
    let Some(around) = enclosing_arms(body, lp) else {
        return false;
    };
    // A carried value is available on all paths; a store may be conditional.
    read || written.is_some_and(|write| {
        let surely = body.parent(write).is_some_and(|r| around.contains(&r));
        surely && body.operand(write, 0) == value
    })
}

/// Returns the regions around an op; `None` inside of a loop, in which the address may have escaped in an
/// earlier trip.
fn enclosing_arms(body: &Body, op: Op) -> Option<Vec<Region>> {
    let mut around = vec![body.parent(op)?];
    while let Some(owner) = body.owner(*around.last()?) {
        if !matches!(body.kind(owner), OpKind::If) {
            return None;
        }
        around.push(body.parent(owner)?);
    }
    Some(around)
}

/// Replaces carried value `index` by loads of `address`.
fn replace_by_loads(unit: &mut Unit, body: &mut Body, lp: Op, index: usize, address: Value) {
    let region = body.op_regions(lp)[0];
    let param = body.region_params(region)[1 + index];
    let result = body.results(lp)[index];
    let ty = body.ty(param);
    let mut b = Builder::new(unit, body);
    if let Some(first) = b.body.first(region) {
        b.set_insertion_before(first);
    }
    let now = b.load(ty, address);
    b.body.replace_uses(param, now);
    if b.body.has_uses(result)
        && let Some(after) = b.body.next(lp)
    {
        b.set_insertion_before(after);
        let last = b.load(ty, address);
        b.body.replace_uses(result, last);
    }
}
