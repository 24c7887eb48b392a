//! Record of a parallel loop in a derivative: location, adjoint accumulations, reductions.
//!
//! The reverse pass enters the records in the builder. The report takes them from the builder and completes them once
//! all derivatives of a root are built.

use gradus_ir::{Op, SourceSpan};

/// A parallel loop in the reverse pass, or a whole function that such a loop calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParallelLoop {
    /// Source location of the loop; `None` for a function.
    pub span: Option<SourceSpan>,
    /// The reversed loop, valid until the derivative is transformed.
    pub(crate) reversed_loop: Option<Op>,
    /// Lines of the loads with plain adjoint accumulation, and of the loads with atomic accumulation.
    pub adds: [Vec<u32>; 2],
    /// Lines of the loads with privatised accumulation per chunk, and of the loads with two-phase
    /// accumulation (even chunks, then odd chunks).
    pub privatized_and_two_phase: [Vec<u32>; 2],
    /// Number of reductions of adjoints of floats defined outside.
    pub reductions: usize,
    /// True if the iterations run concurrently.
    pub is_concurrent: bool,
}
