//! The tape: memory in which the forward pass saves values for the reverse pass.
//!
//! - [`remat`] determines how a forward value can be recomputed.
//! - [`save_selection`] chooses the saved values, by the min-cut of [`gradus_analysis::FlowNetwork`].
//! - [`plan`] assigns save locations.
//! - [`layout`] emits reads and writes.
//! - [`segments`] allocates memory for an unknown number of values.
//! - [`huge_pages`] requests huge pages from the system.
//! - [`tag`] identifies tapes that pass through the program.
//! - [`unneeded_deferrals`] finds deferred frees that a plan does not need.

pub mod huge_pages;
pub mod layout;
pub mod plan;
pub(crate) mod remat;
pub(crate) mod save_selection;
pub mod segments;
pub mod tag;
pub mod unneeded_deferrals;
