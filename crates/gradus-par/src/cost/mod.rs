//! The cost model that decides whether forking pays.

pub(crate) mod decision;
mod library_calls;
pub(crate) mod model;
