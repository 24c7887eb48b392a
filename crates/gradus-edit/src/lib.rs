//! Policy-free IR rewrites: each edit performs one transformation of a body and preserves its meaning.
//!
//! Callers decide where and when to apply an edit. Edits read the body and the unit (attributes, constants)
//! and run no analysis; a fact that needs an analysis is an argument.
//!
//! # Invariants
//!
//! No function here recurses over nesting. An edit of a whole body is near-linear in the size of the body.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod aligned;
mod carried;
mod clone;
mod counted;
mod cut;
mod effects;
mod ends;
mod exits;
mod guard;
mod imply;
mod inline;
mod integers;
mod invokes;
mod outline;
mod plain;
mod promote;
mod reduce;
mod slots;
mod split;
mod strided;
mod sweep;
mod to_for;
mod top_tested;
mod trips;
mod unroll;
mod volatile;
mod waits;

pub use aligned::{aligned_alloc, return_aligned};
pub use carried::{Carried, Combines, carried_value, stays};
pub use clone::{ValueMap, clone_op, clone_op_within, clone_ops, clone_ops_within};
pub use cut::{Sizes, cut};
pub use effects::{is_dereferenceable, is_pure, is_removable, is_speculatable, may_leave};
pub use ends::keep_ends;
pub use exits::{ExitBranch, exit_branch, keep_exits};
pub use guard::fold_guards;
pub use imply::holds_at;
pub use inline::{NotInlined, can_be_taken_in, inline_call, take_in};
pub use invokes::{call_quiet, is_separate, only_terminates, separate_invokes};
pub use outline::{
    block_type, captured, entry_alloca, inline_region, member, move_op, pack, raise_private,
    strand_alloca, unpack,
};
pub use plain::make_plain;
pub use promote::promote_slots;
pub use reduce::{Extreme, integer_extreme, neutral, reduced};
pub use split::split_allocas;
pub use sweep::{sweep_dead, sweep_from};
pub use to_for::{is_induction, loop_to_for, loop_to_for_with, loops_to_fors, strided_to_for};
pub use unroll::unroll_for;
pub use volatile::settle_volatile;
pub use waits::may_wait;
