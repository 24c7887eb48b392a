//! Diagnostics: code, severity, message, source labels, notes and help.

use std::fmt;

/// A position in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceSpan {
    /// The file name, as passed to the compiler.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1; 0 if unknown.
    pub column: u32,
    /// For a span in system or compiler code: the nearest user-code call site of the inlining chain.
    pub called_at: Option<Box<SourceSpan>>,
}

impl SourceSpan {
    /// Returns whether the file belongs to the compiler or the system (headers of a standard library, for
    /// instance).
    pub fn is_in_system_code(&self) -> bool {
        const OF_SYSTEM: [&str; 3] = ["/include/c++/", "/lib/clang/", "/rustc/"];
        self.file.starts_with("/usr/") || OF_SYSTEM.iter().any(|part| self.file.contains(part))
    }
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Information.
    Note,
    /// Probably a mistake.
    Warning,
    /// The request is refused.
    Error,
}

/// A source span with an explanatory text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The span.
    pub span: SourceSpan,
    /// The text for the span.
    pub text: String,
}

/// A diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The diagnostic's code; `gradus explain` prints the full page.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// The function concerned, by source name.
    pub function: Option<String>,
    /// Source spans; the first is the primary span.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// A remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error with code `code`.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            function: None,
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }
    /// Creates a warning with code `code`.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }
    /// Sets the function concerned.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> Self {
        self.function = Some(name.into());
        self
    }
    /// Adds a label at `span`, if known, and a second label at the user's call site (`called_at`).
    #[must_use]
    pub fn at(mut self, span: Option<SourceSpan>, text: impl Into<String>) -> Self {
        let Some(mut span) = span else {
            return self;
        };
        let called_at = span.called_at.take();
        let text = text.into();
        self.labels.push(Label { span, text });
        self.labels.extend(called_at.map(|span| Label {
            span: *span,
            text: "called from here".into(),
        }));
        self
    }
    /// Adds a note.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
    /// Sets the remedy.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.number(), self.message)?;
        if let Some(label) = self.labels.first() {
            write!(f, " ({}:{})", label.span.file, label.span.line)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

macro_rules! codes {
    ($dollar:tt $($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// The diagnostic codes; each code has a page under `docs/diagnostics/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// All codes, in numerical order.
            pub const ALL: &[Code] = &[$(Code::$name),*];
            /// The printed code, `GRD0001` …
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => concat!("GRD", $number)),* }
            }
        }

        /// Expands `$then!` with the digits of all codes, as literals, for tables with one row per code.
        #[macro_export]
        macro_rules! with_code_digits {
            ($dollar then:ident) => { $dollar then! { $($number),* } };
        }
    };
}

codes! { $
    /// The input is not a readable program.
    UnreadableInput = "0001",
    /// The requested function is not in the input.
    NoSuchFunction = "0002",
    /// A request names an argument that does not exist.
    NoSuchArgument = "0003",
    /// Import cannot represent a function's control flow or contents in the IR.
    NotImportable = "0004",
    /// An external function without a known derivative operates on active values.
    UnknownCallee = "0005",
    /// An op without a derivative operates on active values.
    NoDerivative = "0006",
    /// Copied bytes have an undetermined type (float, pointer or integer).
    UnknownMemoryType = "0007",
    /// Integer arithmetic on the bits of an active floating-point number.
    FloatBits = "0008",
    /// A mutable global without a visible definition receives active values.
    ExternalGlobal = "0009",
    /// A thread-local global receives active values.
    ThreadLocalGlobal = "0010",
    /// OpenMP on an active path.
    OpenMp = "0011",
    /// MPI on an active path.
    Mpi = "0012",
    /// CUDA or another GPU language on an active path.
    Gpu = "0013",
    /// Split mode (augmented primal and reverse pass as separate calls by the user).
    SplitMode = "0014",
    /// Inline assembly operates on active values.
    InlineAssembly = "0015",
    /// `setjmp`, coroutines or strict floating-point mode on an active path.
    UnsupportedControl = "0016",
    /// The arguments of a differentiation call do not match the function.
    BadRequest = "0017",
    /// An indirect call with unknown targets operates on active values.
    UnknownIndirectTarget = "0018",
    /// The requested derivative is zero: no active input reaches an active output.
    ZeroDerivative = "0019",
    /// An exception may cross active memory writes.
    Exceptions = "0020",
    /// `--beside` would duplicate static state.
    StaticState = "0021",
    /// The user's compiler or a linker failed.
    ToolFailed = "0022",
    /// A file could not be read or written.
    FileAccess = "0023",
    /// The compiling process died, or an internal error occurred: a fault of Gradus.
    CompilerDied = "0024",
    /// The produced module breaks LLVM's rules: a fault of Gradus.
    BrokenOutput = "0025",
    /// A limit of time or memory is exhausted.
    LimitReached = "0026",
    /// A check requires different or more input values.
    MissingCheckInput = "0027",
    /// A derivative does not agree with its check.
    CheckFailed = "0028",
    /// The text form of a body does not parse.
    BadText = "0029",
    /// A body breaks a rule of the verifier.
    BrokenRule = "0030",
    /// An atomic or volatile access operates on active values.
    AtomicAccess = "0031",
    /// A floating-point format whose derivative is not supported.
    FloatFormat = "0032",
    /// Memory that carries derivatives outlives the call in a global variable.
    Outlives = "0033",
    /// Variadic arguments carry active values.
    Variadic = "0034",
    /// A command-line option does not exist or does not apply.
    BadOption = "0035",
    /// A parallel region is not recognised and remains unchanged.
    ParallelNotRaised = "0036",
    /// A GPU kernel that cannot become loops.
    KernelRefused = "0037",
    /// A derivative is not finite at a point with a finite function value.
    NotFinite = "0038",
    /// A keyword of the call interface is not supported.
    UnsupportedKeyword = "0039",
    /// An active number passes through text or a file.
    TextRoundTrip = "0040",
}
