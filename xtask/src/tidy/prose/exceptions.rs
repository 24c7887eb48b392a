//! Present figures of units beyond a limit of prose. Each figure is lowered until its limit holds.

use super::limits::{Exception, Figure};

/// Returns a row of [`EXCEPTIONS`].
const fn row(unit: &'static str, figure: Figure, value: f64) -> Exception {
    Exception {
        unit,
        figure,
        value,
    }
}

/// Exceptions from the limits.
// table
pub const EXCEPTIONS: &[Exception] = &[
    row("docs/derivatives.md", Figure::Openings, 33.3),
    row("docs/interface-words.md", Figure::Pronouns, 103.4),
];
