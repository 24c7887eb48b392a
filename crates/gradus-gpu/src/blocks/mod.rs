//! Blocks of kernels: the blocks to be turned into loops, and the analyses of a block before the split.
//!
//! Place: below the passes. Every pass that splits, moves or removes code of a block queries the skeleton, the
//! uniformity and the reads of the block.

pub(crate) mod arms;
pub(crate) mod kernel_reads;
pub(crate) mod prepare;
pub(crate) mod skeleton;
pub(crate) mod sync_ops;
pub(crate) mod thread_storage;
pub(crate) mod uniformity;

use gradus_ir::{Body, Flags, Op, OpKind, SpmdKind};

/// The blocks of a body to be turned into loops, in program order. Blocks with cooperative threads are
/// excluded.
pub(crate) fn blocks_to_lower(body: &Body) -> Vec<Op> {
    let is_block = |op: &Op| {
        let kind = SpmdKind::Block;
        let block = matches!(body.kind(*op), OpKind::Spmd { kind: own, .. } if *own == kind);
        block && !is_cooperative(body, *op)
    };
    body.walk(body.root()).filter(is_block).collect()
}

/// Returns whether the threads of a grid, or of the grid around a block, are cooperative.
pub(crate) fn is_cooperative(body: &Body, op: Op) -> bool {
    let takes = |op: Op| body.ops[op].flags.has(Flags::COOPERATIVE_THREADS);
    takes(op) || grid_of(body, op).is_some_and(takes)
}

/// Returns the grid around a block.
pub(crate) fn grid_of(body: &Body, block: Op) -> Option<Op> {
    body.parent_op(block)
}
