//! Diagnostics: what could not be done, where in the user's source, and what to do about it.

use std::fmt;

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceSpan {
    /// The file, as the compiler was given it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1; 0 where unknown.
    pub column: u32,
    /// Where the user's own code comes to it, if it lies in what came with a compiler or the system.
    pub called_at: Option<Box<SourceSpan>>,
}

impl SourceSpan {
    /// Whether it lies in what came with a compiler or the system: the headers of a standard library, say.
    pub fn is_of_system(&self) -> bool {
        const OF_SYSTEM: [&str; 3] = ["/include/c++/", "/lib/clang/", "/rustc/"];
        self.file.starts_with("/usr/") || OF_SYSTEM.iter().any(|part| self.file.contains(part))
    }
}

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Information.
    Note,
    /// Something that is probably not meant.
    Warning,
    /// The request is refused.
    Error,
}

/// A place with a word about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The place.
    pub span: SourceSpan,
    /// What is there.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind; `gradus explain` tells all about it.
    pub code: Code,
    /// How grave it is.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// The function concerned, as the user wrote it.
    pub function: Option<String>,
    /// Places in the source, the primary one first.
    pub labels: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error of kind `code`.
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
    /// A warning of kind `code`.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }
    /// With the function concerned.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> Self {
        self.function = Some(name.into());
        self
    }
    /// With a place, if it is known, and with where the user's own code comes to it.
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
    /// With a further fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }
    /// With a remedy.
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
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// The kinds of findings; each has a page under `docs/diagnostics/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// All codes, in order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name),*];
            /// The code as users see it, `GRD0001` …
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => concat!("GRD", $number)),* }
            }
        }
    };
}

codes! {
    /// The input could not be read as a program.
    UnreadableInput = "0001",
    /// The function asked for is not in the input.
    NoSuchFunction = "0002",
    /// An argument named in a request does not exist.
    NoSuchArgument = "0003",
    /// A function's control flow or contents cannot be brought into the language.
    NotImportable = "0004",
    /// An outside function without a known derivative works on active values.
    UnknownCallee = "0005",
    /// An op without a derivative works on active values.
    NoDerivative = "0006",
    /// Bytes are copied whose type (float, pointer, integer) cannot be told.
    UnknownMemoryType = "0007",
    /// Integer arithmetic on the bits of an active floating-point number.
    FloatBits = "0008",
    /// A mutable global of a file that is not seen takes active values.
    UnseenGlobal = "0009",
    /// A thread-local global takes active values.
    ThreadLocalGlobal = "0010",
    /// OpenMP on an active path.
    OpenMp = "0011",
    /// MPI on an active path.
    Mpi = "0012",
    /// CUDA or another GPU language on an active path.
    Gpu = "0013",
    /// The split interface (augmented forward and reverse calls in the caller's hands).
    SplitMode = "0014",
    /// Inline assembly works on active values.
    InlineAssembly = "0015",
    /// `setjmp`, coroutines or strict floating-point mode on an active path.
    UnsupportedControl = "0016",
    /// A differentiation call whose arguments do not fit the function.
    BadRequest = "0017",
    /// An indirect call whose targets are not known works on active values.
    UnknownTarget = "0018",
    /// The derivative asked for is zero: no active input reaches an active output.
    ZeroDerivative = "0019",
    /// An exception may cross active memory writes.
    Exceptions = "0020",
    /// `--beside` would duplicate static state.
    StaticState = "0021",
    /// The user's compiler or a linker failed.
    ToolFailed = "0022",
    /// A file could not be read or written.
    FileAccess = "0023",
    /// The compiling process died; this is a fault of Gradus.
    CompilerDied = "0024",
    /// The module that was produced breaks LLVM's rules; this is a fault of Gradus.
    BrokenOutput = "0025",
    /// A limit of time or memory was reached.
    LimitReached = "0026",
    /// A check needs other values, or more of them.
    MissingCheckInput = "0027",
    /// A derivative does not agree with its check.
    CheckFailed = "0028",
    /// The text form of a body could not be read.
    BadText = "0029",
    /// A body breaks a rule of the language.
    BrokenRule = "0030",
    /// An atomic or volatile access works on active values.
    AtomicAccess = "0031",
    /// A floating-point format whose derivative is not supported.
    FloatFormat = "0032",
    /// Memory that carries derivatives outlives the call in a global variable.
    Outlives = "0033",
    /// Variadic arguments carry active values.
    Variadic = "0034",
    /// A command-line option that does not exist or does not fit.
    BadOption = "0035",
    /// A parallel region is not understood and stays as it is.
    ParallelKept = "0036",
    /// A GPU kernel that cannot become loops.
    KernelRefused = "0037",
    /// A derivative is not finite where the function itself is.
    NotFinite = "0038",
    /// A word of the call interface that is not honoured.
    UnknownWord = "0039",
    /// A number that matters goes through text or a file.
    TextRoundTrip = "0040",
}
