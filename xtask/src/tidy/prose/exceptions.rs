//! Present figures of units beyond a limit of prose. Each figure is lowered until its limit holds.

use super::limits::{Exception, Figure};

/// Returns a row of [`EXCEPTIONS`].
#[allow(dead_code, reason = "no unit is beyond a limit at present")]
const fn row(unit: &'static str, figure: Figure, value: f64) -> Exception {
    Exception {
        unit,
        figure,
        value,
    }
}

/// Exceptions from the limits.
// table
pub const EXCEPTIONS: &[Exception] = &[];
