//! Loop fusion of adjacent parallel loops whose accesses conflict in equal iterations only.
//!
//! ```text
//! par.for i < n { t[i] = 2 * a[i] }; par.for i < n { o[i] = t[i] + b[i] }
//!     →   par.for i < n { t[i] = 2 * a[i]; o[i] = t[i] + b[i] }
//! ```
//!
//! Fusion removes the barrier between the loops. Values passed through memory are then forwarded in registers
//! by later simplification, and often the intermediate array becomes dead.
//!
//! Legality (Kennedy and McKinley, Typed Fusion, 1993; race freedom is an additional source of facts):
//! 1. both loops have equal trip counts, and neither uses the other's reductions;
//! 2. the ops between the loops may run before both loops;
//! 3. no iteration exits abnormally: by an exit, an exception or an infinite loop;
//! 4. no access of one loop conflicts with a write of the other, except in equal iterations ([`same_iteration`]).
//!
//! Profitability: the loops share memory, and neither prevents vectorisation of the other. Branches with equal
//! conditions around the loops are merged first ([`merge_branches_around_loops`]).
//!
//! Place: before lowering, in code compiled to run, and never before differentiation. The derivative of a fused
//! loop would accumulate into neighbours that are read in two separate loops. Functions instrumented by
//! ThreadSanitizer are not fused, because the sanitizer should see the program's own loops.

mod same_iteration;

use crate::opt::fusion::same_iteration::LoopPair;
use crate::opt::tsan_atomics::is_tsan_instrumented;
use gradus_analysis::{
    AccessKind, Alias, AliasOptions, Analyses, BaseValue, Clobbers, Effects, ExitClobbers,
    MemoryAccess,
};
use gradus_edit::is_pure;
use gradus_ir::externals::ExternalFn;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Flags, FuncId, LocId, Op, OpKind, ReduceOp, Region, Unit, Value};
use std::collections::HashSet;

/// The maximum number of ops in a fused loop.
const FUSED_OPS_MAX: usize = 400;
/// The maximum number of arrays in a fused loop: with more, caches and prefetchers lose more than fusion saves.
const ARRAYS_MAX: usize = 12;
/// The maximum number of access pairs to compare.
const ACCESS_PAIRS_MAX: usize = 1 << 13;

/// Two fused loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusedLoops {
    /// The function of the loops.
    pub func: FuncId,
    /// The location of the first loop.
    pub first: Option<LocId>,
    /// The location of the second loop.
    pub second: Option<LocId>,
}

/// Merges successive branches on an equal condition that contain parallel loops; returns the changed functions.
/// Simplification merges duplicate code of the branches before [`fuse_parallel_loops`] runs.
pub fn merge_branches_around_loops(unit: &mut Unit, functions: &[FuncId]) -> Vec<FuncId> {
    let mut changed = Vec::new();
    for &func in functions {
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut joined = 0;
        while let Some((first, second)) = mergeable_branches(unit, &body) {
            merge_branches(&mut body, first, second);
            joined += 1;
        }
        unit.functions[func].body = Some(body);
        if joined > 0 {
            changed.push(func);
        }
    }
    changed
}

/// Returns two branches on an equal condition that contain parallel loops, with only pure ops between.
fn mergeable_branches(unit: &Unit, body: &Body) -> Option<(Op, Op)> {
    let regions: Vec<Region> = body.regions().collect();
    for region in regions {
        let mut last: Option<Op> = None;
        for op in body.ops_in(region) {
            let pure = is_pure(unit, body, op) && body.op_regions(op).is_empty();
            if is_branch_with_parallel_loop(body, op) {
                match last.filter(|last| body.operand(*last, 0) == body.operand(op, 0)) {
                    Some(first) => return Some((first, op)),
                    None => last = Some(op),
                }
            } else if !pure && !is_planted(Mutant::BranchMergeAcrossWrites) {
                last = None;
            }
        }
    }
    None
}

/// Returns true for a branch without results whose first arm contains a parallel loop and whose second arm is
/// empty.
fn is_branch_with_parallel_loop(body: &Body, op: Op) -> bool {
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

/// Moves the code of the first branch in front of the code of the second.
fn merge_branches(body: &mut Body, first: Op, second: Op) {
    let (from, into) = (body.op_regions(first)[0], body.op_regions(second)[0]);
    prepend_region(body, from, into);
    body.erase(first);
}

/// Moves the ops of `from`, without the terminator, in front of the ops of `into`.
fn prepend_region(body: &mut Body, from: Region, into: Region) {
    if let Some(end) = body.last(from) {
        body.erase(end);
    }
    body.move_ops(into, from);
    body.move_ops(from, into);
}

/// Fuses parallel loops of `functions`; returns the fused pairs in program order.
pub fn fuse_parallel_loops(
    unit: &mut Unit,
    analyses: &mut Analyses,
    functions: &[FuncId],
    options: &AliasOptions,
) -> Vec<FusedLoops> {
    if !options.race_free {
        return Vec::new();
    }
    let effects = analyses.effects(unit, functions);
    let mut found = Vec::new();
    for &func in functions {
        if is_tsan_instrumented(unit, func) {
            continue;
        }
        let Some(mut body) = unit.functions[func].body.take() else {
            continue;
        };
        let mut refused = HashSet::new();
        loop {
            let pairs = adjacent_loops(unit, &body, &refused);
            if pairs.is_empty() {
                break;
            }
            let fitting =
                FusionAnalysis::fusible_pairs(unit, func, &body, &effects, options, &pairs);
            refused.extend(pairs.into_iter().filter(|pair| !fitting.contains(pair)));
            for (first, second) in fitting {
                found.push(FusedLoops {
                    func,
                    first: body.ops[first].loc,
                    second: body.ops[second].loc,
                });
                merge_loops(&mut body, first, second);
            }
        }
        unit.functions[func].body = Some(body);
    }
    found
}

/// Returns adjacent parallel loops with equal trip counts, disjoint pairs, without the `refused` pairs.
fn adjacent_loops(unit: &Unit, body: &Body, refused: &HashSet<(Op, Op)>) -> Vec<(Op, Op)> {
    let mut pairs = Vec::new();
    for region in body.regions() {
        let mut last: Option<Op> = None;
        for op in body.ops_in(region) {
            if is_candidate(body, op) {
                let fits = |first: &Op| {
                    has_equal_shape(body, *first, op) && !refused.contains(&(*first, op))
                };
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

/// Returns true for a race-free parallel loop without nested parallelism.
fn is_candidate(body: &Body, op: Op) -> bool {
    let parallel = |inner: Op| inner != op && body.kind(inner).is_parallel();
    matches!(body.kind(op), OpKind::ParFor { .. })
        && !body.ops[op].flags.has(Flags::ALLOWS_EQUAL_WRITES)
        && body.parent(op).is_some()
        && !body.walk(body.op_regions(op)[0]).any(parallel)
}

/// Returns true if both loops have equal trip counts and chunking, and built-in reductions only. A loop with a
/// reduction forks at a fixed size, because its bits must not depend on awake workers: reductions and plain
/// loops do not mix.
fn has_equal_shape(body: &Body, first: Op, second: Op) -> bool {
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

/// The analyses of a body before its transformation.
struct FusionAnalysis<'a> {
    alias: &'a Alias<'a>,
    clobbers: &'a Clobbers<'a>,
    effects: &'a Effects,
}

impl FusionAnalysis<'_> {
    /// Returns the pairs that may be fused.
    fn fusible_pairs(
        unit: &Unit,
        func: FuncId,
        body: &Body,
        effects: &Effects,
        options: &AliasOptions,
        pairs: &[(Op, Op)],
    ) -> Vec<(Op, Op)> {
        let alias = Alias::new(unit, Some(func), body, effects, options);
        let clobbers = Clobbers::of(&alias, effects, ExitClobbers::default());
        let find = FusionAnalysis {
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
        ops(first) + ops(second) <= FUSED_OPS_MAX
            && !self.clobbers.may_exit_in(first)
            && !self.clobbers.may_exit_in(second)
            && self.may_sink_to(first, second)
            && self.is_vectorizable(first) == self.is_vectorizable(second)
            && self.conflict_in_equal_iterations(first, second)
    }

    /// Returns true if the first loop may move to the position of the second. The ops between and the second
    /// loop use no result of the first loop. The ops between read no location that the first loop writes.
    fn may_sink_to(&self, first: Op, second: Op) -> bool {
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
                .any(|read| self.clobbers.clobbered_in(&read, first));
            if changes || is_needed_at(op) {
                return false;
            }
            at = body.next(op);
        }
        at == Some(second) && !is_needed_at(second)
    }

    /// Returns true if LLVM can vectorise the loop's iterations, judged by the kinds of its ops.
    fn is_vectorizable(&self, lp: Op) -> bool {
        let (unit, body) = (self.alias.unit, self.alias.body);
        body.walk(body.op_regions(lp)[0])
            .all(|op| match body.kind(op) {
                OpKind::Call(_) => matches!(
                    unit.known_callee(body, op),
                    Some(ExternalFn::Integer(_) | ExternalFn::Marker(_))
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

    /// Returns true if conflicting accesses of the loops conflict in equal iterations only, the loops share
    /// memory, and the number of arrays is small.
    fn conflict_in_equal_iterations(&self, first: Op, second: Op) -> bool {
        let (one, other) = (self.accesses(first), self.accesses(second));
        let (starts, others) = (self.base_addresses(&one), self.base_addresses(&other));
        let shares = starts.iter().any(|start| others.contains(start));
        let arrays: HashSet<BaseValue> = starts.union(&others).copied().collect();
        if !shares || arrays.len() > ARRAYS_MAX || one.len() * other.len() > ACCESS_PAIRS_MAX {
            return false;
        }
        let frame = self.alias.nest.enclosing_loop(first);
        let iterations = LoopPair {
            alias: self.alias,
            clobbers: self.clobbers,
            first,
            second,
        };
        let is_apart = |(a, b): (&MemoryAccess, &MemoryAccess)| {
            !a.is_clobber() && !b.is_clobber()
                || !self.alias.may_alias_within(a, b, frame)
                || iterations.conflict_only_in_same_iteration(a, b)
                || is_planted(Mutant::LoopFusionUnchecked)
        };
        let mut pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
        pairs.all(is_apart)
    }

    /// Returns the base addresses of the accesses, without deallocations.
    fn base_addresses(&self, accesses: &[MemoryAccess]) -> HashSet<BaseValue> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let plain = accesses.iter().filter(|a| a.kind != AccessKind::Free);
        let pointers = plain.filter_map(|a| a.ptr());
        let root = |ptr: Value| self.alias.forms.of_pointer(unit, body, ptr).root;
        pointers.map(root).collect()
    }
}

/// Moves the code of the first loop in front of the code of the second.
fn merge_loops(body: &mut Body, first: Op, second: Op) {
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
    prepend_region(body, from, into);
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
