//! Compiled programs on the pool of this process.

use gradus_ir::Unit;
use gradus_llvm::Host;
use gradus_llvm::jit::Jit;
use gradus_par::Options;
use gradus_rt::{pool, ranges, reduce, strand, tasks, team};

const TRIPLE: &str = "x86_64-pc-linux-gnu";

/// Every loop above so much work forks.
pub fn eager(small_work: u64) -> Options {
    Options {
        small_work,
        task_work: 1,
        ..Options::default()
    }
}

/// What `@f` of a lowered unit gives.
pub fn run(unit: &Unit) -> i64 {
    let mut host = Host::create("program", TRIPLE, unit.layout.text());
    // What is exported belongs to a host that was imported: here one without functions.
    let _ = host.import_all();
    host.export_all(unit).expect("exported");
    let jit = Jit::new(host, &["f"]).expect("compiled");
    jit.define(&[
        ("gr_for", ranges::gr_for as *const () as usize),
        ("gr_reduce", reduce::gr_reduce as *const () as usize),
        ("gr_hungry", pool::gr_hungry as *const () as usize),
        ("gr_always_fork", (&raw const pool::gr_always_fork) as usize),
        ("gr_spawn", tasks::gr_spawn as *const () as usize),
        ("gr_sync", tasks::gr_sync as *const () as usize),
        ("gr_team", team::gr_team as *const () as usize),
        ("gr_barrier", team::gr_barrier as *const () as usize),
        ("gr_single", team::gr_single as *const () as usize),
        ("gr_loop_begin", team::gr_loop_begin as *const () as usize),
        ("gr_loop_next", team::gr_loop_next as *const () as usize),
        ("gr_enter", strand::gr_enter as *const () as usize),
        ("gr_leave", strand::gr_leave as *const () as usize),
        ("gr_lock", team::gr_lock as *const () as usize),
        ("gr_unlock", team::gr_unlock as *const () as usize),
    ])
    .expect("the library's entries");
    jit.call("f", &mut []).expect("runs").i64()
}
