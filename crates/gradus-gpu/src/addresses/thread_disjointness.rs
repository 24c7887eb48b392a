//! Thread disjointness: decides whether accesses of two different threads of a block may conflict.
//!
//! Place: queried by [`crate::opt::barrier_removal`]. Two accesses do not conflict if both are to distinct objects, to
//! memory allocated per thread, or to distinct *cells*. Alias facts for any two iterations hold for any two
//! threads. A cell is a uniform base address, plus a byte stride per rank, plus an offset within bounds. If
//! the strides exceed the offset range and compose like the digits of a number, different threads have
//! different cells.
//!
//! Type-based alias facts and `restrict` are not used. A block may reuse an array for another type after a
//! barrier, and the promises of a thread about its pointers say little about other threads.

use crate::blocks::skeleton::Skeleton;
use crate::blocks::uniformity::Uniformity;
use gradus_analysis::{Alias, BaseValue, MemoryAccess, MemoryRegion, Monomial, Object, Poly};
use gradus_ir::{AllocaStorage, Definition, MAX_BLOCK_THREADS, Op, OpKind, Value};

/// Accesses of the threads of a block.
pub(crate) struct ThreadAccesses<'a> {
    pub alias: &'a Alias<'a>,
    pub spine: &'a Skeleton,
    pub levels: &'a Uniformity,
}

/// The address of a thread relative to the base address.
#[derive(Debug)]
struct ThreadAddress {
    /// Stride per rank, by dimension.
    steps: Vec<RankStride>,
    /// Uniform terms with coefficients.
    common: Vec<(Monomial, i64)>,
    /// Bounds of the remaining byte range, end exclusive.
    bytes: (i128, i128),
}

/// A stride: `bytes` times the extents of the dimensions in `by`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RankStride {
    dim: usize,
    bytes: i128,
    by: Vec<usize>,
}

/// Limit of offsets, in bytes; sums below the limit cannot wrap.
const MAX_OFFSET_BYTES: i128 = 1 << 40;

impl ThreadAccesses<'_> {
    /// Returns whether an access of a thread and an access of another thread may conflict.
    pub fn may_conflict(&self, x: &MemoryAccess, y: &MemoryAccess) -> bool {
        // Every thread has its own `errno`.
        let reads = !x.is_clobber() && !y.is_clobber();
        if reads || x.place == MemoryRegion::Errno || y.place == MemoryRegion::Errno {
            return false;
        }
        self.alias.may_alias_any_iteration(x, y)
            && !self.per_thread_disjoint(x, y)
            && !self.have_distinct_offsets(x, y)
    }

    /// Returns whether both accesses touch only memory that the thread itself allocated.
    fn per_thread_disjoint(&self, x: &MemoryAccess, y: &MemoryAccess) -> bool {
        let (Some(left), Some(right)) = (self.alias.objects(x), self.alias.objects(y)) else {
            return false;
        };
        let freed = false;
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
        let mut met =
            pairs.filter(|(a, b)| self.alias.objects_may_alias(a.object, b.object, freed));
        met.all(|(a, b)| {
            a.object == b.object && !a.old && !b.old && {
                match self.alias.points_to.object(a.object) {
                    Object::Stack(op) => self.is_inside(op) && !self.is_shared(op),
                    Object::Heap(op) => self.is_inside(op),
                    _ => false,
                }
            }
        })
    }

    fn is_inside(&self, op: Op) -> bool {
        op != self.spine.block && self.alias.nest.contains(self.spine.block, op)
    }
    fn is_shared(&self, op: Op) -> bool {
        matches!(self.alias.body.kind(op), OpKind::Alloca(info) if info.storage == AllocaStorage::Shared)
    }

    // ---- cells -----------------------------------------------------------------------------

    /// Returns whether different threads access different cells.
    fn have_distinct_offsets(&self, x: &MemoryAccess, y: &MemoryAccess) -> bool {
        let (MemoryRegion::At(p), MemoryRegion::At(q)) = (x.place, y.place) else {
            return false;
        };
        let of = |pointer| {
            let alias = self.alias;
            alias.forms.of_pointer(alias.unit, alias.body, pointer)
        };
        let (a, b) = (of(p), of(q));
        if a.root != b.root || !self.is_uniform_base(a.root) {
            return false;
        }
        let (Some(a), Some(b)) = (
            self.thread_address(x, &a.offset),
            self.thread_address(y, &b.offset),
        ) else {
            return false;
        };
        a.common == b.common
            && (self.are_ranges_disjoint(&a, &b) || self.are_strides_disjoint(&a, &b))
    }

    fn is_uniform_base(&self, root: BaseValue) -> bool {
        match root {
            BaseValue::Global(_) => true,
            BaseValue::Value(value) => {
                let alloca = self.alias.body.def_op(value);
                alloca.is_some_and(|op| self.is_shared(op)) || self.is_uniform(value)
            }
        }
    }

    /// Returns whether a value is uniform and constant while a block runs.
    fn is_uniform(&self, value: Value) -> bool {
        let (body, block) = (self.alias.body, self.spine.block);
        match self.alias.nest.loop_of_value(body, value) {
            None => true,
            Some(lp) if lp == block => {
                let of_spine = body
                    .region_of(value)
                    .is_some_and(|region| self.spine.is_in_skeleton(body, region));
                of_spine && !self.levels.is_per_thread_value(value)
            }
            Some(lp) => !self.is_inside(lp),
        }
    }

    fn thread_address(&self, access: &MemoryAccess, offset: &Poly) -> Option<ThreadAddress> {
        let first = i128::from(offset.constant) + i128::from(access.offset);
        let mut cell = ThreadAddress {
            steps: Vec::new(),
            common: Vec::new(),
            bytes: (first, first + i128::from(access.size?)),
        };
        for (product, factor) in &offset.terms {
            let ranks = product.iter().any(|atom| self.dim_of_rank(*atom).is_some());
            if ranks {
                cell.steps.extend(self.rank_stride(product, *factor)?);
            } else if product.iter().all(|atom| self.is_uniform(*atom)) {
                cell.common.push((product.clone(), *factor));
            } else {
                let (low, high) = product_bounds(self.alias, product, *factor)?;
                cell.bytes = (cell.bytes.0 + low, cell.bytes.1 + high);
            }
        }
        cell.steps.sort_by_key(|step| step.dim);
        let twice = cell.steps.windows(2).any(|w| w[0].dim == w[1].dim);
        let far = |n: i128| n.abs() > MAX_OFFSET_BYTES;
        (!twice && !far(cell.bytes.0) && !far(cell.bytes.1)).then_some(cell)
    }

    /// The dimension of a rank.
    fn dim_of_rank(&self, value: Value) -> Option<usize> {
        self.param_number(value)
            .filter(|number| *number < self.dims())
    }
    /// The parameter number of a value in the block's region.
    fn param_number(&self, value: Value) -> Option<usize> {
        match self.alias.body.values[value].def {
            Definition::Param(region, number) if region == self.spine.root => Some(number as usize),
            _ => None,
        }
    }
    fn dims(&self) -> usize {
        self.alias.body.operand_count(self.spine.block)
    }
    /// The number of threads in a dimension, if constant.
    fn extent(&self, dim: usize) -> Option<i128> {
        let (unit, body) = (self.alias.unit, self.alias.body);
        let extent = body.as_int(unit, body.operand(self.spine.block, dim));
        extent.filter(|n| *n > 0).map(i128::from)
    }
    /// The dimension whose extent a value is.
    fn dim_of_extent(&self, value: Value) -> Option<usize> {
        let of_region = self
            .param_number(value)
            .and_then(|n| n.checked_sub(self.dims()));
        of_region.or_else(|| {
            let body = self.alias.body;
            body.operands(self.spine.block).position(|v| v == value)
        })
    }

    /// The stride of a product with a rank; `Some(None)` if the dimension has a single thread.
    fn rank_stride(&self, product: &Monomial, factor: i64) -> Option<Option<RankStride>> {
        let mut step = RankStride {
            dim: usize::MAX,
            bytes: i128::from(factor),
            by: Vec::new(),
        };
        for &atom in product {
            match (self.dim_of_rank(atom), self.dim_of_extent(atom)) {
                (Some(dim), _) if step.dim == usize::MAX => step.dim = dim,
                (None, Some(dim)) => match self.extent(dim) {
                    Some(count) => step.bytes = step.bytes.checked_mul(count)?,
                    None => step.by.push(dim),
                },
                _ => return None,
            }
        }
        step.by.sort_unstable();
        if self.extent(step.dim) == Some(1) {
            return Some(None);
        }
        (step.bytes.abs() <= MAX_OFFSET_BYTES).then_some(Some(step))
    }

    /// Returns whether all bytes of one cell precede all bytes of the other, for any threads.
    fn are_ranges_disjoint(&self, a: &ThreadAddress, b: &ThreadAddress) -> bool {
        let (Some(a), Some(b)) = (self.range(a), self.range(b)) else {
            return false;
        };
        a.1 <= b.0 || b.1 <= a.0
    }

    fn range(&self, cell: &ThreadAddress) -> Option<(i128, i128)> {
        let mut range = cell.bytes;
        for step in &cell.steps {
            step.by.is_empty().then_some(())?;
            let most = self.extent(step.dim).unwrap_or(MAX_BLOCK_THREADS.into()) - 1;
            let end = step.bytes.checked_mul(most)?;
            range = (range.0 + end.min(0), range.1 + end.max(0));
        }
        Some(range)
    }

    /// Returns whether both cells have equal strides, and the stride of every dimension covers all bytes of
    /// the lower dimensions.
    fn are_strides_disjoint(&self, a: &ThreadAddress, b: &ThreadAddress) -> bool {
        if a.steps != b.steps {
            return false;
        }
        let mut left: Vec<usize> = (0..self.dims())
            .filter(|dim| self.extent(*dim) != Some(1))
            .collect();
        // Bytes covered by the processed dimensions, as a number times extents.
        let mut bytes = a.bytes.1.max(b.bytes.1) - a.bytes.0.min(b.bytes.0);
        let mut by: Vec<usize> = Vec::new();
        let mut steps: Vec<&RankStride> = a.steps.iter().collect();
        steps.sort_by_key(|step| (step.by.len(), step.bytes.abs()));
        for step in steps {
            if step.by != by || step.bytes.abs() < bytes {
                return false;
            }
            left.retain(|dim| *dim != step.dim);
            match self.extent(step.dim) {
                // The last cell need not extend to the next step.
                Some(count) if by.is_empty() => bytes += step.bytes.abs() * (count - 1),
                Some(count) => bytes = step.bytes.abs() * count,
                None => {
                    bytes = step.bytes.abs();
                    by.push(step.dim);
                    by.sort_unstable();
                }
            }
            if bytes > MAX_OFFSET_BYTES {
                return false;
            }
        }
        left.is_empty()
    }
}

/// The bounds of a product.
fn product_bounds(alias: &Alias, product: &Monomial, factor: i64) -> Option<(i128, i128)> {
    let mut hull = (i128::from(factor), i128::from(factor));
    for &atom in product {
        let (low, high) = alias.forms.intervals.of(alias.unit, alias.body, atom);
        let ends = [hull.0, hull.1].map(|n| [n * i128::from(low), n * i128::from(high)]);
        let ends = ends.as_flattened();
        hull = (*ends.iter().min()?, *ends.iter().max()?);
        if hull.0.abs() > MAX_OFFSET_BYTES || hull.1.abs() > MAX_OFFSET_BYTES {
            return None;
        }
    }
    Some(hull)
}

/// The bounds of a sum.
pub(crate) fn sum_bounds(alias: &Alias, sum: &Poly) -> Option<(i128, i128)> {
    let mut hull = (i128::from(sum.constant), i128::from(sum.constant));
    for (product, factor) in &sum.terms {
        let (low, high) = product_bounds(alias, product, *factor)?;
        hull = (hull.0 + low, hull.1 + high);
    }
    Some(hull)
}
