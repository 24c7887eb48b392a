//! Kernel entries: functions that take a kernel's arguments through an array of pointers, as
//! `cudaLaunchKernel` does, and run the kernel. A separate function runs the kernel with all launch sizes
//! as parameters; launches without known sizes call it, too.

use crate::cuda_merge::inline_thread_queries::functions_using;
use crate::host::attributes::attribute_kind;
use crate::host::ffi::*;
use crate::host::ffi::{has_string_attribute, users_of};
use crate::host::module::Host;
use gradus_ir::externals::{ENTRY_PREFIX, LAUNCH_PREFIX, RUN_PREFIX, SHARED_PREFIX};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::target::{LLVMABISizeOfType, LLVMGetModuleDataLayout};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMOpcode, LLVMTypeKind};
use std::ptr::null_mut;

/// The sizes of grid and block, and the bytes of dynamic shared memory.
const SIZES: usize = 7;

impl Host {
    /// Emits `void ENTRY_PREFIX(ptr argv, i64 grid x, y, z, i64 block x, y, z, i64 shared bytes)`.
    pub(super) fn add_entry(&mut self, kernel: LLVMValueRef, name: &str) -> LLVMValueRef {
        unsafe {
            self.byval_to_pointers(kernel);
            let long = LLVMInt64TypeInContext(self.ctx);
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let void = LLVMVoidTypeInContext(self.ctx);
            let run = self.add_run(kernel, name);
            let mut types = vec![long; SIZES + 1];
            types[0] = ptr;
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            let name = c_string(&format!("{ENTRY_PREFIX}{name}"));
            let entry = LLVMAddFunction(self.module, name.as_ptr(), ty);
            LLVMSetLinkage(entry, LLVMLinkage::LLVMInternalLinkage);
            self.copy_attributes(kernel, entry);
            let b = LLVMCreateBuilderInContext(self.ctx);
            let block = LLVMAppendBasicBlockInContext(self.ctx, entry, NO_NAME);
            LLVMPositionBuilderAtEnd(b, block);
            let mut args: Vec<LLVMValueRef> =
                (1..=SIZES as u32).map(|i| LLVMGetParam(entry, i)).collect();
            args.extend(self.arguments(b, kernel, LLVMGetParam(entry, 0)));
            self.emit_call(b, run, &mut args);
            LLVMBuildRetVoid(b);
            LLVMDisposeBuilder(b);
            entry
        }
    }

    /// Emits `void RUN(sizes…, arguments…)`, which launches the kernel.
    unsafe fn add_run(&self, kernel: LLVMValueRef, name: &str) -> LLVMValueRef {
        unsafe {
            let (run, _) = self.launch_function(kernel, RUN_PREFIX, name);
            LLVMSetLinkage(run, LLVMLinkage::LLVMInternalLinkage);
            self.copy_attributes(kernel, run);
            let b = LLVMCreateBuilderInContext(self.ctx);
            let block = LLVMAppendBasicBlockInContext(self.ctx, run, NO_NAME);
            LLVMPositionBuilderAtEnd(b, block);
            let params = 0..LLVMCountParams(run);
            let mut args: Vec<LLVMValueRef> = params.map(|i| LLVMGetParam(run, i)).collect();
            let (launch, _) = self.launch_function(kernel, LAUNCH_PREFIX, name);
            self.emit_call(b, launch, &mut args);
            LLVMBuildRetVoid(b);
            LLVMDisposeBuilder(b);
            run
        }
    }

    unsafe fn emit_call(&self, b: LLVMBuilderRef, f: LLVMValueRef, args: &mut [LLVMValueRef]) {
        let count = args.len() as u32;
        unsafe {
            let ty = LLVMGlobalGetValueType(f);
            LLVMBuildCall2(b, ty, f, args.as_mut_ptr(), count, NO_NAME);
        }
    }

    /// Returns the launch function of a kernel, with a prefix before the kernel's name, and its type:
    /// sizes, then the kernel's parameters.
    pub(super) unsafe fn launch_function(
        &self,
        kernel: LLVMValueRef,
        prefix: &str,
        name: &str,
    ) -> (LLVMValueRef, LLVMTypeRef) {
        unsafe {
            let params = 0..LLVMCountParams(kernel);
            let mut types = vec![LLVMInt64TypeInContext(self.ctx); SIZES];
            types.extend(params.map(|i| LLVMTypeOf(LLVMGetParam(kernel, i))));
            let void = LLVMVoidTypeInContext(self.ctx);
            let ty = LLVMFunctionType(void, types.as_mut_ptr(), types.len() as u32, 0);
            (
                self.get_or_declare(&c_string(&format!("{prefix}{name}")), ty),
                ty,
            )
        }
    }

    /// Loads a kernel's arguments, whose addresses are stored at `argv`.
    pub(super) unsafe fn arguments(
        &self,
        b: LLVMBuilderRef,
        kernel: LLVMValueRef,
        argv: LLVMValueRef,
    ) -> Vec<LLVMValueRef> {
        unsafe {
            let long = LLVMInt64TypeInContext(self.ctx);
            let ptr = LLVMPointerTypeInContext(self.ctx, 0);
            let one = |i: u32| {
                let mut index = [LLVMConstInt(long, u64::from(i), 0)];
                let slot = LLVMBuildInBoundsGEP2(b, ptr, argv, index.as_mut_ptr(), 1, NO_NAME);
                let place = LLVMBuildLoad2(b, ptr, slot, NO_NAME);
                self.argument(b, kernel, i, LLVMTypeOf(LLVMGetParam(kernel, i)), place)
            };
            (0..LLVMCountParams(kernel)).map(one).collect()
        }
    }

    /// Loads the argument at address `place`; an aggregate by value stays an address.
    unsafe fn argument(
        &self,
        b: LLVMBuilderRef,
        kernel: LLVMValueRef,
        index: u32,
        ty: LLVMTypeRef,
        place: LLVMValueRef,
    ) -> LLVMValueRef {
        unsafe {
            if self.is_by_value(kernel, index) {
                return place;
            }
            let is_bool = LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMIntegerTypeKind
                && LLVMGetIntTypeWidth(ty) == 1;
            if !is_bool {
                return LLVMBuildLoad2(b, ty, place, NO_NAME);
            }
            let byte = LLVMBuildLoad2(b, LLVMInt8TypeInContext(self.ctx), place, NO_NAME);
            LLVMBuildTrunc(b, byte, ty, NO_NAME)
        }
    }

    /// Returns whether a kernel parameter is passed by value through a pointer.
    unsafe fn is_by_value(&self, kernel: LLVMValueRef, index: u32) -> bool {
        has_string_attribute(kernel, index + 1, BY_VALUE)
    }

    /// Replaces `byval` parameters by plain pointers. `byval` memory is private to a thread, so a parameter
    /// that is written is copied to a stack variable.
    unsafe fn byval_to_pointers(&self, kernel: LLVMValueRef) {
        let byval = attribute_kind("byval");
        unsafe {
            for i in 0..LLVMCountParams(kernel) {
                let attribute = LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval);
                if attribute.is_null() {
                    continue;
                }
                let ty = LLVMGetTypeAttributeValue(attribute);
                let param = LLVMGetParam(kernel, i);
                let align = LLVMGetEnumAttributeAtIndex(kernel, i + 1, attribute_kind("align"));
                let align = match align.is_null() {
                    true => 1,
                    false => LLVMGetEnumAttributeValue(align) as u32,
                };
                LLVMRemoveEnumAttributeAtIndex(kernel, i + 1, byval);
                let mark = LLVMCreateStringAttribute(
                    self.ctx,
                    BY_VALUE.as_ptr().cast(),
                    BY_VALUE.len() as u32,
                    NO_NAME,
                    0,
                );
                LLVMAddAttributeAtIndex(kernel, i + 1, mark);
                if !is_only_read(param) {
                    self.copy_parameter(kernel, param, ty, align);
                }
            }
        }
    }

    unsafe fn copy_parameter(
        &self,
        kernel: LLVMValueRef,
        param: LLVMValueRef,
        ty: LLVMTypeRef,
        align: u32,
    ) {
        unsafe {
            let first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel));
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, first);
            let copy = LLVMBuildAlloca(b, ty, NO_NAME);
            LLVMSetAlignment(copy, align.max(1));
            LLVMReplaceAllUsesWith(param, copy);
            let bytes = LLVMABISizeOfType(LLVMGetModuleDataLayout(self.module), ty);
            let size = LLVMConstInt(LLVMInt64TypeInContext(self.ctx), bytes, 0);
            LLVMBuildMemCpy(b, copy, align.max(1), param, align.max(1), size);
            LLVMDisposeBuilder(b);
        }
    }

    /// Copies the string attributes of `from`, which describe the target, to `to`.
    pub(super) unsafe fn copy_attributes(&self, from: LLVMValueRef, to: LLVMValueRef) {
        unsafe {
            let count = LLVMGetAttributeCountAtIndex(from, LLVMAttributeFunctionIndex) as usize;
            let mut list: Vec<LLVMAttributeRef> = vec![null_mut(); count];
            LLVMGetAttributesAtIndex(from, LLVMAttributeFunctionIndex, list.as_mut_ptr());
            for attribute in list {
                if LLVMIsStringAttribute(attribute) != 0 {
                    LLVMAddAttributeAtIndex(to, LLVMAttributeFunctionIndex, attribute);
                }
            }
        }
    }

    /// Returns a kernel's maximum number of threads per block (`nvvm.maxntid`); 0 if unspecified.
    pub(super) unsafe fn block_threads_max(&self, kernel: LLVMValueRef) -> u64 {
        let key = "nvvm.maxntid";
        unsafe {
            let attribute = LLVMGetStringAttributeAtIndex(
                kernel,
                LLVMAttributeFunctionIndex,
                key.as_ptr().cast(),
                key.len() as u32,
            );
            if attribute.is_null() {
                return 0;
            }
            let mut len = 0;
            let start = LLVMGetStringAttributeValue(attribute, &mut len);
            let sizes = text_of(start, len as usize);
            let product = sizes
                .split(',')
                .map(|s| s.trim().parse::<u64>().unwrap_or(1));
            product.product()
        }
    }

    /// Returns the bytes of static shared memory that a kernel uses.
    pub(super) fn shared_bytes(&self, kernel: LLVMValueRef) -> u64 {
        let reached = self.closure(&[&unsafe { name_of(kernel) }]);
        let layout = unsafe { LLVMGetModuleDataLayout(self.module) };
        let shared = self.variables().into_iter().filter(|v| unsafe {
            name_of(*v).starts_with(SHARED_PREFIX)
                && functions_using(*v)
                    .iter()
                    .any(|f| reached.contains(&name_of(*f)))
        });
        let size = |v| unsafe { LLVMABISizeOfType(layout, LLVMGlobalGetValueType(v)) };
        shared.map(size).sum()
    }
}

/// Marks a parameter that is passed by value through a pointer.
const BY_VALUE: &str = "gradus-by-value";

/// Returns whether memory behind a pointer is only read.
unsafe fn is_only_read(pointer: LLVMValueRef) -> bool {
    let mut open = vec![pointer];
    while let Some(pointer) = open.pop() {
        unsafe {
            for user in users_of(pointer) {
                if LLVMIsAInstruction(user).is_null() {
                    return false;
                }
                match LLVMGetInstructionOpcode(user) {
                    LLVMOpcode::LLVMLoad => {}
                    LLVMOpcode::LLVMGetElementPtr => open.push(user),
                    LLVMOpcode::LLVMCall => {
                        let callee = name_of(LLVMGetCalledValue(user));
                        let copies =
                            callee.starts_with("llvm.memcpy") && LLVMGetOperand(user, 0) != pointer;
                        if !copies {
                            return false;
                        }
                    }
                    _ => return false,
                }
            }
        }
    }
    true
}
