//! Calls that ask for a derivative, recognised by a substring of the callee's name; in Fortran by the name itself.

use super::words::{Use, WORDS};

/// A call that asks for something of a differentiating compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryMode {
    /// Forward mode: the tangent of the result.
    Forward,
    /// Reverse mode, both sweeps in one call.
    Reverse,
    /// The forward sweep alone, which leaves a tape.
    AugmentedForward,
    /// The return sweep alone, which takes a tape.
    ReverseSplit,
    /// The size of the tape of a forward sweep.
    TapeSize,
    /// Forward mode that takes the tape of a forward sweep.
    ForwardSplit,
    /// The shadow of a function pointer or of a table of virtual functions.
    VirtualReverse,
    /// Calls of a function on several inputs at once.
    Batch,
    /// Anything else of that interface: error estimates, truncation, probabilistic programs,
    /// sparse derivatives, hints.
    Other,
}

/// A call of the differentiation interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// What is asked for.
    pub mode: EntryMode,
    /// The name under which the interface knows it.
    pub name: &'static str,
}

/// The names of whole functions: Fortran's names end in a line, and none begins with one.
const FORTRAN: [(&str, EntryMode); 2] = [
    ("gradus_vjp_", EntryMode::Reverse),
    ("gradus_jvp_", EntryMode::Forward),
];

/// What a call of a function of that name asks for; `None` where it is no such call.
pub fn differentiation_call(name: &str) -> Option<Entry> {
    let mut rows = WORDS.iter().filter_map(|row| match row.means {
        Use::Call(mode) if name.contains(row.word) => Some((row.word, mode)),
        _ => None,
    });
    let mut whole = FORTRAN.iter().copied().filter(|(key, _)| name == *key);
    let (name, mode) = rows.next().or_else(|| whole.next())?;
    Some(Entry { mode, name })
}
