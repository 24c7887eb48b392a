//! Objects, archives and bitcode files, and the modules that objects carry for a link across files.
//!
//! [`kind`] tells the files apart, [`linker_inputs`] lists the files of a link, and [`fat_objects`] and [`archive`]
//! read and write their formats.

pub(crate) mod archive;
mod elf_sections;
pub mod fat_objects;
pub(crate) mod kind;
pub(crate) mod linker_inputs;
pub(crate) mod outside_symbols;
pub(crate) mod source_record;
