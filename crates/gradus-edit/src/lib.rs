//! Edits without policy: each does one thing to a body and leaves its meaning as it was.
//!
//! Who calls them decides where and when. They read what stands in the body and in the unit
//! (attributes, constants) and run no analysis; facts that need one come in as arguments.
//! Nothing here recurses over nesting, and a whole-body edit is near-linear in its size.
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
