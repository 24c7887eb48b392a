//! All tests of the package in one program: one link instead of one for each file.

mod c_programs;
mod cases;
mod f32_programs;
mod internal_errors;
mod memory_objects;
mod support;
