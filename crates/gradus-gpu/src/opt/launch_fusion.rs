//! Launch fusion: consecutive launches of equal size become a single launch.
//!
//! ```text
//! if can(a) { grid { A } }; if can(b) { grid { B } }
//!     →   if can(a) && can with it(b) && apart(p, q)… { grid { A; B } } else { as before }
//! ```
//!
//! Legality: no access of a thread of one launch conflicts with an access of another thread of the other
//! launch. Both accesses are to distinct objects, or to a location that is private to each thread
//! ([`crate::addresses::launch_addresses`]). Arrays that the program text does not prove distinct are tested at launch by the run
//! time, which knows all allocations. The run time also decides whether the second launch is valid, and
//! refuses if profiling requests a time per kernel. After a refusal the launches run unfused, each with its
//! own test and error. Atomic and volatile accesses, and calls with side effects, prevent fusion.
//!
//! Kernels without barriers share one thread loop, with store-to-load forwarding between the kernels. Other
//! kernels are separated by a barrier and keep their own thread loops; a block's part of an array is still
//! in the processor's cache for the second kernel. Kernels with loops are not fused: optimisation of a loop
//! relies on the writes of its own kernel, and only the run time knows that another kernel writes elsewhere.
//!
//! Place: before all other passes, which see a single kernel. The code is duplicated; long kernels are
//! skipped.

use crate::addresses::launch_addresses::{LaunchAddresses, Spot};
use crate::blocks::kernel_reads::is_observable;
use crate::host_launches::{LAUNCH_BEGIN, Launch, is_call_of};
use crate::{Options, PassOutcome};
use gradus_analysis::{Alias, AliasOptions, BaseValue, MemoryAccess, MemoryRegion, PassContext};
use gradus_edit::{ValueMap, clone_op_within, clone_ops_within, is_pure, is_speculatable};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    AttrSet, BarrierScope, BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Region, SpmdKind,
    TypeId, Unit, Value,
};

/// Run-time query: can a launch join the launch already begun?
const QUERY_CAN_JOIN: &str = "__gr_launch_with";
/// Run-time query: are two addresses in distinct allocations?
const QUERY_DISJOINT: &str = "__gr_apart";
/// Limit of ops in all fused launches.
const MAX_OPS: usize = 1_500;
/// Limit of compared access pairs.
const MAX_ACCESS_PAIRS: usize = 1 << 14;
/// Limit of array pairs tested at run time.
const MAX_RUNTIME_CHECKS: usize = 12;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let mut findings = PassOutcome::default();
    if !options.fuse_launches {
        return findings;
    }
    for chain in chains(unit, body, facts) {
        let lines = chain.links.iter().skip(1).map(|link| {
            let span = unit.span(body.ops[link.launch.branch].loc);
            span.map_or(0, |span| span.line)
        });
        let lines = lines.collect();
        let block = fuse(unit, body, &chain);
        findings.fused_launches.push((block, lines));
    }
    findings
}

/// Launches to be fused.
struct LaunchChain {
    links: Vec<ChainLink>,
    /// Pairs of base addresses that must be in distinct objects.
    runtime_checks: Vec<(BaseValue, BaseValue)>,
}

impl From<ChainLink> for LaunchChain {
    /// Starts a chain; ops before the first launch stay in place.
    fn from(mut link: ChainLink) -> LaunchChain {
        link.between.clear();
        LaunchChain {
            links: vec![link],
            runtime_checks: Vec::new(),
        }
    }
}

/// A launch of a chain.
struct ChainLink {
    launch: Launch,
    /// The ops between the previous launch and this launch, without the launch's own query and test.
    between: Vec<Op>,
}

/// The fusible chains of a body, region by region.
fn chains(unit: &Unit, body: &Body, facts: &PassContext) -> Vec<LaunchChain> {
    let is_question = |op: &Op| is_call_of(unit, body, *op, LAUNCH_BEGIN);
    let questions = body.walk(body.root()).filter(is_question);
    let mut regions: Vec<Region> = questions.filter_map(|op| body.parent(op)).collect();
    regions.sort_unstable();
    let count = regions.len();
    regions.dedup();
    if regions.len() == count {
        return Vec::new();
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    // Types and `restrict` give no guarantee between kernels, as between threads of a block.
    let bare = AliasOptions {
        tbaa: false,
        scopes: false,
        noalias: false,
        race_free: false,
        ..facts.alias.clone()
    };
    let bare = Alias::new(unit, facts.function, body, facts.effects, &bare);
    let find = ChainFinder {
        facts,
        host_alias: &alias,
        kernel_alias: &bare,
    };
    regions
        .into_iter()
        .flat_map(|region| find.in_region(region))
        .collect()
}

struct ChainFinder<'a> {
    facts: &'a PassContext<'a>,
    /// Alias facts of the host code.
    host_alias: &'a Alias<'a>,
    /// Alias facts between kernels.
    kernel_alias: &'a Alias<'a>,
}

impl ChainFinder<'_> {
    fn in_region(&self, region: Region) -> Vec<LaunchChain> {
        let (unit, body) = (self.host_alias.unit, self.host_alias.body);
        let mut found: Vec<LaunchChain> = Vec::new();
        let mut chain: Option<LaunchChain> = None;
        let mut between: Vec<Op> = Vec::new();
        for op in body.ops_in(region) {
            if let Some(launch) = Launch::match_launch(unit, body, op) {
                between.retain(|op| *op != launch.begin && *op != launch.test);
                let link = ChainLink {
                    launch,
                    between: std::mem::take(&mut between),
                };
                match chain.take() {
                    Some(open) => match self.extend_chain(open, link) {
                        Ok(longer) => chain = Some(longer),
                        Err((done, link)) => {
                            found.push(done);
                            chain = Some(LaunchChain::from(link));
                        }
                    },
                    None => chain = Some(LaunchChain::from(link)),
                }
            } else if is_call_of(unit, body, op, LAUNCH_BEGIN) || self.may_move_before(op) {
                between.push(op);
            } else {
                found.extend(chain.take());
            }
            if chain.is_none() {
                between.clear();
            }
        }
        found.extend(chain);
        found.retain(|chain| chain.links.len() > 1);
        found
    }

    /// Returns whether an op between launches may move before the launches, judged by the op alone.
    fn may_move_before(&self, op: Op) -> bool {
        let (unit, body) = (self.host_alias.unit, self.host_alias.body);
        let waits = [
            "cudaDeviceSynchronize",
            "cudaThreadSynchronize",
            "cudaStreamSynchronize",
        ];
        match body.kind(op) {
            OpKind::Load(access) => access.is_plain(),
            // A launch is complete when the launching call returns.
            OpKind::Call(_) if waits.iter().any(|name| is_call_of(unit, body, op, name)) => body
                .results(op)
                .iter()
                .all(|result| !body.has_uses(*result)),
            _ => is_speculatable(unit, body, op),
        }
    }

    /// Appends a launch to a chain if fusible; else returns both unchanged.
    fn extend_chain(
        &self,
        mut chain: LaunchChain,
        link: ChainLink,
    ) -> Result<LaunchChain, (LaunchChain, ChainLink)> {
        match self.chain_runtime_checks(&chain, &link) {
            Some(apart) => {
                chain.runtime_checks = apart;
                chain.links.push(link);
                Ok(chain)
            }
            None => Err((chain, link)),
        }
    }

    /// The pairs of base addresses to be tested at run time if a launch joins a chain; `None` if not
    /// fusible.
    fn chain_runtime_checks(
        &self,
        chain: &LaunchChain,
        link: &ChainLink,
    ) -> Option<Vec<(BaseValue, BaseValue)>> {
        let (unit, body) = (self.host_alias.unit, self.host_alias.body);
        let first = chain.links.first()?;
        let same = |(a, b): (&Value, &Value)| {
            a == b
                || body
                    .as_int(unit, *a)
                    .is_some_and(|n| body.as_int(unit, *b) == Some(n))
        };
        let (left, right) = (
            first.launch.sizes(unit, body),
            link.launch.sizes(unit, body),
        );
        let loops = [first, link]
            .iter()
            .any(|link| has_loops(body, &link.launch));
        let fits = left.iter().zip(&right).all(same);
        let moves = link
            .launch
            .ops_of_grid(body)
            .into_iter()
            .all(|op| is_pure(unit, body, op) || matches!(body.kind(op), OpKind::Alloca(_)));
        let count = |launch: &Launch| body.walk(body.op_regions(launch.branch)[0]).count();
        let links = chain.links.iter().chain([link]);
        let ops: usize = links.map(|link| count(&link.launch)).sum();
        if !fits || !moves || loops || ops > MAX_OPS {
            return None;
        }
        let mut apart = chain.runtime_checks.clone();
        for other in &chain.links {
            let reads_before = self.reads_unmodified_memory(&other.launch, &link.between);
            if !reads_before && !is_planted(Mutant::HostLoadMovedOverLaunch) {
                return None;
            }
            for pair in self.pair_runtime_checks(&other.launch, &link.launch)? {
                if !apart.contains(&pair) && !apart.contains(&(pair.1, pair.0)) {
                    apart.push(pair);
                }
            }
        }
        (apart.len() <= MAX_RUNTIME_CHECKS).then_some(apart)
    }

    /// Returns whether `ops` read no memory that a launch may write.
    fn reads_unmodified_memory(&self, launch: &Launch, ops: &[Op]) -> bool {
        let (unit, body, effects) = (
            self.host_alias.unit,
            self.host_alias.body,
            self.facts.effects,
        );
        let Some(writes) = self.accesses(launch) else {
            return false;
        };
        let writes: Vec<&MemoryAccess> =
            writes.iter().filter(|access| access.is_clobber()).collect();
        let loads = ops
            .iter()
            .filter(|op| matches!(body.kind(**op), OpKind::Load(_)));
        loads
            .flat_map(|op| effects.of_op(unit, body, *op))
            .all(|read| {
                writes
                    .iter()
                    .all(|write| !self.host_alias.may_alias(&read, write))
            })
    }

    /// The memory accesses of a launch's kernel; `None` if the order of accesses is observable.
    fn accesses(&self, launch: &Launch) -> Option<Vec<MemoryAccess>> {
        let (unit, body, effects) = (
            self.host_alias.unit,
            self.host_alias.body,
            self.facts.effects,
        );
        let mut found = Vec::new();
        for op in body.walk(body.op_regions(launch.grid)[0]) {
            if is_observable(unit, body, op) {
                return None;
            }
            let own = effects.of_op(unit, body, op).into_iter();
            found.extend(own.filter(|access| access.place != MemoryRegion::Errno));
        }
        Some(found)
    }

    /// The pairs of base addresses to be tested at run time for two launches without conflicts between
    /// different threads; `None` if a conflict is possible.
    fn pair_runtime_checks(
        &self,
        left: &Launch,
        right: &Launch,
    ) -> Option<Vec<(BaseValue, BaseValue)>> {
        let (first, second) = (self.accesses(left)?, self.accesses(right)?);
        if first.len().saturating_mul(second.len()) > MAX_ACCESS_PAIRS {
            return None;
        }
        let (before, after) = (
            LaunchAddresses::new(self.kernel_alias, left),
            LaunchAddresses::new(self.kernel_alias, right),
        );
        let spots = |places: &LaunchAddresses, all: &[MemoryAccess]| -> Vec<Option<Spot>> {
            all.iter()
                .map(|access| places.access_address(access))
                .collect()
        };
        let (from, to) = (spots(&before, &first), spots(&after, &second));
        let mut apart = Vec::new();
        for (x, a) in first.iter().zip(&from) {
            for (y, b) in second.iter().zip(&to) {
                let reads = !x.is_clobber() && !y.is_clobber();
                if reads || !self.kernel_alias.may_alias_any_iteration(x, y) {
                    continue;
                }
                if let (Some(a), Some(b)) = (a, b)
                    && (before.conflicts_only_in_same_thread(a, b)
                        || is_planted(Mutant::FusedThreadConflictMissed))
                {
                    continue;
                }
                let (p, q) = (before.access_base(x)?, after.access_base(y)?);
                if p == q {
                    return None;
                }
                if is_planted(Mutant::LaunchFusionUnchecked) {
                    continue;
                }
                apart.push((p, q));
            }
        }
        Some(apart)
    }
}

// ---- edits -----------------------------------------------------------------------------------

/// Emits the fused launch and its run-time test; returns the fused block.
fn fuse(unit: &mut Unit, body: &mut Body, chain: &LaunchChain) -> Op {
    let first = &chain.links[0].launch;
    for op in chain.links.iter().flat_map(|link| &link.between).copied() {
        body.detach(op);
        body.insert_before(first.branch, op);
    }
    let b = &mut Builder::new(unit, body);
    b.set_insertion_before(first.branch);
    b.loc = b.body.ops[first.branch].loc;
    let together = emit_condition(b, chain);
    let (_, fused, apart) = b.if_(together, &[]);
    b.set_insertion_end(fused);
    let block = emit_fused_grid(b, chain);
    let mut map = ValueMap::new();
    clone_op_within(first.end, b, &mut map);
    b.yield_(&[]);
    b.set_insertion_end(apart);
    let end = b.yield_(&[]);
    for (index, link) in chain.links.iter().enumerate() {
        let launch = &link.launch;
        // The first launch's query precedes the fused code.
        let question = [launch.begin, launch.test];
        let moved = question.iter().take(if index == 0 { 0 } else { 2 });
        for op in moved.copied().chain([launch.branch]) {
            b.body.detach(op);
            b.body.insert_before(end, op);
        }
    }
    block
}

/// Emits the condition for the fused launch.
fn emit_condition(b: &mut Builder<'_>, chain: &LaunchChain) -> Value {
    let int = b.unit.types.int(32);
    let zero = b.int(int, 0);
    let mut together = b.body.result(chain.links[0].launch.test);
    let mut questions = Vec::new();
    for link in &chain.links[1..] {
        questions.push((QUERY_CAN_JOIN, b.unit.call_args(b.body, link.launch.begin)));
    }
    for (p, q) in &chain.runtime_checks {
        questions.push((QUERY_DISJOINT, query_arguments(b, *p, *q)));
    }
    for (name, args) in questions {
        let func = match b.unit.function(name) {
            Some(func) => func,
            None => {
                let types: Vec<TypeId> = args.iter().map(|arg| b.body.ty(*arg)).collect();
                let ty = b.unit.types.func(int, types);
                b.unit.declare(name, ty, AttrSet::default())
            }
        };
        let call = b.call(func, &args);
        let answer = b.body.result(call);
        let yes = b.icmp(IntPredicate::Ne, answer, zero);
        together = b.binary(BinaryOp::And, together, yes);
    }
    together
}

/// Arguments of the query for two base addresses. A global variable lies in no allocation and is passed as
/// null.
fn query_arguments(b: &mut Builder<'_>, p: BaseValue, q: BaseValue) -> Vec<Value> {
    match (p, q) {
        (BaseValue::Value(p), BaseValue::Value(q)) => vec![p, q],
        (BaseValue::Value(p), BaseValue::Global(_))
        | (BaseValue::Global(_), BaseValue::Value(p)) => {
            let none = b.zero(b.body.ty(p));
            vec![p, none]
        }
        (BaseValue::Global(_), BaseValue::Global(_)) => {
            let none = b.unit.types.ptr();
            let none = b.zero(none);
            vec![none, none]
        }
    }
}

/// Emits a grid with one block, in which each thread runs the kernels in sequence; returns the block.
fn emit_fused_grid(b: &mut Builder<'_>, chain: &LaunchChain) -> Op {
    let launches: Vec<&Launch> = chain.links.iter().map(|link| &link.launch).collect();
    let mut map = ValueMap::new();
    let before: Vec<Op> = launches.iter().flat_map(|l| l.ops_before(b.body)).collect();
    for op in before {
        clone_op_within(op, b, &mut map);
    }
    let grids: Vec<Op> = launches.iter().map(|launch| launch.grid).collect();
    let (grid, inside) = empty_spmd(b, &grids, SpmdKind::Grid, &mut map);
    let place = b.set_insertion_end(inside);
    let of_grid: Vec<Op> = launches
        .iter()
        .flat_map(|l| l.ops_of_grid(b.body))
        .collect();
    for op in of_grid {
        clone_op_within(op, b, &mut map);
    }
    let blocks: Vec<Op> = launches.iter().map(|launch| launch.block).collect();
    let (block, code) = empty_spmd(b, &blocks, SpmdKind::Block, &mut map);
    b.yield_(&[]);
    b.set_insertion_end(code);
    let apart = launches.iter().any(|launch| has_barriers(b.body, launch));
    for (index, launch) in launches.iter().enumerate() {
        if index > 0 && apart {
            b.op(OpKind::Barrier(BarrierScope::Block), &[], &[], 0);
        }
        let from = launch.code(b.body);
        clone_ops_within(from, b, &mut map);
    }
    b.yield_(&[]);
    b.restore_insertion_point(place);
    b.body.ops[grid].loc = b.body.ops[launches[0].grid].loc;
    block
}

/// Returns whether a kernel contains loops.
fn has_loops(body: &Body, launch: &Launch) -> bool {
    body.walk(launch.code(body))
        .any(|op| body.kind(op).is_loop())
}

/// Returns whether a kernel contains barriers.
fn has_barriers(body: &Body, launch: &Launch) -> bool {
    let waits = |op: Op| matches!(body.kind(op), OpKind::Barrier(_));
    body.walk(launch.code(body)).any(waits)
}

/// Emits an empty `spmd` with the extents of the first op of `ops`, and maps the parameters of all ops.
fn empty_spmd(b: &mut Builder<'_>, ops: &[Op], kind: SpmdKind, map: &mut ValueMap) -> (Op, Region) {
    let extents: Vec<Value> = b
        .body
        .operands(ops[0])
        .map(|v| map.get_or_same(v))
        .collect();
    let dims = extents.len() as u32;
    let made = b.op(OpKind::Spmd { kind, dims }, &extents, &[], 1);
    b.body.ops[made].loc = b.body.ops[ops[0]].loc;
    let region = b.body.op_regions(made)[0];
    for (index, op) in ops.iter().enumerate() {
        let params = b.body.region_params(b.body.op_regions(*op)[0]).to_vec();
        if index == 0 {
            for &param in &params {
                let ty = b.body.ty(param);
                let own = b.body.add_param(region, ty);
                map.set(param, own);
            }
        } else {
            let own = b.body.region_params(region).to_vec();
            for (param, own) in params.into_iter().zip(own) {
                map.set(param, own);
            }
        }
    }
    (made, region)
}
