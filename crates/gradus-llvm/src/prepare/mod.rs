//! LLVM passes and rewrites before import.

pub(crate) mod aligned_addresses;
pub mod blas;
pub(crate) mod closed_program;
mod computed_gotos;
pub(crate) mod constructs;
pub(crate) mod dynamic_cast;
pub(crate) mod fortran;
pub mod global_registrations;
pub(crate) mod inlining;
mod integer_addresses;
mod interface_calls;
pub(crate) mod libstdcxx_containers;
pub(crate) mod libstdcxx_vectors;
pub mod marks;
pub(crate) mod shared_addresses;
pub(crate) mod std_function;
pub(crate) mod thread_local_addresses;
pub(crate) mod unroll_local_arrays;
pub(crate) mod variadic_functions;
pub(crate) mod x86_intrinsics;
