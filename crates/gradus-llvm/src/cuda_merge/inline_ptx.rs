//! Inline PTX in device code: known instructions become functions ([`ptx`]), all others are refused.

use super::ptx::{self, OperandType};
use crate::host::attributes::attribute_kind;
use crate::host::calls::{assembly, calls_in, set_callee};
use crate::host::ffi::functions_of;
use crate::host::ffi::*;
use crate::host::module::Host;
use crate::host::symbols::source_location;
use gradus_ir::{Code, Diagnostic};
use llvm_sys::core::*;
use llvm_sys::linker::LLVMLinkModules2;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMTypeKind};

/// Prefix of the names of functions that replace inline assembly.
const ASSEMBLY: &str = "__gr_assembly.";

impl Host {
    /// Replaces the inline assembly of a device module by calls of equivalent functions.
    ///
    /// # Errors
    /// Unknown assembly.
    pub(super) fn replace_assembly(&self, module: LLVMModuleRef) -> Result<(), Diagnostic> {
        let mut calls = Vec::new();
        unsafe {
            let functions = functions_of(module).into_iter();
            for call in functions.flat_map(|f| calls_in(f)) {
                let callee = LLVMGetCalledValue(call);
                if LLVMIsAInlineAsm(callee).is_null() || is_compiler_barrier(call) {
                    continue;
                }
                let name = format!("{ASSEMBLY}{}", calls.len());
                let text = translate_assembly(call, &name).map_err(|text| refused(call, &text))?;
                calls.push((call, name, text));
            }
            for (_, name, text) in &calls {
                let made = self.read_text(text.as_bytes(), name)?;
                if LLVMLinkModules2(module, made) != 0 {
                    return Err(self.error_with_messages(
                        Code::UnreadableInput,
                        "cannot link the translated inline PTX",
                    ));
                }
            }
            for (call, name, _) in calls {
                let f = LLVMGetNamedFunction(module, c_string(&name).as_ptr());
                set_callee(call, f);
                // The compiler adds `memory` attributes to assembly without a memory clobber.
                let memory = attribute_kind("memory");
                LLVMRemoveCallSiteEnumAttribute(call, LLVMAttributeFunctionIndex, memory);
            }
        }
        Ok(())
    }
}

/// Returns whether assembly is an empty compiler barrier: no text, no results, no arguments.
unsafe fn is_compiler_barrier(call: LLVMValueRef) -> bool {
    unsafe {
        let gives = LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMTypeKind::LLVMVoidTypeKind;
        let text = assembly(LLVMGetCalledValue(call));
        text.trim().is_empty() && !gives && LLVMGetNumArgOperands(call) == 0
    }
}

/// Returns the text of the function `name` for a call of inline assembly; the error is the instruction
/// without a counterpart.
///
/// # Safety
/// `call` is a live call of inline assembly.
unsafe fn translate_assembly(call: LLVMValueRef, name: &str) -> Result<String, String> {
    unsafe {
        let callee = LLVMGetCalledValue(call);
        let text = assembly(callee);
        let whole = || text.split_whitespace().collect::<Vec<_>>().join(" ");
        let ty = LLVMTypeOf(call);
        let mut given = Vec::new();
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVoidTypeKind => {}
            LLVMTypeKind::LLVMStructTypeKind => {
                let count = LLVMCountStructElementTypes(ty);
                given.extend((0..count).map(|at| LLVMStructGetTypeAtIndex(ty, at)));
            }
            _ => given.push(ty),
        }
        let count = LLVMGetNumArgOperands(call);
        let taken = (0..count).map(|at| LLVMTypeOf(LLVMGetOperand(call, at)));
        let slots = |ty| slot(ty).ok_or_else(whole);
        let results = given
            .into_iter()
            .map(slots)
            .collect::<Result<Vec<_>, _>>()?;
        let inputs = taken.map(slots).collect::<Result<Vec<_>, _>>()?;
        let asked = constraints(callee);
        let words: Vec<&str> = asked.split(',').collect();
        // PTX has neither memory operands nor alternative constraints.
        if words.iter().any(|word| word.contains(['*', '|'])) {
            return Err(whole());
        }
        let tied: Vec<Option<usize>> = words[results.len()..]
            .iter()
            .map(|word| word.parse().ok().filter(|at| *at < results.len()))
            .collect();
        ptx::function(&text, &results, &inputs, &tied, name)
    }
}

unsafe fn slot(ty: LLVMTypeRef) -> Option<OperandType> {
    unsafe {
        Some(match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMIntegerTypeKind => match LLVMGetIntTypeWidth(ty) {
                bits @ (16 | 32 | 64) => OperandType::Int(bits),
                _ => return None,
            },
            LLVMTypeKind::LLVMHalfTypeKind => OperandType::Half,
            LLVMTypeKind::LLVMFloatTypeKind => OperandType::Float,
            LLVMTypeKind::LLVMDoubleTypeKind => OperandType::Double,
            LLVMTypeKind::LLVMPointerTypeKind => OperandType::Pointer,
            _ => return None,
        })
    }
}

unsafe fn constraints(value: LLVMValueRef) -> String {
    unsafe {
        let mut len = 0;
        let start = LLVMGetInlineAsmConstraintString(value, &mut len);
        text_of(start, len)
    }
}

fn refused(call: LLVMValueRef, text: &str) -> Diagnostic {
    let message = format!("inline PTX without a CPU translation: `{text}`");
    Diagnostic::error(Code::KernelRefused, message)
        .at(
            unsafe { source_location(call) },
            "the inline assembly is here",
        )
        .help("replace the assembly by CUDA C++, or guard the assembly with `#if`")
}
