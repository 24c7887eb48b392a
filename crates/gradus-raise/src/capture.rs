//! Pointer capture: may a call retain an address beyond its return?
//!
//! Uses of a parameter are followed through the callee's body and its callees. For functions without a body,
//! the `captures(none)` attribute decides.

use gradus_ir::externals::ExternalFn;
use gradus_ir::{AttrSet, AttrValue, Body, FuncId, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Returns true if the call `op` may capture argument `index`.
pub(crate) fn may_capture(unit: &Unit, body: &Body, op: Op, index: usize) -> bool {
    let mut seen = HashSet::new();
    call_may_capture(unit, body, op, index, &mut seen)
}

fn call_may_capture(
    unit: &Unit,
    body: &Body,
    op: Op,
    index: usize,
    seen: &mut HashSet<(FuncId, usize)>,
) -> bool {
    let attrs = body.kind(op).call_info().and_then(|info| info.attrs);
    if attrs.is_some_and(|attrs| excludes_capture(unit.attrs(attrs), index)) {
        return false;
    }
    let Some(func) = unit.callee(body, op) else {
        return true;
    };
    if matches!(
        unit.known(func),
        Some(ExternalFn::Memory(_) | ExternalFn::Marker(_))
    ) {
        return false;
    }
    let function = &unit.functions[func];
    if excludes_capture(unit.attrs(function.attrs), index) || !seen.insert((func, index)) {
        return false;
    }
    match function.body.as_deref() {
        Some(code) => match code.params().get(index) {
            Some(&param) => body_may_capture(unit, code, param, seen),
            None => true,
        },
        None => true,
    }
}

/// Returns true if attributes exclude the capture of a parameter, or the parameter is the return slot.
fn excludes_capture(attrs: &AttrSet, index: usize) -> bool {
    attrs.param(index, "captures") == Some(&AttrValue::Int(0))
        || attrs.param(index, "sret").is_some()
        || attrs.param(index, "byval").is_some()
}

/// Returns true if a body may capture `value`.
fn body_may_capture(
    unit: &Unit,
    body: &Body,
    value: Value,
    seen: &mut HashSet<(FuncId, usize)>,
) -> bool {
    let mut open = vec![value];
    let mut known = HashSet::from([value]);
    while let Some(value) = open.pop() {
        for used in body.uses(value) {
            let op = used.op;
            let further = match body.kind(op) {
                OpKind::Load(_) | OpKind::ICmp(_) => Vec::new(),
                OpKind::Store(_) if used.index == 1 => Vec::new(),
                OpKind::Addr { .. } if used.index == 0 => vec![body.result(op)],
                // A local variable that holds the pointer.
                OpKind::Store(_) => match loads_of_local(unit, body, body.operand(op, 1)) {
                    Some(reads) => reads,
                    None => return true,
                },
                OpKind::Call(_) | OpKind::Invoke(_) if used.index > 0 => {
                    if call_may_capture(unit, body, op, used.index as usize - 1, seen) {
                        return true;
                    }
                    Vec::new()
                }
                _ => return true,
            };
            open.extend(further.into_iter().filter(|value| known.insert(*value)));
        }
    }
    false
}

/// Returns the values loaded from a variable whose address does not escape.
fn loads_of_local(unit: &Unit, body: &Body, address: Value) -> Option<Vec<Value>> {
    let slot = body.def_op(address)?;
    let mut reads = Vec::new();
    for used in body.uses(address) {
        match body.kind(used.op) {
            OpKind::Load(_) => reads.push(body.result(used.op)),
            OpKind::Store(_) if used.index == 1 => {}
            OpKind::Call(_)
                if unit
                    .callee(body, used.op)
                    .is_some_and(|f| matches!(unit.known(f), Some(ExternalFn::Marker(_)))) => {}
            _ => return None,
        }
    }
    matches!(body.kind(slot), OpKind::Alloca(_)).then_some(reads)
}
