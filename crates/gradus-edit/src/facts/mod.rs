//! Local facts about single operations: effects, implied conditions, integer arithmetic, reduction operations.

pub(crate) mod effects;
pub(crate) mod implied_conditions;
pub(crate) mod integers;
pub(crate) mod reduction_ops;
