//! Rewrites of whole bodies and calls: cloning, inlining, outlining, unrolling, splitting.

pub(crate) mod clone;
pub(crate) mod inline;
pub(crate) mod normalize_invokes;
pub(crate) mod outline;
pub(crate) mod split_function;
pub(crate) mod trivial_dce;
pub(crate) mod unroll;
