//! The passes of a compilation, one file for each row of [`crate::passes::PASSES`], and the files that several passes
//! share.

pub(crate) mod analyze;
pub(crate) mod argminmax;
pub(crate) mod collect_requests;
pub(crate) mod dead_derivative_code;
pub(crate) mod debug_pointee_types;
pub(crate) mod derivative_edits;
pub(crate) mod differentiate;
pub(crate) mod emit;
pub(crate) mod export;
pub(crate) mod final_llvm;
pub(crate) mod gpu;
pub(crate) mod import;
pub(crate) mod index_array_copies;
pub(crate) mod lower;
pub(crate) mod lower_teams;
pub(crate) mod parse;
pub(crate) mod pre_ad_llvm;
pub(crate) mod primal_edits;
pub(crate) mod privatize_adds;
pub(crate) mod raise;
pub(crate) mod rewrite_call_sites;
pub(crate) mod scatter_to_gather;
pub(crate) mod serial_projection;
pub(crate) mod short_trip_versioning;
pub(crate) mod simplify;
pub(crate) mod split_functions;
pub(crate) mod stagger_allocations;
pub(crate) mod two_phase_adds;
pub(crate) mod unroll_and_jam;
pub(crate) mod unswitch;
