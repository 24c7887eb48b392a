//! Loop-invariant code motion (LICM).
//!
//! Visits ops in program order and moves each op before the outermost loop in which its operands are
//! invariant. An op may leave a loop
//!
//! - if the op may be executed speculatively: the op is defined for all operands and has bounded partial
//!   derivatives; or
//! - if every execution of the loop reaches the op: the loop has at least one iteration, and no earlier op of
//!   the iteration may exit. Divisions, loads from memory that the loop does not clobber, and calls that read
//!   only such memory may then leave, too.
//!
//! `errno` is a separate location: a call that sets `errno` may leave if the loop neither reads nor stores to
//! `errno`. The C standard requires no function to preserve `errno`.
//!
//! If a `for` may have zero iterations, costly ops move into an `if` on its trip count before the loop
//! (`guarded`). Costly ops are read-only loops, calls, and loads from loops that write other memory. A norm
//! inlined into the loop that divides by the norm is thus computed once. A triangular solver likewise loads
//! the row factor from the updated array once.
//!
//! All decisions refer to the unchanged body; a table records the future position of each moved op.

use crate::control::read_only_regions;
use crate::loops::entry_guard;
use crate::memory::errno;
use crate::memory::errno::{Errno, any_position_within};
use gradus_analysis::{
    AccessKind, Alias, Clobbers, ExitClobbers, MemoryAccess, MemoryRegion, PassContext,
};
use gradus_edit::{holds_at, is_dereferenceable, is_pure, is_speculatable};
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    BinaryOp, Body, Builder, CastOp, Entity, IntPredicate, Op, OpKind, Region, Unit, Value,
};
use std::collections::HashMap;

/// Maximum number of loop levels that an op moves.
const LEVELS_MAX: usize = 64;

/// Hoists invariant ops out of loops.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    let some_loop = body
        .walk(body.root())
        .any(|op| is_hoistable_from(body.kind(op)));
    if !some_loop {
        return false;
    }
    let zeros = trip_count_zeros(unit, body);
    let (plain, guarded) = {
        let alias = Alias::new(unit, facts.function, body, facts.effects, facts.alias);
        let clobbers = Clobbers::of(&alias, facts.effects, ExitClobbers::default());
        let mut plan = LicmPlan {
            unit,
            body,
            facts,
            clobbers: &clobbers,
            zeros,
            always_executes: always_executing_ops(unit, body, facts),
            errno: Errno::of(unit, body, facts, &alias),
            writes: write_positions(unit, body, facts, &alias),
            alias: &alias,
            moves: HashMap::new(),
            plain: Vec::new(),
            guarded: Vec::new(),
            moved_end: 0,
        };
        for op in body.walk(body.root()) {
            plan.visit_op(op);
        }
        (plan.plain, plan.guarded)
    };
    let changed = !plain.is_empty() || !guarded.is_empty();
    for (op, before) in plain {
        body.detach(op);
        body.insert_before(before, op);
    }
    entry_guard::move_under_entry_guard(unit, body, guarded);
    changed
}

/// Returns whether ops may leave loops of the kind, including parallel loops.
fn is_hoistable_from(kind: &OpKind) -> bool {
    use OpKind::{For, Loop, ParFor, ShareFor};
    matches!(
        kind,
        For { .. } | Loop { .. } | ParFor { .. } | ShareFor { .. }
    )
}

/// Returns a zero of the trip count's type for every counted loop.
fn trip_count_zeros(unit: &mut Unit, body: &mut Body) -> HashMap<Op, Value> {
    let fors: Vec<Op> = body
        .walk(body.root())
        .filter(|&op| {
            is_hoistable_from(body.kind(op)) && !matches!(body.kind(op), OpKind::Loop { .. })
        })
        .collect();
    let mut b = Builder::new(unit, body);
    let zero = |op: Op| {
        let ty = b.body.ty(b.body.operand(op, 0));
        (op, b.int(ty, 0))
    };
    fors.into_iter().map(zero).collect()
}

struct LicmPlan<'a> {
    unit: &'a Unit,
    body: &'a Body,
    facts: &'a PassContext<'a>,
    clobbers: &'a Clobbers<'a>,
    alias: &'a Alias<'a>,
    zeros: HashMap<Op, Value>,
    /// For each op, whether every execution of its region reaches the op.
    always_executes: Vec<bool>,
    errno: Errno,
    /// Positions of the ops that write memory, sorted.
    writes: Vec<u32>,
    /// For each moved op, the loop before which the op will stand.
    moves: HashMap<Op, Destination>,
    plain: Vec<(Op, Op)>,
    guarded: Vec<(Op, Op)>,
    /// End position of the last structured op moved as a whole; nested ops stay inside.
    moved_end: u32,
}

/// Destination of a moved op.
#[derive(Clone, Copy)]
struct Destination {
    before: Op,
    guarded: bool,
}

/// Condition for an op to leave a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HoistCondition {
    /// No condition: speculatable.
    Always,
    /// The loop must reach the op in every execution.
    MustExecute,
    /// The loop must reach the op and must not clobber the memory that the op reads.
    MustExecuteUnclobbered,
    /// The loop must not clobber the memory that the op reads.
    Unclobbered,
}

impl LicmPlan<'_> {
    fn visit_op(&mut self, op: Op) {
        let (first, last) = self.alias.nest.span(op);
        if first <= self.moved_end {
            return;
        }
        let Some(need) = self.hoist_condition(op) else {
            // Not an error: the op may not leave its loop.
            return;
        };
        let used = read_only_regions::outside_values(self.body, op);
        if let Some(to) = self.destination(op, need, &used) {
            self.moves.insert(op, to);
            match to.guarded {
                true => self.guarded.push((op, to.before)),
                false => self.plain.push((op, to.before)),
            }
            if !self.body.op_regions(op).is_empty() {
                self.moved_end = last;
            }
        }
    }

    /// Returns the outermost loop that the op may leave, if any.
    fn destination(&self, op: Op, need: HoistCondition, used: &[Value]) -> Option<Destination> {
        let mut region = self.body.parent(op)?;
        let mut sure = self.always_executes[op.index()];
        let mut found = None;
        for _ in 0..LEVELS_MAX {
            let varies = used
                .iter()
                .any(|&v| self.future_region_of(v) == Some(region));
            let Some(around) = self.body.owner(region).filter(|_| !varies) else {
                break;
            };
            match self.body.kind(around) {
                kind if is_hoistable_from(kind) => {
                    let runs = self.has_iterations(around);
                    let follows = used.iter().any(|v| self.is_guarded_at(*v, around));
                    let plainly = !follows && self.can_leave_loop(op, need, sure && runs, around);
                    if !plainly {
                        let guarded = (follows || self.is_costly(op, around))
                            && !runs
                            && !matches!(kind, OpKind::ParFor { dims: 2.., .. })
                            && self.can_leave_loop(op, need, sure, around);
                        return match guarded {
                            true => Some(Destination {
                                before: around,
                                guarded,
                            }),
                            false => found,
                        };
                    }
                    sure = sure && runs;
                    found = Some(Destination {
                        before: around,
                        guarded: false,
                    });
                }
                OpKind::If | OpKind::Switch(_)
                    if matches!(need, HoistCondition::Always | HoistCondition::Unclobbered) =>
                {
                    sure = false;
                }
                _ => break,
            }
            sure = sure && self.always_executes[around.index()];
            match self.body.parent(around) {
                Some(outer) => region = outer,
                None => break,
            }
        }
        found
    }

    /// Returns whether an op that will stand under the entry guard of `around` defines the value.
    fn is_guarded_at(&self, value: Value, around: Op) -> bool {
        let to = self.body.def_op(value).and_then(|op| self.moves.get(&op));
        to.is_some_and(|to| to.guarded && to.before == around)
    }

    /// Returns the region that will define a value after all moves.
    fn future_region_of(&self, value: Value) -> Option<Region> {
        let moved = self.body.def_op(value).and_then(|op| self.moves.get(&op));
        match moved {
            Some(to) => self.body.parent(to.before),
            None => self.body.region_of(value),
        }
    }

    /// Returns whether an op is worth a separate entry guard before the loop. LLVM hoists loads out of loops
    /// without writes.
    fn is_costly(&self, op: Op, around: Op) -> bool {
        match self.body.kind(op) {
            OpKind::Load(_) => any_position_within(&self.writes, self.alias, around),
            OpKind::Call(_) => {
                let func = self.unit.callee(self.body, op);
                match func.and_then(|func| self.unit.known(func)) {
                    Some(ExternalFn::Math(math)) => !is_cheap(math),
                    Some(
                        ExternalFn::Integer(_) | ExternalFn::Reduce(_) | ExternalFn::Marker(_),
                    ) => false,
                    _ => true,
                }
            }
            _ => !self.body.op_regions(op).is_empty(),
        }
    }

    /// Returns the condition for the op to leave a loop; `None` if the op may never leave.
    fn hoist_condition(&self, op: Op) -> Option<HoistCondition> {
        let kind = self.body.kind(op);
        if is_pure(self.unit, self.body, op) {
            let free =
                is_speculatable(self.unit, self.body, op) && self.has_bounded_derivatives(op);
            return Some(if free {
                HoistCondition::Always
            } else {
                HoistCondition::MustExecute
            });
        }
        match kind {
            OpKind::Load(access) if access.is_plain() => Some(
                if is_dereferenceable(self.unit, self.facts.function, self.body, op) {
                    HoistCondition::Unclobbered
                } else {
                    HoistCondition::MustExecuteUnclobbered
                },
            ),
            OpKind::Call(_) => {
                let quiet =
                    read_only_regions::is_read_only_call(self.unit, self.body, self.facts, op);
                quiet.then_some(HoistCondition::MustExecuteUnclobbered)
            }
            OpKind::For { .. } => {
                let quiet = read_only_regions::is_read_only(self.unit, self.body, op, |inner| {
                    self.is_read_only_op(inner)
                });
                (quiet && !self.body.results(op).is_empty())
                    .then_some(HoistCondition::MustExecuteUnclobbered)
            }
            _ => None,
        }
    }

    fn accesses(&self, op: Op) -> Vec<MemoryAccess> {
        self.facts.effects.of_op(self.unit, self.body, op)
    }

    /// Returns whether an op nested in a moved structured op only reads memory and always returns.
    fn is_read_only_op(&self, op: Op) -> bool {
        let comes_back = || {
            let effects = self.facts.effects.of_call(self.unit, self.body, op);
            !effects.may_throw && !effects.may_not_return && !effects.returns_fresh
        };
        let call = matches!(self.body.kind(op), OpKind::Call(_));
        (!call || comes_back()) && read_only_regions::only_reads(&self.accesses(op))
    }

    fn can_leave_loop(&self, op: Op, need: HoistCondition, sure: bool, around: Op) -> bool {
        let unchanged = || {
            read_only_regions::with_nested_ops(self.body, op)
                .into_iter()
                .all(|inner| {
                    (self.clobbers.invariant_in(inner, around)
                        || sure && self.is_unchanged_by_race_freedom(inner, around))
                        && (!errno::is_set_by(self.unit, self.body, self.facts, inner)
                            || !self.errno.is_accessed_in(self.alias, around))
                })
        };
        match need {
            HoistCondition::Always => true,
            HoistCondition::MustExecute => sure,
            HoistCondition::MustExecuteUnclobbered => sure && unchanged(),
            HoistCondition::Unclobbered => unchanged() || is_planted(Mutant::HoistedPastStores),
        }
    }

    /// Returns whether race freedom proves that a parallel loop does not change the memory that an op reads.
    ///
    /// Every iteration reads the same location. Another iteration must not write the location, and the own
    /// iteration has not written the location yet. Inaccessible memory may be protected by internal locks and
    /// must not be clobbered. Addresses that the loop stores to are excluded: the program has a race with two or
    /// more threads, but a defined result with one thread.
    fn is_unchanged_by_race_freedom(&self, op: Op, around: Op) -> bool {
        let stays = |access: &MemoryAccess| match access.place {
            // An `errno` value that the op only writes is no input.
            MemoryRegion::Errno if access.kind == AccessKind::Write => true,
            MemoryRegion::Inaccessible | MemoryRegion::Errno => {
                !self.clobbers.clobbered_in(access, around)
            }
            _ => true,
        };
        matches!(self.body.kind(around), OpKind::ParFor { .. })
            && self.facts.alias.race_free
            && self.clobbers.unmodified_until(op, around)
            && self.accesses(op).iter().all(stays)
            && !self.is_stored_to(op, around)
    }

    /// Returns whether a loop stores to the address that an op loads from.
    fn is_stored_to(&self, op: Op, around: Op) -> bool {
        let is_load = matches!(self.body.kind(op), OpKind::Load(_));
        let stores = |address: Value| {
            self.body.uses(address).any(|at| {
                matches!(self.body.kind(at.op), OpKind::Store(_))
                    && at.index == 1
                    && self.alias.nest.contains(around, at.op)
            })
        };
        is_load && stores(self.body.operand(op, 0))
    }

    /// Returns whether a loop has at least one iteration.
    fn has_iterations(&self, op: Op) -> bool {
        match (
            self.body.kind(op),
            self.zeros.get(&op),
            self.body.parent(op),
        ) {
            (OpKind::Loop { .. }, ..) => true,
            (OpKind::ParFor { dims: 2.., .. }, ..) => false,
            (kind, Some(&zero), Some(region)) if is_hoistable_from(kind) => {
                let trips = self.body.operand(op, 0);
                holds_at(self.unit, self.body, region, IntPredicate::Ne, trips, zero)
            }
            _ => false,
        }
    }

    /// Returns whether all partial derivatives of a pure op are bounded.
    fn has_bounded_derivatives(&self, op: Op) -> bool {
        use BinaryOp::{FAdd, FSub};
        let float = |v: &Value| self.unit.types.float_kind(self.body.ty(*v)).is_some();
        match self.body.kind(op) {
            OpKind::Binary(FAdd | FSub) | OpKind::FNeg | OpKind::Select => true,
            OpKind::Cast(c) => !matches!(c, CastOp::FPToSI | CastOp::FPToUI),
            OpKind::Binary(_) | OpKind::Call(_) => !self.body.results(op).iter().any(float),
            _ => true,
        }
    }
}

/// Returns whether a math function costs about as much as a multiplication.
fn is_cheap(math: MathFn) -> bool {
    use MathFn::*;
    matches!(
        math,
        Fabs | Copysign
            | Minnum
            | Maxnum
            | Minimum
            | Maximum
            | MinimumNum
            | MaximumNum
            | Fdim
            | Floor
            | Ceil
            | Trunc
            | Rint
            | Nearbyint
            | Round
            | RoundEven
            | Fma
            | Fmuladd
            | Canonicalize
            | ArithmeticFence
            | IsClass
            | Classify
            | FptosiSat
            | FptouiSat
    )
}

/// Returns for every op whether each execution of its region reaches the op: no earlier op of the region may
/// exit, throw or loop forever.
fn always_executing_ops(unit: &Unit, body: &Body, facts: &PassContext) -> Vec<bool> {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    let mut leaves = vec![false; body.ops.len()];
    for &op in ops.iter().rev() {
        let own = match body.kind(op) {
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let effects = facts.effects.of_call(unit, body, op);
                effects.may_throw || effects.may_not_return
            }
            OpKind::Loop { trip_max } => trip_max.is_none(),
            OpKind::Unreachable | OpKind::Resume | OpKind::Return | OpKind::Foreign(_) => true,
            // A parallel loop and a scope terminate when all nested ops have terminated.
            OpKind::ParFor { .. } | OpKind::Scope => false,
            kind => kind.is_parallel(),
        };
        let leaving = own || leaves[op.index()];
        leaves[op.index()] = leaving;
        if leaving && let Some(around) = body.parent_op(op) {
            leaves[around.index()] = true;
        }
    }
    let mut sure = vec![false; body.ops.len()];
    for &op in &ops {
        let before = body.prev(op);
        sure[op.index()] = before.is_none_or(|p| sure[p.index()] && !leaves[p.index()]);
    }
    sure
}

/// Returns the sorted positions of the ops that write program-visible memory.
fn write_positions(unit: &Unit, body: &Body, facts: &PassContext, alias: &Alias) -> Vec<u32> {
    access_positions(unit, body, facts, alias, |a| {
        a.kind == AccessKind::Write
            && !matches!(a.place, MemoryRegion::Errno | MemoryRegion::Inaccessible)
    })
}

/// Returns the sorted positions of the ops with a matching access.
fn access_positions(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    alias: &Alias,
    wanted: impl Fn(&MemoryAccess) -> bool,
) -> Vec<u32> {
    let has = |op: &Op| facts.effects.of_op(unit, body, *op).iter().any(&wanted);
    let ops = body.walk(body.root()).filter(has);
    let mut found: Vec<u32> = ops.map(|op| alias.nest.order(op)).collect();
    found.sort_unstable();
    found
}
