//! Interface for the recomputation of one loop iteration in the reverse pass.
//!
//! A forward pass over one iteration recomputes the iteration. The reverse pass does not import the forward pass: the
//! driver passes `forward::recompute_loops::recompute_iteration` to the reverse pass as a [`RecomputeIteration`].

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::emit::builder::{DerivativeBuilder, Lanes};
use crate::tape::layout::TapeLayout;
use crate::tape::plan::TapePlan;
use crate::variant::Variant;
use gradus_ir::{Diagnostic, Op, Value};
use std::collections::HashMap;

/// Values available to a recomputed iteration.
pub struct IterationState {
    /// Values defined outside of the loop.
    pub values: HashMap<Value, Value>,
    /// Shadows defined outside of the loop.
    pub shadows: HashMap<Value, Lanes>,
    /// Arrays allocated before the loop.
    pub arrays: HashMap<Node, Lanes>,
}

/// Inputs of the recomputation of one iteration.
pub struct IterationInputs<'a, 'f, 'u, 'p> {
    /// Facts about the primal.
    pub facts: &'a BodyFacts<'f>,
    /// The derivative.
    pub variant: &'a Variant,
    /// The derivative under construction.
    pub out: &'a mut DerivativeBuilder<'u>,
    /// The tape plan.
    pub plan: &'p TapePlan,
    /// The tape layout.
    pub layout: &'p TapeLayout,
    /// Values available to the iteration.
    pub entry: IterationState,
    /// Variants of callees that the derivative calls.
    pub needs: &'a mut Vec<Variant>,
    /// Diagnostics.
    pub findings: &'a mut Vec<Diagnostic>,
}

/// Emits the recomputation of one iteration of a loop at the insertion point, for a given index. Returns the forward
/// values of the iteration that the reverse pass reads as SSA values.
pub type RecomputeIteration =
    fn(IterationInputs<'_, '_, '_, '_>, lp: Op, index: Value) -> HashMap<Node, Lanes>;
