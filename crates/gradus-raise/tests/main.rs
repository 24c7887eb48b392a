//! All tests of the package in one program: one link instead of one for each file.

#[macro_use]
mod support;

mod acceptance;
mod constructs;
mod private_memory;
