//! Invertible inductions: carried values that the reverse pass recomputes by inverting the step.
//!
//! If an iteration derives the next carried value by integer or address addition, the reverse pass subtracts
//! the amount instead of reading one saved value per iteration. The amount may vary between iterations, but
//! must be computable without the carried values of the loop. The steps wrap around: the forward pass emits
//! them without `nuw`, `nsw` and `inbounds`. The reverse pass starts from the value after the last iteration,
//! which the primal may never use.

use super::BodyFacts;
use crate::analysis::body_facts::loop_info::loop_parts;
use crate::analysis::forward_value::{Availability, Node};
use gradus_ir::{BinaryOp, Body, Definition, Op, OpKind, Region, Unit, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Limit on the number of steps from a carried value to the next one.
const STEPS_MAX: usize = 8;
/// Limit on the number of ops visited while checking the inputs of an amount.
const OPS_MAX: usize = 64;

/// One step from a carried value to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The op that performs the step.
    pub op: Op,
    /// The amount: the other operand of an addition, subtraction or xor, or the index of an address.
    pub amount: Value,
}

/// A carried value whose update can be inverted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvertibleInduction {
    /// Result of the loop that holds the value after the last iteration.
    pub final_value: Value,
    /// Steps of an iteration, in execution order.
    pub steps: Vec<Step>,
}

/// Finds all invertible inductions of a body. Independent (parallel) loops are left out.
pub(super) fn find_invertible(unit: &Unit, body: &Body) -> HashMap<Value, InvertibleInduction> {
    let mut found = HashMap::new();
    for lp in body.walk(body.root()) {
        let counted = matches!(body.kind(lp), OpKind::For { .. });
        if !counted && !matches!(body.kind(lp), OpKind::Loop { .. }) || body.is_independent(lp) {
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
                found.insert(
                    param,
                    InvertibleInduction {
                        final_value: end,
                        steps,
                    },
                );
            }
        }
    }
    found
}

/// Returns the steps from a carried value to the next one.
fn steps(unit: &Unit, body: &Body, lp: Op, param: Value, next: Value) -> Option<Vec<Step>> {
    let region = body.op_regions(lp)[0];
    let mut steps = Vec::new();
    let mut at = next;
    while at != param {
        let op = body
            .def_op(at)
            .filter(|op| body.parent(*op) == Some(region))?;
        let (from, by) = step(unit, body, op, param)?;
        if steps.len() == STEPS_MAX || !is_independent_of_carried(body, region, by) {
            return None;
        }
        steps.push(Step { op, amount: by });
        at = from;
    }
    steps.reverse();
    (!steps.is_empty()).then_some(steps)
}

/// Returns the start and the amount of an invertible op.
fn step(unit: &Unit, body: &Body, op: Op, param: Value) -> Option<(Value, Value)> {
    let operands: SmallVec<[Value; 4]> = body.operands(op).collect();
    match (body.kind(op), operands.as_slice()) {
        (OpKind::Binary(BinaryOp::Add | BinaryOp::Xor), &[a, b]) => {
            match reaches_param(body, b, param) {
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

/// Returns true if `value` is the carried value `param`, or at most `STEPS_MAX` steps from `param`.
fn reaches_param(body: &Body, value: Value, param: Value) -> bool {
    let mut at = value;
    for _ in 0..STEPS_MAX {
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

/// Returns true if a value can be computed in the region of a loop without the carried values of the loop,
/// from the index and from ops without regions.
fn is_independent_of_carried(body: &Body, region: Region, value: Value) -> bool {
    let mut seen: HashSet<Op> = HashSet::new();
    let mut work = vec![value];
    let inside = |value: Value| body.is_defined_in(value, region);
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
                if !own || seen.len() == OPS_MAX {
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

impl BodyFacts<'_> {
    /// Returns the inversion of a carried value or of its shadow. A shadow can be inverted if each step is an
    /// address computation.
    pub fn invertible_induction(&self, node: Node) -> Option<&InvertibleInduction> {
        match node {
            Node::Primal(value) => self.invertible_inductions.get(&value),
            Node::Shadow(value) => self.invertible_inductions.get(&value).filter(|backwards| {
                let steps = backwards.steps.iter();
                let mut kinds = steps.map(|step| self.body.kind(step.op));
                self.has_shadow(backwards.final_value)
                    && kinds.all(|k| matches!(k, OpKind::Addr { .. }))
            }),
            _ => None,
        }
    }

    /// Returns the availability of a carried value, or of its shadow, by inversion.
    pub fn inversion_availability(&self, node: Node) -> Availability {
        let Some(backwards) = self.invertible_induction(node) else {
            return Availability::MustSave;
        };
        let mut from: SmallVec<[Node; 4]> = SmallVec::new();
        from.push(final_forward_value(node, backwards));
        from.extend(backwards.steps.iter().map(|step| Node::Primal(step.amount)));
        Availability::Recompute {
            from,
            cost: backwards.steps.len() as u64,
        }
    }
}

/// Returns the forward value that holds a carried value, or its shadow, after the last iteration.
pub fn final_forward_value(node: Node, backwards: &InvertibleInduction) -> Node {
    match node {
        Node::Shadow(_) => Node::Shadow(backwards.final_value),
        _ => Node::Primal(backwards.final_value),
    }
}
