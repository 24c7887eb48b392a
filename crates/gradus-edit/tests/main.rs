//! All tests of the package in one program: one link instead of one for each file.

mod eval;
mod exit_values;
mod exits;
mod loops;
mod pages;
mod posix_memalign;
mod strided;
mod waits;
