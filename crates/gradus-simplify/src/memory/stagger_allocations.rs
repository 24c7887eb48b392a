//! Staggers the start addresses of large zeroed allocations (shadows) by some cache lines.
//!
//! Allocators place large blocks at page boundaries or back to back. Arrays of equal size and their shadows
//! then map to identical cache sets element by element (4K aliasing). A store to one array delays loads of
//! another with equal low address bits. A zeroed block, as shadows are, is therefore enlarged by some cache
//! lines and starts behind the padding.
//!
//! The program must free the block through the value that the allocation returns, and the block must not
//! escape, neither during the execution nor by return. A small block is unchanged, by a run-time test.
//!
//! Runs last, after differentiation.

use gradus_analysis::{AccessKind, Alias, Object, ObjectId, PassContext};
use gradus_ir::externals::{ExternalFn, MemoryFn};
use gradus_ir::{Body, Builder, IntPredicate, Op, Unit, Use, Value};

/// Minimum size for staggering: smaller blocks share the first-level cache.
const LARGE_BYTES: i64 = 1 << 16;
/// Nine cache lines; successive blocks start at multiples.
const STEP_BYTES: i64 = 576;
const STEPS: usize = 4;

/// Staggers large shadow allocations; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    stagger_allocations(unit, body, facts) > 0
}

/// Runs the pass; returns the number of staggered allocations.
pub fn stagger_allocations(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> usize {
    if !has_large_zeroed_allocations(unit, body) {
        return 0;
    }
    let blocks = staggerable_allocations(unit, body, facts);
    for (number, &block) in blocks.iter().enumerate() {
        let bytes = STEP_BYTES * (1 + number % STEPS) as i64;
        offset_allocation(unit, body, block, bytes);
    }
    blocks.len()
}

/// Returns whether a body calls an allocator for zeroed memory.
pub fn has_large_zeroed_allocations(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| is_zeroed_block(unit, body, op))
}

fn is_zeroed_block(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    if known != Some(ExternalFn::Memory(MemoryFn::Calloc)) {
        return false;
    }
    let args = unit.call_args(body, op);
    let small = |n: i64| (0..LARGE_BYTES).contains(&n);
    body.as_int(unit, args[0]) == Some(1) && !body.as_int(unit, args[1]).is_some_and(small)
}

/// Returns the allocation calls that may be staggered.
fn staggerable_allocations(unit: &Unit, body: &Body, facts: &PassContext) -> Vec<Op> {
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let points_to = &alias.points_to;
    let object = |op: Op| points_to.find(Object::Heap(op));
    let returned = points_to.returned(body);
    let is_own = |id: ObjectId| points_to.is_private(id) && !returned.contains(&id);
    let own = |op: &Op| object(*op).is_some_and(is_own);
    let mut blocks: Vec<Op> = body.walk(body.root()).collect();
    blocks.retain(|op| is_zeroed_block(unit, body, *op) && own(op));
    if blocks.is_empty() {
        return blocks;
    }
    let freed: Vec<(Op, Value)> = body
        .walk(body.root())
        .flat_map(|op| facts.effects.of_op(unit, body, op))
        .filter(|access| access.kind == AccessKind::Free)
        .filter_map(|access| Some((access.op, access.ptr()?)))
        .collect();
    let leads_to = |ptr: Value, id: ObjectId| {
        let targets = points_to.targets(body, ptr);
        targets.iter().any(|target| target.object == id)
    };
    let as_given = |op: &Op| {
        let given = body.result(*op);
        freed.iter().all(|(free, ptr)| match *ptr == given {
            true => is_free(unit, body, *free),
            false => !object(*op).is_some_and(|id| leads_to(*ptr, id)),
        })
    };
    blocks.retain(as_given);
    blocks
}

fn is_free(unit: &Unit, body: &Body, op: Op) -> bool {
    unit.memory_callee(body, op) == Some(MemoryFn::Free)
}

/// Offsets the block of an allocation call by `bytes`, if the block is large and the allocation succeeds.
fn offset_allocation(unit: &mut Unit, body: &mut Body, call: Op, bytes: i64) {
    // Operand 0 of a call is its callee.
    let index = 2;
    let size = body.operand(call, index);
    let given = body.result(call);
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(call);
    b.loc = b.body.ops[call].loc;
    let (large, more, none) = (b.i64(LARGE_BYTES), b.i64(bytes), b.i64(0));
    // A size with the sign bit set is invalid: the allocation fails as before.
    let is_large = b.icmp(IntPredicate::Sge, size, large);
    let before = b.select(is_large, more, none);
    let whole = b.add(size, before);
    b.body.set_operand(call, index, whole);
    if let Some(next) = b.body.next(call) {
        b.set_insertion_before(next);
    }
    let ptr = b.body.ty(given);
    let null = b.zero(ptr);
    let is_none = b.icmp(IntPredicate::Eq, given, null);
    let lines = b.select(is_none, none, before);
    let start = b.byte_addr(given, lines);
    let ours = [is_none, start].map(|v| body.def_op(v));
    let uses: Vec<Use> = body.uses(given).collect();
    for used in uses {
        if !ours.contains(&Some(used.op)) && !is_free(unit, body, used.op) {
            body.set_operand(used.op, used.index as usize, start);
        }
    }
}
