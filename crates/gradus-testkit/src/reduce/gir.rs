//! Reduces a program that shows a failure, while the failure persists.
//!
//! Greedy, to a fixpoint (a simple form of delta debugging, Zeller and Hildebrandt 2002, on the tree of
//! regions). An op is removed and its results become constants; an `if` or `switch` becomes one of its
//! arms, a loop its first iteration; a carried value becomes its initial value. Outer ops are tried before
//! inner ops, so that large parts disappear in few steps.

use gradus_ir::{Body, FuncId, Op, OpKind, Type, TypeId, Unit, Value, print, verify_function};
use std::collections::BTreeSet;

/// A reduction step.
#[derive(Clone, Copy)]
enum Reduction {
    /// Removes the op.
    Drop,
    /// Replaces the op by the region of this number.
    Inline(usize),
}

/// Returns the smallest program found for which `shows` holds, as for `unit`.
pub fn reduce(unit: &Unit, shows: impl Fn(&Unit) -> bool) -> Unit {
    let mut best = unit.clone();
    loop {
        let mut progress = false;
        let functions: Vec<FuncId> = best.functions.ids().collect();
        for func in functions {
            progress |= reduce_function(&mut best, func, &shows);
        }
        if !progress {
            return best;
        }
    }
}

fn reduce_function(best: &mut Unit, func: FuncId, shows: &impl Fn(&Unit) -> bool) -> bool {
    let mut progress = false;
    let mut next = 0;
    loop {
        let Some(body) = &best.functions[func].body else {
            return progress;
        };
        let Some(op) = body.walk(body.root()).nth(next) else {
            return progress;
        };
        let mut cuts = vec![Reduction::Drop];
        cuts.extend((0..body.op_regions(op).len()).map(Reduction::Inline));
        let smaller = cuts.into_iter().find_map(|cut| {
            let mut candidate = best.clone();
            apply(&mut candidate, func, op, cut)?;
            let sound = verify_function(&candidate, func).is_empty();
            (sound && shows(&candidate)).then_some(candidate)
        });
        match smaller {
            Some(smaller) => {
                *best = smaller;
                progress = true;
            }
            None => next += 1,
        }
    }
}

/// Applies a step; `None` if not applicable.
fn apply(unit: &mut Unit, func: FuncId, op: Op, cut: Reduction) -> Option<()> {
    let mut body = unit.functions[func].body.take()?;
    let done = match cut {
        _ if body.kind(op).is_terminator() => None,
        Reduction::Drop => drop_op(unit, &mut body, op),
        Reduction::Inline(index) => inline(unit, &mut body, op, index),
    };
    unit.functions[func].body = Some(body);
    done
}

fn drop_op(unit: &mut Unit, body: &mut Body, op: Op) -> Option<()> {
    for result in body.results(op).to_vec() {
        if body.has_uses(result) {
            let address = unit.types.is_ptr(body.ty(result));
            if address && !matches!(body.kind(op), OpKind::Addr { .. } | OpKind::Select) {
                // Another object in its place would have the wrong type or size.
                return None;
            }
            let same = replacement_operand(body, op, body.ty(result));
            let value = match same {
                Some(value) => value,
                None => constant(unit, body, result)?,
            };
            body.replace_uses(result, value);
        }
    }
    body.erase(op);
    Some(())
}

/// Returns the initial value of a loop's result, or an operand that the op could pass through.
fn replacement_operand(body: &Body, op: Op, ty: TypeId) -> Option<Value> {
    body.operands(op)
        .find(|v| body.ty(*v) == ty && body.as_const(*v).is_none())
}

fn constant(unit: &mut Unit, body: &mut Body, value: Value) -> Option<Value> {
    let ty = body.ty(value);
    let id = match unit.types.get(ty) {
        Type::Float(_) => unit.float_const(ty, 0.5),
        Type::Int(_) => unit.int_const(ty, 1),
        _ => return None,
    };
    Some(body.constant(unit, id))
}

/// Moves the ops of a region, executed once, before the owning op, and replaces the results by the region's
/// final operands.
fn inline(unit: &mut Unit, body: &mut Body, op: Op, index: usize) -> Option<()> {
    let region = *body.op_regions(op).get(index)?;
    let last = body.last(region)?;
    let operands: Vec<Value> = body.operands(op).collect();
    let carried = match body.kind(op) {
        OpKind::If | OpKind::Switch(_) => Vec::new(),
        OpKind::Loop { .. } => operands,
        OpKind::For { .. } => {
            let ty = body.ty(operands[0]);
            let zero = unit.int_const(ty, 0);
            let first = body.constant(unit, zero);
            std::iter::once(first)
                .chain(operands[1..].iter().copied())
                .collect()
        }
        _ => return None,
    };
    if !matches!(body.kind(last), OpKind::Yield | OpKind::Repeat) {
        return None;
    }
    for (param, value) in std::iter::zip(body.region_params(region).to_vec(), carried) {
        body.replace_uses(param, value);
    }
    let results = body.results(op).to_vec();
    let ends: Vec<Value> = body.operands(last).collect();
    let ends = &ends[ends.len().checked_sub(results.len())?..];
    for (result, value) in std::iter::zip(results, ends) {
        body.replace_uses(result, *value);
    }
    let ops: Vec<Op> = body.ops_in(region).filter(|inner| *inner != last).collect();
    for inner in ops {
        body.detach(inner);
        body.insert_before(op, inner);
    }
    body.erase(op);
    Some(())
}

/// Returns the text of a unit's functions and globals, without unused declarations and functions
/// unreachable from `@f…` and `@hidden_main`.
pub fn without_unused(unit: &Unit) -> String {
    let root = |(_, f): &(FuncId, &gradus_ir::Function)| {
        let called = matches!(f.name.as_str(), "f" | "hidden_main")
            || f.name.starts_with("f_")
            || f.name.starts_with("p_");
        f.body.is_some() && called
    };
    let mut open: Vec<FuncId> = unit
        .functions
        .iter()
        .filter(root)
        .map(|(id, _)| id)
        .collect();
    let mut used: BTreeSet<FuncId> = open.iter().copied().collect();
    while let Some(func) = open.pop() {
        let Some(body) = &unit.functions[func].body else {
            continue;
        };
        let callees = body
            .walk(body.root())
            .filter_map(|op| unit.callee(body, op));
        open.extend(callees.filter(|callee| used.insert(*callee)));
    }
    let text = print(unit);
    let mut kept = String::new();
    let mut keep = true;
    for line in text.lines() {
        if let Some(rest) = line
            .strip_prefix("func @")
            .or(line.strip_prefix("declare @"))
        {
            let name = rest.split('(').next().unwrap_or_default();
            keep = used.iter().any(|func| unit.functions[*func].name == name);
        } else if line.starts_with("global") {
            keep = true;
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Style, program};
    use gradus_ir::{BinaryOp, parse};

    #[test]
    fn irrelevant_code_is_removed() {
        let shows = |unit: &Unit| {
            unit.functions.iter().any(|(_, function)| {
                let body = function.body.as_ref();
                body.is_some_and(|b| {
                    b.walk(b.root())
                        .any(|op| *b.kind(op) == OpKind::Binary(BinaryOp::FDiv))
                })
            })
        };
        let seed = (0..100)
            .find(|s| parse(&program(*s, Style::default()), "p").is_ok_and(|u| shows(&u)))
            .unwrap();
        let unit = parse(&program(seed, Style::default()), "p").unwrap();
        let small = reduce(&unit, shows);
        let count: usize = small
            .functions
            .iter()
            .filter_map(|(_, f)| f.body.as_ref())
            .map(|b| b.walk(b.root()).count())
            .sum();
        assert!(count <= 8, "{}", gradus_ir::print(&small));
    }
}
