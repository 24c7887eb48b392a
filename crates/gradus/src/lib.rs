//! The library interface: programs in files, derivatives in files.
//!
//! The layer runs compilers and linkers and accesses the files passed by the caller; the passes run in a
//! child process ([`child`]). Nothing here prints, or reads environment or clock: [`Settings`] holds all
//! external state.
//!
//! Layers, from below; a module imports only from modules before it:
//!
//! - [`TempFolders`], [`files`], [`Record`], [`ProgressSink`], [`Settings`]: external state.
//! - [`response_files`], [`clang_jobs`], `dependencies`, `job_execution`, [`compilation`]: the compilers' jobs, their runs, their halves.
//! - `module_scan`, [`objects`], `words`: contents of modules, objects and sources.
//! - [`reproducer`], [`child`]: the process that runs the passes.
//! - [`source`], `rustc`, `link`, `runtime`, [`driver`], [`nvcc`]: one source, one link, one command line.
//! - `fortran_descriptor`, `linker_flags`, `signature`, `shared_library`: libraries of derivatives, and their callers.
//! - [`report`]: the forms of the report.
//! - [`program`], [`mod@grad`], [`mod@check`], [`mod@dev`]: derivatives by name.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod cargo;
pub mod check;
pub mod child;
pub mod clang_jobs;
pub mod compilation;
mod dependencies;
pub mod dev;
mod direct;
pub mod driver;
pub mod files;
mod fortran_descriptor;
pub mod grad;
mod job_execution;
mod link;
mod linker_flags;
mod module_scan;
pub mod nvcc;
pub mod objects;
pub mod program;
mod progress;
pub mod report;
pub mod reproducer;
mod request_record;
pub mod response_files;
mod runtime;
pub mod runtime_library;
mod rustc;
mod settings;
mod shared_library;
mod signature;
pub mod source;
mod temp_files;
mod words;

pub use crate::temp_files::TempFolders;
pub use child::{child_limits, child_tells_progress};
pub use gradus_ir::{Code, Diagnostic, Label, Severity, SourceSpan, with_code_digits};
pub use gradus_pipeline as pipeline;
pub use progress::ProgressSink;
pub use request_record::Record;
pub use settings::{Language, Limits, Settings};
