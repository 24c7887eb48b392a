//! Checks: the reasons against a derivative, and doubts about its meaning.
//!
//! [`CHECKS`] lists the checks. A check has one code of diagnostics; the file or the folder of a check has the name of
//! the code, and the page of the code below `docs/diagnostics` has programs with findings. No other file of the crate
//! builds diagnostics about programs. `request.rs` runs the checks.
//!
//! Files without a code search for code that several checks read: `unshadowed_stores.rs`, `unknown_callees.rs`.
//!
//! The checks refuse and never guess.

mod bad_request;
mod external_global;
mod finding;
pub(crate) mod findings;
pub(crate) mod float_bits;
mod integer_stores;
mod open_mp;
mod outlives;
pub(crate) mod request;
mod text_over_floats;
mod text_round_trip;
mod thread_local_global;
mod unknown_callee;
mod unknown_callees;
mod unknown_indirect_target;
mod unshadowed_stores;
mod variadic_structures;
mod zero_derivative;

use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use gradus_ir::Code;

/// A check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Code of all findings of the check.
    pub code: Code,
    /// The construct that the check finds, in words.
    pub name: &'static str,
    /// Returns the findings in the analysis results of a request, in source order.
    pub(crate) run: fn(&RequestFacts<'_>) -> Vec<Finding>,
}

/// Returns a row of [`CHECKS`].
const fn row(code: Code, name: &'static str, run: fn(&RequestFacts<'_>) -> Vec<Finding>) -> Check {
    Check { code, name, run }
}

/// All checks, in the order of their findings at one position.
// table
pub const CHECKS: &[Check] = &[
    row(
        Code::ThreadLocalGlobal,
        "active values in thread-local variables",
        thread_local_global::stores,
    ),
    row(
        Code::ExternalGlobal,
        "active values in variables of other files",
        external_global::stores,
    ),
    row(
        Code::UnknownCallee,
        "active values in memory from unknown allocators",
        unknown_callee::allocators,
    ),
    row(
        Code::UnknownIndirectTarget,
        "active values in memory from indirect calls",
        unknown_indirect_target::allocators,
    ),
    row(
        Code::BadRequest,
        "active values in const memory",
        bad_request::const_memory,
    ),
    row(
        Code::ZeroDerivative,
        "const memory that may alias",
        zero_derivative::const_aliases,
    ),
    row(
        Code::Outlives,
        "active memory that a variable retains",
        outlives::persistent_memory::check,
    ),
    row(
        Code::Outlives,
        "values that a variable keeps",
        outlives::kept_values::check,
    ),
    row(
        Code::BadRequest,
        "results without a shadow",
        bad_request::results,
    ),
    row(
        Code::UnknownCallee,
        "writes of external functions",
        unknown_callee::external_writes::check,
    ),
    row(
        Code::FloatBits,
        "conversions of fraction bits",
        float_bits::fraction::check,
    ),
    row(
        Code::FloatBits,
        "reads in another format",
        float_bits::stored_formats::check,
    ),
    row(
        Code::TextRoundTrip,
        "numbers that pass through text",
        text_round_trip::check,
    ),
    row(
        Code::OpenMp,
        "queries of tasks and nested regions",
        open_mp::queries,
    ),
];
