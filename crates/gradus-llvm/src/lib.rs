//! The two ends of Gradus: the LLVM module that hosts the user's program, and the way of its bodies
//! into `gradus-ir` and back.
//!
//! - [`Host`]: reads, links, verifies, prints, emits ([`host`], [`target`]).
//! - [`Pipeline`]: the fixed list of LLVM pass pipelines.
//! - [`jit`]: runs functions of a module in this process, for tests.
//! - [`symbols`]: what the module defines, who calls whom, argument names, source lines.
#![deny(missing_docs)]

pub mod error;
mod ffi;
pub mod host;
pub mod jit;
pub mod pipeline;
pub mod restructure;
pub mod symbols;
mod tables;
pub mod target;

pub use error::HostError;
pub use host::{Host, Message};
pub use pipeline::{OptLevel, Pipeline};
pub use target::Emit;
