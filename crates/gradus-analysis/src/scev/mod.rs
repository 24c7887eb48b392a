//! Scalar evolution: polynomials over loop indices, intervals.

pub(crate) mod intervals;
pub(crate) mod poly;
