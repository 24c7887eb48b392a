//! Test support for all passes: case pages, and the three-way check of derivatives.
//!
//! A case page is a Markdown file that shows a program before and after some passes:
//!
//! ````text
//! # A sum of zeros is folded
//! run: fold, dce
//! ## in
//! func @f(%x: f64) -> f64 { … }
//! ## check
//! @f(x = 1.5)
//! ## out                     written by `cargo xtask bless`, read in review
//! ## values                  likewise
//! ````
//!
//! Flow: `case_page` parses and writes pages, `call_spec` parses and runs the calls of `## check`, `compare`
//! compares runs before and after the passes, `runner` does all of it for a folder. Every page also checks that
//! print and parse are inverse, that the verifier passes before and after, and that the interpreter's
//! results are unchanged; parallel programs run in several orders.
//!
//! A crate runs its pages from an integration test:
//!
//! ```no_run
//! use gradus_testkit::{Pass, check_pages};
//! let passes = [Pass::same("nothing", |_unit, _words| Ok(()))];
//! check_pages("crates/some-crate/cases", &passes).unwrap();
//! ```
//!
//! [`program`] returns random programs, checked likewise; [`reduce()`] and [`reduce_text`] reduce failing
//! programs to a readable size. [`c_program`] returns C programs and [`check_c`] checks their derivatives
//! through the compiler. [`wide_program`] and [`check_unit`] do so without C, a hundred programs at a time;
//! [`Coverage`] counts their contents. [`fork_join_program`] returns parallel programs, run by
//! [`check_fork_join`] on the pool and by [`check_sanitized`] under ThreadSanitizer. [`parallel_c_program`]
//! returns OpenMP programs, whose gradients [`check_parallel_c`] compares with the serial gradients. The
//! binary `fuzz` does long runs.
//!
//! A pass that changes the meaning of a program ([`Pass::derived`]) brings its own check, such as
//! [`three_way`] for derivatives.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod generate;
mod oracle;
mod reduce;
mod run;

pub use crate::oracle::c_compile::{ROUTES, c_unit, check_c};
pub use crate::oracle::coverage::Coverage;
pub use crate::oracle::fork_join_check::{ForkJoinWay, check_fork_join, fork_join_unit};
pub use crate::oracle::ir_check::{WideRoute, check_unit, wide_unit};
pub use crate::oracle::kernel_check::{check_kernel, effective_passes};
pub use crate::oracle::memory_check::{MemoryFindings, check_memory_program};
pub use crate::oracle::parallel_c_check::{ParallelCWay, check_parallel_c};
pub use crate::oracle::points_to_check::check_points_to;
pub use crate::oracle::shares_check::{SharesWay, check_shares};
pub use crate::oracle::three_way::{Functions, Linear, Primal, ThreeWay, three_way};
pub use crate::oracle::tsan_check::{check_sanitized, seed_races};
pub use crate::reduce::gir::{reduce, without_unused};
pub use crate::reduce::text::reduce_text;
pub use crate::run::call_spec::{
    Argument, Array, Call, CallOutcome, Elements, number_text, run_call,
};
pub use crate::run::case_page::{Page, Step};
pub use crate::run::compare::same_outcome;
pub use crate::run::pool::{Pool, options_with_eager_forks};
pub use crate::run::runner::{Check, Pass, check_page, check_pages};
pub use crate::run::verdict::Verdict;
pub use generate::c::{C_INCLUDES, CProgram, c_program};
pub use generate::{CELLS, FEATURES, Style, WideProgram, program, wide_program};
pub use generate::{FORK_JOIN_FEATURES, ForkJoinProgram, fork_join_program};
pub use generate::{KERNEL_FEATURES, KernelProgram, kernel_program};
pub use generate::{MemoryProgram, memory_program};
pub use generate::{PARALLEL_C_FEATURES, ParallelCProgram, parallel_c_program};
pub use generate::{SHARES_FEATURES, SHARES_INCLUDES, SharesProgram, shares_program};
