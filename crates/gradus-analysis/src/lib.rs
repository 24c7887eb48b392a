//! Analyses of GIR functions. No code in this crate edits the IR.
//!
//! An analysis takes a unit or one body and returns a table. The table is valid until the first edit.
//! Interprocedural facts are computed over a [`CallGraph`] (the call graph of the roots), bottom-up over its
//! strongly connected components. Every summary is conservative for an unknown callee: the callee reads and
//! writes all memory, or the analysis reports a diagnostic.
//!
//! For differentiation the analyses build on each other:
//!
//! ```text
//! let closure = CallGraph::of(&unit, &[root]);          // bodies, calls, components bottom-up
//! let memory = AliasSets::of(&unit, &closure);          // targets of every pointer: memory.targets(f, v)
//! let words = TypeMap::of(&unit, &closure, &memory);    // words.lanes(f, v), words.copy_kind(…)
//! let facts = View { … };                               // references to the tables above
//! let classes = MemoryActivity::of(facts, &request);    // classes.state(set), classes.is_varied(set)
//! let body = BodyActivity::of(facts, &classes, &variant);
//! body.active(v); body.shadow(p); body.call(op); body.result();
//! request_findings(facts, &request, &classes);          // reasons against differentiation: memory, ops of a variant
//! variant_findings(facts, &classes, &variant, &body);
//! ```
//!
//! Memory of one body:
//!
//! ```text
//! let effects = Effects::of(&unit, &closure);           // effects.of_op(…), effects.of_call(…)
//! let alias = Alias::new(&unit, Some(f), body, &effects, &AliasOptions::default());
//! let clobbers = Clobbers::of(&alias, &effects, ExitClobbers::default()); // clobbers.fate(load)
//! let variance = Variance::of(&clobbers, &effects);     // variance.loops(v)
//! let known = Availability::new(&clobbers);             // known.ops_before(v, op): ops to clone
//! let ranges = AccessRanges::of(&known, &effects, op);  // access ranges per base pointer
//! let test = Disjointness::of(&clobbers, &effects, op); // ranges for a run-time overlap check
//! ```
//!
//! [`Request`] holds the user's activity annotations. [`Variant`] is a function together with the activity
//! of its arguments. [`BodyActivity::call`] returns the variants called by a body, which closes the
//! worklist of derivatives.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
mod analyses;
mod call_graph;
mod calls;
mod cfg;
mod checks;
mod graph;
mod lifetime;
mod loops;
mod memory;
mod pass;
mod points_to;
mod scev;
mod type_analysis;
mod types;
mod view;

pub use crate::activity::memory::{
    Activity, ArgActivity, MemoryActivity, Request, ShadowPresence, ShadowState,
};

pub use crate::activity::indirect_outputs::indirect_outputs;
pub use crate::activity::local_outputs::writes_only_local_blocks;
pub use crate::activity::torn_writes::TornWrites;
pub use crate::activity::values::{BodyActivity, CallActivity, Variant};
pub use crate::analyses::{Aliasing, Analyses, Verification};
pub use crate::call_graph::{CallGraph, CallSite, Callee, Component, address_taken_functions};
pub use crate::cfg::dataflow::{Dataflow, Direction, Lattice, Solution};
pub use crate::cfg::nesting::{Nest, is_loop};
pub use crate::checks::request::request_findings;
pub use crate::checks::variant::variant_findings;
pub use crate::checks::{CHECKS, Check};
pub use crate::graph::min_cut::{
    FLOW_SINK, FLOW_SOURCE, FlowNetwork, INFINITE_CAPACITY, VertexNetwork,
};
pub use crate::lifetime::owned_blocks::owned_blocks;
pub use crate::loops::access_ranges::{AccessRanges, BaseRange, Bound, BoundId, Condition};
pub use crate::loops::affine::{Affine, AffineTerm, affine};
pub use crate::loops::runtime_checks::Disjointness;
pub use crate::loops::trip_counts::{Availability, trip_max};
pub use crate::loops::variance::Variance;
pub use crate::memory::alias::{Alias, AliasOptions};
pub use crate::memory::clobbers::{ClobberState, Clobbers, ExitClobbers};
pub use crate::memory::effects::{
    AccessKind, AccessSummary, Effects, Extent, FunctionEffects, MemoryAccess, MemoryRegion,
    ParamEffects,
};
pub use crate::memory::local_points_to::{
    Object, ObjectId, PointsTo, PointsToTarget, Targets, UNKNOWN,
};
pub use crate::memory::tbaa_conflicts::TbaaConflicts;
pub use crate::memory::value_accesses::{ValueAccess, value_accesses, visible_call_result};
pub use crate::pass::{Pass, PassContext, Stage};
pub use crate::points_to::alias_sets::{
    AliasSet, AliasSetId, AliasSets, CellRef, CellState, CopyBytes, MemoryOrigin,
};
pub use crate::points_to::folds::Fold;
pub use crate::scev::intervals::{Interval, Intervals};
pub use crate::scev::poly::{BaseValue, Monomial, Poly, PolyForms, StartAndOffset};
pub use crate::type_analysis::type_map::{
    BitRange, CopiedWord, CopyKind, LaneKind, Period, TypeMap,
};
pub use crate::types::flat_aggregates::{FlatScalar, FlatTypes};
pub use crate::types::lattice::CellType;
pub use crate::view::View;
