//! The reverse pass: the adjoint of every op of the primal, in reverse order.
//!
//! The reverse pass runs twice. [`dry_run`] records the required forward values, from which the driver plans the tape.
//! [`emit_reverse_pass`] emits the reverse pass, based on saved and recomputed values. The driver combines forward pass
//! and reverse pass (`driver/reverse_mode.rs`).

pub(crate) mod atomics;
mod calls;
mod inductions;
mod linear_ops;
mod memory;
mod power_of_two_scaling;
mod recompute_loops;
mod region_map;
pub(crate) mod restore;
mod reverse_pass;
mod select_guards;
mod structure;
mod undef_lanes;

use crate::analysis::forward_value::Node;
use crate::context::inputs::Inputs;
use crate::emit::builder::{DerivativeBuilder, Lanes};
use crate::reverse::restore::{Recall, Replay};
use crate::reverse::reverse_pass::ReversePass;
use crate::variant::{Mode, ParamRole, ResultRole, Signature, Variant};
use gradus_ir::{Unit, Value};
use std::collections::HashMap;

/// Executes the dry run and returns the forward values that the reverse pass requires.
pub(crate) fn dry_run(
    unit: &mut Unit,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
) -> Vec<Node> {
    let params: Vec<_> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let returning = Variant {
        mode: Mode::Reverse,
        ..inputs.variant.clone()
    };
    let rehearsed = match inputs.variant.mode {
        Mode::Augmented => &returning,
        _ => inputs.variant,
    };
    let mut out = DerivativeBuilder::new(unit, &params, false);
    let cotangents = match inputs.variant.mode {
        Mode::Augmented => placeholders(&mut out, rehearsed),
        _ => cotangents(&out, signature),
    };
    let (mut needs, mut findings) = (Vec::new(), Vec::new());
    let mut pass = ReversePass::new(
        inputs.facts,
        rehearsed,
        &mut out,
        Recall::dry_run(),
        &mut needs,
        &mut findings,
    );
    pass.run(&cotangents);
    pass.into_required_values()
}

/// Returns placeholder cotangents for a dry run in a function without cotangent parameters.
fn placeholders(out: &mut DerivativeBuilder<'_>, returning: &Variant) -> Vec<Value> {
    let signature = returning.signature(out.unit);
    let types = signature
        .params
        .iter()
        .filter(|(role, _)| matches!(role, ParamRole::Cotangent(_)));
    types.map(|(_, ty)| out.build().poison(*ty)).collect()
}

fn cotangents(out: &DerivativeBuilder<'_>, signature: &Signature) -> Vec<Value> {
    let params = signature.params.iter().zip(out.body.params());
    params
        .filter(|((role, _), _)| matches!(role, ParamRole::Cotangent(_)))
        .map(|(_, v)| *v)
        .collect()
}

/// Emits the reverse pass. Returns the adjoints of the primal's parameters.
pub(crate) fn emit_reverse_pass(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
    replay: Replay<'_>,
) -> HashMap<usize, Lanes> {
    let cotangents = cotangents(out, signature);
    let mut pass = ReversePass::new(
        inputs.facts,
        inputs.variant,
        out,
        Recall::Replay(replay),
        inputs.needs,
        inputs.findings,
    );
    pass.run(&cotangents);
    let mut adjoints = HashMap::new();
    for (number, &param) in inputs.facts.body.params().iter().enumerate() {
        let wanted = signature
            .results
            .iter()
            .any(|(role, _)| matches!(role, ResultRole::Adjoint(at, _) if *at == number));
        if wanted {
            adjoints.insert(number, pass.adjoint(param));
        }
    }
    adjoints
}
