//! Hoists uniform loops out of divergent branches: loops with the same result for all threads run once.
//!
//! ```text
//! spmd grid { spmd block { if t < n { s = Σ x[i]; y[t] = x[t] / s } } }
//!     →   any = some thread has t < n; s = any ? Σ x[i] : 0; spmd grid { spmd block { if t < n { y[t] = x[t] / s } } }
//! ```
//!
//! A loop leaves the grid if no value of a block is used, else the block. Some thread runs the loop in the
//! original program, and the loop may therefore trap or read memory that is unmapped if `n` is zero. A
//! search over the threads decides whether any thread reaches the loop, and mostly ends at the first thread.
//! Branch conditions are computed from ranks and from memory that the kernel does not write.
//!
//! The loop reads memory that the kernel does not write, or does not write before the loop; a concurrent
//! write by another thread would be a race.
//!
//! Place: before barrier removal and fission. Loops in uniform branches need no guard; [`crate::blocks::uniformity`]
//! makes such loops run once.

use crate::blocks::is_cooperative;
use crate::blocks::kernel_reads::KernelReads;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::uniformity::Uniformity;
use crate::fission::segment::Test;
use crate::fission::thread_loops::zext_to_i64;
use crate::{Options, PassOutcome};
use gradus_analysis::PassContext;
use gradus_edit::{ValueMap, clone_op_within, is_pure, to_index_type};
use gradus_ir::{
    BinaryOp, Body, Builder, IntPredicate, Op, OpKind, Region, SpmdKind, TypeId, Unit, Value,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Limit of ops in the slice of a loop and a condition.
const MAX_SLICE_OPS: usize = 256;

/// Runs the pass.
pub(crate) fn run(
    unit: &mut Unit,
    body: &mut Body,
    facts: &PassContext,
    options: &Options,
) -> PassOutcome {
    if !options.uniform_guards {
        return PassOutcome::default();
    }
    for kind in [SpmdKind::Grid, SpmdKind::Block] {
        let is_home = |op: &Op| {
            matches!(body.kind(*op), OpKind::Spmd { kind: own, .. } if *own == kind)
                && !is_cooperative(body, *op)
        };
        let homes: Vec<Op> = body.walk(body.root()).filter(is_home).collect();
        if homes.is_empty() {
            continue;
        }
        let reads = KernelReads::of(unit, body, facts, &homes);
        let mut groups = Vec::new();
        for home in homes {
            let find = HoistFinder::new(unit, body, facts, options, &reads, home);
            groups.extend(find.groups());
        }
        let mut gone = HashSet::new();
        for group in &groups {
            hoist_group(unit, body, group, &mut gone);
        }
        let gone: Vec<Op> = groups
            .iter()
            .flat_map(|group| &group.loops)
            .copied()
            .collect();
        for op in gone.into_iter().rev() {
            body.erase(op);
        }
        if !groups.is_empty() {
            gradus_edit::remove_dead_ops(unit, body);
        }
    }
    PassOutcome::default()
}

/// Loops hoisted out of a region, and the code required for the hoisting.
#[derive(Debug)]
struct HoistGroup {
    /// The `spmd` whose ranks the loops do not use.
    home: Op,
    /// The insertion point.
    before: Op,
    /// Path from the insertion point to the loops, outermost first: a branch, the number of its region, and
    /// the ops that compute its condition.
    path: Vec<(Op, usize, Vec<Op>)>,
    /// The loops, in program order.
    loops: Vec<Op>,
    /// The loops and all ops of their slices, by position in the program.
    ops: BTreeMap<usize, Op>,
}

/// Search for uniform loops in an `spmd`.
struct HoistFinder<'a> {
    unit: &'a Unit,
    body: &'a Body,
    reads: &'a KernelReads,
    race_free: bool,
    home: Op,
    /// Skeleton and uniformity of a block that can be split.
    block: Option<(Skeleton, Uniformity)>,
    /// Position of each op in the program.
    positions: HashMap<Op, usize>,
    /// Position of the first op that may not return.
    first_may_not_return: usize,
    /// Ranks of the `spmd` and of nested blocks.
    ranks: HashSet<Value>,
    sizes: HashSet<Value>,
}

impl<'a> HoistFinder<'a> {
    fn new(
        unit: &'a Unit,
        body: &'a Body,
        facts: &'a PassContext<'a>,
        options: &Options,
        reads: &'a KernelReads,
        home: Op,
    ) -> HoistFinder<'a> {
        let region = body.op_regions(home)[0];
        let places: HashMap<Op, usize> = body.walk(region).zip(0..).collect();
        let leaves = body
            .walk(region)
            .find(|op| may_not_continue(unit, body, facts, *op));
        let mut find = HoistFinder {
            unit,
            body,
            reads,
            race_free: options.race_free,
            home,
            block: None,
            first_may_not_return: leaves.map_or(usize::MAX, |op| places[&op]),
            positions: places,
            ranks: HashSet::new(),
            sizes: HashSet::new(),
        };
        for spmd in std::iter::once(home).chain(inner_blocks(body, home)) {
            let params = body.region_params(body.op_regions(spmd)[0]);
            let (ranks, sizes) = params.split_at(body.operand_count(spmd));
            find.ranks.extend(ranks);
            find.sizes.extend(sizes);
        }
        if find.is_block()
            && let Ok(spine) = Skeleton::of(unit, body, home, &[])
        {
            let levels = Uniformity::of(unit, body, &spine, reads);
            find.block = Some((spine, levels));
        }
        find
    }

    fn is_block(&self) -> bool {
        matches!(
            self.body.kind(self.home),
            OpKind::Spmd {
                kind: SpmdKind::Block,
                ..
            }
        )
    }

    /// The hoistable loops, grouped by region.
    fn groups(&self) -> Vec<HoistGroup> {
        let mut found: Vec<HoistGroup> = Vec::new();
        let mut by_region: HashMap<Region, usize> = HashMap::new();
        let root = self.body.op_regions(self.home)[0];
        for op in self.body.walk(root).filter(|op| self.is_costly(*op)) {
            let Some(region) = self.body.parent(op) else {
                continue;
            };
            if let Some(&index) = by_region.get(&region) {
                if let Some(ops) = self.op_with_slice(op) {
                    found[index].loops.push(op);
                    found[index].ops.extend(ops);
                }
            } else if let Some(group) = self.group(op) {
                by_region.insert(region, found.len());
                found.push(group);
            }
        }
        found
    }

    /// Returns whether an op is worth a search over the threads: a loop, or a call of a function other than
    /// a known library function. The op has results and precedes every op that may not return.
    fn is_costly(&self, op: Op) -> bool {
        let kind = match self.body.kind(op) {
            OpKind::For { .. } | OpKind::Loop { .. } => true,
            OpKind::Call(_) => {
                let func = self.unit.callee(self.body, op);
                func.is_some_and(|func| self.unit.known(func).is_none())
            }
            _ => false,
        };
        kind && !self.body.results(op).is_empty() && self.positions[&op] < self.first_may_not_return
    }

    fn group(&self, op: Op) -> Option<HoistGroup> {
        let body = self.body;
        let mut ways = Vec::new();
        let mut at = op;
        let mut before = op;
        loop {
            let region = body.parent(at)?;
            let around = body.owner(region)?;
            if around == self.home {
                break;
            }
            match body.kind(around) {
                OpKind::If | OpKind::Switch(_) => {
                    let index = body.op_regions(around).iter().position(|r| *r == region)?;
                    let condition = body.operand(around, 0);
                    let ops = self.slice(vec![condition], true)?;
                    ways.push((around, index, ops.into_values().collect()));
                    before = around;
                }
                OpKind::Spmd {
                    kind: SpmdKind::Block,
                    ..
                } => {}
                _ => return None,
            }
            at = around;
        }
        ways.reverse();
        let gains = match &self.block {
            None => !self.is_block(),
            Some((spine, _)) => self.is_reached_by_several(spine, &ways),
        };
        let gains = gains && !ways.is_empty();
        let extents = inner_blocks(body, self.home).flat_map(|block| body.operands(block));
        let fixed = extents
            .into_iter()
            .all(|extent| self.is_available_outside(extent));
        Some(HoistGroup {
            home: self.home,
            before: if self.is_block() { before } else { self.home },
            path: ways,
            loops: vec![op],
            ops: self.op_with_slice(op).filter(|_| gains && fixed)?,
        })
    }

    /// Returns whether several threads of a block may reach the loops, without a barrier on the path.
    fn is_reached_by_several(&self, spine: &Skeleton, ways: &[(Op, usize, Vec<Op>)]) -> bool {
        let own = |v: Value| self.slice(vec![v], false).is_none();
        let one = |op: Op, index: usize| {
            let test = self.body.def_op(self.body.operand(op, 0));
            let equal = test.filter(|test| match self.body.kind(*test) {
                OpKind::ICmp(IntPredicate::Eq) => index == 0,
                OpKind::ICmp(IntPredicate::Ne) => index == 1,
                _ => false,
            });
            equal.is_some_and(|t| own(self.body.operand(t, 0)) != own(self.body.operand(t, 1)))
        };
        let together =
            |(op, index, _): &(Op, usize, Vec<Op>)| !one(*op, *index) && !spine.is_structural(*op);
        ways.iter().all(together)
    }

    /// The op and its backward slice inside the `spmd`.
    fn op_with_slice(&self, op: Op) -> Option<BTreeMap<usize, Op>> {
        if !self.is_position_independent(op, false) {
            return None;
        }
        let mut ops = self.slice(used_values(self.body, op), false)?;
        ops.insert(self.positions[&op], op);
        Some(ops)
    }

    /// The backward slice of `open` inside the `spmd`; with `own`, values may depend on ranks. `None` if the
    /// slice is too long, has side effects, or depends on other values.
    fn slice(&self, mut open: Vec<Value>, own: bool) -> Option<BTreeMap<usize, Op>> {
        let mut ops = BTreeMap::new();
        while let Some(value) = open.pop() {
            let here = self.sizes.contains(&value) || own && self.ranks.contains(&value);
            if here || self.is_available_outside(value) {
                continue;
            }
            let op = self.body.def_op(value)?;
            if ops.insert(self.positions[&op], op).is_some() {
                continue;
            }
            if ops.len() > MAX_SLICE_OPS || !self.is_position_independent(op, own) {
                return None;
            }
            open.extend(used_values(self.body, op));
        }
        Some(ops)
    }

    /// Returns whether a value is available at the insertion point.
    fn is_available_outside(&self, value: Value) -> bool {
        let body = self.body;
        let root = body.op_regions(self.home)[0];
        let Some(region) = body.region_of(value) else {
            return true;
        };
        let common = self.block.as_ref().is_some_and(|(_, levels)| {
            region == root && !levels.is_per_thread_value(value) && !self.sizes.contains(&value)
        });
        common || !body.is_inside(region, root)
    }

    /// Returns whether an op, with nested ops, only computes values and yields the same result at any place.
    fn is_position_independent(&self, op: Op, own: bool) -> bool {
        let body = self.body;
        let quiet = |op: Op| match body.kind(op) {
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
            OpKind::Yield | OpKind::Repeat => true,
            OpKind::Load(_) => {
                self.reads.steady.contains(&op) || !own && self.race_free && self.is_early(op)
            }
            OpKind::Call(_) => self.reads.steady.contains(&op) || is_pure(self.unit, body, op),
            _ => is_pure(self.unit, body, op),
        };
        quiet(op) && body.op_regions(op).iter().all(|r| body.walk(*r).all(quiet))
    }

    /// Returns whether no thread may write the loaded memory before a uniform load. In a block, only the
    /// segment of the load counts.
    fn is_early(&self, load: Op) -> bool {
        let Some(writes) = self.reads.ops_ordered_with(load) else {
            return false;
        };
        let segment = self
            .block
            .as_ref()
            .map(|(spine, _)| (spine, spine.segment_of(load)));
        writes.iter().all(|write| match segment {
            None => self.positions[write] > self.positions[&load],
            Some((spine, own)) => spine.segment_of(*write) != own,
        })
    }
}

/// The blocks nested in a grid.
fn inner_blocks(body: &Body, home: Op) -> impl Iterator<Item = Op> + '_ {
    let is_block = |op: &Op| {
        matches!(
            body.kind(*op),
            OpKind::Spmd {
                kind: SpmdKind::Block,
                ..
            }
        )
    };
    body.walk(body.op_regions(home)[0]).filter(is_block)
}

/// Returns whether control may not continue after an op.
fn may_not_continue(unit: &Unit, body: &Body, facts: &PassContext, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let effects = facts.effects.of_call(unit, body, op);
            effects.may_throw || effects.may_not_return
        }
        OpKind::Unreachable | OpKind::Resume | OpKind::Foreign(_) => true,
        _ => false,
    }
}

/// The values defined outside of an op and used by the op or its nested ops.
fn used_values(body: &Body, op: Op) -> Vec<Value> {
    let mut all = vec![op];
    all.extend(body.op_regions(op).iter().flat_map(|r| body.walk(*r)));
    let own = |value: &Value| {
        let region = body.region_of(*value);
        region.is_none_or(|r| {
            body.op_regions(op)
                .iter()
                .any(|own| body.is_inside(r, *own))
        })
    };
    let operands = all.iter().flat_map(|op| body.operands(*op));
    operands.filter(|value| !own(value)).collect()
}

/// Hoists the loops of a group, guarded by the search over the threads.
fn hoist_group(unit: &mut Unit, body: &mut Body, group: &HoistGroup, gone: &mut HashSet<Op>) {
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[group.loops[0]].loc;
    b.set_insertion_before(group.before);
    let any = emit_any_thread(b, group);
    let given: Vec<Value> = group
        .loops
        .iter()
        .flat_map(|op| b.body.results(*op).to_vec())
        .collect();
    let types: Vec<TypeId> = given.iter().map(|v| b.body.ty(*v)).collect();
    let (choice, yes, no) = b.if_(any, &types);
    b.set_insertion_end(yes);
    let mut map = map_sizes(b.body, group.home);
    for &op in group.ops.values().filter(|op| !gone.contains(*op)) {
        clone_op_within(op, b, &mut map);
    }
    let results: Vec<Value> = given.iter().map(|v| map.get_or_same(*v)).collect();
    b.yield_(&results);
    b.set_insertion_end(no);
    let zeros: Vec<Value> = types.iter().map(|ty| b.zero(*ty)).collect();
    b.yield_(&zeros);
    let results = b.body.results(choice).to_vec();
    for (&old, new) in given.iter().zip(results) {
        b.body.replace_uses(old, new);
    }
    gone.extend(&group.loops);
}

/// Maps the size parameters of an `spmd` and its nested blocks to the extents.
fn map_sizes(body: &Body, home: Op) -> ValueMap {
    let mut map = ValueMap::new();
    for spmd in std::iter::once(home).chain(inner_blocks(body, home)) {
        let params = body.region_params(body.op_regions(spmd)[0]);
        let extents: Vec<Value> = body.operands(spmd).collect();
        for (&size, extent) in params[extents.len()..].iter().zip(extents) {
            map.set(size, extent);
        }
    }
    map
}

/// Emits a search for a thread that reaches the loops, innermost rank first. Ranks that the conditions do
/// not use are not enumerated.
fn emit_any_thread(b: &mut Builder<'_>, group: &HoistGroup) -> Value {
    let spmds: Vec<Op> = inner_blocks(b.body, group.home)
        .chain([group.home])
        .collect();
    let ranks: Vec<(Value, Value)> = spmds
        .iter()
        .flat_map(|&spmd| {
            let params = b.body.region_params(b.body.op_regions(spmd)[0]);
            params
                .iter()
                .copied()
                .zip(b.body.operands(spmd))
                .collect::<Vec<_>>()
        })
        .collect();
    let asked = condition_values(b.body, group);
    let (mut total, mut turns) = (b.i64(1), b.i64(1));
    for &(rank, extent) in &ranks {
        let extent = zext_to_i64(b, extent);
        total = b.mul(total, extent);
        if asked.contains(&rank) {
            turns = b.mul(turns, extent);
        }
    }
    let none = b.i64(0);
    let truth = b.unit.types.int(1);
    let some = b.icmp(IntPredicate::Ne, total, none);
    let (choice, yes, no) = b.if_(some, &[truth]);
    let place = b.set_insertion_end(yes);
    let (search, turn) = b.loop_(&[none], &[truth]);
    b.set_insertion_end(turn);
    let number = b.body.region_params(turn)[0];
    let mut map = map_sizes(b.body, group.home);
    let mut left = number;
    for (rank, extent) in ranks.into_iter().filter(|(r, _)| asked.contains(r)) {
        let extent = zext_to_i64(b, extent);
        let own = b.binary(BinaryOp::URem, left, extent);
        let ty = b.body.ty(rank);
        let own = to_index_type(b, own, ty);
        map.set(rank, own);
        left = b.binary(BinaryOp::UDiv, left, extent);
    }
    let comes = emit_reaches_loops(b, group, &mut map);
    let one = b.i64(1);
    let next = b.add(number, one);
    let more = b.icmp(IntPredicate::Ult, next, turns);
    let always = b.bool(true);
    let not = b.binary(BinaryOp::Xor, comes, always);
    let again = b.binary(BinaryOp::And, not, more);
    b.repeat(again, &[next], &[comes]);
    b.set_insertion_end(yes);
    let found = b.body.result(search);
    b.yield_(&[found]);
    b.set_insertion_end(no);
    let never = b.bool(false);
    b.yield_(&[never]);
    b.restore_insertion_point(place);
    b.body.result(choice)
}

/// The values used by the path conditions, and the conditions.
fn condition_values(body: &Body, group: &HoistGroup) -> HashSet<Value> {
    let from = |(branch, _, ops): &(Op, usize, Vec<Op>)| {
        let mut values: Vec<Value> = ops.iter().flat_map(|op| used_values(body, *op)).collect();
        values.push(body.operand(*branch, 0));
        values
    };
    group.path.iter().flat_map(from).collect()
}

/// Emits whether the thread with the ranks in `map` reaches the loops: the thread takes every branch of the
/// path.
fn emit_reaches_loops(b: &mut Builder<'_>, group: &HoistGroup, map: &mut ValueMap) -> Value {
    let truth = b.unit.types.int(1);
    let mut open = Vec::new();
    let mut made = HashSet::new();
    let mut given = b.bool(true);
    for (number, (op, index, ops)) in group.path.iter().enumerate() {
        for &op in ops.iter().filter(|op| made.insert(**op)) {
            clone_op_within(op, b, map);
        }
        let condition = map.get_or_same(b.body.operand(*op, 0));
        given = Test::of_arm(b.body, *op, condition, *index).value(b, &ValueMap::new());
        if number + 1 < group.path.len() {
            let (choice, yes, no) = b.if_(given, &[truth]);
            open.push((choice, no, b.set_insertion_end(yes)));
        }
    }
    for (choice, no, place) in open.into_iter().rev() {
        b.yield_(&[given]);
        b.set_insertion_end(no);
        let not = b.bool(false);
        b.yield_(&[not]);
        b.restore_insertion_point(place);
        given = b.body.result(choice);
    }
    given
}
