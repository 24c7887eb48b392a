//! All tests of the package in one program: one link instead of one for each file.

mod checks;
mod drop_in;
mod grad;
mod large;
mod registered;
mod round_trip;
mod split;
mod support;
mod variants;
