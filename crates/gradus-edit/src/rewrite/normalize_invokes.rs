//! Normalises invokes: the first region contains no ops besides its terminator; code after the call lies
//! outside the invoke.
//!
//! An imported `invoke` holds all code of the normal path in its first region. After normalisation the region
//! only forwards the call's result:
//!
//! 1. If the handler leaves the function (cleanup and resume), the first region's ops follow the invoke,
//!    whose result is the call's result.
//! 2. If the handler continues, the invoke yields the call's result, a flag for normal return, and the
//!    exception. An `if` after the invoke executes the contents of either region.
//!
//! A pass can then treat an invoke as a call with an additional handler. One walk from the outermost regions
//! inwards moves every op at most once.

use crate::rewrite::outline::inline_region;
use gradus_ir::externals::{ExceptionFn, ExternalFn, lookup};
use gradus_ir::{Body, Builder, FuncId, Op, OpKind, Region, TypeId, Unit, Value};

/// Normalises every invoke of a body; returns whether any invoke changed.
pub fn normalize_invokes(unit: &mut Unit, body: &mut Body) -> bool {
    let invokes: Vec<Op> = body
        .walk(body.root())
        .filter(|op| matches!(body.kind(*op), OpKind::Invoke(_)) && !is_normalized(unit, body, *op))
        .collect();
    let mut changed = false;
    for op in invokes {
        changed |= match completes(body, body.op_regions(op)[1]) {
            true => branch_after(unit, body, op),
            false => move_code_after(unit, body, op),
        };
    }
    changed
}

/// Turns invokes of functions that never throw into calls; returns whether there were any. `is_quiet` decides
/// for functions not declared `nounwind`.
pub fn invokes_to_calls(
    unit: &mut Unit,
    body: &mut Body,
    is_quiet: impl Fn(&Unit, FuncId) -> bool,
) -> bool {
    let quiet = |op: &Op| {
        matches!(body.kind(*op), OpKind::Invoke(_))
            && unit
                .callee(body, *op)
                .is_some_and(|func| is_quiet(unit, func))
    };
    let invokes: Vec<Op> = body.walk(body.root()).filter(quiet).collect();
    for &op in &invokes {
        let OpKind::Invoke(info) = body.kind(op).clone() else {
            continue;
        };
        let region = body.op_regions(op)[0];
        let types: Vec<TypeId> = body
            .region_params(region)
            .iter()
            .map(|v| body.ty(*v))
            .collect();
        let operands: Vec<Value> = body.operands(op).collect();
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        let call = b.op(OpKind::Call(info), &operands, &types, 0);
        let results = b.body.results(call).to_vec();
        inline_region(&mut b, op, region, &results);
    }
    !invokes.is_empty()
}

/// Returns whether an op is an invoke whose handler terminates the program, as at the boundary of a
/// `noexcept` function or an OpenMP region.
pub fn handler_terminates(unit: &Unit, body: &Body, op: Op) -> bool {
    let (OpKind::Invoke(_), [_, unwind]) = (body.kind(op), body.op_regions(op)) else {
        return false;
    };
    // Compilers emit a helper function that terminates the program.
    let ends = |op: Op| {
        let func = unit.callee(body, op);
        let known = func.and_then(|func| lookup(&unit.functions[func].name));
        known == Some(ExternalFn::Exception(ExceptionFn::Terminate))
    };
    let before = |op: &Op| {
        matches!(
            body.kind(*op),
            OpKind::LandingPad(_) | OpKind::ExtractValue(_)
        )
    };
    let mut handler = body.ops_in(*unwind).skip_while(before);
    handler.next().is_some_and(ends)
}

/// Returns whether an invoke has the form that [`normalize_invokes`] produces.
pub fn is_normalized(unit: &Unit, body: &Body, op: Op) -> bool {
    let [normal, unwind] = body.op_regions(op) else {
        return false;
    };
    let alone = |region: Region, ops: usize| body.ops_in(region).take(ops + 1).count() <= ops;
    let handler = !completes(body, *unwind) || alone(*unwind, 2);
    let ends = body.last(*normal).is_some_and(|end| {
        matches!(body.kind(end), OpKind::Yield) || matches!(body.kind(end), OpKind::Unreachable)
    });
    let given = body.region_params(*normal).first().copied();
    let caught = (body.first(*unwind)).and_then(|pad| body.results(pad).first().copied());
    let tells = !completes(body, *unwind) || tells_path(unit, body, [*normal, *unwind]);
    let once = yielded(body, *normal).filter(|v| Some(*v) == given).count() <= 1;
    let own = forwards_own_value(body, *normal, given)
        && (!completes(body, *unwind) || forwards_own_value(body, *unwind, caught));
    ends && tells && once && own && alone(*normal, 1) && handler
}

/// Returns whether the second-last result is true after a normal return and false after an exception.
fn tells_path(unit: &Unit, body: &Body, regions: [Region; 2]) -> bool {
    let flag = |region: Region| {
        let values: Vec<Value> = yielded(body, region).collect();
        let flag = *values.get(values.len().checked_sub(2)?)?;
        let is_bit = unit.types.int_bits(body.ty(flag)) == Some(1);
        body.as_int(unit, flag).filter(|_| is_bit)
    };
    // Not an error: a call that never returns normally has one path.
    let [normal, unwind] = regions;
    let returns = completes(body, normal);
    (!returns || flag(normal).is_some_and(|bit| bit != 0)) && flag(unwind) == Some(0)
}

fn yielded(body: &Body, region: Region) -> impl Iterator<Item = Value> {
    (body.last(region).into_iter()).flat_map(|end| body.operands(end))
}

/// Returns whether a region yields only `own` and constants. An outside value, and its adjoint, would
/// otherwise pass through the invoke.
fn forwards_own_value(body: &Body, region: Region, own: Option<Value>) -> bool {
    yielded(body, region).all(|v| Some(v) == own || body.as_const(v).is_some())
}

fn completes(body: &Body, region: Region) -> bool {
    body.last(region)
        .is_some_and(|end| matches!(body.kind(end), OpKind::Yield))
}

/// Returns the ops of a region except its terminator.
fn contents(body: &Body, region: Region) -> Vec<Op> {
    body.ops_in(region)
        .filter(|op| !body.kind(*op).is_terminator())
        .collect()
}

/// Emits a new invoke of the call before `op`. Returns the invoke, the parameter of its first region, and its
/// empty regions.
fn emit_same_invoke(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    further: &[TypeId],
) -> (Op, Option<Value>, [Region; 2]) {
    let kind = body.kind(op).clone();
    let operands: Vec<Value> = body.operands(op).collect();
    let given = body.region_params(body.op_regions(op)[0]).first().copied();
    let mut types: Vec<TypeId> = given.map(|v| body.ty(v)).into_iter().collect();
    types.extend(further);
    let data = (
        body.ops[op].flags,
        body.ops[op].meta,
        body.ops[op].name.clone(),
    );
    let loc = body.ops[op].loc;
    let mut b = Builder::new(unit, body);
    b.loc = loc;
    b.set_insertion_before(op);
    let new = b.op(kind, &operands, &types, 2);
    (body.ops[new].flags, body.ops[new].meta, body.ops[new].name) = data;
    let regions = [body.op_regions(new)[0], body.op_regions(new)[1]];
    let param = given.map(|v| body.add_param(regions[0], body.ty(v)));
    if let Some(given) = given {
        let result = body.results(new)[0];
        body.replace_uses(given, result);
    }
    (new, param, regions)
}

/// Normalises to form 1.
fn move_code_after(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let [normal, unwind] = [body.op_regions(op)[0], body.op_regions(op)[1]];
    let returns = completes(body, normal);
    let end = body.last(normal);
    let next = body.next(op);
    let kind = |op: Option<Op>| op.map(|op| body.kind(op));
    // A called handler may itself have a handler; the function is then left after `op`.
    let leaves = matches!(kind(end), Some(OpKind::Resume));
    let dead = matches!(kind(next), Some(OpKind::Unreachable))
        && (leaves || matches!(kind(end), Some(OpKind::Unreachable)));
    if !returns && !dead {
        return false;
    }
    let (_, param, [first, second]) = emit_same_invoke(unit, body, op, &[]);
    body.move_ops(unwind, second);
    for inner in contents(body, normal) {
        body.detach(inner);
        body.insert_before(op, inner);
    }
    if let (true, Some(end), Some(next)) = (leaves, end, next) {
        body.erase(next);
        body.detach(end);
        body.insert_after(op, end);
    }
    if returns && let Some(end) = end {
        let values: Vec<Value> = body.operands(end).collect();
        for (old, new) in body.results(op).to_vec().into_iter().zip(values) {
            body.replace_uses(old, new);
        }
    }
    let mut b = Builder::new(unit, body);
    b.set_insertion_end(first);
    b.yield_(param.as_slice());
    body.erase(op);
    true
}

/// Normalises to form 2.
fn branch_after(unit: &mut Unit, body: &mut Body, op: Op) -> bool {
    let [normal, unwind] = [body.op_regions(op)[0], body.op_regions(op)[1]];
    let Some(pad) = body.first(unwind) else {
        unreachable!("a verified handler begins with a landing pad");
    };
    let exception = body.result(pad);
    let (bit, caught) = (unit.types.int(1), body.ty(exception));
    let (new, param, [first, second]) = emit_same_invoke(unit, body, op, &[bit, caught]);
    let count = body.results(new).len();
    let (came_back, outside) = (body.results(new)[count - 2], body.results(new)[count - 1]);
    body.replace_uses(exception, outside);
    body.detach(pad);
    body.append(second, pad);
    let types: Vec<TypeId> = body.results(op).iter().map(|v| body.ty(*v)).collect();
    let mut b = Builder::new(unit, body);
    b.set_insertion_end(first);
    let (yes, nothing) = (b.bool(true), b.poison(caught));
    let mut given: Vec<Value> = param.into_iter().collect();
    given.extend([yes, nothing]);
    b.yield_(&given);
    b.set_insertion_end(second);
    let no = b.bool(false);
    let mut thrown: Vec<Value> = Vec::new();
    if let Some(param) = param {
        let ty = b.body.ty(param);
        thrown.push(b.poison(ty));
    }
    thrown.extend([no, exception]);
    b.yield_(&thrown);
    b.set_insertion_before(op);
    let (branch, then, otherwise) = b.if_(came_back, &types);
    body.move_ops(normal, then);
    body.move_ops(unwind, otherwise);
    for (old, new) in body
        .results(op)
        .to_vec()
        .into_iter()
        .zip(body.results(branch).to_vec())
    {
        body.replace_uses(old, new);
    }
    body.erase(op);
    true
}
