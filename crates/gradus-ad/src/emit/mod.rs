//! Emission of derivative code: the builder, libc declarations, masked operations.

pub(crate) mod builder;
pub(crate) mod libc;
pub(crate) mod masked_ops;
