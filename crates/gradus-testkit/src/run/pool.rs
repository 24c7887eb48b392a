//! Runs lowered programs on the pool of this process.

use gradus_ir::Unit;
use gradus_llvm::host::jit::Jit;
use gradus_llvm::{Host, OptLevel, Pipeline};
use gradus_par::Options;
use gradus_rt::loops::{parallel_for, reduce};
use gradus_rt::omp::{critical, queries};
use gradus_rt::{pool, tasks, team, thread_context, thread_scratch};
use std::sync::atomic::Ordering;

const TRIPLE: &str = "x86_64-pc-linux-gnu";

/// Returns options under which every loop with more than `small_work` forks.
pub fn options_with_eager_forks(small_work: u64) -> Options {
    Options {
        small_work,
        task_work: 1,
        ..Options::default()
    }
}

/// Defines the entries of the runtime library for compiled code.
pub(crate) fn define(jit: &Jit) -> Result<(), String> {
    jit.define(&[
        ("gr_for", parallel_for::gr_for as *const () as usize),
        ("gr_reduce", reduce::gr_reduce as *const () as usize),
        ("gr_hungry", pool::gr_hungry as *const () as usize),
        ("gr_workers", pool::gr_workers as *const () as usize),
        ("gr_awake", (&raw const pool::gr_awake) as usize),
        ("gr_always_fork", (&raw const pool::gr_always_fork) as usize),
        (
            "gr_always_fork_calls",
            (&raw const pool::gr_always_fork_calls) as usize,
        ),
        ("gr_spawn", tasks::gr_spawn as *const () as usize),
        ("gr_sync", tasks::gr_sync as *const () as usize),
        ("gr_team", team::gr_team as *const () as usize),
        ("gr_ranks", team::gr_ranks as *const () as usize),
        ("gr_barrier", team::gr_barrier as *const () as usize),
        ("gr_single", team::gr_single as *const () as usize),
        ("gr_part", team::gr_part as *const () as usize),
        ("gr_loop_begin", team::gr_loop_begin as *const () as usize),
        ("gr_loop_next", team::gr_loop_next as *const () as usize),
        ("gr_enter", thread_context::gr_enter as *const () as usize),
        ("gr_leave", thread_context::gr_leave as *const () as usize),
        ("gr_region", thread_context::gr_region as *const () as usize),
        (
            "gr_region_end",
            thread_context::gr_region_end as *const () as usize,
        ),
        ("gr_in_final", queries::gr_in_final as *const () as usize),
        (
            "gr_in_region",
            thread_context::gr_in_region as *const () as usize,
        ),
        ("gr_final", thread_context::gr_final as *const () as usize),
        (
            "gr_final_end",
            thread_context::gr_final_end as *const () as usize,
        ),
        (
            "gr_scratch",
            thread_scratch::gr_scratch as *const () as usize,
        ),
        (
            "gr_scratch_end",
            thread_scratch::gr_scratch_end as *const () as usize,
        ),
        ("gr_lock", critical::gr_lock as *const () as usize),
        ("gr_unlock", critical::gr_unlock as *const () as usize),
    ])
    .map_err(|d| d.to_string())
}

/// Sets the number of workers for later runs in this process.
pub(crate) fn set_workers(workers: i32) {
    queries::__wrap_omp_set_num_threads(workers);
}

/// Returns a module without functions, for the code of a unit that was not imported.
pub(crate) fn empty_host(unit: &Unit) -> Host {
    let mut host = Host::create("program", TRIPLE, unit.layout.text());
    // Export requires an imported host.
    let _ = host.import_all();
    host
}

/// The functions of a lowered unit, compiled in this process.
pub struct Pool(Jit);

impl Pool {
    /// Compiles a unit; `functions` take nothing and return an integer. LLVM's optimiser runs if a level is
    /// given.
    ///
    /// # Errors
    /// LLVM refuses the lowered unit.
    pub fn load(unit: &Unit, functions: &[&str], level: Option<OptLevel>) -> Result<Pool, String> {
        Self::load_into(empty_host(unit), unit, functions, level)
    }

    /// Like [`Pool::load`], in the module that the unit was imported from.
    ///
    /// # Errors
    /// LLVM refuses the lowered unit.
    pub(crate) fn load_into(
        mut host: Host,
        unit: &Unit,
        functions: &[&str],
        level: Option<OptLevel>,
    ) -> Result<Pool, String> {
        host.export_all(unit).map_err(|d| d.to_string())?;
        if let Some(level) = level {
            host.run(Pipeline::Late(level)).map_err(|d| d.to_string())?;
        }
        let jit = match level {
            Some(_) => Jit::new(host, functions),
            None => Jit::quick(host, functions),
        };
        let jit = jit.map_err(|d| d.to_string())?;
        define(&jit)?;
        Ok(Pool(jit))
    }

    /// Makes every loop fork, regardless of its size. Must precede the first program.
    pub fn always_fork() {
        pool::gr_always_fork.store(1, Ordering::Relaxed);
        pool::gr_always_fork_calls.store(1, Ordering::Relaxed);
    }

    /// Calls a function with this number of workers.
    ///
    /// # Errors
    /// An unknown function.
    pub fn call(&self, function: &str, workers: i32) -> Result<i64, String> {
        set_workers(workers);
        let result = self.0.call(function, &mut []).map_err(|d| d.to_string())?;
        Ok(result.i64())
    }
}
