//! Address analysis of kernels: thread disjointness, launch accesses.

pub(crate) mod kernel_reads;
pub(crate) mod launch_addresses;
pub(crate) mod thread_disjointness;
