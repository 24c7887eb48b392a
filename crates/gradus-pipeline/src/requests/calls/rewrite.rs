//! Rewrites a differentiation call to a direct call of the derivative.
//!
//! Arguments are converted to the derivative's types; results are converted to the form stated by the
//! call's own prototype. If the two differ, both have equal scalars at equal offsets (checked by [`result_scalars_match`])
//! and are converted through memory, which LLVM removes.

use super::parse::{ArgumentSource, Parsed, conversion};
use crate::requests::abi::leaves;
use gradus_ad::{ParamRole, Signature};
use gradus_ir::{AttrSet, Body, Builder, CallInfo, FuncId, Op, OpKind, TypeId, Unit, Value};

/// The result form stated by a call's prototype.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResultForm {
    /// The result is unused.
    Nothing,
    /// A value of this type.
    Value(TypeId),
    /// A structure of this type, stored at this address.
    Memory(TypeId, Value),
}

/// Returns the type of all results of a derivative in C's layout; `None` without results.
fn layout_type(unit: &mut Unit, signature: &Signature) -> Option<TypeId> {
    match signature.results.as_slice() {
        [] => None,
        [(_, ty)] => Some(*ty),
        several => {
            let fields = several.iter().map(|(_, ty)| *ty).collect();
            Some(unit.types.tuple(fields))
        }
    }
}

/// Returns true if a derivative's results equal the scalars stated by the call's prototype.
pub(crate) fn result_scalars_match(
    unit: &mut Unit,
    signature: &Signature,
    wanted: ResultForm,
) -> bool {
    let stated = match wanted {
        ResultForm::Nothing => return true,
        ResultForm::Value(ty) | ResultForm::Memory(ty, _) => ty,
    };
    layout_type(unit, signature).is_some_and(|ty| leaves(unit, ty) == leaves(unit, stated))
}

/// Replaces the differentiation call `op` by a call of `derivative`.
pub(crate) fn rewrite(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    parsed: &Parsed,
    derivative: FuncId,
    wanted: ResultForm,
) {
    let signature = parsed.variant.signature(unit);
    let args = arguments(unit, body, op, parsed, &signature);
    replace(unit, body, op, derivative, &args, &signature, wanted);
}

/// Replaces the differentiation call `op` by a call of `derivative` with these arguments.
pub(crate) fn replace(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    derivative: FuncId,
    args: &[Value],
    signature: &Signature,
    wanted: ResultForm,
) {
    let info = CallInfo::plain(signature.ty);
    match body.kind(op) {
        OpKind::Invoke(_) => invoke(unit, body, op, derivative, args, signature, wanted),
        _ => {
            let mut build = Builder::new(unit, body);
            build.loc = build.body.ops[op].loc;
            build.set_insertion_before(op);
            let callee = build.func(derivative);
            let call = build.call_with(info, callee, args);
            let result = build.body.results(call).first().copied();
            let value = convert_result(&mut build, signature, result, wanted);
            if let Some(&old) = body.results(op).first() {
                let new = value.unwrap_or_else(|| poison(unit, body, old));
                body.replace_uses(old, new);
            }
            body.erase(op);
        }
    }
}

fn poison(unit: &mut Unit, body: &mut Body, like: Value) -> Value {
    let ty = body.ty(like);
    Builder::new(unit, body).poison(ty)
}

/// Changes an `invoke` in place: the regions stay, and the parameter of the first is the new result.
fn invoke(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    derivative: FuncId,
    args: &[Value],
    signature: &Signature,
    wanted: ResultForm,
) {
    let normal = body.op_regions(op)[0];
    let old = body.region_params(normal).first().copied();
    let returns = layout_type(unit, signature);
    let new = returns.map(|ty| body.add_param(normal, ty));
    let mut build = Builder::new(unit, body);
    build.loc = build.body.ops[op].loc;
    if let Some(first) = build.body.first(normal) {
        build.set_insertion_before(first);
    }
    let value = convert_result(&mut build, signature, new, wanted);
    if let Some(old) = old {
        let value = value.unwrap_or_else(|| poison(unit, body, old));
        body.replace_uses(old, value);
        body.retain_params(normal, &[false]);
    }
    let callee = Builder::new(unit, body).func(derivative);
    let mut operands = vec![callee];
    operands.extend_from_slice(args);
    body.ops[op].kind = OpKind::Invoke(Box::new(CallInfo::plain(signature.ty)));
    body.set_operands(op, &operands);
}

/// Emits the derivative's arguments before the call.
fn arguments(
    unit: &mut Unit,
    body: &mut Body,
    op: Op,
    parsed: &Parsed,
    signature: &Signature,
) -> Vec<Value> {
    let mut build = Builder::new(unit, body);
    build.loc = build.body.ops[op].loc;
    build.set_insertion_before(op);
    let params = signature.params.iter();
    params
        .map(|&(role, ty)| match role {
            ParamRole::Primal(i) => pass(&mut build, parsed.primal[i], ty),
            ParamRole::Shadow(i, lane) => pass(&mut build, parsed.shadows[i][lane as usize], ty),
            ParamRole::Cotangent(lane) => match parsed.cotangents.get(lane as usize) {
                Some(given) => pass(&mut build, *given, ty),
                None => build.float(ty, 1.0),
            },
            ParamRole::Tape => match parsed.tape {
                Some(tape) => tape,
                None => build.zero(ty),
            },
        })
        .collect()
}

fn pass(build: &mut Builder<'_>, passed: ArgumentSource, ty: TypeId) -> Value {
    match passed {
        ArgumentSource::Direct(value) => {
            let from = build.body.ty(value);
            match conversion(build.unit, from, ty) {
                Some(Some(cast)) => build.cast(cast, value, ty),
                _ => value,
            }
        }
        ArgumentSource::At(base, offset) => {
            let offset = build.i64(offset);
            let place = build.byte_addr(base, offset);
            build.load(ty, place)
        }
        ArgumentSource::Strided(base, stride, lane) => {
            let wide = build.unit.types.int(64);
            let stride = match build.body.ty(stride) == wide {
                true => stride,
                false => build.cast(gradus_ir::CastOp::SExt, stride, wide),
            };
            let lane = build.i64(i64::from(lane));
            let distance = build.mul(stride, lane);
            build.byte_addr(base, distance)
        }
        ArgumentSource::CopyOf(from, structure) => {
            let to = frame_memory(build, &[structure]);
            let bytes = build.unit.layout.size_bytes(build.unit, structure);
            copy(build, to, from, bytes);
            to
        }
        ArgumentSource::Scratch(structure) => frame_memory(build, &[structure]),
    }
}

/// Returns stack memory large enough for any of these types. The alloca is in the entry, so loops do not
/// grow the stack.
pub(crate) fn frame_memory(build: &mut Builder<'_>, types: &[TypeId]) -> Value {
    let root = build.body.root();
    let place = match build.body.first(root) {
        Some(first) => build.set_insertion_before(first),
        None => build.set_insertion_end(root),
    };
    let (unit, layout) = (&*build.unit, &build.unit.layout);
    let largest = types
        .iter()
        .copied()
        .max_by_key(|ty| layout.size_bytes(unit, *ty));
    let align_bytes = types.iter().map(|ty| layout.align_bytes(unit, *ty)).max();
    let byte = build.unit.types.int(8);
    let memory = build.alloca(largest.unwrap_or(byte));
    if let Some(op) = build.body.def_op(memory)
        && let OpKind::Alloca(info) = &mut build.body.ops[op].kind
    {
        info.align_bytes = align_bytes.unwrap_or(1) as u32;
    }
    build.restore_insertion_point(place);
    memory
}

fn copy(build: &mut Builder<'_>, to: Value, from: Value, bytes: u64) {
    let types = &mut build.unit.types;
    let (void, ptr, word, bit) = (types.void(), types.ptr(), types.int(64), types.int(1));
    let ty = types.func(void, vec![ptr, ptr, word, bit]);
    let memcpy = build
        .unit
        .declare("llvm.memcpy.p0.p0.i64", ty, AttrSet::default());
    let bytes = build.i64(bytes as i64);
    let volatile = build.bool(false);
    build.call(memcpy, &[to, from, bytes, volatile]);
}

/// Converts the derivative's result to the form stated by the call.
fn convert_result(
    build: &mut Builder<'_>,
    signature: &Signature,
    result: Option<Value>,
    wanted: ResultForm,
) -> Option<Value> {
    let result = result?;
    match wanted {
        ResultForm::Nothing => None,
        ResultForm::Value(ty) if build.body.ty(result) == ty => Some(result),
        ResultForm::Value(ty) => {
            let all = layout_type(build.unit, signature)?;
            let memory = frame_memory(build, &[ty, all]);
            build.store(result, memory);
            Some(build.load(ty, memory))
        }
        ResultForm::Memory(_, place) => {
            build.store(result, place);
            None
        }
    }
}
