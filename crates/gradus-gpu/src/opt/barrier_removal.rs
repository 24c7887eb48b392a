//! Barrier removal: erases barriers that order no conflicting accesses.
//!
//! The meaning of a barrier is its memory effect: all accesses since the previous barrier complete before
//! any thread starts the accesses up to the next barrier. (Moses et al., *High-performance GPU-to-CPU
//! transpilation and optimization via high-level parallel constructs*, 2023.) A barrier is redundant if no
//! access of a thread on one side conflicts with an access of another thread on the other side. Accesses of
//! a single thread are ordered without the barrier. Removed are barriers at kernel ends, doubled barriers,
//! barriers around per-thread memory, and barriers between uses of memory that is used once.
//!
//! ```text
//! s[t] = f(t); barrier; y[t] = s[t] + x[t]   →   s[t] = f(t); y[t] = s[t] + x[t]
//! ```
//!
//! Place: before [`crate::fission`].
//!
//! # Algorithm
//! The sides of a barrier are found by walking the structure in both directions, also around loops, up to
//! the next barrier. Barriers are decided in sequence, and a removed barrier no longer ends a side, because
//! two barriers can justify each other. Threads that take another path at a divergent branch may have exited
//! before the barrier: accesses on that path count as before the barrier.
//!
//! # Profitability
//! Only costly barriers are removed. If all barriers of a loop or branch are redundant, the loop or branch
//! need not be split. A split that values cross stores the values per thread. A split without stored values
//! turns a long loop into two short loops, which vectorise better, and stays.

use crate::addresses::thread_disjointness::ThreadAccesses;
use crate::blocks::blocks_to_lower;
use crate::blocks::kernel_reads::KernelReads;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::thread_storage;
use crate::blocks::thread_storage::ThreadStorage;
use crate::blocks::uniformity::Uniformity;
use crate::report::values_crossing;
use crate::{Options, PassOutcome};
use gradus_analysis::{
    AccessKind, Alias, AliasOptions, MemoryAccess, MemoryRegion, Object, PassContext,
};
use gradus_ir::{Body, Op, OpKind, Region, Unit};
use std::collections::{HashMap, HashSet};

/// Limit of access pairs compared per barrier; a barrier with more pairs stays.
const MAX_ACCESS_PAIRS: usize = 1 << 18;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    let mut findings = PassOutcome::default();
    let blocks = blocks_to_lower(body);
    if !options.remove_barriers || blocks.is_empty() {
        return findings;
    }
    let reads = KernelReads::of(unit, body, facts, &blocks);
    let across_threads = AliasOptions {
        tbaa: false,
        scopes: false,
        noalias: false,
        race_free: false,
        ..facts.alias.clone()
    };
    let alias = Alias::new(unit, facts.function, body, facts.effects, &across_threads);
    let mut redundant = Vec::new();
    for block in blocks {
        let found = redundant_in(&alias, facts, options, block, &reads);
        redundant.extend(found.into_iter().map(|barrier| (block, barrier)));
    }
    for (block, barrier) in redundant {
        let line = unit.span(body.ops[barrier].loc).map_or(0, |span| span.line);
        findings.removed_barriers.push((block, line));
        body.erase(barrier);
    }
    findings
}

/// The barriers of a block that can be removed together.
fn redundant_in(
    alias: &Alias,
    facts: &PassContext,
    options: &Options,
    block: Op,
    reads: &KernelReads,
) -> Vec<Op> {
    let (unit, body) = (alias.unit, alias.body);
    // Not an error: fission reports a block that cannot be split.
    let Ok(spine) = Skeleton::of(unit, body, block, &[]) else {
        return Vec::new();
    };
    let levels = Uniformity::of(unit, body, &spine, reads);
    let homes = thread_storage::plan(unit, body, &spine, &levels, &reads.steady, options);
    let splits = spine.splits(unit, body).into_iter();
    let barriers: Vec<Op> = splits.map(|(op, _)| op).collect();
    let mut sides = BarrierSides {
        facts,
        cells: ThreadAccesses {
            alias,
            spine: &spine,
            levels: &levels,
        },
        remaining: barriers.iter().copied().collect(),
        accesses: HashMap::new(),
    };
    let mut regions: Vec<Region> = barriers.iter().filter_map(|op| body.parent(*op)).collect();
    // Nested regions first: descending program order of the owner.
    regions.sort_by_key(|region| {
        std::cmp::Reverse(body.owner(*region).map(|op| alias.nest.order(op)))
    });
    regions.dedup();
    let mut gone = Vec::new();
    for region in regions {
        let own = barriers
            .iter()
            .copied()
            .filter(|op| body.parent(*op) == Some(region));
        let own: Vec<Op> = own.collect();
        let costly: Vec<Op> = own
            .iter()
            .copied()
            .filter(|op| sides.is_costly(*op, &homes))
            .collect();
        let whole = region != spine.root && sides.find_redundant(&own).len() == own.len();
        if whole {
            gone.extend(own);
        } else {
            sides.remaining.extend(own);
            gone.extend(sides.find_redundant(&costly));
        }
    }
    gone
}

/// Direction of the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Backward,
    Forward,
}

impl Direction {
    fn next(self, body: &Body, op: Op) -> Option<Op> {
        match self {
            Direction::Backward => body.prev(op),
            Direction::Forward => body.next(op),
        }
    }
    fn first(self, body: &Body, region: Region) -> Option<Op> {
        match self {
            Direction::Backward => body.last(region),
            Direction::Forward => body.first(region),
        }
    }
}

/// Accesses between the barriers of a block.
struct BarrierSides<'a> {
    facts: &'a PassContext<'a>,
    cells: ThreadAccesses<'a>,
    /// Barriers that remain.
    remaining: HashSet<Op>,
    accesses: HashMap<Op, Vec<MemoryAccess>>,
}

impl BarrierSides<'_> {
    /// Decides on `barriers` in sequence; returns the redundant barriers.
    fn find_redundant(&mut self, barriers: &[Op]) -> Vec<Op> {
        let mut gone = Vec::new();
        for &barrier in barriers {
            if self.is_redundant(barrier) {
                self.remaining.remove(&barrier);
                gone.push(barrier);
            }
        }
        gone
    }

    /// Returns whether a split at a barrier has a cost (stored values, or rows of private memory) or orders
    /// nothing.
    fn is_costly(&mut self, barrier: Op, homes: &ThreadStorage) -> bool {
        let (body, spine) = (self.cells.alias.body, self.cells.spine);
        !homes.live_allocas.is_empty()
            || !values_crossing(body, spine, &homes.stored, barrier).is_empty()
            || self.orders_nothing(barrier, Direction::Backward)
            || self.orders_nothing(barrier, Direction::Forward)
    }

    /// Returns whether no memory is accessed between a barrier and the adjacent end of the segment.
    fn orders_nothing(&mut self, barrier: Op, way: Direction) -> bool {
        let (body, spine) = (self.cells.alias.body, self.cells.spine);
        let next = |op: &Op| way.next(body, *op);
        let beside = std::iter::successors(next(&barrier), next);
        let segment: Vec<Op> = beside.take_while(|op| !spine.is_structural(*op)).collect();
        let mut all = Vec::new();
        segment
            .iter()
            .for_each(|op| self.add_with_nested(*op, &mut all));
        self.collect_accesses(all).is_empty()
    }

    fn is_redundant(&mut self, barrier: Op) -> bool {
        let mut before = self.reachable_ops(barrier, Direction::Backward);
        before.extend(self.ops_bypassing(barrier));
        let after = self.reachable_ops(barrier, Direction::Forward);
        let (before, after) = (self.collect_accesses(before), self.collect_accesses(after));
        let few = before.len().saturating_mul(after.len()) <= MAX_ACCESS_PAIRS;
        few && !before
            .iter()
            .any(|x| after.iter().any(|y| self.cells.may_conflict(x, y)))
    }

    /// The accesses of `ops`, each op once.
    fn collect_accesses(&mut self, ops: Vec<Op>) -> Vec<MemoryAccess> {
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for op in ops.into_iter().filter(|op| seen.insert(*op)) {
            if !self.accesses.contains_key(&op) {
                let found = self.accesses_of(op);
                self.accesses.insert(op, found);
            }
            all.extend_from_slice(&self.accesses[&op]);
        }
        all
    }

    /// The accesses of a single op. A fence, or an atomic or volatile access outside the stack, counts as a
    /// write of all reachable memory: another block may wait for the op.
    fn accesses_of(&self, op: Op) -> Vec<MemoryAccess> {
        let alias = self.cells.alias;
        let mut found = self.facts.effects.of_op(alias.unit, alias.body, op);
        let speaks = match alias.body.kind(op) {
            OpKind::Load(access) | OpKind::Store(access) | OpKind::AtomicRmw(_, access) => {
                !access.is_plain()
            }
            OpKind::CmpXchg { .. } | OpKind::Fence { .. } => true,
            _ => false,
        };
        let of_block = |access: &MemoryAccess| {
            let targets = alias.objects(access);
            targets.is_some_and(|targets| {
                let mut objects = targets.iter().map(|t| alias.points_to.object(t.object));
                objects.all(|object| matches!(object, Object::Stack(_)))
            })
        };
        if speaks && !found.iter().all(of_block) {
            found.push(MemoryAccess {
                op,
                kind: AccessKind::Write,
                place: MemoryRegion::Reachable,
                offset: 0,
                size: None,
                count: None,
                meta: None,
            });
        }
        found
    }

    /// The ops reachable from an op of the skeleton before a remaining barrier, with nested ops.
    fn reachable_ops(&self, from: Op, way: Direction) -> Vec<Op> {
        let (body, spine) = (self.cells.alias.body, self.cells.spine);
        let mut found = Vec::new();
        let mut seen: HashSet<Op> = HashSet::new();
        let mut open: Vec<(Option<Region>, Option<Op>)> =
            vec![(body.parent(from), way.next(body, from))];
        while let Some((region, at)) = open.pop() {
            let mut next = at;
            while let Some(op) = next {
                if self.remaining.contains(&op) || !seen.insert(op) {
                    break;
                }
                if spine.is_structural(op) && !body.op_regions(op).is_empty() {
                    let inner = body.op_regions(op).iter();
                    open.extend(inner.map(|r| (Some(*r), way.first(body, *r))));
                    if matches!(body.kind(op), OpKind::For { .. }) {
                        open.push((body.parent(op), way.next(body, op)));
                    }
                    break;
                }
                self.add_with_nested(op, &mut found);
                next = way.next(body, op);
            }
            if next.is_none() {
                open.extend(
                    region
                        .map(|region| self.region_successors(region, way))
                        .into_iter()
                        .flatten(),
                );
            }
        }
        found
    }

    /// Adds an op and its nested ops.
    fn add_with_nested(&self, op: Op, found: &mut Vec<Op>) {
        let body = self.cells.alias.body;
        found.push(op);
        for &region in body.op_regions(op) {
            found.extend(body.walk(region));
        }
    }

    /// The places that control reaches from the end of a skeleton region.
    fn region_successors(
        &self,
        region: Region,
        way: Direction,
    ) -> Vec<(Option<Region>, Option<Op>)> {
        let (body, spine) = (self.cells.alias.body, self.cells.spine);
        let Some(owner) = body.owner(region).filter(|_| region != spine.root) else {
            return Vec::new();
        };
        let mut places = vec![(body.parent(owner), way.next(body, owner))];
        if body.kind(owner).is_loop() {
            places.push((Some(region), way.first(body, region)));
        }
        places
    }

    /// The ops executed by threads that diverge from a path to the barrier: the other arms of divergent ops,
    /// and the code after the divergent ops.
    fn ops_bypassing(&self, barrier: Op) -> Vec<Op> {
        let (body, spine) = (self.cells.alias.body, self.cells.spine);
        let mut found = Vec::new();
        let mut at = barrier;
        while let Some(region) = body.parent(at).filter(|region| *region != spine.root) {
            let Some(owner) = body.owner(region) else {
                break;
            };
            if self.cells.levels.is_divergent(owner) {
                let others = body.op_regions(owner).iter().filter(|r| **r != region);
                found.extend(others.flat_map(|r| body.walk(*r)));
                found.extend(self.reachable_ops(owner, Direction::Forward));
            }
            at = owner;
        }
        found
    }
}
