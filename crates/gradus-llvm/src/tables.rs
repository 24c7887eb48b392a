//! Side tables: the LLVM handles behind the interned ids of an imported unit.
//!
//! Cleared whenever the host changes behind the importer's back.

/// Handles of one import.
#[derive(Default)]
pub(crate) struct Tables {}

impl Tables {
    /// Forgets every handle.
    pub(crate) fn clear(&mut self) {}
}
