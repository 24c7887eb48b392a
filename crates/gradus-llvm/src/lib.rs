//! The two ends of Gradus: the LLVM module that hosts the user's program, and the way of its bodies
//! into `gradus-ir` and back.
//!
//! - [`Host`]: reads, links, verifies, prints, emits ([`host`], [`target`]).
//! - [`Pipeline`]: the fixed list of LLVM pass pipelines.
//! - [`jit`]: runs functions of a module in this process, for tests.
//! - [`symbols`]: what the module defines, who calls whom, argument names, source lines.
#![deny(missing_docs)]

mod export;
mod ffi;
pub mod host;
pub mod import;
pub mod jit;
pub mod pipeline;
mod pointers;
pub mod restructure;
pub mod symbols;
mod tables;
pub mod target;

pub use host::{Host, Message};
pub use import::{Imported, Refusal};
pub use pipeline::{OptLevel, Pipeline};
pub use target::Emit;
