//! The tape: memory in which the forward pass saves values for the reverse pass.
//!
//! - [`plan`] decides which values are saved, and at which location.
//! - [`layout`] emits the reads and writes.
//! - [`stack`] is the memory for values whose number is unknown beforehand.
//! - [`pages`] requests huge pages from the system.
//! - [`mincut`] is the algorithm behind the decision.
//! - [`mark`] identifies tapes that pass through the program.

pub mod layout;
pub mod mark;
pub mod mincut;
pub mod pages;
pub mod plan;
pub mod stack;
