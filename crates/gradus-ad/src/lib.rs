//! Derivatives: the primal in, its JVP or VJP out.
//!
//! [`differentiate`] makes one [`Variant`] of one function from facts about the whole closure
//! ([`ClosureFacts`]) and says which variants of callees it needs; it never runs a pass. The
//! formulas of single ops stand in [`calculus`] and nowhere else.
//!
//! | module | says |
//! |---|---|
//! | `variant` | the key of a derivative and the signature that follows from it |
//! | `facts` | what the analyses know about one body, as tables |
//! | `sweep` | the forward sweep: primal, shadows, tangents, tape |
//! | `reverse` | the return sweep: every op undone |
//! | `node`, `tape` | what the return sweep may ask for; what is kept, where |
//! | `inherit` | which attributes a derivative takes over |
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alloc;
mod by_value;
pub mod calculus;
mod caller_outputs;
mod closure_facts;
mod copy_back;
mod descriptors;
mod differential;
mod dispatch;
mod facts;
mod inherit;
mod kept_pointers;
mod masked;
mod node;
mod out;
mod refused_memory;
mod report;
mod reverse;
mod shadow;
mod static_pointers;
mod static_state;
mod sweep;
mod tape;
mod variant;
mod versions;
mod word_copy;

pub use by_value::expand_by_value;
pub use closure_facts::{ClosureFacts, Root};
pub use dispatch::CALL_PREFIX;
pub use refused_memory::end_where_refused;
pub use report::{Kept, ParallelLoop, Report};
pub use reverse::parallel::Beside;
pub use tape::mark::end_where;
pub use tape::pages::advise;
pub use variant::{
    ArgActivity, Mode, ParamRole, ResultActivity, ResultRole, Signature, TapeOwner, Variant,
    Versions, carries_float,
};

use facts::{Chosen, MakeFacts};
use gradus_ir::known::VARIABLE;
use gradus_ir::{Code, Diagnostic, FuncId, Severity, SourceSpan, Unit};
use reverse::Inputs;
use std::collections::HashSet;

/// How derivatives are made. Every fact or choice that an optimisation rests on can be switched
/// off.
#[derive(Clone, Debug)]
pub struct Options {
    /// Axiom S1 is stated to LLVM: primal memory, shadow memory and tape never overlap.
    pub alias_scopes: bool,
    /// A kept value costs by the loops that it varies in, not by those that it stands in.
    pub variance_cost: bool,
    /// A minimum cut chooses between keeping and recomputing; else all that is asked for is kept.
    pub recompute: bool,
    /// A condition may be kept, one byte, instead of what it was computed from.
    pub conditions: bool,
    /// The cut weighs shadow pointers, too; else each that is asked for is kept.
    pub shadow_pointers: bool,
    /// What is pushed in loops lies on a stack of segments; else each piece is a block of the heap.
    pub segment_stack: bool,
    /// Arrays may be copied as a whole, so that loads from them can be done again.
    pub snapshots: bool,
    /// A test at run time picks between two bodies where disjoint arguments pay.
    pub versioning: bool,
    /// Iterations of a loop that write scratch memory only are run again in the return sweep, where that
    /// pays, and nothing of them is kept.
    pub replay: bool,
    /// Replay is weighed against keeping; else each loop is replayed that can be.
    pub replay_cost: bool,
    /// Carried values that an iteration only adds to are run backwards instead of kept; those that it reads
    /// from memory for the next one are read again.
    pub backwards: bool,
    /// A call that writes nothing is differentiated as a whole in the return sweep, without a tape.
    pub redo_calls: bool,
    /// Blocks of which the return sweep reads nothing are freed where the program frees them.
    pub early_frees: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            alias_scopes: true,
            variance_cost: true,
            recompute: true,
            backwards: true,
            redo_calls: true,
            early_frees: true,
            conditions: true,
            shadow_pointers: true,
            segment_stack: true,
            snapshots: true,
            versioning: true,
            replay: true,
            replay_cost: true,
        }
    }
}

/// A derivative that was made.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The function: declared by [`Variant::declare`], now with a body.
    pub func: FuncId,
    /// The variants of callees that it calls.
    pub needs: Vec<Variant>,
    /// What was decided.
    pub report: Report,
    /// Whether it must not run beside others that add to the same shadow memory.
    pub exclusive: bool,
    /// The line of the primal that is the reason, if it is known.
    pub alone_for: Option<SourceSpan>,
    /// Its atomic accesses to shadow memory, and the bytes to which each place is known to be aligned.
    pub atomics: Vec<(gradus_ir::Op, u32)>,
    /// Where it tests and calls one of two versions: the pairs of its parameters behind which memory must be
    /// disjoint. A caller who knows that may call [`Versions::Disjoint`] itself. Empty where there is no test,
    /// or one of more than parameters.
    pub apart: Vec<(usize, usize)>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// When all derivatives of a root are made: loops that call one which must not run beside others are
/// serial, and a derivative that runs alone adds without atomics. Returns those that may run concurrently.
pub fn settle(unit: &mut Unit, made: &[Beside]) -> HashSet<FuncId> {
    reverse::parallel::settle(unit, made)
}

/// Makes a variant: builds its body and puts it into the unit.
///
/// # Errors
/// What stands in the way, each with its code and source line.
pub fn differentiate(
    unit: &mut Unit,
    closure: &ClosureFacts,
    variant: &Variant,
    options: &Options,
) -> Result<Derived, Vec<Diagnostic>> {
    let func = variant.declare(unit);
    let Some(primal) = unit.functions[variant.func].body.clone() else {
        return Err(vec![no_body(unit, variant.func)]);
    };
    let mut made = make(unit, &primal, closure, variant, options)?;
    if made.findings.iter().any(|f| f.severity == Severity::Error) {
        made.findings.dedup();
        return Err(made.findings);
    }
    inherit::attributes(unit, variant, func);
    unit.functions[func].body = Some(Box::new(made.body));
    Ok(Derived {
        func,
        needs: made.needs,
        report: made.report,
        exclusive: made.exclusive,
        alone_for: made.alone_for,
        atomics: made.atomics,
        apart: made.apart,
        warnings: made.findings,
    })
}

/// A derivative's body, and what goes with it.
struct Made {
    body: gradus_ir::Body,
    needs: Vec<Variant>,
    report: Report,
    findings: Vec<Diagnostic>,
    exclusive: bool,
    alone_for: Option<SourceSpan>,
    atomics: Vec<(gradus_ir::Op, u32)>,
    apart: Vec<(usize, usize)>,
}

fn make(
    unit: &mut Unit,
    primal: &gradus_ir::Body,
    closure: &ClosureFacts,
    variant: &Variant,
    options: &Options,
) -> Result<Made, Vec<Diagnostic>> {
    if variant.may_test(unit)
        && variant.versions == Versions::Test
        && options.versioning
        && let Some(dispatch) = versions::dispatch(unit, primal, closure, variant, options)
    {
        let report = Report {
            versions: true,
            ..Report::new(unit, variant.func)
        };
        return Ok(Made {
            body: dispatch.body,
            needs: dispatch.needs,
            report,
            findings: Vec::new(),
            exclusive: false,
            alone_for: None,
            atomics: Vec::new(),
            apart: dispatch.apart,
        });
    }
    caller_outputs::check(unit, closure, variant)?;
    let make_facts = |unit: &Unit, chosen| {
        MakeFacts {
            unit,
            closure,
            variant,
            options,
            chosen,
        }
        .make(primal)
    };
    let (facts, plan) = match variant.mode {
        Mode::Forward => (
            make_facts(unit, Chosen::default())?,
            tape::plan::Plan::default(),
        ),
        _ => reverse::replay::facts_and_plan(unit, variant, options, make_facts)?,
    };
    let cleared = static_state::cleared(unit, closure, variant)?;
    let led = static_pointers::led(unit, closure, variant)?;
    let kept = kept_pointers::kept(unit, closure, variant)?;
    sets_for_itself(unit, variant, (&cleared, &led, &kept))?;
    let (mut needs, mut findings) = (Vec::new(), Vec::new());
    let mut inputs = Inputs {
        facts: &facts,
        cleared: &cleared,
        led: &led,
        kept: &kept,
        variant,
        options,
        needs: &mut needs,
        findings: &mut findings,
    };
    let out = match variant.mode {
        Mode::Forward => sweep::forward_mode(unit, &mut inputs),
        _ => reverse::derive(unit, &mut inputs, &plan),
    };
    let alone_for = out.unit.span(out.alone_for);
    let (body, exclusive, atomics) = (out.body, out.exclusive, out.atomics);
    let mut report = Report {
        parallel: out.parallel,
        unseeded: caller_outputs::has_no_cotangent(unit, closure, variant),
        ..Report::of(unit, closure, &facts, (&plan, &body))
    };
    if matches!(variant.mode, Mode::Augmented | Mode::Return) {
        report.block_bytes = Some(tape::layout::block_bytes(unit, variant, &plan));
    }
    needs.sort();
    needs.dedup();
    Ok(Made {
        body,
        needs,
        report,
        findings,
        exclusive,
        alone_for,
        atomics,
        apart: Vec::new(),
    })
}

/// Checks that a derivative may begin by setting shadows of variables. It may not if the threads of a kernel run
/// it.
fn sets_for_itself(
    unit: &Unit,
    variant: &Variant,
    (cleared, led, kept): (
        &[static_state::Cleared],
        &[static_pointers::Led],
        &[kept_pointers::Kept],
    ),
) -> Result<(), Vec<Diagnostic>> {
    let cleared = cleared.iter().map(|one| one.global);
    let kept = kept.iter().map(|one| one.global);
    let first = cleared
        .chain(led.iter().map(|one| one.global))
        .chain(kept)
        .next();
    let shared = first.filter(|_| variant.concurrent && variant.outermost);
    let Some(global) = shared else {
        // Not an error: no kernel runs the derivative, or it sets no shadow.
        return Ok(());
    };
    let function = &unit.functions[variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let variable = &unit.globals[global].name;
    let variable = variable.strip_prefix(VARIABLE).unwrap_or(variable);
    let message = format!(
        "the derivative that a kernel asks for would begin by setting the shadow of `{variable}`, which all threads share"
    );
    let help =
        format!("pass the address of `{variable}` as an argument, with a shadow or as inactive");
    let refused = Diagnostic::error(Code::Gpu, message).in_function(name);
    let refused = refused.at(function.span.clone(), "defined here");
    Err(vec![refused.help(help)])
}

fn no_body(unit: &Unit, func: FuncId) -> Diagnostic {
    let function = &unit.functions[func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    Diagnostic::error(
        gradus_ir::Code::UnknownCallee,
        format!("`{name}` has no body here, and its derivative is not known"),
    )
    .help("give its source file too, or mark the arguments inactive")
}
