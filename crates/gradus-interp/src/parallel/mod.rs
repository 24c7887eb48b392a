//! Parallel execution: ranks of teams, and events for the race detector.

pub(crate) mod ranks;
pub(crate) mod strand_events;
