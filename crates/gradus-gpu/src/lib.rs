//! Kernels as loops: `spmd grid` and `spmd block` become parallel loops over blocks and plain loops over
//! threads.
//!
//! ```text
//! spmd grid { spmd block { A; barrier; B } }   →   par.for blocks { for threads { A } for threads { B } }
//! ```
//!
//! Place in the flow: after raising and simplification, before gradus-par, which makes calls of the
//! run-time library of the `par.for`s. Passes, in the order of [`PASSES`]: [`fusion`] makes one launch of several, [`lockstep`] lets threads meet around volatile shared memory, [`turns`] finds those whose threads wait for each other in loops, and which stay grids for gradus-par, [`guards`] takes out what is common
//! in divergent branches, [`barriers`] removes those that order nothing, [`clamps`] parts reads at clamped places, [`strides`] counts loops in common, [`widths`]
//! computes places in the width of addresses, [`fission`] cuts blocks at the ops where their threads meet, [`grid`] makes parallel loops of
//! grids, [`multiples`] leaves out threads that do nothing,
//! [`searches`] looks at many elements at once. None needs a proof that a barrier is reached by all threads alike: CUDA leaves the other case
//! undefined, and threads that have left do not count.
//!
//! Invariants: a kernel that cannot be cut stays as it was, and the finding says where and why. Nothing
//! recurses over nesting.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod barriers;
mod cells;
mod clamps;
mod cut;
mod fission;
mod flow;
mod fusion;
mod grid;
mod guards;
mod homes;
mod launches;
mod levels;
mod lockstep;
mod memory;
mod multiples;
mod places;
mod prepare;
mod report;
mod searches;
mod segment;
mod spine;
mod splits;
mod steps;
mod strides;
mod threads;
mod turns;
mod unmet;
mod widths;

pub use report::{KernelRecord, Meeting};

use gradus_analysis::{AliasOptions, Effects};
use gradus_ir::{Body, Diagnostic, FuncId, MOST_THREADS, Op, OpKind, Severity, SpmdKind, Unit};

/// How kernels are lowered.
#[derive(Clone, Debug)]
pub struct Options {
    /// The greatest number of threads in a block whose size is not known.
    pub max_threads: u64,
    /// The greatest size of shared memory whose size is not known, in bytes.
    pub max_shared_bytes: u64,
    /// Whether threads of a block are taken not to race between barriers (the axiom for vectorising
    /// loops over threads). Where they are not, grids say that their blocks may share what they write.
    pub race_free: bool,
    /// Whether barriers that order nothing are removed.
    pub remove_barriers: bool,
    /// Whether values that cross a cut may be computed again.
    pub recompute: bool,
    /// Whether loops may be run in step.
    pub in_step: bool,
    /// Whether reads at clamped places are parted in two.
    pub part_clamps: bool,
    /// Whether loops that give the same to all threads leave guards.
    pub leave_guards: bool,
    /// Whether launches one after the other become one.
    pub fuse_launches: bool,
    /// Whether searches look at many elements at once.
    pub look_ahead: bool,
    /// Whether loops over threads leave out those that do nothing.
    pub skip_threads: bool,
    /// Whether threads that wait for each other in loops take turns.
    pub take_turns: bool,
}

impl Default for Options {
    /// CUDA's limits.
    fn default() -> Self {
        Options {
            max_threads: MOST_THREADS.into(),
            max_shared_bytes: 227 << 10,
            race_free: true,
            remove_barriers: true,
            recompute: true,
            in_step: true,
            part_clamps: true,
            leave_guards: true,
            fuse_launches: true,
            look_ahead: true,
            skip_threads: true,
            take_turns: true,
        }
    }
}

/// What a pass may know beside the body: computed before, and still true after edits that keep the
/// meaning.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Whose body it is, where it belongs to a function of the unit.
    pub function: Option<FuncId>,
    /// What other functions do.
    pub effects: &'a Effects,
    /// Which alias facts may be used.
    pub alias: &'a AliasOptions,
}

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name on a command line and of its folder of cases.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(&mut Unit, &mut Body, &Facts, &Options) -> Findings,
}

/// What a pass found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What could not be done, or is doubtful.
    pub diagnostics: Vec<Diagnostic>,
    /// What became of kernels, by the block.
    pub kernels: Vec<(Op, KernelRecord)>,
    /// The lines of barriers that were removed, by the block.
    pub removed: Vec<(Op, u32)>,
    /// The lines of further launches that a block runs, by the block.
    pub fused: Vec<(Op, Vec<u32>)>,
}

/// All passes, in the order in which [`lower`] runs them.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "fusion",
        about: "launches of one size, of which one takes by thread what the other leaves, become one",
        run: fusion::run,
    },
    Pass {
        name: "lockstep",
        about: "the threads of a block meet around volatile stores to shared memory",
        run: lockstep::run,
    },
    Pass {
        name: "turns",
        about: "kernels whose threads wait for each other in loops stay grids, whose threads take turns",
        run: turns::run,
    },
    Pass {
        name: "guards",
        about: "loops that give the same to all threads leave the branches that only some of them take",
        run: guards::run,
    },
    Pass {
        name: "barriers",
        about: "barriers that order nothing are removed",
        run: barriers::run,
    },
    Pass {
        name: "clamps",
        about: "reads at clamped places become reads side by side",
        run: clamps::run,
    },
    Pass {
        name: "strides",
        about: "loops in which threads stride over what all work on are counted in common",
        run: strides::run,
    },
    Pass {
        name: "widths",
        about: "places computed from ranks are computed in the width of addresses",
        run: widths::run,
    },
    Pass {
        name: "fission",
        about: "blocks become loops over threads, cut where the threads meet",
        run: fission::run,
    },
    Pass {
        name: "grid",
        about: "grids become parallel loops over blocks",
        run: grid::run,
    },
    Pass {
        name: "multiples",
        about: "loops over threads of which only every so many-th does something go by as many",
        run: multiples::run,
    },
    Pass {
        name: "searches",
        about: "searches look at as many elements at once as lie in one stretch of memory",
        run: searches::run,
    },
];

/// What lowering came to.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The functions with new bodies.
    pub changed: Vec<FuncId>,
    /// What could not be done, or is doubtful.
    pub findings: Vec<Diagnostic>,
    /// What became of kernels.
    pub kernels: Vec<KernelRecord>,
}

impl Lowered {
    /// Adds a finding. A kernel stands in each function that launches it, and not in all of them its lines are known:
    /// a warning about a place is told once.
    fn tell(&mut self, finding: Diagnostic, function: &str) {
        let doubt = finding.severity == Severity::Warning;
        let same = |told: &Diagnostic| doubt && told.message == finding.message;
        let is_told = |told: &Diagnostic| {
            same(told) && (finding.labels.is_empty() || told.labels == finding.labels)
        };
        if self.findings.iter().any(is_told) {
            return;
        }
        self.findings
            .retain(|told| !(same(told) && told.labels.is_empty()));
        self.findings.push(finding.in_function(function));
    }
}

/// Lowers every grid and block of `functions`. Where an error is among the findings, the function stays
/// as it was.
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
        let facts = Facts {
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
            removed.extend(found.removed);
            fused.extend(found.fused);
        }
        let failed = findings.iter().any(|f| f.severity == Severity::Error);
        unit.functions[func].body = Some(if failed { before } else { body });
        if !failed {
            lowered.changed.push(func);
        }
        let name = unit.functions[func].name.clone();
        for (block, mut kernel) in kernels {
            let own = removed.iter().filter(|(of, _)| *of == block);
            kernel.removed = own.map(|(_, line)| *line).collect();
            let with = fused.iter().filter(|(of, _)| *of == block);
            kernel.with = with.flat_map(|(_, lines)| lines.clone()).collect();
            kernel.function = unit.functions[func]
                .source_name
                .clone()
                .unwrap_or_else(|| name.clone());
            lowered.kernels.push(kernel);
        }
        for finding in findings {
            lowered.tell(finding, &name);
        }
    }
    lowered
}

/// Puts parallel loops over its ranks in the place of a team of `func`, which is the code of one rank with barriers
/// (`gradus-par`'s `deal`): cut where the ranks meet, as blocks are. Whether it could: code is not cut inside of all
/// ops.
pub fn team_to_loops(
    unit: &mut Unit,
    body: &mut Body,
    func: FuncId,
    team: Op,
    effects: &Effects,
) -> bool {
    let facts = Facts {
        function: Some(func),
        effects,
        alias: &AliasOptions::default(),
    };
    fission::team(unit, body, &facts, team)
}

/// The blocks of a body that become loops, in program order.
fn blocks_in(body: &Body) -> Vec<Op> {
    let is_block = |op: &Op| {
        let kind = SpmdKind::Block;
        let block = matches!(body.kind(*op), OpKind::Spmd { kind: own, .. } if *own == kind);
        block && !turns::are_taken(body, *op)
    };
    body.walk(body.root()).filter(is_block).collect()
}

/// Whether an op is a grid or a block.
fn is_kernel(body: &Body, op: Op) -> bool {
    matches!(
        body.kind(op),
        OpKind::Spmd {
            kind: SpmdKind::Grid | SpmdKind::Block,
            ..
        }
    )
}
