//! Race detection in warps: warns about shared-memory communication between threads of a warp without a
//! barrier.
//!
//! ```text
//! if (t < 32) { s[t] += s[t + 16]; s[t] += s[t + 8]; … }
//! ```
//!
//! Reductions written before Volta rely on lockstep execution of a warp. CUDA no longer guarantees lockstep;
//! the lowered code runs each thread to the next barrier. [`crate::warp::lockstep`] inserts barriers if the memory
//! is `volatile`; without `volatile`, the program does not request synchronisation.
//!
//! Only certain races are reported. A thread of a warp stores an element that another thread of the warp
//! loads, and both threads reach the accesses. No barrier separates the accesses, and the reader has not
//! stored the element itself. Conditions and addresses are evaluated for each of the first threads of a
//! block; an unknown value counts as no race. In a block of unknown size, a test of the thread index must
//! select the warp.
//!
//! Place: called by [`crate::fission`], after barrier removal: a removed barrier separates no conflicting
//! accesses.

use crate::blocks::skeleton::Skeleton;
use crate::blocks::uniformity::Uniformity;
use gradus_analysis::{BaseValue, Monomial, PolyForms};
use gradus_ir::{
    AllocaStorage, BinaryOp, Body, CastOp, Code, Definition, Diagnostic, IntPredicate, Op, OpKind,
    Region, Unit, Value,
};

/// Number of evaluated threads, and threads per warp.
const EVALUATED_THREADS: i64 = 64;
const WARP_SIZE: usize = 32;
/// Limit of shared-memory accesses per block.
const MAX_ACCESSES: usize = 256;
/// Limit of operand depth.
const MAX_DEPTH: usize = 24;

/// Reports the first race of a block.
pub(crate) fn find_race(
    unit: &Unit,
    body: &Body,
    spine: &Skeleton,
    levels: &Uniformity,
    forms: &PolyForms,
) -> Option<Diagnostic> {
    let look = RaceSearch {
        unit,
        body,
        spine,
        levels,
        forms,
    };
    let touches = body
        .walk(spine.root)
        .filter_map(|op| look.match_shared_access(op));
    let touched: Vec<(Op, Op)> = touches.take(MAX_ACCESSES).collect();
    if touched.len() == MAX_ACCESSES {
        return None;
    }
    let all: Vec<SharedAccess> = touched
        .into_iter()
        .filter_map(|(op, array)| look.evaluate_access(op, array))
        .collect();
    let is_store = |access: &&SharedAccess| matches!(body.kind(access.op), OpKind::Store(_));
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let (store, load) = match (is_store(&one), is_store(&other)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => continue,
            };
            if store.races_with(load) && !look.may_be_synchronized(one.op, other.op) {
                return Some(look.race_warning(store.op, load.op));
            }
        }
    }
    None
}

/// A plain access of shared memory whose address is known for every evaluated thread.
struct SharedAccess {
    op: Op,
    array: Op,
    /// Uniform part of the address.
    uniform_terms: Vec<(Monomial, i64)>,
    /// Remaining byte range by thread, end exclusive; `None` for threads that do not reach the access.
    bytes: Vec<Option<(i64, i64)>>,
    /// Enclosing uniform branches and loops.
    uniform_path: Vec<(Op, Region)>,
}

impl SharedAccess {
    /// Returns whether a thread of a warp stores an element that another thread loads and does not store
    /// itself.
    fn races_with(&self, load: &SharedAccess) -> bool {
        let same = self.array == load.array && self.uniform_terms == load.uniform_terms;
        let implied = |a: &[(Op, Region)], b: &[(Op, Region)]| a.iter().all(|way| b.contains(way));
        if !same
            || !(implied(&self.uniform_path, &load.uniform_path)
                || implied(&load.uniform_path, &self.uniform_path))
        {
            return false;
        }
        let touch = |a: (i64, i64), b: (i64, i64)| a.0 < b.1 && b.0 < a.1;
        load.bytes.iter().enumerate().any(|(reader, read)| {
            let Some(read) = *read else {
                return false;
            };
            let itself = self.bytes[reader].is_some_and(|own| touch(own, read));
            let first = reader / WARP_SIZE * WARP_SIZE;
            let mut warp = self.bytes.iter().skip(first).take(WARP_SIZE).flatten();
            !itself && warp.any(|stored| touch(*stored, read))
        })
    }
}

struct RaceSearch<'a> {
    unit: &'a Unit,
    body: &'a Body,
    spine: &'a Skeleton,
    levels: &'a Uniformity,
    forms: &'a PolyForms,
}

impl RaceSearch<'_> {
    /// A plain access of shared memory, with the allocation.
    fn match_shared_access(&self, op: Op) -> Option<(Op, Op)> {
        let (OpKind::Load(info) | OpKind::Store(info)) = self.body.kind(op) else {
            return None;
        };
        info.is_plain().then_some(())?;
        let place = self
            .forms
            .of_pointer(self.unit, self.body, self.address(op));
        let BaseValue::Value(root) = place.root else {
            return None;
        };
        let array = self.body.def_op(root)?;
        let shared = matches!(self.body.kind(array), OpKind::Alloca(info) if info.storage == AllocaStorage::Shared);
        shared.then_some((op, array))
    }

    fn address(&self, op: Op) -> Value {
        let number = usize::from(matches!(self.body.kind(op), OpKind::Store(_)));
        self.body.operand(op, number)
    }

    fn evaluate_access(&self, op: Op, array: Op) -> Option<SharedAccess> {
        let (unit, body) = (self.unit, self.body);
        let value = match body.kind(op) {
            OpKind::Store(_) => body.operand(op, 0),
            _ => body.result(op),
        };
        let size = unit.layout.store_bytes(unit, body.ty(value)) as i64;
        let place = self.forms.of_pointer(unit, body, self.address(op));
        let mut common = Vec::new();
        let mut own = Vec::new();
        for (product, factor) in &place.offset.terms {
            match product.iter().all(|atom| self.is_uniform(*atom, MAX_DEPTH)) {
                true => common.push((product.clone(), *factor)),
                false => own.push((product, *factor)),
            }
        }
        let (ways, tests) = self.enclosing_branches(op)?;
        let sizes: Vec<Option<i64>> = (0..self.dims()).map(|dim| self.extent(dim)).collect();
        let total = sizes
            .iter()
            .try_fold(1i64, |n, size| n.checked_mul((*size)?));
        let mut bytes = Vec::new();
        for thread in 0..total.map_or(EVALUATED_THREADS, |n| n.min(EVALUATED_THREADS)) {
            let ranks = self.ranks_of_thread(thread, &sizes);
            let mut comes = true;
            for &(condition, wanted) in &tests {
                comes &= (self.evaluate(condition, &ranks, MAX_DEPTH)? != 0) == wanted;
            }
            let mut first = place.offset.constant;
            for (product, factor) in &own {
                let mut term = *factor;
                for &atom in product.iter() {
                    term = term.checked_mul(self.evaluate(atom, &ranks, MAX_DEPTH)?)?;
                }
                first = first.checked_add(term)?;
            }
            bytes.push(comes.then_some((first, first.checked_add(size)?)));
        }
        // In a block of unknown size, a test must establish that the warp exists and select its threads.
        let chosen = total.is_some() || bytes.iter().any(Option::is_none);
        chosen.then_some(SharedAccess {
            op,
            array,
            uniform_terms: common,
            bytes,
            uniform_path: ways,
        })
    }

    fn dims(&self) -> usize {
        self.body.operand_count(self.spine.block)
    }

    fn extent(&self, dim: usize) -> Option<i64> {
        let size = self.body.operand(self.spine.block, dim);
        self.body.as_int(self.unit, size).filter(|n| *n > 0)
    }

    /// The ranks of a thread by dimension, if known.
    fn ranks_of_thread(&self, thread: i64, sizes: &[Option<i64>]) -> Vec<Option<i64>> {
        let mut rest = Some(thread);
        let rank = |size: &Option<i64>| match (*size, rest) {
            (Some(1), _) => Some(0),
            (Some(size), Some(number)) => {
                rest = Some(number / size);
                Some(number % size)
            }
            (None, Some(number)) => {
                rest = None;
                Some(number)
            }
            (_, None) => None,
        };
        sizes.iter().map(rank).collect()
    }

    /// The branches and loops around an op: the uniform ones, and the conditions of divergent branches.
    #[allow(clippy::type_complexity)]
    fn enclosing_branches(&self, op: Op) -> Option<(Vec<(Op, Region)>, Vec<(Value, bool)>)> {
        let body = self.body;
        let (mut ways, mut tests) = (Vec::new(), Vec::new());
        let mut region = body.parent(op)?;
        while region != self.spine.root {
            let owner = body.owner(region)?;
            match body.kind(owner) {
                OpKind::If | OpKind::Switch(_) | OpKind::For { .. }
                    if self.is_uniform(body.operand(owner, 0), MAX_DEPTH) =>
                {
                    ways.push((owner, region));
                }
                OpKind::If => {
                    let then = body.op_regions(owner)[0] == region;
                    tests.push((body.operand(owner, 0), then));
                }
                OpKind::Loop { .. } => ways.push((owner, region)),
                _ => return None,
            }
            region = body.parent(owner)?;
        }
        Some((ways, tests))
    }

    /// Returns whether a value is uniform and constant while a block runs.
    fn is_uniform(&self, value: Value, depth: usize) -> bool {
        let body = self.body;
        let Some(region) = body.region_of(value) else {
            return true;
        };
        if !body.is_inside(region, self.spine.root) {
            return true;
        }
        if let Definition::Param(_, number) = body.values[value].def {
            return region == self.spine.root && number as usize >= self.dims();
        }
        let Some(op) = body.def_op(value).filter(|_| depth > 0) else {
            return false;
        };
        let in_spine =
            self.spine.is_in_skeleton(body, region) && !self.levels.is_per_thread_value(value);
        let computed = matches!(
            body.kind(op),
            OpKind::Cast(_) | OpKind::Binary(_) | OpKind::ICmp(_) | OpKind::Select
        );
        let mut operands = body.operands(op);
        in_spine && !self.is_in_loop(op)
            || computed && operands.all(|v| self.is_uniform(v, depth - 1))
    }

    /// Returns whether an op of the block is inside a loop of the block.
    fn is_in_loop(&self, op: Op) -> bool {
        let body = self.body;
        body.ancestors(op)
            .take_while(|owner| *owner != self.spine.block)
            .any(|owner| body.kind(owner).is_loop())
    }

    /// The value of an integer for a thread.
    fn evaluate(&self, value: Value, ranks: &[Option<i64>], depth: usize) -> Option<i64> {
        let (unit, body) = (self.unit, self.body);
        let bits = unit.types.int_bits(body.ty(value))?;
        if let Some(n) = body.as_int(unit, value) {
            return Some(if bits == 1 { n & 1 } else { n });
        }
        if let Definition::Param(region, number) = body.values[value].def {
            let number = number as usize;
            if region != self.spine.root {
                return self.last_iteration(region).filter(|_| number == 0);
            }
            return match number.checked_sub(self.dims()) {
                None => ranks[number],
                Some(dim) => self.extent(dim),
            };
        }
        let op = body.def_op(value).filter(|_| depth > 0)?;
        let operand = |index| self.evaluate(body.operand(op, index), ranks, depth - 1);
        let exact = match body.kind(op) {
            OpKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc) => {
                let from = operand(0)?;
                // Thread indices are small and non-negative.
                (from >= 0).then_some(from)?
            }
            OpKind::Binary(binary) => eval_binary(*binary, operand(0)?, operand(1)?)?,
            OpKind::ICmp(predicate) => {
                i64::from(eval_compare(*predicate, operand(0)?, operand(1)?)?)
            }
            OpKind::Select => match operand(0)? {
                0 => operand(2)?,
                _ => operand(1)?,
            },
            OpKind::Freeze => operand(0)?,
            _ => return None,
        };
        let exact = if bits == 1 { exact & 1 } else { exact };
        let fits = bits == 1 || exact.unsigned_abs() < 1 << (bits - 1).min(40);
        fits.then_some(exact)
    }

    /// The index of a loop's last iteration, which all threads in the loop execute.
    fn last_iteration(&self, region: Region) -> Option<i64> {
        let body = self.body;
        let owner = body.owner(region)?;
        let counted = matches!(body.kind(owner), OpKind::For { .. });
        let trips = counted.then(|| body.as_int(self.unit, body.operand(owner, 0)))??;
        (trips > 0).then_some(trips - 1)
    }

    /// Returns whether a barrier may separate two ops, of which `first` comes first; also true if the ops
    /// are not in sequence.
    fn may_be_synchronized(&self, first: Op, second: Op) -> bool {
        let body = self.body;
        let chain = |op: Op| {
            let ops = body.op_and_ancestors(op);
            ops.take_while(|op| *op != self.spine.block)
                .collect::<Vec<Op>>()
        };
        let (left, right) = (chain(first), chain(second));
        let level = left.iter().find_map(|a| {
            let beside = right.iter().find(|b| body.parent(**b) == body.parent(*a))?;
            Some((*a, *beside))
        });
        let Some((left_top, right_top)) = level.filter(|(a, b)| a != b) else {
            return true;
        };
        let cut = |op: &Op| self.spine.is_structural(*op);
        let before = |op: Op| std::iter::successors(body.prev(op), |op| body.prev(*op));
        let between = body.ops_after(left_top).take_while(|op| *op != right_top);
        between.into_iter().any(|op| cut(&op))
            || left
                .iter()
                .take_while(|op| **op != left_top)
                .any(|op| body.ops_after(*op).any(|op| cut(&op)))
            || right
                .iter()
                .take_while(|op| **op != right_top)
                .any(|op| before(*op).any(|op| cut(&op)))
    }

    fn race_warning(&self, store: Op, load: Op) -> Diagnostic {
        let span = |op: Op| self.unit.span(self.body.ops[op].loc);
        let message =
            "threads of one warp read and write a shared-memory location without synchronisation";
        Diagnostic::warning(Code::KernelRefused, message)
            .at(span(load), "read here")
            .at(span(store), "written here by another thread")
            .help("call `__syncwarp()` between all reads and writes, or declare the memory `volatile`: volatile accesses execute in lockstep")
    }
}

fn eval_binary(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    let small = |n: i64| (0..32).contains(&n).then_some(n as u32);
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Shl => a.checked_mul(1 << small(b)?),
        BinaryOp::LShr | BinaryOp::AShr => (a >= 0).then_some(a >> small(b)?),
        BinaryOp::URem | BinaryOp::SRem => (a >= 0 && b > 0).then(|| a % b),
        BinaryOp::UDiv | BinaryOp::SDiv => (a >= 0 && b > 0).then(|| a / b),
        _ => None,
    }
}

fn eval_compare(predicate: IntPredicate, a: i64, b: i64) -> Option<bool> {
    use IntPredicate::*;
    let unsigned = matches!(predicate, Ult | Ule | Ugt | Uge);
    // A negative number is large as an unsigned number.
    let (a, b) = match unsigned {
        true => (a as u64 as i128, b as u64 as i128),
        false => (a.into(), b.into()),
    };
    Some(match predicate {
        Eq => a == b,
        Ne => a != b,
        Slt | Ult => a < b,
        Sle | Ule => a <= b,
        Sgt | Ugt => a > b,
        Sge | Uge => a >= b,
    })
}
