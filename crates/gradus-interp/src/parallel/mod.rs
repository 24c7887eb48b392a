//! Parallel execution: ranks of teams and the race detector.

pub(crate) mod races;
pub(crate) mod ranks;
