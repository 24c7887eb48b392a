//! Analyses of GIR functions. No code in this crate edits the IR.
//!
//! An analysis takes a unit or one body and returns a table. The table is valid until the first edit.
//! Interprocedural facts are computed over a [`Closure`] (the call graph of the roots), bottom-up over its
//! strongly connected components. Every summary is conservative for an unknown callee: the callee reads and
//! writes all memory, or the analysis reports a diagnostic.
//!
//! For differentiation the analyses build on each other:
//!
//! ```text
//! let closure = Closure::of(&unit, &[root]);            // bodies, calls, components bottom-up
//! let memory = Memory::of(&unit, &closure);             // alias set of every pointer: memory.class(f, v)
//! let words = Words::of(&unit, &closure, &memory);      // words.lanes(f, v), words.copy_kind(…)
//! let facts = Facts { unit, closure, memory, words };   // of references
//! let classes = ClassFacts::of(facts, &request);        // classes.state(class), classes.findings()
//! let body = BodyActivity::of(facts, &classes, &variant);
//! body.active(v); body.shadow(p); body.call(op); body.result(); body.findings();
//! ```
//!
//! Memory of one body:
//!
//! ```text
//! let effects = Effects::of(&unit, &closure);           // effects.of_op(…), effects.of_call(…)
//! let alias = Alias::new(&unit, Some(f), body, &effects, &AliasOptions::default());
//! let clobbers = Clobbers::of(&alias, &effects, AfterEnd::default()); // clobbers.fate(load)
//! let variance = Variance::of(&clobbers, &effects);     // variance.loops(v)
//! let known = Availability::new(&clobbers);             // known.before(v, op): ops to clone
//! let extents = Extents::of(&known, &effects, op);      // access ranges per base pointer
//! let test = Disjointness::of(&clobbers, &effects, op); // ranges for a run-time overlap check
//! ```
//!
//! [`Request`] holds the user's activity annotations. [`Variant`] is a function together with the activity
//! of its arguments. [`BodyActivity::call`] returns the variants called by a body, which closes the
//! worklist of derivatives.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activity;
#[cfg(test)]
mod activity_tests;
mod addresses;
mod affine;
mod alias;
mod attributes;
mod body_activity;
mod bounds;
mod clobber;
mod closure;
mod constraints;
mod copies;
mod declared;
mod disjointness;
mod effects;
mod elsewhere;
mod evidence;
mod extents;
mod findings;
mod flow;
mod flows;
mod fortran;
mod fraction;
mod further_args;
mod guard;
mod initial;
mod intervals;
mod lanes;
mod layout;
mod leaves;
mod linear;
mod lost;
mod memory;
mod movements;
mod nest;
mod outliving;
mod outside_calls;
mod own_outputs;
mod pieces;
mod places;
mod points_to;
mod prints;
mod retyped;
mod rounding;
mod seen;
mod stored_formats;
mod strangers;
mod summary;
mod surely_freed;
mod tables;
mod tbaa;
mod text_cut;
mod text_digits;
mod text_in_lists;
mod thrown;
mod thrown_objects;
mod unify;
mod unshadowed;
mod waits;
mod words;
mod written_behind;

pub use activity::{Activity, ArgActivity, ClassFacts, ClassState, Facts, Request, ShadowState};
mod trips;
mod variance;

pub use affine::{Affine, AffineTerm, affine};
pub use alias::{Alias, AliasOptions};
pub use body_activity::{BodyActivity, CallActivity, Variant};
pub use clobber::{AfterEnd, Clobbers, Fate};
pub use closure::{CallSite, Callee, Closure, Component, addressed_functions};
pub use disjointness::Disjointness;
pub use effects::{
    AccessKind, Effects, Extent, FunctionEffects, MemoryAccess, ParamEffects, Place, Touch,
};
pub use extents::{Bound, BoundId, Condition, Extents, RootExtent};
pub use findings::distinct as distinct_findings;
pub use flow::{ValueAccess, call_result, given, value_accesses};
pub use flows::copies as value_copies;
pub use intervals::{Interval, Intervals};
pub use leaves::{Leaf, Leaves};
pub use linear::{Linear, LinearForms, Monomial, Root, StartAndOffset};
pub use memory::{Class, ClassId, CopyBytes, Memory, MemoryPlace, Origin, Word};
pub use nest::{Nest, is_loop};
pub use own_outputs::writes_only_own_blocks;
pub use points_to::{Object, ObjectId, PointsTo, Target, Targets, UNKNOWN};
pub use retyped::Retyped;
pub use seen::Seen;
pub use thrown::Thrown;
pub use trips::{Availability, Trips, trip_max, trips};
pub use variance::Variance;
pub use words::{CopiedWord, CopyKind, Lane, LaneKind, Period, Words};
pub use written_behind::written_behind;
