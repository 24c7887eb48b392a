//! Reverse mode: a forward pass that writes a tape, and a reverse pass.
//!
//! 1. A dry run of the reverse pass records the required forward values.
//! 2. The tape plan decides which values are saved and which are recomputed.
//! 3. The forward pass is emitted, with the saves of the plan.
//! 4. The reverse pass is emitted, based on the saved values.
//!
//! In combined mode, one function contains both passes. In split mode, the augmented primal ends after step
//! 3, and the reverse function consists of step 4. Both functions compute equal plans from equal facts.

pub(crate) mod atomics;
mod calls;
mod inductions;
mod linear_ops;
mod memory;
mod power_of_two_scaling;
pub(crate) mod recompute_loops;
mod region_map;
pub(crate) mod restore;
mod reverse_pass;
mod select_guards;
pub(crate) mod structure;
mod undef_lanes;

use crate::Options;
use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::Node;
use crate::emit::builder::{DerivativeBuilder, Lanes, pack};
use crate::emit::libc;
use crate::forward::{ForwardPass, TapeWriter};
use crate::reverse::restore::{Recall, Replay};
use crate::reverse::reverse_pass::ReversePass;
use crate::shadow::global_pointers;
use crate::shadow::global_pointers::GlobalPointerShadow;
use crate::shadow::globals;
use crate::shadow::globals::ClearedShadow;
use crate::shadow::pointer_witness;
use crate::shadow::pointer_witness::StridedPointers;
use crate::tape::layout::{TapeLayout, block_bytes};
use crate::tape::plan::{PlanOptions, TapePlan, fits_ssa_values, plan};
use crate::tape::tag;
use crate::variant::{Mode, ParamRole, ResultRole, Signature, TapeOwner, Variant};
use gradus_ir::{Diagnostic, Unit, Value};
use std::collections::HashMap;

/// Inputs of a derivative.
pub(crate) struct Inputs<'a, 'f> {
    pub facts: &'a BodyFacts<'f>,
    pub cleared: &'a [ClearedShadow],
    pub global_pointers: &'a [GlobalPointerShadow],
    /// Pointers that are compared with their witnesses.
    pub checked_pointers: &'a [StridedPointers],
    pub variant: &'a Variant,
    pub options: &'a Options,
    pub needs: &'a mut Vec<Variant>,
    pub findings: &'a mut Vec<Diagnostic>,
}

/// Plans the tape of a reverse-mode derivative.
fn make_plan(
    unit: &mut Unit,
    facts: &BodyFacts<'_>,
    variant: &Variant,
    options: &Options,
) -> TapePlan {
    let signature = variant.signature(unit);
    let (mut needs, mut findings) = (Vec::new(), Vec::new());
    let mut inputs = Inputs {
        facts,
        cleared: &[],
        global_pointers: &[],
        checked_pointers: &[],
        variant,
        options,
        needs: &mut needs,
        findings: &mut findings,
    };
    let needed = dry_run(unit, &mut inputs, &signature);
    let options = PlanOptions {
        ssa_outermost: variant.mode == Mode::Combined && fits_ssa_values(facts.body),
        width: variant.width,
        variance_cost: options.loop_variance_cost,
        recompute: options.recompute,
        conditions: options.save_conditions,
        shadow_pointers: options.shadow_pointers,
        segment_stack: options.segmented_tape,
    };
    let mut plan = plan(unit, facts, &needed, options);
    plan.skipped_loops = recompute_loops::skippable_loops(unit, facts, variant, &plan);
    plan
}

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
    crate::shadow::descriptors::compare(&mut out, inputs.variant, &signature, inputs.facts.body);
    match inputs.variant.mode {
        Mode::Augmented => augmented(&mut out, inputs, &signature, plan),
        Mode::Reverse => build_reverse(&mut out, inputs, &signature, plan),
        Mode::Combined | Mode::Forward => combined(&mut out, inputs, &signature, plan),
    }
    out
}

/// Executes the dry run and returns the forward values that the reverse pass requires.
fn dry_run(unit: &mut Unit, inputs: &mut Inputs<'_, '_>, signature: &Signature) -> Vec<Node> {
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

fn combined(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
    plan: &TapePlan,
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
    let parts = emit_reverse_pass(out, inputs, signature, plan, &layout, at_hand);
    if let Some(block) = block {
        let free = libc::free_function(out.unit);
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
        crate::tape::segments::initialise(out, block);
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
    let at_hand = parameter_values(out, inputs.facts, signature);
    let adjoints = emit_reverse_pass(out, inputs, signature, plan, &layout, at_hand);
    if inputs.variant.tape != TapeOwner::UserMemory {
        let free = libc::free_function(out.unit);
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

/// Emits the reverse pass. Returns the adjoints of the primal's parameters.
fn emit_reverse_pass(
    out: &mut DerivativeBuilder<'_>,
    inputs: &mut Inputs<'_, '_>,
    signature: &Signature,
    plan: &TapePlan,
    layout: &TapeLayout,
    at_hand: HashMap<Node, Lanes>,
) -> HashMap<usize, Lanes> {
    let cotangents = cotangents(out, signature);
    let replay = Recall::Replay(Replay {
        plan,
        layout,
        available: at_hand,
        restored: HashMap::new(),
    });
    let mut pass = ReversePass::new(
        inputs.facts,
        inputs.variant,
        out,
        replay,
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
