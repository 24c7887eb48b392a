//! Thread-count queries: finds loops that depend on the reported number of threads before differentiation.
//!
//! A team has one rank in a derivative. A program that sees several threads would read the results of absent
//! ranks. A program that sees one thread may take a path that is correct on one thread only (`if (threads > 1)
//! own[i] = …; else shared[list[i]] += …;`), in loops that a derivative would run in parallel. Each query
//! result is therefore tracked by taint analysis ([`TaintFlow`]):
//!
//! - A result that stays in its body, is unrelated to teams and does not determine locations in external memory
//!   is the number of workers. If the number is one, the dependent loops are serial, because iterations may
//!   then rely on each other, whatever the number of workers in the reverse pass ([`ThreadCountVersion`]).
//! - If no team loses ranks, every remaining result is the true number, too. Dependent loops query the number
//!   of threads at loop entry ([`guard_by_team_size`]).
//! - Otherwise every remaining result is one, and dependent loops are serial.
//! - If a result may reach any loop, through memory, a callee or a caller, all loops depend on the result, and
//!   all queries get equal answers.
//!
//! Per-rank sentinels may be counted ([`marks`](crate::thread_count::sentinels)) and are tracked like a query result of one. If
//! the memory is known outside, sentinels of a run with all ranks may be present, and the derivative is
//! refused.
//!
//! Results of both kinds must not mix in memory. All results are one if a rank or a result determines the
//! locations touched in external memory, or if a team-related result decides on an access of external memory.
//! Each access at risk is guarded by a condition on the result.

use crate::thread_count::guards::{guard_by_team_size, is_guarded};
use crate::thread_count::sentinels;
use crate::thread_count::taint::{TaintContext, TaintFlow};
use gradus_analysis::{CallGraph, Effects};
use gradus_edit::{ValueMap, clone_op_within};
use gradus_ir::externals::{ExternalFn, OpenMpFn};
use gradus_ir::{
    BinaryOp, Body, Builder, FuncId, IntPredicate, Linkage, LocId, Op, OpKind, RmwOp, TypeId, Unit,
    Value,
};
use std::collections::HashSet;

/// Returns true if `op` queries the maximum number of threads.
pub(crate) fn queries_max_threads(unit: &Unit, body: &Body, op: Op) -> bool {
    is_openmp_query(unit, body, op, OpenMpFn::MaxThreads)
}

/// Returns true if `op` calls the OpenMP query `what`.
pub(crate) fn is_openmp_query(unit: &Unit, body: &Body, op: Op, what: OpenMpFn) -> bool {
    calls_openmp(unit, body, op, |id| id == what)
}

/// Returns true if `op` calls an OpenMP function that satisfies a predicate.
fn calls_openmp(unit: &Unit, body: &Body, op: Op, fits: impl Fn(OpenMpFn) -> bool) -> bool {
    unit.openmp_callee(body, op).is_some_and(fits) && matches!(body.kind(op), OpKind::Call(_))
}

/// Returns true if `op` queries the size or presence of the enclosing team. Presence (`omp_in_parallel`, the
/// nesting level) differs only if teams lose ranks.
fn queries_team(unit: &Unit, body: &Body, op: Op, without_teams: bool) -> bool {
    let asks = |what| is_openmp_query(unit, body, op, what);
    calls_openmp(unit, body, op, OpenMpFn::yields_team_size)
        || !without_teams && (asks(OpenMpFn::InParallel) || asks(OpenMpFn::Level))
}

/// Returns true for the function that reports the maximum number of threads.
fn is_max_threads_query(unit: &Unit, func: FuncId) -> bool {
    unit.known(func) == Some(ExternalFn::OpenMp(OpenMpFn::MaxThreads))
}

/// Returns the calls of unknown callees whose integer result decides on reads of external memory, or selects
/// among floating-point results.
fn unknown_calls_deciding_reads(
    unit: &Unit,
    func: FuncId,
    body: &Body,
    effects: &Effects,
) -> Vec<(FuncId, Option<LocId>)> {
    let is_unseen = |op: &Op| {
        let callee = unit.callee(body, *op);
        let is_unknown = |f: FuncId| unit.functions[f].body.is_none() && unit.known(f).is_none();
        let is_number = |value: &Value| unit.types.int_bits(body.ty(*value)).is_some();
        callee.is_some_and(is_unknown) && body.results(*op).first().is_some_and(is_number)
    };
    let calls: Vec<Op> = body.walk(body.root()).filter(is_unseen).collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let context = TaintContext::of(unit, func, body, effects);
    let is_float = |value: &Value| {
        let scalar = unit.types.scalar(body.ty(*value));
        unit.types.float_kind(scalar).is_some()
    };
    let chooses = |op: &Op| {
        let branches = matches!(
            body.kind(*op),
            OpKind::Select | OpKind::If | OpKind::Switch(_)
        );
        branches && body.results(*op).iter().any(is_float)
    };
    let says = |op: &Op| {
        let followed = TaintFlow::of(&context, &[body.results(*op)[0]]);
        followed.selects_external_location
            || followed.guards_external_access
            || followed.ops.iter().any(chooses)
    };
    let calls = calls.into_iter().filter(says);
    calls.map(|op| (func, body.ops[op].loc)).collect()
}

/// A loop that is parallel only if all query results it depends on exceed one.
#[derive(Debug)]
struct ThreadCountVersion {
    func: FuncId,
    op: Op,
    queries: Vec<Op>,
}

/// The parallel loops that depend on a thread-count query.
#[derive(Debug, Default)]
pub(crate) struct ThreadCountQueries {
    /// A query result may reach any loop.
    reaches_any_loop: bool,
    /// Query results or sentinels mix in memory: all queries return one.
    pub(crate) all_one: bool,
    /// All queries return the number of workers.
    all_true: bool,
    /// Loops over the ranks of teams. No more of their iterations run concurrently than in the original
    /// program.
    over_ranks: HashSet<(FuncId, Op)>,
    loops: HashSet<(FuncId, Op)>,
    /// Calls that return the number of workers.
    true_queries: HashSet<(FuncId, Op)>,
    versions: Vec<ThreadCountVersion>,
    /// Teams that lose ranks while the program takes the address of a query, which then reports all threads.
    pub(crate) by_address: Vec<(FuncId, Option<LocId>)>,
    /// Calls of unknown callees that may be queries and whose result decides on reads, if ranks of a team write
    /// per-rank locations.
    pub(crate) unknown_calls: Vec<(FuncId, Option<LocId>)>,
    /// Sentinels in external memory, set by ranks of teams that lose their ranks.
    pub(crate) external_sentinels: Vec<(FuncId, Option<LocId>)>,
}

/// The replies to thread-count queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadCountAnswers {
    /// The true number, always: each team keeps all ranks.
    Exact,
    /// One for results related to teams, because a team has one rank.
    OneWhereTeams,
    /// One, always.
    One,
}

/// A tracked query result of a body.
struct TrackedCount<'a> {
    /// The query call; `None` for a team size, a rank or a sentinel.
    call: Option<Op>,
    followed: TaintFlow<'a>,
    /// True if the result must be one.
    must_be_one: bool,
}

impl ThreadCountQueries {
    /// Analyses the unit before queries are answered and before the functions in `projected` lose their teams.
    pub(crate) fn of(
        unit: &Unit,
        projected: &[FuncId],
        answers_are: ThreadCountAnswers,
    ) -> ThreadCountQueries {
        let mut asked = ThreadCountQueries {
            all_true: answers_are == ThreadCountAnswers::Exact,
            ..ThreadCountQueries::default()
        };
        asked.record_loops_over_ranks(unit, projected);
        // Inlined parallel regions leave their outlined functions behind.
        let others = unit.functions.iter();
        let others = others.filter(|(_, f)| f.body.is_some() && f.linkage != Linkage::Internal);
        let roots = others
            .map(|(func, _)| func)
            .chain(projected.iter().copied());
        let closure = CallGraph::of(unit, &roots.collect::<Vec<_>>());
        let loses_teams = |(func, body): &(FuncId, &Body)| {
            projected.contains(func) && teams(body).next().is_some()
        };
        if closure
            .address_taken()
            .iter()
            .any(|f| is_max_threads_query(unit, *f))
        {
            let bodies = closure.bodies(unit).filter(loses_teams);
            let places = bodies
                .flat_map(|(func, body)| teams(body).map(move |team| (func, body.ops[team].loc)));
            asked.by_address = places.collect();
        }
        let without_teams = !closure.bodies(unit).any(|it| loses_teams(&it));
        let bodies: Vec<(FuncId, &Body)> = closure
            .bodies(unit)
            .filter(|it| {
                let body = it.1;
                let mut ops = body.walk(body.root());
                loses_teams(it)
                    || ops.any(|op| {
                        queries_max_threads(unit, body, op)
                            || queries_team(unit, body, op, without_teams)
                            || calls_openmp(unit, body, op, OpenMpFn::yields_rank)
                    })
            })
            .collect();
        if bodies.is_empty() {
            return asked;
        }
        let effects = Effects::of(unit, &closure);
        let contexts: Vec<TaintContext<'_>> = bodies
            .iter()
            .map(|(func, body)| TaintContext::of(unit, *func, body, &effects))
            .collect();
        let mut all_one = false;
        let mut apart = false;
        let mut found = Vec::new();
        for ((func, body), context) in bodies.iter().zip(&contexts) {
            let answers = tracked_counts(unit, body, context, without_teams);
            asked.reaches_any_loop |= answers.iter().any(|a| a.followed.escapes);
            all_one |= answers.iter().any(|a| a.followed.selects_external_location);
            all_one |= answers
                .iter()
                .any(|a| a.must_be_one && a.followed.guards_external_access);
            let ranks = TaintFlow::of(context, &rank_values(unit, body));
            apart |= ranks.selects_external_location || ranks.escapes;
            found.push((*func, *body, answers));
        }
        if !without_teams && !asked.all_true {
            asked.external_sentinels =
                sentinels::external_sentinels(unit, &closure, &effects, &loses_teams);
        }
        all_one &= !asked.all_true;
        apart &= !asked.all_true;
        if apart {
            let calls = closure
                .bodies(unit)
                .flat_map(|(func, body)| unknown_calls_deciding_reads(unit, func, body, &effects));
            asked.unknown_calls.extend(calls);
        }
        asked.all_one = !asked.all_true && (all_one || apart || asked.reaches_any_loop);
        for (func, body, mut answers) in found {
            for answer in &mut answers {
                answer.must_be_one |= asked.all_one || answers_are == ThreadCountAnswers::One;
                answer.must_be_one &= !asked.all_true;
            }
            propagate_must_be_one(&mut answers);
            asked.record_dependent_loops(func, body, &answers);
        }
        asked
    }

    /// Records the loops over ranks in the functions `projected`.
    fn record_loops_over_ranks(&mut self, unit: &Unit, projected: &[FuncId]) {
        for &func in projected {
            if let Some(body) = &unit.functions[func].body {
                let loops = body.walk(body.root());
                let loops = loops.filter(|op| is_over_ranks(unit, body, *op));
                self.over_ranks.extend(loops.map(|op| (func, op)));
            }
        }
    }

    /// Returns true if the loop `op` must be serial.
    pub(crate) fn depends_on_thread_count(&self, func: FuncId, op: Op) -> bool {
        let is_asked = self.reaches_any_loop || self.loops.contains(&(func, op));
        is_asked && !self.over_ranks.contains(&(func, op))
    }

    /// Returns true if the query call `op` returns one.
    pub(crate) fn sees_one_thread(&self, func: FuncId, op: Op) -> bool {
        !self.all_true && !self.true_queries.contains(&(func, op))
    }

    /// Returns function and location of each loop that is serial whatever the query returns.
    pub(crate) fn serial_loops(
        &self,
        unit: &Unit,
        functions: &[FuncId],
    ) -> Vec<(FuncId, Option<LocId>)> {
        let of = |&func: &FuncId| {
            let body = unit.functions[func].body.as_deref();
            body.into_iter().flat_map(move |body| {
                let guarded = self.loops_to_guard(unit, func, body);
                let loops = body.walk(body.root()).filter(move |op| {
                    let mut around = body.op_and_ancestors(*op);
                    is_loop(body, *op)
                        && self.depends_on_thread_count(func, *op)
                        && !self.has_version(func, body, *op)
                        && !around.any(|op| guarded.contains(&op))
                        && !is_guarded(unit, body, *op)
                });
                loops.map(move |op| (func, body.ops[op].loc))
            })
        };
        functions.iter().flat_map(of).collect()
    }

    /// Returns the outermost loops that depend on a true thread count by untracked paths. Such loops query the
    /// number of threads at entry.
    fn loops_to_guard(&self, unit: &Unit, func: FuncId, body: &Body) -> Vec<Op> {
        let is_one = |op: &Op| {
            let inside = body.op_regions(*op).iter().flat_map(|r| body.walk(*r));
            let all: Vec<Op> = std::iter::once(*op).chain(inside).collect();
            let has_version = |op: Op| self.versions.iter().any(|v| v.func == func && v.op == op);
            outermost_parallel_loop(body, *op) == Some(*op)
                && !self.over_ranks.contains(&(func, *op))
                && !is_guarded(unit, body, *op)
                && all
                    .iter()
                    .any(|op| is_loop(body, *op) && self.depends_on_thread_count(func, *op))
                && !all.iter().any(|op| has_version(*op))
        };
        let ops = body.walk(body.root());
        match self.all_true {
            true => ops.filter(is_one).collect(),
            false => Vec::new(),
        }
    }

    /// Adds a parallel version to loops that depend on the number of workers, for a number above one. The
    /// original loop remains for the serial case. Returns the loops that are parallel regardless of the query
    /// results.
    pub(crate) fn version_loops(
        &self,
        unit: &mut Unit,
        func: FuncId,
        body: &mut Body,
    ) -> HashSet<Op> {
        for op in self.loops_to_guard(unit, func, body) {
            guard_by_team_size(unit, body, op);
        }
        for version in self.versions.iter().filter(|version| version.func == func) {
            let op = version.op;
            let mut b = Builder::new(unit, body);
            b.set_insertion_before(op);
            b.loc = b.body.ops[op].loc;
            let several = version.queries.iter().map(|call| {
                let answer = b.body.result(*call);
                let ty = b.body.ty(answer);
                let one = b.int(ty, 1);
                b.icmp(IntPredicate::Sgt, answer, one)
            });
            let several: Vec<Value> = several.collect();
            let Some(several) = several
                .into_iter()
                .reduce(|x, y| b.binary(BinaryOp::And, x, y))
            else {
                continue;
            };
            version_loop(&mut b, op, several);
        }
        let ops = body.walk(body.root());
        ops.filter(|op| is_loop(body, *op) && is_guarded(unit, body, *op))
            .collect()
    }

    fn has_version(&self, func: FuncId, body: &Body, op: Op) -> bool {
        body.op_and_ancestors(op).any(|op| {
            let mut versions = self.versions.iter();
            versions.any(|version| version.func == func && version.op == op)
        })
    }

    /// Records the query results that are the number of workers, the serial loops and the versioned loops.
    fn record_dependent_loops(&mut self, func: FuncId, body: &Body, answers: &[TrackedCount<'_>]) {
        let told = |answer: &TrackedCount<'_>| answer.call.filter(|_| !answer.must_be_one);
        let mut loops: Vec<HashSet<Op>> = Vec::new();
        for answer in answers {
            self.true_queries
                .extend(told(answer).map(|call| (func, call)));
            let ops = answer.followed.ops.iter();
            let own = ops.flat_map(|op| related_parallel_loops(body, *op));
            let own = own.filter(|op| !self.over_ranks.contains(&(func, *op)));
            let own: HashSet<Op> = own.collect();
            self.loops.extend(own.iter().map(|op| (func, *op)));
            loops.push(own);
        }
        for op in body.walk(body.root()) {
            let relies = self.loops.contains(&(func, op)) && !self.reaches_any_loop;
            if !relies || self.has_version(func, body, op) {
                continue;
            }
            let with_it = answers
                .iter()
                .zip(&loops)
                .filter(|(_, own)| own.contains(&op));
            let asked = with_it.map(|(answer, _)| told(answer));
            let known_there = |call: &Op| precedes_in_region(body, *call, op);
            if let Some(asked) = asked.collect::<Option<Vec<Op>>>()
                && asked.iter().all(known_there)
            {
                self.versions.push(ThreadCountVersion {
                    func,
                    op,
                    queries: asked,
                });
            }
        }
    }
}

/// Collects the tracked values of a body: query results, team sizes, rank counters, ranks and sentinels.
fn tracked_counts<'a>(
    unit: &Unit,
    body: &Body,
    context: &'a TaintContext<'a>,
    without_teams: bool,
) -> Vec<TrackedCount<'a>> {
    let of_call = |op: Op, one: bool| {
        let followed = TaintFlow::of(context, &[body.result(op)]);
        let one = one || followed.reaches_team;
        TrackedCount {
            call: Some(op),
            followed,
            must_be_one: one,
        }
    };
    let of_team = |followed| TrackedCount {
        call: None,
        followed,
        must_be_one: true,
    };
    let calls = body.walk(body.root()).filter_map(|op| {
        let of_team = queries_team(unit, body, op, without_teams);
        (of_team || queries_max_threads(unit, body, op)).then(|| of_call(op, of_team))
    });
    let teams = teams(body).flat_map(|team| {
        let sizes = TaintFlow::of(context, &team_size_values(body, team));
        let counted = TaintFlow::of_memory(context, &rank_counters(unit, body, context, team));
        [of_team(sizes), of_team(counted)]
    });
    let mut all: Vec<TrackedCount<'a>> = calls.chain(teams).collect();
    if !without_teams {
        // Sentinels and ranks may reveal the number of threads.
        let ranks = TaintFlow::of(context, &rank_values(unit, body));
        let marks = sentinels::sentinels_of_body(unit, body, context, &ranks).into_iter();
        let marks: Vec<(Value, bool)> = marks.map(|mark| (mark.ptr, mark.floats)).collect();
        all.push(of_team(TaintFlow::of_memory(context, &marks)));
        all.push(of_team(ranks));
    }
    all
}

/// Propagates "must be one" to every related result, to a fixpoint.
fn propagate_must_be_one(answers: &mut [TrackedCount<'_>]) {
    loop {
        let joined: Vec<usize> = (0..answers.len())
            .filter(|at| {
                let answer = &answers[*at];
                let mut others = answers.iter().filter(|other| other.must_be_one);
                !answer.must_be_one && others.any(|other| other.followed.overlaps(&answer.followed))
            })
            .collect();
        if joined.is_empty() {
            return;
        }
        for at in joined {
            answers[at].must_be_one = true;
        }
    }
}

/// Versions the parallel loop `op` at the builder's position: a copy if `several` holds, else `op`.
pub(crate) fn version_loop(b: &mut Builder<'_>, op: Op, several: Value) {
    let old = b.body.results(op).to_vec();
    let types: Vec<TypeId> = old.iter().map(|v| b.body.ty(*v)).collect();
    let (choice, parallel, serial) = b.if_(several, &types);
    b.set_insertion_end(parallel);
    let copy = clone_op_within(op, b, &mut ValueMap::new());
    let results = b.body.results(copy).to_vec();
    b.yield_(&results);
    for (result, new) in old.iter().zip(b.body.results(choice).to_vec()) {
        b.body.replace_uses(*result, new);
    }
    b.body.move_op(op, serial);
    b.set_insertion_end(serial);
    b.yield_(&old);
}

pub(crate) fn is_loop(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::ParFor { .. })
}

/// Returns true for a parallel loop over the ranks of a team without a stated size.
fn is_over_ranks(unit: &Unit, body: &Body, op: Op) -> bool {
    if !is_loop(body, op) {
        return false;
    }
    is_team_rank_count(unit, body, body.operand(op, 0))
}

/// Returns true if `value` is the runtime's reply on the number of ranks of a team.
pub(crate) fn is_team_rank_count(unit: &Unit, body: &Body, value: Value) -> bool {
    let mut from = body.def_op(value);
    while let Some(op) = from
        && matches!(body.kind(op), OpKind::Freeze | OpKind::Cast(_))
    {
        from = body.def_op(body.operand(op, 0));
    }
    from.is_some_and(|op| is_openmp_query(unit, body, op, OpenMpFn::RequestedTeamSize))
}

/// Returns the outermost parallel loop that is or encloses `op`.
pub(crate) fn outermost_parallel_loop(body: &Body, op: Op) -> Option<Op> {
    body.op_and_ancestors(op)
        .filter(|op| is_loop(body, *op))
        .last()
}

/// Returns the parallel loops around `op` and inside of `op`.
pub(crate) fn related_parallel_loops(body: &Body, op: Op) -> Vec<Op> {
    let inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
    body.op_and_ancestors(op)
        .chain(inside)
        .filter(|op| is_loop(body, *op))
        .collect()
}

/// Returns true if `later`, or an op around `later`, follows `first` in the region of `first`.
fn precedes_in_region(body: &Body, first: Op, later: Op) -> bool {
    let at = (body.parent(first)).and_then(|home| body.ancestor_in(home, later));
    at.is_some_and(|at| body.ops_after(first).any(|op| op == at))
}

fn teams(body: &Body) -> impl Iterator<Item = Op> + '_ {
    let ops = body.walk(body.root());
    ops.filter(|op| matches!(body.kind(*op), OpKind::Spmd { .. }))
}

/// Returns true if `body` queries a thread's number in the team.
pub(crate) fn queries_rank(unit: &Unit, body: &Body) -> bool {
    let mut ops = body.walk(body.root());
    ops.any(|op| calls_openmp(unit, body, op, OpenMpFn::yields_rank))
}

/// Returns the thread numbers of a body: rank parameters of teams and results of rank queries.
pub(crate) fn rank_values(unit: &Unit, body: &Body) -> Vec<Value> {
    let of_teams = teams(body).flat_map(|team| {
        let params = body.region_params(body.op_regions(team)[0]);
        params[..params.len() / 2].to_vec()
    });
    let asked = body.walk(body.root());
    let asked = asked.filter(|op| calls_openmp(unit, body, *op, OpenMpFn::yields_rank));
    of_teams.chain(asked.map(|op| body.result(op))).collect()
}

pub(crate) fn team_size_values(body: &Body, team: Op) -> Vec<Value> {
    let params = body.region_params(body.op_regions(team)[0]);
    params[params.len() / 2..].to_vec()
}

/// Returns the addresses at which each rank of `team` adds a constant, atomically or under a lock, and thereby
/// counts ranks. The flag is true for a floating-point sum.
pub(crate) fn rank_counters(
    unit: &Unit,
    body: &Body,
    context: &TaintContext<'_>,
    team: Op,
) -> Vec<(Value, bool)> {
    let own = |op: &Op| {
        let between = body.ancestors(*op).take_while(|op| *op != team);
        let kinds = between.map(|op| body.kind(op)).collect::<Vec<_>>();
        let alone = kinds
            .iter()
            .any(|kind| matches!(kind, OpKind::ShareFor { .. } | OpKind::Single { .. }));
        let locked = kinds.iter().any(|kind| matches!(kind, OpKind::Critical(_)));
        (!alone).then_some(locked)
    };
    let inside = body.walk(body.op_regions(team)[0]);
    let counts = inside.filter_map(|op| match body.kind(op) {
        OpKind::AtomicRmw(RmwOp::Add | RmwOp::Sub | RmwOp::FAdd | RmwOp::FSub, _) => {
            let counts = own(&op).is_some() && context.is_of_constants(body.operand(op, 1));
            counts.then(|| (op, body.operand(op, 0)))
        }
        OpKind::Store(_) => {
            let added = body.def_op(body.operand(op, 0))?;
            let adds = matches!(body.kind(added), OpKind::Binary(_));
            let counts = adds
                && own(&op)?
                && body
                    .operands(added)
                    .any(|operand| context.is_of_constants(operand));
            counts.then(|| (op, body.operand(op, 1)))
        }
        _ => None,
    });
    let with_kind = |(op, ptr): (Op, Value)| {
        let number = match body.kind(op) {
            OpKind::Store(_) => body.operand(op, 0),
            _ => body.operand(op, 1),
        };
        let scalar = unit.types.scalar(body.ty(number));
        (ptr, unit.types.float_kind(scalar).is_some())
    };
    counts.map(with_kind).collect()
}
