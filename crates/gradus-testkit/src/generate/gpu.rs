//! Random programs with kernels: what they may hold, and of which kind the program of a seed is.

use super::{kernels::kernel, launches::launches};
use std::collections::BTreeSet;

/// What a random kernel may hold.
// table
pub const KERNEL_FEATURES: &[&str] = &[
    "barrier",
    "two dimensions",
    "three dimensions",
    "sizes not known",
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
    /// The program. Barriers of a warp say what it means that threads go in step: they are for the interpreter alone.
    pub text: String,
    /// What it holds, of [`KERNEL_FEATURES`].
    pub features: BTreeSet<&'static str>,
}

/// The program of a seed: one kernel with about so many statements, or, of every eighth seed, several launches.
pub fn kernel_program(seed: u64, statements: u32) -> KernelProgram {
    match seed % 8 {
        6 => launches(seed),
        _ => kernel(seed, statements),
    }
}
