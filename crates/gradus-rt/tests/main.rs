//! All tests of the package in one program: one link instead of one for each file.

mod cuda_headers;
mod cuda_layouts;
mod oversubscription;
mod pool;
