//! Automatic differentiation of GIR functions: from a primal function to its JVP or VJP.
//!
//! [`differentiate`] builds one [`Variant`] of one function from facts about the whole call graph
//! ([`ClosureFacts`]) and reports the variants of callees that the derivative requires. The crate runs no
//! compiler pass. The formulas of single ops lie in [`calculus`] alone.
//!
//! | module | subject |
//! |---|---|
//! | `variant` | the key of a derivative, and its signature |
//! | `facts` | analysis results for one body, as tables |
//! | `sweep` | the forward pass: primal, shadows, tangents, tape |
//! | `reverse` | the reverse pass: the adjoint of every op |
//! | `node`, `tape` | forward values that the reverse pass may require; the tape plan and tape layout |
//! | `inherit` | attributes that a derivative inherits |
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod analysis;
pub mod calculus;
mod driver;
mod emit;
mod forward;
mod reverse;
mod shadow;
mod tape;
mod variant;

pub use crate::analysis::program_facts::{ClosureFacts, Root};
pub use crate::driver::byval::expand_by_value;
pub use crate::driver::refused_memory::end_where_refused;
pub use crate::driver::report::{Kept, ParallelLoop, Report};
pub use crate::reverse::atomics::Beside;
pub use crate::shadow::indirect_calls::CALL_PREFIX;
pub use crate::tape::huge_pages::advise;
pub use crate::tape::tag::end_where;
pub use variant::{
    ArgActivity, Mode, ParamRole, ResultActivity, ResultRole, Signature, TapeOwner, Variant,
    Versions, carries_float,
};

use crate::analysis::body_facts::{Chosen, MakeFacts};
use gradus_ir::externals::VARIABLE_PREFIX;
use gradus_ir::{Code, Diagnostic, FuncId, Severity, SourceSpan, Unit};
use reverse::Inputs;
use std::collections::HashSet;

/// Options of differentiation. Every fact or choice that an optimisation rests on can be switched off.
#[derive(Clone, Debug)]
pub struct Options {
    /// States axiom S1 to LLVM by alias scopes: primal memory, shadow memory and tape never overlap.
    pub alias_scopes: bool,
    /// Computes the cost of a saved value from the loops that the value varies in, not from all enclosing
    /// loops.
    pub variance_cost: bool,
    /// Chooses between saving and recomputing by a min-cut. Otherwise every required value is saved.
    pub recompute: bool,
    /// Lets the tape hold a condition, one byte, instead of the operands of the condition.
    pub conditions: bool,
    /// Includes shadow pointers in the min-cut. Otherwise every required shadow pointer is saved.
    pub shadow_pointers: bool,
    /// Pushes values from loops of unknown trip count to a LIFO stack of segments. Otherwise each piece is a
    /// heap block.
    pub segment_stack: bool,
    /// Copies whole arrays (snapshots), from which overwritten loads can be recomputed.
    pub snapshots: bool,
    /// Emits two versions and a run-time alias check where disjoint arguments are profitable.
    pub versioning: bool,
    /// Recomputes loop iterations in the reverse pass where profitable. The tape then holds nothing of such
    /// loops. A candidate loop writes scratch memory only.
    pub replay: bool,
    /// Weighs loop recomputation against saving. Otherwise every recomputable loop is recomputed.
    pub replay_cost: bool,
    /// Inverts inductions in the reverse pass instead of saving each carried value. Carried values that an
    /// iteration loads for the next iteration are loaded again.
    pub backwards: bool,
    /// Differentiates a call without side effects as a whole in the reverse pass, without a tape.
    pub redo_calls: bool,
    /// Frees blocks at the primal's own `free` where the reverse pass reads nothing of the block.
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

/// Result of [`differentiate`].
#[derive(Clone, Debug)]
pub struct Derived {
    /// The function: declared by [`Variant::declare`], now with a body.
    pub func: FuncId,
    /// Variants of callees that the function calls.
    pub needs: Vec<Variant>,
    /// Decisions taken for the variant.
    pub report: Report,
    /// True if the derivative must not run concurrently with other derivatives that add to the same shadow
    /// memory.
    pub exclusive: bool,
    /// Primal source location that causes [`exclusive`](Derived::exclusive), if known.
    pub alone_for: Option<SourceSpan>,
    /// Atomic accesses to shadow memory, with the known alignment in bytes.
    pub atomics: Vec<(gradus_ir::Op, u32)>,
    /// Pairs of parameters whose memory must be disjoint, where the function tests and calls one of two
    /// versions. A caller that knows the pairs to be disjoint may call [`Versions::Disjoint`] directly. Empty
    /// if there is no check, or if the check covers more than parameters.
    pub apart: Vec<(usize, usize)>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Resolves atomics once all derivatives of a root are built. Loops that call an exclusive derivative become
/// serial, and a derivative that never runs concurrently adds without atomics. Returns the functions that may
/// run concurrently.
pub fn settle(unit: &mut Unit, made: &[Beside]) -> HashSet<FuncId> {
    reverse::atomics::settle(unit, made)
}

/// Builds the body of a variant and adds the function to the unit.
///
/// # Errors
/// Diagnostics with code and source line for each construct that cannot be differentiated.
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
    variant::inherit::attributes(unit, variant, func);
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

/// The body of a derivative with the by-products of building the body.
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
        && let Some(dispatch) =
            driver::versioning::dispatch(unit, primal, closure, variant, options)
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
    driver::caller_outputs::check(unit, closure, variant)?;
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
        _ => reverse::recompute_loops::facts_and_plan(unit, variant, options, make_facts)?,
    };
    let cleared = shadow::globals::cleared(unit, closure, variant)?;
    let led = shadow::global_pointers::led(unit, closure, variant)?;
    let kept = shadow::pointer_witness::kept(unit, closure, variant)?;
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
        Mode::Forward => forward::forward_mode(unit, &mut inputs),
        _ => reverse::derive(unit, &mut inputs, &plan),
    };
    let alone_for = out.unit.span(out.alone_for);
    let (body, exclusive, atomics) = (out.body, out.exclusive, out.atomics);
    let mut report = Report {
        parallel: out.parallel,
        unseeded: driver::caller_outputs::has_no_cotangent(unit, closure, variant),
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

/// Checks that a derivative may begin by setting shadows of global variables. Such a derivative is refused if
/// the threads of a kernel run it.
fn sets_for_itself(
    unit: &Unit,
    variant: &Variant,
    (cleared, led, kept): (
        &[shadow::globals::Cleared],
        &[shadow::global_pointers::Led],
        &[shadow::pointer_witness::Kept],
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
        // Not an error: no kernel runs the derivative, or the derivative sets no shadow.
        return Ok(());
    };
    let function = &unit.functions[variant.func];
    let name = function.source_name.as_ref().unwrap_or(&function.name);
    let variable = &unit.globals[global].name;
    let variable = variable.strip_prefix(VARIABLE_PREFIX).unwrap_or(variable);
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
