//! Dependence test of two parallel loops: do accesses conflict in equal iterations only?
//!
//! Two proofs:
//! - *Affine*: both addresses have an equal base, a constant offset and an equal byte stride per iteration; the
//!   bytes touched by the two accesses lie within one stride.
//! - *Structural*: both addresses are the identical expression of the loop indices, possibly through index
//!   arrays and rows, and one access is a write executed in every iteration. Loops are race-free, hence no two
//!   iterations write one location, and an iteration of the other loop touches no location written by a
//!   different iteration. An address independent of the index would be written by all iterations: a race, and
//!   no fusion.

use gradus_analysis::{Alias, Clobbers, MemoryAccess, affine};
use gradus_edit::is_pure;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Definition, Op, OpKind, Value};

/// The maximum number of address ops to compare.
const STEPS: usize = 64;

/// Two parallel loops with equal trip counts.
pub(super) struct LoopPair<'a> {
    pub(super) alias: &'a Alias<'a>,
    pub(super) clobbers: &'a Clobbers<'a>,
    pub(super) first: Op,
    pub(super) second: Op,
}

impl LoopPair<'_> {
    /// Returns true if access `a` of the first loop and `b` of the second, which may alias, conflict in equal
    /// iterations only.
    pub(super) fn conflict_only_in_same_iteration(
        &self,
        a: &MemoryAccess,
        b: &MemoryAccess,
    ) -> bool {
        let (Some(p), Some(q)) = (a.ptr(), b.ptr()) else {
            return false;
        };
        let plain = is_plain(self.alias.body, a.op) && is_plain(self.alias.body, b.op);
        plain && (self.is_within_one_stride(a, p, b, q) || self.is_identical_expression(a, p, b, q))
    }

    fn is_within_one_stride(&self, a: &MemoryAccess, p: Value, b: &MemoryAccess, q: Value) -> bool {
        let form = |ptr, lp| affine(self.alias, ptr, Some(lp)).filter(|form| form.exact);
        let (Some(one), Some(other)) = (form(p, self.first), form(q, self.second)) else {
            return false;
        };
        let step = |form: &gradus_analysis::Affine, lp: Op| {
            let own = form.terms.iter().all(|term| term.lp == lp);
            form.constant_step(lp).filter(|_| own)
        };
        let ends = |access: &MemoryAccess, constant: i64| {
            let size = i64::try_from(access.size?).ok()?;
            let begin = constant.checked_add(access.offset)?;
            Some((begin, begin.checked_add(size)?))
        };
        let (Some(x), Some(y)) = (ends(a, one.constant), ends(b, other.constant)) else {
            return false;
        };
        let length = x.1.max(y.1).checked_sub(x.0.min(y.0));
        let step = step(&one, self.first).filter(|s| step(&other, self.second) == Some(*s));
        let dims = matches!(
            self.alias.body.kind(self.first),
            OpKind::ParFor { dims: 1, .. }
        );
        let fits =
            |step: i64| length.is_some_and(|length| step.unsigned_abs() >= length.unsigned_abs());
        dims && one.start == other.start
            && one.invariant == other.invariant
            && step.is_some_and(fits)
    }

    fn is_identical_expression(
        &self,
        a: &MemoryAccess,
        p: Value,
        b: &MemoryAccess,
        q: Value,
    ) -> bool {
        let mut pairs = StructuralMatch {
            iterations: self,
            loops: Vec::new(),
            steps: 0,
            has_parallel_index: false,
        };
        a.offset == b.offset
            && a.size.is_some()
            && a.size == b.size
            && pairs.is_equal(p, q)
            && pairs.has_parallel_index
            && (a.is_clobber() && pairs.is_always_executed(a.op, self.first)
                || b.is_clobber() && pairs.is_always_executed(b.op, self.second))
    }
}

fn is_plain(body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        _ => false,
    }
}

/// Pairs of serial loops, inside of the two parallel loops, with equal trip counts.
struct StructuralMatch<'a> {
    iterations: &'a LoopPair<'a>,
    loops: Vec<(Op, Op)>,
    steps: usize,
    /// True if the expressions contain the parallel index: a uniform address is private to no iteration.
    has_parallel_index: bool,
}

impl StructuralMatch<'_> {
    /// Returns true if `x` in an iteration of the first loop equals `y` in the equal iteration of the second.
    /// Indices of inner loops are equal if the inner loops have equal trip counts: both indices take the
    /// identical values within an iteration.
    fn is_equal(&mut self, x: Value, y: Value) -> bool {
        let LoopPair {
            alias,
            first,
            second,
            ..
        } = *self.iterations;
        let (unit, body) = (alias.unit, alias.body);
        if x == y || body.as_const(x).is_some() && body.as_const(x) == body.as_const(y) {
            return true;
        }
        self.steps += 1;
        if self.steps > STEPS || body.ty(x) != body.ty(y) {
            return false;
        }
        match (body.values[x].def, body.values[y].def) {
            (Definition::Param(r, i), Definition::Param(s, j)) if i == j => {
                match (body.owner(r), body.owner(s)) {
                    (Some(p), Some(q)) if (p, q) == (first, second) => {
                        self.has_parallel_index = true;
                        true
                    }
                    (Some(p), Some(q)) => i == 0 && self.has_equal_trip_counts(p, q),
                    _ => false,
                }
            }
            (Definition::Result(p, m), Definition::Result(q, n)) => {
                // Two freezes of an undefined value may differ.
                let settled = !matches!(body.kind(p), OpKind::Freeze);
                m == n
                    && settled
                    && body.kind(p) == body.kind(q)
                    && (is_pure(unit, body, p) || self.reads_unmodified_memory(p, q))
                    && body.op_regions(p).is_empty()
                    && body.operand_count(p) == body.operand_count(q)
                    && (0..body.operand_count(p))
                        .all(|n| self.is_equal(body.operand(p, n), body.operand(q, n)))
            }
            _ => false,
        }
    }

    fn has_equal_trip_counts(&mut self, p: Op, q: Op) -> bool {
        let LoopPair {
            alias,
            first,
            second,
            ..
        } = *self.iterations;
        let known = self
            .loops
            .iter()
            .find(|(one, other)| *one == p || *other == q);
        if let Some(known) = known {
            return *known == (p, q);
        }
        let counts = |op: Op| matches!(alias.body.kind(op), OpKind::For { .. });
        let inside = alias.nest.contains(first, p) && alias.nest.contains(second, q);
        let same = counts(p)
            && counts(q)
            && inside
            && self.is_equal(alias.body.operand(p, 0), alias.body.operand(q, 0));
        if same {
            self.loops.push((p, q));
        }
        same
    }

    /// Returns true if both loads read memory that neither loop modifies.
    fn reads_unmodified_memory(&self, p: Op, q: Op) -> bool {
        let LoopPair {
            alias,
            clobbers,
            first,
            second,
        } = *self.iterations;
        let stays = |op: Op| {
            let reads = clobbers.reads_of(op).iter();
            let mut reads = reads.copied();
            reads.all(|read| {
                !clobbers.clobbered_in(&read, first) && !clobbers.clobbered_in(&read, second)
            })
        };
        let load =
            |op: Op| matches!(alias.body.kind(op), OpKind::Load(access) if access.is_plain());
        load(p) && load(q) && (stays(p) && stays(q) || is_planted(Mutant::FusedIndexArraysChange))
    }

    /// Returns true if every iteration of the parallel loop `lp` executes `op`, for all trips of the paired
    /// loops around `op`.
    fn is_always_executed(&self, op: Op, lp: Op) -> bool {
        let LoopPair { alias, .. } = *self.iterations;
        let (unit, body) = (alias.unit, alias.body);
        let mut at = op;
        while let Some(around) = body.parent_op(at) {
            if around == lp {
                return true;
            }
            let paired = self.loops.iter().any(|(p, q)| *p == around || *q == around);
            let runs = || {
                body.as_int(unit, body.operand(around, 0))
                    .is_some_and(|n| n != 0)
            };
            let all = matches!(body.kind(around), OpKind::For { .. }) && (paired || runs());
            if !all && !is_planted(Mutant::ConditionalWriteAsUnconditional) {
                return false;
            }
            at = around;
        }
        false
    }
}
