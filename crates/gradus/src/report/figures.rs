//! Numbers, places and lists as text.

use gradus_pipeline::report::{
    ArgumentReport, ArgumentRole, Location, ResultRole, TapeSize, TapeTerm,
};

/// Formats a count with at most four digits.
pub(super) fn count(number: f64) -> String {
    match number {
        n if n < 1e4 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.0}k", n / 1e3),
        n if n < 1e9 => format!("{:.1}M", n / 1e6),
        n => format!("{n:.1e}"),
    }
}

/// Formats a number of bytes with at most four digits.
pub(super) fn bytes(number: f64) -> String {
    match number {
        1.0 => "1 byte".to_string(),
        n if n < 1e4 => format!("{n:.0} bytes"),
        n if n < 1e6 => format!("{:.0} KB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.1} GB", n / 1e9),
    }
}

/// The number of terms of a size that are shown.
const TERMS_MAX: usize = 3;

/// Formats a size: the largest terms, and the number of other ones.
pub(super) fn size(size: &TapeSize) -> String {
    if let Some(known) = size.bytes {
        return bytes(known);
    }
    let term = |term: &TapeTerm| {
        let lengths = term.lengths.iter().map(|length| format!(" × {length}"));
        bytes(term.bytes) + &lengths.collect::<String>()
    };
    let mut terms: Vec<String> = size.terms.iter().take(TERMS_MAX).map(term).collect();
    let rest = size.terms.len().saturating_sub(TERMS_MAX);
    if rest > 0 {
        terms.push(many(rest, "smaller term"));
    }
    terms.join(" + ")
}

/// Formats the ratio of a derivative's cost to the function's cost, in brackets.
pub(super) fn ratio(primal: f64, derivative: f64) -> String {
    match primal > 0.0 {
        true => format!(" ({:.1}×)", derivative / primal),
        false => String::new(),
    }
}

/// Formats a number with a noun in the singular or, with an `s`, in the plural.
pub(super) fn many(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Formats file and line.
pub(super) fn place(location: &Location) -> String {
    format!("{}:{}", location.file, location.line)
}

/// Formats the activity of an argument.
pub(super) fn activity(argument: &ArgumentReport) -> String {
    let roles = argument.activity.iter().map(|role| match role {
        ArgumentRole::Inactive => "inactive",
        ArgumentRole::Shadow => "with shadow",
        ArgumentRole::ShadowIfDifferent => "with shadow if the shadow is a different pointer",
        ArgumentRole::ShadowContentsUnused => "with shadow, contents unused after the call",
        ArgumentRole::Active => "active",
    });
    roles.collect::<Vec<_>>().join(" and ")
}

/// Formats the activity of the result.
pub(super) fn result(result: ResultRole) -> &'static str {
    match result {
        ResultRole::Inactive => "inactive",
        ResultRole::Active => "active",
        ResultRole::Shadow => "with shadow",
        ResultRole::ActiveAndShadow => "active and with shadow",
    }
}

/// Cuts a text at `length_max` characters, with an ellipsis.
pub(super) fn clipped(text: &str, length_max: usize) -> String {
    match text.char_indices().nth(length_max) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_string(),
    }
}
