//! Recomputed loops in the forward pass.
//!
//! The forward pass saves nothing in a recomputed loop, and omits loops whose results are not required. The
//! reverse pass uses a forward pass over one iteration.

use super::{ForwardPass, TapeWriter, Task};
use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::context::iteration::{IterationInputs, IterationState};
use crate::emit::builder::{DerivativeBuilder, Lanes};
use crate::variant::Variant;
use gradus_ir::{Diagnostic, Op, Value};
use std::collections::HashMap;

/// Emits the recomputation of an iteration by a forward pass over the iteration. Returns the forward values that the
/// reverse pass reads as SSA values.
pub(crate) fn recompute_iteration(
    inputs: IterationInputs<'_, '_, '_, '_>,
    lp: Op,
    index: Value,
) -> HashMap<Node, Lanes> {
    let (facts, plan) = (inputs.facts, inputs.plan);
    let tape = TapeWriter {
        plan,
        layout: inputs.layout,
        frames: HashMap::new(),
    };
    let mut pass = ForwardPass::for_iteration(
        facts,
        inputs.variant,
        inputs.out,
        (tape, inputs.entry),
        inputs.needs,
        inputs.findings,
    );
    pass.run_iteration(lp, index);
    let inside = facts.body.op_regions(lp)[0];
    let direct = plan.ssa_values_in(facts, inside);
    pass.available_values(direct.into_iter())
}

impl<'a, 'f, 'u, 'p> ForwardPass<'a, 'f, 'u, 'p> {
    /// Creates a forward pass over one iteration of a loop, at the insertion point of `out`.
    pub fn for_iteration(
        facts: &'a BodyFacts<'f>,
        variant: &'a Variant,
        out: &'a mut DerivativeBuilder<'u>,
        (tape, entry): (TapeWriter<'p>, IterationState),
        needs: &'a mut Vec<Variant>,
        findings: &'a mut Vec<Diagnostic>,
    ) -> Self {
        ForwardPass {
            facts,
            variant,
            out,
            values: entry.values,
            companions: entry.shadows,
            other_forward_values: entry.arrays,
            tape: Some(tape),
            suspended_tape: None,
            tasks: Vec::new(),
            open: Vec::new(),
            piecewise_copies: Vec::new(),
            in_place: HashMap::new(),
            handler: None,
            needs,
            findings,
        }
    }

    /// Emits the region of a loop. A carried value that is not required becomes zero.
    pub fn run_iteration(&mut self, lp: Op, index: Value) {
        let body = self.facts.body;
        let region = body.op_regions(lp)[0];
        let Some(repeatable) = self.facts.recomputed_loop(lp) else {
            return self.ice(
                Some(lp),
                "an iteration of a loop is recomputed, but the loop is not recomputable",
            );
        };
        for (number, &param) in body.region_params(region).iter().enumerate() {
            let value = match (number, repeatable.invariant_carried.get(&param)) {
                (0, _) => index,
                (_, Some(&initial)) => self.value(initial),
                (_, None) => {
                    let ty = body.ty(param);
                    self.out.build().zero(ty)
                }
            };
            self.values.insert(param, value);
            if self.has_companion(param) {
                let lanes = match repeatable.invariant_carried.get(&param) {
                    Some(&initial) => self.companion(initial),
                    None => Lanes::from_elem(value, self.facts.width),
                };
                self.companions.insert(param, lanes);
            }
            self.save_value(param);
        }
        let ops = body.ops_in_rev(region);
        let ops: Vec<Op> = ops.filter(|op| !body.kind(*op).is_terminator()).collect();
        self.tasks.extend(ops.into_iter().map(Task::One));
        self.work();
    }

    /// Returns true if the forward pass omits a loop.
    pub(super) fn is_skipped(&self, op: Op) -> bool {
        let tape = self.tape.as_ref();
        tape.is_some_and(|tape| tape.plan.skipped_loops.contains(&op))
    }

    /// Omits a loop: its results become zero, because no required value depends on them.
    pub(super) fn skip_loop(&mut self, op: Op) {
        for &result in self.facts.body.results(op) {
            let ty = self.facts.body.ty(result);
            let zero = self.out.build().zero(ty);
            self.values.insert(result, zero);
        }
    }

    /// Suspends saving at the start of a recomputed loop.
    pub(super) fn suppress_saves(&mut self, op: Op) {
        if self.facts.recomputed_loop(op).is_some() {
            self.suspended_tape = self.tape.take();
        }
    }

    /// Resumes saving after a recomputed loop.
    pub(super) fn resume_saves(&mut self, op: Op) {
        if self.facts.recomputed_loop(op).is_some() {
            self.tape = self.suspended_tape.take();
        }
    }
}
