//! The stages of the pipeline, one file each.

pub(crate) mod differentiate;
pub(crate) mod lower_teams;
pub(crate) mod parallelize;
pub(crate) mod simplify;
