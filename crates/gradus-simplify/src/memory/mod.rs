//! Memory simplifications: load forwarding, dead memory, errno, allocation placement.

pub(crate) mod dead_memory;
pub(crate) mod errno;
pub(crate) mod load_forwarding;
pub(crate) mod stagger_allocations;
