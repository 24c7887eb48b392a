//! The row of a pass in the tables of passes: name, stage, switch, description, entry point.
//!
//! Three crates have such tables: gradus-simplify (passes on one body), gradus-gpu (passes on the kernels of one
//! body) and gradus-pipeline (stages of a compilation). `gradus dev --after`, the timings, the switches and the
//! folders of case pages read the rows. The type of the entry point is a parameter: the inputs and the outcome of a
//! stage are types of gradus-pipeline, the options of a kernel pass are a type of gradus-gpu.

use crate::memory::alias::AliasOptions;
use crate::memory::effects::Effects;
use gradus_ir::FuncId;

/// The subject of a pass, which determines its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The host's module.
    Host,
    /// All bodies of the unit, or the exchange of bodies with the host.
    Unit,
    /// Primals before differentiation.
    Primal,
    /// Derivatives, after the last derivative is emitted.
    Derivative,
    /// Like [`Stage::Derivative`], if no later run differentiates the output again.
    FinalDerivative,
    /// One body, for differentiation and for execution.
    Body,
    /// One body to differentiate. Execution would not profit from the pass.
    PrimalBody,
    /// The kernels of one body.
    Kernel,
}

/// A pass. `Run` is the type of the entry point.
#[derive(Clone, Copy, Debug)]
pub struct Pass<Run> {
    /// Name of the file and of the folder of case pages. `gradus dev --after` and the timings take names of stages.
    pub name: &'static str,
    /// The subject of the pass.
    pub stage: Stage,
    /// Switch that turns the pass off. `None`: the pass always runs.
    pub switch: Option<&'static str>,
    /// Description in one sentence without a subject.
    pub about: &'static str,
    /// Entry point.
    pub run: Run,
}

/// Pass context: facts beyond the body, computed before and preserved by edits that keep the semantics.
#[derive(Clone, Copy, Debug)]
pub struct PassContext<'a> {
    /// Function of the body; `None` for a body outside the unit.
    pub function: Option<FuncId>,
    /// Effects of other functions.
    pub effects: &'a Effects,
    /// Alias facts that passes may use.
    pub alias: &'a AliasOptions,
}
