//! Rewrites of allocations and memory accesses.

pub(crate) mod atomics_to_plain;
pub(crate) mod coerced_loads;
pub(crate) mod libc;
pub(crate) mod posix_memalign;
pub(crate) mod promote;
pub(crate) mod serial_accesses;
pub(crate) mod slots;
pub(crate) mod split_slots;
pub(crate) mod volatile_slots;
