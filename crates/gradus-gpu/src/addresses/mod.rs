//! Address analysis of kernels: thread disjointness, thread strides, launch accesses.

pub(crate) mod launch_addresses;
pub(crate) mod thread_disjointness;
pub(crate) mod thread_strides;
