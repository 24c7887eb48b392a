//! What the pipeline is asked: modules, a task, what to emit, options.

use gradus_ir::Code;
use serde::{Deserialize, Serialize};

/// One run of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The modules of the program, linked in this order into one.
    pub inputs: Vec<Input>,
    /// What to do with it.
    pub task: Task,
    /// The user's optimisation level: that of the late pipeline and of the code generator.
    pub level: Level,
    /// What to emit, in this order; nothing is emitted when the request is refused.
    pub emit: Vec<OutputKind>,
    /// Everything else.
    pub options: Options,
}

/// A module's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The name that messages use.
    pub name: String,
    /// Bitcode, textual LLVM IR, or an object that carries bitcode.
    pub bytes: Vec<u8>,
}

/// What to do with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Lists its functions ([`crate::Reply::functions`]).
    #[default]
    List,
    /// Adds derivatives of named functions (`gradus grad`, `gradus check`).
    Grad(GradTask),
    /// Replaces the calls that ask for derivatives (`gradus cc`). A program without such calls goes
    /// through the late pipeline only, as with the user's own compiler.
    Calls(CallsTask),
    /// Sends every function through the language and back, then does as [`Task::Calls`] with a
    /// program without calls. Functions that stay untouched are listed as notes.
    RestructureAll,
}

/// Derivatives of named functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradTask {
    /// The derivatives wanted.
    pub derivatives: Vec<GradRequest>,
    /// Emits the derivatives and what they need only, to be linked beside the user's own object;
    /// refused where that would duplicate static state.
    pub beside: bool,
}

/// One derivative of a named function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradRequest {
    /// The function, by its symbol or by its name in the source.
    pub function: String,
    /// The arguments to differentiate with respect to: names, or positions from 0. Empty: every
    /// argument that can carry a derivative. Further pointers that the function writes through get
    /// shadows too, since active values may be left there, unless they stand in `inactive`.
    pub wrt: Vec<String>,
    /// Arguments that are inactive whatever the function does with them.
    pub inactive: Vec<String>,
    /// Forward or reverse.
    pub mode: Mode,
    /// The number of tangents or cotangents that go along at once; 0 counts as 1.
    pub width: u32,
    /// Whether the derivative gives the function's own result too.
    pub with_primal: bool,
    /// The symbol of the derivative; by default `f_jvp` or `f_vjp`.
    pub name: Option<String>,
}

/// Calls that ask for derivatives, inside bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsTask {
    /// Whether unresolved active callees are notes (`-c`: another file may define them) and not
    /// errors. The calls concerned stay in the output.
    pub partial: bool,
    /// What parts of the program define that are not seen here, where all its parts are known.
    pub elsewhere: Vec<String>,
}

/// The direction of differentiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// JVP: tangents go along with the program.
    Forward,
    /// VJP: adjoints flow back.
    #[default]
    Reverse,
}

/// A level of LLVM's optimiser. `-Os` and `-Oz` are `O2`; their attributes stand on the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Level {
    O0,
    O1,
    #[default]
    O2,
    O3,
}

/// A form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OutputKind {
    /// A relocatable object.
    Object,
    /// LLVM bitcode, after the late pipeline.
    Bitcode,
    /// Textual LLVM IR, after the late pipeline.
    LlvmText,
    /// Assembly.
    Assembly,
    /// The text form of the derivatives' bodies, before they go back to LLVM.
    Gir,
    /// A C header with the derivatives' prototypes and contracts.
    Header,
    /// The report: what is active, what the tape keeps and why, operation counts.
    Report,
    /// What became of every parallel region, by source line.
    ParallelReport,
    /// What became of every kernel: barriers, what crosses them, loops.
    KernelReport,
}

/// What parallel regions become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParallelTarget {
    /// Calls of the run-time library, which has threads of its own unless a link has regions of OpenMP's.
    #[default]
    Runtime,
    /// Calls of the run-time library, whose work is done by the threads of OpenMP's.
    OpenMp,
    /// The words of `gradus/parallel.h` in LLVM's IR, to be compiled again.
    Words,
}

/// A diagnostic that is an error unless the user allows it. Allowed, it is a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allowance {
    /// Numbers that matter go through text or a file, where their derivatives end.
    TextRoundTrip,
}

impl Allowance {
    /// All allowances.
    pub const ALL: &[Allowance] = &[Allowance::TextRoundTrip];
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Allowance::TextRoundTrip => "text-round-trip",
        }
    }
    /// Returns the code of the diagnostic that is allowed.
    pub fn code(self) -> Code {
        match self {
            Allowance::TextRoundTrip => Code::TextRoundTrip,
        }
    }
}

/// How the pipeline works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Makes all adjoint products strong: zero times anything is zero.
    pub strong_zero: bool,
    /// The diagnostics that are warnings and no errors.
    pub allowed: Vec<Allowance>,
    /// Runs the verifiers after every pass; they always run on what goes back to LLVM.
    pub verify_each: bool,
    /// Gives the program's text after passes of these names ([`crate::PASSES`]; `all` for all).
    pub dump_after: Vec<String>,
    /// True if other files can call the functions whose derivatives are requested by name, by their symbols,
    /// `static` ones too.
    pub callable_primals: bool,
    /// Leaves out the early LLVM pipeline: the input is imported as it is.
    pub skip_early: bool,
    /// Leaves out the late LLVM pipeline: a compiler of the same LLVM goes on from the bitcode.
    pub skip_late: bool,
    /// Raises the program's parallel regions, optimises across them, and lowers them to our own
    /// run-time library.
    pub parallel: bool,
    /// With `parallel`: what its parallel regions become.
    pub target: ParallelTarget,
    /// With `parallel`: results have the same bits for any number of workers.
    pub deterministic: bool,
    /// Drops debug information from the output: it was asked of the compiler for messages and
    /// reports only.
    pub strip_debug: bool,
    /// The GPU's half of the only input, as LLVM's text: kernels and device functions, which become code
    /// of this machine.
    pub device: Option<Input>,
    /// Whether other translation units may use its device functions and variables.
    pub separate: bool,
    /// Adds that meet take other forms than atomic ones however few they are, for tests: else only where it pays.
    pub few_adds: bool,
    /// The switches of differentiation, by name, that are off (`snapshots`, `replay` …).
    pub off: Vec<String>,
}

impl Request {
    /// Whether derivatives by name go out as LLVM's IR, to be differentiated again.
    pub(crate) fn may_be_read_again(&self) -> bool {
        let again = |kind: &OutputKind| matches!(kind, OutputKind::Bitcode | OutputKind::LlvmText);
        matches!(self.task, Task::Grad(_)) && self.emit.iter().any(again)
    }
}

impl Input {
    /// A module's bytes under a name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Input {
            name: name.into(),
            bytes: bytes.into(),
        }
    }
}

impl From<Level> for gradus_llvm::OptLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::O0 => gradus_llvm::OptLevel::O0,
            Level::O1 => gradus_llvm::OptLevel::O1,
            Level::O2 => gradus_llvm::OptLevel::O2,
            Level::O3 => gradus_llvm::OptLevel::O3,
        }
    }
}
