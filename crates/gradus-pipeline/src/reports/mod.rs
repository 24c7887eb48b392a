//! Reports of what was compiled.

pub(crate) mod derivative;
pub(crate) mod kernels;
pub(crate) mod parallel;
pub(crate) mod parallel_loops;
