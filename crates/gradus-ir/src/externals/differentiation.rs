//! Differentiation requests: calls recognised by a substring of the callee's name, in Fortran by the whole
//! name.

use super::words::{CallRewrite, KEYWORDS, KeywordKind};

/// The mode of a differentiation request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryMode {
    /// Forward mode: the tangent of the result.
    Forward,
    /// Reverse mode: forward pass and reverse pass in one call.
    Reverse,
    /// The augmented primal: the forward pass alone, with the tape as result.
    AugmentedForward,
    /// The reverse pass alone, with the tape as argument.
    ReverseSplit,
    /// The size of the tape in bytes.
    TapeSize,
    /// Forward mode with the tape of a forward pass.
    ForwardSplit,
    /// The shadow of a function pointer or of a virtual-function table.
    VirtualReverse,
    /// Calls of a function on a batch of inputs.
    Batch,
    /// Any other call of the interface: error estimates, truncation, probabilistic programs, sparse
    /// derivatives, hints.
    Other,
}

/// A call of the differentiation interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// The requested mode.
    pub mode: EntryMode,
    /// The matched name in the interface.
    pub name: &'static str,
}

/// Names of whole functions: Fortran symbols end in an underscore, and none begins with one.
const FORTRAN: [(&str, EntryMode); 2] = [
    ("gradus_vjp_", EntryMode::Reverse),
    ("gradus_jvp_", EntryMode::Forward),
];

/// Returns the request made by a call of function `name`; `None` for other functions.
pub fn differentiation_call(name: &str) -> Option<Entry> {
    let mut rows = KEYWORDS.iter().filter_map(|row| match row.kind {
        KeywordKind::Call(mode) if name.contains(row.keyword) => Some((row.keyword, mode)),
        _ => None,
    });
    let mut whole = FORTRAN.iter().copied().filter(|(key, _)| name == *key);
    let (name, mode) = rows.next().or_else(|| whole.next())?;
    Some(Entry { mode, name })
}

/// Returns the word and the meaning of a call of function `name` that stands for other code; `None` for other functions.
pub fn call_rewrite(name: &str) -> Option<(&'static str, CallRewrite)> {
    let (_, tail) = name
        .split_once("__enzyme_")
        .or_else(|| name.split_once("__gradus_"))?;
    KEYWORDS.iter().find_map(|row| match row.kind {
        KeywordKind::Rewrite(how) => {
            let word = row.keyword.strip_prefix("__enzyme_").unwrap_or(row.keyword);
            let rest = tail.strip_prefix(word)?;
            (!rest.starts_with(char::is_lowercase)).then_some((row.keyword, how))
        }
        _ => None,
    })
}
