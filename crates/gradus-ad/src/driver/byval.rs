//! Copies of `byval` arguments in the callee, by which a derivative never writes memory of the caller.
//!
//! Runs on the primal before any analysis and preserves the meaning of the primal.

use gradus_ir::{AttrValue, Body, Builder, FuncId, Op, TypeId, Unit, Value};

/// Copies every `byval` parameter of `func` at the beginning of `body`, the function's body. Returns the
/// number of copies.
pub fn expand_by_value(unit: &mut Unit, func: FuncId, body: &mut Body) -> usize {
    let attrs = unit.attrs(unit.functions[func].attrs).clone();
    let params: Vec<(Value, TypeId)> = body
        .params()
        .iter()
        .enumerate()
        .filter_map(|(number, &param)| match attrs.param(number, "byval") {
            Some(AttrValue::Type(ty)) => Some((param, *ty)),
            _ => None,
        })
        .collect();
    let Some(first) = body.first(body.root()) else {
        return 0;
    };
    for &(param, ty) in &params {
        let users: Vec<(Op, usize)> = body.uses(param).map(|u| (u.op, u.index as usize)).collect();
        let size = unit.layout.size_bytes(unit, ty);
        let memcpy = gradus_edit::declare_memcpy(unit);
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(first);
        let copy = b.alloca(ty);
        let bytes = b.i64(size as i64);
        let no = b.bool(false);
        b.call(memcpy, &[copy, param, bytes, no]);
        for (op, index) in users {
            body.set_operand(op, index, copy);
        }
    }
    params.len()
}
