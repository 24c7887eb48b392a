//! Launch addresses: addresses as polynomials in block and thread indices, and disjointness between the
//! threads of two launches.
//!
//! A polynomial is a sum over products of *atoms*: block index and thread index by dimension, extents,
//! launch-uniform values, and per-thread values. Values shared by two launches are the same atom. Addresses
//! of one launch are therefore comparable with addresses of the other.
//!
//! CUDA computes in 32 bits without no-wrap guarantees (`blockIdx.x * blockDim.x + threadIdx.x` is
//! unsigned). No wrap occurs here: a launch is analysed under the condition that no dimension has more than
//! [`MAX_DIM_THREADS`] threads in total, which is tested at run time.

use crate::host_launches::Launch;
use gradus_analysis::{Alias, BaseValue, MemoryAccess, MemoryRegion};
use gradus_ir::{
    BinaryOp, CastOp, Definition, Flags, IntPredicate, MAX_BLOCK_THREADS, Op, OpKind, SpmdKind,
    Value,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Limit of threads per dimension, over all blocks; `__gr_launch_with` tests the limit.
const MAX_DIM_THREADS: i128 = 1 << 27;
/// Limit of products in a sum.
const MAX_TERMS: usize = 12;
/// Limit of coefficients.
const MAX_COEFFICIENT: i128 = 1 << 80;
/// Limit of operand depth.
const MAX_DEPTH: usize = 24;

/// Factor of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    /// Block index in the grid, by dimension.
    Block(usize),
    /// Thread index in the block.
    Thread(usize),
    /// Threads per block.
    BlockSize(usize),
    /// Blocks per grid.
    GridSize(usize),
    /// A value defined before the launch.
    Uniform(Value),
    /// A value that a thread computes or loads.
    PerThread(Value),
}

impl Atom {
    fn is_rank(self) -> bool {
        matches!(self, Atom::Block(_) | Atom::Thread(_))
    }
    fn is_count(self) -> bool {
        matches!(self, Atom::BlockSize(_) | Atom::GridSize(_))
    }
}

/// Coefficients by product of atoms, sorted. The empty product holds the constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum(BTreeMap<Vec<Atom>, i128>);

impl Sum {
    fn constant(n: i128) -> Sum {
        let mut sum = Sum::default();
        sum.add(Vec::new(), n);
        sum
    }
    fn atom(atom: Atom) -> Sum {
        Sum(BTreeMap::from([(vec![atom], 1)]))
    }
    fn add(&mut self, product: Vec<Atom>, count: i128) {
        let entry = self.0.entry(product).or_default();
        *entry = entry.saturating_add(count);
        self.0.retain(|_, count| *count != 0);
    }
    fn plus_times(mut self, other: &Sum, factor: i128) -> Sum {
        for (product, count) in &other.0 {
            self.add(product.clone(), count.saturating_mul(factor));
        }
        self
    }
    fn times(&self, other: &Sum) -> Sum {
        let mut product = Sum::default();
        for (left, a) in &self.0 {
            for (right, b) in &other.0 {
                let mut atoms: Vec<Atom> = left.iter().chain(right).copied().collect();
                atoms.sort_unstable();
                product.add(atoms, a.saturating_mul(*b));
            }
        }
        product
    }
    fn as_constant(&self) -> Option<i128> {
        match self.0.iter().next() {
            None => Some(0),
            Some((product, count)) if product.is_empty() && self.0.len() == 1 => Some(*count),
            Some(_) => None,
        }
    }
    /// Returns whether the sum is short, and computed without overflow.
    fn is_small(&self) -> bool {
        self.0.len() <= MAX_TERMS && self.0.values().all(|count| count.abs() < MAX_COEFFICIENT)
    }
    /// Returns whether the sum is non-negative for all threads.
    fn is_count(&self) -> bool {
        let counts = |atom: &Atom| atom.is_rank() || atom.is_count();
        self.0
            .iter()
            .all(|(product, n)| *n >= 0 && product.iter().all(counts))
    }
}

/// The address of an access.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// The base address.
    pub root: BaseValue,
    /// Byte strides of the products with ranks.
    steps: BTreeMap<Vec<Atom>, i128>,
    /// Launch-uniform byte terms.
    common: BTreeMap<Vec<Atom>, i128>,
    /// Remaining byte range, end exclusive.
    bytes: (i128, i128),
    /// Upper bounds of the global thread index at the access, by dimension.
    rank_bounds: Vec<(usize, Sum)>,
}

/// Symbolic values of a launch's threads.
pub(crate) struct LaunchAddresses<'a> {
    alias: &'a Alias<'a>,
    launch: &'a Launch,
    /// Polynomial of each analysed value.
    known: RefCell<HashMap<Value, Sum>>,
}

impl<'a> LaunchAddresses<'a> {
    pub fn new(alias: &'a Alias<'a>, launch: &'a Launch) -> LaunchAddresses<'a> {
        LaunchAddresses {
            alias,
            launch,
            known: RefCell::default(),
        }
    }

    /// The address of an access, if a polynomial in ranks over a base address known before the launch.
    pub fn access_address(&self, access: &MemoryAccess) -> Option<Spot> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let MemoryRegion::At(pointer) = access.place else {
            return None;
        };
        let place = self.alias.forms.of_pointer(unit, body, pointer);
        if let BaseValue::Value(root) = place.root
            && self.is_launch_local(root)
        {
            return None;
        }
        let mut sum = Sum::constant(i128::from(place.offset.constant) + i128::from(access.offset));
        for (product, factor) in &place.offset.terms {
            let one = Sum::constant(i128::from(*factor));
            let whole = product
                .iter()
                .fold(one, |sum, atom| sum.times(&self.sum(*atom, 0)));
            sum = sum.plus_times(&whole, 1);
        }
        if !sum.is_small() || !place.offset.exact && !self.fits(&sum, 64) {
            return None;
        }
        let mut spot = Spot {
            root: place.root,
            steps: BTreeMap::new(),
            common: BTreeMap::new(),
            bytes: (0, i128::from(access.size?)),
            rank_bounds: self.rank_bounds_at(access.op),
        };
        for (product, count) in sum.0 {
            if product
                .iter()
                .any(|atom| matches!(atom, Atom::PerThread(_)))
            {
                let (low, high) = self.product_bounds(&product, count)?;
                spot.bytes = (spot.bytes.0 + low, spot.bytes.1 + high);
            } else if product.is_empty() {
                spot.bytes = (spot.bytes.0 + count, spot.bytes.1 + count);
            } else if product.iter().any(|atom| atom.is_rank()) {
                spot.steps.insert(product, count);
            } else {
                spot.common.insert(product, count);
            }
        }
        Some(spot)
    }

    /// The base address of an access, if known before the launch.
    pub fn access_base(&self, access: &MemoryAccess) -> Option<BaseValue> {
        let MemoryRegion::At(pointer) = access.place else {
            return None;
        };
        let (unit, body) = (self.alias.unit, self.alias.body);
        let root = self.alias.forms.of_pointer(unit, body, pointer).root;
        match root {
            BaseValue::Value(value) if self.is_launch_local(value) => None,
            _ => Some(root),
        }
    }

    /// Returns whether two accesses, in two launches of equal size, touch the same memory only if made by
    /// the same thread.
    pub fn conflicts_only_in_same_thread(&self, x: &Spot, y: &Spot) -> bool {
        if x.root != y.root || x.steps != y.steps || x.common != y.common {
            return false;
        }
        let Some(mut digits) = self.global_rank_strides(&x.steps) else {
            return false;
        };
        digits.sort_by_key(|digit| (digit.by.len(), digit.step.abs()));
        let span = x.bytes.1.max(y.bytes.1) - x.bytes.0.min(y.bytes.0);
        let Some(first) = digits.first() else {
            return true;
        };
        let steps_over = |lower: &GlobalRankStride, upper: &GlobalRankStride| {
            let least = match self.all_threads(lower.dim) {
                _ if upper.step.abs() < lower.step.abs() => return false,
                Some(count) if upper.by == lower.by => count.checked_mul(lower.step.abs()),
                _ => None,
            };
            least.is_some_and(|least| upper.step.abs() >= least)
                || [x, y]
                    .iter()
                    .all(|spot| spot.is_range_within_step(lower, upper))
        };
        first.by.is_empty()
            && first.step.abs() >= span
            && digits.windows(2).all(|pair| steps_over(&pair[0], &pair[1]))
    }

    // ---- sums ------------------------------------------------------------------------------

    /// The polynomial of a value; an opaque value is an atom.
    fn sum(&self, value: Value, depth: usize) -> Sum {
        if let Some(known) = self.known.borrow().get(&value) {
            return known.clone();
        }
        let sum = self.compute_sum(value, depth);
        self.known.borrow_mut().insert(value, sum.clone());
        sum
    }

    fn compute_sum(&self, value: Value, depth: usize) -> Sum {
        let whole = || match self.is_launch_local(value) {
            true => Sum::atom(Atom::PerThread(value)),
            false => Sum::atom(Atom::Uniform(value)),
        };
        let (unit, body) = (self.alias.unit, self.alias.body);
        if let Some(n) = body.as_int(unit, value) {
            return Sum::constant(n.into());
        }
        if let Some(sum) = self.rank(value) {
            return sum;
        }
        let Some(op) = body.def_op(value).filter(|_| depth < MAX_DEPTH) else {
            return whole();
        };
        let operand = |index| self.sum(body.operand(op, index), depth + 1);
        let bits = unit.types.int_bits(body.ty(value)).unwrap_or(0);
        let flags = body.ops[op].flags;
        let found = match *body.kind(op) {
            OpKind::Cast(CastOp::SExt) => Some(operand(0)),
            OpKind::Cast(CastOp::ZExt) => {
                let sum = operand(0);
                (flags.has(Flags::NNEG) || sum.is_count()).then_some(sum)
            }
            OpKind::Cast(CastOp::Trunc) => {
                let sum = operand(0);
                (flags.has(Flags::NSW) || self.fits(&sum, bits)).then_some(sum)
            }
            OpKind::Binary(binary) => {
                let sum = match binary {
                    BinaryOp::Add => Some(operand(0).plus_times(&operand(1), 1)),
                    BinaryOp::Sub => Some(operand(0).plus_times(&operand(1), -1)),
                    BinaryOp::Mul => Some(operand(0).times(&operand(1))),
                    BinaryOp::Shl => {
                        let by = operand(1).as_constant().filter(|by| (0..31).contains(by));
                        by.map(|by| operand(0).times(&Sum::constant(1 << by)))
                    }
                    _ => None,
                };
                sum.filter(|sum| flags.has(Flags::NSW) || self.fits(sum, bits))
            }
            _ => None,
        };
        found.filter(Sum::is_small).unwrap_or_else(whole)
    }

    /// The polynomial of a rank or extent.
    fn rank(&self, value: Value) -> Option<Sum> {
        let body = self.alias.body;
        let Definition::Param(region, number) = body.values[value].def else {
            return None;
        };
        let owner = body.owner(region)?;
        let is_block = owner == self.launch.block;
        if !is_block && owner != self.launch.grid {
            return None;
        }
        let dims = body.operand_count(owner);
        let (dim, of_rank) = match (number as usize).checked_sub(dims) {
            None => (number as usize, true),
            Some(dim) => (dim, false),
        };
        let count = match is_block {
            true => self.threads(dim),
            false => self.blocks(dim),
        };
        Some(match (of_rank, is_block, count) {
            (true, _, Some(1)) => Sum::constant(0),
            (false, _, Some(count)) => Sum::constant(count),
            (true, true, _) => Sum::atom(Atom::Thread(dim)),
            (true, false, _) => Sum::atom(Atom::Block(dim)),
            (false, true, _) => Sum::atom(Atom::BlockSize(dim)),
            (false, false, _) => Sum::atom(Atom::GridSize(dim)),
        })
    }

    /// The number of blocks in a dimension, if constant.
    fn blocks(&self, dim: usize) -> Option<i128> {
        self.launch.size(self.alias, SpmdKind::Grid, dim)
    }
    /// The number of threads per block in a dimension, if constant.
    fn threads(&self, dim: usize) -> Option<i128> {
        self.launch.size(self.alias, SpmdKind::Block, dim)
    }
    fn all_threads(&self, dim: usize) -> Option<i128> {
        self.blocks(dim)?.checked_mul(self.threads(dim)?)
    }

    /// Returns whether a value may differ between threads, or is computed for the launch.
    fn is_launch_local(&self, value: Value) -> bool {
        let (body, nest) = (self.alias.body, &self.alias.nest);
        let branch = self.launch.branch;
        match body.values[value].def {
            Definition::Const(_) => false,
            Definition::Result(op, _) => nest.contains(branch, op),
            Definition::Param(region, _) => body
                .owner(region)
                .is_some_and(|op| nest.contains(branch, op)),
        }
    }

    /// Returns whether a sum fits a signed integer of `bits` bits for all ranks.
    fn fits(&self, sum: &Sum, bits: u32) -> bool {
        let size = |(product, count): (&Vec<Atom>, &i128)| {
            let (low, high) = self.product_bounds(product, *count)?;
            Some(low.abs().max(high.abs()))
        };
        let whole: Option<i128> = sum.0.iter().map(size).sum();
        (2..=64).contains(&bits) && whole.is_some_and(|whole| whole < 1 << (bits - 1))
    }

    /// Bounds of a product, both inclusive.
    fn product_bounds(&self, product: &[Atom], count: i128) -> Option<(i128, i128)> {
        let mut range = (count, count);
        let mut left = product.to_vec();
        while let Some(atom) = left.pop() {
            let (low, high) = match atom {
                Atom::Block(dim) | Atom::GridSize(dim) => {
                    // All blocks of a dimension have at most `MAX_DIM_THREADS` threads in total.
                    let threads = left.iter().position(|other| *other == Atom::BlockSize(dim));
                    match (threads, self.threads(dim)) {
                        (Some(at), _) => {
                            left.remove(at);
                            (0, MAX_DIM_THREADS)
                        }
                        (None, count) => (0, MAX_DIM_THREADS / count.unwrap_or(1).max(1)),
                    }
                }
                Atom::BlockSize(dim) => {
                    let blocks = |other: &Atom| matches!(other, Atom::Block(d) | Atom::GridSize(d) if *d == dim);
                    match left.iter().position(blocks) {
                        Some(at) => {
                            left.remove(at);
                            (0, MAX_DIM_THREADS)
                        }
                        None => (0, MAX_BLOCK_THREADS.into()),
                    }
                }
                Atom::Thread(_) => (0, MAX_BLOCK_THREADS.into()),
                Atom::Uniform(value) | Atom::PerThread(value) => {
                    let alias = self.alias;
                    let (low, high) = alias.forms.intervals.of(alias.unit, alias.body, value);
                    (low.into(), high.into())
                }
            };
            let ends: [i128; 4] = [
                range.0.checked_mul(low)?,
                range.0.checked_mul(high)?,
                range.1.checked_mul(low)?,
                range.1.checked_mul(high)?,
            ];
            range = (*ends.iter().min()?, *ends.iter().max()?);
        }
        (range.0.abs() < MAX_COEFFICIENT && range.1.abs() < MAX_COEFFICIENT).then_some(range)
    }

    // ---- ranks as digits ---------------------------------------------------------------------

    /// The stride of each global thread index, by dimension; `None` if ranks appear in another form, or a
    /// rank is missing.
    fn global_rank_strides(
        &self,
        steps: &BTreeMap<Vec<Atom>, i128>,
    ) -> Option<Vec<GlobalRankStride>> {
        let mut left = steps.clone();
        let mut digits = Vec::new();
        for dim in 0..self.launch.dims() {
            let (blocks, threads) = (self.blocks(dim), self.threads(dim));
            let rank = match (blocks, threads) {
                (Some(1), Some(1)) => continue,
                (_, Some(1)) => Atom::Block(dim),
                _ => Atom::Thread(dim),
            };
            let (product, step) = left
                .iter()
                .find(|(product, _)| product.contains(&rank))
                .map(|(product, step)| (product.clone(), *step))?;
            left.remove(&product);
            let by: Vec<Atom> = product.into_iter().filter(|atom| *atom != rank).collect();
            if rank == Atom::Thread(dim) && blocks != Some(1) {
                let mut row = by.clone();
                row.push(Atom::Block(dim));
                row.extend(threads.is_none().then_some(Atom::BlockSize(dim)));
                row.sort_unstable();
                let expected = step.checked_mul(threads.unwrap_or(1))?;
                (left.remove(&row) == Some(expected)).then_some(())?;
            }
            let is_common = |atom: &Atom| matches!(atom, Atom::Uniform(_));
            by.iter().all(is_common).then_some(())?;
            digits.push(GlobalRankStride { dim, step, by });
        }
        left.is_empty().then_some(digits)
    }

    /// Upper bounds of global thread indices at an op, implied by enclosing branches.
    fn rank_bounds_at(&self, op: Op) -> Vec<(usize, Sum)> {
        let body = self.alias.body;
        let mut found = Vec::new();
        let mut at = op;
        while at != self.launch.branch
            && let Some(region) = body.parent(at)
            && let Some(owner) = body.owner(region)
        {
            if matches!(body.kind(owner), OpKind::If) {
                let holds = body.op_regions(owner)[0] == region;
                self.add_bounds_from_condition(body.operand(owner, 0), holds, &mut found);
            }
            at = owner;
        }
        found
    }

    /// Adds the bounds implied by a condition that holds, or does not hold.
    fn add_bounds_from_condition(
        &self,
        condition: Value,
        holds: bool,
        found: &mut Vec<(usize, Sum)>,
    ) {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let mut open = vec![condition];
        while let Some(condition) = open.pop() {
            let Some(op) = body.def_op(condition) else {
                continue;
            };
            match *body.kind(op) {
                OpKind::Binary(BinaryOp::And) if holds => open.extend(body.operands(op)),
                OpKind::Binary(BinaryOp::Or) if !holds => open.extend(body.operands(op)),
                // `a and b` is `select a, b, false`, `a or b` is `select a, true, b`.
                OpKind::Select => {
                    let (other, fixed) = if holds { (1, 2) } else { (2, 1) };
                    let value = body
                        .as_int(unit, body.operand(op, fixed))
                        .map(|n| n & 1 == 1);
                    if value == Some(!holds) {
                        open.extend([0, other].map(|index| body.operand(op, index)));
                    }
                }
                OpKind::ICmp(predicate) => {
                    use IntPredicate::{Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
                    let (low, high) = match (predicate, holds) {
                        (Slt | Ult, true) | (Sge | Uge, false) => (0, 1),
                        (Sgt | Ugt, true) | (Sle | Ule, false) => (1, 0),
                        _ => continue,
                    };
                    let signed = matches!(predicate, Slt | Sge | Sgt | Sle);
                    let low = self.sum(body.operand(op, low), 0);
                    let high = self.sum(body.operand(op, high), 0);
                    // A negative number is large as an unsigned number.
                    if signed || high.is_count() {
                        let dim =
                            (0..self.launch.dims()).find(|dim| low == self.global_index(*dim));
                        found.extend(dim.map(|dim| (dim, high)));
                    }
                }
                _ => {}
            }
        }
    }

    /// The global thread index.
    fn global_index(&self, dim: usize) -> Sum {
        let one = |count: Option<i128>, atom| match count {
            Some(1) => Sum::default(),
            _ => Sum::atom(atom),
        };
        let threads = match self.threads(dim) {
            Some(count) => Sum::constant(count),
            None => Sum::atom(Atom::BlockSize(dim)),
        };
        let row = one(self.blocks(dim), Atom::Block(dim)).times(&threads);
        row.plus_times(&one(self.threads(dim), Atom::Thread(dim)), 1)
    }
}

/// The stride of a global thread index: `step` times values defined before the launch.
#[derive(Clone, Debug)]
struct GlobalRankStride {
    dim: usize,
    step: i128,
    by: Vec<Atom>,
}

impl Spot {
    /// Returns whether, at the access, the range of the lower digit is at most a step of the upper digit.
    fn is_range_within_step(&self, lower: &GlobalRankStride, upper: &GlobalRankStride) -> bool {
        self.rank_bounds.iter().any(|(dim, limit)| {
            let bound = match limit.0.iter().next() {
                _ if *dim != lower.dim || limit.0.len() != 1 => return false,
                Some((product, count)) => (product, *count),
                None => return false,
            };
            let mut by = lower.by.clone();
            by.extend(bound.0);
            by.sort_unstable();
            let least = lower.step.abs().checked_mul(bound.1);
            by == upper.by && least.is_some_and(|least| least > 0 && upper.step.abs() >= least)
        })
    }
}
