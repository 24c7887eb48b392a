//! Points-to analysis: alias sets, constraints, pointer arithmetic, external calls.

pub(crate) mod alias_set_solver;
pub(crate) mod alias_sets;
pub(crate) mod constant_tables;
pub(crate) mod constraints;
pub(crate) mod external_calls;
pub(crate) mod folds;
pub(crate) mod inclusion;
pub(crate) mod initializers;
pub(crate) mod leaf_tables;
pub(crate) mod memcpy;
pub(crate) mod pointer_arith;
pub(crate) mod type_evidence;
pub(crate) mod union_find;
