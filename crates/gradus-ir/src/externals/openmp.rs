//! The OpenMP runtime: compiler-generated calls (`__kmpc_…`) and API calls (`omp_…`).

use super::{Effects, ExternalFn, Row};

/// A function of the OpenMP runtime. The first arguments of most functions are a source location and the
/// thread number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpenMpFn {
    /// `location, count, function, captured…`: forks a team. Each thread calls the function with two pointers
    /// to thread numbers and the captured values.
    Fork,
    /// `location, count, function, condition, block`: flang's fork for an `if` clause. With condition 0 a
    /// team of one thread runs the function; the block, if any, is the function's argument.
    ForkIf,
    /// `…, threads`: requests a number of threads for the next team.
    PushNumThreads,
    /// A hint for the next team or task without semantic effect.
    Hint,
    /// Begins a serialised parallel region, a team of one.
    BeginSerial,
    /// Ends a serialised parallel region.
    EndSerial,
    /// `location → thread`.
    GlobalThread,
    /// `…, schedule, &last, &lower, &upper, &stride, increment, chunk`: computes the thread's chunk of a
    /// static loop.
    StaticInit,
    /// Ends a static loop.
    StaticFini,
    /// `…, schedule, lower, upper, stride, chunk`: begins a dynamically scheduled loop.
    DispatchInit,
    /// `…, &last, &lower, &upper, &stride → i32`: fetches the next chunk; 0 if no chunk is left.
    DispatchNext,
    /// Ends a dynamically scheduled loop.
    DispatchFini,
    /// `…, count, size, list, combiner, lock → i32`: 1 if the thread combines under the lock, 2 if
    /// atomically.
    Reduce,
    /// [`OpenMpFn::Reduce`] without a barrier.
    ReduceNowait,
    /// Ends [`OpenMpFn::Reduce`].
    EndReduce,
    /// Ends [`OpenMpFn::ReduceNowait`].
    EndReduceNowait,
    /// A barrier for the team.
    Barrier,
    /// `→ i32`: 1 for one thread of the team.
    Single,
    /// Ends the region of `single`.
    EndSingle,
    /// `→ i32`: 1 for the first thread of the team.
    Master,
    /// Ends the region of `master`.
    EndMaster,
    /// `…, thread → i32`: 1 for the thread with the given number.
    Masked,
    /// Ends the region of `masked`.
    EndMasked,
    /// `…, lock (, hint)`.
    Critical,
    /// `…, lock`.
    EndCritical,
    /// `…, size, list, function, did`: the thread with `did` broadcasts values to the other threads.
    CopyPrivate,
    /// Orders memory accesses.
    Flush,
    /// `…, flags, size, shared size, entry → task`.
    TaskAlloc,
    /// `…, task → i32`: enqueues the task.
    Task,
    /// `…, task`: the calling thread begins to run the task itself (undeferred).
    TaskBeginIf0,
    /// Ends the undeferred task.
    TaskCompleteIf0,
    /// Waits for the child tasks.
    TaskWait,
    /// A scheduling point: other tasks may run.
    TaskYield,
    /// Begins a task group.
    TaskGroup,
    /// Waits for the group's tasks and descendants.
    EndTaskGroup,
    /// `…, task, if, &lower, &upper, stride, nogroup, kind, value(, strict), duplicate`.
    TaskLoop,
    /// `→ i32`: the thread number in the team.
    ThreadNum,
    /// `→ i32`: the number of threads in the team.
    NumThreads,
    /// `→ i32`: the maximum number of threads of a new team.
    MaxThreads,
    /// `requested → i32`: the number of ranks of a team started here with the requested size; a function of
    /// Gradus's runtime.
    RequestedTeamSize,
    /// `→ i32`: whether more than one thread runs in the region.
    InParallel,
    /// `→ i32`: whether the caller runs inside a region, so that other threads may run spawned tasks; a
    /// function of Gradus's runtime.
    InRegion,
    /// `→ i32`: begins a region without ranks. The result is the argument of [`OpenMpFn::EndRegion`]; a
    /// function of Gradus's runtime.
    BeginRegion,
    /// `before`: ends a region without ranks.
    EndRegion,
    /// `→ i32`: the nesting level of parallel regions.
    Level,
    /// `level → i32`: an ancestor's thread number or team size.
    AncestorInfo,
    /// `→ i32`: whether the caller runs in a final task.
    InFinal,
    /// Any other query without effect on the team.
    Query,
    /// Sets an internal control variable.
    Setting,
    /// `→ f64`: the clock or the clock's resolution.
    Clock,
    /// A lock of the program.
    Lock,
    /// `ordered` regions, and `__kmpc_dispatch_fini_…` of ordered loops.
    Ordered,
    /// Dependences of tasks or iterations.
    Depend,
    /// Cancellation.
    Cancel,
    /// Thread-private variables.
    ThreadPrivate,
    /// Target regions and leagues of teams.
    Target,
    /// Reductions over tasks.
    TaskReduction,
    /// Any other function.
    Other,
}

impl OpenMpFn {
    /// Returns whether a call states nothing about the enclosing team: the call begins another team, or only
    /// queries or sets.
    pub fn is_team_independent(self) -> bool {
        self.is_query_or_setting()
            || matches!(
                self,
                OpenMpFn::Fork
                    | OpenMpFn::ForkIf
                    | OpenMpFn::PushNumThreads
                    | OpenMpFn::Hint
                    | OpenMpFn::BeginSerial
                    | OpenMpFn::EndSerial
                    | OpenMpFn::GlobalThread
            )
    }

    /// Returns whether a call only queries or sets something.
    pub fn is_query_or_setting(self) -> bool {
        matches!(
            self,
            OpenMpFn::ThreadNum
                | OpenMpFn::NumThreads
                | OpenMpFn::MaxThreads
                | OpenMpFn::RequestedTeamSize
                | OpenMpFn::InParallel
                | OpenMpFn::Level
                | OpenMpFn::AncestorInfo
                | OpenMpFn::InFinal
                | OpenMpFn::InRegion
                | OpenMpFn::BeginRegion
                | OpenMpFn::EndRegion
                | OpenMpFn::Query
                | OpenMpFn::Setting
                | OpenMpFn::Clock
        )
    }

    /// Returns whether the result may be the caller's number in its team: `omp_get_ancestor_thread_num` at the
    /// caller's own level is the thread number.
    pub fn yields_rank(self) -> bool {
        matches!(self, OpenMpFn::ThreadNum | OpenMpFn::AncestorInfo)
    }

    /// Returns whether the result may be the size of the caller's team, at any level.
    pub fn yields_team_size(self) -> bool {
        matches!(self, OpenMpFn::NumThreads | OpenMpFn::AncestorInfo)
    }
}

const INACTIVE_SERVICE: Effects = Effects::PURE.inaccessible().inactive();

// table
pub(super) const ROWS: &[Row] = &[
    row(&["__kmpc_fork_call"], OpenMpFn::Fork),
    row(&["__kmpc_fork_call_if"], OpenMpFn::ForkIf),
    row(&["__kmpc_push_num_threads"], OpenMpFn::PushNumThreads),
    row(&["__kmpc_push_proc_bind"], OpenMpFn::Hint),
    row(&["__kmpc_serialized_parallel"], OpenMpFn::BeginSerial),
    row(&["__kmpc_end_serialized_parallel"], OpenMpFn::EndSerial),
    row(&["__kmpc_global_thread_num"], OpenMpFn::GlobalThread),
    row(
        &[
            "__kmpc_for_static_init_4",
            "__kmpc_for_static_init_4u",
            "__kmpc_for_static_init_8",
            "__kmpc_for_static_init_8u",
        ],
        OpenMpFn::StaticInit,
    ),
    row(&["__kmpc_for_static_fini"], OpenMpFn::StaticFini),
    row(
        &[
            "__kmpc_dispatch_init_4",
            "__kmpc_dispatch_init_4u",
            "__kmpc_dispatch_init_8",
            "__kmpc_dispatch_init_8u",
        ],
        OpenMpFn::DispatchInit,
    ),
    row(
        &[
            "__kmpc_dispatch_next_4",
            "__kmpc_dispatch_next_4u",
            "__kmpc_dispatch_next_8",
            "__kmpc_dispatch_next_8u",
        ],
        OpenMpFn::DispatchNext,
    ),
    row(&["__kmpc_dispatch_deinit"], OpenMpFn::DispatchFini),
    row(
        &[
            "__kmpc_dispatch_fini_4",
            "__kmpc_dispatch_fini_4u",
            "__kmpc_dispatch_fini_8",
            "__kmpc_dispatch_fini_8u",
            "__kmpc_ordered",
            "__kmpc_end_ordered",
        ],
        OpenMpFn::Ordered,
    ),
    row(&["__kmpc_reduce"], OpenMpFn::Reduce),
    row(&["__kmpc_reduce_nowait"], OpenMpFn::ReduceNowait),
    row(&["__kmpc_end_reduce"], OpenMpFn::EndReduce),
    row(&["__kmpc_end_reduce_nowait"], OpenMpFn::EndReduceNowait),
    row(&["__kmpc_barrier"], OpenMpFn::Barrier),
    row(&["__kmpc_single"], OpenMpFn::Single),
    row(&["__kmpc_end_single"], OpenMpFn::EndSingle),
    row(&["__kmpc_master"], OpenMpFn::Master),
    row(&["__kmpc_end_master"], OpenMpFn::EndMaster),
    row(&["__kmpc_masked"], OpenMpFn::Masked),
    row(&["__kmpc_end_masked"], OpenMpFn::EndMasked),
    row(
        &["__kmpc_critical", "__kmpc_critical_with_hint"],
        OpenMpFn::Critical,
    ),
    row(&["__kmpc_end_critical"], OpenMpFn::EndCritical),
    row(&["__kmpc_copyprivate"], OpenMpFn::CopyPrivate),
    row(&["__kmpc_flush"], OpenMpFn::Flush),
    row(&["__kmpc_omp_task_alloc"], OpenMpFn::TaskAlloc),
    row(&["__kmpc_omp_task"], OpenMpFn::Task),
    row(&["__kmpc_omp_task_begin_if0"], OpenMpFn::TaskBeginIf0),
    row(&["__kmpc_omp_task_complete_if0"], OpenMpFn::TaskCompleteIf0),
    row(&["__kmpc_omp_taskwait"], OpenMpFn::TaskWait),
    row(&["__kmpc_omp_taskyield"], OpenMpFn::TaskYield),
    row(&["__kmpc_taskgroup"], OpenMpFn::TaskGroup),
    row(&["__kmpc_end_taskgroup"], OpenMpFn::EndTaskGroup),
    row(
        &["__kmpc_taskloop", "__kmpc_taskloop_5"],
        OpenMpFn::TaskLoop,
    ),
    query(
        &["omp_get_thread_num", "omp_get_thread_num_"],
        OpenMpFn::ThreadNum,
    ),
    query(
        &["omp_get_num_threads", "omp_get_num_threads_"],
        OpenMpFn::NumThreads,
    ),
    query(
        &["omp_get_max_threads", "omp_get_max_threads_"],
        OpenMpFn::MaxThreads,
    ),
    query(&["gr_ranks"], OpenMpFn::RequestedTeamSize),
    query(&["gr_in_region"], OpenMpFn::InRegion),
    query(&["gr_region"], OpenMpFn::BeginRegion),
    query(&["gr_region_end"], OpenMpFn::EndRegion),
    query(
        &["omp_in_parallel", "omp_in_parallel_"],
        OpenMpFn::InParallel,
    ),
    query(
        &["omp_get_level", "omp_get_level_", "omp_get_active_level"],
        OpenMpFn::Level,
    ),
    row(
        &["omp_get_ancestor_thread_num", "omp_get_team_size"],
        OpenMpFn::AncestorInfo,
    ),
    row(
        &["omp_in_final", "omp_in_final_", "gr_in_final"],
        OpenMpFn::InFinal,
    ),
    query(
        &[
            "omp_get_num_procs",
            "omp_get_dynamic",
            "omp_get_nested",
            "omp_get_thread_limit",
            "omp_get_max_active_levels",
            "omp_get_num_devices",
            "omp_is_initial_device",
            "omp_get_proc_bind",
            "omp_get_cancellation",
            // A region with teams remains with the OpenMP library, which knows the team numbers.
            "omp_get_num_teams",
            "omp_get_team_num",
            "omp_get_num_teams_",
            "omp_get_team_num_",
            "omp_get_num_procs_",
            "omp_get_dynamic_",
            "omp_get_nested_",
            "omp_get_thread_limit_",
            "omp_get_max_active_levels_",
            "omp_get_num_devices_",
            "omp_is_initial_device_",
            "omp_get_proc_bind_",
            "omp_get_cancellation_",
        ],
        OpenMpFn::Query,
    ),
    Row {
        names: &["omp_get_schedule", "omp_get_schedule_"],
        known: ExternalFn::OpenMp(OpenMpFn::Query),
        effects: INACTIVE_SERVICE.writing(&[0, 1]),
    },
    query(
        &[
            "omp_set_num_threads",
            "omp_set_dynamic",
            "omp_set_nested",
            "omp_set_max_active_levels",
            "omp_set_schedule",
        ],
        OpenMpFn::Setting,
    ),
    // Fortran without an explicit interface passes arguments by reference.
    Row {
        names: &[
            "omp_set_num_threads_",
            "omp_set_dynamic_",
            "omp_set_nested_",
            "omp_set_max_active_levels_",
            "omp_set_schedule_",
        ],
        known: ExternalFn::OpenMp(OpenMpFn::Setting),
        effects: INACTIVE_SERVICE.reading(&[0, 1]),
    },
    query(
        &[
            "omp_get_wtime",
            "omp_get_wtick",
            "omp_get_wtime_",
            "omp_get_wtick_",
        ],
        OpenMpFn::Clock,
    ),
    row(
        &[
            "omp_init_lock",
            "omp_destroy_lock",
            "omp_set_lock",
            "omp_unset_lock",
            "omp_test_lock",
            "omp_init_nest_lock",
            "omp_destroy_nest_lock",
            "omp_set_nest_lock",
            "omp_unset_nest_lock",
            "omp_test_nest_lock",
            "omp_init_lock_",
            "omp_destroy_lock_",
            "omp_set_lock_",
            "omp_unset_lock_",
            "omp_test_lock_",
            "omp_init_nest_lock_",
            "omp_destroy_nest_lock_",
            "omp_set_nest_lock_",
            "omp_unset_nest_lock_",
            "omp_test_nest_lock_",
        ],
        OpenMpFn::Lock,
    ),
    row(
        &[
            "__kmpc_omp_task_with_deps",
            "__kmpc_omp_wait_deps",
            "__kmpc_omp_taskwait_deps_51",
            "__kmpc_doacross_init",
            "__kmpc_doacross_post",
            "__kmpc_doacross_wait",
            "__kmpc_doacross_fini",
            "__kmpc_task_allow_completion_event",
        ],
        OpenMpFn::Depend,
    ),
    row(
        &[
            "__kmpc_cancel",
            "__kmpc_cancellationpoint",
            "__kmpc_cancel_barrier",
        ],
        OpenMpFn::Cancel,
    ),
    row(
        &[
            "__kmpc_threadprivate_cached",
            "__kmpc_threadprivate_register",
            "__kmpc_threadprivate_register_vec",
            "__kmpc_copyin",
        ],
        OpenMpFn::ThreadPrivate,
    ),
    row(
        &[
            "__kmpc_fork_teams",
            "__kmpc_push_num_teams",
            "__kmpc_push_num_teams_51",
            "__kmpc_push_target_tripcount_mapper",
        ],
        OpenMpFn::Target,
    ),
    row(
        &[
            "__kmpc_taskred_init",
            "__kmpc_taskred_modifier_init",
            "__kmpc_task_reduction_init",
            "__kmpc_task_reduction_modifier_init",
            "__kmpc_task_reduction_modifier_fini",
            "__kmpc_task_reduction_get_th_data",
        ],
        OpenMpFn::TaskReduction,
    ),
];

const fn row(names: &'static [&'static str], id: OpenMpFn) -> Row {
    Row {
        names,
        known: ExternalFn::OpenMp(id),
        effects: Effects::UNKNOWN,
    }
}

const fn query(names: &'static [&'static str], id: OpenMpFn) -> Row {
    Row {
        names,
        known: ExternalFn::OpenMp(id),
        effects: INACTIVE_SERVICE,
    }
}

#[cfg(test)]
mod tests {
    use super::{OpenMpFn, ROWS};
    use crate::externals::ExternalFn;

    /// Checks a predicate against the names for which it must hold.
    fn holds_for(predicate: fn(OpenMpFn) -> bool, is_named: fn(&str) -> bool) {
        for row in ROWS {
            let ExternalFn::OpenMp(id) = row.known else {
                unreachable!("the table holds OpenMP functions");
            };
            for name in row.names.iter().filter(|name| is_named(name)) {
                assert!(predicate(id), "{name}: {id:?}");
            }
        }
    }

    #[test]
    fn predicates_hold_for_the_names_of_the_table() {
        let asks = |name: &str| {
            let parts = ["omp_get_", "omp_in_", "omp_is_", "omp_set_", "gr_"];
            parts.iter().any(|part| name.starts_with(part)) && !name.contains("lock")
        };
        holds_for(OpenMpFn::is_query_or_setting, asks);
        holds_for(OpenMpFn::is_team_independent, asks);
        holds_for(OpenMpFn::yields_rank, |name| {
            name.starts_with("omp_get_") && name.contains("thread_num")
        });
        holds_for(OpenMpFn::yields_team_size, |name| {
            name.contains("team_size") || name.contains("get_num_threads")
        });
    }
}
