//! All tests of the package in one program: one link instead of one for each file.

mod linear;
mod pages;
mod teams;
