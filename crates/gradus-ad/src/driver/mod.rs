//! Build of one derivative from both passes, and requests above one body: versions, thunks, byval arguments, the report.

pub(crate) mod byval;
pub(crate) mod caller_outputs;
pub(crate) mod recomputation_rounds;
pub(crate) mod refused_memory;
pub(crate) mod report;
pub(crate) mod reverse_mode;
pub(crate) mod thunks;
pub(crate) mod versioning;
