//! Reasons why a function cannot be imported and stays in the host unchanged.
use super::Importer;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode};

/// A reason for a refused import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// `indirectbr` (computed goto).
    IndirectBranch,
    /// `callbr` (`asm goto`).
    AsmGoto,
    /// Windows exception handling, or a landing pad in an unknown form.
    Funclet,
    /// The address of a label is taken.
    BlockAddress,
    /// A switch over more than 128 bits.
    WideSwitch,
    /// A coroutine that is not split yet.
    Coroutine,
    /// `setjmp` or another function that returns twice.
    ReturnsTwice,
    /// A `token` value that would cross a region boundary.
    Token,
    /// A Swift error slot.
    SwiftError,
    /// Debug information in an outdated form.
    LocalMetadata,
    /// A function without prologue and epilogue.
    Naked,
    /// Control flow that restructuring does not accept.
    ControlFlow,
}

impl Refusal {
    /// Returns the reason code, stable for use in listings.
    pub fn code(self) -> &'static str {
        match self {
            Refusal::IndirectBranch => "indirectbr",
            Refusal::AsmGoto => "callbr",
            Refusal::Funclet => "funclet",
            Refusal::BlockAddress => "blockaddress",
            Refusal::WideSwitch => "wide-switch",
            Refusal::Coroutine => "coroutine",
            Refusal::ReturnsTwice => "returns-twice",
            Refusal::Token => "token",
            Refusal::SwiftError => "swifterror",
            Refusal::LocalMetadata => "local-metadata",
            Refusal::Naked => "naked",
            Refusal::ControlFlow => "control-flow",
        }
    }

    /// Returns the reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::IndirectBranch => "the function has a computed `goto` (`indirectbr`)",
            Refusal::AsmGoto => "the function contains an `asm goto`",
            Refusal::Funclet => {
                "the function uses Windows exception handling or an unknown form of landing pad"
            }
            Refusal::BlockAddress => "the function takes the address of a label",
            Refusal::WideSwitch => {
                "the function has a `switch` over an integer of more than 128 bits"
            }
            Refusal::Coroutine => "the function is a coroutine",
            Refusal::ReturnsTwice => {
                "the function calls `setjmp` or another function that returns twice"
            }
            Refusal::Token => "a `token` value would cross a region boundary",
            Refusal::SwiftError => "the function has a Swift error slot",
            Refusal::LocalMetadata => "the debug information has an outdated form",
            Refusal::Naked => "the function is `naked`",
            Refusal::ControlFlow => "the control flow cannot be structured",
        }
    }
}

unsafe extern "C" {
    fn gr_alloca_flags(alloca: LLVMValueRef) -> u32;
    fn gr_call_returns_twice(call: LLVMValueRef) -> i32;
    fn gr_takes_local_metadata(call: LLVMValueRef) -> i32;
}

impl Importer<'_> {
    /// Refuses functions that cannot be imported because of their attributes.
    pub(super) fn check_function(&self, function: LLVMValueRef) -> Result<(), Refusal> {
        let has = |kind| unsafe {
            !LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind).is_null()
        };
        if has(self.kinds.coroutine) {
            return Err(Refusal::Coroutine);
        }
        if has(self.kinds.naked) {
            return Err(Refusal::Naked);
        }
        Ok(())
    }

    /// Refuses instructions without a region form.
    pub(super) fn check(&self, inst: LLVMValueRef, opcode: LLVMOpcode) -> Result<(), Refusal> {
        use LLVMOpcode::*;
        unsafe {
            match opcode {
                LLVMAlloca if gr_alloca_flags(inst) & 2 != 0 => Err(Refusal::SwiftError),
                LLVMCatchPad | LLVMCleanupPad => Err(Refusal::Funclet),
                LLVMCall | LLVMInvoke if gr_call_returns_twice(inst) != 0 => {
                    Err(Refusal::ReturnsTwice)
                }
                LLVMCall if gr_takes_local_metadata(inst) != 0 => Err(Refusal::LocalMetadata),
                _ => Ok(()),
            }
        }
    }
}
