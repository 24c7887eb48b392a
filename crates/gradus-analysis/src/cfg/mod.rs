//! Control-flow facts: nesting, blocks that do not return, value copies.

pub(crate) mod nesting;
pub(crate) mod no_return;
pub(crate) mod value_copies;
