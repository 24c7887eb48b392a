//! Decides which adds of a loop to delay, and which accesses to test at run time.

use super::Add;
use gradus_analysis::{Affine, Alias, MemoryAccess, PassContext, affine};
use gradus_ir::{BinaryOp, Body, Definition, Flags, Op, OpKind, Region, Unit, Value};
use std::collections::HashSet;

/// Maximum delay of an add in iterations.
const DELAY_MAX: i64 = 4;
/// Maximum number of carried values added to a loop.
const CARRIED_MAX: u32 = 16;
/// Maximum number of address range pairs tested before a loop.
const TESTS_MAX: usize = 8;
/// Minimum constant trip count.
const TRIPS_MIN: i64 = 8;
/// Maximum number of ops of an address computation.
const ADDRESS_OPS_MAX: usize = 64;

/// Add with its delay in iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAdd {
    pub add: Add,
    pub delay: u32,
}

/// Pointer that advances by a constant number of bytes per iteration.
#[derive(Clone, Debug)]
pub(super) struct SteppingPointer {
    pub ptr: Value,
    /// Bytes per iteration.
    pub step: i64,
    /// Size of the access in bytes.
    pub bytes: i64,
    /// Ops of the loop that compute the pointer, in order.
    pub ops: Vec<Op>,
}

/// Adds that reach one location in different iterations. The first add has no delay and stores the sum.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub adds: Vec<DelayedAdd>,
    pub delay_max: u32,
    /// Location of the first add.
    pub pointer: SteppingPointer,
}

/// Address range of adds: the range of `place`, extended by `more` steps.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    pub pointer: SteppingPointer,
    pub extra_steps: u32,
}

/// Transformation of a loop.
#[derive(Clone, Debug)]
pub(super) struct GatherPlan {
    pub lp: Op,
    /// True if the iteration order is reversed. Steps refer to the new order.
    pub reversed: bool,
    pub chains: Vec<Chain>,
    /// Pairs of address ranges that must be disjoint.
    pub tests: Vec<(SteppingPointer, Reach)>,
    /// Pointers that the loop stores to.
    pub stored: Vec<SteppingPointer>,
}

/// Loop under analysis, in one of both iteration orders.
struct OrderedLoop<'a> {
    alias: &'a Alias<'a>,
    facts: &'a PassContext<'a>,
    lp: Op,
    reversed: bool,
    adds: &'a [Add],
    others: &'a [MemoryAccess],
}

/// Returns the plan for a loop with the given adds, if profitable.
pub(super) fn plan(alias: &Alias, facts: &PassContext, lp: Op, adds: &[Add]) -> Option<GatherPlan> {
    let body = alias.body;
    let trips = body.operand(lp, 0);
    let runs = body.as_int(alias.unit, trips);
    let wide = alias.unit.types.int_bits(body.ty(trips)) == Some(64);
    // A narrower index might wrap in the address computation.
    if !wide || runs.is_some_and(|n| (0..TRIPS_MIN).contains(&n)) {
        return None;
    }
    let region = body.op_regions(lp)[0];
    let others = other_accesses(alias.unit, body, facts, region, adds);
    let seen = |turned| OrderedLoop {
        alias,
        facts,
        lp,
        reversed: turned,
        adds,
        others: &others,
    };
    seen(true).reversed_plan().or_else(|| {
        let seen = seen(false);
        let (chains, tests) = seen.choose_chains();
        (!chains.is_empty()).then(|| seen.plan(chains, tests))
    })
}

impl OrderedLoop<'_> {
    fn plan(&self, chains: Vec<Chain>, tests: Vec<(SteppingPointer, Reach)>) -> GatherPlan {
        let mut stored = self.stored_pointers();
        let put_off = |ptr: Value| {
            let mut all = chains.iter().flat_map(|c| &c.adds);
            all.any(|d| d.delay > 0 && d.add.ptr == ptr)
        };
        stored.retain(|place| !put_off(place.ptr));
        GatherPlan {
            lp: self.lp,
            reversed: self.reversed,
            chains,
            tests,
            stored,
        }
    }

    /// Returns the legal chains with their run-time tests.
    fn choose_chains(&self) -> (Vec<Chain>, Vec<(SteppingPointer, Reach)>) {
        let (mut chosen, mut tests) = (Vec::new(), Vec::new());
        let mut carried = 0;
        for chain in self.group_chains() {
            let adds: Vec<Add> = chain.adds.iter().map(|d| d.add).collect();
            let reach = Reach {
                pointer: chain.pointer.clone(),
                extra_steps: chain.delay_max,
            };
            let Some(list) = self.alias_tests(&adds, Some(&reach)) else {
                continue;
            };
            if carried + chain.delay_max > CARRIED_MAX || tests.len() + list.len() > TESTS_MAX {
                continue;
            }
            carried += chain.delay_max;
            tests.extend(list);
            chosen.push(chain);
        }
        (chosen, tests)
    }

    /// Returns the plan for the reversed loop, if the loop runs backwards and only adds are dependences
    /// between iterations.
    fn reversed_plan(&self) -> Option<GatherPlan> {
        let stored = self.stored_pointers();
        let backwards = stored.iter().filter(|p| p.step > 0).count();
        if 2 * backwards <= stored.len()
            || !carried_values_reorder(self.alias.body, self.lp)
            || !self.other_accesses_reorder()
        {
            return None;
        }
        let (chains, mut tests) = self.choose_chains();
        let in_chain = |add: &Add| {
            let mut all = chains.iter().flat_map(|c| &c.adds);
            all.any(|d| d.add.store == add.store)
        };
        for add in self.adds.iter().filter(|add| !in_chain(add)) {
            let place = self
                .stepping_pointer(add.ptr, add.store)
                .map(|(_, place)| place);
            let reach = place.map(|place| Reach {
                pointer: place,
                extra_steps: 0,
            });
            tests.extend(self.alias_tests(&[*add], reach.as_ref())?);
        }
        let pays = tests.is_empty() || !chains.is_empty() && tests.len() <= TESTS_MAX;
        pays.then(|| self.plan(chains, tests))
    }

    /// Returns whether the accesses other than adds allow any iteration order.
    fn other_accesses_reorder(&self) -> bool {
        let frame = self.alias.nest.enclosing_loop(self.lp);
        let writes = self.others.iter().filter(|a| a.is_clobber());
        writes.clone().count() <= TESTS_MAX
            && writes.clone().all(|a| {
                let mut rest = self.others.iter();
                rest.all(|b| {
                    self.is_distinct_per_iteration(a, b)
                        || !self.alias.may_alias_within(a, b, frame)
                })
            })
    }

    /// Returns whether two accesses have the same address, distinct in each iteration.
    fn is_distinct_per_iteration(&self, a: &MemoryAccess, b: &MemoryAccess) -> bool {
        let place = a.ptr().and_then(|ptr| self.stepping_pointer(ptr, a.op));
        a.ptr() == b.ptr() && place.is_some_and(|(_, p)| p.step.abs() >= p.bytes)
    }

    /// Returns the tests which ensure that no other access aliases the adds during the loop. Accesses of an
    /// iteration to the location of an add without delay are exempt. `None` if an alias cannot be tested.
    fn alias_tests(
        &self,
        adds: &[Add],
        reach: Option<&Reach>,
    ) -> Option<Vec<(SteppingPointer, Reach)>> {
        let frame = self.alias.nest.enclosing_loop(self.lp);
        let (unit, body) = (self.alias.unit, self.alias.body);
        let stores = adds.iter();
        let own: Vec<MemoryAccess> = stores
            .flat_map(|add| self.facts.effects.of_op(unit, body, add.store))
            .collect();
        let mut found: Vec<(SteppingPointer, Reach)> = Vec::new();
        for other in self.others {
            let meets = |x: &MemoryAccess| {
                let stays = reach.is_none_or(|reach| reach.extra_steps == 0);
                !(stays && self.is_distinct_per_iteration(x, other))
                    && self.alias.may_alias_within(x, other, frame)
            };
            if !own.iter().any(meets) {
                continue;
            }
            let ptr = other.ptr()?;
            if found.iter().all(|(known, _)| known.ptr != ptr) {
                found.push((self.stepping_pointer(ptr, other.op)?.1, reach?.clone()));
            }
        }
        Some(found)
    }

    /// Returns the pointers that the loop stores to, if they advance by a constant.
    fn stored_pointers(&self) -> Vec<SteppingPointer> {
        let body = self.alias.body;
        let mut found: Vec<SteppingPointer> = Vec::new();
        for op in body.ops_in(body.op_regions(self.lp)[0]) {
            if !matches!(body.kind(op), OpKind::Store(_)) {
                continue;
            }
            let ptr = body.operand(op, 1);
            if found.iter().all(|known| known.ptr != ptr) {
                found.extend(self.stepping_pointer(ptr, op).map(|(_, place)| place));
            }
        }
        found
    }

    /// Groups adds whose addresses differ by a small number of loop steps.
    fn group_chains(&self) -> Vec<Chain> {
        let mut groups: Vec<(Affine, SteppingPointer, Vec<(i64, Add)>)> = Vec::new();
        for &add in self.adds {
            let Some((form, place)) = self.stepping_pointer(add.ptr, add.store) else {
                continue;
            };
            if place.step.abs() < place.bytes {
                continue;
            }
            let constant = form.constant;
            let known = groups.iter_mut().find(|(other, _, list)| {
                let differ = constant.wrapping_sub(other.constant);
                differs_by_constant(&form, other)
                    && differ % place.step == 0
                    && has_same_access_kind(self.alias.body, &list[0].1, &add)
            });
            match known {
                Some((other, _, list)) => {
                    let steps = constant.wrapping_sub(other.constant) / place.step;
                    list.push((steps, add));
                }
                None => groups.push((form, place, vec![(0, add)])),
            }
        }
        let lists = groups.into_iter().map(|(_, _, list)| list);
        lists.flat_map(|list| self.split_by_delay(list)).collect()
    }

    /// Splits a list of adds with their distances in steps into chains of bounded delay.
    fn split_by_delay(&self, mut list: Vec<(i64, Add)>) -> Vec<Chain> {
        list.sort_by_key(|(steps, _)| *steps);
        let mut found = Vec::new();
        let mut rest = list.as_slice();
        while let Some((first, add)) = rest.first() {
            let near = rest.partition_point(|(steps, _)| steps.saturating_sub(*first) <= DELAY_MAX);
            let (now, later) = rest.split_at(near);
            rest = later;
            let delay = |(steps, add): &(i64, Add)| DelayedAdd {
                add: *add,
                delay: (steps - first) as u32,
            };
            let adds: Vec<DelayedAdd> = now.iter().map(delay).collect();
            let longest = adds.last().map_or(0, |d| d.delay);
            if let (1.., Some((_, place))) = (longest, self.stepping_pointer(add.ptr, add.store)) {
                found.push(Chain {
                    adds,
                    delay_max: longest,
                    pointer: place,
                });
            }
        }
        found
    }

    /// Returns the address of an access as an affine function of the loop's index, if computable before the
    /// loop.
    fn stepping_pointer(&self, ptr: Value, access: Op) -> Option<(Affine, SteppingPointer)> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let form = affine(self.alias, ptr, Some(self.lp))?;
        let step = form.constant_step(self.lp)?;
        if form.terms.iter().any(|term| term.lp != self.lp) {
            return None;
        }
        let stored = body.operands(access).next().filter(|v| *v != ptr);
        let ty = body.ty(stored.unwrap_or_else(|| body.result(access)));
        let bytes = i64::try_from(unit.layout.size_bytes(unit, ty)).ok()?;
        let ops = address_slice(unit, body, self.lp, ptr)?;
        let step = if self.reversed {
            step.checked_neg()?
        } else {
            step
        };
        let moving = SteppingPointer {
            ptr,
            step,
            bytes,
            ops,
        };
        Some((form, moving))
    }
}

/// Returns the accesses of a loop except those of its adds.
fn other_accesses(
    unit: &Unit,
    body: &Body,
    facts: &PassContext,
    region: Region,
    adds: &[Add],
) -> Vec<MemoryAccess> {
    let own: HashSet<Op> = adds.iter().flat_map(|a| [a.load, a.store]).collect();
    body.ops_in(region)
        .filter(|op| !own.contains(op))
        .flat_map(|op| facts.effects.of_op(unit, body, op))
        .collect()
}

/// Returns whether each carried value of a loop is invariant or a sum with `reassoc` that no other op of the
/// loop reads.
pub(super) fn carried_values_reorder(body: &Body, lp: Op) -> bool {
    let region = body.op_regions(lp)[0];
    let params = body.region_params(region)[1..].iter().copied();
    body.last(region).is_some_and(|end| {
        let mut pairs = params.zip(body.operands(end));
        pairs.all(|(param, next)| param == next || is_reassociable_sum(body, region, param, next))
    })
}

/// Returns whether `next` is `param` plus contributions of the iteration, by a chain of adds with `reassoc`
/// and no other uses.
fn is_reassociable_sum(body: &Body, region: Region, param: Value, next: Value) -> bool {
    let mut at = param;
    loop {
        let mut uses = body.uses(at);
        let (Some(only), None) = (uses.next(), uses.next()) else {
            return false;
        };
        if at == next {
            return *body.kind(only.op) == OpKind::Yield;
        }
        let sum = matches!(body.kind(only.op), OpKind::Binary(BinaryOp::FAdd));
        let regroups = body.ops[only.op].flags.has(Flags::REASSOC);
        if !sum || !regroups || body.parent(only.op) != Some(region) {
            return false;
        }
        at = body.result(only.op);
    }
}

/// Returns whether two affine forms are equal except for the constant.
fn differs_by_constant(a: &Affine, b: &Affine) -> bool {
    a.start == b.start && a.invariant == b.invariant && a.terms == b.terms
}

/// Returns whether two adds access memory identically (op kind, metadata and type).
fn has_same_access_kind(body: &Body, a: &Add, b: &Add) -> bool {
    [(a.load, b.load), (a.store, b.store)]
        .into_iter()
        .all(|(x, y)| body.kind(x) == body.kind(y) && body.ops[x].meta == body.ops[y].meta)
        && body.ty(a.addend) == body.ty(b.addend)
}

/// Returns the ops in a loop that compute a value from the index and outside values.
fn address_slice(unit: &Unit, body: &Body, lp: Op, value: Value) -> Option<Vec<Op>> {
    let region = body.op_regions(lp)[0];
    let index = body.region_params(region)[0];
    let mut found: HashSet<Op> = HashSet::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        match body.values[value].def {
            Definition::Param(at, _) if at == region && value != index => return None,
            Definition::Result(op, _) if body.parent(op) == Some(region) => {
                if !gradus_edit::is_pure(unit, body, op) || found.len() >= ADDRESS_OPS_MAX {
                    return None;
                }
                if found.insert(op) {
                    work.extend(body.operands(op));
                }
            }
            _ => {}
        }
    }
    Some(
        body.ops_in(region)
            .filter(|op| found.contains(op))
            .collect(),
    )
}
