//! Calls of the interface that stand for other code, in the primal, too: hints, the number of iterations of a loop, inactive
//! calls (`CallRewrite` in gradus-ir). The calls are rewritten in the whole module before derivatives are made.

use crate::host::calls::calls_to;
use crate::host::ffi::{NO_NAME, name_of};
use crate::host::module::Host;
use crate::host::symbols::source_location;
use gradus_ir::externals::{CallRewrite, call_rewrite};
use gradus_ir::{Code, Diagnostic};
use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::core::*;
use llvm_sys::debuginfo::{LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc};
use llvm_sys::prelude::*;

/// Attribute of a call that carries no derivative.
const INACTIVE: &str = "enzyme_inactive";

impl Host {
    /// Rewrites the calls of the interface that stand for other code. Returns the calls that cannot be rewritten.
    pub fn rewrite_interface_calls(&mut self) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        let mut is_changed = false;
        for function in self.functions() {
            let name = unsafe { name_of(function) };
            let Some((word, rewrite)) = call_rewrite(&name) else {
                continue;
            };
            is_changed = true;
            for call in unsafe { calls_to(function) } {
                if let Err(why) = unsafe { self.rewrite_call(call, rewrite) } {
                    let finding =
                        Diagnostic::error(Code::UnsupportedKeyword, format!("`{word}` {why}"));
                    let span = unsafe { source_location(call) };
                    findings.push(finding.at(span, "here"));
                }
            }
            if unsafe { LLVMGetFirstUse(function).is_null() } {
                unsafe { LLVMDeleteFunction(function) };
            }
        }
        if is_changed {
            self.invalidate_units();
        }
        findings
    }

    unsafe fn rewrite_call(
        &self,
        call: LLVMValueRef,
        rewrite: CallRewrite,
    ) -> Result<(), &'static str> {
        unsafe {
            let is_unused = LLVMGetFirstUse(call).is_null();
            let count = LLVMGetNumArgOperands(call);
            match rewrite {
                CallRewrite::Drop if is_unused => {}
                CallRewrite::Drop => return Err("has no result"),
                CallRewrite::FirstArgument => {
                    let second = (count == 2).then(|| LLVMGetOperand(call, 1));
                    let is_plain = second.is_none_or(|value| LLVMIsNull(value) != 0);
                    if !(1..=2).contains(&count) || !is_plain {
                        return Err("takes the number of iterations and 0");
                    }
                    let first = LLVMGetOperand(call, 0);
                    if LLVMTypeOf(first) != LLVMTypeOf(call) {
                        return Err("returns another type than its argument");
                    }
                    LLVMReplaceAllUsesWith(call, first);
                }
                CallRewrite::Inactive => self.call_inactive(call, count)?,
            }
            if LLVMIsAInvokeInst(call).is_null() {
                LLVMInstructionEraseFromParent(call);
                return Ok(());
            }
            Err("stands in a `try` block")
        }
    }

    /// Emits a direct call of the first argument, marked as inactive.
    unsafe fn call_inactive(&self, call: LLVMValueRef, count: u32) -> Result<(), &'static str> {
        unsafe {
            let callee = (count > 0).then(|| LLVMGetOperand(call, 0));
            let Some(callee) = callee.filter(|value| !LLVMIsAFunction(*value).is_null()) else {
                return Err("needs the name of a function");
            };
            let ty = LLVMGlobalGetValueType(callee);
            let mut params = vec![std::ptr::null_mut(); LLVMCountParamTypes(ty) as usize];
            LLVMGetParamTypes(ty, params.as_mut_ptr());
            let mut args: Vec<LLVMValueRef> = (1..count)
                .map(|index| LLVMGetOperand(call, index))
                .collect();
            let fits = args.len() == params.len()
                && args
                    .iter()
                    .zip(&params)
                    .all(|(arg, param)| LLVMTypeOf(*arg) == *param)
                && LLVMGetReturnType(ty) == LLVMTypeOf(call);
            if !fits {
                return Err("needs the arguments and the result of the function");
            }
            let b = LLVMCreateBuilderInContext(self.ctx);
            LLVMPositionBuilderBefore(b, call);
            let made = LLVMBuildCall2(b, ty, callee, args.as_mut_ptr(), args.len() as u32, NO_NAME);
            LLVMDisposeBuilder(b);
            LLVMSetInstructionCallConv(made, LLVMGetFunctionCallConv(callee));
            LLVMInstructionSetDebugLoc(made, LLVMInstructionGetDebugLoc(call));
            let mark = LLVMCreateStringAttribute(
                self.ctx,
                INACTIVE.as_ptr().cast(),
                INACTIVE.len() as u32,
                std::ptr::null(),
                0,
            );
            LLVMAddCallSiteAttribute(made, LLVMAttributeFunctionIndex, mark);
            LLVMReplaceAllUsesWith(call, made);
            Ok(())
        }
    }
}
