//! The CUDA runtime on a CPU, under CUDA's names: called by programs compiled with `gradus nvcc`.
//!
//! The device is this machine, and its memory is the host's. Work of a stream runs immediately, on the
//! calling thread, and every ordering guarantee of streams and events holds. A kernel's entry runs its whole
//! grid on the pool. Structure layouts follow `include/cuda/gradus/runtime_types.h`; a test compares both.
#![allow(non_snake_case, reason = "the names are CUDA's")]

mod arrays;
mod copies;
mod device;
mod error;
mod fiber_stacks;
mod fibers;
mod kernels;
mod launch;
mod memory;
mod mempool;
mod printf;
mod profile;
mod random;
mod status_checks;
mod streams;
mod symbols;
mod textures;
pub mod types;

use std::ffi::c_int;

/// Return type of calls: 0 or an error number.
type Status = c_int;
