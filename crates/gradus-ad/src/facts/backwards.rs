//! Carried values that run backwards: where one iteration of a loop makes the next value by adding to it, the
//! return sweep takes that away again, and the tape need not hold one value per iteration.
//!
//! What is added may differ from iteration to iteration, but must be known without the carried values of the
//! loop. The steps wrap around: the forward sweep makes them without promises about overflow and bounds, as
//! what the last iteration leaves, where the return sweep starts, need not be used by the program itself.

use super::Facts;
use super::own_adds::is_independent;
use crate::node::{Node, Source};
use crate::reverse::structure::loop_parts;
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Region, Unit, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// How many steps lead to the next value at most.
const STEPS: usize = 8;
/// How many ops are looked at to see what an amount depends on.
const OPS: usize = 64;

/// One step on the way from a carried value to its next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The op that makes it.
    pub op: Op,
    /// What it adds to its other operand, takes from it or combines it with.
    pub by: Value,
}

/// A carried value that can be run backwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backwards {
    /// The result of the loop that holds what the last iteration left.
    pub end: Value,
    /// The steps of an iteration, in their order.
    pub steps: Vec<Step>,
}

/// All carried values of a body that can be run backwards.
pub(super) fn find(unit: &Unit, body: &Body) -> HashMap<Value, Backwards> {
    let mut found = HashMap::new();
    for lp in body.walk(body.root()) {
        let counted = matches!(body.kind(lp), OpKind::For { .. });
        if !counted && !matches!(body.kind(lp), OpKind::Loop { .. }) || is_independent(body, lp) {
            continue;
        }
        let parts = loop_parts(body, lp);
        for (number, (&param, &next)) in parts.params.iter().zip(&parts.next).enumerate() {
            let end = match counted {
                true => Some(number),
                false => parts.results.iter().position(|v| *v == next),
            };
            if let Some(end) = end
                && let Some(steps) = steps(unit, body, lp, param, next)
            {
                let end = body.results(lp)[end];
                found.insert(param, Backwards { end, steps });
            }
        }
    }
    found
}

/// The steps from a carried value to its next one.
fn steps(unit: &Unit, body: &Body, lp: Op, param: Value, next: Value) -> Option<Vec<Step>> {
    let region = body.op_regions(lp)[0];
    let mut steps = Vec::new();
    let mut at = next;
    while at != param {
        let op = body
            .def_op(at)
            .filter(|op| body.parent(*op) == Some(region))?;
        let (from, by) = step(unit, body, op, param)?;
        if steps.len() == STEPS || !is_known_alone(body, region, by) {
            return None;
        }
        steps.push(Step { op, by });
        at = from;
    }
    steps.reverse();
    (!steps.is_empty()).then_some(steps)
}

/// What an op starts from, and the amount of the step, where it can be undone.
fn step(unit: &Unit, body: &Body, op: Op, param: Value) -> Option<(Value, Value)> {
    let operands: SmallVec<[Value; 4]> = body.operands(op).collect();
    match (body.kind(op), operands.as_slice()) {
        (OpKind::Binary(BinaryOp::Add | BinaryOp::Xor), &[a, b]) => {
            match leads_to(body, b, param) {
                true => Some((b, a)),
                false => Some((a, b)),
            }
        }
        (OpKind::Binary(BinaryOp::Sub), &[a, b]) => Some((a, b)),
        (OpKind::Addr { .. }, &[base, index]) => {
            let bits = unit.types.int_bits(body.ty(index))?;
            (bits <= 64).then_some((base, index))
        }
        _ => None,
    }
}

/// Whether a value is a carried one, or a few steps from it.
fn leads_to(body: &Body, value: Value, param: Value) -> bool {
    let mut at = value;
    for _ in 0..STEPS {
        if at == param {
            return true;
        }
        let Some(op) = body.def_op(at) else { break };
        let mut operands = body.operands(op);
        at = match (body.kind(op), operands.next()) {
            (OpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor), Some(first)) => first,
            _ => break,
        };
    }
    false
}

/// Whether a value is known in the region of a loop without the loop's carried values, and is no
/// structure's result.
fn is_known_alone(body: &Body, region: Region, value: Value) -> bool {
    let mut seen: HashSet<Op> = HashSet::new();
    let mut work = vec![value];
    let inside = |value: Value| {
        body.region_of(value)
            .is_some_and(|home| body.is_inside(home, region))
    };
    while let Some(value) = work.pop() {
        if !inside(value) {
            continue;
        }
        let index = body.region_params(region).first() == Some(&value);
        match body.values[value].def {
            Definition::Param(home, _) => {
                let counted = body
                    .owner(home)
                    .is_some_and(|lp| matches!(body.kind(lp), OpKind::For { .. }));
                if home != region || !counted || !index {
                    return false;
                }
            }
            Definition::Result(op, _) => {
                let own = body.parent(op) == Some(region) && body.op_regions(op).is_empty();
                if !own || seen.len() == OPS {
                    return false;
                }
                if seen.insert(op) {
                    work.extend(body.operands(op));
                }
            }
            Definition::Const(_) => {}
        }
    }
    true
}

impl Facts<'_> {
    /// How a carried value, or its shadow, can be run backwards.
    pub fn backwards(&self, node: Node) -> Option<&Backwards> {
        match node {
            Node::Primal(value) => self.backwards.get(&value),
            Node::Shadow(value) => self.backwards.get(&value).filter(|backwards| {
                let steps = backwards.steps.iter();
                let mut kinds = steps.map(|step| self.body.kind(step.op));
                self.has_shadow(backwards.end) && kinds.all(|k| matches!(k, OpKind::Addr { .. }))
            }),
            _ => None,
        }
    }

    /// How a carried value, or its shadow, can be had by running it backwards.
    pub fn backwards_source(&self, node: Node) -> Source {
        let Some(backwards) = self.backwards(node) else {
            return Source::KeepOnly;
        };
        let mut from: SmallVec<[Node; 4]> = SmallVec::new();
        from.push(end_of(node, backwards));
        from.extend(backwards.steps.iter().map(|step| Node::Primal(step.by)));
        Source::Recompute {
            from,
            cost: backwards.steps.len() as u64,
        }
    }
}

/// What a carried value, or its shadow, is after the last iteration.
pub fn end_of(node: Node, backwards: &Backwards) -> Node {
    match node {
        Node::Shadow(_) => Node::Shadow(backwards.end),
        _ => Node::Primal(backwards.end),
    }
}
