//! Exclusive adjoint accumulation in parallel loops: decides which adds may be plain.
//!
//! The adjoint of an iteration's load is an add to shadow memory. Two iterations that read one location would
//! add concurrently. No other iteration adds to the location of a load if one condition holds:
//! - The iteration allocated the memory. The shadow is then allocated by the reversed iteration.
//! - The same iteration always writes the location by a plain store. A read in another iteration would be a
//!   data race in the primal, and shadows overlap only where primals overlap (S2p). Exception: loops whose
//!   iterations may write equal values to one location.
//! - All loads of the loop that may share the shadow object have one injective subscript: they start at one
//!   address, and the locations of an iteration lie within one step of the loop's index.
//!
//! If several runs of a whole derivative may add concurrently, the conditions apply to a run instead of an
//! iteration, and memory that the run allocated is private.
//!
//! Shadows of different arguments may coincide (S2). All arguments and globals therefore count as one shadow
//! object. Any other add is atomic.

use super::BodyFacts;
use crate::analysis::body_facts::build::FactsBuilder;
use gradus_analysis::{Affine, AffineTerm, Alias, BaseValue, affine, trip_max};
use gradus_ir::externals::ExternalFn;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Body, Definition, Flags, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// A set of shadow objects that is disjoint from all other sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShadowObject {
    /// Arguments and globals.
    ArgumentsAndGlobals,
    /// One allocation of this function.
    Allocation(Value),
    /// Any memory.
    Unknown,
}

/// A load in a loop, with its address as an affine form in the loop's index.
struct SubscriptedLoad {
    op: Op,
    class: ShadowObject,
    form: Option<Affine>,
    size_bytes: u64,
}

impl FactsBuilder<'_> {
    /// Collects the loads whose adjoint accumulations may be plain.
    pub(super) fn find_exclusive_adds(&self, facts: &mut BodyFacts<'_>, alias: &Alias<'_>) {
        let body = facts.body;
        let mut shared: HashSet<Op> = HashSet::new();
        let mut all: HashSet<Op> = HashSet::new();
        for lp in body.walk(body.root()).filter(|op| body.is_independent(*op)) {
            let loads = self.loads(facts, alias, lp);
            let hidden = self.callees_read_memory(facts, lp);
            for load in &loads {
                all.insert(load.op);
                let own = is_planted(Mutant::SharedAddPlain)
                    || self.is_exclusive_in_iteration(alias, lp, load, &loads, hidden);
                if !own {
                    shared.insert(load.op);
                }
            }
        }
        if self.variant.concurrent {
            self.collect_shared_in_run(facts, &mut all, &mut shared);
        }
        facts.exclusive_adds = all.difference(&shared).copied().collect();
    }

    /// Records shared loads if several runs of the derivative may add concurrently: memory that is neither
    /// allocated nor always written by the run is shared.
    fn collect_shared_in_run(
        &self,
        facts: &BodyFacts<'_>,
        all: &mut HashSet<Op>,
        shared: &mut HashSet<Op>,
    ) {
        let body = facts.body;
        for op in body
            .walk(body.root())
            .filter(|op| becomes_accumulation(facts, *op))
        {
            all.insert(op);
            let start = BaseValue::Value(body.address_base(body.operand(op, 0)));
            let own = matches!(self.class(body, start), ShadowObject::Allocation(_));
            if !own && !is_always_written(body, body.root(), op) {
                shared.insert(op);
            }
        }
    }

    /// Returns the loads of a loop that become adds.
    fn loads(&self, facts: &BodyFacts<'_>, alias: &Alias<'_>, lp: Op) -> Vec<SubscriptedLoad> {
        let body = facts.body;
        let region = body.op_regions(lp)[0];
        let load = |op: Op| {
            let form = affine(alias, body.operand(op, 0), Some(lp));
            let start = form.as_ref().and_then(|form| form.start);
            let start = start.unwrap_or(BaseValue::Value(body.address_base(body.operand(op, 0))));
            SubscriptedLoad {
                op,
                class: self.class(body, start),
                form,
                size_bytes: self
                    .unit
                    .layout
                    .store_bytes(self.unit, body.ty(body.result(op))),
            }
        };
        let adds = |op: &Op| becomes_accumulation(facts, *op);
        body.walk(region).filter(adds).map(load).collect()
    }

    /// Returns true if a loop calls functions of the program that read memory: the derivatives of such
    /// callees also add to shadow memory.
    fn callees_read_memory(&self, facts: &BodyFacts<'_>, lp: Op) -> bool {
        let body = facts.body;
        let region = body.op_regions(lp)[0];
        let reads = |op: Op| {
            let active = facts.is_active_call(op) || facts.pointer_targets(op).is_some();
            active
                && self
                    .closure
                    .effects
                    .of_call(self.unit, body, op)
                    .reads_memory()
        };
        body.walk(region).any(reads)
    }

    fn class(&self, body: &Body, root: BaseValue) -> ShadowObject {
        let BaseValue::Value(value) = root else {
            return ShadowObject::ArgumentsAndGlobals;
        };
        match body.values[value].def {
            Definition::Param(region, _) if region == body.root() => {
                ShadowObject::ArgumentsAndGlobals
            }
            Definition::Result(op, _) if is_allocation(self.unit, body, op) => {
                ShadowObject::Allocation(value)
            }
            _ => ShadowObject::Unknown,
        }
    }

    /// Returns true if no other iteration of `lp` adds to the location of a load.
    fn is_exclusive_in_iteration(
        &self,
        alias: &Alias<'_>,
        lp: Op,
        load: &SubscriptedLoad,
        all: &[SubscriptedLoad],
        calls_read: bool,
    ) -> bool {
        if is_allocated_in_iteration(self.unit, alias.body, lp, alias.body.operand(load.op, 0)) {
            return true;
        }
        let shares = alias.body.ops[lp].flags.has(Flags::ALLOWS_EQUAL_WRITES);
        if !shares && is_always_written(alias.body, alias.body.op_regions(lp)[0], load.op) {
            return true;
        }
        if calls_read {
            return false;
        }
        let meets = |other: &&SubscriptedLoad| {
            other.class == load.class || [load.class, other.class].contains(&ShadowObject::Unknown)
        };
        let group: Vec<&SubscriptedLoad> = all.iter().filter(meets).collect();
        self.has_one_subscript(alias, lp, &group)
    }

    /// Returns true if all loads of `group` start at one address and stay within one step of the index of
    /// `lp`.
    fn has_one_subscript(&self, alias: &Alias<'_>, lp: Op, group: &[&SubscriptedLoad]) -> bool {
        let forms: Option<Vec<&Affine>> = group.iter().map(|load| load.form.as_ref()).collect();
        let Some((forms, first)) = forms.and_then(|f| f.first().copied().map(|first| (f, first)))
        else {
            return false;
        };
        let start = forms.iter().map(|f| f.constant).min().unwrap_or(0);
        let ends = forms.iter().zip(group).map(|(form, load)| {
            form.constant
                .saturating_sub(start)
                .saturating_add_unsigned(load.size_bytes)
        });
        let Some(element) = ends.max() else {
            return false;
        };
        let same = |form: &&Affine| {
            form.start == first.start
                && form.invariant == first.invariant
                && form.terms == first.terms
        };
        // Modulo 2⁶⁴, one location may have two subscripts. The exception is a gapless partition, in which
        // the part of each iteration starts at the end of the previous part: all parts lie in one object of
        // fewer than 2⁶³ bytes.
        let exact = forms.iter().all(|form| form.exact);
        let gapless = exact
            || group
                .iter()
                .all(|load| is_executed_equally_often(alias, lp, load.op));
        gapless
            && forms.iter().all(same)
            && step_exceeds_extent(self, alias, lp, first, element, !exact)
    }
}

/// Returns true if one step of the index of `lp` exceeds the bytes that an iteration touches: `element` bytes
/// times the trip counts of the inner loops, from the innermost loop outwards.
fn step_exceeds_extent(
    make: &FactsBuilder<'_>,
    alias: &Alias<'_>,
    lp: Op,
    form: &Affine,
    element: i64,
    gapless: bool,
) -> bool {
    let (own, mut inner): (Vec<&AffineTerm>, Vec<&AffineTerm>) =
        form.terms.iter().partition(|term| term.lp == lp);
    let [own] = own[..] else {
        return false;
    };
    inner.sort_by_key(|term| (term.factors.len(), term.coefficient));
    let mut touched = TouchedExtent {
        bytes: element,
        factors: Vec::new(),
        gapless,
    };
    for row in inner {
        let Some(wider) = touched.over_iterations(make, alias, row) else {
            return false;
        };
        touched = wider;
    }
    touched.is_within_step(alias.body, own)
}

/// A number of touched bytes: a constant times loop-invariant values. If `gapless`, a step must equal the
/// extent.
struct TouchedExtent {
    bytes: i64,
    factors: Vec<Value>,
    gapless: bool,
}

impl TouchedExtent {
    /// Returns true if one step of a loop's index is at least as long as the extent.
    fn is_within_step(&self, body: &Body, term: &AffineTerm) -> bool {
        let sorted = |factors: &[Value]| {
            let mut factors: Vec<Value> =
                factors.iter().map(|v| strip_extensions(body, *v)).collect();
            factors.sort_unstable();
            factors
        };
        let step = term.coefficient.checked_abs();
        let over = |step: i64| match self.gapless {
            true => step == self.bytes,
            false => step >= self.bytes,
        };
        step.is_some_and(over) && sorted(&term.factors) == sorted(&self.factors)
    }

    /// Returns the union of the extents of all iterations of a loop, each one step further; `None` if the
    /// extents overlap or the step is negative.
    fn over_iterations(
        &self,
        make: &FactsBuilder<'_>,
        alias: &Alias<'_>,
        row: &AffineTerm,
    ) -> Option<TouchedExtent> {
        if row.coefficient < 0 || !self.is_within_step(alias.body, row) {
            return None;
        }
        let trips = alias.body.operand(row.lp, 0);
        // If gaps are allowed, a trip count below the maximum leaves only a larger gap.
        let most = match alias.body.as_int(make.unit, trips) {
            None if !self.gapless => trip_max(make.unit, alias.body, row.lp),
            known => known.and_then(|n| u64::try_from(n).ok()),
        };
        if let Some(trips) = most.and_then(|n| i64::try_from(n).ok()) {
            return Some(TouchedExtent {
                bytes: row.coefficient.checked_mul(trips)?,
                factors: row.factors.clone(),
                gapless: self.gapless,
            });
        }
        let mut factors = row.factors.clone();
        factors.push(index_bound(alias, trips));
        Some(TouchedExtent {
            bytes: row.coefficient,
            factors,
            gapless: self.gapless,
        })
    }
}

/// Returns an upper bound of the index of a loop that runs at all: for a trip count `0 if c else m`, the
/// bound is `m`.
fn index_bound(alias: &Alias<'_>, mut trips: Value) -> Value {
    let (unit, body) = (alias.unit, alias.body);
    let is_zero = |value: Value| body.as_int(unit, value) == Some(0);
    while let Some(op) = body.def_op(trips)
        && matches!(body.kind(op), OpKind::Select)
    {
        let (one, other) = (body.operand(op, 1), body.operand(op, 2));
        trips = match (is_zero(one), is_zero(other)) {
            (true, _) => other,
            (_, true) => one,
            _ => break,
        };
    }
    trips
}

/// Returns true if all iterations of a loop execute a load equally often: only loops and branches enclose the
/// load, with trip counts and conditions from before the loop.
fn is_executed_equally_often(alias: &Alias<'_>, lp: Op, load: Op) -> bool {
    let body = alias.body;
    let is_before = |value: Value| match body.values[value].def {
        Definition::Const(_) => true,
        Definition::Result(op, _) => !alias.nest.contains(lp, op),
        Definition::Param(region, _) => body
            .owner(region)
            .is_none_or(|owner| !alias.nest.contains(lp, owner)),
    };
    let around = |op: &Op| alias.nest.parent(*op);
    let owners = std::iter::successors(alias.nest.parent(load), around);
    owners.take_while(|op| *op != lp).all(|op| {
        let steady = matches!(body.kind(op), OpKind::For { .. } | OpKind::If);
        steady && is_before(body.operand(op, 0))
    })
}

/// Strips integer extensions.
fn strip_extensions(body: &Body, mut value: Value) -> Value {
    while let Some(op) = body.def_op(value).filter(|op| {
        matches!(
            body.kind(*op),
            OpKind::Cast(gradus_ir::CastOp::ZExt | gradus_ir::CastOp::SExt)
        )
    }) {
        value = body.operand(op, 0);
    }
    value
}

/// Returns true if an address points to memory that the current iteration of a loop allocated.
pub(crate) fn is_allocated_in_iteration(unit: &Unit, body: &Body, lp: Op, pointer: Value) -> bool {
    let made = body.def_op(body.address_base(pointer));
    made.is_some_and(|made| {
        let inside = body.is_nested_in(made, body.op_regions(lp)[0]);
        inside && is_allocation(unit, body, made)
    })
}

/// Returns true if an op allocates memory.
fn is_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.known_callee(body, op);
    matches!(body.kind(op), OpKind::Alloca(_))
        || matches!(known, Some(ExternalFn::Memory(f)) if f.allocation().is_some_and(|a| a.replaces.is_none()))
}

/// Returns true if the adjoint of a load is an add to shadow memory.
fn becomes_accumulation(facts: &BodyFacts<'_>, op: Op) -> bool {
    let body = facts.body;
    matches!(body.kind(op), OpKind::Load(_))
        && facts.is_active(body.result(op))
        && facts.has_shadow(body.operand(op, 0))
}

/// Returns true if every execution of the region `inside` that reaches a load also writes the loaded address:
/// by a plain store through the same pointer, in the load's region or in an enclosing region.
fn is_always_written(body: &Body, inside: Region, load: Op) -> bool {
    let ptr = body.operand(load, 0);
    let loaded = body.ty(body.result(load));
    let surely = |region: Option<Region>| {
        let mut at = body.parent(load);
        while let Some(here) = at {
            if Some(here) == region {
                return true;
            }
            if here == inside {
                return false;
            }
            at = body.enclosing(here);
        }
        false
    };
    body.uses(ptr).any(|at| {
        let plain = matches!(body.kind(at.op), OpKind::Store(access) if access.is_plain());
        plain
            && at.index == 1
            && body.ty(body.operand(at.op, 0)) == loaded
            && surely(body.parent(at.op))
    })
}
