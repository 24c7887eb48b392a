//! Traps: run-time errors as data.

use gradus_ir::SourceSpan;
use std::fmt;

/// The kinds of traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapKind {
    /// An access outside the bounds of the address's object.
    OutOfBounds,
    /// An access through null or an address of no object.
    BadAddress,
    /// An access to freed memory or to a stack object of a returned function.
    UseAfterFree,
    /// An access that violates the stated alignment.
    Misaligned,
    /// A write to constant memory or to a function.
    ReadOnly,
    /// Control flow, an address or another operand requires a defined value, but the value is undefined or
    /// poison.
    Undefined,
    /// An integer division by zero or with overflow.
    Division,
    /// `unreachable` was executed, or an assumption is false.
    Unreachable,
    /// Free of a block that was never allocated or was already freed.
    BadFree,
    /// A call of an address that is no function, or with mismatched arguments.
    BadCall,
    /// An uncaught exception.
    Uncaught,
    /// The program ended itself; the payload is the exit status.
    Exit(i32),
    /// The program called `abort`, or an assertion failed.
    Abort,
    /// A data race between concurrent strands; detected with [`crate::Options::races`] only.
    Race,
    /// A transition between regions without a control edge, or with other values: a fault of the IR's table of
    /// edges. Detected with [`crate::Options::check_edges`] only.
    ControlEdge,
    /// An operation without an implementation in the interpreter.
    Unsupported,
    /// The limit of steps, memory or call depth is exhausted.
    Limit,
}

/// The premature end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind.
    pub kind: TrapKind,
    /// One sentence without a full stop.
    pub message: String,
    /// The running function.
    pub function: String,
    /// The text of the op.
    pub op: String,
    /// The op's source span, if known.
    pub span: Option<SourceSpan>,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}: {} in `{}`",
            self.kind, self.message, self.function
        )?;
        if let Some(span) = &self.span {
            write!(f, " ({}:{})", span.file, span.line)?;
        }
        if !self.op.is_empty() {
            write!(f, ": {}", self.op)?;
        }
        Ok(())
    }
}

impl std::error::Error for Trap {}

/// A trap without a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub kind: TrapKind,
    pub message: String,
}

pub(crate) type Eval<T> = Result<T, Fault>;

/// Returns a fault of `kind`.
pub(crate) fn fault<T>(kind: TrapKind, message: impl Into<String>) -> Eval<T> {
    Err(Fault {
        kind,
        message: message.into(),
    })
}
