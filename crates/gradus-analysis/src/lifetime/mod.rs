//! Lifetimes of memory.

pub(crate) mod must_free;
