//! Loop metadata: access groups of loops with independent iterations, vectorizer and unroller hints, code
//! alignment.
//!
//! Every plain load and store of an independent loop belongs to the loop's access group. The loop's branch
//! states that accesses of the group carry no dependence (`llvm.loop.parallel_accesses`). A call belongs to
//! no group: the inlined callee may access memory that all iterations share.
use super::Exporter;
use super::structure::Structure;
use gradus_ir::{Body, Flags, FuncId, Op, OpKind};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::{c_int, c_uint};

/// Range of trip counts that LLVM would unroll fully before vectorization: from the element count of a
/// short vector to the largest count that LLVM is known to unroll.
const UNROLLED_TRIP_MIN: i64 = 8;
const UNROLLED_TRIP_MAX: i64 = 128;

/// Size of a cache line. A loop that spans two lines although it fits into one runs up to a third longer,
/// and its placement depends on the preceding code. Longer loops gain nothing from alignment.
const LINE_BYTES: c_uint = 64;
/// The most operations of a loop of about one cache line after vectorization by two interleaved vectors:
/// some five bytes per operation, and as much for the induction variable and the branch.
const LINE_OPS: usize = 6;

unsafe extern "C" {
    fn gr_distinct_node(ctx: LLVMContextRef) -> LLVMMetadataRef;
    fn gr_set_parallel_accesses(branch: LLVMValueRef, group: LLVMMetadataRef, whole: c_int);
    fn gr_set_scalar(branch: LLVMValueRef);
    fn gr_set_rolled(branch: LLVMValueRef);
    fn gr_set_marked(branch: LLVMValueRef);
    fn gr_set_loop_align(branch: LLVMValueRef, align_bytes: c_uint);
}

impl Exporter<'_, '_> {
    /// Aligns a self-recursive function to a cache line. The placement of a short recursion decides over up
    /// to a third of its time, and the beginning of a line is least often a bad placement.
    pub(super) fn align_recursive_function(
        &self,
        func: FuncId,
        function: LLVMValueRef,
        body: &Body,
    ) {
        let calls_itself = |op: Op| self.unit.callee(body, op) == Some(func);
        if body.walk(body.root()).any(calls_itself) {
            unsafe { LLVMSetAlignment(function, LINE_BYTES.max(LLVMGetAlignment(function))) };
        }
    }
}

impl Structure<'_, '_, '_> {
    /// Enters a loop; creates an access group if its iterations are independent.
    pub(super) fn open_group(&mut self, op: Op) {
        if self.body.ops[op].flags.has(Flags::INDEPENDENT) {
            let group = unsafe { gr_distinct_node(self.exporter.host.ctx) };
            self.groups.push((op, group));
        }
    }

    /// Leaves a loop; attaches the access group to its branch, if the loop has a branch.
    pub(super) fn close_group(&mut self, op: Op, branch: Option<LLVMValueRef>) {
        if let Some((_, group)) = self.groups.pop_if(|(owner, _)| *owner == op)
            && let Some(branch) = branch
        {
            let whole = self.is_unrolled_by_llvm(op).into();
            unsafe { gr_set_parallel_accesses(branch, group, whole) };
        }
    }

    /// Disables vectorization of a loop with [`Flags::NO_VECTORIZE`].
    pub(super) fn set_scalar(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::NO_VECTORIZE) {
            unsafe { gr_set_scalar(branch) };
        }
    }

    /// Disables runtime unrolling of a loop with [`Flags::NO_RUNTIME_UNROLL`].
    pub(super) fn set_rolled(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::NO_RUNTIME_UNROLL) {
            unsafe { gr_set_rolled(branch) };
        }
    }

    /// Records on the branch of a loop with [`Flags::HAS_PARALLEL_INTRINSIC`] that a marker precedes the loop.
    pub(super) fn set_marked(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::HAS_PARALLEL_INTRINSIC) {
            unsafe { gr_set_marked(branch) };
        }
    }

    /// Aligns the code of a loop that fits into a cache line.
    pub(super) fn align_short_loop(&self, op: Op, branch: LLVMValueRef) {
        if self.fits_cache_line(op) {
            unsafe { gr_set_loop_align(branch, LINE_BYTES) };
        }
    }

    /// Returns whether the code of a counted loop without nested regions fits into a cache line.
    fn fits_cache_line(&self, op: Op) -> bool {
        let counted = matches!(self.body.kind(op), OpKind::For { .. });
        let mut ops = 0;
        counted
            && self.body.walk(self.body.op_regions(op)[0]).all(|op| {
                ops += match self.body.kind(op) {
                    OpKind::Addr { .. } | OpKind::Cast(_) | OpKind::Yield => 0,
                    // Most calls are multiply-adds.
                    OpKind::Call(_) => 2,
                    _ => 1,
                };
                ops <= LINE_OPS && self.body.op_regions(op).is_empty()
            })
    }

    /// Returns whether the trip count is so small that LLVM would unroll the loop before vectorization.
    fn is_unrolled_by_llvm(&self, op: Op) -> bool {
        let trips = match self.body.kind(op) {
            OpKind::For { .. } => self
                .body
                .as_int(self.exporter.unit, self.body.operand(op, 0)),
            _ => None,
        };
        trips.is_some_and(|trips| (UNROLLED_TRIP_MIN..=UNROLLED_TRIP_MAX).contains(&trips))
    }

    /// Adds a load or store to the access groups of its enclosing loops.
    pub(super) fn set_groups(&self, made: LLVMValueRef) {
        let is_access =
            unsafe { !LLVMIsALoadInst(made).is_null() || !LLVMIsAStoreInst(made).is_null() };
        if self.groups.is_empty() || !is_access {
            return;
        }
        let own: Vec<LLVMMetadataRef> = self.groups.iter().map(|(_, group)| *group).collect();
        let node = match own[..] {
            [one] => one,
            _ => self.exporter.node(&own),
        };
        let kind = self.exporter.metadata_kind("llvm.access.group");
        unsafe {
            LLVMSetMetadata(
                made,
                kind,
                LLVMMetadataAsValue(self.exporter.host.ctx, node),
            )
        };
    }
}
