//! Loop simplifications.

pub(crate) mod entry_guard;
pub(crate) mod idempotent_loops;
pub(crate) mod licm;
pub(crate) mod loop_carried;
pub(crate) mod short_trip_versioning;
pub(crate) mod unroll_and_jam;
pub(crate) mod unswitch;
