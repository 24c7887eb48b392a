//! Loop rewrites: counted loops, trip counts, exit conditions, final values, reductions.

pub(crate) mod exit_values;
pub(crate) mod fold_guards;
pub(crate) mod induction;
pub(crate) mod loop_exits;
pub(crate) mod recognize_reductions;
pub(crate) mod spin_loops;
pub(crate) mod strided;
pub(crate) mod to_for;
pub(crate) mod trip_count_ops;
pub(crate) mod while_to_for;
