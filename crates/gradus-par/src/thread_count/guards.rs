//! Guards of parallel loops that may depend on the number of ranks, in programs whose teams become loops over
//! all ranks.
//!
//! A loop may be correct on one thread only, and run because the program found a team of one rank (`if (threads
//! == 1) { … }`). More threads may exist in the reverse pass. A loop that the program executes with several
//! threads may run in parallel: its iterations are independent. The guard queries, at loop entry, the number of
//! ranks a team would have. The loop is parallel, in forward and reverse pass, if the number exceeds one, and
//! serial otherwise. How the number reaches the loop need not be known.

use crate::emit::abi::Entry;
use crate::emit::serial::par_for_to_nest;
use crate::thread_count::num_threads::teams;
use crate::thread_count::queries::{
    is_loop, is_openmp_query, is_team_rank_count, outermost_parallel_loop, rank_counters,
    related_parallel_loops, team_size_values, version_loop,
};
use crate::thread_count::taint::{TaintContext, TaintFlow};
use gradus_analysis::Analyses;
use gradus_ir::externals::OpenMpFn;
use gradus_ir::{Body, Builder, Flags, FuncId, IntPredicate, Op, OpKind, Unit, Value};

/// Returns the outermost parallel loops of `functions` that may depend on the number of ranks of a team.
/// Iterations may rely on each other in a team of one rank.
///
/// Teams with a stated number of ranks are exempt: their number is fixed. Returns `None` if a team or a
/// team-size query is inside of such a loop, or such a loop is inside of a team.
pub fn loops_depending_on_team_size(
    unit: &Unit,
    analyses: &mut Analyses,
    functions: &[FuncId],
) -> Option<Vec<(FuncId, Op)>> {
    let effects = analyses.effects(unit, functions);
    let mut found = Vec::new();
    let mut leaves = false;
    for (func, body) in with_bodies(unit, functions) {
        let open = teams(unit, body, false);
        // A function called by a team contains the query itself.
        let asks = |op: &Op| is_openmp_query(unit, body, *op, OpenMpFn::NumThreads);
        let asking: Vec<Op> = body.walk(body.root()).filter(asks).collect();
        if open.is_empty() && asking.is_empty() {
            continue;
        }
        let mut sources = open.iter().chain(&asking);
        if sources.any(|op| outermost_parallel_loop(body, *op).is_some()) {
            return None;
        }
        let context = TaintContext::of(unit, func, body, &effects);
        let asked: Vec<Value> = asking.iter().map(|op| body.result(*op)).collect();
        let mut all = vec![TaintFlow::of(&context, &asked)];
        for &team in &open {
            all.push(TaintFlow::of(&context, &team_size_values(body, team)));
            let counted = rank_counters(unit, body, &context, team);
            all.push(TaintFlow::of_memory(&context, &counted));
        }
        leaves |= all.iter().any(|followed| followed.escapes);
        let ops = all.iter().flat_map(|followed| &followed.ops);
        let loops = ops.flat_map(|op| related_parallel_loops(body, *op));
        found.extend(loops.filter_map(|op| Some((func, outermost_parallel_loop(body, op)?))));
    }
    if leaves {
        for (func, body) in with_bodies(unit, functions) {
            let loops = body.walk(body.root());
            found.extend(loops.filter_map(|op| Some((func, outermost_parallel_loop(body, op)?))));
        }
    }
    found.sort_unstable();
    found.dedup();
    let in_team = |(func, op): &(FuncId, Op)| {
        let body = unit.functions[*func].body.as_deref();
        body.is_some_and(|body| {
            body.op_and_ancestors(*op)
                .any(|op| matches!(body.kind(op), OpKind::Spmd { .. }))
        })
    };
    (!found.iter().any(in_team)).then_some(found)
}

fn with_bodies<'a>(
    unit: &'a Unit,
    functions: &'a [FuncId],
) -> impl Iterator<Item = (FuncId, &'a Body)> {
    let body = |func: &FuncId| Some((*func, unit.functions[*func].body.as_deref()?));
    functions.iter().filter_map(body)
}

/// Returns true if the loop is guarded by [`guard_by_team_size`], i.e. executes only with several ranks.
pub(crate) fn is_guarded(unit: &Unit, body: &Body, op: Op) -> bool {
    let is_guard = |(inside, choice): (Op, Op)| {
        let several = body.def_op(body.operand(choice, 0));
        let Some(several) = several.filter(|_| matches!(body.kind(choice), OpKind::If)) else {
            return false;
        };
        *body.kind(several) == OpKind::ICmp(IntPredicate::Sgt)
            && body.parent(inside) == body.op_regions(choice).first().copied()
            && body.as_int(unit, body.operand(several, 1)) == Some(1)
            && is_team_rank_count(unit, body, body.operand(several, 0))
    };
    let outside = body.ancestors(op);
    let has_condition = |(_, choice): &(Op, Op)| body.operands(*choice).next().is_some();
    body.op_and_ancestors(op)
        .zip(outside)
        .filter(has_condition)
        .any(is_guard)
}

/// Versions a parallel loop: parallel if a team at loop entry would have several ranks, else serial with all
/// nested parallel loops.
pub fn guard_by_team_size(unit: &mut Unit, body: &mut Body, op: Op) {
    let mut b = Builder::new(unit, body);
    b.set_insertion_before(op);
    b.loc = b.body.ops[op].loc;
    let entry = Entry::Ranks.declare(b.unit);
    let int = b.unit.types.int(32);
    let (as_many, one) = (b.zero(int), b.int(int, 1));
    let call = b.call(entry, &[as_many]);
    let ranks = b.body.result(call);
    let ranks = b.value(OpKind::Freeze, &[ranks], int);
    let several = b.icmp(IntPredicate::Sgt, ranks, one);
    version_loop(&mut b, op, several);
    let inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
    let mut loops: Vec<Op> = inside.filter(|op| is_loop(body, *op)).collect();
    loops.insert(0, op);
    for op in loops {
        let mut b = Builder::new(unit, body);
        b.set_insertion_before(op);
        b.loc = b.body.ops[op].loc;
        for made in par_for_to_nest(&mut b, op) {
            let flags = &mut body.ops[made].flags;
            *flags = flags.without(Flags::INDEPENDENT);
        }
    }
}
