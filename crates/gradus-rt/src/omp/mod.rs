//! The OpenMP interface.

pub mod critical;
pub(crate) mod foreign_library;
pub mod queries;
pub(crate) mod schedule;
pub mod worksharing;
