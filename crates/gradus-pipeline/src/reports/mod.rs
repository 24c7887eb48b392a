//! Reports of what was compiled.

pub(crate) mod derivative;
pub(crate) mod derivative_record;
pub(crate) mod kernels;
pub(crate) mod parallel;
pub(crate) mod parallel_loops;
pub(crate) mod readable_symbols;
mod remedy;
pub(crate) mod serialized;
pub(crate) mod zero_derivatives;
