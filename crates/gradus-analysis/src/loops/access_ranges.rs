//! Access ranges: the bytes that a body touches behind each base pointer available at one op, as
//! expressions over values available there. Run-time overlap checks compare the ranges.
//!
//! Interval arithmetic over the index computations (Moore, *Interval Analysis*, 1966): a loop index ranges
//! from 0 to its trip count minus one; selects and region results give the hull of their arms. The bounds
//! hold in the integers. If the bounds, computed in 128 bits, lie within ±2⁶², they also hold for machine
//! addresses, because sums and products modulo 2⁶⁴ then did not wrap. Otherwise the check must fail.
//! Narrower sums and products that may wrap by their flags, and operands of extensions and truncations,
//! count as exact integers under an explicit condition. Optimisers that reassociate an index computation
//! drop its no-wrap flags.

use crate::loops::affine::index_of;
use crate::loops::guarded_bounds;
use crate::loops::guarded_bounds::GuardedBound;
use crate::loops::trip_counts::Availability;
use crate::memory::alias::Alias;
use crate::memory::effects::{AccessKind, Effects, MemoryAccess, MemoryRegion};
use crate::scev::poly::{BaseValue, Poly};
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{BinaryOp, CastOp, ConstKind, Definition, Entity, Op, OpKind, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// Index of a [`Bound`] in [`AccessRanges::bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoundId(pub u32);

/// An integer expression, evaluated in 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// A constant.
    Constant(i64),
    /// A value of at most 64 bits, sign-extended.
    Signed(Value),
    /// A value of at most 64 bits, zero-extended.
    Unsigned(Value),
    /// A sum.
    Add(BoundId, BoundId),
    /// A product.
    Mul(BoundId, BoundId),
    /// The minimum.
    Min(BoundId, BoundId),
    /// The maximum.
    Max(BoundId, BoundId),
}

/// A precondition of the bounds: a range of integers lies within constant limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Lower and upper end of the range.
    pub range: (BoundId, BoundId),
    /// Smallest and largest permitted integer.
    pub within: (i64, i64),
}

/// The bytes touched behind one base pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseRange {
    /// The base pointer.
    pub root: BaseValue,
    /// True if some byte is read.
    pub reads: bool,
    /// True if some byte is written or freed, or its lifetime changes.
    pub writes: bool,
    /// First byte and end (exclusive), relative to the base pointer; `None` if no bounds are known.
    pub range: Option<(BoundId, BoundId)>,
}

/// The bytes touched behind each base pointer available at one op.
#[derive(Clone, Debug, Default)]
pub struct AccessRanges {
    /// The expressions; operands precede their uses.
    pub bounds: Vec<Bound>,
    /// The preconditions of the ranges.
    pub conditions: Vec<Condition>,
    /// The base pointers, in order of first use.
    pub roots: Vec<BaseRange>,
    /// Accesses through pointers not available at the op; [`Alias::objects`] returns their objects.
    pub others: Vec<MemoryAccess>,
}

impl AccessRanges {
    /// Returns the ranges of all accesses from `at` to the body's end, in terms of values available before
    /// `at`. `at` must be outside all loops.
    pub fn of(availability: &Availability, effects: &Effects, at: Op) -> AccessRanges {
        let alias = availability.clobbers().alias;
        let later = |op: &Op| alias.nest.order(*op) >= alias.nest.order(at);
        let ops = alias.body.walk(alias.body.root()).filter(later);
        AccessRanges::of_ops(availability, effects, ops, at)
    }

    /// Returns the ranges of the accesses of `ops`, in terms of values available before `at`. The ops run
    /// in or after `at`.
    pub fn of_ops(
        availability: &Availability,
        effects: &Effects,
        ops: impl Iterator<Item = Op>,
        at: Op,
    ) -> AccessRanges {
        let alias = availability.clobbers().alias;
        let mut finder = Finder {
            alias,
            availability,
            at,
            ids: HashMap::new(),
            ranges: vec![None; alias.body.values.len()],
            wrapping: HashSet::new(),
            conditions: HashMap::new(),
            found: AccessRanges::default(),
            positions: BTreeMap::new(),
        };
        for op in ops {
            for access in effects.of_op(alias.unit, alias.body, op) {
                finder.access(&access);
            }
        }
        finder.found
    }

    /// Returns the range behind a base pointer.
    pub fn of_root(&self, root: BaseValue) -> Option<&BaseRange> {
        self.roots.iter().find(|extent| extent.root == root)
    }
}

type Range = Option<(BoundId, BoundId)>;

/// Maximal number of expressions for one op.
const MAX_BOUNDS: usize = 4096;

struct Finder<'a> {
    alias: &'a Alias<'a>,
    availability: &'a Availability<'a>,
    at: Op,
    ids: HashMap<Bound, BoundId>,
    /// `None`: not computed yet.
    ranges: Vec<Option<Range>>,
    /// Values whose computation may wrap. Their ranges hold modulo 2⁶⁴.
    wrapping: HashSet<Value>,
    /// The preconditions of a value's range, without those of its operands. An entry moves to `found` once
    /// the range is used.
    conditions: HashMap<Value, Condition>,
    found: AccessRanges,
    positions: BTreeMap<(u8, usize), usize>,
}

impl Finder<'_> {
    fn access(&mut self, access: &MemoryAccess) {
        let root = match access.place {
            MemoryRegion::At(ptr) => {
                let (unit, body) = (self.alias.unit, self.alias.body);
                self.alias.forms.of_pointer(unit, body, ptr).root
            }
            MemoryRegion::Global(global) => BaseValue::Global(global),
            MemoryRegion::Errno | MemoryRegion::Inaccessible => return,
            MemoryRegion::Reachable | MemoryRegion::Frame => {
                return self.found.others.push(*access);
            }
        };
        if let BaseValue::Value(value) = root
            && self.availability.ops_before(value, self.at).is_none()
        {
            return self.found.others.push(*access);
        }
        let range = self.bytes(access);
        let key = match root {
            BaseValue::Value(value) => (0, value.index()),
            BaseValue::Global(global) => (1, global.index()),
        };
        let next = self.found.roots.len();
        let position = *self.positions.entry(key).or_insert(next);
        let reads = access.kind == AccessKind::Read;
        if position == next {
            self.found.roots.push(BaseRange {
                root,
                reads,
                writes: !reads,
                range,
            });
            return;
        }
        let old = self.found.roots[position].range;
        let hull = self.hull(old, range);
        let extent = &mut self.found.roots[position];
        extent.reads |= reads;
        extent.writes |= !reads;
        extent.range = hull;
    }

    /// Returns the bytes of one access.
    fn bytes(&mut self, access: &MemoryAccess) -> Range {
        let MemoryRegion::At(ptr) = access.place else {
            return None;
        };
        let size = match (access.size, access.count) {
            (Some(size), _) => self.constant(i64::try_from(size).ok()?),
            (None, Some(count)) => {
                self.availability.ops_before(count, self.at)?;
                self.node(Bound::Unsigned(count))
            }
            _ => return None,
        };
        let (low, high) = self.range_of(ptr)?;
        self.require_conditions(ptr);
        let offset = self.constant(access.offset);
        let (low, high) = (self.add(low, offset), self.add(high, offset));
        Some((low, self.add(high, size)))
    }

    /// Records the preconditions of a used value and, transitively, of its operands.
    fn require_conditions(&mut self, value: Value) {
        let mut work = vec![value];
        let mut seen: HashSet<Value> = HashSet::new();
        while let Some(value) = work.pop() {
            if seen.insert(value) {
                self.found.conditions.extend(self.conditions.remove(&value));
                work.extend(self.range_operands(value));
            }
        }
    }

    // ---- expressions -----------------------------------------------------------------------

    fn node(&mut self, bound: Bound) -> BoundId {
        let next = BoundId(self.found.bounds.len() as u32);
        let id = *self.ids.entry(bound).or_insert(next);
        if id == next {
            self.found.bounds.push(bound);
        }
        id
    }
    fn constant(&mut self, n: i64) -> BoundId {
        self.node(Bound::Constant(n))
    }
    fn number(&self, id: BoundId) -> Option<i64> {
        match self.found.bounds[id.0 as usize] {
            Bound::Constant(n) => Some(n),
            _ => None,
        }
    }
    fn add(&mut self, a: BoundId, b: BoundId) -> BoundId {
        match (self.number(a), self.number(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(x), Some(y)) if x.checked_add(y).is_some() => self.constant(x + y),
            _ => self.node(Bound::Add(a, b)),
        }
    }
    fn mul(&mut self, a: BoundId, b: BoundId) -> BoundId {
        match (self.number(a), self.number(b)) {
            (Some(1), _) => b,
            (_, Some(1)) => a,
            (Some(0), _) | (_, Some(0)) => self.constant(0),
            (Some(x), Some(y)) if x.checked_mul(y).is_some() => self.constant(x * y),
            _ => self.node(Bound::Mul(a, b)),
        }
    }
    fn min(&mut self, a: BoundId, b: BoundId) -> BoundId {
        match (self.number(a), self.number(b)) {
            _ if a == b => a,
            (Some(x), Some(y)) => self.constant(x.min(y)),
            _ => self.node(Bound::Min(a.min(b), a.max(b))),
        }
    }
    fn max(&mut self, a: BoundId, b: BoundId) -> BoundId {
        match (self.number(a), self.number(b)) {
            _ if a == b => a,
            (Some(x), Some(y)) => self.constant(x.max(y)),
            _ => self.node(Bound::Max(a.min(b), a.max(b))),
        }
    }
    fn hull(&mut self, a: Range, b: Range) -> Range {
        let ((a, b), (c, d)) = (a?, b?);
        Some((self.min(a, c), self.max(b, d)))
    }
    fn sum(&mut self, a: Range, b: Range) -> Range {
        let ((a, b), (c, d)) = (a?, b?);
        Some((self.add(a, c), self.add(b, d)))
    }
    fn product(&mut self, a: Range, b: Range) -> Range {
        let ((a, b), (c, d)) = (a?, b?);
        let ends = [
            self.mul(a, c),
            self.mul(a, d),
            self.mul(b, c),
            self.mul(b, d),
        ];
        let low = ends.into_iter().reduce(|x, y| self.min(x, y))?;
        let high = ends.into_iter().reduce(|x, y| self.max(x, y))?;
        Some((low, high))
    }

    // ---- values ----------------------------------------------------------------------------

    /// Returns the range of an integer, sign-extended, or of a pointer's offset from its base. An explicit
    /// stack processes operands first.
    fn range_of(&mut self, value: Value) -> Range {
        let mut work = vec![(value, false)];
        while let Some((value, operands_done)) = work.pop() {
            if self.ranges[value.index()].is_some() {
                continue;
            }
            if operands_done {
                let range = match self.found.bounds.len() {
                    0..MAX_BOUNDS => self.combine(value),
                    _ => None,
                };
                if self.may_wrap(value) {
                    self.wrapping.insert(value);
                }
                self.ranges[value.index()] = Some(range);
                continue;
            }
            match self.leaf(value) {
                Some(range) => self.ranges[value.index()] = Some(range),
                None => {
                    work.push((value, true));
                    work.extend(
                        self.range_operands(value)
                            .into_iter()
                            .map(|part| (part, false)),
                    );
                }
            }
        }
        self.ranges[value.index()].flatten()
    }

    fn known(&self, value: Value) -> Range {
        self.ranges[value.index()].flatten()
    }

    /// Returns the range of a value without operands to inspect, and `None` for a value that depends on
    /// operands.
    fn leaf(&mut self, value: Value) -> Option<Range> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        if unit.types.is_ptr(body.ty(value)) {
            let zero = self.constant(0);
            return (!self.is_compound(value)).then_some(Some((zero, zero)));
        }
        if unit.types.int_bits(body.ty(value)).is_none_or(|b| b > 64) {
            return Some(None);
        }
        if let Some(n) = body.as_int(unit, value) {
            let n = self.constant(n);
            return Some(Some((n, n)));
        }
        if self.is_undef_or_poison(value) {
            return Some(None);
        }
        if self.availability.ops_before(value, self.at).is_some() {
            let leaf = self.node(Bound::Signed(value));
            return Some(Some((leaf, leaf)));
        }
        None
    }

    fn constant_kind(&self, value: Value) -> Option<&ConstKind> {
        self.alias.body.const_kind(self.alias.unit, value)
    }

    /// Returns true if a value is undef or poison.
    fn is_undef_or_poison(&self, value: Value) -> bool {
        self.alias.body.is_undef_or_poison(self.alias.unit, value)
    }

    /// Returns the values from whose ranges the range of `value` is computed.
    fn range_operands(&self, value: Value) -> Vec<Value> {
        let body = self.alias.body;
        if self.is_compound(value) {
            let form = self.form(value);
            return form
                .terms
                .iter()
                .flat_map(|(product, _)| product)
                .copied()
                .collect();
        }
        match body.values[value].def {
            Definition::Const(_) => Vec::new(),
            Definition::Param(..) => index_of(self.alias, value)
                .map(|(lp, dim)| body.operand(lp, dim as usize))
                .into_iter()
                .collect(),
            Definition::Result(op, number) => match body.kind(op) {
                // A region that yields poison is not executed if the value is used.
                OpKind::If | OpKind::Switch(_) => body
                    .op_regions(op)
                    .iter()
                    .filter_map(|region| body.yield_of(*region))
                    .map(|end| body.operand(end, number as usize))
                    .filter(|arm| self.constant_kind(*arm) != Some(&ConstKind::Poison))
                    .collect(),
                OpKind::Select => {
                    let condition = body.operand(op, 0);
                    let compared = body.def_op(condition).into_iter();
                    compared
                        .flat_map(|c| body.operands(c))
                        .chain(body.operands(op).skip(1))
                        .collect()
                }
                OpKind::Cast(CastOp::ZExt | CastOp::Trunc) => {
                    let inner = index_of(self.alias, value).is_none();
                    body.operands(op).filter(|_| inner).collect()
                }
                OpKind::Binary(
                    BinaryOp::And | BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl,
                )
                | OpKind::Call(_) => body.operands(op).collect(),
                _ => Vec::new(),
            },
        }
    }

    /// Returns true if a value's polynomial form decomposes it.
    fn is_compound(&self, value: Value) -> bool {
        let (unit, body) = (self.alias.unit, self.alias.body);
        if unit.types.is_ptr(body.ty(value)) {
            let root = self.alias.forms.of_pointer(unit, body, value).root;
            return root != BaseValue::Value(value);
        }
        let form = self.form(value);
        !matches!(form.terms.as_slice(), [(product, 1)] if product.as_slice() == [value])
    }

    /// Returns the polynomial form of an integer, or of a pointer's offset from its base.
    fn form(&self, value: Value) -> Rc<Poly> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        match unit.types.is_ptr(body.ty(value)) {
            true => self.alias.forms.of_pointer(unit, body, value).offset,
            false => self.alias.forms.of_integer(unit, body, value),
        }
    }

    /// Returns the range of a polynomial form from the ranges of its atoms.
    fn range_of_form(&mut self, value: Value) -> Range {
        let form = self.form(value);
        let constant = self.constant(form.constant);
        let mut range = Some((constant, constant));
        for (product, factor) in &form.terms {
            let mut part = {
                let factor = self.constant(*factor);
                Some((factor, factor))
            };
            for atom in product {
                let known = self.known(*atom);
                part = self.product(part, known);
            }
            range = self.sum(range, part);
        }
        range
    }

    fn combine(&mut self, value: Value) -> Range {
        if self.is_compound(value) {
            return self.range_of_form(value);
        }
        if index_of(self.alias, value).is_some() {
            return self.index(value);
        }
        let body = self.alias.body;
        let op = body.def_op(value)?;
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                let arms = self.range_operands(value);
                let first = self.known(*arms.first()?);
                arms.iter().fold(first, |hull, arm| {
                    let range = self.known(*arm);
                    self.hull(hull, range)
                })
            }
            OpKind::Select => {
                let (a, b) = (
                    self.select_arm_range(op, true),
                    self.select_arm_range(op, false),
                );
                self.hull(a, b)
            }
            OpKind::Cast(CastOp::ZExt) => {
                let range = self.exact(op, 0)?;
                self.on_condition(value, range, (0, i64::MAX))
            }
            OpKind::Cast(CastOp::Trunc) => {
                let range = self.exact(op, 0)?;
                self.without_wrap(value, range)
            }
            OpKind::Binary(BinaryOp::And) => self.masked(op),
            OpKind::Binary(kind) => {
                let (a, b) = (self.exact(op, 0), self.exact(op, 1));
                let range = match kind {
                    BinaryOp::Add => self.sum(a, b),
                    BinaryOp::Sub => {
                        let minus = self.constant(-1);
                        let b = self.product(b, Some((minus, minus)));
                        self.sum(a, b)
                    }
                    BinaryOp::Mul => self.product(a, b),
                    BinaryOp::Shl => {
                        let (least, most) = b?;
                        let by = self.number(least).filter(|_| least == most);
                        let by = by.filter(|by| (0..62).contains(by))?;
                        let factor = self.constant(1 << by);
                        self.product(a, Some((factor, factor)))
                    }
                    _ => None,
                };
                self.without_wrap(value, range?)
            }
            OpKind::Call(_) => self.call(op),
            _ => None,
        }
    }

    fn may_wrap(&self, value: Value) -> bool {
        (self.is_compound(value) && !self.form(value).exact)
            || (self.range_operands(value).iter()).any(|part| self.wrapping.contains(part))
    }

    /// Returns the range of one operand of a `select`, refined by the condition on that side.
    fn select_arm_range(&mut self, op: Op, side: bool) -> Range {
        let body = self.alias.body;
        let (condition, value) = (
            body.operand(op, 0),
            body.operand(op, if side { 1 } else { 2 }),
        );
        let range = self.known(value);
        match guarded_bounds::of(self.alias, condition, side, value) {
            Some(GuardedBound::AtLeast(least)) => {
                let (low, high) = range?;
                let least = self.constant(least);
                Some((self.max(low, least), high))
            }
            Some(GuardedBound::AtMost(limit, more)) => {
                let (low, high) = range?;
                let (Some((_, limit)), more) = (self.known(limit), self.constant(more)) else {
                    return range;
                };
                let limit = self.add(limit, more);
                Some((low, self.min(high, limit)))
            }
            None => range,
        }
    }

    /// Returns the range of an operand if it holds in the integers.
    fn exact(&self, op: Op, index: usize) -> Range {
        let value = self.alias.body.operand(op, index);
        self.known(value)
            .filter(|_| !self.wrapping.contains(&value))
    }

    /// Returns the range of a wrapping computation under the condition that nothing wraps.
    fn without_wrap(&mut self, value: Value, range: (BoundId, BoundId)) -> Range {
        let bits = self
            .alias
            .unit
            .types
            .int_bits(self.alias.body.ty(value))
            .filter(|bits| (8..=64).contains(bits))?;
        let half = 1i64 << (bits - 1).min(62);
        self.on_condition(value, range, (-half, half - 1))
    }

    fn on_condition(
        &mut self,
        value: Value,
        range: (BoundId, BoundId),
        within: (i64, i64),
    ) -> Range {
        match (self.number(range.0), self.number(range.1)) {
            (Some(low), Some(high)) => {
                (within.0 <= low && high <= within.1).then_some(())?;
            }
            (Some(low), None) if within == (0, i64::MAX) && low >= 0 => {}
            _ => {
                self.conditions.insert(value, Condition { range, within });
            }
        }
        Some(range)
    }

    fn operand(&self, op: Op, index: usize) -> Range {
        self.known(self.alias.body.operand(op, index))
    }

    /// Returns the range of a loop index: 0 to the trip count minus one; the trip count is at least 1
    /// inside the loop. Requires one of three facts: a 64-bit trip count (no loop runs 2⁶³ times), a trip
    /// count non-negative as a signed number, or a trip count available as an unsigned number.
    fn index(&mut self, value: Value) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let (lp, dim) = index_of(self.alias, value)?;
        let trips = body.operand(lp, dim as usize);
        let (zero, minus_one) = (self.constant(0), self.constant(-1));
        let wide = unit.types.int_bits(body.ty(trips))? == 64;
        if wide || self.alias.forms.intervals.of(unit, body, trips).0 >= 0 {
            let high = self
                .known(trips)
                .filter(|_| !self.wrapping.contains(&trips))?
                .1;
            return Some((zero, self.add(high, minus_one)));
        }
        let extended = body.def_op(value).is_some();
        (extended && self.availability.ops_before(trips, self.at).is_some()).then_some(())?;
        let count = self.node(Bound::Unsigned(trips));
        Some((zero, self.add(count, minus_one)))
    }

    /// Returns the range of `x & mask`: at most the mask, and at most x if x is non-negative.
    fn masked(&mut self, op: Op) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let mask = body.as_int(unit, body.operand(op, 1)).filter(|n| *n >= 0)?;
        let (zero, mask) = (self.constant(0), self.constant(mask));
        let inner = body.operand(op, 0);
        let (low, _) = self.alias.forms.intervals.of(unit, body, inner);
        match self
            .known(inner)
            .filter(|_| low >= 0 && !self.wrapping.contains(&inner))
        {
            Some((_, high)) => Some((zero, self.min(high, mask))),
            None => Some((zero, mask)),
        }
    }

    fn call(&mut self, op: Op) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let known = unit.known_callee(body, op);
        let Some(ExternalFn::Integer(of @ (IntFn::Smax | IntFn::Smin))) = known else {
            return None;
        };
        let ((a, b), (c, d)) = (self.operand(op, 1)?, self.operand(op, 2)?);
        if body.operands(op).any(|part| self.wrapping.contains(&part)) {
            return None;
        }
        Some(match of == IntFn::Smax {
            true => (self.max(a, c), self.max(b, d)),
            false => (self.min(a, c), self.min(b, d)),
        })
    }
}
