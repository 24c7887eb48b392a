//! The library interface: programs in files, derivatives in files.
//!
//! The layer runs compilers and linkers and accesses the files passed by the caller; the passes run in a
//! child process ([`child`]). Nothing here prints, or reads environment or clock: [`Settings`] holds all
//! external state.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod check;
pub mod child;
pub mod clang_jobs;
pub mod compilation;
pub mod dev;
pub mod driver;
pub mod files;
pub mod grad;
mod job_execution;
mod link;
mod module_scan;
pub mod nvcc;
pub mod objects;
pub mod reproducer;
mod request_record;
mod runtime;
mod rustc;
mod settings;
pub mod source;
mod temp_files;
mod words;

pub use crate::temp_files::TempFolders;
pub use child::{CHILD_COMMAND, child_limits};
pub use gradus_ir::{Code, Diagnostic, Label, Severity, SourceSpan};
pub use gradus_pipeline as pipeline;
pub use request_record::Record;
pub use settings::{Language, Limits, Settings};
