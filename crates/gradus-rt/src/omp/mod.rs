//! The OpenMP interface.

pub mod critical;
pub mod queries;
pub(crate) mod schedule;
pub mod worksharing;
