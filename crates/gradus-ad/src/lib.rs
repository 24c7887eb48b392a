//! Automatic differentiation of GIR functions: from a primal function to its JVP or VJP.
//!
//! [`differentiate`] builds one [`Variant`] of one function from facts about the whole call graph
//! ([`ProgramFacts`]) and reports the variants of callees that the derivative requires. The crate runs no
//! compiler pass. The formulas of single ops lie in [`calculus`] alone.
//!
//! A module imports only from modules above it in the table; `forward` and `reverse` do not import each other.
//!
//! | module | subject |
//! |---|---|
//! | `variant` | the key of a derivative, its signature, and the attributes that a derivative inherits |
//! | `emit` | the builder of derivative code |
//! | `calculus` | the formulas of single ops, and rewrites into ops that have a formula |
//! | `analysis` | analysis results for the call graph and for one body, as tables; forward values |
//! | `tape` | how forward values are saved or recomputed; the tape plan and tape layout |
//! | `shadow` | shadow values and shadow memory |
//! | `context` | the inputs of both passes, and the interface between them |
//! | `forward` | the forward pass: primal, shadows, tangents, tape writes |
//! | `reverse` | the reverse pass: the adjoint of every op |
//! | `driver` | reverse mode from both passes, recomputation rounds, versions, byval arguments, the report |
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod analysis;
pub mod calculus;
mod context;
mod driver;
mod emit;
mod forward;
mod reverse;
mod shadow;
mod tape;
mod variant;

pub use crate::analysis::program_facts::{ProgramFacts, Root};
pub use crate::driver::byval::expand_by_value;
pub use crate::driver::refused_memory::check_private_allocations;
pub use crate::driver::report::{LineCost, Report, SaveReason, SavedValue, SavingLoop};
pub use crate::driver::thunks::{
    SignaturePart, SignatureParts, VariantCaps, begin_variant, call_variant, emit_thunk,
    end_variant,
};
pub use crate::emit::parallel_loops::ParallelLoop;
pub use crate::reverse::atomics::ConcurrencySummary;
pub use crate::shadow::indirect_calls::CALL_PREFIX;
pub use crate::tape::huge_pages::advise_huge_pages;
pub use crate::tape::tag::stop_on_mismatch;
pub use variant::{
    ArgActivity, Mode, ParamRole, ResultActivity, ResultRole, Signature, Tangents, TapeOwner,
    Variant, Versions, carries_float,
};

use crate::analysis::body_facts::{FactsBuilder, PlanChoices};
use crate::context::inputs::Inputs;
use gradus_ir::externals::VARIABLE_PREFIX;
use gradus_ir::{Code, Diagnostic, FuncId, GlobalId, Severity, SourceSpan, Unit};
use std::collections::HashSet;

/// Options of differentiation. Every fact or choice that an optimisation rests on can be switched off.
#[derive(Clone, Debug)]
pub struct Options {
    /// States axiom S1 to LLVM by alias scopes: primal memory, shadow memory and tape never overlap.
    pub alias_scopes: bool,
    /// Computes the cost of a saved value from the loops that the value varies in, not from all enclosing
    /// loops.
    pub loop_variance_cost: bool,
    /// Chooses between saving and recomputing by a min-cut. Otherwise every required value is saved.
    pub recompute: bool,
    /// Lets the tape hold a condition, one byte, instead of the operands of the condition.
    pub save_conditions: bool,
    /// Includes shadow pointers in the min-cut. Otherwise every required shadow pointer is saved.
    pub shadow_pointers: bool,
    /// Pushes values from loops of unknown trip count to a LIFO stack of segments. Otherwise each piece is a
    /// heap block.
    pub segmented_tape: bool,
    /// Copies whole arrays (snapshots), from which overwritten loads can be recomputed.
    pub snapshots: bool,
    /// Emits two versions and a run-time alias check where disjoint arguments are profitable.
    pub alias_versioning: bool,
    /// Recomputes loop iterations in the reverse pass where profitable. The tape then holds nothing of such
    /// loops. A candidate loop writes scratch memory only.
    pub recompute_loops: bool,
    /// Weighs loop recomputation against saving. Otherwise every recomputable loop is recomputed.
    pub recompute_loops_cost: bool,
    /// Inverts inductions in the reverse pass instead of saving each carried value. Carried values that an
    /// iteration loads for the next iteration are loaded again.
    pub invert_inductions: bool,
    /// Differentiates a call without side effects as a whole in the reverse pass, without a tape.
    pub recompute_calls: bool,
    /// Frees blocks at the primal's own `free` where the reverse pass reads nothing of the block.
    pub early_frees: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            alias_scopes: true,
            loop_variance_cost: true,
            recompute: true,
            invert_inductions: true,
            recompute_calls: true,
            early_frees: true,
            save_conditions: true,
            shadow_pointers: true,
            segmented_tape: true,
            snapshots: true,
            alias_versioning: true,
            recompute_loops: true,
            recompute_loops_cost: true,
        }
    }
}

/// Result of [`differentiate`].
#[derive(Clone, Debug)]
pub struct Derived {
    /// The function: declared by [`Variant::declare`], now with a body.
    pub func: FuncId,
    /// Variants of callees that the function calls.
    pub required_variants: Vec<Variant>,
    /// Decisions taken for the variant.
    pub report: Report,
    /// True if the derivative must not run concurrently with other derivatives that add to the same shadow
    /// memory.
    pub exclusive: bool,
    /// Primal source location that causes [`exclusive`](Derived::exclusive), if known.
    pub exclusive_cause: Option<SourceSpan>,
    /// Atomic accesses to shadow memory, with the known alignment in bytes.
    pub atomics: Vec<(gradus_ir::Op, u32)>,
    /// Pairs of parameters whose memory must be disjoint, where the function tests and calls one of two
    /// versions. A caller that knows the pairs to be disjoint may call [`Versions::Disjoint`] directly. Empty
    /// if there is no check, or if the check covers more than parameters.
    pub disjoint_pairs: Vec<(usize, usize)>,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// Resolves atomics once all derivatives of a root are built. Loops that call an exclusive derivative become
/// serial, and a derivative that never runs concurrently adds without atomics. Returns the functions that may
/// run concurrently.
pub fn settle(unit: &mut Unit, made: &[ConcurrencySummary]) -> HashSet<FuncId> {
    reverse::atomics::settle(unit, made)
}

/// Builds the body of a variant and adds the function to the unit.
///
/// # Errors
/// Diagnostics with code and source line for each construct that cannot be differentiated.
pub fn differentiate(
    unit: &mut Unit,
    closure: &ProgramFacts,
    variant: &Variant,
    options: &Options,
) -> Result<Derived, Vec<Diagnostic>> {
    let func = variant.declare(unit);
    let Some(primal) = unit.functions[variant.func].body.clone() else {
        return Err(vec![no_body(unit, variant.func)]);
    };
    let made = build_variant(unit, &primal, closure, variant, options)?;
    if made.findings.iter().any(|f| f.severity == Severity::Error) {
        return Err(errors_of(made.findings));
    }
    variant::inherit::attributes(unit, variant, func);
    unit.functions[func].body = Some(Box::new(made.body));
    Ok(Derived {
        func,
        required_variants: made.needs,
        report: made.report,
        exclusive: made.exclusive,
        exclusive_cause: made.exclusive_cause,
        atomics: made.atomics,
        disjoint_pairs: made.disjoint_pairs,
        warnings: made.findings,
    })
}

/// Returns the errors to report. A refused operation leaves gaps in the tape plan; internal errors beside a refusal are
/// such gaps, and not faults of the compiler.
fn errors_of(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let is_refusal = |f: &Diagnostic| f.severity == Severity::Error && f.code != Code::CompilerDied;
    if findings.iter().any(is_refusal) {
        findings.retain(|finding| finding.code != Code::CompilerDied);
    }
    findings.dedup();
    findings
}

/// The body of a derivative with the by-products of building the body.
struct BuiltBody {
    body: gradus_ir::Body,
    needs: Vec<Variant>,
    report: Report,
    findings: Vec<Diagnostic>,
    exclusive: bool,
    exclusive_cause: Option<SourceSpan>,
    atomics: Vec<(gradus_ir::Op, u32)>,
    disjoint_pairs: Vec<(usize, usize)>,
}

fn build_variant(
    unit: &mut Unit,
    primal: &gradus_ir::Body,
    closure: &ProgramFacts,
    variant: &Variant,
    options: &Options,
) -> Result<BuiltBody, Vec<Diagnostic>> {
    if variant.may_have_runtime_check(unit)
        && variant.versions == Versions::RuntimeCheck
        && options.alias_versioning
        && let Some(dispatch) =
            driver::versioning::version_dispatch(unit, primal, closure, variant, options)
    {
        let report = Report {
            versions: true,
            ..Report::new(unit, variant.func)
        };
        return Ok(BuiltBody {
            body: dispatch.body,
            needs: dispatch.needs,
            report,
            findings: Vec::new(),
            exclusive: false,
            exclusive_cause: None,
            atomics: Vec::new(),
            disjoint_pairs: dispatch.apart,
        });
    }
    driver::caller_outputs::check_result_shadow(unit, closure, variant)?;
    let make_facts = |unit: &Unit, chosen| {
        FactsBuilder {
            unit,
            closure,
            variant,
            options,
            choices: chosen,
        }
        .build(primal)
    };
    let (facts, plan) = match variant.mode {
        Mode::Forward => (
            make_facts(unit, PlanChoices::default())?,
            tape::plan::TapePlan::default(),
        ),
        _ => driver::recomputation_rounds::plan_with_recomputation(
            unit, variant, options, make_facts,
        )?,
    };
    let globals = GlobalShadows::collect(unit, closure, variant)?;
    let (mut needs, mut findings) = (Vec::new(), Vec::new());
    let mut inputs = Inputs {
        facts: &facts,
        cleared: &globals.cleared,
        global_pointers: &globals.rebound,
        checked_pointers: &globals.checked,
        owned_blocks: &globals.owned,
        variant,
        options,
        needs: &mut needs,
        findings: &mut findings,
    };
    let out = match variant.mode {
        Mode::Forward => forward::forward_mode(unit, &mut inputs),
        _ => driver::reverse_mode::derive(unit, &mut inputs, &plan),
    };
    let alone_for = out.unit.span(out.exclusive_cause);
    let (body, exclusive, atomics) = (out.body, out.exclusive, out.atomics);
    let mut report = Report {
        parallel: out.parallel,
        lacks_cotangents: driver::caller_outputs::has_no_cotangents(unit, closure, variant),
        ..Report::of(unit, closure, &facts, (&plan, &body))
    };
    if matches!(variant.mode, Mode::Augmented | Mode::Reverse) {
        report.block_bytes = Some(tape::layout::block_bytes(unit, variant, &plan));
    }
    needs.sort();
    needs.dedup();
    Ok(BuiltBody {
        body,
        needs,
        report,
        findings,
        exclusive,
        exclusive_cause: alone_for,
        atomics,
        disjoint_pairs: Vec::new(),
    })
}

/// The shadows of global variables that a derivative sets at its start.
struct GlobalShadows {
    cleared: Vec<shadow::globals::ClearedShadow>,
    rebound: Vec<shadow::global_pointers::GlobalPointerShadow>,
    checked: Vec<shadow::pointer_witness::StridedPointers>,
    owned: Vec<shadow::owned_blocks::OwnedShadow>,
}

impl GlobalShadows {
    fn collect(
        unit: &Unit,
        closure: &ProgramFacts,
        variant: &Variant,
    ) -> Result<GlobalShadows, Vec<Diagnostic>> {
        let owned = shadow::owned_blocks::collect(unit, closure, variant)?;
        let found = GlobalShadows {
            cleared: shadow::globals::cleared(unit, closure, variant)?,
            rebound: shadow::global_pointers::collect(unit, closure, variant)?,
            checked: shadow::pointer_witness::collect_checked_pointers(
                unit, closure, variant, &owned,
            )?,
            owned,
        };
        check_global_initialization(unit, variant, found.globals())?;
        Ok(found)
    }

    fn globals(&self) -> impl Iterator<Item = GlobalId> {
        let cleared = self.cleared.iter().map(|one| one.global);
        let rebound = self.rebound.iter().map(|one| one.global);
        let checked = self.checked.iter().map(|one| one.global);
        let owned = self.owned.iter().map(|one| one.global);
        cleared.chain(rebound).chain(checked).chain(owned)
    }
}

/// Checks that a derivative may begin by setting shadows of global variables. Such a derivative is refused if
/// the threads of a kernel run it.
fn check_global_initialization(
    unit: &Unit,
    variant: &Variant,
    mut set: impl Iterator<Item = GlobalId>,
) -> Result<(), Vec<Diagnostic>> {
    let shared = set
        .next()
        .filter(|_| variant.concurrent && variant.outermost);
    let Some(global) = shared else {
        // Not an error: no kernel runs the derivative, or the derivative sets no shadow.
        return Ok(());
    };
    let function = &unit.functions[variant.func];
    let name = function.display_name();
    let variable = &unit.globals[global].name;
    let variable = variable.strip_prefix(VARIABLE_PREFIX).unwrap_or(variable);
    let message = format!(
        "a derivative requested in a kernel would set the shadow of `{variable}`, but all threads share this shadow"
    );
    let help =
        format!("pass the address of `{variable}` as an argument, with a shadow or as inactive");
    let refused = Diagnostic::error(Code::Gpu, message).in_function(name);
    let refused = refused.at(function.span.clone(), "defined here");
    Err(vec![refused.help(help)])
}

fn no_body(unit: &Unit, func: FuncId) -> Diagnostic {
    let function = &unit.functions[func];
    let name = function.display_name();
    Diagnostic::error(
        gradus_ir::Code::UnknownCallee,
        format!("`{name}` has no body in this program and no known derivative"),
    )
    .help(format!(
        "compile the file that defines `{name}` together with this one, or mark the arguments inactive"
    ))
}
