//! The lattice of the type analysis and the flat form of aggregate types.

pub(crate) mod flat_aggregates;
pub(crate) mod lattice;
