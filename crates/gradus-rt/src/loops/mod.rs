//! Parallel loops: partition, scheduling, reduction.

pub(crate) mod adaptive_serial;
pub mod parallel_for;
pub(crate) mod partition;
pub mod reduce;
