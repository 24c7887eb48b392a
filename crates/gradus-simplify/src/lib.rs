//! Simplification passes on single bodies: fewer ops, equal meaning.
//!
//! [`PASSES`] lists all passes for the command line. [`simplify`] runs the passes of [`ORDER`] until no pass
//! changes the body, or a fixed number of times. A pass reads facts about other functions from [`PassContext`],
//! recomputes its own analyses, and retains no state across edits.
//!
//! # Invariants
//!
//! Ops that a pass makes speculative must have bounded partial derivatives. A derivative multiplies partial
//! derivatives by a zero adjoint, and zero times infinity is not zero.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod control;
mod derivative;
mod loops;
mod memory;
mod parallel;
mod scalar;

pub use crate::derivative::accumulation::{
    PHASES_ADDS_MIN, PRIVATIZE_ADDS_MIN, has_atomic_adds, privatize_adds, schedule_in_phases,
};
pub use crate::derivative::argminmax::{has_argminmax, recompute_argminmax};
pub use crate::derivative::index_array_copies::{copy_index_arrays, has_indirect_loads};
pub use crate::derivative::scatter_to_gather::{has_scatter_loops, scatter_to_gather};
pub use crate::loops::short_trip_versioning::{has_update_loops, version_short_loops};
pub use crate::loops::unroll_and_jam::{has_serial_reduction_nest, unroll_and_jam};
pub use crate::loops::unswitch::unswitch_all;
pub use crate::memory::dead_memory::{allocates_memory, remove_dead_memory};
pub use crate::memory::stagger_allocations::{has_large_zeroed_allocations, stagger_allocations};

use gradus_analysis::{AliasOptions, CallGraph, Effects};
use gradus_ir::{Body, FuncId, Op, OpKind, Unit};

/// Pass context: facts beyond the body, computed before and preserved by simplifications.
#[derive(Clone, Copy, Debug)]
pub struct PassContext<'a> {
    /// Function of the body, if the body belongs to a function of the unit.
    pub function: Option<FuncId>,
    /// Effects of other functions.
    pub effects: &'a Effects,
    /// Alias facts that passes may use.
    pub alias: &'a AliasOptions,
}

/// Simplification pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name on the command line and of the folder of cases.
    pub name: &'static str,
    /// Description in one sentence.
    pub about: &'static str,
    /// Runs the pass; returns whether the body changed.
    pub run: fn(&mut Unit, &mut Body, &PassContext) -> bool,
}

/// All passes.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fold",
        about: "constants and algebraic identities that hold exactly",
        run: scalar::fold::run,
    },
    Pass {
        name: "float-bit-idioms",
        about: "absolute values, signs and loads written with integers become what they mean",
        run: scalar::float_bit_idioms::run,
    },
    Pass {
        name: "control-flow",
        about: "branches on constants, empty branches, equal merges, loops of no or one run",
        run: control::control_flow::run,
    },
    Pass {
        name: "known-conditions",
        about: "conditions are constants where a branch or a loop has asked them",
        run: scalar::known_conditions::run,
    },
    Pass {
        name: "branch-to-select",
        about: "branches that move a value on or leave it move it by nothing",
        run: control::branch_to_select::run,
    },
    Pass {
        name: "loop-carried",
        about: "carried values and results that never change or stand twice",
        run: loops::loop_carried::run,
    },
    Pass {
        name: "cse",
        about: "pure ops that stand twice",
        run: scalar::cse::run,
    },
    Pass {
        name: "load-forwarding",
        about: "loads of what was stored or loaded before, calls that were made before",
        run: memory::load_forwarding::run,
    },
    Pass {
        name: "hoist-spawn-calls",
        about: "calls that a task and what follows its spawn both make are made before it",
        run: parallel::hoist_spawn_calls::run,
    },
    Pass {
        name: "idempotent-loops",
        about: "loops of which each iteration does the same over again run once",
        run: loops::idempotent_loops::run,
    },
    Pass {
        name: "dead-memory",
        about: "memory that is only written and updated",
        run: memory::dead_memory::run,
    },
    Pass {
        name: "merge-branches",
        about: "branches on one condition that make and free a block are one",
        run: control::merge_branches::run,
    },
    Pass {
        name: "licm",
        about: "what does not vary leaves loops",
        run: loops::licm::run,
    },
    Pass {
        name: "loop-to-for",
        about: "counted loops become for",
        run: loops,
    },
    Pass {
        name: "promote",
        about: "stack slots whose address goes nowhere become values",
        run: promote,
    },
    Pass {
        name: "unswitch",
        about: "loops that ask whether pointers are equal exist twice: once for where none is",
        run: loops::unswitch::run,
    },
    Pass {
        name: "scatter-to-gather",
        about: "adds that neighbouring iterations make to one place are made once",
        run: derivative::scatter_to_gather::run,
    },
    Pass {
        name: "index-array-copies",
        about: "arrays that loops read through lists of indices are copied for them",
        run: derivative::index_array_copies::run,
    },
    Pass {
        name: "argminmax",
        about: "what a loop's least or greatest number is made of is computed of the iteration that gave it",
        run: |unit, body, facts| recompute_argminmax(unit, body, facts) > 0,
    },
    Pass {
        name: "privatize-adds",
        about: "sums that all iterations of a loop add to become sums of a few parts of it",
        run: derivative::accumulation::run_parts,
    },
    Pass {
        name: "two-phase-adds",
        about: "sums that neighbouring iterations add to are added to in rounds of parts that lie apart",
        run: derivative::accumulation::run_rounds,
    },
    Pass {
        name: "unroll-and-jam",
        about: "sums that wait for themselves run side by side",
        run: loops::unroll_and_jam::run,
    },
    Pass {
        name: "short-trip-versioning",
        about: "short rows that the next row updates again are not vectorised",
        run: loops::short_trip_versioning::run,
    },
    Pass {
        name: "stagger-allocations",
        about: "large zeroed blocks begin some cache lines further on than others",
        run: memory::stagger_allocations::run,
    },
    Pass {
        name: "unroll",
        about: "loops of a few known runs are written out",
        run: unroll,
    },
    Pass {
        name: "dce",
        about: "ops, results, carried values and structure that nobody uses",
        run: scalar::dce::run,
    },
];

/// Order of the passes in [`simplify`].
pub const ORDER: &[&str] = &[
    "promote",
    "float-bit-idioms",
    "known-conditions",
    "fold",
    "control-flow",
    "cse",
    "hoist-spawn-calls",
    "load-forwarding",
    "loop-carried",
    "licm",
    "loop-to-for",
    "fold",
    "control-flow",
    "branch-to-select",
    "loop-carried",
    "cse",
    "idempotent-loops",
    "dead-memory",
    "merge-branches",
    "dce",
];

/// Passes of the order only for bodies to differentiate.
///
/// - `steps` emits more ops to expose reductions.
/// - `repeats` would shorten a program that repeats work deliberately.
/// - `join` duplicates code without benefit for execution.
const FOR_DIFFERENTIATION: &[&str] = &["branch-to-select", "idempotent-loops", "merge-branches"];

/// Maximum number of repetitions of the order.
const REPETITIONS_MAX: usize = 3;

/// Returns the pass named `name`.
pub fn pass(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Runs all passes on a body until no pass changes the body; returns whether any pass did.
pub fn simplify(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    run_order(unit, body, facts, |_| true)
}

/// Like [`simplify`], for a body that is executed and not differentiated.
pub fn simplify_for_execution(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    run_order(unit, body, facts, |name| {
        !FOR_DIFFERENTIATION.contains(&name)
    })
}

fn run_order(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    takes: fn(&str) -> bool,
) -> bool {
    let passes: Vec<&Pass> = ORDER
        .iter()
        .filter(|name| takes(name))
        .filter_map(|name| pass(name))
        .collect();
    let mut any = false;
    for _ in 0..REPETITIONS_MAX {
        let mut changed = false;
        for pass in &passes {
            changed |= (pass.run)(unit, body, facts);
        }
        any |= changed;
        if !changed {
            break;
        }
    }
    any
}

/// Simplifies every body of a call-graph closure, callees before callers.
pub fn simplify_closure(unit: &mut Unit, closure: &CallGraph, alias: &AliasOptions) {
    let effects = Effects::of(unit, closure);
    for &function in closure.functions() {
        let Some(mut body) = unit.functions[function].body.take() else {
            continue;
        };
        let facts = PassContext {
            function: Some(function),
            effects: &effects,
            alias,
        };
        simplify(unit, &mut body, &facts);
        unit.functions[function].body = Some(body);
    }
}

/// Limits for unrolling: trip count, and ops of all copies together.
const UNROLLED_TRIPS_MAX: u64 = 8;
const UNROLLED_OPS_MAX: usize = 256;

fn unroll(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let mut ops: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| matches!(body.kind(op), OpKind::For { .. }))
        .collect();
    ops.reverse();
    ops.retain(|&op| gradus_edit::unroll_for(unit, body, op, UNROLLED_TRIPS_MAX, UNROLLED_OPS_MAX));
    !ops.is_empty()
}

fn promote(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    let split = gradus_edit::split_allocas(unit, body);
    split + gradus_edit::promote_slots(unit, body) > 0
}

fn loops(unit: &mut Unit, body: &mut Body, _: &PassContext) -> bool {
    gradus_edit::loops_to_fors(unit, body) > 0
}
