//! Devirtualisation: indirect calls with a short list of possible callees become direct calls.
//!
//! Callees come from a constant table of functions, or from selects and branches between functions.
//! `table[i](x)` becomes `p == f ? f(x) : p == g ? g(x) : …`, and each direct call has its own derivative.
//! The list is complete, because a load from a constant table yields one of its entries. The last callee
//! therefore needs no comparison.
//!
//! All other indirect calls first compare the address with library functions whose address the program takes
//! (`integrate(sin, a, b)`, `hooks.release = free`). Such functions have a rule and no derivative that could
//! be found by address.

use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    Body, Builder, CallInfo, ConstKind, FuncId, GlobalId, IntPredicate, Op, OpKind, Symbol, TypeId,
    Unit, Value,
};
use std::collections::HashMap;

/// Limit on the number of callees.
const TARGETS_MAX: usize = 16;

/// Returns the possible callees of an indirect call, without duplicates; `None` if the list is unknown, or if
/// the call has operand bundles.
pub(crate) fn targets(unit: &Unit, body: &Body, op: Op) -> Option<Vec<FuncId>> {
    let OpKind::Call(info) = body.kind(op) else {
        return None;
    };
    let callee = body.operand(op, 0);
    if !info.bundles.is_empty() || body.as_const(callee).is_some() {
        return None;
    }
    let (mut found, mut pending, mut steps) = (Vec::new(), vec![callee], 0);
    while let Some(value) = pending.pop() {
        steps += 1;
        if steps > 4 * TARGETS_MAX {
            return None;
        }
        match body.as_const(value).map(|id| &unit.constant(id).kind) {
            Some(ConstKind::Func(func)) => found.push(*func),
            Some(_) => return None,
            None => collect_targets(
                unit,
                body,
                (value, info.signature),
                &mut found,
                &mut pending,
            )?,
        }
    }
    found.sort_unstable();
    found.dedup();
    let fits = |func: &FuncId| unit.functions[*func].ty == info.signature;
    (!found.is_empty() && found.len() <= TARGETS_MAX && found.iter().all(fits)).then_some(found)
}

/// Adds the possible values of `value`: functions, or further values to visit.
fn collect_targets(
    unit: &Unit,
    body: &Body,
    (value, signature): (Value, TypeId),
    found: &mut Vec<FuncId>,
    pending: &mut Vec<Value>,
) -> Option<()> {
    let op = body.def_op(value)?;
    match body.kind(op) {
        OpKind::Select => pending.extend(body.operands(op).skip(1)),
        OpKind::If | OpKind::Switch(_) => {
            let at = body.results(op).iter().position(|r| *r == value)?;
            for region in body.op_regions(op) {
                let last = body.last(*region)?;
                if matches!(body.kind(last), OpKind::Yield) {
                    pending.push(body.operands(last).nth(at)?);
                }
            }
        }
        OpKind::Load(access) if access.is_plain() => {
            let table = constant_table(unit, body, body.operand(op, 0))?;
            let init = unit.globals[table].init.as_ref()?;
            let functions = init.relocations.iter().filter_map(|r| match r.target {
                Symbol::Func(func) if r.addend == 0 => Some(func),
                _ => None,
            });
            // A call of any other entry of the table is undefined behaviour.
            found.extend(functions.filter(|func| unit.functions[*func].ty == signature));
        }
        _ => return None,
    }
    Some(())
}

/// Returns the constant table that an address lies in.
fn constant_table(unit: &Unit, body: &Body, address: Value) -> Option<GlobalId> {
    let mut base = address;
    while let Some(op) = body.def_op(base) {
        let OpKind::Addr { .. } = body.kind(op) else {
            return None;
        };
        base = body.operand(op, 0);
    }
    match unit.constant(body.as_const(base)?).kind {
        ConstKind::Global { global, .. } if unit.globals[global].constant => Some(global),
        _ => None,
    }
}

/// Returns the library functions with a rule whose addresses a unit takes, by type.
pub fn address_taken_rules(unit: &Unit) -> HashMap<TypeId, Vec<FuncId>> {
    let mut found = gradus_analysis::address_taken_functions(unit);
    for functions in found.values_mut() {
        functions.retain(|func| unit.known(*func).is_some_and(ExternalFn::needs_direct_call));
    }
    found.retain(|_, functions| !functions.is_empty());
    found
}

/// Makes indirect calls compare the address with such functions and call them by name. Returns the number of
/// calls.
pub fn compare_with_library(
    unit: &mut Unit,
    body: &mut Body,
    rules: &HashMap<TypeId, Vec<FuncId>>,
) -> usize {
    let leads_to_rule = |op: Op| {
        let OpKind::Call(info) = body.kind(op) else {
            return None;
        };
        let by_pointer = info.bundles.is_empty() && body.as_const(body.operand(op, 0)).is_none();
        Some((op, rules.get(&info.signature).filter(|_| by_pointer)?))
    };
    let calls: Vec<(Op, &Vec<FuncId>)> = body.walk(body.root()).filter_map(leads_to_rule).collect();
    for (op, functions) in &calls {
        let args = unit.call_args(body, *op);
        let b = &mut Builder::new(unit, body);
        b.loc = b.body.ops[*op].loc;
        b.set_insertion_before(*op);
        if let Some(new) = emit_target_selection(b, *op, functions, None, &args) {
            let old = body.result(*op);
            body.replace_uses(old, new);
        }
        body.erase(*op);
    }
    calls.len()
}

/// Emits direct calls of all possible callees, selected by the pointer. Returns the result.
pub(crate) fn emit_direct_calls(
    b: &mut Builder<'_>,
    op: Op,
    targets: &[FuncId],
    args: &[Value],
) -> Option<Value> {
    let (last, others) = targets.split_last()?;
    emit_target_selection(b, op, others, Some(*last), args)
}

/// Emits direct calls selected by the pointer. If no function matches, calls `last`, or the pointer itself
/// without `last`.
fn emit_target_selection(
    b: &mut Builder<'_>,
    op: Op,
    others: &[FuncId],
    last: Option<FuncId>,
    args: &[Value],
) -> Option<Value> {
    let OpKind::Call(info) = b.body.kind(op).clone() else {
        unreachable!("only plain calls are devirtualized");
    };
    let pointer = b.body.operand(op, 0);
    let results: Vec<_> = b.body.results(op).iter().map(|r| b.body.ty(*r)).collect();
    let mut place = None;
    let mut opened: Vec<Op> = Vec::new();
    for func in others {
        let own = b.func(*func);
        let same = b.icmp(IntPredicate::Eq, pointer, own);
        let (choice, then, otherwise) = b.if_(same, &results);
        let before = b.set_insertion_end(then);
        place.get_or_insert(before);
        let value = call(b, &info, own, args);
        b.yield_(value.as_slice());
        b.set_insertion_end(otherwise);
        opened.push(choice);
    }
    let last = last.map_or(pointer, |func| b.func(func));
    let mut value = call(b, &info, last, args);
    while let Some(choice) = opened.pop() {
        b.yield_(value.as_slice());
        match (opened.last(), place) {
            (Some(outer), _) => {
                let otherwise = b.body.op_regions(*outer)[1];
                b.set_insertion_end(otherwise);
            }
            (None, Some(place)) => b.restore_insertion_point(place),
            (None, None) => {}
        }
        value = b.body.results(choice).first().copied();
    }
    value
}

fn call(b: &mut Builder<'_>, info: &CallInfo, callee: Value, args: &[Value]) -> Option<Value> {
    let op = b.call_with(info.clone(), callee, args);
    b.body.results(op).first().copied()
}
