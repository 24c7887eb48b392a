//! Code emission for parallel operations that several steps share: runtime entry points, serial equivalents,
//! reductions and chunks of worksharing loops.

pub(crate) mod abi;
pub(crate) mod reduction_combine;
pub(crate) mod serial;
pub(crate) mod share_for_chunks;
