//! Outputs in blocks that the closure allocates itself and leaves behind an argument: `*y = malloc(…)`. A gradient in
//! one call makes the shadows of such blocks, so that the caller cannot put cotangents there before.
//!
//! Steps: (1) look at each store of a varied number into memory that an argument with a shadow leads to; (2) the store
//! goes to a block of the closure if its address is computed from the result of an allocation in the same function.
//! An address that was loaded counts as memory of the caller, which may have allocated the block before.

use crate::activity::{ClassFacts, Facts};
use crate::flow::{self, ValueAccess};
use gradus_ir::known::Known;
use gradus_ir::{Body, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Returns true if the closure writes varied numbers to blocks of its own that an argument with a shadow leads to,
/// and to no other memory behind such arguments.
pub fn writes_only_own_blocks(facts: Facts<'_>, classes: &ClassFacts) -> bool {
    let mut copies = facts.memory.copies().iter();
    if copies.any(|copy| classes.is_given(copy.to.class)) {
        return false;
    }
    let (mut own, mut others) = (false, false);
    for (func, body) in facts.closure.bodies(facts.unit) {
        let blocks = allocated(facts.unit, body);
        for op in body.walk(body.root()) {
            flow::value_accesses(facts.unit, body, op, |access| {
                let ValueAccess::Store { ptr, value } = access else {
                    // Not an error: loads write nothing.
                    return;
                };
                let numbers = facts.words.carries_float(func, value);
                if !numbers || !classes.value_varied(func, value) {
                    return;
                }
                let class = facts.memory.class(func, ptr);
                if class.is_none_or(|class| classes.is_given(class)) {
                    let fresh = blocks.contains(&base_of(body, ptr));
                    own |= fresh;
                    others |= !fresh;
                }
            });
        }
    }
    own && !others
}

/// Returns the blocks that calls of a body allocate.
fn allocated(unit: &Unit, body: &Body) -> HashSet<Value> {
    let is_allocation = |op: &Op| {
        let known = unit.callee(body, *op).and_then(|callee| unit.known(callee));
        matches!(known, Some(Known::Memory(function)) if function.allocation().is_some())
    };
    let calls = body.walk(body.root()).filter(is_allocation);
    calls.filter_map(|op| flow::given(body, op)).collect()
}

/// Returns the value from which an address is computed by offsets.
fn base_of(body: &Body, address: Value) -> Value {
    let mut base = address;
    while let Some(op) = body.def_op(base)
        && matches!(body.kind(op), OpKind::Addr { .. })
    {
        base = body.operand(op, 0);
    }
    base
}
