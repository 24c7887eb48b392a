//! Warp-synchronous code: lockstep execution and races between lanes.

pub(crate) mod lockstep;
pub(crate) mod races;
