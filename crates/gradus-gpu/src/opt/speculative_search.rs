//! Speculative search: search loops test a whole aligned stretch of elements per iteration.
//!
//! ```text
//! loop iter(x = i) { if x < n { c = a[x] < v; … } repeat c, x + 1 }
//!     →   s = loop iter(x = i) { all = x + 16 ≤ n && a[x] < v & … & a[x + 15] < v; repeat all, x + 16 }
//!         loop iter(x = s) { … as before … }
//! ```
//!
//! A compiler does not vectorise a loop with a data-dependent exit: a vector would load elements that the
//! loop may never reach, from pages that may be unmapped. An aligned stretch of 128 bytes lies in a single
//! page. If its first element is readable, all elements are. From an aligned element, the new loop advances
//! by stretches while the search would continue after every element. The original loop continues from the
//! first stretch with a hit. Elements loaded beyond the hit do not affect the result; `fold_freeze` removes
//! poison.
//!
//! Place: after [`crate::grid_to_loops`]. Candidates are loops that carry only their index, write nothing, and load a
//! single element per index. Functions with a sanitizer attribute are skipped.

use crate::blocks::arms::live_terminator;
use crate::{Options, PassOutcome};
use gradus_analysis::{Alias, BaseValue, PassContext};
use gradus_edit::{ValueMap, clone_op_within, is_speculatable};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Flags, IntPredicate, Op, OpKind, Region, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Size of a stretch, in bytes: two cache lines, within a page.
const STRETCH_BYTES: u64 = 128;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let watched = facts.function.is_some_and(|func| {
        let attrs = unit.attrs(unit.functions[func].attrs);
        let named = |name| attrs.function(name).is_some();
        ["sanitize_address", "sanitize_memory", "sanitize_thread"]
            .into_iter()
            .any(named)
    });
    if !options.speculative_search || watched {
        return PassOutcome::default();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let parallel = |op: &Op| matches!(body.kind(*op), OpKind::ParFor { .. });
    let kernels = body.walk(body.root()).filter(parallel);
    let inside = kernels.flat_map(|kernel| body.walk(body.op_regions(kernel)[0]));
    let loops: HashSet<Op> = inside
        .filter(|op| matches!(body.kind(*op), OpKind::Loop { .. }))
        .collect();
    let in_order = body.walk(body.root()).filter(|op| loops.contains(op));
    let found: Vec<SearchLoop> = in_order
        .filter_map(|op| match_search_loop(&alias, op))
        .collect();
    for search in found {
        emit_speculative_loop(unit, body, &search);
    }
    PassOutcome::default()
}

/// A loop that advances while the element at its index is not a hit.
#[derive(Debug)]
struct SearchLoop {
    lp: Op,
    /// The bound test of the index.
    predicate: IntPredicate,
    limit: Value,
    /// The ops of the element's address, and all ops of the continuation test, in program order.
    address: Vec<Op>,
    slice: Vec<Op>,
    /// The address, and the continuation test.
    element_address: Value,
    again: Value,
    /// Elements per stretch.
    elements: i64,
}

fn match_search_loop(alias: &Alias<'_>, lp: Op) -> Option<SearchLoop> {
    let (unit, body) = (alias.unit, alias.body);
    let region = body.op_regions(lp)[0];
    let &[place] = body.region_params(region) else {
        return None;
    };
    unit.types
        .int_bits(body.ty(place))
        .filter(|bits| matches!(bits, 32 | 64))?;
    let ops: Vec<Op> = body.ops_in(region).collect();
    let &[test, branch, end] = &ops[..] else {
        return None;
    };
    live_terminator(body, region)?;
    let OpKind::ICmp(predicate @ (IntPredicate::Slt | IntPredicate::Ult)) = *body.kind(test) else {
        return None;
    };
    let limit = body.operand(test, 1);
    let is_made_inside = |v: Value| body.is_defined_in(v, region);
    let is_test =
        matches!(body.kind(branch), OpKind::If) && body.operand(branch, 0) == body.result(test);
    (is_test && body.operand(test, 0) == place && !is_made_inside(limit)).then_some(())?;
    // The values yielded by both arms for the loop's condition and index.
    let &[then, other] = body.op_regions(branch) else {
        return None;
    };
    let given = |value: Value| {
        let number = body
            .results(branch)
            .iter()
            .position(|result| *result == value)?;
        let of = |arm| live_terminator(body, arm).map(|end| body.operand(end, number));
        Some((of(then)?, of(other)?))
    };
    let (again, at_end) = given(body.operand(end, 0))?;
    let (next, _) = given(body.operand(end, 1))?;
    let stops = body.as_int(unit, at_end) == Some(0) && body.first(other) == body.last(other);
    (stops && is_next_index(unit, body, next, place, again)).then_some(())?;
    let inner: Vec<Op> = body
        .ops_in(then)
        .filter(|op| !body.kind(*op).is_terminator())
        .collect();
    let plain = |op: Op| match body.kind(op) {
        OpKind::Load(access) => access.is_plain(),
        OpKind::If | OpKind::Yield => true,
        _ => is_speculatable(unit, body, op) && body.op_regions(op).is_empty(),
    };
    body.walk(then).all(plain).then_some(())?;
    let slice = backward_slice(body, &inner, again);
    let flat = |op: &Op| body.op_regions(*op).is_empty();
    slice.iter().all(flat).then_some(())?;
    let load = find_element_load(alias, &slice, then, place)?;
    let at = body.operand(load, 0);
    let address = backward_slice(body, &slice, at);
    let reads = |op: &Op| matches!(body.kind(*op), OpKind::Load(_));
    (!address.iter().any(reads)).then_some(())?;
    let bytes = unit.layout.store_bytes(unit, body.ty(body.result(load)));
    Some(SearchLoop {
        lp,
        predicate,
        limit,
        address,
        slice,
        element_address: at,
        again,
        elements: (STRETCH_BYTES / bytes) as i64,
    })
}

/// Returns whether `next` is `place + 1` if the loop continues.
fn is_next_index(unit: &Unit, body: &Body, next: Value, place: Value, again: Value) -> bool {
    let next = value_where_true(unit, body, next, again);
    let Some(add) = body
        .def_op(next)
        .filter(|op| matches!(body.kind(*op), OpKind::Binary(BinaryOp::Add)))
    else {
        return false;
    };
    let one = |v: Value| body.as_int(unit, v) == Some(1);
    let by = body.operand(add, 1);
    let chosen = body
        .def_op(by)
        .filter(|op| matches!(body.kind(*op), OpKind::Select));
    let is_chosen = |op: Op| body.operand(op, 0) == again && one(body.operand(op, 1));
    body.operand(add, 0) == place && (one(by) || chosen.is_some_and(is_chosen))
}

/// The value of `value` if `again` holds: the result of an `if` on `again`, or on its negation, resolved to
/// the arm taken.
fn value_where_true(unit: &Unit, body: &Body, value: Value, again: Value) -> Value {
    let Some(branch) = body
        .def_op(value)
        .filter(|op| matches!(body.kind(*op), OpKind::If))
    else {
        return value;
    };
    let asked = body.operand(branch, 0);
    let contrary = body.def_op(again).is_some_and(|op| {
        matches!(body.kind(op), OpKind::Binary(BinaryOp::Xor))
            && body.operand(op, 0) == asked
            && body
                .as_int(unit, body.operand(op, 1))
                .is_some_and(|n| n != 0)
    });
    let arm = match asked == again {
        true => 0,
        false if contrary => 1,
        false => return value,
    };
    let number = body.results(branch).iter().position(|v| *v == value);
    let end = body.last(body.op_regions(branch)[arm]);
    let given = end.filter(|end| matches!(body.kind(*end), OpKind::Yield));
    let given = given.zip(number).map(|(end, n)| body.operand(end, n));
    given.unwrap_or(value)
}

/// The ops of `ops` in the backward slice of `value`, in order.
fn backward_slice(body: &Body, ops: &[Op], value: Value) -> Vec<Op> {
    let mut wanted: HashSet<Value> = HashSet::from([value]);
    let mut slice: Vec<Op> = Vec::new();
    for &op in ops.iter().rev() {
        if body
            .results(op)
            .iter()
            .any(|result| wanted.contains(result))
        {
            wanted.extend(body.operands(op));
            slice.push(op);
        }
    }
    slice.reverse();
    slice
}

/// The only load whose address depends on the index, with a stride of one element. Loads at invariant
/// addresses are allowed.
fn find_element_load(alias: &Alias<'_>, slice: &[Op], then: Region, place: Value) -> Option<Op> {
    let (unit, body) = (alias.unit, alias.body);
    let mut varying: HashSet<Value> = HashSet::from([place]);
    let mut elements = Vec::new();
    for &op in slice {
        let varies = body.operands(op).any(|v| varying.contains(&v));
        if varies {
            varying.extend(body.results(op));
        }
        if varies && matches!(body.kind(op), OpKind::Load(_)) {
            elements.push(op);
        }
    }
    let &[load] = &elements[..] else {
        return None;
    };
    let ty = body.ty(body.result(load));
    let (stored, size) = (
        unit.layout.store_bytes(unit, ty),
        unit.layout.size_bytes(unit, ty),
    );
    (stored == size && size.is_power_of_two() && size <= 8).then_some(())?;
    let addr = body.def_op(body.operand(load, 0))?;
    let address = unit.layout.address(unit, body, addr)?;
    let steps = |v: Value| match body.def_op(v).map(|op| (op, body.kind(op))) {
        Some((op, OpKind::Cast(CastOp::SExt | CastOp::ZExt))) => body.operand(op, 0) == place,
        _ => v == place,
    };
    let mut own = address.terms.iter().filter(|(v, _)| varying.contains(v));
    let is_next = own
        .next()
        .is_some_and(|(v, n)| steps(*v) && *n == size as i64);
    (is_next && own.next().is_none() && !varying.contains(&address.base)).then_some(())?;
    // Excludes local and global objects: the compiler knows their size, and could exploit an access out of
    // bounds.
    let BaseValue::Value(root) = alias.forms.of_pointer(unit, body, address.base).root else {
        return None;
    };
    let own = body
        .def_op(root)
        .is_some_and(|op| matches!(body.kind(op), OpKind::Alloca(_)));
    let inside = body.is_defined_in(root, then);
    (!own && !inside && body.as_const(root).is_none()).then_some(load)
}

/// Emits the speculative loop before the search, and starts the search at its result.
fn emit_speculative_loop(unit: &mut Unit, body: &mut Body, search: &SearchLoop) {
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(search.lp);
    b.loc = b.body.ops[search.lp].loc;
    let first = b.body.operand(search.lp, 0);
    let place = b.body.region_params(b.body.op_regions(search.lp)[0])[0];
    let (ty, truth) = (b.body.ty(first), b.unit.types.int(1));
    let (made, region) = b.loop_(&[first], &[ty]);
    let from = b.body.region_params(region)[0];
    b.set_insertion_end(region);
    let below = b.icmp(search.predicate, from, search.limit);
    let rest = b.sub(search.limit, from);
    let elements = b.int(ty, search.elements.into());
    let long = b.icmp(IntPredicate::Uge, rest, elements);
    let fits = b.binary(BinaryOp::And, below, long);
    let (choice, yes, no) = b.if_(fits, &[truth]);
    b.set_insertion_end(no);
    let none = b.bool(false);
    b.yield_(&[none]);
    b.set_insertion_end(yes);
    let whole = match is_planted(Mutant::SearchRangeUnaligned) {
        true => b.bool(true),
        false => emit_starts_stretch(b, search, place, from),
    };
    let (inner, yes, no) = b.if_(whole, &[truth]);
    b.set_insertion_end(no);
    b.yield_(&[none]);
    b.set_insertion_end(yes);
    let goes_on = emit_stretch_test(b, search, (place, ty), from);
    b.yield_(&[goes_on]);
    b.set_insertion_end(b.body.op_regions(choice)[0]);
    let all = b.body.result(inner);
    b.yield_(&[all]);
    b.set_insertion_end(region);
    let all = b.body.result(choice);
    let zero = b.zero(ty);
    let by = b.select(all, elements, zero);
    let next = b.add(from, by);
    b.repeat(all, &[next], &[next]);
    let start = b.body.result(made);
    b.body.set_operand(search.lp, 0, start);
}

/// Emits whether the element at an index is the first of a stretch.
fn emit_starts_stretch(
    b: &mut Builder<'_>,
    search: &SearchLoop,
    place: Value,
    from: Value,
) -> Value {
    let long = b.unit.types.int(64);
    let mut local = ValueMap::zip(&[place], &[from]);
    for &op in &search.address {
        clone_op_within(op, b, &mut local);
    }
    let at = b.cast(
        CastOp::PtrToInt,
        local.get_or_same(search.element_address),
        long,
    );
    let mask = b.i64(STRETCH_BYTES as i64 - 1);
    let low = b.binary(BinaryOp::And, at, mask);
    let zero = b.i64(0);
    b.icmp(IntPredicate::Eq, low, zero)
}

/// Emits whether the search continues after each element of a stretch.
fn emit_stretch_test(
    b: &mut Builder<'_>,
    search: &SearchLoop,
    (place, ty): (Value, TypeId),
    from: Value,
) -> Value {
    let (trips, yes) = (b.int(ty, search.elements.into()), b.bool(true));
    let (each, region) = b.for_(trips, &[yes]);
    b.body.ops[each].flags = Flags::INDEPENDENT;
    let &[index, so_far] = b.body.region_params(region) else {
        return yes;
    };
    let back = b.set_insertion_end(region);
    let here = b.add(from, index);
    let mut local = ValueMap::zip(&[place], &[here]);
    for &op in &search.slice {
        let copy = clone_op_within(op, b, &mut local);
        // Metadata of the original ops need not hold for elements that the search does not reach.
        b.body.ops[copy].meta = None;
    }
    let (again, truth) = (local.get_or_same(search.again), b.unit.types.int(1));
    let again = b.value(OpKind::Freeze, &[again], truth);
    let all = match is_planted(Mutant::SearchTestsLastOnly) {
        true => again,
        false => b.binary(BinaryOp::And, so_far, again),
    };
    b.yield_(&[all]);
    b.restore_insertion_point(back);
    b.body.result(each)
}
