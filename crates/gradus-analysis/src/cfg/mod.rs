//! Control-flow facts: dataflow over control edges, nesting, blocks that do not return.

pub(crate) mod dataflow;
#[cfg(test)]
mod dataflow_tests;
pub(crate) mod nesting;
pub(crate) mod no_return;
