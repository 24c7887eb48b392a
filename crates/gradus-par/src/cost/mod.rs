//! The cost model that decides whether forking pays.

pub(crate) mod decision;
pub(crate) mod model;
