//! Lifetimes of memory.

pub(crate) mod must_free;
pub(crate) mod owned_blocks;
pub(crate) mod persistent_blocks;
