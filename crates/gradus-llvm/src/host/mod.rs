//! The LLVM module, its symbols and targets, and handles into LLVM.

pub(crate) mod attributes;
pub(crate) mod calls;
pub(crate) mod derivatives_only;
pub(crate) mod ffi;
pub(crate) mod handle_map;
pub(crate) mod handle_tables;
pub mod jit;
pub(crate) mod metadata_kinds;
pub mod module;
pub mod op_histogram;
pub mod pristine_bodies;
pub(crate) mod reachable;
pub(crate) mod source_files;
pub mod symbol_preservation;
pub mod symbols;
pub mod target;
pub(crate) mod whole_program;
