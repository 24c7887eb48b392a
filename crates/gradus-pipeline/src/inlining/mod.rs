//! Inlining before differentiation.

pub(crate) mod into_loops;
pub(crate) mod policy;
