//! Which adds of a reversed parallel loop may be plain ones.
//!
//! A load of an iteration becomes an add to shadow memory, and two iterations that read one place would
//! add to it at once. No other iteration adds to the place of a load if
//! - the iteration allocated the memory: its shadow is the mirrored iteration's; or
//! - its own iteration surely writes there by a plain write: another one that read it would race, and
//!   shadows meet only where primals meet (but not where iterations may write the same to one place); or
//! - all loads of the loop that may go to the same shadow memory have one injective subscript: they
//!   start at the same address, and what one iteration reads lies within one step of the loop's index.
//!
//! Where several runs of a whole derivative may add at once, the same holds of the function as of an
//! iteration, and memory that a run allocated is its own.
//!
//! Shadows of different arguments may coincide, so that different arguments count as one memory here.
//! Everywhere else the add is atomic.

use super::Facts;
use super::make::MakeFacts;
use gradus_analysis::{Affine, AffineTerm, Alias, Root, affine, trip_max};
use gradus_ir::known::Known;
use gradus_ir::mutant::{Mutant, planted};
use gradus_ir::{Body, Definition, Flags, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Memory whose shadow is other memory than that of all other classes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Arguments and globals.
    Outside,
    /// One allocation of this function.
    Own(Value),
    /// Anything.
    Unknown,
}

/// A load in a loop, with its address as a function of the loop's index.
struct Load {
    op: Op,
    class: Class,
    form: Option<Affine>,
    size_bytes: u64,
}

impl MakeFacts<'_> {
    /// Fills in the loads whose adds may be plain.
    pub(super) fn own_adds(&self, facts: &mut Facts<'_>, alias: &Alias<'_>) {
        let body = facts.body;
        let mut shared: HashSet<Op> = HashSet::new();
        let mut all: HashSet<Op> = HashSet::new();
        for lp in body
            .walk(body.root())
            .filter(|op| is_independent(body, *op))
        {
            let loads = self.loads(facts, alias, lp);
            let hidden = self.calls_read(facts, lp);
            for load in &loads {
                all.insert(load.op);
                let own =
                    planted(Mutant::SharedAddPlain) || self.is_own(alias, lp, load, &loads, hidden);
                if !own {
                    shared.insert(load.op);
                }
            }
        }
        if self.variant.concurrent {
            self.of_this_run(facts, &mut all, &mut shared);
        }
        facts.own_adds = all.difference(&shared).copied().collect();
    }

    /// Where several runs of the derivative add at once: the loads of memory that is not this run's.
    fn of_this_run(&self, facts: &Facts<'_>, all: &mut HashSet<Op>, shared: &mut HashSet<Op>) {
        let body = facts.body;
        for op in body.walk(body.root()).filter(|op| becomes_add(facts, *op)) {
            all.insert(op);
            let start = Root::Value(base(body, body.operand(op, 0)));
            let own = matches!(self.class(body, start), Class::Own(_));
            if !own && !is_written(body, body.root(), op) {
                shared.insert(op);
            }
        }
    }

    /// The loads of a loop that become adds.
    fn loads(&self, facts: &Facts<'_>, alias: &Alias<'_>, lp: Op) -> Vec<Load> {
        let body = facts.body;
        let region = body.op_regions(lp)[0];
        let load = |op: Op| {
            let form = affine(alias, body.operand(op, 0), Some(lp));
            let start = form.as_ref().and_then(|form| form.start);
            let start = start.unwrap_or(Root::Value(base(body, body.operand(op, 0))));
            Load {
                op,
                class: self.class(body, start),
                form,
                size_bytes: self
                    .unit
                    .layout
                    .store_bytes(self.unit, body.ty(body.result(op))),
            }
        };
        let adds = |op: &Op| becomes_add(facts, *op);
        body.walk(region).filter(adds).map(load).collect()
    }

    /// Whether a loop calls functions of the program that read memory: their derivatives add there, too.
    fn calls_read(&self, facts: &Facts<'_>, lp: Op) -> bool {
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

    fn class(&self, body: &Body, root: Root) -> Class {
        let Root::Value(value) = root else {
            return Class::Outside;
        };
        match body.values[value].def {
            Definition::Param(region, _) if region == body.root() => Class::Outside,
            Definition::Result(op, _) if is_allocation(self.unit, body, op) => Class::Own(value),
            _ => Class::Unknown,
        }
    }

    /// Whether no other iteration of `lp` adds to the place of a load.
    fn is_own(
        &self,
        alias: &Alias<'_>,
        lp: Op,
        load: &Load,
        all: &[Load],
        calls_read: bool,
    ) -> bool {
        if is_of_iteration(self.unit, alias.body, lp, alias.body.operand(load.op, 0)) {
            return true;
        }
        let shares = alias.body.ops[lp].flags.has(Flags::SHARING);
        if !shares && is_written(alias.body, alias.body.op_regions(lp)[0], load.op) {
            return true;
        }
        if calls_read {
            return false;
        }
        let meets = |other: &&Load| {
            other.class == load.class || [load.class, other.class].contains(&Class::Unknown)
        };
        let group: Vec<&Load> = all.iter().filter(meets).collect();
        self.has_one_subscript(alias, lp, &group)
    }

    /// Whether all of `group` start at one address and stay within one step of the index of `lp`.
    fn has_one_subscript(&self, alias: &Alias<'_>, lp: Op, group: &[&Load]) -> bool {
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
        // Modulo 2⁶⁴ one place may have two subscripts. Not where each iteration reads its part, next to the
        // part before it: all of these lie in one object, which is no longer than half of that.
        let exact = forms.iter().all(|form| form.exact);
        let gapless = exact || group.iter().all(|load| comes_by_always(alias, lp, load.op));
        gapless && forms.iter().all(same) && steps_over(self, alias, lp, first, element, !exact)
    }
}

/// Whether one step of the index of `lp` goes over all that an iteration touches: `element` bytes, as many
/// of them as the innermost loop inside of it runs, as many such rows as the loop around that one runs, and so on.
fn steps_over(
    make: &MakeFacts<'_>,
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
    let mut touched = Extent {
        bytes: element,
        factors: Vec::new(),
        gapless,
    };
    for row in inner {
        let Some(wider) = touched.times(make, alias, row) else {
            return false;
        };
        touched = wider;
    }
    touched.is_within(alias.body, own)
}

/// Bytes that are touched, in a product with values that are made outside of the loops; what steps over them
/// goes no further, where it must be `gapless`.
struct Extent {
    bytes: i64,
    factors: Vec<Value>,
    gapless: bool,
}

impl Extent {
    /// Whether one step of a loop's index goes over it.
    fn is_within(&self, body: &Body, term: &AffineTerm) -> bool {
        let sorted = |factors: &[Value]| {
            let mut factors: Vec<Value> = factors.iter().map(|v| stripped(body, *v)).collect();
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

    /// What all runs of a loop touch together, of which each touches this one step further on; `None` where
    /// they overlap, or go down.
    fn times(&self, make: &MakeFacts<'_>, alias: &Alias<'_>, row: &AffineTerm) -> Option<Extent> {
        if row.coefficient < 0 || !self.is_within(alias.body, row) {
            return None;
        }
        let trips = alias.body.operand(row.lp, 0);
        // Where gaps do no harm, neither does the one that fewer runs leave.
        let most = match alias.body.as_int(make.unit, trips) {
            None if !self.gapless => trip_max(make.unit, alias.body, row.lp),
            known => known.and_then(|n| u64::try_from(n).ok()),
        };
        if let Some(trips) = most.and_then(|n| i64::try_from(n).ok()) {
            return Some(Extent {
                bytes: row.coefficient.checked_mul(trips)?,
                factors: row.factors.clone(),
                gapless: self.gapless,
            });
        }
        let mut factors = row.factors.clone();
        factors.push(most_trips(alias, trips));
        Some(Extent {
            bytes: row.coefficient,
            factors,
            gapless: self.gapless,
        })
    }
}

/// What the index of a loop with so many runs stays below wherever it has one: also of `0 if c else m`.
fn most_trips(alias: &Alias<'_>, mut trips: Value) -> Value {
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

/// Whether all iterations of a loop come by a load equally often: between the two stand only loops and branches
/// on what was made before the loop.
fn comes_by_always(alias: &Alias<'_>, lp: Op, load: Op) -> bool {
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

/// A value without the widenings around it.
fn stripped(body: &Body, mut value: Value) -> Value {
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

/// Whether a loop says that its iterations are independent.
pub(crate) fn is_independent(body: &Body, op: Op) -> bool {
    matches!(body.kind(op), OpKind::For { .. }) && body.ops[op].flags.has(Flags::INDEPENDENT)
}

/// The pointer that an address is computed from.
fn base(body: &Body, mut pointer: Value) -> Value {
    while let Some(op) = body.def_op(pointer)
        && matches!(body.kind(op), OpKind::Addr { .. })
    {
        pointer = body.operand(op, 0);
    }
    pointer
}

/// Whether an address leads to memory that the present iteration of a loop allocated.
pub(crate) fn is_of_iteration(unit: &Unit, body: &Body, lp: Op, pointer: Value) -> bool {
    let made = body.def_op(base(body, pointer));
    made.is_some_and(|made| {
        let inside = body
            .parent(made)
            .is_some_and(|at| body.is_inside(at, body.op_regions(lp)[0]));
        inside && is_allocation(unit, body, made)
    })
}

/// Whether an op gives new memory.
fn is_allocation(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|f| unit.known(f));
    matches!(body.kind(op), OpKind::Alloca(_))
        || matches!(known, Some(Known::Memory(f)) if f.allocation().is_some_and(|a| a.replaces.is_none()))
}

/// Whether a load becomes an add to shadow memory.
fn becomes_add(facts: &Facts<'_>, op: Op) -> bool {
    let body = facts.body;
    matches!(body.kind(op), OpKind::Load(_))
        && facts.active(body.result(op))
        && facts.has_shadow(body.operand(op, 0))
}

/// Whether every run of the region `inside` that comes to a load writes to the same address: a plain
/// store through the same pointer in the load's region or in one around it.
fn is_written(body: &Body, inside: Region, load: Op) -> bool {
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
