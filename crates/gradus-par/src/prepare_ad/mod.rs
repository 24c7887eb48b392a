//! Rewrites that bring parallel operations into the forms that derivatives are built from.

pub(crate) mod conditional_tasks;
pub(crate) mod inline_into_parallel_loops;
pub(crate) mod inline_into_teams;
pub(crate) mod iteration_private_memory;
pub(crate) mod orphaned_tasks;
pub(crate) mod restore;
pub(crate) mod serial_projection;
pub(crate) mod tasks_as_loops;
pub(crate) mod team_to_rank_loops;
