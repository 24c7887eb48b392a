//! The driver: carries out a request, a plain data structure, and returns a reply.
//!
//! ```text
//! let reply = gradus_pipeline::compile(&request);              // or
//! let bytes = gradus_pipeline::compile_bytes(&request_bytes);  // for a child process
//! ```
//!
//! [`Request`] and [`Reply`] are plain data that can be written to bytes. Nothing here reads files, starts
//! processes, prints, or reads environment or clock: timings use a clock passed by the caller
//! ([`compile_timed`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod adapter;
mod call_sites;
mod called;
mod callers;
mod compile;
mod derive;
mod in_kernels;
mod kernel_report;
mod marks;
mod moves;
mod names;
mod parallel;
mod parallel_report;
mod pointees;
mod registrations;
mod reply;
mod report;
mod request;
mod requests;
mod run;
mod simplify;
mod source_words;
mod teams;
mod wire;
mod worklist;

pub use compile::{compile, compile_bytes, compile_timed};
pub use reply::{
    Argument, Derivative, Descriptor, DescriptorKind, Dump, FunctionInfo, Outcome, Output, Part,
    Reply, Role, Timing,
};
pub use request::{
    Allowance, CallsTask, GradRequest, GradTask, Input, Level, Mode, Options, OutputKind,
    ParallelTarget, Request, Task,
};
pub use run::PASSES;
pub use source_words::{KeptWords, WrittenRegistration, keep_words, may_hold_words};
pub use wire::{WireError, from_bytes, to_bytes};
pub use worklist::SWITCHES;
