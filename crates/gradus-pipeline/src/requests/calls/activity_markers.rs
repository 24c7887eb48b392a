//! Activity markers: global variables whose *names* qualify the arguments of a differentiation call.
//! Programs declare but never define markers, hence every use must be removed.
//!
//! A call passes a value loaded from a marker, or the marker's address (C++ references). After the early
//! pipeline the load usually precedes the call immediately. The load may have been shared or hoisted, so
//! markers are traced through merges and loop-carried values. Before any other code motion, each load is
//! replaced by the address as an integer ([`replace_marker_loads`]), equal on all paths.

use gradus_ir::externals::{Marker, interface_keyword, marker_named};
use gradus_ir::{
    Body, Builder, CastOp, ConstKind, Definition, GlobalId, Op, OpKind, Region, Type, Unit, Value,
};
use std::collections::HashSet;

/// The origin of a value, traced through merges, loop-carried values and bit-preserving casts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A marker on all paths.
    Marker(Marker),
    /// Different markers, or a marker on some paths only.
    Mixed,
    /// Not a marker.
    Value,
}

/// Returns the origin of a value.
pub(crate) fn origin(unit: &Unit, body: &Body, value: Value) -> Origin {
    let (mut found, mut other) = (None, false);
    for source in sources(unit, body, value) {
        match marker_of(unit, body, source) {
            Some(marker) if found.is_none_or(|f| f == marker) => found = Some(marker),
            Some(_) => return Origin::Mixed,
            None => other = true,
        }
    }
    match (found, other) {
        (Some(marker), false) => Origin::Marker(marker),
        (Some(_), true) => Origin::Mixed,
        (None, _) => Origin::Value,
    }
}

/// Returns the constant that a value equals on all paths, traced as in [`origin`].
pub(crate) fn constant_on_all_paths(unit: &Unit, body: &Body, value: Value) -> Option<Value> {
    let mut sources = sources(unit, body, value).into_iter();
    let first = sources.next()?;
    body.as_const(first)?;
    sources.all(|s| s == first).then_some(first)
}

/// Returns the name of an undefined variable with a marker's prefix that is missing from the table. The
/// value is the variable's address, or was loaded from the variable.
pub(crate) fn unknown_name<'u>(unit: &'u Unit, body: &Body, value: Value) -> Option<&'u str> {
    let mut found = sources(unit, body, value).into_iter();
    found.find_map(|source| {
        let whole = unit.types.int_bits(body.ty(source)).is_some() || body.def_op(source).is_none();
        let global = &unit.globals[variable(unit, body, source).filter(|_| whole)?];
        let unknown =
            marker_named(&global.name).is_none() && interface_keyword(&global.name).is_some();
        (unknown && !global.defined).then_some(global.name.as_str())
    })
}

fn marker_of(unit: &Unit, body: &Body, value: Value) -> Option<Marker> {
    marker_named(&unit.globals[variable(unit, body, value)?].name)
}

/// Returns the variable whose address `value` is, or from which `value` was loaded as an integer.
fn variable(unit: &Unit, body: &Body, value: Value) -> Option<GlobalId> {
    let address = match body.def_op(value) {
        Some(op) if is_reading(body, op) => body.operand(op, 0),
        Some(_) => return None,
        None => value,
    };
    match unit.constant(body.as_const(address)?).kind {
        ConstKind::Global { global, offset: 0 } => Some(global),
        _ => None,
    }
}

/// Returns true if an op loads from an address, or converts it to an integer, as [`replace_marker_loads`] does.
fn is_reading(body: &Body, op: Op) -> bool {
    let kind = body.kind(op);
    matches!(kind, OpKind::Load(_) | OpKind::Cast(CastOp::PtrToInt))
}

/// Replaces loads from markers by the markers' addresses as integers: a load may be moved under a
/// condition, and the value merged on the other path is not a marker.
pub(crate) fn replace_marker_loads(unit: &mut Unit, body: &mut Body) {
    for op in marker_reads(unit, body) {
        let (value, address) = (body.result(op), body.operand(op, 0));
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        let ty = b.body.ty(value);
        let is_number = matches!(b.unit.types.get(ty), Type::Int(_));
        if is_number && matches!(b.body.kind(op), OpKind::Load(_)) {
            let number = b.cast(CastOp::PtrToInt, address, ty);
            b.body.replace_uses(value, number);
            b.body.erase(op);
        }
    }
}

/// Reverts [`replace_marker_loads`]: a later link reads the remaining calls.
pub(crate) fn restore_marker_loads(unit: &mut Unit, body: &mut Body) {
    for op in marker_reads(unit, body) {
        let (value, address) = (body.result(op), body.operand(op, 0));
        if matches!(body.kind(op), OpKind::Cast(_)) {
            let mut b = Builder::new(unit, body);
            b.set_insertion_before(op);
            let ty = b.body.ty(value);
            let loaded = b.load(ty, address);
            b.body.replace_uses(value, loaded);
            b.body.erase(op);
        }
    }
}

/// Returns the ops of a body that read markers.
fn marker_reads(unit: &Unit, body: &Body) -> Vec<Op> {
    let of_marker =
        |op: &Op| is_reading(body, *op) && marker_of(unit, body, body.result(*op)).is_some();
    body.walk(body.root()).filter(of_marker).collect()
}

/// Returns the values that may reach `value`, traced from results and parameters of structured ops to
/// yielded and loop-carried values. Each value is visited once.
fn sources(unit: &Unit, body: &Body, value: Value) -> Vec<Value> {
    let (mut pending, mut seen, mut found) = (vec![value], HashSet::new(), Vec::new());
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let before = pending.len();
        match body.values[value].def {
            Definition::Const(_) => {}
            Definition::Param(region, index) => {
                add_carried_sources(body, region, index, &mut pending)
            }
            Definition::Result(op, index) => {
                add_yielded_sources(unit, body, op, index, &mut pending)
            }
        }
        if pending.len() == before {
            found.push(value);
        }
    }
    found
}

/// Adds the values that may reach parameter `index` of a loop's region.
fn add_carried_sources(body: &Body, region: Region, index: u32, into: &mut Vec<Value>) {
    let Some(op) = body.owner(region) else {
        // Not an error: a parameter of the function has no source in the body.
        return;
    };
    let index = index as usize;
    let Some(last) = body.last(region) else {
        unreachable!("a verified region has a terminator");
    };
    match (body.kind(op), body.kind(last)) {
        (OpKind::Loop { .. }, OpKind::Repeat) => {
            into.push(body.operand(op, index));
            into.push(body.operand(last, index + 1));
        }
        (OpKind::For { .. }, OpKind::Yield) if index > 0 => {
            into.push(body.operand(op, index));
            into.push(body.operand(last, index - 1));
        }
        _ => {}
    }
}

/// Adds the values that may reach result `index` of an op.
fn add_yielded_sources(unit: &Unit, body: &Body, op: Op, index: u32, into: &mut Vec<Value>) {
    let index = index as usize;
    match body.kind(op) {
        OpKind::If | OpKind::Switch(_) | OpKind::Invoke(_) => {
            for &region in body.op_regions(op) {
                if let Some(last) = body.last(region)
                    && matches!(body.kind(last), OpKind::Yield)
                {
                    into.push(body.operand(last, index));
                }
            }
        }
        OpKind::Loop { .. } => {
            let region = body.op_regions(op)[0];
            let carried = body.region_params(region).len();
            if let Some(last) = body.last(region)
                && matches!(body.kind(last), OpKind::Repeat)
            {
                into.push(body.operand(last, 1 + carried + index));
            }
        }
        OpKind::For { .. } => {
            into.push(body.operand(op, index + 1));
            if let Some(last) = body.last(body.op_regions(op)[0])
                && matches!(body.kind(last), OpKind::Yield)
            {
                into.push(body.operand(last, index));
            }
        }
        OpKind::Select => into.extend([body.operand(op, 1), body.operand(op, 2)]),
        OpKind::Freeze => into.push(body.operand(op, 0)),
        OpKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast) => into.push(body.operand(op, 0)),
        OpKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc) => {
            let inner = body.operand(op, 0);
            if marker_of(unit, body, inner).is_some() {
                into.push(inner);
            }
        }
        _ => {}
    }
}

/// Replaces all remaining loads from markers by zero. Returns true if any existed.
pub(crate) fn erase_loads(unit: &mut Unit, body: &mut Body) -> bool {
    let loads = marker_reads(unit, body);
    let found = !loads.is_empty();
    for op in loads {
        let value = body.result(op);
        let mut build = Builder::new(unit, body);
        let ty = build.body.ty(value);
        let zero = build.zero(ty);
        body.replace_uses(value, zero);
        body.erase(op);
    }
    found
}
