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

mod facts;
mod loops;
mod memory;
mod rewrite;

pub use crate::facts::effects::{
    is_dereferenceable, is_pure, is_removable, is_speculatable, may_leave,
};
pub use crate::facts::implied_conditions::holds_at;
pub use crate::facts::reduction_ops::{Extreme, integer_extreme, neutral, reduced};
pub use crate::loops::exit_values::keep_ends;
pub use crate::loops::fold_guards::fold_guards;
pub use crate::loops::loop_exits::{ExitBranch, exit_branch, keep_exits};
pub use crate::loops::recognize_reductions::{Carried, Combines, carried_value, stays};
pub use crate::loops::spin_loops::may_wait;
pub use crate::loops::to_for::{
    is_induction, loop_to_for, loop_to_for_with, loops_to_fors, strided_to_for,
};
pub use crate::memory::atomics_to_plain::make_plain;
pub use crate::memory::posix_memalign::{aligned_alloc, return_aligned};
pub use crate::memory::promote::promote_slots;
pub use crate::memory::split_slots::split_allocas;
pub use crate::memory::volatile_slots::settle_volatile;
pub use crate::rewrite::clone::{ValueMap, clone_op, clone_op_within, clone_ops, clone_ops_within};
pub use crate::rewrite::inline::{NotInlined, can_be_taken_in, inline_call, take_in};
pub use crate::rewrite::normalize_invokes::{
    call_quiet, is_separate, only_terminates, separate_invokes,
};
pub use crate::rewrite::outline::{
    block_type, captured, entry_alloca, inline_region, member, move_op, pack, raise_private,
    strand_alloca, unpack,
};
pub use crate::rewrite::split_function::{Sizes, cut};
pub use crate::rewrite::trivial_dce::{sweep_dead, sweep_from};
pub use crate::rewrite::unroll::unroll_for;
