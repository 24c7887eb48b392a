//! Kernel optimisations before and after barrier fission.

pub(crate) mod barrier_removal;
pub(crate) mod clamp_split;
pub(crate) mod grid_stride;
pub(crate) mod index_width;
pub(crate) mod launch_fusion;
pub(crate) mod sparse_thread_loops;
pub(crate) mod speculative_search;
pub(crate) mod uniform_guards;
