//! Fork and join: the parallel ops of a body become calls of the run-time library, or the serial
//! code that they stand for.
//!
//! Place in the flow: after everything that works on parallel ops, before export, which knows none
//! of them. A body is lowered from the outside in: the region of the outermost parallel op becomes a
//! function of its own ([`outlined`]), which comes to the end of the list and is lowered in its turn.
//!
//! Functions that spawn and call themselves are split before ([`clones`]): small tasks need no estimate.
//! Small work stays serial: every parallel loop is tested against an estimate of what one iteration
//! costs ([`work`]), where the compiler can make one out, and runs as a plain call of its own range
//! function where a fork would cost more than it gives.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod abi;
mod alone;
mod apart;
mod asked;
mod clones;
mod columns;
mod combine;
mod deferred;
mod deterministic;
mod early;
mod followed;
mod forking;
mod forks;
mod frames;
mod fusion;
mod guarded;
mod loops;
mod marks;
mod ordered;
mod orphans;
mod outlined;
mod own_memory;
mod projections;
mod ranks;
mod restore;
mod serial;
mod sized;
mod task_loops;
mod tasks;
mod team;
mod throws;
mod told;
mod turns;
mod unaligned;
mod watched;
mod weighed;
mod widen;
mod words;
mod work;

pub use asked::Answers;
pub use deterministic::keep_order;
pub use forking::{Fork, Size};
pub use forks::is_fork;
pub use fusion::{Fused, fuse, join};
pub use guarded::{guard, loops_asking_teams};
pub use orphans::{inside_of_regions, settle_orphans};
pub use projections::call_projections;
pub use ranks::{deal, shares_of_others, teams, waiting};
pub use restore::restore;
pub use task_loops::task_loops;
pub use weighed::weigh;

use gradus_analysis::{Closure, Effects};
use gradus_ir::{Body, FuncId, LocId, Op, OpKind, Unit};
use std::collections::HashSet;

/// What parallel ops become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Their serial projection.
    Serial,
    /// Calls of the run-time library.
    #[default]
    Runtime,
    /// The words of `gradus/parallel.h`, which raising makes the same ops of; calls of the run-time library where
    /// there is none.
    Words,
}

/// How to lower.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What parallel ops become.
    pub target: Target,
    /// A loop whose estimated work is at most this much runs serially, in simple operations.
    pub small_work: u64,
    /// The same while a worker that has nothing to do is awake: a fork is cheap then.
    pub small_work_awake: u64,
    /// A task should do at least this much, in simple operations.
    pub task_work: u64,
    /// Whether iterations of parallel loops are stated not to meet in memory, as in a program without races.
    pub race_free: bool,
}

impl Default for Options {
    /// Measured on two cores with the library's own fork: about 20 ns where the workers are awake,
    /// 10 µs where one has to be woken; a simple operation takes 0.02 to 0.3 ns in a vectorised loop. Two
    /// workers are faster than one from about 50,000 additions of arrays on, of some four operations each.
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

/// What [`project`] found of programs that look at the number of threads.
#[derive(Clone, Debug, Default)]
pub struct Projected {
    /// The function and the place of each loop that is serial as it looks at the number, of which it is told that it
    /// is one.
    pub serial: Vec<(FuncId, Option<LocId>)>,
    /// The functions of which only the projection may be called where one was told that there is one thread; see
    /// [`call_projections`].
    pub told: HashSet<FuncId>,
    /// The function and the place of each team that has one rank, while the program finds the number of all threads
    /// by a pointer to the function that says it.
    pub by_address: Vec<(FuncId, Option<LocId>)>,
    /// The same of each call of a function that is not seen and whose answer, if it is a number of threads, would
    /// have the program look for what ranks left that are not there.
    pub unseen: Vec<(FuncId, Option<LocId>)>,
    /// The function and the place of each store by which ranks of a team that has one leave a mark at a place of their
    /// own, in memory that others know, so that the program may count them.
    pub marked: Vec<(FuncId, Option<LocId>)>,
}

/// What lowering made.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The functions made on the way, which are part of the unit now.
    pub made: Vec<FuncId>,
    /// When each parallel loop forks.
    pub forks: Vec<Fork>,
}

/// Lowers every parallel op of `functions`.
pub fn lower(unit: &mut Unit, functions: &[FuncId], options: &Options) -> Lowered {
    let mut pending = functions.to_vec();
    let (mut made, mut forks) = (Vec::new(), Vec::new());
    if options.target == Target::Runtime {
        let split = clones::split(unit, functions);
        made.extend(split.into_iter().filter(|func| !functions.contains(func)));
        pending.extend(&made);
    }
    let effects = Effects::of(unit, &Closure::of(unit, &pending));
    if options.target != Target::Words {
        keep_apart(unit, &pending, &effects);
    }
    let mut throws = throws::Throws::of(unit, &pending);
    let costs = work::Costs::of(unit, &pending);
    while let Some(func) = pending.pop() {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut lowering = Lowering {
            unit,
            func,
            options,
            made: Vec::new(),
            forks: Vec::new(),
            throws,
            costs: &costs,
            effects: &effects,
        };
        lowering.body(&mut body);
        let new = lowering.made;
        forks.extend(lowering.forks);
        throws = lowering.throws;
        gradus_edit::raise_private(&mut body);
        if made.contains(&func) {
            frames::relieve(unit, &mut body);
            widen::widen(unit, &mut body);
        }
        unaligned::lower(unit, &mut body);
        if watched::is_watched(unit, func) {
            watched::show_float_sums(unit, &mut body);
        }
        unit.functions[func].body = Some(body);
        made.extend(&new);
        pending.extend(new);
    }
    Lowered { made, forks }
}

/// States which memory accesses in regions mean, before these become functions of their own. What is read
/// early stands where it will be by then.
fn keep_apart(unit: &mut Unit, functions: &[FuncId], effects: &Effects) {
    for &func in functions {
        if let Some(mut body) = unit.functions[func].body.take() {
            if !watched::is_watched(unit, func) {
                early::read(unit, func, &mut body, effects);
            }
            apart::state(unit, func, &mut body, effects);
            unit.functions[func].body = Some(body);
        }
    }
}

/// Puts the serial projection in place of every parallel op of `functions`. Loops whose iterations are
/// independent say so ([`Flags::INDEPENDENT`]), for [`restore`] to find them again: what works on
/// serial code, like differentiation, can stand in between. `answers` says what the code is told of the number of threads.
///
/// [`Flags::INDEPENDENT`]: gradus_ir::Flags::INDEPENDENT
pub fn project(unit: &mut Unit, functions: &[FuncId], answers: Answers) -> Projected {
    forks::to_loops(unit, functions);
    let ordered = ordered::ordered(unit);
    let asked = asked::Asked::of(unit, functions, answers);
    let projected = Projected {
        serial: asked.places(unit, functions),
        told: match asked.all_one {
            true => projections::speaking(unit),
            false => HashSet::new(),
        },
        by_address: asked.by_address.clone(),
        unseen: asked.unseen.clone(),
        marked: asked.marked.clone(),
    };
    serial::answer_for_one_thread(unit, |func, op| asked.is_told_one(func, op));
    for &func in functions {
        // A function that calls itself is looked at while it is worked on.
        if let Some(mut body) = unit.functions[func].body.clone() {
            let parallel = asked.part(unit, func, &mut body);
            serial::project(unit, &mut body, &ordered, |op| {
                asked.relies(func, op) && !parallel.contains(&op)
            });
            // The whole range of a loop comes inside of what asked whether a thread has a part of it.
            gradus_edit::fold_guards(unit, &mut body);
            gradus_edit::raise_private(&mut body);
            unit.functions[func].body = Some(body);
        }
    }
    projected
}

/// The function and the place of each team that is to have a stated number of ranks.
pub fn sized_teams(unit: &Unit, functions: &[FuncId]) -> Vec<(FuncId, Option<LocId>)> {
    let of_function = |&func: &FuncId| {
        let body = unit.functions[func].body.as_deref();
        let teams = body.map(|body| (body, sized::sized(unit, body)));
        let places = teams.map(|(body, teams)| {
            let places = teams.into_iter().map(|op| (func, body.ops[op].loc));
            places.collect::<Vec<_>>()
        });
        places.unwrap_or_default()
    };
    functions.iter().flat_map(of_function).collect()
}

/// Makes parallel loops over their ranks of the teams that are to have a stated number of them; gives the function
/// and the place of each that cannot be one, because its ranks wait for each other, share work, or tell each other
/// something. A projection to one rank would not do what the program counts on.
pub fn ranks_to_loops(unit: &mut Unit, functions: &[FuncId]) -> Vec<(FuncId, Option<LocId>)> {
    let ordered = ordered::ordered(unit);
    let mut teams = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        for op in sized::sized(unit, &body) {
            if !sized::to_loop(unit, &mut body, op, &ordered) {
                teams.push((func, body.ops[op].loc));
            }
        }
        unit.functions[func].body = Some(body);
    }
    teams
}

/// A body that is being lowered.
struct Lowering<'a> {
    unit: &'a mut Unit,
    /// Whose body it is.
    func: FuncId,
    options: &'a Options,
    /// The functions made of its regions.
    made: Vec<FuncId>,
    /// When its parallel loops fork.
    forks: Vec<Fork>,
    /// What may throw.
    throws: throws::Throws,
    /// What calls come to.
    costs: &'a work::Costs,
    /// What functions do.
    effects: &'a Effects,
}

impl Lowering<'_> {
    /// Lowers the outermost parallel ops until none is left: those inside of them are in other
    /// functions then, or stand in this one.
    fn body(&mut self, body: &mut Body) {
        while let Some(op) = outermost(body) {
            match self.options.target {
                _ if turns::are_taken(body, op) => self.turns(body, op),
                Target::Serial => serial::lower(self.unit, body, op),
                Target::Runtime => self.op(body, op),
                Target::Words => self.worded(body, op),
            }
        }
    }

    fn op(&mut self, body: &mut Body, op: Op) {
        match body.kind(op) {
            OpKind::ParFor { .. } => self.par_for(body, op),
            OpKind::Spmd { .. } => self.team(body, op),
            OpKind::Scope => self.scope(body, op),
            OpKind::Critical(_) => self.critical(body, op),
            _ => serial::lower(self.unit, body, op),
        }
    }
}

/// The first parallel op that stands in no other.
fn outermost(body: &Body) -> Option<Op> {
    body.walk(body.root())
        .find(|op| body.kind(*op).is_parallel())
}
