//! Requests above one derivative body: versions, byval arguments, the report.

pub(crate) mod byval;
pub(crate) mod caller_outputs;
pub(crate) mod refused_memory;
pub(crate) mod report;
pub(crate) mod versioning;
