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
    is_dereferenceable, is_pure, is_removable, is_speculatable, may_not_complete,
};
pub use crate::facts::implied_conditions::holds_at;
pub use crate::facts::reduction_ops::{MinMax, combine, emit_min_max, identity, integer_min_max};
pub use crate::loops::exit_values::expose_final_values;
pub use crate::loops::fold_guards::fold_guards;
pub use crate::loops::loop_exits::{ExitBranch, exit_branch, expose_exit_conditions};
pub use crate::loops::recognize_reductions::{
    CarriedValue, ReductionKind, carried_value, is_always_one_of,
};
pub use crate::loops::spin_loops::may_spin;
pub use crate::loops::to_for::{
    is_induction, loop_to_for, loop_to_for_with, loops_to_fors, strided_to_for,
};
pub use crate::memory::atomics_to_plain::atomic_to_plain;
pub use crate::memory::coerced_loads::casts_to_loads;
pub use crate::memory::libc::{
    declare_calloc, declare_free, declare_malloc, declare_memcpy, declare_memset,
};
pub use crate::memory::posix_memalign::{declare_aligned_alloc, memalign_to_aligned_alloc};
pub use crate::memory::promote::promote_slots;
pub use crate::memory::serial_accesses::float_accesses_to_plain;
pub use crate::memory::split_slots::split_allocas;
pub use crate::memory::volatile_slots::volatile_slots_to_plain;
pub use crate::rewrite::clone::{ValueMap, clone_op, clone_op_within, clone_ops, clone_ops_within};
pub use crate::rewrite::index_width::{to_i64, to_index_type};
pub use crate::rewrite::inline::{
    NotInlined, can_inline_region_body, inline_call, inline_region_body,
};
pub use crate::rewrite::normalize_invokes::{
    handler_terminates, invokes_to_calls, is_normalized, normalize_invokes,
};
pub use crate::rewrite::outline::{
    block_type, captured_values, entry_alloca, field_address, hoist_private_allocas, inline_region,
    load_fields, move_op, store_fields, strand_alloca,
};
pub use crate::rewrite::split_function::{SplitLimits, cut};
pub use crate::rewrite::trivial_dce::{remove_dead_defs, remove_dead_ops};
pub use crate::rewrite::unroll::unroll_for;
