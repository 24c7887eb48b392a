//! Trip counts and conditions as expressions over a function's parameters, comparable across calls.
//!
//! A `for` may run zero times. A free in a loop counts for an allocation if the loop surely runs, or if the
//! allocation implies that the trip count is not zero: a loop with an equal trip count encloses the allocation,
//! or a branch on the same condition. Without iterations there is no block either.

use gradus_ir::{Body, CastOp, Definition, FuncId, Op, OpKind, TypeId, Unit, Value};

/// Maximal depth of an expression; deeper operands are opaque values.
const DEPTH_MAX: usize = 6;

/// A trip count, a condition, or an operand of these.
#[derive(Clone, PartialEq)]
pub(crate) enum Count {
    Integer(TypeId, i64),
    /// A parameter of the function in which the count is expressed.
    Param(usize),
    /// Another value of a function's body.
    Value(FuncId, Value),
    /// A pure op of a type, applied to operands.
    Op(OpKind, TypeId, Vec<Count>),
}

/// Returns the expression of a value. `args` are the expressions of the function's parameters in the terms of
/// an outer caller; without them, the parameters stand for themselves.
pub(crate) fn count_of(
    unit: &Unit,
    func: FuncId,
    body: &Body,
    value: Value,
    args: Option<&[Count]>,
) -> Count {
    expression(unit, (func, body), value, args, 0)
}

fn expression(
    unit: &Unit,
    (func, body): (FuncId, &Body),
    value: Value,
    args: Option<&[Count]>,
    depth: usize,
) -> Count {
    let opaque = Count::Value(func, value);
    if let Some(number) = body.as_int(unit, value) {
        return Count::Integer(body.ty(value), number);
    }
    match body.values[value].def {
        Definition::Const(_) => opaque,
        Definition::Param(region, number) if region == body.root() => match args {
            None => Count::Param(number as usize),
            Some(args) => args.get(number as usize).cloned().unwrap_or(opaque),
        },
        Definition::Param(..) => opaque,
        Definition::Result(op, _) => {
            let callee = unit.callee(body, op);
            let known = callee.and_then(|callee| unit.known_effects(callee));
            let is_pure = body.kind(op).is_arithmetic() || known.is_some_and(|f| f.is_pure());
            if !is_pure || depth == DEPTH_MAX || body.results(op).len() != 1 {
                return opaque;
            }
            let operands = body.operands(op);
            let operands =
                operands.map(|given| expression(unit, (func, body), given, args, depth + 1));
            Count::Op(body.kind(op).clone(), body.ty(value), operands.collect())
        }
    }
}

/// Returns expressions that are not zero where an op runs: the trip counts of the `for` loops around the op, and
/// the conditions of the branches whose first region holds the op.
pub(crate) fn nonzero_around(unit: &Unit, func: FuncId, body: &Body, op: Op) -> Vec<Count> {
    let mut found = Vec::new();
    let mut region = body.parent(op);
    while let Some(inner) = region {
        let Some(owner) = body.owner(inner) else {
            break;
        };
        let states = match body.kind(owner) {
            OpKind::For { .. } => true,
            OpKind::If => body.op_regions(owner)[0] == inner,
            _ => false,
        };
        if states {
            let value = count_of(unit, func, body, body.operand(owner, 0), None);
            add_nonzero(&value, &mut found);
        }
        region = body.parent(owner);
    }
    found
}

/// Adds an expression that is not zero, and the operands that are not zero either.
fn add_nonzero(value: &Count, found: &mut Vec<Count>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        found.push(value.clone());
        open.extend(nonzero_operands(value).into_iter().flatten());
    }
}

/// Returns the operands whose being not zero is equivalent to the expression's; `None` for other expressions.
fn nonzero_operands(value: &Count) -> Option<&[Count]> {
    let Count::Op(kind, _, operands) = value else {
        // Not an error: a leaf has no operands.
        return None;
    };
    match (kind, operands.as_slice()) {
        (OpKind::Cast(CastOp::ZExt | CastOp::SExt), [_]) => Some(operands),
        (OpKind::Select, [_, _, Count::Integer(_, 0)]) => Some(&operands[..2]),
        _ => None,
    }
}

/// Returns true if an expression is not zero wherever the expressions `nonzero` are not.
pub(crate) fn is_nonzero(value: &Count, nonzero: &[Count]) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if matches!(value, Count::Integer(_, number) if *number != 0) || nonzero.contains(value) {
            continue;
        }
        match nonzero_operands(value) {
            Some(operands) => open.extend(operands),
            None => return false,
        }
    }
    true
}

/// Rewrites a callee's expression in terms of a caller, whose arguments are `args`. Returns `None` if the expression
/// depends on a value of the callee's body.
pub(crate) fn in_caller(count: &Count, args: &[Count]) -> Option<Count> {
    Some(match count {
        Count::Integer(..) => count.clone(),
        Count::Param(number) => args.get(*number)?.clone(),
        Count::Value(..) => return None,
        Count::Op(kind, ty, operands) => {
            let operands = operands.iter().map(|given| in_caller(given, args));
            Count::Op(kind.clone(), *ty, operands.collect::<Option<_>>()?)
        }
    })
}
