//! Translates an op without regions to an LLVM instruction.
use super::Exporter;
use crate::host::ffi::*;
use crate::import::FAST_SHIFT;
use crate::opcodes::{
    INTEGER_FLAGS, binary_to_llvm, cast_to_llvm, float_predicate_to_llvm, int_predicate_to_llvm,
    order_to_llvm, rmw_to_llvm, tail_to_llvm,
};
use gradus_ir::{
    Access, AllocaInfo, Atomicity, CallInfo, Diagnostic, Entity, Flags, LandingPad, OpKind, TypeId,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;

unsafe extern "C" {
    fn gr_build_alloca(
        builder: LLVMBuilderRef,
        ty: LLVMTypeRef,
        space: u32,
        count: LLVMValueRef,
        align: u32,
        inalloca: i32,
    ) -> LLVMValueRef;
    fn gr_build_extract(
        b: LLVMBuilderRef,
        from: LLVMValueRef,
        path: *const u32,
        len: usize,
    ) -> LLVMValueRef;
    fn gr_build_insert(
        b: LLVMBuilderRef,
        into: LLVMValueRef,
        member: LLVMValueRef,
        path: *const u32,
        len: usize,
    ) -> LLVMValueRef;
}

impl Exporter<'_, '_> {
    /// Builds an op that neither owns nor terminates a region. `result` is the type of its result.
    pub(super) fn instruction(
        &mut self,
        kind: &OpKind,
        flags: Flags,
        a: &[LLVMValueRef],
        result: Option<TypeId>,
    ) -> Result<LLVMValueRef, Diagnostic> {
        let b = self.builder;
        let n = NO_NAME;
        let ty = result.map(|t| self.ty(t)).unwrap_or(std::ptr::null_mut());
        let made = unsafe {
            match kind {
                OpKind::Binary(op) => LLVMBuildBinOp(b, binary_to_llvm(*op), a[0], a[1], n),
                OpKind::FNeg => LLVMBuildFNeg(b, a[0], n),
                OpKind::Cast(op) => LLVMBuildCast(b, cast_to_llvm(*op), a[0], ty, n),
                OpKind::ICmp(p) => LLVMBuildICmp(b, int_predicate_to_llvm(*p), a[0], a[1], n),
                OpKind::FCmp(p) => LLVMBuildFCmp(b, float_predicate_to_llvm(*p), a[0], a[1], n),
                OpKind::Select => LLVMBuildSelect(b, a[0], a[1], a[2], n),
                OpKind::Freeze => LLVMBuildFreeze(b, a[0], n),
                OpKind::ExtractElement => LLVMBuildExtractElement(b, a[0], a[1], n),
                OpKind::InsertElement => LLVMBuildInsertElement(b, a[0], a[1], a[2], n),
                OpKind::Shuffle(mask) => self.shuffle(a, mask),
                OpKind::ExtractValue(path) => gr_build_extract(b, a[0], path.as_ptr(), path.len()),
                OpKind::InsertValue(path) => {
                    gr_build_insert(b, a[0], a[1], path.as_ptr(), path.len())
                }
                OpKind::Alloca(info) => self.alloca(info, a[0], ty),
                OpKind::Load(access) => set_access(LLVMBuildLoad2(b, ty, a[0], n), access),
                OpKind::Store(access) => set_access(LLVMBuildStore(b, a[0], a[1]), access),
                OpKind::Addr { source } => {
                    let indices = a[1..].as_ptr().cast_mut();
                    let source = self.ty(*source);
                    LLVMBuildGEPWithNoWrapFlags(
                        b,
                        source,
                        a[0],
                        indices,
                        a.len() as u32 - 1,
                        n,
                        gep_flags(flags),
                    )
                }
                OpKind::AtomicRmw(op, access) => {
                    let (order, scope) = (order_to_llvm(access.order), access.sync_scope);
                    let made =
                        LLVMBuildAtomicRMWSyncScope(b, rmw_to_llvm(*op), a[0], a[1], order, scope);
                    set_align(made, access)
                }
                OpKind::CmpXchg {
                    access,
                    failure,
                    weak,
                } => {
                    let (order, failure) = (order_to_llvm(access.order), order_to_llvm(*failure));
                    let scope = access.sync_scope;
                    let made =
                        LLVMBuildAtomicCmpXchgSyncScope(b, a[0], a[1], a[2], order, failure, scope);
                    LLVMSetWeak(made, i32::from(*weak));
                    set_align(made, access)
                }
                OpKind::Fence {
                    order: o,
                    sync_scope,
                } => LLVMBuildFenceSyncScope(b, order_to_llvm(*o), *sync_scope, n),
                OpKind::Call(info) => self.call(info, a)?,
                OpKind::LandingPad(pad) => self.landing_pad(pad, ty),
                OpKind::Foreign(number) => self.foreign(*number, a)?,
                other => {
                    return Err(self.broken_unit(format!(
                        "{other:?} has no LLVM instruction; a lowering pass is missing"
                    )));
                }
            }
        };
        set_flags(made, kind, flags);
        Ok(made)
    }

    fn alloca(&self, info: &AllocaInfo, count: LLVMValueRef, ty: LLVMTypeRef) -> LLVMValueRef {
        unsafe {
            let space = LLVMGetPointerAddressSpace(ty);
            let elem = self.ty(info.ty);
            gr_build_alloca(
                self.builder,
                elem,
                space,
                count,
                info.align_bytes,
                i32::from(info.inalloca),
            )
        }
    }

    fn shuffle(&self, a: &[LLVMValueRef], mask: &[i32]) -> LLVMValueRef {
        unsafe {
            let int = LLVMInt32TypeInContext(self.host.ctx);
            let lane = |m: &i32| match *m {
                m if m < 0 => LLVMGetPoison(int),
                m => LLVMConstInt(int, m as u64, 0),
            };
            let mut lanes: Vec<LLVMValueRef> = mask.iter().map(lane).collect();
            let lanes = LLVMConstVector(lanes.as_mut_ptr(), lanes.len() as u32);
            LLVMBuildShuffleVector(self.builder, a[0], a[1], lanes, NO_NAME)
        }
    }

    /// Splits the operands of a call into arguments and bundles.
    pub(super) fn call_operands<'a>(
        &self,
        info: &CallInfo,
        a: &'a [LLVMValueRef],
    ) -> (&'a [LLVMValueRef], Vec<LLVMOperandBundleRef>) {
        let held: usize = info.bundles.iter().map(|(_, n)| *n as usize).sum();
        let (args, mut rest) = a[1..].split_at(a.len() - 1 - held);
        let mut bundles = Vec::new();
        for (tag, count) in &info.bundles {
            let (own, others) = rest.split_at(*count as usize);
            rest = others;
            bundles.push(unsafe {
                let start = own.as_ptr().cast_mut();
                LLVMCreateOperandBundle(tag.as_ptr().cast(), tag.len(), start, *count)
            });
        }
        (args, bundles)
    }

    fn call(&mut self, info: &CallInfo, a: &[LLVMValueRef]) -> Result<LLVMValueRef, Diagnostic> {
        let (args, mut bundles) = self.call_operands(info, a);
        let made = unsafe {
            let (start, count) = (args.as_ptr().cast_mut(), args.len() as u32);
            let (held, held_count) = (bundles.as_mut_ptr(), bundles.len() as u32);
            let signature = self.ty(info.signature);
            LLVMBuildCallWithOperandBundles(
                self.builder,
                signature,
                a[0],
                start,
                count,
                held,
                held_count,
                NO_NAME,
            )
        };
        unsafe { LLVMSetTailCallKind(made, tail_to_llvm(info.tail)) };
        self.finish_call(made, info, bundles)
    }

    /// Sets the calling convention and attributes of a call or invoke; disposes of the bundles.
    pub(super) fn finish_call(
        &mut self,
        made: LLVMValueRef,
        info: &CallInfo,
        bundles: Vec<LLVMOperandBundleRef>,
    ) -> Result<LLVMValueRef, Diagnostic> {
        unsafe {
            bundles
                .into_iter()
                .for_each(|b| LLVMDisposeOperandBundle(b));
            LLVMSetInstructionCallConv(made, info.convention);
        }
        if let Some(id) = info.attrs {
            for (index, attribute) in self.attributes(id)? {
                unsafe { LLVMAddCallSiteAttribute(made, index, attribute) };
            }
        }
        Ok(made)
    }

    fn landing_pad(&self, pad: &LandingPad, ty: LLVMTypeRef) -> LLVMValueRef {
        unsafe {
            let count = pad.clauses.len() as u32;
            let made = LLVMBuildLandingPad(self.builder, ty, std::ptr::null_mut(), count, NO_NAME);
            for (_, clause) in &pad.clauses {
                LLVMAddClause(made, self.consts[clause.index()]);
            }
            LLVMSetCleanup(made, i32::from(pad.cleanup));
            made
        }
    }

    /// Clones the host's instruction and sets new operands.
    fn foreign(&self, number: u32, a: &[LLVMValueRef]) -> Result<LLVMValueRef, Diagnostic> {
        let origin = self.host.tables.instructions.get(number);
        let origin = origin.ok_or_else(|| {
            self.broken_unit(format!("the LLVM module has no instruction {number}"))
        })?;
        unsafe {
            if LLVMGetNumOperands(origin) as usize != a.len() {
                return Err(self.broken_unit(
                    "a foreign op and the LLVM instruction have different operand counts",
                ));
            }
            let copy = LLVMInstructionClone(origin);
            for (i, value) in a.iter().enumerate() {
                LLVMSetOperand(copy, i as u32, *value);
            }
            LLVMInsertIntoBuilder(self.builder, copy);
            Ok(copy)
        }
    }
}

fn set_align(made: LLVMValueRef, access: &Access) -> LLVMValueRef {
    unsafe {
        LLVMSetAlignment(made, access.align_bytes);
        if access.volatile {
            LLVMSetVolatile(made, 1);
        }
    }
    made
}

fn set_access(made: LLVMValueRef, access: &Access) -> LLVMValueRef {
    if access.order != Atomicity::NotAtomic {
        unsafe {
            LLVMSetOrdering(made, order_to_llvm(access.order));
            LLVMSetAtomicSyncScopeID(made, access.sync_scope);
        }
    }
    set_align(made, access)
}

/// Sets flags on an instruction, unless the builder folded the op to a constant.
fn set_flags(made: LLVMValueRef, kind: &OpKind, flags: Flags) {
    let is_addr = matches!(kind, OpKind::Addr { .. });
    if flags == Flags::NONE || is_addr || unsafe { LLVMIsAInstruction(made) }.is_null() {
        return;
    }
    let supported = match kind {
        OpKind::Binary(op) => op.row().flags,
        OpKind::Cast(op) => op.row().flags,
        OpKind::ICmp(_) => Flags::SAMESIGN,
        _ => Flags::NONE,
    };
    unsafe {
        for row in INTEGER_FLAGS.iter().filter(|row| supported.has(row.flag)) {
            (row.set)(made, i32::from(flags.has(row.flag)));
        }
        let integer = supported != Flags::NONE && !supported.has(Flags::FAST);
        if !integer && LLVMCanValueUseFastMathFlags(made) != 0 {
            LLVMSetFastMathFlags(made, (flags.0 & Flags::FAST.0) >> FAST_SHIFT);
        }
    }
}

fn gep_flags(flags: Flags) -> u32 {
    let table = [(1, Flags::INBOUNDS), (2, Flags::NUSW), (4, Flags::NUW)];
    table
        .iter()
        .filter(|(_, f)| flags.has(*f))
        .map(|(bit, _)| bit)
        .sum()
}
