//! What goes wrong at run time, as data.

use gradus_ir::SourceSpan;
use std::fmt;

/// The kinds of things that go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapKind {
    /// An access outside the object that the address belongs to.
    OutOfBounds,
    /// An access through null, or an address of nothing.
    BadAddress,
    /// An access to freed memory, or to that of a function that has returned.
    UseAfterFree,
    /// An access at an address that does not have the alignment stated.
    Misaligned,
    /// A write to constant memory or to a function.
    ReadOnly,
    /// Control or an address depends on a value that is unspecified or poison.
    Undefined,
    /// An integer division by zero, or one that overflows.
    Division,
    /// `unreachable` was reached, or an assumption does not hold.
    Unreachable,
    /// A block is freed that was not allocated, or twice.
    BadFree,
    /// A call of what is no function, or with arguments that do not fit.
    BadCall,
    /// An exception that nobody catches.
    Uncaught,
    /// The program ended itself, with this status.
    Exit(i32),
    /// The program called `abort` or a failed assertion ended it.
    Abort,
    /// Two strands that may run at the same time touch one place, and one of them writes: looked for where
    /// [`crate::Options::races`] asks for it.
    Race,
    /// Something that the interpreter does not know how to run.
    Unsupported,
    /// The limit of steps, memory or call depth was reached.
    Limit,
}

/// The end of a run that did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Its kind.
    pub kind: TrapKind,
    /// One sentence without a full stop.
    pub message: String,
    /// The function that was running.
    pub function: String,
    /// The op, as text.
    pub op: String,
    /// Its place in the source, where known.
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

/// What goes wrong, before it is known where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub kind: TrapKind,
    pub message: String,
}

pub(crate) type Eval<T> = Result<T, Fault>;

/// A fault of `kind`.
pub(crate) fn fault<T>(kind: TrapKind, message: impl Into<String>) -> Eval<T> {
    Err(Fault {
        kind,
        message: message.into(),
    })
}
