//! Numbers of LLVM's attribute kinds, by which attributes of functions and calls are read, added and removed.
use llvm_sys::core::LLVMGetEnumAttributeKindForName;

/// Returns LLVM's number of the attribute called `name`.
pub(crate) fn attribute_kind(name: &str) -> u32 {
    unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}
