//! Internal errors (GRD0024): reports of states that the compiler holds to be impossible.
//!
//! In an impossible state the compiler cannot know whether the derivative or the generated program is still
//! correct. The code reports the state with [`ice!`](crate::ice) and continues with a placeholder; the
//! request is then refused. Code without access to diagnostics calls `unreachable!` with a reason: the
//! compiling process dies, and the parent process reports GRD0024.

use crate::{Body, Code, Diagnostic, Op, Unit};
use std::panic::Location;

/// Returns an internal error at an op of `body`: GRD0024 with the op, the op's source line and the position
/// in the compiler's source.
///
/// The macro [`ice!`](crate::ice) formats the reason and calls this function.
#[must_use]
#[track_caller]
pub fn internal_error(
    unit: &Unit,
    body: &Body,
    op: Option<Op>,
    reason: impl Into<String>,
) -> Diagnostic {
    let place = Location::caller();
    let message = format!("internal error: {}", reason.into());
    let mut error = Diagnostic::error(Code::CompilerDied, message);
    if let Some(op) = op {
        let mnemonic = body.kind(op).row().mnemonic;
        error = error.at(
            unit.span(body.ops[op].loc),
            format!("the compiler was processing this `{mnemonic}`"),
        );
        error = error.note(format!("the op is {op:?}, a `{mnemonic}`"));
    }
    error
        .note(format!("raised in {}:{}", place.file(), place.line()))
        .help("this is a bug in Gradus: please report this message with the program")
}

/// Creates an internal error: `ice!(unit, body, op, "reason {}", …)` with `op` of type `Option<Op>`. See
/// [`internal_error`].
#[macro_export]
macro_rules! ice {
    ($unit:expr, $body:expr, $op:expr, $($reason:tt)+) => {
        $crate::internal_error($unit, $body, $op, format!($($reason)+))
    };
}

#[cfg(test)]
mod tests {
    use crate::{Code, Unit};

    #[test]
    fn an_internal_error_names_reason_op_and_place() {
        let text = "func @f(%x: f64) -> f64 {\n  %y = fadd %x, %x\n  return %y\n}\n";
        let unit: Unit = crate::parse(text, "f.gir").expect("the text is well formed");
        let func = unit.function("f").expect("the function is defined");
        let body = unit.functions[func].body.as_ref().expect("it has a body");
        let op = body.walk(body.root()).next();
        let error = ice!(&unit, body, op, "the stack of {} is empty", "merges");
        assert_eq!(error.code, Code::CompilerDied);
        assert_eq!(
            error.message,
            "internal error: the stack of merges is empty"
        );
        assert!(error.notes[0].contains("the op is"), "{:?}", error.notes);
        assert!(
            error.notes[1].contains("internal_error.rs"),
            "{:?}",
            error.notes
        );
    }
}
