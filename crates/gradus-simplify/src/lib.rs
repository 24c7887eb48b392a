//! Simplification passes on single bodies: fewer ops, equal meaning.
//!
//! [`PASSES`] lists all passes for case pages, switches and the manual. [`simplify`] runs the passes of [`ORDER`] until no pass
//! changes the body, or a fixed number of times. A pass reads facts about other functions from
//! [`PassContext`],
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
mod inlining;
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
pub use crate::inlining::{
    has_equal_target_attributes, inline_parallel_functions, inline_parallel_functions_in_loops,
    inline_small_functions, inline_straight_line_functions,
};
pub use crate::loops::short_trip_versioning::{has_update_loops, version_short_loops};
pub use crate::loops::unroll_and_jam::{has_serial_reduction_nest, unroll_and_jam};
pub use crate::loops::unswitch::unswitch_all;
pub use crate::memory::dead_memory::{allocates_memory, remove_dead_memory};
pub use crate::memory::stagger_allocations::{has_large_zeroed_allocations, stagger_allocations};

use gradus_analysis::{AliasOptions, Analyses, Pass, PassContext, Stage};
use gradus_ir::{Body, BodyVersion, FuncId, Op, OpKind, Unit};
use std::collections::HashMap;

/// A pass on one body; returns whether the body changed.
pub type BodyPass = Pass<fn(&mut Unit, &mut Body, &PassContext) -> bool>;

/// All passes.
// table
pub const PASSES: &[BodyPass] = &[
    Pass {
        name: "fold",
        stage: Stage::Body,
        switch: None,
        about: "folds constants and exact algebraic identities",
        run: scalar::fold::run,
    },
    Pass {
        name: "float-bit-idioms",
        stage: Stage::Body,
        switch: None,
        about: "rewrites integer operations on float bits into float operations",
        run: scalar::float_bit_idioms::run,
    },
    Pass {
        name: "control-flow",
        stage: Stage::Body,
        switch: None,
        about: "simplifies branches on constants, empty branches, equal merges, and loops with zero or one iteration",
        run: control::control_flow::run,
    },
    Pass {
        name: "known-conditions",
        stage: Stage::Body,
        switch: None,
        about: "replaces conditions that an enclosing branch or loop decides by constants",
        run: scalar::known_conditions::run,
    },
    Pass {
        name: "branch-to-select",
        // The pass emits more ops to expose reductions.
        stage: Stage::PrimalBody,
        switch: None,
        about: "converts conditional steps of a value into unconditional steps by a selected amount",
        run: control::branch_to_select::run,
    },
    Pass {
        name: "loop-carried",
        stage: Stage::Body,
        switch: None,
        about: "removes constant and duplicate carried values and loop results",
        run: loops::loop_carried::run,
    },
    Pass {
        name: "cse",
        stage: Stage::Body,
        switch: None,
        about: "eliminates common subexpressions",
        run: scalar::cse::run,
    },
    Pass {
        name: "load-forwarding",
        stage: Stage::Body,
        switch: None,
        about: "forwards known memory contents to loads, and results of repeated read-only calls",
        run: memory::load_forwarding::run,
    },
    Pass {
        name: "hoist-spawn-calls",
        stage: Stage::Body,
        switch: None,
        about: "hoists calls above a spawn if both the task and the continuation make the call",
        run: parallel::hoist_spawn_calls::run,
    },
    Pass {
        name: "idempotent-loops",
        // The pass would shorten a program that repeats work deliberately.
        stage: Stage::PrimalBody,
        switch: None,
        about: "executes loops with idempotent iterations once",
        run: loops::idempotent_loops::run,
    },
    Pass {
        name: "dead-memory",
        stage: Stage::Body,
        switch: None,
        about: "erases local memory that no op reads, and the stores to the memory",
        run: memory::dead_memory::run,
    },
    Pass {
        name: "merge-branches",
        // The pass duplicates code without benefit for execution.
        stage: Stage::PrimalBody,
        switch: None,
        about: "merges branches on one condition that allocate and free memory",
        run: control::merge_branches::run,
    },
    Pass {
        name: "licm",
        stage: Stage::Body,
        switch: None,
        about: "moves loop-invariant code out of loops",
        run: loops::licm::run,
    },
    Pass {
        name: "loop-to-for",
        stage: Stage::Body,
        switch: None,
        about: "converts counted loops to `for`",
        run: loops,
    },
    Pass {
        name: "promote",
        stage: Stage::Body,
        switch: None,
        about: "promotes stack slots whose address does not escape to values",
        run: promote,
    },
    Pass {
        name: "unswitch",
        stage: Stage::Body,
        switch: None,
        about: "unswitches loops on pointer inequality",
        run: loops::unswitch::run,
    },
    Pass {
        name: "scatter-to-gather",
        stage: Stage::Body,
        switch: None,
        about: "combines adds of neighbouring iterations to one location into a single add",
        run: derivative::scatter_to_gather::run,
    },
    Pass {
        name: "index-array-copies",
        stage: Stage::Body,
        switch: None,
        about: "copies arrays that loops read through index arrays",
        run: derivative::index_array_copies::run,
    },
    Pass {
        name: "argminmax",
        stage: Stage::Body,
        switch: None,
        about: "recomputes the selected iteration of argmin/argmax reductions outside the loop",
        run: |unit, body, facts| recompute_argminmax(unit, body, facts) > 0,
    },
    Pass {
        name: "privatize-adds",
        stage: Stage::Body,
        switch: None,
        about: "privatises sums to which all iterations of a loop add",
        run: derivative::accumulation::run_privatize_adds,
    },
    Pass {
        name: "two-phase-adds",
        stage: Stage::Body,
        switch: None,
        about: "schedules adds of neighbouring iterations in two phases of disjoint chunks",
        run: derivative::accumulation::run_two_phase_adds,
    },
    Pass {
        name: "unroll-and-jam",
        stage: Stage::Body,
        switch: None,
        about: "unrolls and jams latency-bound serial reductions",
        run: loops::unroll_and_jam::run,
    },
    Pass {
        name: "short-trip-versioning",
        stage: Stage::Body,
        switch: None,
        about: "versions short update loops into a scalar and a vectorisable loop",
        run: loops::short_trip_versioning::run,
    },
    Pass {
        name: "stagger-allocations",
        stage: Stage::Body,
        switch: None,
        about: "staggers the start addresses of large zeroed allocations by some cache lines",
        run: memory::stagger_allocations::run,
    },
    Pass {
        name: "unroll",
        stage: Stage::Body,
        switch: None,
        about: "unrolls loops with a small constant trip count",
        run: unroll,
    },
    Pass {
        name: "dce",
        stage: Stage::Body,
        switch: None,
        about: "eliminates dead ops, results, carried values and structured ops",
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

/// Maximum number of repetitions of the order.
const REPETITIONS_MAX: usize = 3;

/// Returns the pass named `name`.
pub fn pass(name: &str) -> Option<&'static BodyPass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Returns the row of a pass of [`ORDER`] or [`CSE_ORDER`].
fn row(name: &str) -> &'static BodyPass {
    pass(name).unwrap_or_else(|| unreachable!("`{name}` has no row in PASSES"))
}

/// Runs all passes on a body until no pass changes the body; returns whether any pass did.
pub fn simplify(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    run_order(unit, body, facts, &[Stage::Body, Stage::PrimalBody])
}

/// Like [`simplify`], for a body that is executed and not differentiated.
pub fn simplify_for_execution(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    run_order(unit, body, facts, &[Stage::Body])
}

fn run_order(unit: &mut Unit, body: &mut Body, facts: &PassContext, stages: &[Stage]) -> bool {
    let passes: Vec<&BodyPass> = ORDER
        .iter()
        .map(|name| row(name))
        .filter(|pass| stages.contains(&pass.stage))
        .collect();
    let mut any = false;
    // A pass has nothing to do on a body that it left unchanged before.
    let mut unchanged_at: HashMap<&str, BodyVersion> = HashMap::new();
    for _ in 0..REPETITIONS_MAX {
        let mut changed = false;
        for pass in &passes {
            if unchanged_at.get(pass.name) == Some(&body.version()) {
                continue;
            }
            match (pass.run)(unit, body, facts) {
                true => changed = true,
                false => {
                    unchanged_at.insert(pass.name, body.version());
                }
            }
        }
        any |= changed;
        if !changed {
            break;
        }
    }
    any
}

/// Order of the passes in [`cse_inlined_calls`].
const CSE_ORDER: &[&str] = &[
    "promote",
    "cse",
    "load-forwarding",
    "cse",
    "load-forwarding",
    "cse",
    "load-forwarding",
    "cse",
    "dce",
];

/// Computes common subexpressions of inlined calls in `func` once.
pub fn cse_inlined_calls(unit: &mut Unit, analyses: &mut Analyses, func: FuncId) {
    let effects = analyses.effects(unit, &[func]);
    let alias = AliasOptions::default();
    let Some(mut body) = unit.functions[func].body.take() else {
        // Not an error: a declaration has no calls.
        return;
    };
    let facts = PassContext {
        function: Some(func),
        effects: &effects,
        alias: &alias,
    };
    for pass in CSE_ORDER.iter().map(|name| row(name)) {
        (pass.run)(unit, &mut body, &facts);
    }
    unit.functions[func].body = Some(body);
}

/// Simplifies every body reachable from `roots`.
pub fn simplify_reachable(
    unit: &mut Unit,
    analyses: &mut Analyses,
    roots: &[FuncId],
    alias: &AliasOptions,
) {
    let closure = analyses.call_graph(unit, roots);
    let effects = analyses.effects_over(unit, &closure);
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
