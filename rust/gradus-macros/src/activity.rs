//! Modes and activities: the words of the attributes, and the uses that are permitted.

use syn::Ident;

/// The mode of differentiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Adjoints.
    Reverse,
    /// Tangents.
    Forward,
}

/// An activity of a parameter or of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Without derivative.
    Const,
    /// A float by value, in reverse mode.
    Active,
    /// As `Active`, for a result that is not returned.
    ActiveOnly,
    /// Memory with adjoints, in reverse mode.
    Duplicated,
    /// A float or memory with tangents, in forward mode.
    Dual,
    /// As `Dual`, for a result that is not returned.
    DualOnly,
    /// Memory with several tangents, one after the other.
    DualBatch,
}

use Activity::*;

/// Words, activities, modes.
const WORDS: [(&str, Activity, Option<Mode>); 9] = [
    ("Const", Const, None),
    ("Active", Active, Some(Mode::Reverse)),
    ("ActiveOnly", ActiveOnly, Some(Mode::Reverse)),
    ("Duplicated", Duplicated, Some(Mode::Reverse)),
    ("DuplicatedOnly", Duplicated, Some(Mode::Reverse)),
    ("Dual", Dual, Some(Mode::Forward)),
    ("DualOnly", DualOnly, Some(Mode::Forward)),
    ("Dualv", DualBatch, Some(Mode::Forward)),
    ("DualvOnly", DualBatch, Some(Mode::Forward)),
];

impl Mode {
    /// Returns the words of the mode.
    fn words(self) -> String {
        let own = WORDS
            .iter()
            .filter(|(.., mode)| mode.is_none_or(|mode| mode == self));
        let names: Vec<String> = own.map(|(name, ..)| format!("`{name}`")).collect();
        names.join(", ")
    }

    /// Returns the attribute's name.
    pub fn attribute(self) -> &'static str {
        match self {
            Mode::Reverse => "gradus::reverse",
            Mode::Forward => "gradus::forward",
        }
    }

    /// Returns the activity of memory with derivatives.
    pub fn of_memory(self) -> &'static str {
        match self {
            Mode::Reverse => "Duplicated",
            Mode::Forward => "Dual",
        }
    }

    /// Returns the activity of a float with a derivative.
    pub fn of_number(self) -> &'static str {
        match self {
            Mode::Reverse => "Active",
            Mode::Forward => "Dual",
        }
    }
}

/// Reads an activity.
///
/// # Errors
/// A word that is unknown, or that belongs to the other mode.
pub fn read(word: &Ident, mode: Mode) -> syn::Result<Activity> {
    let text = word.to_string();
    if let Some((_, activity, of)) = WORDS.iter().find(|(name, ..)| *name == text) {
        if of.is_none_or(|of| of == mode) {
            return Ok(*activity);
        }
        let other = match (mode, activity) {
            (Mode::Reverse, _) => "use `Active` for a float by value, `Duplicated` for memory",
            (Mode::Forward, _) => "use `Dual`",
        };
        let name = mode.attribute();
        return Err(syn::Error::new(
            word.span(),
            format!("`{text}` is no activity of `{name}`: {other}"),
        ));
    }
    let lower = text.to_lowercase();
    let near = WORDS.iter().find(|(name, _, of)| {
        let name = name.to_lowercase();
        of.is_none_or(|of| of == mode) && (name.starts_with(&lower) || lower.starts_with(&name))
    });
    let hint = match near {
        Some((name, ..)) => format!("did you mean `{name}`?"),
        None => format!("the activities are {}", mode.words()),
    };
    Err(syn::Error::new(
        word.span(),
        format!("unknown activity `{text}`: {hint}"),
    ))
}
