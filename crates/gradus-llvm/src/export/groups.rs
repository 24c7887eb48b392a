//! Groups of accesses: how LLVM is told that the iterations of a loop are independent.
//!
//! Every plain load and store of such a loop belongs to the loop's group, and the loop's branch says
//! that accesses of the group carry no dependence. A call belongs to none: what is inlined of it may
//! bring memory along that all iterations share.
use super::structure::Structure;
use gradus_ir::{Flags, Op};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_distinct_node(ctx: LLVMContextRef) -> LLVMMetadataRef;
    fn gr_set_parallel_accesses(branch: LLVMValueRef, group: LLVMMetadataRef);
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
            unsafe { gr_set_parallel_accesses(branch, group) };
        }
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
