//! Reverse mode: a forward pass that writes a tape, and a reverse pass.
//!
//! 1. A dry run of the reverse pass records the required forward values (`driver/recomputation_rounds.rs`).
//! 2. The tape plan decides which values are saved and which are recomputed.
//! 3. The forward pass is emitted, with the saves of the plan.
//! 4. The reverse pass is emitted, based on the saved values.
//!
//! In combined mode, one function contains both passes. In split mode, the augmented primal ends after step
//! 3, and the reverse function consists of step 4. Both functions compute equal plans from equal facts.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::context::inputs::Inputs;
use crate::emit::builder::{DerivativeBuilder, Lanes, pack};
use crate::emit::libc;
use crate::forward::recompute_loops::recompute_iteration;
use crate::forward::{ForwardPass, TapeWriter};
use crate::reverse::emit_reverse_pass;
use crate::reverse::restore::Replay;
use crate::shadow::{descriptors, global_pointers, globals, owned_blocks, pointer_witness};
use crate::tape::layout::{TapeLayout, block_bytes};
use crate::tape::plan::TapePlan;
use crate::tape::{segments, tag};
use crate::variant::{Mode, ParamRole, ResultRole, Signature, TapeOwner};
use gradus_ir::{Unit, Value};
use std::collections::HashMap;

/// Builds the body of a reverse-mode derivative according to its plan.
pub(crate) fn derive<'u>(
    unit: &'u mut Unit,
    inputs: &mut Inputs<'_, '_>,
    plan: &TapePlan,
) -> DerivativeBuilder<'u> {
    let signature = inputs.variant.signature(unit);
    let params: Vec<_> = signature.params.iter().map(|(_, ty)| *ty).collect();
    let mut out = DerivativeBuilder::new(unit, &params, inputs.options.alias_scopes);
    globals::clear(&mut out, inputs.variant, inputs.cleared);
    pointer_witness::reset_stale_shadows(&mut out, inputs.variant, inputs.checked_pointers);
    global_pointers::rebind(&mut out, inputs.variant, inputs.global_pointers);
    let owned = owned_blocks::allocate(&mut out, (inputs.variant, &signature), inputs.owned_blocks);
    descriptors::compare(&mut out, inputs.variant, &signature, inputs.facts.body);
    match inputs.variant.mode {
        Mode::Augmented => augmented(&mut out, inputs, &signature, plan),
        Mode::Reverse => build_reverse(&mut out, inputs, &signature, plan),
        Mode::Combined | Mode::Forward => combined(&mut out, inputs, (&signature, plan), &owned),
    }
    out
}

fn combined(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    (signature, plan): (&Signature, &TapePlan),
    owned: &[Value],
) {
    let block = TapeLayout::needs_block(plan).then(|| prepare_block(out, inputs, signature, plan));
    let layout = match block {
        Some(block) => TapeLayout::in_block(out, inputs.variant, plan, block),
        None => TapeLayout::in_frame(out, plan),
    };
    let writer = TapeWriter {
        plan,
        layout: &layout,
        frames: HashMap::new(),
    };
    let mut forward = ForwardPass::new(
        inputs.facts,
        inputs.variant,
        signature,
        out,
        Some(writer),
        inputs.needs,
        inputs.findings,
    );
    let (result, shadow) = forward.run();
    let direct = plan.ssa_values_in(inputs.facts, inputs.facts.body.root());
    let mut at_hand = forward.available_values(direct.into_iter());
    pointer_witness::update_witnesses(out, inputs.variant, inputs.checked_pointers);
    at_hand.extend(parameter_values(out, inputs.facts, signature));
    let replay = Replay {
        plan,
        layout: &layout,
        available: at_hand,
        restored: HashMap::new(),
        recompute_iteration,
    };
    let parts = emit_reverse_pass(out, inputs, signature, replay);
    owned_blocks::release(out, inputs.variant, inputs.owned_blocks, owned);
    if let Some(block) = block {
        let free = gradus_edit::declare_free(out.unit);
        out.build().call(free, &[block]);
    }
    emit_return(
        out,
        signature,
        &DerivativeResults {
            tape: None,
            result,
            shadow,
            adjoints: parts,
        },
    );
}

/// Prepares the block of the slots and of the empty stack's state. The block is allocated unless the program
/// provides it.
fn prepare_block(
    out: &mut DerivativeBuilder<'_>,
    inputs: &Inputs<'_, '_>,
    signature: &Signature,
    plan: &TapePlan,
) -> Value {
    let block = match tape_parameter(out, signature) {
        Some(given) => given,
        None => {
            let bytes = block_bytes(out.unit, inputs.variant, plan);
            let bytes = out.build().i64(bytes as i64);
            libc::private_block(&mut out.build(), bytes)
        }
    };
    if inputs.variant.tape != TapeOwner::Derivative {
        let at = TapeLayout::mark(out, inputs.variant, plan, block);
        let own = tag::tag_of(out.unit, inputs.variant, plan);
        tag::write(out, at, own);
    }
    if plan.uses_stack() {
        segments::initialise(out, block);
    }
    block
}

fn augmented(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
    plan: &TapePlan,
) {
    let block = prepare_block(out, inputs, signature, plan);
    let layout = TapeLayout::in_block(out, inputs.variant, plan, block);
    let writer = TapeWriter {
        plan,
        layout: &layout,
        frames: HashMap::new(),
    };
    let mut forward = ForwardPass::new(
        inputs.facts,
        inputs.variant,
        signature,
        out,
        Some(writer),
        inputs.needs,
        inputs.findings,
    );
    let (result, shadow) = forward.run();
    pointer_witness::update_witnesses(out, inputs.variant, inputs.checked_pointers);
    emit_return(
        out,
        signature,
        &DerivativeResults {
            tape: Some(block),
            result,
            shadow,
            adjoints: HashMap::new(),
        },
    );
}

/// Returns the tape parameter of a split derivative.
fn tape_parameter(out: &DerivativeBuilder<'_>, signature: &Signature) -> Option<Value> {
    let mut roles = signature.params.iter();
    let at = roles.position(|(role, _)| *role == ParamRole::Tape)?;
    out.body.params().get(at).copied()
}

/// Returns the parameters that hold primal values and shadows.
fn parameter_values(
    out: &DerivativeBuilder<'_>,
    facts: &BodyFacts<'_>,
    signature: &Signature,
) -> HashMap<Node, Lanes> {
    let mut at_hand: HashMap<Node, Lanes> = HashMap::new();
    for ((role, _), &param) in signature.params.iter().zip(out.body.params()) {
        let node = match *role {
            ParamRole::Primal(number) => Node::Primal(facts.body.params()[number]),
            ParamRole::Shadow(number, _) => Node::Shadow(facts.body.params()[number]),
            ParamRole::Cotangent(_) | ParamRole::Tape => continue,
        };
        at_hand.entry(node).or_default().push(param);
    }
    at_hand
}

fn build_reverse(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
    plan: &TapePlan,
) {
    let Some(block) = tape_parameter(out, signature) else {
        let body = inputs.facts.body;
        let error = gradus_ir::ice!(
            out.unit,
            body,
            None,
            "the reverse pass has no tape parameter"
        );
        return inputs.findings.push(error);
    };
    let layout = TapeLayout::in_block(out, inputs.variant, plan, block);
    if inputs.variant.tape != TapeOwner::Derivative {
        let at = TapeLayout::mark(out, inputs.variant, plan, block);
        let own = tag::tag_of(out.unit, inputs.variant, plan);
        tag::check(out, inputs.variant, at, own);
        // The tape is consumed: a second reverse pass on it is an error.
        tag::write(out, at, 0);
    }
    let replay = Replay {
        plan,
        layout: &layout,
        available: parameter_values(out, inputs.facts, signature),
        restored: HashMap::new(),
        recompute_iteration,
    };
    let adjoints = emit_reverse_pass(out, inputs, signature, replay);
    if inputs.variant.tape != TapeOwner::UserMemory {
        let free = gradus_edit::declare_free(out.unit);
        out.build().call(free, &[block]);
    }
    emit_return(
        out,
        signature,
        &DerivativeResults {
            tape: None,
            result: None,
            shadow: None,
            adjoints,
        },
    );
}

/// Results of a derivative.
struct DerivativeResults {
    tape: Option<Value>,
    result: Option<Value>,
    shadow: Option<Lanes>,
    adjoints: HashMap<usize, Lanes>,
}

/// Ends the derivative by packing its results.
fn emit_return(out: &mut DerivativeBuilder<'_>, signature: &Signature, parts: &DerivativeResults) {
    let mut values = Vec::new();
    for (role, ty) in &signature.results {
        let value = match *role {
            ResultRole::Tape => parts.tape,
            ResultRole::Primal => parts.result,
            ResultRole::Shadow(lane) => parts
                .shadow
                .as_ref()
                .and_then(|lanes| lanes.get(lane as usize).copied()),
            ResultRole::Adjoint(number, lane) => parts
                .adjoints
                .get(&number)
                .and_then(|lanes| lanes.get(lane as usize).copied()),
        };
        // A pointer without a companion is its own shadow.
        let own = matches!(role, ResultRole::Shadow(_)) && out.unit.types.is_ptr(*ty);
        let value = match value.or(parts.result.filter(|_| own)) {
            Some(value) => value,
            None => out.build().zero(*ty),
        };
        values.push(value);
    }
    pack(out, &values);
}
