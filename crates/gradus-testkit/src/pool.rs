//! Lowered programs on the pool of this process.

use gradus_ir::Unit;
use gradus_llvm::jit::Jit;
use gradus_llvm::{Host, OptLevel, Pipeline};
use gradus_par::Options;
use gradus_rt::{answers, critical, pool, ranges, reduce, strand, tasks, team};
use std::sync::atomic::Ordering;

const TRIPLE: &str = "x86_64-pc-linux-gnu";

/// Every loop above so much work forks.
pub fn eager(small_work: u64) -> Options {
    Options {
        small_work,
        task_work: 1,
        ..Options::default()
    }
}

/// Hands the entries of the run-time library to compiled code.
pub(crate) fn define(jit: &Jit) -> Result<(), String> {
    jit.define(&[
        ("gr_for", ranges::gr_for as *const () as usize),
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
        ("gr_enter", strand::gr_enter as *const () as usize),
        ("gr_leave", strand::gr_leave as *const () as usize),
        ("gr_region", strand::gr_region as *const () as usize),
        ("gr_region_end", strand::gr_region_end as *const () as usize),
        ("gr_in_final", answers::gr_in_final as *const () as usize),
        ("gr_in_region", strand::gr_in_region as *const () as usize),
        ("gr_final", strand::gr_final as *const () as usize),
        ("gr_final_end", strand::gr_final_end as *const () as usize),
        ("gr_lock", critical::gr_lock as *const () as usize),
        ("gr_unlock", critical::gr_unlock as *const () as usize),
    ])
    .map_err(|d| d.to_string())
}

/// The number of workers of what runs next in this process.
pub(crate) fn set_workers(workers: i32) {
    answers::__wrap_omp_set_num_threads(workers);
}

/// A module without functions, for the code of a unit that was no host's before.
pub(crate) fn empty_host(unit: &Unit) -> Host {
    let mut host = Host::create("program", TRIPLE, unit.layout.text());
    // What is exported belongs to a host that was imported.
    let _ = host.import_all();
    host
}

/// The functions of a lowered unit, compiled in this process.
pub struct Pool(Jit);

impl Pool {
    /// Compiles a unit; `functions` take nothing and give an integer. LLVM's optimiser works on it where a
    /// level is given.
    ///
    /// # Errors
    /// Where LLVM refuses what was lowered.
    pub fn load(unit: &Unit, functions: &[&str], level: Option<OptLevel>) -> Result<Pool, String> {
        Self::load_into(empty_host(unit), unit, functions, level)
    }

    /// As [`Pool::load`], in the module that the unit was imported from.
    ///
    /// # Errors
    /// Where LLVM refuses what was lowered.
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

    /// Every loop is split, whatever its size. Must come before the first program runs.
    pub fn always_fork() {
        pool::gr_always_fork.store(1, Ordering::Relaxed);
        pool::gr_always_fork_calls.store(1, Ordering::Relaxed);
    }

    /// Calls a function with so many workers.
    ///
    /// # Errors
    /// Where there is no such function.
    pub fn call(&self, function: &str, workers: i32) -> Result<i64, String> {
        set_workers(workers);
        let result = self.0.call(function, &mut []).map_err(|d| d.to_string())?;
        Ok(result.i64())
    }
}
