//! Random programs with kernels: features, and the kind of a seed's program.

use super::{kernels::kernel, launches::launches};
use std::collections::BTreeSet;

/// The features of random kernels.
// table
pub const KERNEL_FEATURES: &[&str] = &[
    "barrier",
    "two dimensions",
    "three dimensions",
    "sizes not known",
    "size of shared memory not known",
    "more than a warp",
    "kernel in a function",
    "own cells",
    "cells of others",
    "shared atomics",
    "global atomics",
    "private array",
    "steady load",
    "own branch",
    "own loop",
    "stride over all",
    "counted stride over all",
    "common loop in own branch",
    "common branch with barrier",
    "common switch with barrier",
    "common loop with barrier",
    "counted loop with barrier",
    "barrier two deep",
    "early exit",
    "threads leave a loop",
    "own trip count with barrier",
    "warps in step",
    "some warps in step",
    "loop in step",
    "lanes speak",
    "every so many-th thread",
    "remainder of threads",
    "search",
    "short row",
    "clamped place",
    "atomics of other kinds",
    "launches",
    "launch with a barrier",
    "host reads between launches",
];

/// A random kernel.
#[derive(Clone, Debug)]
pub struct KernelProgram {
    /// The program. Warp barriers encode lockstep, for the interpreter only.
    pub text: String,
    /// The contents, of [`KERNEL_FEATURES`].
    pub features: BTreeSet<&'static str>,
}

/// Returns the program of a seed: a kernel with about `statements` statements, or, for every eighth seed,
/// several launches.
pub fn kernel_program(seed: u64, statements: u32) -> KernelProgram {
    match seed % 8 {
        6 => launches(seed),
        _ => kernel(seed, statements),
    }
}
