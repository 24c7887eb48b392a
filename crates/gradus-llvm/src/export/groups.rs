//! Groups of accesses: how LLVM is told that the iterations of a loop are independent.
//!
//! Every plain load and store of such a loop belongs to the loop's group, and the loop's branch says
//! that accesses of the group carry no dependence. A call belongs to none: what is inlined of it may
//! bring memory along that all iterations share. Beside that: what LLVM is told not to do with a loop, and where
//! its code begins.
use super::Exporter;
use super::structure::Structure;
use gradus_ir::{Body, Flags, FuncId, Op, OpKind};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::{c_int, c_uint};

/// As many iterations as there are elements in a short vector, and the most that LLVM is known to unroll.
const LEAST_TRIPS: i64 = 8;
const MOST_TRIPS: i64 = 128;

/// A cache line. A loop of so many bytes takes up to a third longer in two of them, and whether it lies in two
/// depends on what code happens to stand before it; longer ones gain nothing.
const LINE_BYTES: c_uint = 64;
/// The most operations of a loop that is about one line long when LLVM has vectorised it, two vectors at a time:
/// some five bytes each, and as much for counting and for the jump.
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
    /// Has a function that calls itself begin with a cache line: where it lies in one decides over up to a third of
    /// a short recursion's time, and no other place is as seldom a bad one.
    pub(super) fn begin_recursion(&self, func: FuncId, function: LLVMValueRef, body: &Body) {
        let calls_itself = |op: Op| self.unit.callee(body, op) == Some(func);
        if body.walk(body.root()).any(calls_itself) {
            unsafe { LLVMSetAlignment(function, LINE_BYTES.max(LLVMGetAlignment(function))) };
        }
    }
}

impl Structure<'_, '_, '_> {
    /// Enters a loop; one with independent iterations gets a group.
    pub(super) fn open_group(&mut self, op: Op) {
        if self.body.ops[op].flags.has(Flags::INDEPENDENT) {
            let group = unsafe { gr_distinct_node(self.exporter.host.ctx) };
            self.groups.push((op, group));
        }
    }

    /// Leaves a loop at its branch, if it has one.
    pub(super) fn close_group(&mut self, op: Op, branch: Option<LLVMValueRef>) {
        if let Some((_, group)) = self.groups.pop_if(|(owner, _)| *owner == op)
            && let Some(branch) = branch
        {
            let whole = self.is_short(op).into();
            unsafe { gr_set_parallel_accesses(branch, group, whole) };
        }
    }

    /// Says at a loop's branch that it is not to be vectorised, if it is not.
    pub(super) fn keep_scalar(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::SCALAR) {
            unsafe { gr_set_scalar(branch) };
        }
    }

    /// Says at a loop's branch that it is written out once while its number of runs is unknown, if it is.
    pub(super) fn keep_rolled(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::ROLLED) {
            unsafe { gr_set_rolled(branch) };
        }
    }

    /// Says at a loop's branch that a marker stands before it, if one does.
    pub(super) fn keep_marked(&self, op: Op, branch: LLVMValueRef) {
        if self.body.ops[op].flags.has(Flags::MARKED) {
            unsafe { gr_set_marked(branch) };
        }
    }

    /// Says at a loop's branch that its code begins with a cache line, if it is no longer than that.
    pub(super) fn begin_line(&self, op: Op, branch: LLVMValueRef) {
        if self.fits_line(op) {
            unsafe { gr_set_loop_align(branch, LINE_BYTES) };
        }
    }

    /// Whether a counted loop without structure inside is code of no more than a cache line.
    fn fits_line(&self, op: Op) -> bool {
        let counted = matches!(self.body.kind(op), OpKind::For { .. });
        let mut ops = 0;
        counted
            && self.body.walk(self.body.op_regions(op)[0]).all(|op| {
                ops += match self.body.kind(op) {
                    OpKind::Addr { .. } | OpKind::Cast(_) | OpKind::Yield => 0,
                    // Most are multiply-adds.
                    OpKind::Call(_) => 2,
                    _ => 1,
                };
                ops <= LINE_OPS && self.body.op_regions(op).is_empty()
            })
    }

    /// Whether a loop runs so few times that LLVM would unroll it before it tries to vectorise it.
    fn is_short(&self, op: Op) -> bool {
        let trips = match self.body.kind(op) {
            OpKind::For { .. } => self
                .body
                .as_int(self.exporter.unit, self.body.operand(op, 0)),
            _ => None,
        };
        trips.is_some_and(|trips| (LEAST_TRIPS..=MOST_TRIPS).contains(&trips))
    }

    /// Puts a load or store into the groups of the loops around it.
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
