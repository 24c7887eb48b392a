//! Algorithms on graphs that are no IR.

pub(crate) mod min_cut;
