//! Owned Rust data for LLVM's strings, buffers and errors.
//!
//! Every raw message or buffer that LLVM returns is copied and disposed of here. The rest of the crate sees
//! only `String`, `Vec<u8>` and borrowed slices.
use llvm_sys::core::*;
use llvm_sys::error::*;
use llvm_sys::prelude::*;
use std::ffi::{CStr, CString, c_char};

/// The empty value name for builder calls.
pub(crate) const NO_NAME: *const c_char = c"".as_ptr();

/// Returns `text` as a C string. Interior NULs are dropped, because LLVM cannot represent them either.
pub(crate) fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// Copies and disposes of a message allocated by LLVM (`LLVMDisposeMessage`).
///
/// # Safety
/// `message` is null or a message that LLVM allocated and nobody else disposes of.
pub(crate) unsafe fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// Consumes an `LLVMErrorRef`; `None` is success.
///
/// # Safety
/// `error` is a live error that nobody else consumes, or null.
pub(crate) unsafe fn take_error(error: LLVMErrorRef) -> Option<String> {
    if error.is_null() {
        return None;
    }
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Some(text)
    }
}

/// Copies and disposes of a memory buffer of LLVM.
///
/// # Safety
/// `buffer` is a live buffer that nobody else disposes of.
pub(crate) unsafe fn take_buffer(buffer: LLVMMemoryBufferRef) -> Vec<u8> {
    unsafe {
        let start = LLVMGetBufferStart(buffer).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(buffer)).to_vec();
        LLVMDisposeMemoryBuffer(buffer);
        bytes
    }
}

/// Creates a memory buffer of LLVM with a copy of `bytes`.
pub(crate) fn make_buffer(bytes: &[u8], name: &str) -> LLVMMemoryBufferRef {
    let name = c_string(name);
    unsafe {
        LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name.as_ptr())
    }
}

/// Copies `len` bytes at `start` as text.
///
/// # Safety
/// `start` points to `len` readable bytes, or `len` is 0.
pub(crate) unsafe fn text_of(start: *const c_char, len: usize) -> String {
    if start.is_null() || len == 0 {
        return String::new();
    }
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) })
        .into_owned()
}

/// Returns the name of a value.
///
/// # Safety
/// `value` is a live value.
pub(crate) unsafe fn name_of(value: LLVMValueRef) -> String {
    unsafe {
        let mut len = 0;
        let start = LLVMGetValueName2(value, &mut len);
        text_of(start, len)
    }
}

fn nonnull(value: LLVMValueRef) -> Option<LLVMValueRef> {
    (!value.is_null()).then_some(value)
}

/// Returns the functions of a module, in order.
pub(crate) fn functions_of(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let first = nonnull(unsafe { LLVMGetFirstFunction(module) });
    std::iter::successors(first, |f| nonnull(unsafe { LLVMGetNextFunction(*f) })).collect()
}

/// Returns the global variables of a module, in order.
pub(crate) fn globals_of(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let first = nonnull(unsafe { LLVMGetFirstGlobal(module) });
    std::iter::successors(first, |v| nonnull(unsafe { LLVMGetNextGlobal(*v) })).collect()
}

/// Returns the users of a value, once per use.
pub(crate) fn users_of(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut users = Vec::new();
    let mut at = unsafe { LLVMGetFirstUse(value) };
    while !at.is_null() {
        users.push(unsafe { LLVMGetUser(at) });
        at = unsafe { LLVMGetNextUse(at) };
    }
    users
}

/// Returns the operands of an instruction.
pub(crate) fn operands_of<T: FromIterator<LLVMValueRef>>(inst: LLVMValueRef) -> T {
    let count = unsafe { LLVMGetNumOperands(inst) } as u32;
    (0..count)
        .map(|i| unsafe { LLVMGetOperand(inst, i) })
        .collect()
}

/// Returns the function that contains an instruction.
pub(crate) fn function_of(inst: LLVMValueRef) -> LLVMValueRef {
    unsafe { LLVMGetBasicBlockParent(LLVMGetInstructionParent(inst)) }
}

/// Returns whether a function has a string attribute at an index.
pub(crate) fn has_string_attribute(f: LLVMValueRef, index: u32, key: &str) -> bool {
    let (start, len) = (key.as_ptr().cast(), key.len() as u32);
    !unsafe { LLVMGetStringAttributeAtIndex(f, index, start, len) }.is_null()
}

/// Returns the blocks of a function, in order.
pub(crate) fn blocks_of(function: LLVMValueRef) -> Vec<LLVMBasicBlockRef> {
    let mut blocks = vec![std::ptr::null_mut(); unsafe { LLVMCountBasicBlocks(function) } as usize];
    unsafe { LLVMGetBasicBlocks(function, blocks.as_mut_ptr()) };
    blocks
}

/// Returns the instructions of a block, in order.
pub(crate) fn instructions_of(block: LLVMBasicBlockRef) -> impl Iterator<Item = LLVMValueRef> {
    let first = nonnull(unsafe { LLVMGetFirstInstruction(block) });
    std::iter::successors(first, |i| nonnull(unsafe { LLVMGetNextInstruction(*i) }))
}

/// Returns the instructions of a function, block by block.
pub(crate) fn instructions_in(function: LLVMValueRef) -> impl Iterator<Item = LLVMValueRef> {
    blocks_of(function).into_iter().flat_map(instructions_of)
}
