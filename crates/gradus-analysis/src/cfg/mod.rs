//! Control-flow facts: nesting, blocks that do not return.

pub(crate) mod nesting;
pub(crate) mod no_return;
