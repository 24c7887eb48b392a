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
            Refusal::IndirectBranch => "it jumps to computed addresses",
            Refusal::AsmGoto => "it holds an `asm goto`",
            Refusal::Funclet => "it handles exceptions the Windows way",
            Refusal::BlockAddress => "the address of one of its labels is taken",
            Refusal::WideSwitch => "it switches over a very wide integer",
            Refusal::Coroutine => "it is a coroutine",
            Refusal::ReturnsTwice => "it calls `setjmp` or something else that returns twice",
            Refusal::Token => "it passes a token between regions",
            Refusal::SwiftError => "it holds a Swift error slot",
            Refusal::LocalMetadata => "its debug information has an outdated form",
            Refusal::Naked => "it is a naked function",
            Refusal::ControlFlow => "its control flow is malformed",
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
