//! The report as data: every form of the report (text, JSON, HTML) is rendered from these structures, and the page
//! `docs/reference/report.md` documents the fields.
//!
//! # Invariants
//! Field names and the names of variants are part of the JSON format. A change that a reader must know increments
//! [`REPORT_VERSION`].

use gradus_ad::SaveReason;
use gradus_ir::SourceSpan;
use serde::{Deserialize, Serialize};

/// The version of the JSON format.
pub const REPORT_VERSION: u32 = 2;

/// The report on a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The derivatives, in order; the functions that a derivative calls follow it.
    pub derivatives: Vec<DerivativeReport>,
    /// The parallel regions of the program.
    pub parallel_regions: Vec<RegionReport>,
    /// The kernels.
    pub kernels: Vec<KernelReport>,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The file, as passed to the compiler.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if unknown.
    pub column: u32,
    /// For a place in a system header: the nearest line of the user that the code is inlined into.
    pub called_at: Option<Box<Location>>,
}

/// The report on an emitted derivative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivativeReport {
    /// The name of the function in the source, demangled.
    pub function: String,
    /// The symbol of the function.
    pub symbol: String,
    /// The symbol of the derivative, if the derivative was requested by name.
    pub derivative: Option<String>,
    /// True for a requested derivative, false for a derivative that another derivative calls.
    pub requested: bool,
    /// The kind of derivative.
    pub mode: DerivativeMode,
    /// The version, if a run-time alias check selects one.
    pub version: AliasVersion,
    /// The definition of the function.
    pub location: Option<Location>,
    /// The arguments of the function.
    pub arguments: Vec<ArgumentReport>,
    /// The activity of the result.
    pub result: ResultRole,
    /// The C prototype of a derivative requested by name.
    pub prototype: Option<String>,
    /// The parameters of a derivative requested by name, in order.
    pub parameters: Vec<ParameterReport>,
    /// True if the function only selects one of two versions by an alias check; the versions follow, and the fields
    /// below are empty.
    pub selects_version: bool,
    /// The number of active float values.
    pub active_floats: usize,
    /// The number of float values.
    pub floats: usize,
    /// The number of float operations in the code.
    pub ops: OpCounts,
    /// The estimated number of executed float operations, without called functions.
    pub dynamic_ops: DynamicOps,
    /// The number of pointers whose activity is tested at run time.
    pub runtime_activity_tests: usize,
    /// True if the derivative holds only for a program that keeps the aliasing rules of its language: the analysis of
    /// pointers was too large without TBAA.
    pub assumes_aliasing_rules: bool,
    /// The number of loops of the reverse pass turned from scatter into gather.
    pub scatter_to_gather: usize,
    /// Loops that the reverse pass runs again.
    pub recomputed_loops: Vec<RecomputedLoop>,
    /// Parallel loops of the reverse pass.
    pub parallel_loops: Vec<ReverseLoop>,
    /// The tape; `None` if the derivative has no reverse pass of its own tape.
    pub tape: Option<Tape>,
    /// Cost and activity by source line.
    pub lines: Vec<LineReport>,
}

/// The kind of derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DerivativeMode {
    /// Forward mode.
    Jvp,
    /// Dependency sets.
    Dependencies,
    /// Reverse mode.
    Vjp,
    /// The forward pass of split mode.
    ForwardPass,
    /// The reverse pass of split mode.
    ReversePass,
}

/// A version of a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AliasVersion {
    /// The only version.
    Only,
    /// Runs if no arguments alias.
    NoAlias,
    /// Runs otherwise.
    Fallback,
}

/// An argument of the function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentReport {
    /// The name in the source.
    pub name: String,
    /// The activity; several for a structure in registers.
    pub activity: Vec<ArgumentRole>,
}

/// The activity of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentRole {
    /// No derivative.
    Inactive,
    /// A pointer with a shadow.
    Shadow,
    /// A pointer with a shadow, unless the shadow is the pointer itself.
    ShadowIfDifferent,
    /// A pointer with a shadow; the contents are unused after the call.
    ShadowContentsUnused,
    /// A number with a derivative.
    Active,
}

/// The activity of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultRole {
    /// No derivative, or no result.
    Inactive,
    /// A number with a derivative.
    Active,
    /// A pointer with a shadow.
    Shadow,
    /// Both.
    ActiveAndShadow,
}

/// A parameter of a derivative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterReport {
    /// The name in the prototype.
    pub name: String,
    /// The C type.
    #[serde(rename = "type")]
    pub c_type: String,
    /// The role: `inactive`, `active`, `shadow`, `cotangent` and others, as in the signature.
    pub role: String,
    /// The index of the function's argument that the role refers to.
    pub of: Option<usize>,
}

/// Numbers of operations in the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCounts {
    /// In the function.
    pub primal: usize,
    /// In the derivative.
    pub derivative: usize,
}

/// Estimated numbers of executed operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DynamicOps {
    /// Of the function.
    pub primal: f64,
    /// Of the derivative.
    pub derivative: f64,
}

/// A loop that the reverse pass runs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecomputedLoop {
    /// The loop.
    pub location: Option<Location>,
    /// True if the forward pass omits the loop.
    pub omitted_in_forward_pass: bool,
}

/// A parallel loop of the reverse pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReverseLoop {
    /// The loop; `None` for a function that parallel iterations call.
    pub location: Option<Location>,
    /// True if the iterations run concurrently.
    pub parallel: bool,
    /// Additions to adjoints in shared memory.
    pub additions: Vec<Additions>,
    /// The number of adjoints summed by reduction.
    pub reductions: usize,
}

/// Additions to adjoints, of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Additions {
    /// The kind.
    pub kind: AdditionKind,
    /// The source line of each addition.
    pub lines: Vec<u32>,
}

/// A kind of additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdditionKind {
    /// No other iteration adds to the same address.
    Plain,
    /// Atomic.
    Atomic,
    /// Into a copy per chunk, or atomic, by a check at run time.
    Privatised,
    /// Even chunks, then odd chunks, or atomic, by a check at run time.
    TwoPhase,
}

/// A size in bytes. Lengths that only the run knows stay factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapeSize {
    /// The number of bytes; `None` if a length is unknown.
    pub bytes: Option<f64>,
    /// The terms of the sum, one for each product of unknown lengths.
    pub terms: Vec<TapeTerm>,
}

/// A product of bytes and unknown lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapeTerm {
    /// The bytes for one iteration of all loops of unknown length.
    pub bytes: f64,
    /// The unknown lengths in the program's terms, outermost first.
    pub lengths: Vec<String>,
}

/// The tape of a derivative.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    /// The number of bytes; `None` if a length is unknown.
    pub bytes: Option<f64>,
    /// The terms of the size, one for each product of unknown lengths.
    pub terms: Vec<TapeTerm>,
    /// The saved values. The most expensive line comes first, and within a line the most expensive value.
    pub rows: Vec<TapeRow>,
}

/// Saved values of one line that differ only by an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapeRow {
    /// The definition of the values.
    pub location: Option<Location>,
    /// The value.
    pub value: String,
    /// The number of such values.
    pub count: usize,
    /// The bytes of one save of one value.
    pub bytes: u64,
    /// The loops that multiply the saves, outermost first.
    pub loops: Vec<TapeLoop>,
    /// Bytes of a save and trip counts as text.
    pub formula: String,
    /// The bytes of all saves of all `count` values; `None` if a trip count is unknown.
    pub total_bytes: Option<f64>,
    /// The storage: `slot`, `array` or `frame`.
    pub storage: String,
    /// The kind of reason for saving.
    pub reason: SaveReason,
    /// The reason as text.
    pub why: String,
    /// The place that overwrites or frees the memory.
    pub clobber: Option<Location>,
    /// A change of the program that avoids the save, if one is known.
    pub remedy: Option<String>,
}

/// A loop that multiplies the saves of a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapeLoop {
    /// The loop; `None` for the length of an array.
    pub location: Option<Location>,
    /// The trip count in the program's terms.
    pub trips: String,
    /// The trip count; `None` if only the run knows.
    pub count: Option<f64>,
}

/// Cost and activity of a source line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineReport {
    /// The file of the user.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The estimated number of executed operations.
    pub dynamic_ops: DynamicOps,
    /// The number of active float values.
    pub active_floats: usize,
    /// The number of float values.
    pub floats: usize,
    /// The tape that values of the line occupy.
    pub tape: TapeSize,
}

/// A parallel region, or a construct outside of all regions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionReport {
    /// The function.
    pub function: String,
    /// The start of the region.
    pub location: Option<Location>,
    /// The kind of outcome.
    pub outcome: RegionOutcome,
    /// The outcome as text.
    pub text: String,
    /// The constructs in the region.
    pub constructs: Vec<ConstructReport>,
}

/// The outcome of a parallel region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionOutcome {
    /// Parallel loops and tasks.
    Loops,
    /// A team of ranks.
    Team,
    /// Constructs in a function called by regions.
    Orphan,
    /// Worksharing of the calling team.
    LeftToCaller,
    /// Serial code.
    Serial,
    /// The region stays with its compiler's runtime library.
    NotRaised,
}

/// A construct of a parallel region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstructReport {
    /// The name of the construct.
    pub name: String,
    /// The place.
    pub location: Option<Location>,
    /// The decisions on the construct's loops.
    pub decisions: Vec<LoopDecision>,
}

/// A decision on a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDecision {
    /// The kind.
    pub kind: DecisionKind,
    /// The decision as text.
    pub text: String,
}

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Code was hoisted out of the loop, or deleted.
    Simplified,
    /// The loop was fused with another loop.
    Fused,
    /// The loop was interchanged with an inner loop.
    Interchanged,
    /// The condition under which the loop forks.
    Fork,
}

/// A kernel. Copies with equal outcomes share a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelReport {
    /// The launches.
    pub launches: Vec<String>,
    /// The file of the code; `None` without lines.
    pub file: Option<String>,
    /// The first line of the code; 0 if unknown.
    pub first_line: u32,
    /// The last line of the code; 0 if unknown.
    pub last_line: u32,
    /// Lines of launches fused with this one, if the run-time checks pass.
    pub fused_launches: Vec<u32>,
    /// Lines of removed barriers.
    pub removed_barriers: Vec<u32>,
    /// The remaining barriers.
    pub barriers: Vec<BarrierReport>,
    /// Bytes per thread of private arrays that live across a barrier.
    pub private_array_bytes: u64,
    /// Lines of divergent branches and loops around barriers.
    pub divergent_lines: Vec<u32>,
    /// Lines of loops interchanged with the loop over the threads.
    pub interchanged_loops: Vec<u32>,
    /// The vectoriser's remarks.
    pub vectorizer: Vec<VectorizerRemark>,
}

/// A barrier of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierReport {
    /// The line; 0 if unknown.
    pub line: u32,
    /// True if the barrier synchronises a warp.
    pub warp: bool,
    /// The number of values saved per thread.
    pub saved: usize,
    /// The bytes saved per thread.
    pub bytes: u64,
    /// The number of values recomputed after the barrier.
    pub recomputed: usize,
}

/// A remark of LLVM's loop vectoriser.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VectorizerRemark {
    /// The line.
    pub line: u32,
    /// The remark.
    pub text: String,
}

/// The factor for an unknown length in comparisons of sizes.
const UNKNOWN_LENGTH_WEIGHT: f64 = 1000.0;

impl Default for TapeSize {
    /// The size of no values.
    fn default() -> TapeSize {
        TapeSize {
            bytes: Some(0.0),
            terms: Vec::new(),
        }
    }
}

impl TapeSize {
    /// Adds the saves of a row.
    pub fn add_row(&mut self, row: &TapeRow) {
        let known = row.loops.iter().filter_map(|one| one.count);
        let unknown = row.loops.iter().filter(|one| one.count.is_none());
        let bytes = known.fold(row.bytes as f64 * row.count as f64, |bytes, count| {
            bytes * count
        });
        self.add_term(bytes, unknown.map(|one| one.trips.clone()).collect());
    }

    /// Adds another size.
    pub fn add(&mut self, other: &TapeSize) {
        for term in &other.terms {
            self.add_term(term.bytes, term.lengths.clone());
        }
    }

    fn add_term(&mut self, bytes: f64, lengths: Vec<String>) {
        self.bytes = self
            .bytes
            .filter(|_| lengths.is_empty())
            .map(|sum| sum + bytes);
        match self.terms.iter_mut().find(|term| term.lengths == lengths) {
            Some(term) => term.bytes += bytes,
            None => self.terms.push(TapeTerm { bytes, lengths }),
        }
        self.terms.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    }

    /// Returns true if nothing is saved.
    pub fn is_zero(&self) -> bool {
        self.terms.iter().all(|term| term.bytes == 0.0)
    }

    /// Returns a number that orders sizes, with equal unknown lengths. The number is a guess, and is never shown.
    pub fn weight(&self) -> f64 {
        self.terms
            .iter()
            .map(TapeTerm::weight)
            .fold(0.0, |sum, weight| sum + weight)
    }
}

impl TapeTerm {
    fn weight(&self) -> f64 {
        self.bytes * UNKNOWN_LENGTH_WEIGHT.powi(self.lengths.len() as i32)
    }
}

impl Tape {
    /// Returns the size of all rows.
    pub fn size(&self) -> TapeSize {
        TapeSize {
            bytes: self.bytes,
            terms: self.terms.clone(),
        }
    }
}

impl TapeRow {
    /// Returns the size of all saves.
    pub fn size(&self) -> TapeSize {
        let mut size = TapeSize::default();
        size.add_row(self);
        size
    }
}

impl Location {
    /// Returns the place in the user's code.
    pub fn of_user(&self) -> &Location {
        self.called_at.as_deref().unwrap_or(self)
    }

    /// Returns the place as a span of a diagnostic.
    pub fn span(&self) -> SourceSpan {
        SourceSpan {
            file: self.file.clone(),
            line: self.line,
            column: self.column,
            called_at: self.called_at.as_ref().map(|at| Box::new(at.span())),
        }
    }
}

impl Report {
    /// Appends the report on another module.
    pub fn append(&mut self, other: Report) {
        self.derivatives.extend(other.derivatives);
        self.parallel_regions.extend(other.parallel_regions);
        self.kernels.extend(other.kernels);
    }

    /// Returns true if the report has no content.
    pub fn is_empty(&self) -> bool {
        self.derivatives.is_empty() && self.parallel_regions.is_empty() && self.kernels.is_empty()
    }
}
