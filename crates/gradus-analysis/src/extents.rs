//! Which bytes a body touches behind each pointer that is known at one place, as expressions over
//! values that are known there: what a test made at run time compares.
//!
//! Interval arithmetic over the index computations (Moore, *Interval Analysis*, 1966): loop indices
//! run from 0 to their trip count less one, choices give the hull of both. The bounds hold in the
//! integers; computed in 128 bits and found to lie within ±2⁶², they hold for the machine's addresses
//! too, since sums and products modulo 2⁶⁴ then did not wrap. Where they do not lie there, the test
//! must fail.

use crate::affine::index_of;
use crate::alias::Alias;
use crate::effects::{AccessKind, Effects, MemoryAccess, Place};
use crate::guard::{self, Guard};
use crate::linear::{Linear, Root};
use crate::trips::Availability;
use gradus_ir::known::{IntFn, Known};
use gradus_ir::{BinaryOp, CastOp, ConstKind, Definition, Entity, Flags, Op, OpKind, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// The number of a [`Bound`] in [`Extents::bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoundId(pub u32);

/// An integer, to be computed in 128 bits.
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
    /// The smaller.
    Min(BoundId, BoundId),
    /// The larger.
    Max(BoundId, BoundId),
}

/// What is touched behind one pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootExtent {
    /// The pointer.
    pub root: Root,
    /// Whether something is read.
    pub reads: bool,
    /// Whether something is written, freed or ended.
    pub writes: bool,
    /// From the first byte to the one after the last, counted from the pointer; `None` where no bounds
    /// are known.
    pub range: Option<(BoundId, BoundId)>,
}

/// The bytes touched behind each pointer that is known at one place.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// The expressions; operands come before what uses them.
    pub bounds: Vec<Bound>,
    /// By pointer, in the order of first use.
    pub roots: Vec<RootExtent>,
    /// Accesses through pointers that are not known at the place; their objects are those of
    /// [`Alias::objects`].
    pub others: Vec<MemoryAccess>,
}

impl Extents {
    /// The extents of all accesses from `at`, which stands in no loop, on to the body's end, as known
    /// before `at`.
    pub fn of(availability: &Availability, effects: &Effects, at: Op) -> Extents {
        let alias = availability.clobbers().alias;
        let later = |op: &Op| alias.nest.order(*op) >= alias.nest.order(at);
        let ops = alias.body.walk(alias.body.root()).filter(later);
        Extents::of_ops(availability, effects, ops, at)
    }

    /// The extents of the accesses of some ops, during one run of `at` or of what follows it, as known
    /// before `at`.
    pub fn of_ops(
        availability: &Availability,
        effects: &Effects,
        ops: impl Iterator<Item = Op>,
        at: Op,
    ) -> Extents {
        let alias = availability.clobbers().alias;
        let mut finder = Finder {
            alias,
            availability,
            at,
            ids: HashMap::new(),
            ranges: vec![None; alias.body.values.len()],
            wrapping: HashSet::new(),
            found: Extents::default(),
            positions: BTreeMap::new(),
        };
        for op in ops {
            for access in effects.of_op(alias.unit, alias.body, op) {
                finder.access(&access);
            }
        }
        finder.found
    }

    /// The extent behind a pointer.
    pub fn of_root(&self, root: Root) -> Option<&RootExtent> {
        self.roots.iter().find(|extent| extent.root == root)
    }
}

type Range = Option<(BoundId, BoundId)>;

/// More expressions than this are not made for one place.
const MAX_BOUNDS: usize = 4096;

struct Finder<'a> {
    alias: &'a Alias<'a>,
    availability: &'a Availability<'a>,
    at: Op,
    ids: HashMap<Bound, BoundId>,
    /// `None`: not looked at yet.
    ranges: Vec<Option<Range>>,
    /// Values whose computation may wrap: their ranges hold modulo 2⁶⁴.
    wrapping: HashSet<Value>,
    found: Extents,
    positions: BTreeMap<(u8, usize), usize>,
}

impl Finder<'_> {
    fn access(&mut self, access: &MemoryAccess) {
        let root = match access.place {
            Place::At(ptr) => {
                let (unit, body) = (self.alias.unit, self.alias.body);
                self.alias.forms.of_pointer(unit, body, ptr).root
            }
            Place::Global(global) => Root::Global(global),
            Place::Errno | Place::Inaccessible => return,
            Place::Reachable | Place::Frame => return self.found.others.push(*access),
        };
        if let Root::Value(value) = root
            && self.availability.before(value, self.at).is_none()
        {
            return self.found.others.push(*access);
        }
        let range = self.bytes(access);
        let key = match root {
            Root::Value(value) => (0, value.index()),
            Root::Global(global) => (1, global.index()),
        };
        let next = self.found.roots.len();
        let position = *self.positions.entry(key).or_insert(next);
        let reads = access.kind == AccessKind::Read;
        if position == next {
            self.found.roots.push(RootExtent {
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

    /// The bytes of one access.
    fn bytes(&mut self, access: &MemoryAccess) -> Range {
        let Place::At(ptr) = access.place else {
            return None;
        };
        let size = match (access.size, access.count) {
            (Some(size), _) => self.constant(i64::try_from(size).ok()?),
            (None, Some(count)) => {
                self.availability.before(count, self.at)?;
                self.node(Bound::Unsigned(count))
            }
            _ => return None,
        };
        let (low, high) = self.range_of(ptr)?;
        let offset = self.constant(access.offset);
        let (low, high) = (self.add(low, offset), self.add(high, offset));
        Some((low, self.add(high, size)))
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
    fn scaled(&mut self, a: Range, factor: i64) -> Range {
        let (low, high) = a?;
        let by = self.constant(factor);
        let (low, high) = (self.mul(low, by), self.mul(high, by));
        Some(if factor < 0 { (high, low) } else { (low, high) })
    }

    // ---- values ----------------------------------------------------------------------------

    /// The range of an integer, sign-extended, or of a pointer's distance from its root. Operands are
    /// looked at first, by an explicit stack.
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
                    work.extend(self.parts(value).into_iter().map(|part| (part, false)));
                }
            }
        }
        self.ranges[value.index()].flatten()
    }

    fn known(&self, value: Value) -> Range {
        self.ranges[value.index()].flatten()
    }

    /// The range of a value that needs no other; `None` where it does.
    fn leaf(&mut self, value: Value) -> Option<Range> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        if unit.types.is_ptr(body.ty(value)) {
            let root = self.alias.forms.of_pointer(unit, body, value).root;
            let zero = self.constant(0);
            return match root {
                Root::Value(root) if root == value => Some(Some((zero, zero))),
                Root::Global(_) => {
                    let ConstKind::Global { offset, .. } =
                        unit.constant(body.as_const(value)?).kind
                    else {
                        return None;
                    };
                    let offset = self.constant(offset);
                    Some(Some((offset, offset)))
                }
                Root::Value(_) => None,
            };
        }
        if unit.types.int_bits(body.ty(value)).is_none_or(|b| b > 64) {
            return Some(None);
        }
        if let Some(n) = body.as_int(unit, value) {
            let n = self.constant(n);
            return Some(Some((n, n)));
        }
        if self.availability.before(value, self.at).is_some() {
            let leaf = self.node(Bound::Signed(value));
            return Some(Some((leaf, leaf)));
        }
        None
    }

    /// The values whose ranges that of `value` is made of.
    fn parts(&self, value: Value) -> Vec<Value> {
        let body = self.alias.body;
        match body.values[value].def {
            Definition::Const(_) => Vec::new(),
            Definition::Param(region, number) => {
                let owner = body.owner(region);
                let trips = owner.filter(|_| index_of(self.alias, value).is_some());
                match trips {
                    Some(op) => vec![body.operand(op, number as usize)],
                    None => self.atoms(value),
                }
            }
            Definition::Result(op, number) => match body.kind(op) {
                OpKind::If | OpKind::Switch(_) => body
                    .op_regions(op)
                    .iter()
                    .filter_map(|region| body.last(*region))
                    .filter(|end| matches!(body.kind(*end), OpKind::Yield))
                    .map(|end| body.operand(end, number as usize))
                    .collect(),
                OpKind::For { .. } => self.atoms(value),
                OpKind::Select => {
                    let condition = body.operand(op, 0);
                    let compared = body.def_op(condition).into_iter();
                    compared
                        .flat_map(|c| body.operands(c))
                        .chain(body.operands(op).skip(1))
                        .collect()
                }
                OpKind::Binary(_) | OpKind::Cast(_) | OpKind::Addr { .. } | OpKind::Call(_) => {
                    body.operands(op).collect()
                }
                _ => Vec::new(),
            },
        }
    }

    /// The form of an integer, or of a pointer's distance from its root.
    fn form(&self, value: Value) -> Rc<Linear> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        match unit.types.is_ptr(body.ty(value)) {
            true => self.alias.forms.of_pointer(unit, body, value).offset,
            false => self.alias.forms.of_integer(unit, body, value),
        }
    }

    /// The atoms of a value that a loop steps by the same amount each time; none of any other.
    fn atoms(&self, value: Value) -> Vec<Value> {
        let form = self.form(value);
        let atoms = form.terms.iter().flat_map(|(product, _)| product);
        atoms.copied().filter(|atom| *atom != value).collect()
    }

    /// The range of a form, from those of its atoms.
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
                let known = self.known(*atom).filter(|_| *atom != value);
                part = self.product(part, known);
            }
            range = self.sum(range, part);
        }
        range
    }

    fn combine(&mut self, value: Value) -> Range {
        let body = self.alias.body;
        let op = match body.values[value].def {
            Definition::Param(..) if index_of(self.alias, value).is_some() => {
                return self.index(value);
            }
            Definition::Param(..) => return self.range_of_form(value),
            Definition::Const(_) => return None,
            Definition::Result(op, _) => op,
        };
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                let arms = self.parts(value);
                let first = self.known(*arms.first()?);
                arms.iter().fold(first, |hull, arm| {
                    let range = self.known(*arm);
                    self.hull(hull, range)
                })
            }
            OpKind::For { .. } => self.range_of_form(value),
            OpKind::Select => {
                let (a, b) = (self.chosen(op, true), self.chosen(op, false));
                self.hull(a, b)
            }
            OpKind::Cast(cast) => self.cast(op, *cast),
            OpKind::Binary(binary) => self.arithmetic(op, *binary),
            OpKind::Addr { .. } => self.address(op),
            OpKind::Call(_) => self.call(op),
            _ => None,
        }
    }

    fn may_wrap(&self, value: Value) -> bool {
        let body = self.alias.body;
        let wraps = body.def_op(value).is_some_and(|op| {
            matches!(body.kind(op), OpKind::Binary(_)) && !body.ops[op].flags.has(Flags::NSW)
        });
        wraps || (self.parts(value).iter()).any(|part| self.wrapping.contains(part))
    }

    /// The range of one side of a `select`, narrowed by what its condition says there.
    fn chosen(&mut self, op: Op, side: bool) -> Range {
        let body = self.alias.body;
        let (condition, value) = (
            body.operand(op, 0),
            body.operand(op, if side { 1 } else { 2 }),
        );
        let range = self.known(value);
        match guard::of(self.alias, condition, side, value) {
            Some(Guard::AtLeast(least)) => {
                let (low, high) = range?;
                let least = self.constant(least);
                Some((self.max(low, least), high))
            }
            Some(Guard::AtMost(limit, more)) => {
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

    fn operand(&self, op: Op, index: usize) -> Range {
        self.known(self.alias.body.operand(op, index))
    }

    /// A loop's index runs from 0 to one less than its trip count, which is at least 1 inside: of
    /// 64 bits, since no loop runs 2⁶³ times; else where its trip count is bounded or a leaf.
    fn index(&mut self, value: Value) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let (lp, dim) = index_of(self.alias, value)?;
        let trips = body.operand(lp, dim as usize);
        if self.wrapping.contains(&trips) {
            return None;
        }
        let high = match unit.types.int_bits(body.ty(trips))? {
            64 => self.known(trips)?.1,
            bits => match *body.kind(lp) {
                OpKind::For {
                    trip_max: Some(max),
                } if max < 1 << (bits.min(63) - 1) => self.known(trips)?.1,
                _ => return None,
            },
        };
        let (zero, minus_one) = (self.constant(0), self.constant(-1));
        Some((zero, self.add(high, minus_one)))
    }

    fn cast(&mut self, op: Op, cast: CastOp) -> Range {
        let body = self.alias.body;
        let inner = body.operand(op, 0);
        let flags = body.ops[op].flags;
        let range = self.known(inner);
        match cast {
            CastOp::SExt | CastOp::BitCast => range,
            CastOp::Trunc if flags.has(Flags::NSW) => range,
            CastOp::ZExt if flags.has(Flags::NNEG) => range,
            CastOp::ZExt => match range {
                Some((low, _)) if self.number(low).is_some_and(|n| n >= 0) => range,
                _ => self.zero_extended_index(inner),
            },
            _ => None,
        }
    }

    /// The index of a loop with fewer bits than 64, read as unsigned, as its trip count is.
    fn zero_extended_index(&mut self, inner: Value) -> Range {
        let (lp, dim) = index_of(self.alias, inner)?;
        let trips = self.alias.body.operand(lp, dim as usize);
        self.availability.before(trips, self.at)?;
        let count = self.node(Bound::Unsigned(trips));
        let (zero, minus_one) = (self.constant(0), self.constant(-1));
        Some((zero, self.add(count, minus_one)))
    }

    fn arithmetic(&mut self, op: Op, binary: BinaryOp) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let flags = body.ops[op].flags;
        let wide = unit.types.int_bits(body.ty(body.result(op))) == Some(64);
        let exact = wide || flags.has(Flags::NSW);
        let (a, b) = (self.operand(op, 0), self.operand(op, 1));
        match binary {
            BinaryOp::Add if exact => self.sum(a, b),
            BinaryOp::Or if flags.has(Flags::DISJOINT) => self.sum(a, b),
            BinaryOp::Sub if exact => {
                let minus = self.scaled(b, -1);
                self.sum(a, minus)
            }
            BinaryOp::Mul if exact => self.product(a, b),
            BinaryOp::Shl if exact => {
                let by = body.as_int(unit, body.operand(op, 1))?;
                (0..63).contains(&by).then_some(())?;
                self.scaled(a, 1 << by)
            }
            BinaryOp::And => {
                let mask = body.as_int(unit, body.operand(op, 1)).filter(|n| *n >= 0)?;
                Some((self.constant(0), self.constant(mask)))
            }
            _ => None,
        }
    }

    fn address(&mut self, op: Op) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let address = unit.layout.address(unit, body, op)?;
        let offset = self.constant(address.offset);
        let base = self.known(address.base);
        let mut range = self.sum(base, Some((offset, offset)));
        for (index, stride) in address.terms {
            let steps = self.known(index);
            let bytes = self.scaled(steps, stride);
            range = self.sum(range, bytes);
        }
        range
    }

    fn call(&mut self, op: Op) -> Range {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let known = unit.callee(body, op).and_then(|func| unit.known(func));
        let ((a, b), (c, d)) = (self.operand(op, 1)?, self.operand(op, 2)?);
        if body.operands(op).any(|part| self.wrapping.contains(&part)) {
            return None;
        }
        match known? {
            Known::Integer(IntFn::Smax) => Some((self.max(a, c), self.max(b, d))),
            Known::Integer(IntFn::Smin) => Some((self.min(a, c), self.min(b, d))),
            _ => None,
        }
    }
}
