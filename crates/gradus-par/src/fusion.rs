//! Parallel loops one after the other become one, where an iteration of the second meets nothing but the same
//! iteration of the first.
//!
//! ```text
//! par.for i < n { t[i] = 2 * a[i] }; par.for i < n { o[i] = t[i] + b[i] }
//!     →   par.for i < n { t[i] = 2 * a[i]; o[i] = t[i] + b[i] }
//! ```
//!
//! What was a wait of all threads between two loops goes, and what the first leaves for the second is at hand: the
//! simplifications that follow take it from a register, and often the array between goes with it.
//!
//! Legal (Kennedy and McKinley, Typed Fusion, 1993, with the freedom from races as a further source of facts) where
//! 1. both count the same, and neither uses what the other one reduces;
//! 2. what stands between may as well stand before both;
//! 3. no iteration leaves for good: by an exit, an exception, or a loop without an end;
//! 4. no access of one loop meets a write of the other, except in the same iteration ([`same`]).
//!
//! It is done where the loops share memory, and neither keeps the other from being vectorised. Loops under the same
//! condition come together first ([`join`]).
//!
//! Place: before lowering, in code that is run; a derivative adds in a fused loop for reads of neighbours that lay in
//! two loops. Not where ThreadSanitizer watches: it should see the program's own loops.

mod same;

use crate::watched::is_watched;
use gradus_analysis::{
    AccessKind, AfterEnd, Alias, AliasOptions, Clobbers, Closure, Effects, MemoryAccess, Root,
};
use gradus_edit::is_pure;
use gradus_ir::known::Known;
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Body, Flags, FuncId, LocId, Op, OpKind, ReduceOp, Region, Unit, Value};
use same::Iterations;
use std::collections::HashSet;

/// A fused loop has at most so many ops.
const OPS: usize = 400;
/// It goes through at most so many arrays: beyond, caches and prefetchers lose more than the loops save.
const ARRAYS: usize = 12;
/// Pairs of accesses that are compared at most.
const PAIRS: usize = 1 << 13;

/// Two loops that became one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fused {
    /// The function that they stand in.
    pub func: FuncId,
    /// Where the first one stands.
    pub first: Option<LocId>,
    /// Where the second one stands.
    pub second: Option<LocId>,
}

/// Brings parallel loops together that stand under the same condition, one after the other; says which functions it
/// changed. What the conditions held twice is for simplification to merge, before [`fuse`].
pub fn join(unit: &mut Unit, functions: &[FuncId]) -> Vec<FuncId> {
    let mut changed = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut joined = 0;
        while let Some((first, second)) = branches(unit, &body) {
            one_branch(&mut body, first, second);
            joined += 1;
        }
        unit.functions[func].body = Some(body);
        if joined > 0 {
            changed.push(func);
        }
    }
    changed
}

/// Two branches on one condition with parallel loops in them, with nothing between them that needs the first.
fn branches(unit: &Unit, body: &Body) -> Option<(Op, Op)> {
    let regions: Vec<Region> = body.regions().collect();
    for region in regions {
        let mut last: Option<Op> = None;
        for op in body.ops_in(region) {
            let pure = is_pure(unit, body, op) && body.op_regions(op).is_empty();
            if holds_loop(body, op) {
                match last.filter(|last| body.operand(*last, 0) == body.operand(op, 0)) {
                    Some(first) => return Some((first, op)),
                    None => last = Some(op),
                }
            } else if !pure && !planted(Mutant::BranchesPassWrites) {
                last = None;
            }
        }
    }
    None
}

/// Whether an op is a branch with a parallel loop on one side, nothing on the other, and no results.
fn holds_loop(body: &Body, op: Op) -> bool {
    let [yes, no] = body.op_regions(op) else {
        return false;
    };
    let is_loop = |op: Op| matches!(body.kind(op), OpKind::ParFor { .. });
    let ends = |region: Region| {
        let last = body.last(region);
        last.is_some_and(|op| matches!(body.kind(op), OpKind::Yield))
    };
    matches!(body.kind(op), OpKind::If)
        && body.results(op).is_empty()
        && body.ops_in(*yes).any(is_loop)
        && ends(*yes)
        && ends(*no)
        && body.ops_in(*no).count() == 1
}

/// Puts the code of the first branch in front of that of the second.
fn one_branch(body: &mut Body, first: Op, second: Op) {
    let (from, into) = (body.op_regions(first)[0], body.op_regions(second)[0]);
    put_before(body, from, into);
    body.erase(first);
}

/// Moves the code of a region, but for its end, in front of that of another.
fn put_before(body: &mut Body, from: Region, into: Region) {
    if let Some(end) = body.last(from) {
        body.erase(end);
    }
    body.move_ops(into, from);
    body.move_ops(from, into);
}

/// Fuses parallel loops of functions; gives those that became one, in the order of their code.
pub fn fuse(unit: &mut Unit, functions: &[FuncId], options: &AliasOptions) -> Vec<Fused> {
    if !options.race_free {
        return Vec::new();
    }
    let effects = Effects::of(unit, &Closure::of(unit, functions));
    let mut found = Vec::new();
    for &func in functions {
        if is_watched(unit, func) {
            continue;
        }
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut refused = HashSet::new();
        loop {
            let pairs = neighbours(unit, &body, &refused);
            if pairs.is_empty() {
                break;
            }
            let fitting = Find::among(unit, func, &body, &effects, options, &pairs);
            refused.extend(pairs.into_iter().filter(|pair| !fitting.contains(pair)));
            for (first, second) in fitting {
                found.push(Fused {
                    func,
                    first: body.ops[first].loc,
                    second: body.ops[second].loc,
                });
                one_loop(&mut body, first, second);
            }
        }
        unit.functions[func].body = Some(body);
    }
    found
}

/// Parallel loops that follow each other and count the same, no loop in two pairs, without those that were looked at.
fn neighbours(unit: &Unit, body: &Body, refused: &HashSet<(Op, Op)>) -> Vec<(Op, Op)> {
    let mut pairs = Vec::new();
    for region in body.regions() {
        let mut last: Option<Op> = None;
        for op in body.ops_in(region) {
            if is_candidate(body, op) {
                let fits =
                    |first: &Op| same_shape(body, *first, op) && !refused.contains(&(*first, op));
                last = match last.filter(fits) {
                    Some(first) => {
                        pairs.push((first, op));
                        None
                    }
                    None => Some(op),
                };
            } else if !is_pure(unit, body, op) && !is_plain_load(body, op) {
                last = None;
            }
        }
    }
    pairs
}

fn is_plain_load(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::Load(access) if access.is_plain())
}

/// Whether an op is a parallel loop whose iterations are free of races and hold no parallelism of their own.
fn is_candidate(body: &Body, op: Op) -> bool {
    let parallel = |inner: Op| inner != op && body.kind(inner).is_parallel();
    matches!(body.kind(op), OpKind::ParFor { .. })
        && !body.ops[op].flags.has(Flags::SHARING)
        && body.parent(op).is_some()
        && !body.walk(body.op_regions(op)[0]).any(parallel)
}

/// Whether two parallel loops count the same, may be cut alike, and combine by known operations. A loop that reduces
/// forks later than others, as its bits must not depend on who is awake: the two do not mix.
fn same_shape(body: &Body, first: Op, second: Op) -> bool {
    let shape = |op: Op| match body.kind(op) {
        OpKind::ParFor {
            dims,
            grain,
            reductions,
        } => {
            let extents: Vec<Value> = body.operands(op).take(*dims as usize).collect();
            let custom = reductions.contains(&ReduceOp::Custom);
            let flags = body.ops[op].flags;
            (!custom).then_some((*dims, *grain, reductions.is_empty(), extents, flags))
        }
        _ => None,
    };
    shape(first).is_some_and(|one| shape(second) == Some(one))
}

/// What is known of a body before it is edited.
struct Find<'a> {
    alias: &'a Alias<'a>,
    clobbers: &'a Clobbers<'a>,
    effects: &'a Effects,
}

impl Find<'_> {
    /// The pairs that may become one loop.
    fn among(
        unit: &Unit,
        func: FuncId,
        body: &Body,
        effects: &Effects,
        options: &AliasOptions,
        pairs: &[(Op, Op)],
    ) -> Vec<(Op, Op)> {
        let alias = Alias::new(unit, Some(func), body, effects, options);
        let clobbers = Clobbers::of(&alias, effects, AfterEnd::default());
        let find = Find {
            alias: &alias,
            clobbers: &clobbers,
            effects,
        };
        let fits = |pair: &&(Op, Op)| find.may_fuse(pair.0, pair.1);
        pairs.iter().filter(fits).copied().collect()
    }

    fn may_fuse(&self, first: Op, second: Op) -> bool {
        let body = self.alias.body;
        let ops = |lp: Op| body.walk(body.op_regions(lp)[0]).count();
        ops(first) + ops(second) <= OPS
            && !self.clobbers.may_stop_in(first)
            && !self.clobbers.may_stop_in(second)
            && self.may_wait(first, second)
            && self.is_straight(first) == self.is_straight(second)
            && self.keep_apart(first, second)
    }

    /// Whether the first loop may run where the second one stands: what is between neither needs it nor reads what it
    /// writes, and neither does the second one need its results.
    fn may_wait(&self, first: Op, second: Op) -> bool {
        let body = self.alias.body;
        let is_needed_at = |op: Op| {
            let inside = |used: Op| used == op || self.alias.nest.contains(op, used);
            let results = body.results(first).iter();
            results
                .flat_map(|r| body.uses(*r))
                .any(|used| inside(used.op))
        };
        let mut at = body.next(first);
        while let Some(op) = at.filter(|op| *op != second) {
            let reads = self.clobbers.reads_of(op).iter();
            let changes = reads
                .copied()
                .any(|read| self.clobbers.destroyed_in(&read, first));
            if changes || is_needed_at(op) {
                return false;
            }
            at = body.next(op);
        }
        at == Some(second) && !is_needed_at(second)
    }

    /// Whether LLVM can make vectors of a loop's iterations, by the form of its code.
    fn is_straight(&self, lp: Op) -> bool {
        let (unit, body) = (self.alias.unit, self.alias.body);
        body.walk(body.op_regions(lp)[0])
            .all(|op| match body.kind(op) {
                OpKind::Call(_) => matches!(
                    unit.callee(body, op).and_then(|func| unit.known(func)),
                    Some(Known::Integer(_) | Known::Marker(_))
                ),
                OpKind::Yield => true,
                _ => body.op_regions(op).is_empty(),
            })
    }

    fn accesses(&self, lp: Op) -> Vec<MemoryAccess> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let ops = body.walk(body.op_regions(lp)[0]);
        ops.flat_map(|op| self.effects.of_op(unit, body, op))
            .collect()
    }

    /// Whether accesses of the loops, one of which writes, meet in the same iteration only; and the loops share memory,
    /// but not too many arrays.
    fn keep_apart(&self, first: Op, second: Op) -> bool {
        let (one, other) = (self.accesses(first), self.accesses(second));
        let (starts, others) = (self.starts(&one), self.starts(&other));
        let shares = starts.iter().any(|start| others.contains(start));
        let arrays: HashSet<Root> = starts.union(&others).copied().collect();
        if !shares || arrays.len() > ARRAYS || one.len() * other.len() > PAIRS {
            return false;
        }
        let frame = self.alias.nest.enclosing_loop(first);
        let iterations = Iterations {
            alias: self.alias,
            clobbers: self.clobbers,
            first,
            second,
        };
        let is_apart = |(a, b): (&MemoryAccess, &MemoryAccess)| {
            !a.destroys() && !b.destroys()
                || !self.alias.may_alias_within(a, b, frame)
                || iterations.meet_as_one(a, b)
                || planted(Mutant::LoopsMeetUnasked)
        };
        let mut pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
        pairs.all(is_apart)
    }

    /// Where the memory begins that plain accesses go through.
    fn starts(&self, accesses: &[MemoryAccess]) -> HashSet<Root> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let plain = accesses.iter().filter(|a| a.kind != AccessKind::Free);
        let pointers = plain.filter_map(|a| a.ptr());
        let root = |ptr: Value| self.alias.forms.of_pointer(unit, body, ptr).root;
        pointers.map(root).collect()
    }
}

/// Puts the code of the first loop in front of that of the second.
fn one_loop(body: &mut Body, first: Op, second: Op) {
    let (from, into) = (body.op_regions(first)[0], body.op_regions(second)[0]);
    let OpKind::ParFor {
        dims, reductions, ..
    } = body.kind(first).clone()
    else {
        unreachable!("only parallel loops are fused");
    };
    let dims = dims as usize;
    for (old, new) in body
        .region_params(from)
        .to_vec()
        .into_iter()
        .zip(body.region_params(into).to_vec())
    {
        body.replace_uses(old, new);
    }
    let given = body.last(from).zip(body.last(into));
    if let Some((given, end)) = given {
        for value in body.operands(given).collect::<Vec<Value>>() {
            body.add_operand(end, value);
        }
    }
    put_before(body, from, into);
    for value in body.operands(first).skip(dims).collect::<Vec<Value>>() {
        body.add_operand(second, value);
    }
    for old in body.results(first).to_vec() {
        let new = body.add_result(second, body.ty(old));
        body.replace_uses(old, new);
    }
    if let OpKind::ParFor {
        reductions: all, ..
    } = &mut body.ops[second].kind
    {
        *all = all.iter().chain(&reductions).copied().collect();
    }
    body.ops[second].loc = body.ops[first].loc;
    body.erase(first);
}

#[cfg(test)]
mod tests;
