//! Loops that give the same to all threads, but stand where only some of them come, are run once.
//!
//! ```text
//! spmd grid { spmd block { if t < n { s = Σ x[i]; y[t] = x[t] / s } } }
//!     →   any = some thread has t < n; s = any ? Σ x[i] : 0; spmd grid { spmd block { if t < n { y[t] = x[t] / s } } }
//! ```
//!
//! They leave the grid where nothing of a block is needed, the block otherwise. As some thread does run them, they
//! may do there what would be wrong if none did: read where nothing can be read if `n` is zero. Whether one does is
//! found by asking thread after thread, most often the first one alone: conditions are computed from ranks and from
//! memory that the kernel does not write.
//!
//! What they read is not written in the kernel; or not before them, and not by others while they read, as that
//! would be a race.
//!
//! Place: before all other passes. Loops in common branches need none of this: they leave by themselves.

use crate::levels::Levels;
use crate::memory::Reads;
use crate::segment::Test;
use crate::spine::Spine;
use crate::threads::wide;
use crate::{Facts, Findings, Options, turns};
use gradus_edit::{ValueMap, clone_op_within, is_pure};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, Region, SpmdKind, TypeId, Unit,
    Value,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many ops outside of it a loop and a condition may need.
const OPS: usize = 256;

/// Runs the pass.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &Facts, options: &Options) -> Findings {
    if !options.leave_guards {
        return Findings::default();
    }
    for kind in [SpmdKind::Grid, SpmdKind::Block] {
        let is_home = |op: &Op| {
            matches!(body.kind(*op), OpKind::Spmd { kind: own, .. } if *own == kind)
                && !turns::are_taken(body, *op)
        };
        let homes: Vec<Op> = body.walk(body.root()).filter(is_home).collect();
        if homes.is_empty() {
            continue;
        }
        let reads = Reads::of(unit, body, facts, &homes);
        let mut groups = Vec::new();
        for home in homes {
            let find = Find::new(unit, body, facts, options, &reads, home);
            groups.extend(find.groups());
        }
        let mut gone = HashSet::new();
        for group in &groups {
            take_out(unit, body, group, &mut gone);
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
            gradus_edit::sweep_dead(unit, body);
        }
    }
    Findings::default()
}

/// Loops that leave one region, and what it takes.
#[derive(Debug)]
struct Group {
    /// The `spmd` whose ranks do not matter to them.
    home: Op,
    /// The op before which they go.
    before: Op,
    /// What leads to them from there, the outermost first: a branch, which of its regions, and the ops that give
    /// its condition.
    ways: Vec<(Op, usize, Vec<Op>)>,
    /// In the order of the program.
    loops: Vec<Op>,
    /// The loops and all that they need, by their place in the program.
    ops: BTreeMap<usize, Op>,
}

/// What looks for loops in one `spmd`.
struct Find<'a> {
    unit: &'a Unit,
    body: &'a Body,
    reads: &'a Reads,
    race_free: bool,
    home: Op,
    /// Of a block that can be cut: where, and what its threads have in common.
    block: Option<(Spine, Levels)>,
    /// By op: its place in the program.
    places: HashMap<Op, usize>,
    /// The place of the first op that may not come back.
    leaves: usize,
    /// The ranks of the `spmd` and of those inside of it.
    ranks: HashSet<Value>,
    sizes: HashSet<Value>,
}

impl<'a> Find<'a> {
    fn new(
        unit: &'a Unit,
        body: &'a Body,
        facts: &'a Facts<'a>,
        options: &Options,
        reads: &'a Reads,
        home: Op,
    ) -> Find<'a> {
        let region = body.op_regions(home)[0];
        let places: HashMap<Op, usize> = body.walk(region).zip(0..).collect();
        let leaves = body
            .walk(region)
            .find(|op| may_leave(unit, body, facts, *op));
        let mut find = Find {
            unit,
            body,
            reads,
            race_free: options.race_free,
            home,
            block: None,
            leaves: leaves.map_or(usize::MAX, |op| places[&op]),
            places,
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
            && let Ok(spine) = Spine::of(unit, body, home, &[])
        {
            let levels = Levels::of(unit, body, &spine, reads);
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

    /// What can leave, by the region that it is in.
    fn groups(&self) -> Vec<Group> {
        let mut found: Vec<Group> = Vec::new();
        let mut by_region: HashMap<Region, usize> = HashMap::new();
        let root = self.body.op_regions(self.home)[0];
        for op in self.body.walk(root).filter(|op| self.is_costly(*op)) {
            let Some(region) = self.body.parent(op) else {
                continue;
            };
            if let Some(&index) = by_region.get(&region) {
                if let Some(ops) = self.needed_by(op) {
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

    /// Whether an op is worth the question who comes to it.
    fn is_costly(&self, op: Op) -> bool {
        let kind = match self.body.kind(op) {
            OpKind::For { .. } | OpKind::Loop { .. } => true,
            OpKind::Call(_) => {
                let func = self.unit.callee(self.body, op);
                func.is_some_and(|func| self.unit.known(func).is_none())
            }
            _ => false,
        };
        kind && !self.body.results(op).is_empty() && self.places[&op] < self.leaves
    }

    fn group(&self, op: Op) -> Option<Group> {
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
            Some((spine, _)) => self.come_together(spine, &ways),
        };
        let gains = gains && !ways.is_empty();
        let extents = inner_blocks(body, self.home).flat_map(|block| body.operands(block));
        let fixed = extents.into_iter().all(|extent| self.is_outside(extent));
        Some(Group {
            home: self.home,
            before: if self.is_block() { before } else { self.home },
            ways,
            loops: vec![op],
            ops: self.needed_by(op).filter(|_| gains && fixed)?,
        })
    }

    /// Whether more than one thread of a block may come there, and all of them without waiting on their way.
    fn come_together(&self, spine: &Spine, ways: &[(Op, usize, Vec<Op>)]) -> bool {
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

    /// The op and all that it needs from inside of the `spmd`.
    fn needed_by(&self, op: Op) -> Option<BTreeMap<usize, Op>> {
        if !self.is_quiet(op, false) {
            return None;
        }
        let mut ops = self.slice(used(self.body, op), false)?;
        ops.insert(self.places[&op], op);
        Some(ops)
    }

    /// The ops inside of the `spmd` that give these values, which may be of one thread (`own`) or must be of all.
    fn slice(&self, mut open: Vec<Value>, own: bool) -> Option<BTreeMap<usize, Op>> {
        let mut ops = BTreeMap::new();
        while let Some(value) = open.pop() {
            let here = self.sizes.contains(&value) || own && self.ranks.contains(&value);
            if here || self.is_outside(value) {
                continue;
            }
            let op = self.body.def_op(value)?;
            if ops.insert(self.places[&op], op).is_some() {
                continue;
            }
            if ops.len() > OPS || !self.is_quiet(op, own) {
                return None;
            }
            open.extend(used(self.body, op));
        }
        Some(ops)
    }

    /// Whether a value is there where loops go.
    fn is_outside(&self, value: Value) -> bool {
        let body = self.body;
        let root = body.op_regions(self.home)[0];
        let Some(region) = body.region_of(value) else {
            return true;
        };
        let common = self.block.as_ref().is_some_and(|(_, levels)| {
            region == root && !levels.is_own(value) && !self.sizes.contains(&value)
        });
        common || !body.is_inside(region, root)
    }

    /// Whether an op with all that is in it gives values and does nothing else, wherever it stands.
    fn is_quiet(&self, op: Op, own: bool) -> bool {
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

    /// Whether what all threads read at one address is read before any of them may write there. In a block:
    /// between the same two barriers.
    fn is_early(&self, load: Op) -> bool {
        let Some(writes) = self.reads.behind(load) else {
            return false;
        };
        let segment = self
            .block
            .as_ref()
            .map(|(spine, _)| (spine, spine.segment_of(load)));
        writes.iter().all(|write| match segment {
            None => self.places[write] > self.places[&load],
            Some((spine, own)) => spine.segment_of(*write) != own,
        })
    }
}

/// The blocks in a grid.
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

/// Whether a thread that comes to an op may not come to what is behind it.
fn may_leave(unit: &Unit, body: &Body, facts: &Facts, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let effects = facts.effects.of_call(unit, body, op);
            effects.may_throw || effects.may_not_return
        }
        OpKind::Unreachable | OpKind::Resume | OpKind::Foreign(_) => true,
        _ => false,
    }
}

/// The values from outside that an op uses, with all that is in it.
fn used(body: &Body, op: Op) -> Vec<Value> {
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

/// Runs the loops of a group before what they were in, if any thread comes to them.
fn take_out(unit: &mut Unit, body: &mut Body, group: &Group, gone: &mut HashSet<Op>) {
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[group.loops[0]].loc;
    b.at_op(group.before);
    let any = any_thread(b, group);
    let given: Vec<Value> = group
        .loops
        .iter()
        .flat_map(|op| b.body.results(*op).to_vec())
        .collect();
    let types: Vec<TypeId> = given.iter().map(|v| b.body.ty(*v)).collect();
    let (choice, yes, no) = b.if_(any, &types);
    b.at_end(yes);
    let mut map = sizes(b.body, group.home);
    for &op in group.ops.values().filter(|op| !gone.contains(*op)) {
        clone_op_within(op, b, &mut map);
    }
    let results: Vec<Value> = given.iter().map(|v| map.get_or_same(*v)).collect();
    b.yield_(&results);
    b.at_end(no);
    let zeros: Vec<Value> = types.iter().map(|ty| b.zero(*ty)).collect();
    b.yield_(&zeros);
    let results = b.body.results(choice).to_vec();
    for (&old, new) in given.iter().zip(results) {
        b.body.replace_uses(old, new);
    }
    gone.extend(&group.loops);
}

/// The sizes of an `spmd` and of those in it, by their extents.
fn sizes(body: &Body, home: Op) -> ValueMap {
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

/// Whether any thread comes to the loops: asks one after the other, the innermost rank first. Of threads that the
/// conditions do not tell apart, one.
fn any_thread(b: &mut Builder<'_>, group: &Group) -> Value {
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
    let asked = asked(b.body, group);
    let (mut total, mut turns) = (b.i64(1), b.i64(1));
    for &(rank, extent) in &ranks {
        let extent = wide(b, extent);
        total = b.mul(total, extent);
        if asked.contains(&rank) {
            turns = b.mul(turns, extent);
        }
    }
    let none = b.i64(0);
    let truth = b.unit.types.int(1);
    let some = b.icmp(IntPredicate::Ne, total, none);
    let (choice, yes, no) = b.if_(some, &[truth]);
    let place = b.at_end(yes);
    let (search, turn) = b.loop_(&[none], &[truth]);
    b.at_end(turn);
    let number = b.body.region_params(turn)[0];
    let mut map = sizes(b.body, group.home);
    let mut left = number;
    for (rank, extent) in ranks.into_iter().filter(|(r, _)| asked.contains(r)) {
        let extent = wide(b, extent);
        let own = b.binary(BinaryOp::URem, left, extent);
        let ty = b.body.ty(rank);
        let own = narrow(b, own, ty);
        map.set(rank, own);
        left = b.binary(BinaryOp::UDiv, left, extent);
    }
    let comes = comes(b, group, &mut map);
    let one = b.i64(1);
    let next = b.add(number, one);
    let more = b.icmp(IntPredicate::Ult, next, turns);
    let always = b.bool(true);
    let not = b.binary(BinaryOp::Xor, comes, always);
    let again = b.binary(BinaryOp::And, not, more);
    b.repeat(again, &[next], &[comes]);
    b.at_end(yes);
    let found = b.body.result(search);
    b.yield_(&[found]);
    b.at_end(no);
    let never = b.bool(false);
    b.yield_(&[never]);
    b.restore(place);
    b.body.result(choice)
}

/// What the conditions on the way to the loops are computed from, and they themselves.
fn asked(body: &Body, group: &Group) -> HashSet<Value> {
    let from = |(branch, _, ops): &(Op, usize, Vec<Op>)| {
        let mut values: Vec<Value> = ops.iter().flat_map(|op| used(body, *op)).collect();
        values.push(body.operand(*branch, 0));
        values
    };
    group.ways.iter().flat_map(from).collect()
}

/// A 64-bit integer as one of the type.
fn narrow(b: &mut Builder<'_>, value: Value, ty: TypeId) -> Value {
    match b.unit.types.int_bits(ty) {
        Some(bits) if bits > 64 => b.cast(CastOp::ZExt, value, ty),
        _ => b.cast(CastOp::Trunc, value, ty),
    }
}

/// Whether the thread whose ranks are in the map comes to the loops: it takes every branch that leads there.
fn comes(b: &mut Builder<'_>, group: &Group, map: &mut ValueMap) -> Value {
    let truth = b.unit.types.int(1);
    let mut open = Vec::new();
    let mut made = HashSet::new();
    let mut given = b.bool(true);
    for (number, (op, index, ops)) in group.ways.iter().enumerate() {
        for &op in ops.iter().filter(|op| made.insert(**op)) {
            clone_op_within(op, b, map);
        }
        let condition = map.get_or_same(b.body.operand(*op, 0));
        given = Test::way(b.body, *op, condition, *index).value(b, &ValueMap::new());
        if number + 1 < group.ways.len() {
            let (choice, yes, no) = b.if_(given, &[truth]);
            open.push((choice, no, b.at_end(yes)));
        }
    }
    for (choice, no, place) in open.into_iter().rev() {
        b.yield_(&[given]);
        b.at_end(no);
        let not = b.bool(false);
        b.yield_(&[not]);
        b.restore(place);
        given = b.body.result(choice);
    }
    given
}
