//! Transformations that derivatives profit from.

pub(crate) mod accumulation;
pub(crate) mod argminmax;
pub(crate) mod index_array_copies;
pub(crate) mod scatter_to_gather;
