//! The tape: memory in which the forward pass saves values for the reverse pass.
//!
//! - [`plan`] chooses the saved values and their locations.
//! - [`layout`] emits reads and writes.
//! - [`stack`] allocates memory for an unknown number of values.
//! - [`pages`] requests huge pages from the system.
//! - [`mincut`] implements the min-cut.
//! - [`mark`] identifies tapes that pass through the program.

pub mod huge_pages;
pub mod layout;
pub mod min_cut;
pub mod plan;
pub(crate) mod remat;
pub mod segments;
pub mod tag;
