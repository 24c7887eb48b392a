//! Verdict on the derivatives of a generated program.
//!
//! `compiled_module.rs` reports refusals and crashes; `oracle/` judges derivatives.

/// The verdict on a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The derivatives are right.
    Right,
    /// The derivatives are right, but at this point a path is taken that is taken only there.
    Isolated(String),
    /// The derivatives are right, but at this point the program oscillates within any step of finite
    /// differences.
    Oscillating(String),
    /// The program is refused.
    Refused {
        /// The diagnostic's code.
        code: String,
        /// The message and the source line.
        place: String,
    },
    /// A derivative is wrong; the disagreement.
    Wrong(String),
    /// A crash or an internal error.
    Crash(String),
}

impl Verdict {
    /// Returns the verdict on a program with derivatives.
    pub(crate) fn of(found: Result<Verdict, String>) -> Verdict {
        found.unwrap_or_else(Verdict::Wrong)
    }
}
