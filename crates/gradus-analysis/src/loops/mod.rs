//! Loop facts: variance, trip counts, affine accesses, runtime checks.

pub(crate) mod access_ranges;
pub(crate) mod affine;
pub(crate) mod count_expressions;
pub(crate) mod guarded_bounds;
pub(crate) mod runtime_checks;
pub(crate) mod trip_counts;
pub(crate) mod variance;
