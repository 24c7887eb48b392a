//! Checks: the reasons against a derivative, and doubts about its meaning.
//!
//! [`CHECKS`] lists the checks. A check has one code of diagnostics. The file or the folder of a check has the name of
//! the code, and the page of the code below `docs/diagnostics` has programs with findings. No other file of the crate
//! builds diagnostics about programs.
//!
//! `request.rs` and `variant.rs` run the checks, once per request or once per variant. Files without a code search for
//! code that several checks read: `unshadowed_stores.rs`, `external_calls.rs`, `unknown_callees.rs`.
//!
//! The checks refuse and never guess.

mod address_parts;
mod atomic_access;
mod bad_request;
mod callbacks;
mod external_calls;
mod external_global;
mod finding;
pub(crate) mod float_bits;
mod float_format;
mod gpu;
mod inline_assembly;
mod mpi;
mod no_derivative;
mod open_mp;
mod outlives;
pub(crate) mod request;
mod text_round_trip;
mod thread_local_global;
mod unknown_callee;
mod unknown_callees;
mod unknown_indirect_target;
mod unknown_memory_type;
mod unshadowed_stores;
mod unsupported_control;
mod variadic;
pub(crate) mod variant;
mod zero_derivative;

use crate::checks::finding::Finding;
use crate::checks::request::RequestFacts;
use crate::checks::variant::VariantFacts;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Code, Diagnostic};

/// A check.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Code of all findings of the check.
    pub code: Code,
    /// The refused construct.
    pub name: &'static str,
    pub(crate) run: Run,
}

/// Entry point of a check: from analysis results to findings in source order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Runs once per request, on the memory and the code of the call graph.
    Request(fn(&RequestFacts<'_>) -> Vec<Finding>),
    /// Runs once per variant of a function, on the ops of the function.
    Variant(fn(&VariantFacts<'_>) -> Vec<Finding>),
}

/// Returns a row for a check of a request.
const fn of_request(
    code: Code,
    name: &'static str,
    run: fn(&RequestFacts<'_>) -> Vec<Finding>,
) -> Check {
    let run = Run::Request(run);
    Check { code, name, run }
}

/// Returns a row for a check of a variant.
const fn of_variant(
    code: Code,
    name: &'static str,
    run: fn(&VariantFacts<'_>) -> Vec<Finding>,
) -> Check {
    let run = Run::Variant(run);
    Check { code, name, run }
}

/// All checks. Findings at one position are printed in the order of the rows.
// table
#[rustfmt::skip]
pub const CHECKS: &[Check] = &[
    of_request(Code::ThreadLocalGlobal, "stores to thread-local variables", thread_local_global::stores),
    of_request(Code::ExternalGlobal, "stores to variables of other files", external_global::stores),
    of_request(Code::UnknownCallee, "memory from unknown allocators", unknown_callee::allocators),
    of_request(Code::UnknownIndirectTarget, "memory from indirect calls", unknown_indirect_target::allocators),
    of_request(Code::BadRequest, "stores to const memory", bad_request::const_memory),
    of_request(Code::ZeroDerivative, "aliases of const memory", zero_derivative::const_aliases),
    of_request(Code::Outlives, "memory that a variable retains", outlives::persistent_memory::check),
    of_request(Code::Outlives, "values that a variable keeps", outlives::kept_values::check),
    of_request(Code::BadRequest, "results without a shadow", bad_request::results),
    of_request(Code::UnknownCallee, "writes of external functions", unknown_callee::external_writes::check),
    of_request(Code::FloatBits, "conversions of fraction bits", float_bits::fraction::check),
    of_request(Code::FloatBits, "reads in another format", float_bits::stored_formats::check),
    of_request(Code::TextRoundTrip, "numbers that pass through text", text_round_trip::check),
    of_request(Code::OpenMp, "queries of tasks and nested regions", open_mp::queries),
    of_variant(Code::NoDerivative, "modified structures passed by value", no_derivative::by_value_parameters),
    of_variant(Code::FloatBits, "words that are floats or addresses", float_bits::conflicting_words),
    of_variant(Code::FloatBits, "floats in integer vectors", float_bits::integer_vectors::check),
    of_variant(Code::FloatFormat, "unsupported formats", float_format::values),
    of_variant(Code::NoDerivative, "address arithmetic on integers", no_derivative::address_arithmetic),
    of_variant(Code::NoDerivative, "addresses without a shadow", address_parts::check),
    of_variant(Code::AtomicAccess, "atomic and volatile accesses", atomic_access::accesses),
    of_variant(Code::NoDerivative, "instructions without an op", no_derivative::instructions),
    of_variant(Code::FloatBits, "arithmetic on bits", float_bits::arithmetic::check),
    of_variant(Code::FloatBits, "text over floats", float_bits::text_over_floats::check),
    of_variant(Code::FloatBits, "numbers as text", float_bits::text_over_floats::numbers_as_text),
    of_variant(Code::Variadic, "variadic arguments", variadic::arguments),
    of_variant(Code::Variadic, "uses of variadic arguments", variadic::uses),
    of_variant(Code::UnknownCallee, "arguments of another type", unknown_callee::signatures),
    of_variant(Code::UnknownCallee, "functions without a derivative", unknown_callee::calls),
    of_variant(Code::UnknownCallee, "character counts", unknown_callee::character_counts),
    of_variant(Code::UnsupportedControl, "strict floating-point mode", unsupported_control::strict_floats),
    of_variant(Code::UnsupportedControl, "jumps between functions", unsupported_control::jumps),
    of_variant(Code::UnknownIndirectTarget, "indirect calls", unknown_indirect_target::calls),
    of_variant(Code::InlineAssembly, "inline assembly", inline_assembly::calls),
    of_variant(Code::OpenMp, "calls of the OpenMP library", open_mp::calls),
    of_variant(Code::Mpi, "calls of MPI", mpi::calls),
    of_variant(Code::Gpu, "calls of the GPU library", gpu::calls),
    of_variant(Code::UnknownMemoryType, "copies of unknown type", unknown_memory_type::copies),
    of_variant(Code::UnknownMemoryType, "moves of unknown type", unknown_memory_type::moves),
    of_variant(Code::NoDerivative, "weak aliases", no_derivative::weak_aliases),
    of_variant(Code::BadRequest, "pointers in memory without a shadow", bad_request::pointers),
    of_variant(Code::FloatBits, "integers stored over floats", float_bits::integer_stores::check),
    of_variant(Code::UnknownMemoryType, "updates of unknown type", unknown_memory_type::untyped_updates::check),
    of_variant(Code::FloatBits, "floats used as addresses", float_bits::floats_as_addresses),
];

/// Runs the checks that `run` accepts. Returns the diagnostics by position, then in the order of the rows.
fn run_checks(run: impl Fn(Run) -> Vec<Finding>) -> Vec<Diagnostic> {
    if is_planted(Mutant::ChecksSkipped) {
        return Vec::new();
    }
    let mut list: Vec<Finding> = Vec::new();
    for check in CHECKS {
        let found = run(check.run);
        let has_code = |finding: &Finding| finding.diagnostic.code == check.code;
        debug_assert!(found.iter().all(has_code), "{}: another code", check.name);
        list.extend(found);
    }
    list.sort_by_key(|finding| finding.position);
    list.into_iter().map(|finding| finding.diagnostic).collect()
}
