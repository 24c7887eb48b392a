//! Groups of ranks: the state of each running `spmd`.
//!
//! `parallel/ranks.rs` starts, suspends and continues the ranks.

use crate::state::strand::Strand;
use crate::values::value::{Address, Value};
use std::collections::HashMap;

/// The ranks of one running `spmd`.
#[derive(Debug)]
pub(crate) struct Group {
    /// The strand that continues after all ranks have ended.
    pub parent: Strand,
    pub ranks: Vec<Rank>,
    /// The order of ranks in the current barrier interval; `next` is the position in the order.
    pub order: Vec<usize>,
    pub next: usize,
    pub current: usize,
    /// The number of `single` ops already entered by a rank, and the published results by number.
    pub singles: u64,
    pub published: HashMap<u64, Vec<Value>>,
    /// Shared allocations by function and instruction.
    pub shared: HashMap<(gradus_ir::FuncId, u32), Address>,
}

/// A rank with its strand, unless the rank is running or has ended.
#[derive(Debug)]
pub(crate) enum Rank {
    Ready(Box<Strand>),
    Waiting(Box<Strand>),
    Running,
    Ended,
}
