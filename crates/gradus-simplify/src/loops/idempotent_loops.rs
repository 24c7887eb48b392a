//! Executes loops with idempotent iterations once.
//!
//! Some programs repeat work only to increase the execution time; a mini-application simulates expensive
//! materials in such a way. A derivative would save the state of each repetition and reverse all repetitions.
//!
//! An iteration that starts in the state of the previous iteration computes equal results. The conditions
//! are:
//!
//! 1. The loop has no carried values and does not use its index.
//! 2. Each iteration is determined by the values that it reads. Allowed are arithmetic, plain loads and
//!    stores, local allocations and known pure calls. An iteration always terminates and does not depend on
//!    the addresses of its allocations.
//! 3. No iteration writes a location that a load reads, or the same iteration writes the location before the
//!    load ([`LoopLoad`]).
//!
//! By condition 3 no data flows between iterations. All iterations write equal values to equal locations,
//! hence the first iteration leaves the final state.
//!
//! Runs only on bodies to differentiate; an executed program keeps its execution time.

use gradus_analysis::{AccessKind, Alias, Clobbers, ExitClobbers, Object, PassContext};
use gradus_edit::is_pure;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MemoryFn};
use gradus_ir::{Body, Builder, CastOp, IntPredicate, Op, OpKind, Region, Unit, Value};
use std::collections::HashMap;

/// Maximum number of ops in the loop.
const OPS_MAX: usize = 4000;
/// Maximum number of ops compared for an address.
const COMPARED_OPS_MAX: usize = 64;

/// Reduces such loops to one iteration; returns whether there were any.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    let mut loops: Vec<Op> = body.walk(body.root()).collect();
    loops.retain(|lp| may_be_idempotent(unit, body, *lp));
    if loops.is_empty() {
        return false;
    }
    let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
    let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
    loops.retain(|lp| is_idempotent(unit, body, facts, &clobbers, *lp));
    for &lp in &loops {
        reduce_to_one_iteration(unit, body, lp);
    }
    !loops.is_empty()
}

/// Returns whether a loop has no carried values, does not use its index, and contains only supported ops.
fn may_be_idempotent(unit: &Unit, body: &Body, lp: Op) -> bool {
    if !matches!(body.kind(lp), OpKind::For { .. }) || body.is_independent(lp) {
        return false;
    }
    let inside = body.op_regions(lp)[0];
    let alone = body.operand_count(lp) == 1 && !body.has_uses(body.region_params(inside)[0]);
    let several = body.as_int(unit, body.operand(lp, 0)).is_none_or(|n| n > 1);
    alone
        && several
        && body.walk(inside).nth(OPS_MAX).is_none()
        && body.walk(inside).all(|op| is_supported(unit, body, op))
}

fn is_supported(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
        OpKind::If | OpKind::Switch(_) | OpKind::For { .. } | OpKind::Loop { .. } => true,
        OpKind::Yield | OpKind::Repeat => true,
        // The address of an allocation may differ between iterations.
        OpKind::Cast(CastOp::PtrToInt) | OpKind::Freeze => false,
        OpKind::ICmp(predicate) => {
            let pointers = unit.types.is_ptr(body.ty(body.operand(op, 0)));
            let equal = matches!(predicate, IntPredicate::Eq | IntPredicate::Ne);
            !pointers || equal && body.is_null(unit, body.operand(op, 1))
        }
        OpKind::Call(info) if info.bundles.is_empty() => {
            let known = unit.known_callee(body, op);
            match known {
                Some(ExternalFn::Math(_) | ExternalFn::Integer(_)) => true,
                Some(ExternalFn::Marker(CompilerIntrinsic::NoaliasScopeDecl)) => true,
                Some(ExternalFn::Memory(function)) => {
                    let fresh = function.allocation().is_some_and(|a| a.replaces.is_none());
                    fresh || matches!(function, MemoryFn::Free | MemoryFn::MemsetIntrinsic)
                }
                _ => false,
            }
        }
        _ => is_pure(unit, body, op),
    }
}

/// Returns whether no data flows between iterations through memory.
fn is_idempotent(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    clobbers: &Clobbers,
    lp: Op,
) -> bool {
    let (alias, inside) = (clobbers.alias, body.op_regions(lp)[0]);
    let own = |id| match alias.points_to.object(id) {
        Object::Stack(op) | Object::Heap(op) => alias.nest.contains(lp, op),
        _ => false,
    };
    !clobbers.may_exit_in(lp)
        && body.walk(inside).all(|op| {
            let mut accesses = facts.effects.of_op(unit, body, op).into_iter();
            is_arithmetic_call(unit, body, op)
                || accesses.all(|access| match access.kind {
                    AccessKind::Write => true,
                    // Allocators read which blocks are allocated.
                    AccessKind::Read => {
                        access.ptr().is_none() && !matches!(body.kind(op), OpKind::Load(_))
                            || !clobbers.clobbered_in(&access, lp)
                            || LoopLoad::of(unit, body, lp, op)
                                .is_some_and(|r| r.is_written_before(lp))
                    }
                    AccessKind::Free | AccessKind::Lifetime => {
                        let objects = alias.objects(&access).unwrap_or_default();
                        let ours = objects.iter().all(|t| own(t.object) && !t.old);
                        ours && !objects.is_empty()
                    }
                })
        })
}

/// Returns whether an op only computes a number; a possible write of `errno` is ignored.
fn is_arithmetic_call(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    matches!(known, Some(ExternalFn::Math(_) | ExternalFn::Integer(_)))
}

/// Load in a loop iteration, with the conditions that hold at the load.
struct LoopLoad<'a> {
    unit: &'a Unit,
    body: &'a Body,
    load: Op,
    /// Enclosing ops up to the iteration, the innermost first.
    around: Vec<Op>,
    /// Known truth values of conditions.
    known: HashMap<Value, bool>,
}

/// Pairs of loop indices: index of a writing loop, index of the reading loop of equal trip count.
type IndexPairs = Vec<(Value, Value)>;

impl<'a> LoopLoad<'a> {
    fn of(unit: &'a Unit, body: &'a Body, lp: Op, load: Op) -> Option<LoopLoad<'a>> {
        if !matches!(body.kind(load), OpKind::Load(_)) {
            return None;
        }
        let around = body.ancestors(load).take_while(|op| *op != lp);
        let mut reader = LoopLoad {
            unit,
            body,
            load,
            around: around.collect(),
            known: HashMap::new(),
        };
        let mut at = load;
        for op in reader.around.clone() {
            match body.kind(op) {
                OpKind::If => {
                    let taken = body.parent(at) == Some(body.op_regions(op)[0]);
                    reader.known.insert(body.operand(op, 0), taken);
                }
                OpKind::For { .. } => reader.learn_from_trip_count(body.operand(op, 0)),
                _ => {}
            }
            at = op;
        }
        Some(reader)
    }

    /// Derives conditions from an enclosing loop that executes, hence has a nonzero trip count.
    fn learn_from_trip_count(&mut self, mut trips: Value) {
        while let Some((condition, [yes, no])) = self.as_select(trips) {
            let none = |value: Value| self.body.as_int(self.unit, value) == Some(0);
            let taken = match (self.known.get(&condition), none(yes), none(no)) {
                (Some(known), ..) => *known,
                (None, false, true) => true,
                (None, true, false) => false,
                _ => return,
            };
            self.known.insert(condition, taken);
            trips = if taken { yes } else { no };
        }
    }

    fn as_select(&self, value: Value) -> Option<(Value, [Value; 2])> {
        let op = self.body.def_op(value)?;
        let operand = |number| self.body.operand(op, number);
        let chooses = matches!(self.body.kind(op), OpKind::Select);
        chooses.then(|| (operand(0), [operand(1), operand(2)]))
    }

    /// Returns a trip count with selects resolved by the conditions known at the load.
    fn resolve_selects(&self, mut value: Value) -> Value {
        while let Some((condition, [yes, no])) = self.as_select(value) {
            match self.known.get(&condition) {
                Some(true) => value = yes,
                Some(false) => value = no,
                None => break,
            }
        }
        value
    }

    /// Returns whether the iteration of `lp` that contains the load certainly writes the location before.
    fn is_written_before(&self, lp: Op) -> bool {
        let inside = self.body.op_regions(lp)[0];
        let mut fors: Vec<Op> = Vec::new();
        let mut at = self.load;
        for level in 0..=self.around.len() {
            let Some(region) = self.body.parent(at) else {
                return false;
            };
            let before = self.body.ops_in(region).take_while(|op| *op != at);
            let before: Vec<Op> = before.collect();
            let mut pairs = IndexPairs::new();
            if before
                .iter()
                .any(|op| self.must_write(*op, &fors, &mut pairs))
            {
                return true;
            }
            if region == inside {
                return false;
            }
            at = self.around[level];
            if matches!(self.body.kind(at), OpKind::For { .. }) {
                fors.insert(0, at);
            }
        }
        false
    }

    /// Returns whether `op` certainly writes the location that the load reads. `fors` are the loops that
    /// enclose the load but not `op`, the outermost first.
    fn must_write(&self, op: Op, fors: &[Op], pairs: &mut IndexPairs) -> bool {
        let body = self.body;
        let regions = body.op_regions(op);
        match body.kind(op) {
            OpKind::Store(_) => {
                let bytes = |value| self.unit.layout.store_bytes(self.unit, body.ty(value));
                bytes(body.operand(op, 0)) >= bytes(body.result(self.load))
                    && self.are_equal(body.operand(op, 1), body.operand(self.load, 0), pairs)
            }
            OpKind::If => match self.known.get(&body.operand(op, 0)) {
                Some(taken) => self.any_must_write(regions[usize::from(!taken)], fors, pairs),
                None => regions
                    .iter()
                    .all(|arm| self.any_must_write(*arm, fors, pairs)),
            },
            OpKind::For { .. } => {
                let Some((&other, inner)) = fors.split_first() else {
                    return false;
                };
                let trips = [op, other].map(|lp| self.resolve_selects(body.operand(lp, 0)));
                let index = |lp: Op| body.region_params(body.op_regions(lp)[0])[0];
                if !self.are_equal(trips[0], trips[1], pairs) {
                    return false;
                }
                pairs.push((index(op), index(other)));
                let found = self.any_must_write(regions[0], inner, pairs);
                pairs.pop();
                found
            }
            _ => false,
        }
    }

    fn any_must_write(&self, region: Region, fors: &[Op], pairs: &mut IndexPairs) -> bool {
        let mut ops = self.body.ops_in(region);
        ops.any(|op| self.must_write(op, fors, pairs))
    }

    /// Returns whether two values are equal within an iteration, assuming equality of paired indices. A value
    /// used by both sides is equal, because its definition lies only in loops that enclose both uses.
    fn are_equal(&self, one: Value, other: Value, pairs: &IndexPairs) -> bool {
        let body = self.body;
        let mut work = vec![(one, other)];
        for _ in 0..COMPARED_OPS_MAX {
            let Some(pair) = work.pop() else {
                return true;
            };
            let constants = (body.as_const(pair.0), body.as_const(pair.1));
            if pair.0 == pair.1 || pairs.contains(&pair) {
                continue;
            }
            if constants.0.is_some() || constants.1.is_some() {
                if constants.0 != constants.1 {
                    return false;
                }
                continue;
            }
            let (Some(a), Some(b)) = (body.def_op(pair.0), body.def_op(pair.1)) else {
                return false;
            };
            let alike = body.kind(a) == body.kind(b)
                && !matches!(body.kind(a), OpKind::Freeze)
                && is_pure(self.unit, body, a)
                && body.op_regions(a).is_empty()
                && body.results(a).len() == 1
                && body.operand_count(a) == body.operand_count(b);
            if !alike {
                return false;
            }
            work.extend(std::iter::zip(body.operands(a), body.operands(b)));
        }
        false
    }
}

/// Replaces a loop by one iteration, guarded by a nonzero trip count.
fn reduce_to_one_iteration(unit: &mut Unit, body: &mut Body, lp: Op) {
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[lp].loc;
    b.set_insertion_before(lp);
    let trips = b.body.operand(lp, 0);
    let ty = b.body.ty(trips);
    let none = b.int(ty, 0);
    let any = b.icmp(IntPredicate::Ne, trips, none);
    let (_, yes, no) = b.if_(any, &[]);
    let place = b.set_insertion_end(no);
    b.yield_(&[]);
    b.restore_insertion_point(place);
    let inside = b.body.op_regions(lp)[0];
    b.body.move_ops(inside, yes);
    b.body.erase(lp);
}
