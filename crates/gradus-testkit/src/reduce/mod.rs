//! Reduction of failing programs.

pub(crate) mod gir;
pub(crate) mod text;
