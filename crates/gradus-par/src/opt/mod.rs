//! Optimisations of parallel operations before lowering.

pub(crate) mod fusion;
pub(crate) mod hoist_conditional_loads;
pub(crate) mod large_frames;
pub(crate) mod taskloop;
pub(crate) mod tsan_atomics;
pub(crate) mod unaligned_atomics;
pub(crate) mod widen_indices;
