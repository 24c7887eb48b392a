//! Reverses loop nests that run backwards through memory, like their innermost loops.
//!
//! The iterations of an outer loop may run in any order if they only add to memory with `reassoc`. In
//! addition, no other access of an iteration may alias an add or a write of another iteration. Alias analysis
//! proves the condition, or a run-time test before the nest does. The test checks that the ranges of two
//! pointers over the whole nest are disjoint, and that the footprint of an outer iteration is at most one
//! step. If the test fails, the outer loop keeps its order. The order is selected at run time, hence the nest
//! is not duplicated.

use super::plan::carried_values_reorder;
use super::{Add, OPS_MAX, build, match_add};
use gradus_analysis::{Affine, AffineTerm, Alias, BaseValue, MemoryAccess, PassContext, affine};
use gradus_ir::{BinaryOp, Body, Builder, CastOp, IntPredicate, Op, OpKind, Region, Unit, Value};

/// Maximum number of address range pairs tested before a nest.
const TESTS_MAX: usize = 8;
/// Minimum outer trip count for a run-time test.
const TRIPS_MIN: i64 = 8;
/// Maximum number of access pairs inspected.
const PAIRS_MAX: usize = 4096;

/// Location accessed in a nest, as an affine function of the loop indices.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NestLocation {
    form: Affine,
    bytes: i64,
}

impl NestLocation {
    /// Returns whether each iteration of `lp` accesses a single element, disjoint from those of other
    /// iterations.
    fn iterations_access_distinct_elements(&self, lp: Op) -> bool {
        let [term] = &self.form.terms[..] else {
            return false;
        };
        let known = term.lp == lp && term.factors.is_empty();
        known
            && term
                .coefficient
                .checked_abs()
                .is_some_and(|step| step >= self.bytes)
    }
}

/// Nest to reverse, with its run-time tests.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    lp: Op,
    /// Pairs of locations that must be disjoint in the whole nest.
    disjoint: Vec<[NestLocation; 2]>,
    /// Locations that must be disjoint between iterations of the outer loop.
    steps_cover_rows: Vec<NestLocation>,
}

/// Returns the nests of a body that may be reversed.
pub(super) fn plan_nests(alias: &Alias, facts: &PassContext) -> Vec<Nest> {
    let body = alias.body;
    let nests = body.walk(body.root());
    nests.filter_map(|lp| plan_nest(alias, facts, lp)).collect()
}

fn plan_nest(alias: &Alias, facts: &PassContext, lp: Op) -> Option<Nest> {
    let (unit, body) = (alias.unit, alias.body);
    let regions = nest_regions(unit, body, lp)?;
    let wide = unit.types.int_bits(body.ty(body.operand(lp, 0))) == Some(64);
    let runs = body.as_int(unit, body.operand(lp, 0));
    let short = runs.is_some_and(|n| (0..TRIPS_MIN).contains(&n));
    if !wide || short || !carried_values_reorder(body, lp) {
        return None;
    }
    let adds: Vec<Add> = regions
        .iter()
        .flat_map(|region| {
            let stores = body.ops_in(*region);
            stores.filter_map(|store| match_add(unit, body, *region, store))
        })
        .collect();
    let own = |op: &Op| adds.iter().any(|a| a.load == *op || a.store == *op);
    let ops = regions.iter().flat_map(|region| body.ops_in(*region));
    let others: Vec<MemoryAccess> = ops
        .filter(|op| !own(op))
        .flat_map(|op| facts.effects.of_op(unit, body, op))
        .collect();
    let stores = adds.iter().map(|a| a.store);
    let added: Vec<MemoryAccess> = stores
        .flat_map(|store| facts.effects.of_op(unit, body, store))
        .filter(MemoryAccess::is_clobber)
        .collect();
    let written = others.iter().filter(|a| a.is_clobber()).chain(&added);
    if !runs_backwards(alias, lp, written.clone())
        || written.clone().count() * others.len() > PAIRS_MAX
    {
        return None;
    }
    let frame = alias.nest.enclosing_loop(lp);
    let mut nest = Nest {
        lp,
        disjoint: Vec::new(),
        steps_cover_rows: Vec::new(),
    };
    for a in written {
        for b in &others {
            if alias.may_alias_within(a, b, frame) {
                nest.record_test(alias, a, b)?;
            }
        }
    }
    Some(nest)
}

/// Returns the regions of a nest of at least two loops that contains only counted loops, branches, plain
/// accesses and pure ops.
fn nest_regions(unit: &Unit, body: &Body, lp: Op) -> Option<Vec<Region>> {
    let counted = |op: Op| matches!(body.kind(op), OpKind::For { .. }) && !body.is_independent(op);
    if !counted(lp) {
        return None;
    }
    let mut regions = body.op_regions(lp).to_vec();
    let mut nested = false;
    for (number, op) in body.walk(body.op_regions(lp)[0]).enumerate() {
        let plain = match body.kind(op) {
            OpKind::Load(access) | OpKind::Store(access) => access.is_plain(),
            OpKind::Yield | OpKind::If => true,
            OpKind::For { .. } => counted(op),
            _ => body.op_regions(op).is_empty() && gradus_edit::is_pure(unit, body, op),
        };
        if !plain || number == OPS_MAX {
            return None;
        }
        nested |= matches!(body.kind(op), OpKind::For { .. });
        regions.extend(body.op_regions(op));
    }
    nested.then_some(regions)
}

/// Returns whether more written addresses decrease than increase with the outer index. Indirect accesses
/// count for neither direction.
fn runs_backwards<'a>(
    alias: &Alias,
    lp: Op,
    written: impl Iterator<Item = &'a MemoryAccess>,
) -> bool {
    let (mut down, mut up) = (0, 0);
    for access in written {
        let form = access.ptr().and_then(|ptr| affine(alias, ptr, Some(lp)));
        let steps = |way: i64| {
            let terms = form.iter().flat_map(|form| form.terms_of(lp));
            usize::from(
                terms
                    .map(|t| t.coefficient.signum())
                    .any(|sign| sign == way),
            )
        };
        down += steps(-1);
        up += steps(1);
    }
    down > up
}

impl Nest {
    /// Records the test for two accesses of different iterations to be disjoint; `None` if a test is
    /// impossible.
    fn record_test(&mut self, alias: &Alias, a: &MemoryAccess, b: &MemoryAccess) -> Option<()> {
        let place = |access| location_of(alias, self.lp, access);
        if a.ptr() == b.ptr() && a.size == b.size {
            let place = place(a)?;
            let steps = place.form.terms_of(self.lp).count() == 1;
            if !place.iterations_access_distinct_elements(self.lp)
                && !self.steps_cover_rows.contains(&place)
            {
                self.steps_cover_rows.push(place);
            }
            return steps.then_some(());
        }
        let pair = [place(a)?, place(b)?];
        if !self.disjoint.contains(&pair) {
            self.disjoint.push(pair);
        }
        (self.disjoint.len() + self.steps_cover_rows.len() <= TESTS_MAX).then_some(())
    }
}

/// Returns the location of an access, if computable before the nest.
fn location_of(alias: &Alias, lp: Op, access: &MemoryAccess) -> Option<NestLocation> {
    let body = alias.body;
    let around = body.parent(lp)?;
    let visible = |value: &Value| body.is_visible_in(*value, around);
    let form = affine(alias, access.ptr()?, Some(lp))?;
    let Some(BaseValue::Value(start)) = form.start else {
        return None;
    };
    let known = visible(&start)
        && form
            .invariant
            .iter()
            .all(|(product, _)| product.iter().all(visible))
        && form.terms.iter().all(|term| {
            let trips = body.operand(term.lp, 0);
            term.dim == 0 && visible(&trips) && term.factors.iter().all(visible)
        });
    let bytes = i64::try_from(access.size?).ok()?;
    (known && access.offset == 0).then_some(NestLocation { form, bytes })
}

/// Reverses the outer loop of a nest, subject to the run-time tests.
pub(super) fn reverse_nest(unit: &mut Unit, body: &mut Body, nest: &Nest) {
    if nest.disjoint.is_empty() && nest.steps_cover_rows.is_empty() {
        return build::reverse_loop(unit, body, nest.lp);
    }
    let region = body.op_regions(nest.lp)[0];
    let index = body.region_params(region)[0];
    let Some(first) = body.first(region) else {
        unreachable!("a verified region has a terminator");
    };
    let mut b = Builder::new(unit, body);
    b.loc = b.body.ops[nest.lp].loc;
    b.set_insertion_before(nest.lp);
    let trips = b.body.operand(nest.lp, 0);
    let (ty, bit) = (b.body.ty(trips), b.unit.types.int(1));
    let runs = b.int(ty, i128::from(TRIPS_MIN));
    let long = b.icmp(IntPredicate::Uge, trips, runs);
    let (tested, yes, no) = b.if_(long, &[bit]);
    b.set_insertion_end(yes);
    let mut all: Option<Value> = None;
    for condition in emit_conditions(&mut b, nest) {
        all = Some(match all {
            Some(before) => b.binary(BinaryOp::And, before, condition),
            None => condition,
        });
    }
    b.yield_(all.as_slice());
    b.set_insertion_end(no);
    let never = b.bool(false);
    b.yield_(&[never]);
    let turned = b.body.result(tested);
    b.set_insertion_before(first);
    let last = build::last_index(&mut b, nest.lp);
    let from_end = b.sub(last, index);
    let chosen = b.select(turned, from_end, index);
    b.body.replace_uses(index, chosen);
    for value in [from_end, chosen] {
        if let Some(op) = b.body.def_op(value) {
            let number = b.body.operand_count(op) - 1;
            b.body.set_operand(op, number, index);
        }
    }
}

fn emit_conditions(b: &mut Builder<'_>, nest: &Nest) -> Vec<Value> {
    let mut found = Vec::new();
    let mut known: Vec<(&NestLocation, [Value; 2])> = Vec::new();
    for pair in &nest.disjoint {
        let mut ends = |b: &mut Builder<'_>, place| emit_extent(b, place, &mut known);
        let [low, high] = ends(b, &pair[0]);
        let [from, to] = ends(b, &pair[1]);
        let below = b.icmp(IntPredicate::Ule, high, from);
        let above = b.icmp(IntPredicate::Ule, to, low);
        found.push(b.binary(BinaryOp::Or, below, above));
    }
    for place in &nest.steps_cover_rows {
        let (mut row, mut step) = (b.i64(place.bytes), b.i64(0));
        for term in &place.form.terms {
            if term.lp == nest.lp {
                let one = emit_product(b, term.coefficient, &term.factors);
                step = emit_abs(b, one);
            } else {
                let way = emit_loop_distance(b, term);
                let way = emit_abs(b, way);
                row = b.add(row, way);
            }
        }
        found.push(b.icmp(IntPredicate::Sle, row, step));
    }
    found
}

/// Emits the first byte and the end of a location's range over the nest, assuming that all loops execute.
fn emit_extent<'p>(
    b: &mut Builder<'_>,
    place: &'p NestLocation,
    known: &mut Vec<(&'p NestLocation, [Value; 2])>,
) -> [Value; 2] {
    if let Some((_, ends)) = known.iter().find(|(other, _)| *other == place) {
        return *ends;
    }
    let mut sum = b.i64(place.form.constant);
    if let Some(BaseValue::Value(start)) = place.form.start {
        let long = b.unit.types.int(64);
        let start = b.cast(CastOp::PtrToInt, start, long);
        sum = b.add(sum, start);
    }
    for (factors, coefficient) in &place.form.invariant {
        let part = emit_product(b, *coefficient, factors);
        sum = b.add(sum, part);
    }
    let (mut low, mut high) = (sum, sum);
    let zero = b.i64(0);
    for term in &place.form.terms {
        let way = emit_loop_distance(b, term);
        let falls = b.icmp(IntPredicate::Slt, way, zero);
        let down = b.select(falls, way, zero);
        let up = b.select(falls, zero, way);
        low = b.add(low, down);
        high = b.add(high, up);
    }
    let bytes = b.i64(place.bytes);
    let ends = [low, b.add(high, bytes)];
    known.push((place, ends));
    ends
}

/// Emits the distance in bytes from the first to the last iteration of a loop.
fn emit_loop_distance(b: &mut Builder<'_>, term: &AffineTerm) -> Value {
    let step = emit_product(b, term.coefficient, &term.factors);
    let last = build::last_index(b, term.lp);
    let long = b.unit.types.int(64);
    let last = b.cast(CastOp::ZExt, last, long);
    b.mul(step, last)
}

fn emit_abs(b: &mut Builder<'_>, way: Value) -> Value {
    let zero = b.i64(0);
    let falls = b.icmp(IntPredicate::Slt, way, zero);
    let back = b.sub(zero, way);
    b.select(falls, back, way)
}

fn emit_product(b: &mut Builder<'_>, coefficient: i64, factors: &[Value]) -> Value {
    let long = b.unit.types.int(64);
    let mut product = b.i64(coefficient);
    for &factor in factors {
        let factor = b.cast(CastOp::SExt, factor, long);
        product = b.mul(product, factor);
    }
    product
}
