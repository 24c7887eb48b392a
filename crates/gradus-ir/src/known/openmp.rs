//! OpenMP's run time: what compilers call for its constructs, and what programs ask it.

use super::{Effects, Known, Row};

/// A function of OpenMP's run time. The first arguments of most are a source location and the number
/// of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpenMpFn {
    /// `location, count, function, captured…`: every thread of a new team calls the function with two
    /// pointers to thread numbers and what is captured.
    Fork,
    /// `location, count, function, condition, block`: flang's, for an `if` clause. A team of one runs the function
    /// where the condition is 0; it is given the block, if there is one.
    ForkIf,
    /// `…, threads`: asks so many for the next team.
    PushNumThreads,
    /// A wish about the next team or task that changes no meaning.
    Hint,
    /// Begins a team of one.
    BeginSerial,
    /// Ends it.
    EndSerial,
    /// `location → thread`.
    GlobalThread,
    /// `…, schedule, &last, &lower, &upper, &stride, increment, chunk`: a thread's part of a loop.
    StaticInit,
    /// Ends that loop.
    StaticFini,
    /// `…, schedule, lower, upper, stride, chunk`: begins a loop dealt out on request.
    DispatchInit,
    /// `…, &last, &lower, &upper, &stride → i32`: the next part, 0 where there is none.
    DispatchNext,
    /// Ends a part, or the loop.
    DispatchFini,
    /// `…, count, size, list, combiner, lock → i32`: 1 for who combines under the lock, 2 atomically.
    Reduce,
    /// The same without waiting for the others.
    ReduceNowait,
    /// Ends the former.
    EndReduce,
    /// Ends the latter.
    EndReduceNowait,
    /// All threads of the team meet.
    Barrier,
    /// `→ i32`: 1 for one thread of the team.
    Single,
    /// Ends what that thread does.
    EndSingle,
    /// `→ i32`: 1 for the first thread of the team.
    Master,
    /// Ends what that thread does.
    EndMaster,
    /// `…, thread → i32`: 1 for the thread named.
    Masked,
    /// Ends what that thread does.
    EndMasked,
    /// `…, lock (, hint)`.
    Critical,
    /// `…, lock`.
    EndCritical,
    /// `…, size, list, function, did`: the thread that did gives its values to the others.
    CopyPrivate,
    /// Orders memory.
    Flush,
    /// `…, flags, size, shared size, entry → task`.
    TaskAlloc,
    /// `…, task → i32`: the task may run from now on.
    Task,
    /// `…, task`: the calling thread runs the task itself.
    TaskBeginIf0,
    /// Ends that.
    TaskCompleteIf0,
    /// Waits for the tasks made by this one.
    TaskWait,
    /// Other tasks may run here.
    TaskYield,
    /// Begins a group of tasks.
    TaskGroup,
    /// Waits for its tasks and theirs.
    EndTaskGroup,
    /// `…, task, if, &lower, &upper, stride, nogroup, kind, value(, strict), duplicate`.
    TaskLoop,
    /// `→ i32`: the number of this thread in its team.
    Rank,
    /// `→ i32`: the number of threads of the team.
    Size,
    /// `→ i32`: the number of threads that a team would have.
    MaxThreads,
    /// `wanted → i32`: the number of ranks that a team begun here has which is to have so many; of the run-time
    /// library's own.
    Ranks,
    /// `→ i32`: whether more than one thread runs.
    InParallel,
    /// `→ i32`: whether a region runs this, so that its tasks may be others' work; of the run-time library's own.
    InRegion,
    /// `→ i32`: a region without ranks begins here. Gives what [`OpenMpFn::RegionEnd`] takes; of the run-time
    /// library's own.
    Region,
    /// `before`: the region ends.
    RegionEnd,
    /// `→ i32`: how many regions are around.
    Level,
    /// `level → i32`: the number of a thread around this, or of those of its team.
    OfLevel,
    /// `→ i32`: whether what runs is a final task.
    InFinal,
    /// Another question, whose answer changes nothing of the team.
    Query,
    /// Sets a number of the run time.
    Setting,
    /// `→ f64`: the clock, or its resolution.
    Clock,
    /// A lock of the program's own.
    Lock,
    /// `ordered`.
    Ordered,
    /// Dependences of tasks, or of iterations.
    Depend,
    /// Cancellation.
    Cancel,
    /// Variables of each thread's own.
    ThreadPrivate,
    /// Code for other devices, and teams of teams.
    Target,
    /// Reductions over tasks.
    TaskReduction,
    /// Anything else.
    Other,
}

impl OpenMpFn {
    /// Returns true if a call states nothing about the enclosing team: it begins another team, or only queries or
    /// sets.
    pub fn is_of_no_team(self) -> bool {
        self.is_question()
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

    /// Returns true if a call only queries or sets something.
    pub fn is_question(self) -> bool {
        matches!(
            self,
            OpenMpFn::Rank
                | OpenMpFn::Size
                | OpenMpFn::MaxThreads
                | OpenMpFn::InParallel
                | OpenMpFn::Level
                | OpenMpFn::OfLevel
                | OpenMpFn::InFinal
                | OpenMpFn::InRegion
                | OpenMpFn::Region
                | OpenMpFn::RegionEnd
                | OpenMpFn::Query
                | OpenMpFn::Setting
                | OpenMpFn::Clock
        )
    }
}

const TALK: Effects = Effects::PURE.hidden().inactive();

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
    asks(
        &["omp_get_thread_num", "omp_get_thread_num_"],
        OpenMpFn::Rank,
    ),
    asks(
        &["omp_get_num_threads", "omp_get_num_threads_"],
        OpenMpFn::Size,
    ),
    asks(
        &["omp_get_max_threads", "omp_get_max_threads_"],
        OpenMpFn::MaxThreads,
    ),
    asks(&["gr_ranks"], OpenMpFn::Ranks),
    asks(&["gr_in_region"], OpenMpFn::InRegion),
    asks(&["gr_region"], OpenMpFn::Region),
    asks(&["gr_region_end"], OpenMpFn::RegionEnd),
    asks(
        &["omp_in_parallel", "omp_in_parallel_"],
        OpenMpFn::InParallel,
    ),
    asks(
        &["omp_get_level", "omp_get_level_", "omp_get_active_level"],
        OpenMpFn::Level,
    ),
    row(
        &["omp_get_ancestor_thread_num", "omp_get_team_size"],
        OpenMpFn::OfLevel,
    ),
    row(
        &["omp_in_final", "omp_in_final_", "gr_in_final"],
        OpenMpFn::InFinal,
    ),
    asks(
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
            // A region with teams stays with OpenMP's library, which knows their numbers.
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
        known: Known::OpenMp(OpenMpFn::Query),
        effects: TALK.writing(&[0, 1]),
    },
    asks(
        &[
            "omp_set_num_threads",
            "omp_set_dynamic",
            "omp_set_nested",
            "omp_set_max_active_levels",
            "omp_set_schedule",
        ],
        OpenMpFn::Setting,
    ),
    // Fortran without an interface hands over addresses.
    Row {
        names: &[
            "omp_set_num_threads_",
            "omp_set_dynamic_",
            "omp_set_nested_",
            "omp_set_max_active_levels_",
            "omp_set_schedule_",
        ],
        known: Known::OpenMp(OpenMpFn::Setting),
        effects: TALK.reading(&[0, 1]),
    },
    asks(
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
        known: Known::OpenMp(id),
        effects: Effects::UNKNOWN,
    }
}

const fn asks(names: &'static [&'static str], id: OpenMpFn) -> Row {
    Row {
        names,
        known: Known::OpenMp(id),
        effects: TALK,
    }
}
