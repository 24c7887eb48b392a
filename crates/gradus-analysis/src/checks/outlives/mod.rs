//! Memory with derivatives that outlives the call (GRD0033).

pub(crate) mod kept_values;
pub(crate) mod persistent_memory;
