//! The CUDA runtime on a CPU, under CUDA's own names: what a program compiled by `gradus nvcc` calls.
//!
//! The device is this machine: its memory is the host's, a stream's work is done when it is asked for, in the
//! thread that asks, so that every order that streams and events promise holds. A kernel's entry runs its
//! whole grid on the pool. Layouts are those of `include/cuda/gradus/runtime_types.h`; a test holds the two
//! together.
#![allow(non_snake_case, reason = "the names are CUDA's")]

mod arrays;
mod copies;
mod device;
mod error;
pub(crate) mod faults;
mod kernels;
mod launch;
mod memory;
mod output;
mod plain;
mod pools;
mod profile;
mod random;
mod stacks;
mod streams;
mod symbols;
mod textures;
mod turns;
pub mod types;

use std::ffi::c_int;

/// What calls return: 0 or an error's number.
type Status = c_int;
