//! Rewrites into operations that have a derivative: libm calls, masked memory, qsort, compare-and-swap loops, indirect calls.

pub(crate) mod cas_loops;
pub(crate) mod devirtualize;
pub(crate) mod libm;
pub(crate) mod masked_memory;
pub(crate) mod qsort;
pub(crate) mod sincos;
