//! All tests of the package in one program: one link instead of one for each file.

mod clang;
mod deep;
mod exceptions;
mod exotic;
mod export;
mod flang_library;
mod host;
mod loops;
mod round_trip;
