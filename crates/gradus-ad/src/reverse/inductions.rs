//! Inverted inductions in the reverse pass: see `body_facts/invertible_inductions.rs`.
//!
//! A reversed loop carries the value after the primal iteration that is reversed next, and inverts the steps
//! of the iteration in reverse order.

use crate::analysis::body_facts::invertible_inductions::{Step, final_forward_value};
use crate::analysis::body_facts::loop_info::LoopParts;
use crate::analysis::forward_value::Node;
use crate::emit::builder::Lanes;
use crate::reverse::restore::Recall;
use crate::reverse::reverse_pass::ReversePass;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, CastOp, Op, OpKind, Value};

impl ReversePass<'_, '_, '_, '_> {
    /// Returns the carried values of a loop, and their shadows, that are recomputed by inversion, each with
    /// the value after the last iteration.
    pub(super) fn inverted_carried(&mut self, op: Op, parts: &LoopParts) -> Vec<(Node, Lanes)> {
        let Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run decides which values are inverted.
            return Vec::new();
        };
        if self.facts.recomputed_loop(op).is_some() {
            return Vec::new();
        }
        let both = parts.params.iter();
        let nodes: Vec<Node> = both
            .flat_map(|v| [Node::Primal(*v), Node::Shadow(*v)])
            .filter(|node| replay.plan.inverted.contains(node))
            .collect();
        let facts = self.facts;
        let with_end = nodes.into_iter().filter_map(|node| {
            let backwards = facts.invertible_induction(node)?;
            Some((node, self.recall(final_forward_value(node, backwards))))
        });
        with_end.collect()
    }

    /// Inverts the steps of an iteration at the start of the reversal and makes the values available. `after`
    /// holds the values after the iteration.
    pub(super) fn invert_iteration(
        &mut self,
        nodes: impl Iterator<Item = Node>,
        mut after: &[Value],
    ) -> Vec<Value> {
        let mut all = Vec::new();
        for node in nodes {
            let (_, count) = self.facts.node_type(self.out.unit, node);
            let (own, rest) = after.split_at(count);
            after = rest;
            let mut lanes: Lanes = own.iter().copied().collect();
            let steps = self
                .facts
                .invertible_induction(node)
                .map_or(&[][..], |b| &b.steps);
            for step in steps.iter().rev() {
                let by = self.primal(step.amount);
                for lane in &mut lanes {
                    *lane = self.invert_step(step, *lane, by);
                }
            }
            all.extend(&lanes);
            if let Recall::Replay(replay) = &mut self.recall {
                replay.available.insert(node, lanes);
            }
        }
        all
    }

    /// Inverts one step.
    fn invert_step(&mut self, step: &Step, after: Value, by: Value) -> Value {
        let kind = self.facts.body.kind(step.op).clone();
        let ty = self.out.body.ty(after);
        let mut b = self.out.build();
        match kind {
            _ if is_planted(Mutant::InductionNotInverted) => after,
            OpKind::Binary(BinaryOp::Add) => b.sub(after, by),
            OpKind::Binary(BinaryOp::Sub) => b.add(after, by),
            OpKind::Binary(op) => b.binary(op, after, by),
            kind => {
                let long = b.unit.types.int(64);
                let index = b.cast(CastOp::SExt, by, long);
                let zero = b.i64(0);
                let back = b.sub(zero, index);
                b.value(kind, &[after, back], ty)
            }
        }
    }
}
