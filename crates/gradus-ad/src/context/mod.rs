//! Context of the two passes: the inputs that they share, and the interface between them.
//!
//! - [`inputs`] holds the inputs of both passes.
//! - [`iteration`] states how the reverse pass requests the recomputation of a loop iteration.

pub(crate) mod inputs;
pub(crate) mod iteration;
