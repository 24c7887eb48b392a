//! Recognition of reductions in worksharing loops: memory of a rank accumulated in the loop and combined under
//! a lock.
//!
//! The pattern, of compilers and of users: `slot = neutral; share.for { … slot = slot op x … }; critical {
//! total = total op slot }`. Each iteration then contributes its accumulation from the identity. The combiner
//! is the code under the lock: a built-in operation if recognised, else the code itself as a region.
//!
//! A `reduction` clause starts from the identity by definition. A hand-written reduction may start from any
//! value, which is combined in the original place, as by one rank. Iterations accumulate from the identity of
//! the operation, or from the start value for min/max, which is idempotent.

use gradus_edit::{MinMax, ValueMap, clone_op_within, integer_min_max, is_pure};
use gradus_ir::{BinaryOp, Body, Builder, ConstKind, Op, OpKind, ReduceOp, Unit, Value};
use std::collections::HashSet;

/// The name of the lock under which reductions combine.
pub(crate) const REDUCTION_LOCK: &str = ".reduction";

/// A reduction of a worksharing loop.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// The rank's private slot.
    pub slot: Op,
    /// The critical region that combines ranks.
    pub critical: Op,
    /// The combiner.
    pub op: ReduceOp,
    /// The store of the start value before the loop.
    neutral: Op,
    /// Under the lock: the loads of total and slot, the ops between, and the store.
    total: Op,
    gathered: Op,
    between: Vec<Op>,
    write: Op,
}

/// Returns the reductions of the worksharing loop `op`.
pub(crate) fn of_loop(unit: &Unit, body: &Body, op: Op) -> Vec<Reduction> {
    let inside: HashSet<Op> = body.walk(body.op_regions(op)[0]).collect();
    let mut found: Vec<Reduction> = Vec::new();
    let mut at = body.next(op);
    // After the loop and its enclosing branches, only value computations and other reductions may precede the
    // lock.
    while let Some(next) = at {
        at = body.next(next);
        match body.kind(next) {
            OpKind::Yield => {
                at = branch_ending_with(body, next).and_then(|branch| body.next(branch))
            }
            OpKind::Critical(_) => {
                let parts = reductions_of_critical(unit, body, op, next, &inside);
                found.extend(parts.unwrap_or_default());
            }
            OpKind::Load(_) | OpKind::Barrier(_) => {}
            OpKind::Call(_) if unit.marker_callee(body, next).is_some() => {}
            OpKind::Store(_) => {
                // The runtime's list of reduction variables.
                let slot = body.def_op(body.operand(next, 1));
                if !slot.is_some_and(|s| {
                    matches!(body.kind(s), OpKind::Alloca(_) | OpKind::Addr { .. })
                }) {
                    break;
                }
            }
            _ if is_pure(unit, body, next) => {}
            _ => break,
        }
    }
    found
}

/// Returns the branch whose arm ends with `op`.
fn branch_ending_with(body: &Body, op: Op) -> Option<Op> {
    let branch = body.parent_op(op)?;
    matches!(body.kind(branch), OpKind::If).then_some(branch)
}

/// Returns true if the critical region contains only the given reductions.
pub(crate) fn contains_only_reductions<'r>(
    unit: &Unit,
    body: &Body,
    critical: Op,
    reductions: impl Iterator<Item = &'r Reduction>,
) -> bool {
    let mut known: HashSet<Op> = HashSet::new();
    for reduction in reductions.filter(|r| r.critical == critical) {
        known.extend([reduction.total, reduction.gathered, reduction.write]);
        known.extend(&reduction.between);
    }
    body.results(critical).is_empty()
        && body.ops_in(body.op_regions(critical)[0]).all(|op| {
            known.contains(&op) || matches!(body.kind(op), OpKind::Yield) || is_pure(unit, body, op)
        })
}

/// Returns the reductions of a critical region: every store must be a reduction.
fn reductions_of_critical(
    unit: &Unit,
    body: &Body,
    op: Op,
    critical: Op,
    inside: &HashSet<Op>,
) -> Option<Vec<Reduction>> {
    let region = body.op_regions(critical)[0];
    let mut found = Vec::new();
    for write in body.ops_in(region) {
        let OpKind::Store(access) = body.kind(write) else {
            continue;
        };
        if !access.is_plain() {
            return None;
        }
        let address = body.operand(write, 1);
        let (total, gathered, between) = decompose_combination(unit, body, write)?;
        // The total is read at the stored address, which is defined outside.
        if body.operand(total, 0) != address || !body.dominates(address, op) {
            return None;
        }
        let slot = body.def_op(body.operand(gathered, 0))?;
        let before = body.dominates(body.result(gathered), op);
        let here = body.parent(total) == Some(region);
        if before || !here || !matches!(body.kind(slot), OpKind::Alloca(_)) {
            return None;
        }
        let neutral = start_value_store(unit, body, op, slot, gathered, inside)?;
        let result = body.operand(write, 0);
        let pair = (body.result(total), body.result(gathered));
        let reduction = Reduction {
            slot,
            critical,
            op: operation(body, result, pair, &between),
            neutral,
            total,
            gathered,
            between,
            write,
        };
        let alike = body.ty(pair.0) == body.ty(pair.1);
        if !alike || !reduction.is_of_clause(body) && !reduction.allows_any_start(body) {
            return None;
        }
        found.push(reduction);
    }
    Some(found)
}

/// Decomposes a stored value: the load of the total, the load of the slot, and the pure ops between.
fn decompose_combination(unit: &Unit, body: &Body, write: Op) -> Option<(Op, Op, Vec<Op>)> {
    let region = body.parent(write)?;
    let address = body.operand(write, 1);
    let (mut loads, mut between) = (Vec::new(), Vec::new());
    let mut open = vec![body.operand(write, 0)];
    let mut seen = HashSet::new();
    while let Some(value) = open.pop() {
        let Some(op) = body.def_op(value) else {
            continue;
        };
        if !seen.insert(op) {
            continue;
        }
        let here = body.parent(op) == Some(region);
        match body.kind(op) {
            OpKind::Load(access) if access.is_plain() => loads.push(op),
            _ if !here => return None,
            _ if is_pure(unit, body, op) => {
                between.push(op);
                open.extend(body.operands(op));
            }
            _ => return None,
        }
    }
    let order: Vec<Op> = body
        .ops_in(region)
        .filter(|o| between.contains(o))
        .collect();
    match loads[..] {
        [a, b] if body.operand(a, 0) == address => Some((a, b, order)),
        [a, b] if body.operand(b, 0) == address => Some((b, a, order)),
        _ => None,
    }
}

/// Returns the only store to the slot outside of the loop, before the loop; `None` for any other use of the
/// slot.
fn start_value_store(
    unit: &Unit,
    body: &Body,
    op: Op,
    slot: Op,
    gathered: Op,
    inside: &HashSet<Op>,
) -> Option<Op> {
    let mut found = None;
    for used in body.uses(body.result(slot)) {
        let user = used.op;
        match body.kind(user) {
            _ if inside.contains(&user) => {}
            OpKind::Load(_) if user == gathered => {}
            OpKind::Call(_) if unit.marker_callee(body, user).is_some() => {}
            OpKind::Store(access) if used.index == 1 && access.is_plain() && found.is_none() => {
                let mut at = op;
                while body.parent(at) != body.parent(user) {
                    at = body.parent_op(at)?;
                    if !matches!(body.kind(at), OpKind::If) {
                        return None;
                    }
                }
                let mut before = body.prev(at);
                while before.is_some() && before != Some(user) {
                    before = before.and_then(|o| body.prev(o));
                }
                found = before;
                found?;
            }
            // An entry of the runtime's list.
            OpKind::Store(_) if used.index == 0 && is_unread_store(unit, body, user) => {}
            _ => return None,
        }
    }
    let value = body.operand(found?, 0);
    let same = body.ty(value) == body.ty(body.result(gathered));
    same.then_some(found).flatten()
}

/// Returns true if the store is to memory never read.
fn is_unread_store(unit: &Unit, body: &Body, store: Op) -> bool {
    let base = body.address_base(body.operand(store, 1));
    let Some(alloca) = body
        .def_op(base)
        .filter(|o| matches!(body.kind(*o), OpKind::Alloca(_)))
    else {
        return false;
    };
    let mut open = vec![body.result(alloca)];
    while let Some(value) = open.pop() {
        for used in body.uses(value) {
            match body.kind(used.op) {
                OpKind::Addr { .. } => open.push(body.result(used.op)),
                OpKind::Store(_) if used.index == 1 => {}
                OpKind::Call(_) if unit.marker_callee(body, used.op).is_some() => {}
                _ => return false,
            }
        }
    }
    true
}

/// Returns the built-in operation of a combination, else [`ReduceOp::Custom`].
fn operation(body: &Body, result: Value, (a, b): (Value, Value), between: &[Op]) -> ReduceOp {
    let (Some(op), true) = (body.def_op(result), between.len() <= 2) else {
        return ReduceOp::Custom;
    };
    let is_pair = |pair: [Value; 2]| pair == [a, b] || pair == [b, a];
    let of_both = |op: Op| is_pair([body.operand(op, 0), body.operand(op, 1)]);
    match *body.kind(op) {
        OpKind::Binary(binary) if between == [op] && of_both(op) => match binary {
            BinaryOp::Add => ReduceOp::Add,
            BinaryOp::Mul => ReduceOp::Mul,
            BinaryOp::And => ReduceOp::And,
            BinaryOp::Or => ReduceOp::Or,
            BinaryOp::Xor => ReduceOp::Xor,
            BinaryOp::FAdd => ReduceOp::FAdd,
            BinaryOp::FMul => ReduceOp::FMul,
            _ => ReduceOp::Custom,
        },
        OpKind::Select if between.len() == 2 => match integer_min_max(body, result) {
            Some((extreme, arms)) if is_pair(arms) => extreme,
            _ => ReduceOp::Custom,
        },
        _ => ReduceOp::Custom,
    }
}

// ---- the par.for ---------------------------------------------------------------------------------

impl Reduction {
    /// Returns true for a `reduction` clause.
    fn is_of_clause(&self, body: &Body) -> bool {
        matches!(body.kind(self.critical), OpKind::Critical(name) if **name == *REDUCTION_LOCK)
    }

    /// Returns true if a non-identity start value is legal: the operation has an identity or is idempotent.
    fn allows_any_start(&self, body: &Body) -> bool {
        let (total, gathered) = (body.result(self.total), body.result(self.gathered));
        let choice = MinMax::of(body, body.operand(self.write, 0));
        let of_both =
            |c: MinMax| [(total, gathered), (gathered, total)].contains(&(c.first, c.second));
        self.op != ReduceOp::Custom || choice.is_some_and(of_both)
    }

    /// Emits a load of the total before the loop.
    pub fn initial(&self, b: &mut Builder, op: Op) -> Value {
        b.set_insertion_before(op);
        let copy = clone_op_within(self.total, b, &mut ValueMap::new());
        b.body.result(copy)
    }

    /// Returns true if the code under the lock must remain: the start value is combined even if no iteration
    /// runs.
    pub fn keeps_critical_code(&self, b: &mut Builder) -> bool {
        let begun = b.body.operand(self.neutral, 0);
        !self.is_of_clause(b.body) && !self.is_neutral(b, begun)
    }

    /// Returns true if `value` is an identity up to the sign of zero.
    fn is_neutral(&self, b: &mut Builder, value: Value) -> bool {
        let ty = b.body.ty(value);
        let value = self.signed_zero_identity(b, value);
        gradus_edit::identity(b, self.op, ty) == Some(value)
    }

    /// Lets an iteration accumulate from the identity in private memory and yield the result.
    pub fn contribute(&self, b: &mut Builder, op: Op) {
        let region = b.body.op_regions(op)[0];
        let Some(end) = b.body.last(region) else {
            unreachable!("a verified region has a terminator");
        };
        let inside: HashSet<Op> = b.body.walk(region).collect();
        if let Some(first) = b.body.first(region) {
            b.set_insertion_before(first);
        }
        let value = b.body.operand(self.neutral, 0);
        let ty = b.body.ty(value);
        let neutral = gradus_edit::identity(b, self.op, ty);
        let value = match neutral.filter(|_| !self.is_of_clause(b.body)) {
            Some(neutral) => neutral,
            None => self.signed_zero_identity(b, value),
        };
        let own = b.alloca(ty);
        b.store(value, own);
        let old = b.body.result(self.slot);
        let uses: Vec<_> = b.body.uses(old).collect();
        for at in uses.into_iter().filter(|u| inside.contains(&u.op)) {
            b.body.set_operand(at.op, at.index as usize, own);
        }
        b.set_insertion_before(end);
        let gathered = b.load(ty, own);
        b.body.add_operand(end, gathered);
    }

    /// The identity of addition is −0.0, not 0.0: 0.0 + −0.0 is 0.0.
    fn signed_zero_identity(&self, b: &mut Builder, value: Value) -> Value {
        let ty = b.body.ty(value);
        let constant = b
            .body
            .as_const(value)
            .map(|id| b.unit.constant(id).kind.clone());
        let zero = matches!(constant, Some(ConstKind::Zero | ConstKind::Float(0)));
        match self.op {
            ReduceOp::FAdd if zero => b.float(ty, -0.0),
            _ => value,
        }
    }

    /// Stores the result at the place of the combination, or before it if the combination `stays`. Code that is
    /// no built-in operation becomes the combining region.
    pub fn finish(&self, b: &mut Builder, op: Op, number: usize, stays: bool) {
        if self.op == ReduceOp::Custom {
            let region = b.body.add_region(op);
            let ty = b.body.ty(b.body.result(self.total));
            let (x, y) = (b.body.add_param(region, ty), b.body.add_param(region, ty));
            let (total, gathered) = (b.body.result(self.total), b.body.result(self.gathered));
            // Ranks combine in any order and with swapped operands. The serial loop keeps the earlier of equal
            // values: `s = x < s ? x : s`.
            let choice = MinMax::of(b.body, b.body.operand(self.write, 0));
            let map = match choice.is_some_and(|c| (c.first, c.second) == (total, gathered)) {
                true => [gathered, total],
                false => [total, gathered],
            };
            let mut map = ValueMap::zip(&map, &[x, y]);
            b.set_insertion_end(region);
            for &op in &self.between {
                clone_op_within(op, b, &mut map);
            }
            let result = map.get_or_same(b.body.operand(self.write, 0));
            b.yield_(&[result]);
        }
        let result = b.body.results(op)[number];
        b.set_insertion_before(self.write);
        let write = clone_op_within(self.write, b, &mut ValueMap::new());
        b.body.detach(write);
        b.body.insert_after(op, write);
        b.body.set_operand(write, 0, result);
        if !stays {
            b.body.erase(self.write);
            b.body.erase(self.neutral);
        }
    }
}

/// Removes operations with an identity operand, left by contributions.
pub(crate) fn drop_neutral(unit: &Unit, body: &mut Body) {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    for op in ops {
        let OpKind::Binary(binary) = *body.kind(op) else {
            continue;
        };
        for (own, other) in [(0, 1), (1, 0)] {
            let value = body.operand(op, own);
            if body.parent(op).is_some() && is_neutral(unit, body, binary, value) {
                let kept = body.operand(op, other);
                let result = body.result(op);
                body.replace_uses(result, kept);
                body.erase(op);
                break;
            }
        }
    }
}

fn is_neutral(unit: &Unit, body: &Body, op: BinaryOp, value: Value) -> bool {
    let Some(id) = body.as_const(value) else {
        return false;
    };
    let constant = unit.constant(id);
    let (ConstKind::Float(bits), Some(kind)) = (&constant.kind, unit.types.float_kind(constant.ty))
    else {
        return false;
    };
    match op {
        BinaryOp::FAdd => *bits == 1 << (kind.bits() - 1),
        _ => false,
    }
}
