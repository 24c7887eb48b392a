//! All tests of the package in one program: one link instead of one for each file.

mod c_programs;
mod compiled;
mod control_edges;
mod derive;
mod fork_join;
mod fuzz;
mod fuzz_compiled;
mod kernels;
mod lowering;
mod pages;
mod parallel_c;
mod points_to;
mod refusals;
mod wide_programs;
