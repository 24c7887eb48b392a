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
    row("docs/diagnostics/GRD0001.md", Figure::Pronouns, 117.0),
    row("docs/diagnostics/GRD0002.md", Figure::Pronouns, 100.0),
    row("docs/diagnostics/GRD0003.md", Figure::Openings, 25.0),
    row("docs/diagnostics/GRD0004.md", Figure::Pronouns, 94.3),
    row("docs/diagnostics/GRD0005.md", Figure::Openings, 18.8),
    row("docs/diagnostics/GRD0005.md", Figure::Pronouns, 152.7),
    row("docs/diagnostics/GRD0006.md", Figure::Pronouns, 133.3),
    row("docs/diagnostics/GRD0007.md", Figure::Openings, 10.0),
    row("docs/diagnostics/GRD0007.md", Figure::Pronouns, 145.8),
    row("docs/diagnostics/GRD0008.md", Figure::Openings, 20.0),
    row("docs/diagnostics/GRD0011.md", Figure::Openings, 25.0),
    row("docs/diagnostics/GRD0011.md", Figure::Pronouns, 177.3),
    row("docs/diagnostics/GRD0013.md", Figure::Pronouns, 108.7),
    row("docs/diagnostics/GRD0014.md", Figure::Pronouns, 103.3),
    row("docs/diagnostics/GRD0015.md", Figure::Openings, 50.0),
    row("docs/diagnostics/GRD0017.md", Figure::Pronouns, 71.4),
    row("docs/diagnostics/GRD0018.md", Figure::Pronouns, 135.5),
    row("docs/diagnostics/GRD0019.md", Figure::Pronouns, 109.5),
    row("docs/diagnostics/GRD0020.md", Figure::Pronouns, 150.0),
    row("docs/diagnostics/GRD0021.md", Figure::Pronouns, 85.4),
    row("docs/diagnostics/GRD0022.md", Figure::Pronouns, 120.7),
    row("docs/diagnostics/GRD0024.md", Figure::Pronouns, 107.1),
    row("docs/diagnostics/GRD0026.md", Figure::Pronouns, 74.5),
    row("docs/diagnostics/GRD0028.md", Figure::Pronouns, 91.8),
    row("docs/diagnostics/GRD0031.md", Figure::Pronouns, 162.8),
    row("docs/diagnostics/GRD0033.md", Figure::Openings, 9.5),
    row("docs/diagnostics/GRD0033.md", Figure::Pronouns, 135.5),
    row("docs/diagnostics/GRD0036.md", Figure::Openings, 25.0),
    row("docs/diagnostics/GRD0036.md", Figure::Pronouns, 144.0),
    row("docs/diagnostics/GRD0037.md", Figure::Openings, 15.4),
    row("docs/diagnostics/GRD0037.md", Figure::Pronouns, 140.7),
    row("docs/diagnostics/GRD0038.md", Figure::Pronouns, 110.3),
    row("docs/diagnostics/GRD0040.md", Figure::Pronouns, 79.8),
];
