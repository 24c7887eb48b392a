//! Names of LLVM's metadata kinds, by number.
//!
//! Import names the metadata that is preserved only; [`crate::prepare::marks`] finds Gradus' own metadata.
use crate::host::ffi::text_of;
use llvm_sys::prelude::*;
use std::ffi::{c_char, c_void};

unsafe extern "C" {
    fn gr_metadata_kinds(
        ctx: LLVMContextRef,
        sink: extern "C" fn(*mut c_void, *const c_char, usize),
        data: *mut c_void,
    );
}

extern "C" fn push_kind(names: *mut c_void, text: *const c_char, len: usize) {
    let names = unsafe { &mut *names.cast::<Vec<String>>() };
    names.push(unsafe { text_of(text, len) });
}

/// Returns the names of all metadata kinds of a context, by number.
pub(crate) fn metadata_kinds(ctx: LLVMContextRef) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    unsafe { gr_metadata_kinds(ctx, push_kind, (&raw mut names).cast()) };
    names
}
