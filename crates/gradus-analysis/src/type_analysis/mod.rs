//! Type analysis of memory cells: observed types, bit ranges, block layout.

pub(crate) mod address_words;
pub(crate) mod bit_ranges;
pub(crate) mod block_layout;
pub(crate) mod declared;
pub(crate) mod run_time_words;
pub(crate) mod type_flow;
pub(crate) mod type_map;
pub(crate) mod whole_float_moves;
