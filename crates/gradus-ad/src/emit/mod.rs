//! Emission of derivative code: the builder, libc declarations, masked operations, records of parallel loops.

pub(crate) mod builder;
pub(crate) mod libc;
pub(crate) mod masked_ops;
pub(crate) mod parallel_loops;
pub(crate) mod stop_message;
