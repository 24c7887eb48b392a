//! Expands `dynamic_cast` into a type test and an address computation.
//!
//! The runtime function `__dynamic_cast` (Itanium C++ ABI, 2.9.7) checks the dynamic type of an object and
//! returns the address of the target subobject. If the last argument (`src2dst`) is a non-negative base
//! offset, the result is either null or the source address minus the offset. The expansion calls a private
//! test function and selects between the two addresses. For other casts (cross casts, virtual and repeated bases) a
//! private function returns the distance to the target subobject. Differentiation handles both.

use crate::host::ffi::{NO_NAME, name_of};
use crate::host::module::Host;
use gradus_ir::Diagnostic;
use gradus_ir::externals::QUERY_SYMBOL;
use llvm_sys::LLVMIntPredicate::LLVMIntNE;
use llvm_sys::LLVMLinkage::LLVMInternalLinkage;
use llvm_sys::LLVMValueKind;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;

/// The `dynamic_cast` entry point of the C++ runtime.
const CAST: &str = "__dynamic_cast";

impl Host {
    /// Expands all casts.
    ///
    /// # Errors
    /// LLVM's message if the module of a private function cannot be parsed or linked.
    pub fn write_out_casts(&mut self) -> Result<(), Diagnostic> {
        let calls = self.casts_with_known_offset();
        if !calls.is_empty() {
            let test = self.private_cast_function("cast", cast_test_text)?;
            for (call, back) in calls {
                // SAFETY: the call and the function are live values of the module.
                unsafe { self.replace_with_select(call, test, back) };
            }
        }
        let calls = self.calls_of(CAST, 4);
        if !calls.is_empty() {
            let distance = self.private_cast_function("cast_distance", cast_distance_text)?;
            for call in calls {
                // SAFETY: as above.
                unsafe { self.replace_with_distance(call, distance) };
            }
        }
        Ok(())
    }

    /// Returns a private function with the arguments of a cast, defined in the module on first use.
    fn private_cast_function(
        &mut self,
        what: &str,
        text: fn(&str) -> String,
    ) -> Result<LLVMValueRef, Diagnostic> {
        let name = format!("{QUERY_SYMBOL}_{what}");
        if !self.defines(&name) {
            let module = self.read_text(text(&name).as_bytes(), &name)?;
            self.link_module(module, &name)?;
        }
        let Some(function) = self.function(&name) else {
            unreachable!("the replacement of `__dynamic_cast` is linked");
        };
        // The function becomes internal only after linking: the linker drops internal functions without uses.
        // SAFETY: the function is a live value of the module.
        unsafe { LLVMSetLinkage(function, LLVMInternalLinkage) };
        Ok(function)
    }

    /// Replaces a cast by a call of the distance function, an address computation and a select. The private function
    /// itself keeps its call.
    unsafe fn replace_with_distance(&self, call: LLVMValueRef, distance: LLVMValueRef) {
        unsafe {
            let inside = LLVMGetBasicBlockParent(LLVMGetInstructionParent(call));
            if name_of(inside).starts_with(QUERY_SYMBOL) {
                // Not an error: the call of a private function.
                return;
            }
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, call);
            let (byte, long) = (
                LLVMInt8TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
            );
            let mut given: Vec<_> = (0..4).map(|at| LLVMGetOperand(call, at)).collect();
            let ty = LLVMGlobalGetValueType(distance);
            let moved = LLVMBuildCall2(build, ty, distance, given.as_mut_ptr(), 4, NO_NAME);
            LLVMInstructionSetDebugLoc(moved, LLVMInstructionGetDebugLoc(call));
            let none = LLVMConstInt(long, i64::MIN as u64, 1);
            let is = LLVMBuildICmp(build, LLVMIntNE, moved, none, NO_NAME);
            let mut offset = [moved];
            let start = LLVMBuildGEP2(build, byte, given[0], offset.as_mut_ptr(), 1, NO_NAME);
            let none = LLVMConstNull(LLVMTypeOf(call));
            let found = LLVMBuildSelect(build, is, start, none, NO_NAME);
            LLVMDisposeBuilder(build);
            LLVMReplaceAllUsesWith(call, found);
            LLVMInstructionEraseFromParent(call);
        }
    }

    /// Returns the casts with a non-negative constant base offset, and the offset in bytes.
    fn casts_with_known_offset(&self) -> Vec<(LLVMValueRef, u64)> {
        let with_place = |call: LLVMValueRef| unsafe {
            let hint = LLVMGetOperand(call, 3);
            let is_number = LLVMGetValueKind(hint) == LLVMValueKind::LLVMConstantIntValueKind;
            let back = is_number.then(|| LLVMConstIntGetSExtValue(hint))?;
            Some((call, u64::try_from(back).ok()?))
        };
        let calls = self.calls_of(CAST, 4).into_iter();
        calls.filter_map(with_place).collect()
    }

    /// Replaces a cast by a call of the test function and a select.
    unsafe fn replace_with_select(&self, call: LLVMValueRef, question: LLVMValueRef, back: u64) {
        unsafe {
            let build = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(build, call);
            let (byte, long) = (
                LLVMInt8TypeInContext(self.ctx),
                LLVMInt64TypeInContext(self.ctx),
            );
            let mut given: Vec<_> = (0..4).map(|at| LLVMGetOperand(call, at)).collect();
            let ty = LLVMGlobalGetValueType(question);
            let is = LLVMBuildCall2(build, ty, question, given.as_mut_ptr(), 4, NO_NAME);
            LLVMInstructionSetDebugLoc(is, LLVMInstructionGetDebugLoc(call));
            let mut offset = [LLVMConstInt(long, back.wrapping_neg(), 1)];
            let start = LLVMBuildGEP2(build, byte, given[0], offset.as_mut_ptr(), 1, NO_NAME);
            let none = LLVMConstNull(LLVMTypeOf(call));
            let found = LLVMBuildSelect(build, is, start, none, NO_NAME);
            LLVMDisposeBuilder(build);
            LLVMReplaceAllUsesWith(call, found);
            LLVMInstructionEraseFromParent(call);
        }
    }
}

fn cast_test_text(name: &str) -> String {
    format!(
        "declare ptr @{CAST}(ptr, ptr, ptr, i64)
define i1 @{name}(ptr %of, ptr %from, ptr %to, i64 %back) noinline {{
entry:
  %found = call ptr @{CAST}(ptr %of, ptr %from, ptr %to, i64 %back)
  %is = icmp ne ptr %found, null
  ret i1 %is
}}
"
    )
}

fn cast_distance_text(name: &str) -> String {
    format!(
        "declare ptr @{CAST}(ptr, ptr, ptr, i64)
define i64 @{name}(ptr %of, ptr %from, ptr %to, i64 %back) noinline {{
entry:
  %found = call ptr @{CAST}(ptr %of, ptr %from, ptr %to, i64 %back)
  %none = icmp eq ptr %found, null
  %there = ptrtoint ptr %found to i64
  %here = ptrtoint ptr %of to i64
  %distance = sub i64 %there, %here
  %result = select i1 %none, i64 -9223372036854775808, i64 %distance
  ret i64 %result
}}
"
    )
}
