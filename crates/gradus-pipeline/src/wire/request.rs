//! A request to the pipeline: modules, a task, outputs, options.

use gradus_ir::Code;
use serde::{Deserialize, Serialize};

/// A run of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The modules of the program, linked in this order into one.
    pub inputs: Vec<Input>,
    /// The task.
    pub task: Task,
    /// The user's optimisation level, for the late pipeline and the code generator.
    pub level: Level,
    /// The outputs, in order; a refused request has none.
    pub emit: Vec<OutputKind>,
    /// True to return the report ([`crate::Reply::report`]).
    pub report: bool,
    /// All further options.
    pub options: Options,
}

/// A module's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The name for diagnostics.
    pub name: String,
    /// Bitcode, textual LLVM IR, or an object that carries bitcode.
    pub bytes: Vec<u8>,
}

/// The task on the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Lists the functions ([`crate::Reply::functions`]).
    #[default]
    List,
    /// Adds derivatives of named functions (`gradus grad`, `gradus check`).
    Grad(GradTask),
    /// Replaces differentiation calls (`gradus cc`). A program without differentiation calls goes through
    /// the late pipeline only, as with the user's own compiler.
    Calls(CallsTask),
    /// Imports and exports every function, then proceeds like [`Task::Calls`] for a program without calls.
    /// Functions that could not be imported are listed as notes.
    RestructureAll,
}

/// Derivatives of named functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradTask {
    /// The requested derivatives.
    pub derivatives: Vec<GradRequest>,
    /// Emits only the derivatives and their private dependencies, to be linked with the user's own object;
    /// refused if static state would be duplicated.
    pub beside: bool,
}

/// A derivative of a named function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradRequest {
    /// The function, by symbol or by name in the source.
    pub function: String,
    /// The arguments to differentiate with respect to: names, or positions from 0. Empty: every argument
    /// that can carry a derivative. Further pointers written through by the function get shadows too, since
    /// active values may be stored there, unless listed in `inactive`.
    pub wrt: Vec<String>,
    /// Arguments declared inactive.
    pub inactive: Vec<String>,
    /// The mode.
    pub mode: Mode,
    /// The number of simultaneous tangents or cotangents; 0 counts as 1.
    pub width: u32,
    /// True if the derivative returns the primal result too.
    pub with_primal: bool,
    /// The symbol of the derivative; the default is `f_jvp`, `f_vjp` or `f_dep`.
    pub name: Option<String>,
}

/// Differentiation calls inside bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsTask {
    /// True if unresolved active callees are notes (`-c`: another file may define them) and not errors. The
    /// affected calls stay in the output.
    pub partial: bool,
    /// Symbols defined by unseen parts of the program, if all parts are known.
    pub elsewhere: Vec<String>,
    /// Symbols in the other objects and libraries of an executable. All other definitions of the inputs are the
    /// program's own. `None` if other code may use any definition.
    pub needed_outside: Option<Vec<String>>,
}

/// The mode of differentiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// JVP: tangents are propagated along with the program.
    Forward,
    /// VJP: adjoints are propagated backwards.
    #[default]
    Reverse,
    /// Dependency sets: the inputs on which each output depends, as bits of a float.
    Dependencies,
}

/// A level of LLVM's optimiser. `-Os` and `-Oz` are `O2` plus attributes on the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Level {
    O0,
    O1,
    #[default]
    O2,
    O3,
}

/// A form of output.
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
    /// The text form of the derivatives' bodies, before export to LLVM.
    Gir,
    /// A C header with the derivatives' prototypes and contracts.
    Header,
}

/// The target of lowering for parallel regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParallelTarget {
    /// Calls of the runtime library, with a thread pool of its own unless OpenMP regions are linked.
    #[default]
    Runtime,
    /// Calls of the runtime library, executed by OpenMP's threads.
    OpenMp,
    /// The parallel intrinsics of `gradus/parallel.h` in LLVM IR, to be compiled again.
    Intrinsics,
}

/// A diagnostic that is an error unless allowed by the user. An allowed diagnostic is a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allowance {
    /// Active values pass through text or a file, where derivatives end.
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

/// The options of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Makes all adjoint products strong: zero times anything is zero.
    pub strong_zero: bool,
    /// The allowed diagnostics: warnings instead of errors.
    pub allowed: Vec<Allowance>,
    /// Runs the verifiers after every pass; exported functions are always verified.
    pub verify_each: bool,
    /// Returns the program's text after the named passes (`docs/reference/passes.md`; `all` for all).
    pub dump_after: Vec<String>,
    /// True if other files can call the functions requested by name, including `static` functions, by their
    /// symbols.
    pub callable_primals: bool,
    /// Skips the early LLVM pipeline: the input is imported unchanged.
    pub skip_early: bool,
    /// Skips the late LLVM pipeline: a compiler based on an equal LLVM continues from the bitcode.
    pub skip_late: bool,
    /// Raises the program's parallel regions, optimises across them, and lowers them to Gradus's runtime
    /// library.
    pub parallel: bool,
    /// With `parallel`: the target of lowering.
    pub target: ParallelTarget,
    /// With `parallel`: results are bitwise independent of the number of workers.
    pub deterministic: bool,
    /// Strips debug information from the output; the compiler emitted it for diagnostics and reports only.
    pub strip_debug: bool,
    /// The GPU half of the only input, as LLVM text: kernels and device functions, to be compiled for the
    /// host.
    pub device: Option<Input>,
    /// True if other translation units may use the device functions and variables.
    pub separate: bool,
    /// For a whole Rust program: the Rust symbols that code outside of the modules uses. All other Rust symbols become
    /// internal.
    pub whole_program: Option<Vec<String>>,
    /// Replaces conflicting atomic adds by other forms regardless of their number, for tests; the default
    /// applies a profitability threshold.
    pub few_adds: bool,
    /// The disabled switches of differentiation, by name (`snapshots`, `replay` …).
    pub off: Vec<String>,
}

impl Request {
    /// Returns true if derivatives requested by name are emitted as LLVM IR, and may be differentiated
    /// again.
    pub(crate) fn may_be_read_again(&self) -> bool {
        let again = |kind: &OutputKind| matches!(kind, OutputKind::Bitcode | OutputKind::LlvmText);
        matches!(self.task, Task::Grad(_)) && self.emit.iter().any(again)
    }
}

impl Input {
    /// Returns a module's bytes under a name.
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
