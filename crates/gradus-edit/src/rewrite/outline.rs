//! Outlining support: captured values, argument blocks and private allocations of a region.
//!
//! An outlined region receives captured values as arguments, or through a block of memory if the function
//! needs a fixed signature. Per-iteration allocations of the region move to the function's entry.

use gradus_ir::{AllocaStorage, Body, Builder, Op, OpKind, Region, TypeId, Unit, Value};
use std::collections::HashSet;

/// Returns the non-constant values that a region uses but does not define, in order of first use.
pub fn captured_values(body: &Body, region: Region) -> Vec<Value> {
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

/// Returns the struct type that holds `values` in order.
pub fn block_type(unit: &mut Unit, body: &Body, values: &[Value]) -> TypeId {
    let types = values.iter().map(|v| body.ty(*v)).collect();
    unit.types.tuple(types)
}

/// Emits the address of field `index` of the block of type `block` at `base`.
pub fn field_address(b: &mut Builder<'_>, block: TypeId, base: Value, index: usize) -> Value {
    let offset = b
        .unit
        .layout
        .field_offset_bytes(b.unit, block, index as u64);
    let offset = b.i64(offset as i64);
    b.byte_addr(base, offset)
}

/// Stores `values` into the fields of a block.
pub fn store_fields(b: &mut Builder<'_>, block: TypeId, base: Value, values: &[Value]) {
    for (index, &value) in values.iter().enumerate() {
        let at = field_address(b, block, base, index);
        b.store(value, at);
    }
}

/// Loads all fields of a block.
pub fn load_fields(b: &mut Builder<'_>, block: TypeId, base: Value) -> Vec<Value> {
    let fields = (0..).map_while(|i| b.unit.types.field(block, i));
    let fields: Vec<TypeId> = fields.collect();
    let mut values = Vec::new();
    for (index, ty) in fields.into_iter().enumerate() {
        let at = field_address(b, block, base, index);
        values.push(b.load(ty, at));
    }
    values
}

/// Emits an alloca of one `ty` at the function's entry and restores the builder's insertion point.
pub fn entry_alloca(b: &mut Builder<'_>, ty: TypeId) -> Value {
    let first = b.body.first(b.body.root());
    let back = first.map(|first| b.set_insertion_before(first));
    let slot = b.alloca(ty);
    if let Some(back) = back {
        b.restore_insertion_point(back);
    }
    slot
}

/// Emits an alloca of one `ty`, private to each execution of the task, iteration or rank that encloses `at`.
pub fn strand_alloca(b: &mut Builder<'_>, at: Op, ty: TypeId) -> Value {
    let strand = b.body.enclosing_strand(at);
    if strand == b.body.root() {
        return entry_alloca(b, ty);
    }
    let back = match b.body.first(strand) {
        Some(first) => b.set_insertion_before(first),
        None => b.set_insertion_end(strand),
    };
    let slot = b.alloca(ty);
    b.restore_insertion_point(back);
    if let Some(op) = b.body.def_op(slot)
        && let OpKind::Alloca(info) = &mut b.body.ops[op].kind
    {
        info.storage = AllocaStorage::Private;
    }
    slot
}

/// Moves private allocas of constant size to the function's entry and makes them frame allocas.
///
/// All executions of the enclosing region then share one allocation. Sharing is legal for serial executions,
/// because the initial contents of an alloca are undefined. An alloca in a task, iteration or rank stays,
/// because executions may overlap.
pub fn hoist_private_allocas(body: &mut Body) {
    let root = body.root();
    let is_private = |op: &Op| match body.kind(*op) {
        OpKind::Alloca(info) => {
            let constant = body.as_const(body.operand(*op, 0)).is_some();
            info.storage == AllocaStorage::Private && constant && !body.is_in_strand(*op)
        }
        _ => false,
    };
    let allocas: Vec<Op> = body.walk(root).filter(is_private).collect();
    for op in allocas {
        if let OpKind::Alloca(info) = &mut body.ops[op].kind {
            info.storage = AllocaStorage::Frame;
        }
        body.detach(op);
        match body.first(root) {
            Some(first) => body.insert_before(first, op),
            None => body.append(root, op),
        }
    }
}

/// Moves an op and its regions to the end of region `to`.
pub fn move_op(body: &mut Body, op: Op, to: Region) {
    body.detach(op);
    body.append(to, op);
}

/// Replaces `op` by the code of its region `region`, with `params` for the region parameters. Yielded values
/// replace the results of `op`; results are poison if the region does not yield.
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
    b.set_insertion_before(op);
    let results = b.body.results(op).to_vec();
    for (index, result) in results.into_iter().enumerate() {
        let ty = b.body.ty(result);
        let value = yielded.get(index).copied();
        let value = value.unwrap_or_else(|| b.poison(ty));
        b.body.replace_uses(result, value);
    }
    b.body.erase(op);
}
