//! Connects kernel launches of the host code with kernels of the module: the runtime checks the launch,
//! then the code calls `__gr_launch.NAME` with the host's sizes and arguments.
//!
//! ```text
//! if (!push(sizes)) stub(args)   →   direct(args, sizes)
//! direct(args, sizes) { if (!__gr_launch_begin(stub, sizes)) { __gr_launch.NAME(sizes, args); __gr_activity_end(); } }
//! ```
//!
//! `direct` is the stub's code with the sizes as parameters. `direct` is always inlined, and its argument
//! array is optimised away. Launches of unknown kernels, and launches from other files, go through the
//! runtime, which finds a kernel by its stub's address.
//!
//! The input is clang's output before any pass: every `<<<…>>>` is a push, a branch on its result, and a
//! stub call on one side of the branch.

use super::add_attribute;
use crate::host::calls::{calls_to, is_call, set_callee};
use crate::host::ffi::*;
use crate::host::ffi::{function_of, instructions_of, users_of};
use crate::host::module::Host;
use gradus_ir::externals::LAUNCH_PREFIX;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMTypeKind};
use std::collections::{HashMap, HashSet};

/// A kernel with its host stub.
pub(super) struct KernelStub {
    pub stub: LLVMValueRef,
    pub kernel: LLVMValueRef,
    pub name: String,
}

/// A `<<<…>>>` launch: the call that pushes the sizes, and the stub call.
struct Site {
    push: LLVMValueRef,
    call: LLVMValueRef,
}

/// The runtime function that receives a launch's sizes.
const PUSH: &str = "__cudaPushCallConfiguration";
/// The runtime function through which a stub reads the sizes.
const POP: &str = "__cudaPopCallConfiguration";
/// The runtime's launch function.
const KERNEL_LAUNCH: &str = "cudaLaunchKernel";
/// The grid and block sizes as the calling convention packs them, bytes of shared memory, the stream.
const PACKED: usize = 6;

impl Host {
    /// Connects all launches of the given kernels.
    pub(super) fn connect_launches(&mut self, kernels: &[KernelStub]) {
        let stubs: HashSet<LLVMValueRef> = kernels.iter().map(|k| k.stub).collect();
        let mut sites = self.sites(&stubs);
        for kernel in kernels {
            let sites = sites.remove(&kernel.stub).unwrap_or_default();
            let asked = self.explicit_launches(kernel.stub);
            if sites.is_empty() && asked.is_empty() {
                continue;
            }
            unsafe {
                let start = self.emit_launch_function(kernel);
                for call in asked {
                    set_callee(call, start);
                }
                if sites.is_empty() {
                    continue;
                }
                let direct = self.emit_direct(kernel, start);
                for site in sites {
                    self.replace_site(&site, direct);
                }
            }
        }
        self.invalidate_units();
    }

    /// Returns the `<<<…>>>` launches, by stub.
    fn sites(&self, stubs: &HashSet<LLVMValueRef>) -> HashMap<LLVMValueRef, Vec<Site>> {
        let mut sites: HashMap<LLVMValueRef, Vec<Site>> = HashMap::new();
        let Some(push) = self
            .function(PUSH)
            .filter(|f| unsafe { has_packed_sizes(*f, 0) })
        else {
            return sites;
        };
        for call in unsafe { calls_to(push) } {
            if let Some((stub, call_of_stub)) = unsafe { stub_call_of_push(call, push, stubs) } {
                let site = Site {
                    push: call,
                    call: call_of_stub,
                };
                sites.entry(stub).or_default().push(site);
            }
        }
        sites
    }

    /// Returns the program's explicit `cudaLaunchKernel` calls for a stub.
    fn explicit_launches(&self, stub: LLVMValueRef) -> Vec<LLVMValueRef> {
        let Some(launch) = self.function(KERNEL_LAUNCH) else {
            return Vec::new();
        };
        let calls = unsafe { calls_to(launch) }.into_iter();
        let of_stub = |call: &LLVMValueRef| unsafe {
            LLVMGetOperand(*call, 0) == stub && function_of(*call) != stub
        };
        match unsafe { is_launch_signature(launch) } {
            true => calls.filter(of_stub).collect(),
            false => Vec::new(),
        }
    }

    /// Emits the launch function of a kernel: `status (ptr stub, packed sizes…, ptr argv, shared, stream)`.
    unsafe fn emit_launch_function(&self, launched: &KernelStub) -> LLVMValueRef {
        unsafe {
            let (int, long, ptr) = self.integer_and_pointer_types();
            let mut types = [ptr, long, int, long, int, ptr, long, ptr];
            let ty = LLVMFunctionType(int, types.as_mut_ptr(), types.len() as u32, 0);
            let f = self.add_internal_function("__gr_start.", &launched.name, ty);
            self.copy_attributes(launched.kernel, f);
            let b = LLVMCreateBuilderInContext(self.ctx);
            let [begin, run, end] =
                [(); 3].map(|()| LLVMAppendBasicBlockInContext(self.ctx, f, NO_NAME));
            LLVMPositionBuilderAtEnd(b, begin);
            let param = |i: u32| LLVMGetParam(f, i);
            let x = |packed| LLVMBuildTrunc(b, packed, int, NO_NAME);
            let y = |packed| {
                let high = LLVMBuildLShr(b, packed, LLVMConstInt(long, 32, 0), NO_NAME);
                LLVMBuildTrunc(b, high, int, NO_NAME)
            };
            let sizes = [
                x(param(1)),
                y(param(1)),
                param(2),
                x(param(3)),
                y(param(3)),
                param(4),
            ];
            let mut given = vec![param(0)];
            given.extend(sizes);
            given.push(param(6));
            let mut types = [ptr, int, int, int, int, int, int, long];
            let may = LLVMFunctionType(int, types.as_mut_ptr(), types.len() as u32, 0);
            let begins = self.get_or_declare(c"__gr_launch_begin", may);
            let count = given.len() as u32;
            let status = LLVMBuildCall2(b, may, begins, given.as_mut_ptr(), count, NO_NAME);
            let (zero, is) = (LLVMConstNull(int), LLVMIntPredicate::LLVMIntEQ);
            let fits = LLVMBuildICmp(b, is, status, zero, NO_NAME);
            LLVMBuildCondBr(b, fits, run, end);

            LLVMPositionBuilderAtEnd(b, run);
            let mut args: Vec<LLVMValueRef> = sizes
                .iter()
                .map(|size| LLVMBuildZExt(b, *size, long, NO_NAME))
                .collect();
            args.push(param(6));
            args.extend(self.arguments(b, launched.kernel, param(5)));
            let (launch, launch_type) =
                self.launch_function(launched.kernel, LAUNCH_PREFIX, &launched.name);
            let count = args.len() as u32;
            LLVMBuildCall2(b, launch_type, launch, args.as_mut_ptr(), count, NO_NAME);
            let ended = LLVMFunctionType(LLVMVoidTypeInContext(self.ctx), [].as_mut_ptr(), 0, 0);
            let ends = self.get_or_declare(c"__gr_activity_end", ended);
            LLVMBuildCall2(b, ended, ends, [].as_mut_ptr(), 0, NO_NAME);
            LLVMBuildBr(b, end);

            LLVMPositionBuilderAtEnd(b, end);
            LLVMBuildRet(b, status);
            LLVMDisposeBuilder(b);
            f
        }
    }

    /// Emits a copy of a stub that takes the sizes as additional parameters and launches by `start`.
    unsafe fn emit_direct(&self, launched: &KernelStub, start: LLVMValueRef) -> LLVMValueRef {
        unsafe {
            let stub = launched.stub;
            let (int, long, ptr) = self.integer_and_pointer_types();
            let own = LLVMCountParams(stub);
            let params = (0..own).map(|i| LLVMTypeOf(LLVMGetParam(stub, i)));
            let mut types: Vec<LLVMTypeRef> = params.collect();
            types.extend([long, int, long, int, long, ptr]);
            let void = LLVMVoidTypeInContext(self.ctx);
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            let f = self.add_internal_function("__gr_direct.", &launched.name, ty);
            self.copy_attributes(stub, f);
            for i in 1..=own {
                for attribute in attributes(
                    stub,
                    i,
                    LLVMGetAttributeCountAtIndex,
                    LLVMGetAttributesAtIndex,
                ) {
                    LLVMAddAttributeAtIndex(f, i, attribute);
                }
            }
            let packed: Vec<LLVMValueRef> = (own..own + PACKED as u32)
                .map(|i| LLVMGetParam(f, i))
                .collect();
            for call in copy_code(self.ctx, stub, f) {
                match name_of(LLVMGetCalledValue(call)).as_str() {
                    POP => self.store_sizes(call, &packed),
                    KERNEL_LAUNCH => set_callee(call, start),
                    _ => {}
                }
            }
            f
        }
    }

    /// Replaces a stub's pop call by stores of the sizes.
    unsafe fn store_sizes(&self, pop: LLVMValueRef, packed: &[LLVMValueRef]) {
        unsafe {
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, pop);
            let [gxy, gz, bxy, bz, shared, stream] = packed else {
                unreachable!("a launch configuration has six operands");
            };
            let byte = LLVMInt8TypeInContext(self.ctx);
            let long = LLVMInt64TypeInContext(self.ctx);
            for (operand, xy, z) in [(0, gxy, gz), (1, bxy, bz)] {
                let to = LLVMGetOperand(pop, operand);
                LLVMSetAlignment(LLVMBuildStore(b, *xy, to), 4);
                let mut index = [LLVMConstInt(long, 8, 0)];
                let third = LLVMBuildInBoundsGEP2(b, byte, to, index.as_mut_ptr(), 1, NO_NAME);
                LLVMBuildStore(b, *z, third);
            }
            LLVMBuildStore(b, *shared, LLVMGetOperand(pop, 2));
            LLVMBuildStore(b, *stream, LLVMGetOperand(pop, 3));
            LLVMReplaceAllUsesWith(pop, LLVMConstNull(LLVMTypeOf(pop)));
            LLVMInstructionEraseFromParent(pop);
            LLVMDisposeBuilder(b);
        }
    }

    /// Replaces a site's push and stub call by a call of `direct`.
    unsafe fn replace_site(&self, site: &Site, direct: LLVMValueRef) {
        unsafe {
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, site.call);
            let own = LLVMGetNumArgOperands(site.call);
            let mut args: Vec<LLVMValueRef> =
                (0..own).map(|i| LLVMGetOperand(site.call, i)).collect();
            args.extend((0..PACKED as u32).map(|i| LLVMGetOperand(site.push, i)));
            let (ty, count) = (LLVMGlobalGetValueType(direct), args.len() as u32);
            let made = match LLVMIsAInvokeInst(site.call).is_null() {
                true => LLVMBuildCall2(b, ty, direct, args.as_mut_ptr(), count, NO_NAME),
                false => {
                    let (to, unwind) = (LLVMGetNormalDest(site.call), LLVMGetUnwindDest(site.call));
                    LLVMBuildInvoke2(b, ty, direct, args.as_mut_ptr(), count, to, unwind, NO_NAME)
                }
            };
            LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(site.call));
            for i in 1..=own {
                for attribute in attributes(
                    site.call,
                    i,
                    LLVMGetCallSiteAttributeCount,
                    LLVMGetCallSiteAttributes,
                ) {
                    LLVMAddCallSiteAttribute(made, i, attribute);
                }
            }
            LLVMInstructionEraseFromParent(site.call);
            LLVMReplaceAllUsesWith(site.push, LLVMConstNull(LLVMTypeOf(site.push)));
            if !LLVMIsAInvokeInst(site.push).is_null() {
                LLVMPositionBuilderBefore(b, site.push);
                LLVMBuildBr(b, LLVMGetNormalDest(site.push));
            }
            LLVMInstructionEraseFromParent(site.push);
            LLVMDisposeBuilder(b);
        }
    }

    /// Adds an internal function that is always inlined.
    unsafe fn add_internal_function(
        &self,
        prefix: &str,
        name: &str,
        ty: LLVMTypeRef,
    ) -> LLVMValueRef {
        unsafe {
            let name = c_string(&format!("{prefix}{name}"));
            let f = LLVMAddFunction(self.module, name.as_ptr(), ty);
            LLVMSetLinkage(f, LLVMLinkage::LLVMInternalLinkage);
            add_attribute(self, f, "alwaysinline");
            add_attribute(self, f, "nounwind");
            f
        }
    }

    /// Returns the types of 32-bit integers, 64-bit integers and pointers.
    fn integer_and_pointer_types(&self) -> (LLVMTypeRef, LLVMTypeRef, LLVMTypeRef) {
        unsafe {
            (
                LLVMInt32TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
                LLVMPointerTypeInContext(self.ctx, 0),
            )
        }
    }
}

/// Returns the only stub call of a push: a call between the branch on the push's result and the join.
unsafe fn stub_call_of_push(
    push: LLVMValueRef,
    function: LLVMValueRef,
    stubs: &HashSet<LLVMValueRef>,
) -> Option<(LLVMValueRef, LLVMValueRef)> {
    unsafe {
        let [test] = uses(push)[..] else { return None };
        let differs = LLVMGetICmpPredicate(test) == LLVMIntPredicate::LLVMIntNE;
        let is_test = !LLVMIsAICmpInst(test).is_null() && differs;
        if !is_test || LLVMIsNull(LLVMGetOperand(test, 1)) == 0 {
            return None;
        }
        let [branch] = uses(test)[..] else {
            return None;
        };
        if LLVMGetInstructionOpcode(branch) != LLVMOpcode::LLVMBr {
            return None;
        }
        let unwound = match LLVMIsAInvokeInst(push).is_null() {
            true => None,
            false => Some(LLVMGetUnwindDest(push)),
        };
        if unwound.is_some_and(|block| !LLVMIsAPHINode(LLVMGetFirstInstruction(block)).is_null()) {
            return None;
        }
        let (end, first) = (LLVMGetSuccessor(branch, 0), LLVMGetSuccessor(branch, 1));
        let (mut open, mut seen) = (vec![first], HashSet::from([first, end]));
        let mut found = None;
        while let Some(block) = open.pop() {
            for call in calls_in_block(block) {
                let callee = LLVMGetCalledValue(call);
                let second = stubs.contains(&callee) && found.replace((callee, call)).is_some();
                if second || callee == function {
                    return None;
                }
            }
            let last = LLVMGetBasicBlockTerminator(block);
            let count = match LLVMIsAInvokeInst(last).is_null() {
                true => LLVMGetNumSuccessors(last),
                // An exception unwinds without a launch.
                false => 1,
            };
            if count == 0 {
                return None;
            }
            let next = (0..count).map(|i| LLVMGetSuccessor(last, i));
            open.extend(next.filter(|block| seen.insert(*block)));
        }
        found
    }
}

/// Returns whether the parameters of a function, from `from` on, are sizes as the target packs them.
unsafe fn has_packed_sizes(f: LLVMValueRef, from: u32) -> bool {
    unsafe {
        let is_int = |i: u32, bits: u32| {
            let ty = LLVMTypeOf(LLVMGetParam(f, from + i));
            LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMIntegerTypeKind
                && LLVMGetIntTypeWidth(ty) == bits
        };
        LLVMCountParams(f) >= from + 4
            && is_int(0, 64)
            && is_int(1, 32)
            && is_int(2, 64)
            && is_int(3, 32)
    }
}

/// Returns whether the runtime's launch function has the signature of the target's calling convention.
unsafe fn is_launch_signature(f: LLVMValueRef) -> bool {
    unsafe { LLVMCountParams(f) == 8 && has_packed_sizes(f, 1) }
}

/// Returns the instructions that use a value, once per use.
unsafe fn uses(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let is_instruction = |user: &LLVMValueRef| unsafe { !LLVMIsAInstruction(*user).is_null() };
    users_of(value).into_iter().filter(is_instruction).collect()
}

unsafe fn calls_in_block(block: LLVMBasicBlockRef) -> Vec<LLVMValueRef> {
    let all = instructions_of(block);
    all.filter(|inst| unsafe { is_call(*inst) }).collect()
}

/// Returns the attributes of a function or call at an index.
unsafe fn attributes<I>(
    of: LLVMValueRef,
    index: I,
    count: unsafe extern "C" fn(LLVMValueRef, I) -> u32,
    get: unsafe extern "C" fn(LLVMValueRef, I, *mut LLVMAttributeRef),
) -> Vec<LLVMAttributeRef>
where
    I: Copy,
{
    unsafe {
        let mut list = vec![std::ptr::null_mut(); count(of, index) as usize];
        get(of, index, list.as_mut_ptr());
        list
    }
}

/// Clones a stub's code (without phis) into an empty function that begins with the same parameters; returns
/// the cloned calls.
unsafe fn copy_code(
    ctx: LLVMContextRef,
    from: LLVMValueRef,
    to: LLVMValueRef,
) -> Vec<LLVMValueRef> {
    let mut map: HashMap<LLVMValueRef, LLVMValueRef> = HashMap::new();
    let mut made = Vec::new();
    unsafe {
        for i in 0..LLVMCountParams(from) {
            map.insert(LLVMGetParam(from, i), LLVMGetParam(to, i));
        }
        let mut block = LLVMGetFirstBasicBlock(from);
        let b = LLVMCreateBuilderInContext(ctx);
        while !block.is_null() {
            let copy = LLVMAppendBasicBlockInContext(ctx, to, NO_NAME);
            map.insert(LLVMBasicBlockAsValue(block), LLVMBasicBlockAsValue(copy));
            LLVMPositionBuilderAtEnd(b, copy);
            for inst in instructions_of(block) {
                let copy = LLVMInstructionClone(inst);
                LLVMInsertIntoBuilder(b, copy);
                LLVMInstructionSetDebugLoc(copy, std::ptr::null_mut());
                map.insert(inst, copy);
                made.push(copy);
            }
            block = LLVMGetNextBasicBlock(block);
        }
        LLVMDisposeBuilder(b);
        for &inst in &made {
            for i in 0..LLVMGetNumOperands(inst) as u32 {
                if let Some(&own) = map.get(&LLVMGetOperand(inst, i)) {
                    LLVMSetOperand(inst, i, own);
                }
            }
        }
        made.retain(|inst| is_call(*inst));
    }
    made
}
