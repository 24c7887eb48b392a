//! A region becomes a function of its own: what it uses from outside, and how that gets there.
//!
//! The values go as arguments, or through a block of memory where the function must have a fixed
//! signature. Allocations that belong to single runs of the region go to the function's beginning.

use gradus_ir::{AllocaPlace, Body, Builder, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

/// The values from outside that a region uses, in order of their first use; constants are none.
pub fn captured(body: &Body, region: Region) -> Vec<Value> {
    let mut inside: HashSet<Value> = body.region_params(region).iter().copied().collect();
    for op in body.walk(region) {
        inside.extend(body.results(op));
        for &inner in body.op_regions(op) {
            inside.extend(body.region_params(inner));
        }
    }
    let mut found = Vec::new();
    for op in body.walk(region) {
        for value in body.operands(op) {
            if body.as_const(value).is_none() && inside.insert(value) {
                found.push(value);
            }
        }
    }
    found
}

/// The type of a block of memory that holds values of these types, in order.
pub fn block_type(unit: &mut Unit, body: &Body, values: &[Value]) -> TypeId {
    let types = values.iter().map(|v| body.ty(*v)).collect();
    unit.types.tuple(types)
}

/// The address of member `index` of the block of type `block` at `base`.
pub fn member(b: &mut Builder<'_>, block: TypeId, base: Value, index: usize) -> Value {
    let offset = b
        .unit
        .layout
        .field_offset_bytes(b.unit, block, index as u64);
    let offset = b.i64(offset as i64);
    b.byte_addr(base, offset)
}

/// Stores values into the members of a block.
pub fn pack(b: &mut Builder<'_>, block: TypeId, base: Value, values: &[Value]) {
    for (index, &value) in values.iter().enumerate() {
        let at = member(b, block, base, index);
        b.store(value, at);
    }
}

/// Loads the members of a block.
pub fn unpack(b: &mut Builder<'_>, block: TypeId, base: Value) -> Vec<Value> {
    let fields = (0..).map_while(|i| b.unit.types.field(block, i));
    let fields: Vec<TypeId> = fields.collect();
    let mut values = Vec::new();
    for (index, ty) in fields.into_iter().enumerate() {
        let at = member(b, block, base, index);
        values.push(b.load(ty, at));
    }
    values
}

/// Memory for one `ty` at the function's beginning, wherever the builder stands.
pub fn entry_alloca(b: &mut Builder<'_>, ty: TypeId) -> Value {
    let first = b.body.first(b.body.root());
    let back = first.map(|first| b.at_op(first));
    let slot = b.alloca(ty);
    if let Some(back) = back {
        b.restore(back);
    }
    slot
}

/// Memory for one `ty` that every run of the task, iteration or rank around an op has to itself.
pub fn strand_alloca(b: &mut Builder<'_>, at: Op, ty: TypeId) -> Value {
    let strand = b.body.strand_of(at);
    if strand == b.body.root() {
        return entry_alloca(b, ty);
    }
    let back = match b.body.first(strand) {
        Some(first) => b.at_op(first),
        None => b.at_end(strand),
    };
    let slot = b.alloca(ty);
    b.restore(back);
    if let Some(op) = b.body.def_op(slot)
        && let OpKind::Alloca(info) = &mut b.body.ops[op].kind
    {
        info.place = AllocaPlace::Private;
    }
    slot
}

/// Moves private allocations of constant size to the function's beginning, as plain ones: each is then
/// made once for all runs of the region that it stands in. That keeps the meaning where those runs
/// follow each other, since what an allocation holds at first is not defined. What stands in a task,
/// an iteration or a rank stays there: those may run at once.
pub fn raise_private(body: &mut Body) {
    let root = body.root();
    let is_private = |op: &Op| match body.kind(*op) {
        OpKind::Alloca(info) => {
            let constant = body.as_const(body.operand(*op, 0)).is_some();
            info.place == AllocaPlace::Private && constant && !in_strand(body, *op)
        }
        _ => false,
    };
    let allocas: Vec<Op> = body.walk(root).filter(is_private).collect();
    for op in allocas {
        if let OpKind::Alloca(info) = &mut body.ops[op].kind {
            info.place = AllocaPlace::Frame;
        }
        body.detach(op);
        match body.first(root) {
            Some(first) => body.insert_before(first, op),
            None => body.append(root, op),
        }
    }
}

/// Whether an op stands in a region that several threads may run at once.
fn in_strand(body: &Body, op: Op) -> bool {
    let around = |op: &Op| body.owner(body.parent(*op)?);
    std::iter::successors(around(&op), around).any(|op| body.kind(op).begins_strands())
}

/// Moves an op, with the regions that it owns, to the end of a region.
pub fn move_op(body: &mut Body, op: Op, to: Region) {
    body.detach(op);
    body.append(to, op);
}

/// Puts the code of a region in place of the op that owns it, once, with `params` for its parameters;
/// what the region yields stands for the op's results, which are poison where it never comes to that.
pub fn inline_region(b: &mut Builder<'_>, op: Op, region: Region, params: &[Value]) {
    let old: Vec<Value> = b.body.region_params(region).to_vec();
    for (&param, &value) in old.iter().zip(params) {
        b.body.replace_uses(param, value);
    }
    let yielded: Vec<Value> = match b.body.last(region) {
        Some(end) if b.body.kind(end).is_terminator() => {
            let values = b.body.operands(end).collect();
            b.body.erase(end);
            values
        }
        _ => Vec::new(),
    };
    let ops: Vec<Op> = b.body.ops_in(region).collect();
    for inner in ops {
        b.body.detach(inner);
        b.body.insert_before(op, inner);
    }
    b.at_op(op);
    let results = b.body.results(op).to_vec();
    for (index, result) in results.into_iter().enumerate() {
        let ty = b.body.ty(result);
        let value = yielded.get(index).copied();
        let value = value.unwrap_or_else(|| b.poison(ty));
        b.body.replace_uses(result, value);
    }
    b.body.erase(op);
}
