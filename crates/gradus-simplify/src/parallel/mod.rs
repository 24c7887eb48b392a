//! Simplifications of parallel operations.

pub(crate) mod hoist_spawn_calls;
