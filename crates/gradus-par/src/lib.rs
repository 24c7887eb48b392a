//! Lowering of fork-join parallelism: parallel ops become runtime calls, parallel intrinsics or serial code.
//!
//! Place in the flow: after all passes over parallel ops, before export. Export knows no parallel op. A body is
//! lowered from the outside in: the region of the outermost parallel op is outlined into a function
//! ([`lower::outlined`]), and the worklist receives the new function.
//!
//! Recursive functions with spawns are cloned first ([`lower::fork_clones`]), hence small tasks need no cost estimate.
//! Small loops stay serial: a parallel loop compares trip count times the estimated cost of an iteration
//! ([`cost::model`]) with a threshold, if an estimate exists. Below the threshold the loop calls the range function
//! directly.
//!
//! Layers, each importing earlier ones only: `cost`, `emit`, `thread_count`, `prepare_ad`, `opt`, `lower`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod cost;
mod emit;
mod lower;
mod opt;
mod prepare_ad;
mod thread_count;

pub use crate::cost::decision::{ForkDecision, ForkThreshold};
pub use crate::lower::deterministic::serialize_order_dependent;
pub use crate::lower::lower;
pub use crate::lower::profitability::version_forks_by_worker_count;
pub use crate::opt::fusion::{FusedLoops, fuse_parallel_loops, merge_branches_around_loops};
pub use crate::opt::taskloop::convert_task_loops;
pub use crate::prepare_ad::inline_into_parallel_loops::inline_into_parallel_loops;
pub use crate::prepare_ad::inline_into_teams::inline_into_team;
pub use crate::prepare_ad::orphaned_tasks::{reachable_from_regions, resolve_orphans};
pub use crate::prepare_ad::restore::restore;
pub use crate::prepare_ad::tasks_as_loops::is_fork;
pub use crate::prepare_ad::team_to_rank_loops::{
    functions_that_wait, has_orphaned_worksharing, team_to_rank_code,
};
pub use crate::thread_count::guards::{guard_by_team_size, loops_depending_on_team_size};
pub use crate::thread_count::num_threads::teams;
pub use crate::thread_count::queries::ThreadCountAnswers;
pub use crate::thread_count::serial_clones::redirect_to_serial_clones;

use gradus_ir::{FuncId, LocId, Unit};
use std::collections::HashSet;

/// The lowering target of parallel ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The serial projection.
    Serial,
    /// Calls of the runtime library.
    #[default]
    Runtime,
    /// The parallel intrinsics of `gradus/parallel.h`, from which raising recovers the ops. Ops without an
    /// intrinsic become runtime calls.
    Intrinsics,
}

/// Options of lowering.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The lowering target of parallel ops.
    pub target: Target,
    /// A loop with at most this much estimated work, in simple operations, runs serially.
    pub small_work: u64,
    /// Like `small_work`, while an idle worker is awake: a fork is cheap then.
    pub small_work_awake: u64,
    /// The minimum work of a task, in simple operations.
    pub task_work: u64,
    /// Marks iterations of parallel loops as free of memory conflicts, as in a race-free program.
    pub race_free: bool,
}

impl Default for Options {
    /// Measured on two cores with the library's own fork: about 20 ns with awake workers, 10 µs if a worker
    /// must be woken. A simple operation takes 0.02 to 0.3 ns in a vectorised loop. Two workers beat one from
    /// about 50,000 array additions of some four operations each.
    fn default() -> Self {
        Options {
            target: Target::Runtime,
            small_work: 160_000,
            small_work_awake: 20_000,
            task_work: 10_000,
            race_free: true,
        }
    }
}

/// The result of [`project`] for programs that query the number of threads.
#[derive(Clone, Debug, Default)]
pub struct Serialized {
    /// Function and location of each loop made serial because the loop depends on a thread count reported as
    /// one.
    pub serial: Vec<(FuncId, Option<LocId>)>,
    /// Functions of which only the serial projection may be called once a query has returned one thread; see
    /// [`redirect_to_serial_clones`].
    pub one_thread_functions: HashSet<FuncId>,
    /// Function and location of each team reduced to one rank in a program that takes the address of a
    /// thread-count query.
    pub by_address: Vec<(FuncId, Option<LocId>)>,
    /// Function and location of each call to an unknown callee that may return the number of threads, and
    /// thereby make the program read results of ranks that did not run.
    pub unknown_calls: Vec<(FuncId, Option<LocId>)>,
    /// Function and location of each store by which ranks of a one-rank team set a sentinel, at per-rank
    /// locations of memory known outside. The program might count the sentinels.
    pub external_sentinels: Vec<(FuncId, Option<LocId>)>,
}

/// The result of [`lower()`].
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The functions added by lowering, now part of the unit.
    pub made: Vec<FuncId>,
    /// The fork decision of each parallel loop.
    pub forks: Vec<ForkDecision>,
}

/// Replaces every parallel op of `functions` by the serial projection, e.g. before differentiation.
///
/// Loops with independent iterations are flagged [`Flags::INDEPENDENT`], from which [`restore`] recovers
/// parallel loops. `answers` states the replies to thread-count queries.
///
/// [`Flags::INDEPENDENT`]: gradus_ir::Flags::INDEPENDENT
pub fn project(unit: &mut Unit, functions: &[FuncId], answers: ThreadCountAnswers) -> Serialized {
    prepare_ad::tasks_as_loops::tasks_to_loops(unit, functions);
    let ordered = thread_count::order_dependence::order_dependent_functions(unit);
    let asked = thread_count::queries::ThreadCountQueries::of(unit, functions, answers);
    let projected = Serialized {
        serial: asked.serial_loops(unit, functions),
        one_thread_functions: match asked.all_one {
            true => thread_count::serial_clones::functions_with_teams_or_queries(unit),
            false => HashSet::new(),
        },
        by_address: asked.by_address.clone(),
        unknown_calls: asked.unknown_calls.clone(),
        external_sentinels: asked.external_sentinels.clone(),
    };
    prepare_ad::serial_projection::fold_thread_count_to_one(unit, |func, op| {
        asked.sees_one_thread(func, op)
    });
    for &func in functions {
        // A recursive function is inspected during the transformation, hence a clone.
        if let Some(mut body) = unit.functions[func].body.clone() {
            let parallel = asked.version_loops(unit, func, &mut body);
            prepare_ad::serial_projection::project(unit, &mut body, &ordered, |op| {
                asked.depends_on_thread_count(func, op) && !parallel.contains(&op)
            });
            // Folds guards such as "has the thread a share of the iterations" around the loop, which now has
            // the whole range.
            gradus_edit::fold_guards(unit, &mut body);
            gradus_edit::hoist_private_allocas(&mut body);
            unit.functions[func].body = Some(body);
        }
    }
    projected
}

/// Returns function and location of each team with a stated number of ranks.
pub fn teams_with_stated_size(unit: &Unit, functions: &[FuncId]) -> Vec<(FuncId, Option<LocId>)> {
    let of_function = |&func: &FuncId| {
        let body = unit.functions[func].body.as_deref();
        let teams = body.map(|body| {
            (
                body,
                thread_count::num_threads::teams_with_stated_size(unit, body),
            )
        });
        let places = teams.map(|(body, teams)| {
            let places = teams.into_iter().map(|op| (func, body.ops[op].loc));
            places.collect::<Vec<_>>()
        });
        places.unwrap_or_default()
    };
    functions.iter().flat_map(of_function).collect()
}

/// Turns teams with a stated number of ranks into parallel loops over the ranks.
///
/// Returns function and location of each team that cannot become a loop, because the ranks wait for each other,
/// share work or communicate. A serial projection would break the program's assumptions about the number of
/// ranks.
pub fn stated_teams_to_loops(
    unit: &mut Unit,
    functions: &[FuncId],
) -> Vec<(FuncId, Option<LocId>)> {
    let ordered = thread_count::order_dependence::order_dependent_functions(unit);
    let mut teams = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for op in thread_count::num_threads::teams_with_stated_size(unit, &body) {
            if !thread_count::num_threads::team_to_loop(unit, &mut body, op, &ordered) {
                teams.push((func, body.ops[op].loc));
            }
        }
        unit.functions[func].body = Some(body);
    }
    teams
}
