//! Shared memory: `__shared__` variables become allocations at the start of the block's region.

use super::Launch;
use gradus_ir::externals::{SHARED_DYNAMIC_PREFIX, SHARED_PREFIX};
use gradus_ir::{
    AllocaInfo, AllocaStorage, Body, Builder, ConstKind, Definition, GlobalId, OpKind, Unit, Value,
};
use std::collections::HashMap;

/// The alignment in bytes of dynamic shared memory.
const DYNAMIC_ALIGN: u32 = 16;

/// Allocates the shared variables of a launch's block.
pub(super) fn allocate_shared(unit: &mut Unit, body: &mut Body, launch: &Launch) {
    let used: Vec<(Value, GlobalId, i64)> = body
        .values
        .iter()
        .filter_map(|(value, data)| {
            let Definition::Const(id) = data.def else {
                return None;
            };
            match unit.constant(id).kind {
                ConstKind::Global { global, offset } => Some((value, global, offset)),
                _ => None,
            }
        })
        .filter(|(_, global, _)| is_shared(unit, *global))
        .collect();
    let mut memory: HashMap<Option<GlobalId>, Value> = HashMap::new();
    for (value, global, offset) in used {
        let places: Vec<_> = body
            .uses(value)
            .filter(|at| body.is_nested_in(at.op, launch.block))
            .collect();
        if places.is_empty() {
            continue;
        }
        let dynamic = unit.globals[global].name.starts_with(SHARED_DYNAMIC_PREFIX);
        // All dynamic shared arrays begin at one address.
        let key = (!dynamic).then_some(global);
        let base = match memory.get(&key) {
            Some(&base) => base,
            None => shared_alloca(unit, body, launch, global, dynamic),
        };
        memory.insert(key, base);
        let address = address_at(unit, body, base, offset);
        for at in places {
            body.set_operand(at.op, at.index as usize, address);
        }
    }
}

fn is_shared(unit: &Unit, global: GlobalId) -> bool {
    let name = &unit.globals[global].name;
    name.starts_with(SHARED_PREFIX) || name.starts_with(SHARED_DYNAMIC_PREFIX)
}

/// Allocates a shared variable, or the dynamic shared memory.
fn shared_alloca(
    unit: &mut Unit,
    body: &mut Body,
    launch: &Launch,
    global: GlobalId,
    dynamic: bool,
) -> Value {
    let (of_source, stated) = (unit.globals[global].ty, unit.globals[global].align_bytes);
    let (ty, align_bytes) = match dynamic {
        false => (of_source, stated.max(1)),
        true => (unit.types.int(8), stated.max(DYNAMIC_ALIGN)),
    };
    let first = body.first(launch.block);
    let mut b = Builder::new(unit, body);
    if let Some(first) = first {
        b.set_insertion_before(first);
    }
    let count = match dynamic {
        false => b.i64(1),
        true => launch.shared_bytes,
    };
    let info = AllocaInfo {
        ty,
        align_bytes,
        storage: AllocaStorage::Shared,
        inalloca: false,
    };
    let ptr = b.unit.types.ptr();
    b.value(OpKind::Alloca(info), &[count], ptr)
}

/// Emits the address `offset` bytes after `base`.
fn address_at(unit: &mut Unit, body: &mut Body, base: Value, offset: i64) -> Value {
    if offset == 0 {
        return base;
    }
    let Some(next) = body.def_op(base).and_then(|op| body.next(op)) else {
        return base;
    };
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(next);
    let bytes = b.i64(offset);
    b.byte_addr(base, bytes)
}
