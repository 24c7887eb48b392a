//! Oracles: three-way derivative checks, the interpreter against the machine, serial against parallel.

pub(crate) mod c_compile;
pub(crate) mod check;
pub(crate) mod coverage;
pub(crate) mod fork_join_check;
pub(crate) mod ir_check;
pub(crate) mod kernel_check;
pub(crate) mod memory_check;
pub(crate) mod parallel_c_check;
pub(crate) mod points_to_check;
pub(crate) mod shares_check;
pub(crate) mod singularities;
pub(crate) mod three_way;
pub(crate) mod tsan_check;
