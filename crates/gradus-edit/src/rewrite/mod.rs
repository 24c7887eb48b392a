//! Rewrites of whole bodies and calls: cloning, inlining, outlining, unrolling, splitting, and index conversion.

pub(crate) mod clone;
pub(crate) mod index_width;
pub(crate) mod inline;
pub(crate) mod normalize_invokes;
pub(crate) mod outline;
pub(crate) mod split_function;
pub(crate) mod trivial_dce;
pub(crate) mod unroll;
