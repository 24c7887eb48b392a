//! Lowers GPU kernels to CPU loops: `spmd grid` becomes a parallel loop over blocks, `spmd block` becomes
//! plain loops over threads.
//!
//! ```text
//! spmd grid { spmd block { A; barrier; B } }   →   par.for blocks { for threads { A } for threads { B } }
//! ```
//!
//! Place in the flow: after raising and simplification, before gradus-par, which lowers `par.for` to calls
//! of the run-time library. Passes, in the order of [`PASSES`]:
//!
//! - `launch-fusion` fuses consecutive launches ([`opt::launch_fusion`]).
//! - `warp-lockstep` inserts warp barriers around volatile stores to shared memory ([`warp::lockstep`]).
//! - `cooperative-threads` selects kernels with spin loops for cooperative threads ([`cooperative`]).
//! - `uniform-guards` hoists uniform loops out of divergent branches ([`opt::uniform_guards`]).
//! - `barrier-removal` removes redundant barriers ([`opt::barrier_removal`]).
//! - `clamp-split` splits loads at clamped indices ([`opt::clamp_split`]).
//! - `grid-stride` rewrites grid-stride loops to a common counter ([`opt::grid_stride`]).
//! - `index-width` widens index arithmetic to 64 bits ([`opt::index_width`]).
//! - `fission` splits blocks at barriers (barrier fission, [`fission`]).
//! - `grid-to-loops` turns grids into parallel loops ([`grid_to_loops`]).
//! - `sparse-thread-loops` strip-mines thread loops with sparse activity ([`opt::sparse_thread_loops`]).
//! - `speculative-search` tests a whole stretch of elements per iteration of a search loop ([`opt::speculative_search`]).
//!
//! No pass needs a proof of uniform barriers: CUDA leaves divergent barriers undefined, and exited threads
//! do not count.
//!
//! Layers, each importing earlier ones only: `blocks`, `addresses`, `warp`, `report`, `fission`, `opt`; `cooperative`
//! and `grid_to_loops` stand beside `opt`.
//!
//! # Invariants
//! A function with a kernel that cannot be split keeps its old body, and the diagnostic states the place and
//! the reason. Nothing recurses over nesting.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod addresses;
mod blocks;
mod cooperative;
mod fission;
mod grid_to_loops;
mod host_launches;
mod opt;
mod report;
mod warp;

pub use report::{BarrierRecord, KernelRecord};

use gradus_analysis::{AliasOptions, Effects, Pass, PassContext, Stage};
use gradus_ir::{
    Body, Diagnostic, FuncId, MAX_BLOCK_THREADS, Op, OpKind, Severity, SpmdKind, Unit,
};

/// Options of kernel lowering.
#[derive(Clone, Debug)]
pub struct Options {
    /// Upper bound on the threads per block, for blocks of unknown size.
    pub max_threads: u64,
    /// Upper bound on shared memory of unknown size, in bytes.
    pub max_shared_bytes: u64,
    /// Assumes that threads of a block do not race between barriers (the axiom for vectorising thread
    /// loops). If false, the `par.for` of a grid is flagged `ALLOWS_EQUAL_WRITES`: several blocks may write equal values
    /// to a location.
    pub race_free: bool,
    /// Enables removal of redundant barriers.
    pub remove_barriers: bool,
    /// Allows values that cross a split to be recomputed.
    pub recompute: bool,
    /// Enables thread interchange (one iteration of all threads before the next).
    pub thread_interchange: bool,
    /// Enables splitting of loads at clamped indices.
    pub clamp_split: bool,
    /// Enables hoisting of uniform loops out of divergent branches.
    pub uniform_guards: bool,
    /// Enables launch fusion.
    pub fuse_launches: bool,
    /// Enables speculative search loops.
    pub speculative_search: bool,
    /// Enables strip-mining of sparse thread loops.
    pub sparse_thread_loops: bool,
    /// Enables cooperative threads for kernels with spin loops.
    pub cooperative_threads: bool,
}

impl Default for Options {
    /// CUDA's limits, with every pass enabled.
    fn default() -> Self {
        Options {
            max_threads: MAX_BLOCK_THREADS.into(),
            max_shared_bytes: 227 << 10,
            race_free: true,
            remove_barriers: true,
            recompute: true,
            thread_interchange: true,
            clamp_split: true,
            uniform_guards: true,
            fuse_launches: true,
            speculative_search: true,
            sparse_thread_loops: true,
            cooperative_threads: true,
        }
    }
}

/// A lowering pass.
pub type KernelPass = Pass<fn(&mut Unit, &mut Body, &PassContext, &Options) -> PassOutcome>;

/// Outcome of a pass.
#[derive(Clone, Debug, Default)]
pub struct PassOutcome {
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Records of lowered kernels, by block.
    pub kernels: Vec<(Op, KernelRecord)>,
    /// Source lines of removed barriers, by block.
    pub removed_barriers: Vec<(Op, u32)>,
    /// Source lines of the further launches that a block absorbed, by block.
    pub fused_launches: Vec<(Op, Vec<u32>)>,
}

/// All passes, in the order in which [`lower`] runs each.
// table
pub const PASSES: &[KernelPass] = &[
    Pass {
        name: "launch-fusion",
        stage: Stage::Kernel,
        switch: Some("launch-fusion"),
        about: "fuses consecutive launches of equal size without conflicts between threads",
        run: opt::launch_fusion::run,
    },
    Pass {
        name: "warp-lockstep",
        stage: Stage::Kernel,
        switch: None,
        about: "inserts warp barriers around volatile stores to shared memory",
        run: warp::lockstep::run,
    },
    Pass {
        name: "cooperative-threads",
        stage: Stage::Kernel,
        switch: Some("cooperative-threads"),
        about: "runs kernels with spin loops on cooperative threads",
        run: cooperative::run,
    },
    Pass {
        name: "uniform-guards",
        stage: Stage::Kernel,
        switch: Some("uniform-guards"),
        about: "hoists uniform loops out of divergent branches",
        run: opt::uniform_guards::run,
    },
    Pass {
        name: "barrier-removal",
        stage: Stage::Kernel,
        switch: Some("barrier-removal"),
        about: "removes barriers that order no conflicting accesses",
        run: opt::barrier_removal::run,
    },
    Pass {
        name: "clamp-split",
        stage: Stage::Kernel,
        switch: Some("clamp-split"),
        about: "splits shared-memory loads at clamped indices into two loads",
        run: opt::clamp_split::run,
    },
    Pass {
        name: "grid-stride",
        stage: Stage::Kernel,
        switch: None,
        about: "gives grid-stride loops a common counter",
        run: opt::grid_stride::run,
    },
    Pass {
        name: "index-width",
        stage: Stage::Kernel,
        switch: None,
        about: "widens index arithmetic on ranks to 64 bits",
        run: opt::index_width::run,
    },
    Pass {
        name: "fission",
        stage: Stage::Kernel,
        switch: None,
        about: "splits blocks at barriers into loops over threads",
        run: fission::run,
    },
    Pass {
        name: "grid-to-loops",
        stage: Stage::Kernel,
        switch: None,
        about: "converts grids to parallel loops over blocks",
        run: grid_to_loops::run,
    },
    Pass {
        name: "sparse-thread-loops",
        stage: Stage::Kernel,
        switch: Some("sparse-thread-loops"),
        about: "strip-mines thread loops in which only every k-th thread is active",
        run: opt::sparse_thread_loops::run,
    },
    Pass {
        name: "speculative-search",
        stage: Stage::Kernel,
        switch: Some("speculative-search"),
        about: "tests a whole aligned stretch of elements per iteration of a search loop",
        run: opt::speculative_search::run,
    },
];

/// Outcome of lowering.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// Functions with a new body.
    pub changed: Vec<FuncId>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Records of kernels.
    pub kernels: Vec<KernelRecord>,
}

impl Lowered {
    /// Adds a diagnostic. Each function that launches a kernel holds a copy of the kernel, and not every
    /// copy has line information. A warning is therefore reported once, with labels if a copy has labels.
    fn add_diagnostic(&mut self, finding: Diagnostic, function: &str) {
        let doubt = finding.severity == Severity::Warning;
        let same = |told: &Diagnostic| doubt && told.message == finding.message;
        let is_told = |told: &Diagnostic| {
            same(told) && (finding.labels.is_empty() || told.labels == finding.labels)
        };
        if self.diagnostics.iter().any(is_told) {
            return;
        }
        self.diagnostics
            .retain(|told| !(same(told) && told.labels.is_empty()));
        self.diagnostics.push(finding.in_function(function));
    }
}

/// Lowers every grid and block of `functions`. A function with an error among its diagnostics keeps its old
/// body.
pub fn lower(
    unit: &mut Unit,
    functions: &[FuncId],
    effects: &Effects,
    options: &Options,
) -> Lowered {
    let mut lowered = Lowered::default();
    let alias = AliasOptions::default();
    for &func in functions {
        let holds = |body: &Body| body.walk(body.root()).any(|op| is_kernel(body, op));
        let Some(before) = unit.functions[func].body.take_if(|body| holds(body)) else {
            continue;
        };
        let facts = PassContext {
            function: Some(func),
            effects,
            alias: &alias,
        };
        let mut body = before.clone();
        let (mut findings, mut kernels, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let mut fused = Vec::new();
        for pass in PASSES {
            let found = (pass.run)(unit, &mut body, &facts, options);
            findings.extend(found.diagnostics);
            kernels.extend(found.kernels);
            removed.extend(found.removed_barriers);
            fused.extend(found.fused_launches);
        }
        let failed = findings.iter().any(|f| f.severity == Severity::Error);
        unit.functions[func].body = Some(if failed { before } else { body });
        if !failed {
            lowered.changed.push(func);
        }
        let name = unit.functions[func].name.clone();
        for (block, mut kernel) in kernels {
            let own = removed.iter().filter(|(of, _)| *of == block);
            kernel.removed_barriers = own.map(|(_, line)| *line).collect();
            let with = fused.iter().filter(|(of, _)| *of == block);
            kernel.fused_lines = with.flat_map(|(_, lines)| lines.clone()).collect();
            kernel.function = unit.functions[func]
                .source_name
                .clone()
                .unwrap_or_else(|| name.clone());
            lowered.kernels.push(kernel);
        }
        for finding in findings {
            lowered.add_diagnostic(finding, &name);
        }
    }
    lowered
}

/// Replaces a team of `func` by parallel loops over ranks, split at barriers like a block, and returns
/// whether the replacement succeeded. The team holds the code of one rank with barriers (`gradus-par`'s
/// `team_to_rank_code`). A split inside an op other than a plain loop or branch is not possible.
pub fn team_to_loops(
    unit: &mut Unit,
    body: &mut Body,
    func: FuncId,
    team: Op,
    effects: &Effects,
) -> bool {
    let facts = PassContext {
        function: Some(func),
        effects,
        alias: &AliasOptions::default(),
    };
    fission::team_to_rank_loops(unit, body, &facts, team)
}

/// Returns whether an op is a grid or a block.
fn is_kernel(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::Spmd {
            kind: SpmdKind::Grid | SpmdKind::Block,
            ..
        }
    )
}
