//! The lattice of the type analysis, the flat form of aggregate types, and type-based alias analysis.

pub(crate) mod flat_aggregates;
pub(crate) mod lattice;
pub(crate) mod tbaa;
