//! Rematerialisation: how the reverse pass can recompute a forward value, and the cost of the recomputation.
//!
//! [`source`] returns the availability of a [`Node`]; the tape plan chooses between saving and recomputing.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::{Availability, Node};
use gradus_ir::externals::{ExternalFn, MathFn, MultiResultMathFn};
use gradus_ir::{Body, ConstKind, Definition, Op, OpKind, Unit, Value};
use smallvec::{SmallVec, smallvec};

/// Returns the availability of `node` in the reverse pass.
pub fn source(unit: &Unit, facts: &BodyFacts<'_>, node: Node) -> Availability {
    match node {
        Node::Primal(value) => primal_availability(unit, facts, value),
        Node::Shadow(value) => shadow_availability(unit, facts, value),
        _ => Availability::MustSave,
    }
}

fn primal_availability(unit: &Unit, facts: &BodyFacts<'_>, value: Value) -> Availability {
    let body = facts.body;
    match body.values[value].def {
        Definition::Const(_) => Availability::Available,
        Definition::Param(region, index) => match body.owner(region) {
            None => Availability::Available,
            Some(op) if index == 0 && matches!(body.kind(op), OpKind::For { .. }) => {
                Availability::Available
            }
            Some(_) => facts
                .reload_availability(value)
                .unwrap_or_else(|| facts.inversion_availability(Node::Primal(value))),
        },
        Definition::Result(op, index) => match body.kind(op) {
            OpKind::If => branch_choice_availability(facts, op, index, Node::Primal),
            OpKind::Load(access) if access.is_plain() && !facts.is_stable(op) => {
                snapshot_availability(facts, op)
            }
            kind => match recomputation_cost(unit, facts, op, kind) {
                Some(cost) => Availability::Recompute {
                    from: body.operands(op).map(Node::Primal).collect(),
                    cost,
                },
                None => Availability::MustSave,
            },
        },
    }
}

/// Returns the availability of a load from memory that is overwritten later, by a snapshot.
fn snapshot_availability(facts: &BodyFacts<'_>, load: Op) -> Availability {
    let Some(number) = facts.snapshot_of(load) else {
        return Availability::MustSave;
    };
    let mut from: SmallVec<[Node; 4]> = smallvec![Node::Snapshot(number)];
    for op in address_chain(facts, load, number) {
        from.extend(facts.body.operands(op).skip(1).map(Node::Primal));
    }
    // Adjacent copies of constant size are addressed through that size.
    let fixed = |size: &Value| facts.varying_loops(Node::Primal(*size)).is_empty();
    let size = facts.snapshots[number].size().filter(fixed);
    from.extend(size.map(Node::Primal));
    Availability::Recompute { from, cost: 3 }
}

/// Returns the address computations from a snapshot's root to the address of a load, from the root outwards.
pub fn address_chain(facts: &BodyFacts<'_>, load: Op, number: usize) -> Vec<Op> {
    let mut chain = Vec::new();
    let mut at = facts.body.operand(load, 0);
    while at != facts.snapshots[number].root
        && let Some(op) = facts.body.def_op(at)
    {
        chain.push(op);
        at = facts.body.operand(op, 0);
    }
    chain.reverse();
    chain
}

/// Returns the cost of recomputing an op; `None` if a second execution may yield another result.
fn recomputation_cost(unit: &Unit, facts: &BodyFacts<'_>, op: Op, kind: &OpKind) -> Option<u64> {
    match kind {
        OpKind::Binary(op) => Some(op.row().latency),
        OpKind::ExtractValue(_) | OpKind::InsertValue(_) => Some(0),
        kind if kind.is_arithmetic() => Some(1),
        OpKind::Load(access) if access.is_plain() && facts.is_stable(op) => Some(3),
        OpKind::Call(_) => match unit.known_callee(facts.body, op) {
            Some(ExternalFn::Math(function)) => Some(math_cost(function)),
            Some(ExternalFn::MathOut(MultiResultMathFn::SincosPair)) => Some(60),
            Some(ExternalFn::Integer(_)) => Some(2),
            Some(ExternalFn::Marker(marker)) if marker.returns_argument() => Some(0),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the cost of an op in units of one addition.
pub fn cost_of_op(unit: &Unit, facts: &BodyFacts<'_>, op: Op) -> u64 {
    let kind = facts.body.kind(op);
    match kind {
        OpKind::Load(_) | OpKind::Store(_) => 3,
        OpKind::Call(_) => recomputation_cost(unit, facts, op, kind).unwrap_or(40),
        _ => recomputation_cost(unit, facts, op, kind).unwrap_or(1),
    }
}

fn math_cost(function: MathFn) -> u64 {
    use MathFn::*;
    match function {
        Fabs | Copysign | Fma | Fmuladd | Floor | Ceil | Trunc | Rint | Nearbyint => 2,
        Minnum | Maxnum | Minimum | Maximum => 3,
        Sqrt => 10,
        _ => 40,
    }
}

/// Returns the availability of a result of an `if` whose arms only choose among values defined outside.
fn branch_choice_availability(
    facts: &BodyFacts<'_>,
    op: Op,
    index: u32,
    node: fn(Value) -> Node,
) -> Availability {
    match match_branch_choice(facts, op, index) {
        Some((condition, [yes, no])) => Availability::Recompute {
            from: smallvec![Node::Primal(condition), node(yes), node(no)],
            cost: 1,
        },
        None => Availability::MustSave,
    }
}

/// Returns the condition and the two choices of such an `if`.
pub fn match_branch_choice(
    facts: &BodyFacts<'_>,
    op: Op,
    index: u32,
) -> Option<(Value, [Value; 2])> {
    let body = facts.body;
    let around = body.parent(op)?;
    let mut choices = body.op_regions(op).iter().map(|&arm| {
        let end = body.yield_of(arm)?;
        let value = body.operand(end, index as usize);
        body.is_visible_in(value, around).then_some(value)
    });
    Some((body.operand(op, 0), [choices.next()??, choices.next()??]))
}

fn shadow_availability(unit: &Unit, facts: &BodyFacts<'_>, value: Value) -> Availability {
    if !facts.has_shadow(value) {
        return Availability::Recompute {
            from: smallvec![Node::Primal(value)],
            cost: 0,
        };
    }
    if let Some(size) = facts.lazy_shadow_size(unit, value) {
        return Availability::Recompute {
            from: size.into_iter().map(Node::Primal).collect(),
            cost: 1,
        };
    }
    let body = facts.body;
    match body.values[value].def {
        Definition::Const(id) => match unit.constant(id).kind {
            ConstKind::Foreign(_) => Availability::MustSave,
            _ => Availability::Available,
        },
        Definition::Param(region, _) if body.owner(region).is_none() => Availability::Available,
        Definition::Param(..) => facts.inversion_availability(Node::Shadow(value)),
        Definition::Result(op, index) => match body.kind(op) {
            OpKind::If => branch_choice_availability(facts, op, index, Node::Shadow),
            OpKind::Load(access) if !access.is_plain() || !facts.is_stable(op) => {
                Availability::MustSave
            }
            _ if facts.is_address_word(value) => Availability::MustSave,
            kind => match shadowed_operands(unit, body, op) {
                Some(of_shadow) => Availability::Recompute {
                    from: shadow_inputs(body, op, of_shadow).collect(),
                    cost: match kind {
                        OpKind::Load(_) => 3,
                        OpKind::Cast(_) => 0,
                        _ => 1,
                    },
                },
                None => Availability::MustSave,
            },
        },
    }
}

/// Returns the operands whose shadows determine the shadow of an op's result by re-execution of the op;
/// `None` if re-execution does not yield the shadow.
pub(crate) fn shadowed_operands(unit: &Unit, body: &Body, op: Op) -> Option<&'static [usize]> {
    use gradus_ir::CastOp::{AddrSpaceCast, BitCast, IntToPtr, PtrToInt};
    match body.kind(op) {
        OpKind::Call(_) => match unit.known_callee(body, op) {
            Some(ExternalFn::Marker(marker)) if marker.returns_argument() => Some(&[1]),
            _ => None,
        },
        OpKind::Addr { .. } | OpKind::Load(_) => Some(&[0]),
        OpKind::Cast(AddrSpaceCast | BitCast | IntToPtr | PtrToInt) => Some(&[0]),
        OpKind::Select => Some(&[1, 2]),
        _ => None,
    }
}

/// Returns the inputs of an op that is re-executed on shadows.
pub(crate) fn shadow_inputs<'a>(
    body: &'a Body,
    op: Op,
    of_shadow: &'a [usize],
) -> impl Iterator<Item = Node> + 'a {
    let operands = body.operands(op).enumerate();
    operands.map(|(number, value)| match of_shadow.contains(&number) {
        true => Node::Shadow(value),
        false => Node::Primal(value),
    })
}
