//! Markers: global variables whose *names* say how a differentiation call is meant. Programs declare
//! them and never define them, so every use must go.
//!
//! A call passes what was loaded from a marker, or its address (C++ references). After the early
//! pipeline the load usually stands right before the call; it may have been shared or moved out of a
//! loop, so a marker is looked for behind merges and carried values too. Before anything else moves it, what is
//! loaded becomes the address as a number ([`settle_loads`]), which is the same on all ways.

use gradus_ir::known::{Marker, interface_word, marker_named};
use gradus_ir::{
    Body, Builder, CastOp, ConstKind, Definition, GlobalId, Op, OpKind, Region, Type, Unit, Value,
};
use std::collections::HashSet;

/// What a value stands for, seen through merges, carried values and casts that keep the bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A marker, the same wherever the value comes from.
    Marker(Marker),
    /// Different markers, or a marker here and something else there.
    Mixed,
    /// No marker.
    Value,
}

/// The origin of a value.
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

/// The constant that a value always is, seen as [`origin`] sees it.
pub(crate) fn settled(unit: &Unit, body: &Body, value: Value) -> Option<Value> {
    let mut sources = sources(unit, body, value).into_iter();
    let first = sources.next()?;
    body.as_const(first)?;
    sources.all(|s| s == first).then_some(first)
}

/// Returns the name of an undefined variable that begins like a marker's and that the table lacks. The value is its
/// address, or was loaded from it.
pub(crate) fn unknown_name<'u>(unit: &'u Unit, body: &Body, value: Value) -> Option<&'u str> {
    let mut found = sources(unit, body, value).into_iter();
    found.find_map(|source| {
        let whole = unit.types.int_bits(body.ty(source)).is_some() || body.def_op(source).is_none();
        let global = &unit.globals[variable(unit, body, source).filter(|_| whole)?];
        let unknown =
            marker_named(&global.name).is_none() && interface_word(&global.name).is_some();
        (unknown && !global.defined).then_some(global.name.as_str())
    })
}

fn marker_of(unit: &Unit, body: &Body, value: Value) -> Option<Marker> {
    marker_named(&unit.globals[variable(unit, body, value)?].name)
}

/// Returns the variable whose address a value is, or from which it was loaded as a whole number.
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

/// Whether an op loads from an address, or makes a number of it, as [`settle_loads`] does with markers.
fn is_reading(body: &Body, op: Op) -> bool {
    let kind = body.kind(op);
    matches!(kind, OpKind::Load(_) | OpKind::Cast(CastOp::PtrToInt))
}

/// Puts the addresses of markers, as numbers, in place of what a body loads from them: a load may come to stand
/// behind a question, and what arrives where it is not asked is no marker.
pub(crate) fn settle_loads(unit: &mut Unit, body: &mut Body) {
    for op in reads(unit, body) {
        let (value, address) = (body.result(op), body.operand(op, 0));
        let mut b = Builder::new(unit, body);
        b.at_op(op);
        let ty = b.body.ty(value);
        let is_number = matches!(b.unit.types.get(ty), Type::Int(_));
        if is_number && matches!(b.body.kind(op), OpKind::Load(_)) {
            let number = b.cast(CastOp::PtrToInt, address, ty);
            b.body.replace_uses(value, number);
            b.body.erase(op);
        }
    }
}

/// Has a body load from markers again what [`settle_loads`] settled: a later link reads calls that are left.
pub(crate) fn load_again(unit: &mut Unit, body: &mut Body) {
    for op in reads(unit, body) {
        let (value, address) = (body.result(op), body.operand(op, 0));
        if matches!(body.kind(op), OpKind::Cast(_)) {
            let mut b = Builder::new(unit, body);
            b.at_op(op);
            let ty = b.body.ty(value);
            let loaded = b.load(ty, address);
            b.body.replace_uses(value, loaded);
            b.body.erase(op);
        }
    }
}

/// What a body reads of markers.
fn reads(unit: &Unit, body: &Body) -> Vec<Op> {
    let of_marker =
        |op: &Op| is_reading(body, *op) && marker_of(unit, body, body.result(*op)).is_some();
    body.walk(body.root()).filter(of_marker).collect()
}

/// The values that may arrive as `value`: results and parameters of structures are followed to what is
/// yielded and carried. Each is looked at once.
fn sources(unit: &Unit, body: &Body, value: Value) -> Vec<Value> {
    let (mut pending, mut seen, mut found) = (vec![value], HashSet::new(), Vec::new());
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let before = pending.len();
        match body.values[value].def {
            Definition::Const(_) => {}
            Definition::Param(region, index) => carried(body, region, index, &mut pending),
            Definition::Result(op, index) => yielded(unit, body, op, index, &mut pending),
        }
        if pending.len() == before {
            found.push(value);
        }
    }
    found
}

/// What may arrive as parameter `index` of a loop's region.
fn carried(body: &Body, region: Region, index: u32, into: &mut Vec<Value>) {
    let Some(op) = body.owner(region) else {
        // Not an error: nothing in the body hands on a parameter of the function.
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

/// What may arrive as result `index` of an op.
fn yielded(unit: &Unit, body: &Body, op: Op, index: u32, into: &mut Vec<Value>) {
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

/// Puts zero in place of everything that a body still loads from markers; says whether there was any.
pub(crate) fn erase_loads(unit: &mut Unit, body: &mut Body) -> bool {
    let loads = reads(unit, body);
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
