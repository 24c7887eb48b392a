//! Shadows of large blocks begin some cache lines further on than the blocks.
//!
//! Allocators give large blocks on page borders, or one behind the other: arrays of like sizes, and the
//! shadows beside them, then fall on the same cache sets element by element, and a store to one holds up
//! loads of another whose address has the same low bits. A zeroed block, as shadows are, is asked for
//! with some lines more and begins behind these. It is freed as it was given, so that must be by the
//! value that the allocation gives, and nobody outside may know the block, as long as the body runs or
//! after it has returned. A small one stays as it is, which is asked at run time.
//!
//! Place: last, when no derivative is made of the body any more.

use crate::Facts;
use gradus_analysis::{AccessKind, Alias, Object, ObjectId};
use gradus_ir::known::{Known, MemoryFn};
use gradus_ir::{Body, Builder, IntPredicate, Op, Unit, Use, Value};

/// From this size on blocks are worth some lines: smaller ones share a cache of the first level.
const LARGE_BYTES: i64 = 1 << 16;
/// Nine lines; blocks side by side begin at multiples.
const STEP_BYTES: i64 = 576;
const STEPS: usize = 4;

/// Lets the shadows of large blocks begin further on; says whether there are any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts) -> bool {
    stagger(unit, body, facts) > 0
}

/// As the pass does; gives the number of blocks.
pub fn stagger(unit: &mut Unit, body: &mut Body, facts: &Facts) -> usize {
    if !allocates(unit, body) {
        return 0;
    }
    let blocks = blocks(unit, body, facts);
    for (number, &block) in blocks.iter().enumerate() {
        let bytes = STEP_BYTES * (1 + number % STEPS) as i64;
        move_on(unit, body, block, bytes);
    }
    blocks.len()
}

/// Whether a body asks for zeroed blocks.
pub fn allocates(unit: &Unit, body: &Body) -> bool {
    body.walk(body.root())
        .any(|op| is_zeroed_block(unit, body, op))
}

fn is_zeroed_block(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|func| unit.known(func));
    if known != Some(Known::Memory(MemoryFn::Calloc)) {
        return false;
    }
    let args = unit.call_args(body, op);
    let small = |n: i64| (0..LARGE_BYTES).contains(&n);
    body.as_int(unit, args[0]) == Some(1) && !body.as_int(unit, args[1]).is_some_and(small)
}

/// The calls whose blocks can begin further on.
fn blocks(unit: &Unit, body: &Body, facts: &Facts) -> Vec<Op> {
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
    let known = unit.callee(body, op).and_then(|func| unit.known(func));
    known == Some(Known::Memory(MemoryFn::Free))
}

/// Lets the block of a call begin so many bytes further on, if it is large and there is one.
fn move_on(unit: &mut Unit, body: &mut Body, call: Op, bytes: i64) {
    // The operands of a call begin with its callee.
    let index = 2;
    let size = body.operand(call, index);
    let given = body.result(call);
    let mut b = Builder::new(unit, body);
    b.at_op(call);
    b.loc = b.body.ops[call].loc;
    let (large, more, none) = (b.i64(LARGE_BYTES), b.i64(bytes), b.i64(0));
    // What is negative as a signed number is no size: the allocation fails as before.
    let is_large = b.icmp(IntPredicate::Sge, size, large);
    let before = b.select(is_large, more, none);
    let whole = b.add(size, before);
    b.body.set_operand(call, index, whole);
    if let Some(next) = b.body.next(call) {
        b.at_op(next);
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
