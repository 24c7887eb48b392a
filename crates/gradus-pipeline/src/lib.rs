//! The driver: carries out a request, a plain data structure, and returns a reply.
//!
//! ```text
//! let reply = gradus_pipeline::compile(&request);              // or
//! let bytes = gradus_pipeline::compile_bytes(&request_bytes);  // for a child process
//! ```
//!
//! [`Request`] and [`Reply`] are plain data that can be written to bytes. Nothing here reads files, starts
//! processes, prints, or reads environment or clock: timings use a clock passed by the caller
//! ([`compile_watched`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod compile;
mod passes;
mod registrations;
mod reports;
mod requests;
mod run;
mod source_words;
mod stages;
mod switches;
mod wire;

pub use crate::wire::codec::{WireError, from_bytes, to_bytes};
pub use crate::wire::progress::Progress;
pub use crate::wire::reply::{
    Argument, Derivative, Descriptor, DescriptorKind, Dump, FunctionInfo, Outcome, Output, Reply,
    ResultPart, Role, Timing,
};
/// The report as data.
pub use crate::wire::report;
pub use crate::wire::request::{
    Allowance, CallsTask, GradRequest, GradTask, Input, Level, Mode, Options, OutputKind,
    ParallelTarget, Request, Task,
};
pub use compile::{compile, compile_bytes, compile_watched};
pub use source_words::{PreservedSource, WrittenRegistration, may_hold_words, preserve_words};
pub use switches::switches;
