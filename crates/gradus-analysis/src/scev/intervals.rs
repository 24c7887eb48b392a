//! Constant intervals of integers, as signed numbers.
//!
//! One pass in program order (interval analysis without conditions; Moore, 1966). A loop-carried value is
//! unbounded, a loop index stays below its trip count, and a region result is the hull of its yields. Other
//! analyses use the intervals to prove that narrow arithmetic does not wrap.

use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{
    BinaryOp, Body, CastOp, Entity, Flags, MAX_BLOCK_THREADS, Op, OpKind, SpmdKind, Unit, Value,
};

/// Smallest and largest possible value.
pub type Interval = (i64, i64);

/// The intervals of the integers, of at most 64 bits, of one body. Valid until the first edit.
#[derive(Clone, Debug)]
pub struct Intervals {
    known: Vec<Option<Interval>>,
}

impl Intervals {
    /// Returns a table with the intervals of the types only.
    pub(crate) fn new(body: &Body) -> Intervals {
        Intervals {
            known: vec![None; body.values.len()],
        }
    }

    /// Returns the interval of a value. The default is the interval of its type, or of 64 bits for a
    /// non-integer.
    pub fn of(&self, unit: &Unit, body: &Body, value: Value) -> Interval {
        if let Some(n) = body.as_int(unit, value) {
            return (n, n);
        }
        let known = self.known.get(value.index()).copied().flatten();
        known.unwrap_or_else(|| full_interval(bits(unit, body, value)))
    }

    /// Returns the interval of a constant plus products of values with factors; `None` if it exceeds 64
    /// bits.
    pub(crate) fn of_sum<A: Iterator<Item = Value>>(
        &self,
        unit: &Unit,
        body: &Body,
        constant: i64,
        terms: impl Iterator<Item = (i64, A)>,
    ) -> Option<Interval> {
        let constant = i128::from(constant);
        let (mut low, mut high) = (constant, constant);
        for (factor, atoms) in terms {
            let mut part = (i128::from(factor), i128::from(factor));
            for atom in atoms {
                let (a, b) = self.of(unit, body, atom);
                let ends = [
                    part.0.checked_mul(a.into())?,
                    part.0.checked_mul(b.into())?,
                    part.1.checked_mul(a.into())?,
                    part.1.checked_mul(b.into())?,
                ];
                part = (ends.into_iter().min()?, ends.into_iter().max()?);
            }
            low = low.checked_add(part.0)?;
            high = high.checked_add(part.1)?;
        }
        Some((i64::try_from(low).ok()?, i64::try_from(high).ok()?))
    }

    pub(crate) fn set(&mut self, value: Value, interval: Option<Interval>) {
        self.known[value.index()] = interval;
    }

    /// Sets the interval of a loop index: 0 to the trip count minus one. Requires 64 bits (no loop runs 2⁶³
    /// times), a known maximal trip count, or a trip count that is non-negative as a signed number.
    pub(crate) fn enter_for(&mut self, unit: &Unit, body: &Body, lp: Op, trip_max: Option<u64>) {
        let trips = body.operand(lp, 0);
        let Some(&index) = body.region_params(body.op_regions(lp)[0]).first() else {
            unreachable!("a counted loop has an index");
        };
        let width = bits(unit, body, index);
        let (low, high) = self.of(unit, body, trips);
        let limit = full_interval(width).1;
        let bounded = trip_max.and_then(|max| i64::try_from(max).ok());
        let most = match bounded.filter(|max| *max <= limit) {
            Some(max) if width < 64 && low < 0 => max,
            Some(max) => max.min(high),
            None if width == 64 || low >= 0 => high,
            None => return,
        };
        self.set(index, Some((0, most.saturating_sub(1).max(0))));
    }

    /// Sets the intervals of thread indices: below the extents of blocks and grids. A block of non-constant
    /// size has at most [`MAX_BLOCK_THREADS`] threads.
    pub(crate) fn enter_spmd(&mut self, unit: &Unit, body: &Body, op: Op, kind: SpmdKind) {
        if kind == SpmdKind::Team {
            return;
        }
        let params = body.region_params(body.op_regions(op)[0]);
        let dims = body.operand_count(op);
        for (dim, extent) in body.operands(op).enumerate() {
            let (low, mut high) = self.of(unit, body, extent);
            let constant = body.as_int(unit, extent).is_some();
            if kind == SpmdKind::Block && !constant {
                high = high.min(MAX_BLOCK_THREADS.into());
            } else if low < 0 {
                continue;
            }
            self.set(params[dim], Some((0, (high - 1).max(0))));
            self.set(params[dims + dim], Some((0, high.max(0))));
        }
    }

    /// Adds the yields of one region of an `if` or `switch` to the hulls of the results.
    pub(crate) fn join_yields(&mut self, unit: &Unit, body: &Body, end: Op) {
        let owner = body.parent_op(end);
        let Some(owner) = owner.filter(|o| matches!(body.kind(*o), OpKind::If | OpKind::Switch(_)))
        else {
            // Not an error: the terminator belongs to neither `if` nor `switch`.
            return;
        };
        for (&result, value) in body.results(owner).iter().zip(body.operands(end)) {
            let (low, high) = self.of(unit, body, value);
            self.known[result.index()] = match self.known[result.index()] {
                None => Some((low, high)),
                Some((a, b)) => Some((a.min(low), b.max(high))),
            };
        }
    }

    /// Returns the interval of an op's integer result.
    pub(crate) fn of_op(&self, unit: &Unit, body: &Body, op: Op) -> Option<Interval> {
        let result = *body.results(op).first()?;
        let width = match unit.types.get(body.ty(result)) {
            gradus_ir::Type::Int(width @ 1..=64) => *width,
            _ => return None,
        };
        let get = |index| self.of(unit, body, body.operand(op, index));
        let found = match body.kind(op) {
            OpKind::Cast(cast) => self.cast(unit, body, op, *cast)?,
            OpKind::Binary(binary) => arithmetic(*binary, get(0), get(1), width),
            OpKind::Select => {
                let ((a, b), (c, d)) = (get(1), get(2));
                Some((a.min(c).into(), b.max(d).into()))
            }
            OpKind::Freeze => None,
            OpKind::Call(_) => {
                let callee = unit.known_callee(body, op);
                let Some(ExternalFn::Integer(function)) = callee else {
                    return None;
                };
                let args = unit.call_args(body, op);
                let args: Vec<Interval> = args.iter().map(|a| self.of(unit, body, *a)).collect();
                of_known(function, &args, width)
            }
            _ => None,
        };
        let (low, high) = found?;
        let (least, most) = full_interval(width);
        let fits = low >= i128::from(least) && high <= i128::from(most);
        let clamps = body.ops[op].flags.has(Flags::NSW);
        (fits || clamps).then(|| {
            let clamp = |n: i128| n.clamp(least.into(), most.into()) as i64;
            (clamp(low), clamp(high))
        })
    }

    fn cast(&self, unit: &Unit, body: &Body, op: Op, cast: CastOp) -> Option<Option<Wide>> {
        let from = body.operand(op, 0);
        unit.types.int_bits(body.ty(from)).filter(|b| *b <= 64)?;
        let (low, high) = self.of(unit, body, from);
        let (low, high) = (i128::from(low), i128::from(high));
        Some(match cast {
            CastOp::ZExt if low >= 0 => Some((low, high)),
            CastOp::ZExt if body.ops[op].flags.has(Flags::NNEG) => Some((0, high.max(0))),
            CastOp::ZExt => Some((0, (1 << bits(unit, body, from)) - 1)),
            CastOp::SExt | CastOp::Trunc => Some((low, high)),
            _ => None,
        })
    }

    /// Returns true if the exact result of an op fits its type and therefore does not wrap.
    pub(crate) fn cannot_wrap(&self, unit: &Unit, body: &Body, op: Op) -> bool {
        let get = |index| self.of(unit, body, body.operand(op, index));
        let width = bits(unit, body, body.result(op));
        let exact = match *body.kind(op) {
            OpKind::Binary(
                binary @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl),
            ) => arithmetic(binary, get(0), get(1), width),
            OpKind::Cast(CastOp::Trunc) => {
                let (low, high) = get(0);
                let narrow = bits(unit, body, body.operand(op, 0)) <= 64;
                narrow.then_some((low.into(), high.into()))
            }
            _ => None,
        };
        let (least, most) = full_interval(width);
        exact.is_some_and(|(low, high)| low >= i128::from(least) && high <= i128::from(most))
    }
}

type Wide = (i128, i128);

fn bits(unit: &Unit, body: &Body, value: Value) -> u32 {
    unit.types.int_bits(body.ty(value)).unwrap_or(64)
}

/// Returns the interval of all signed numbers of `bits` bits, at most 64.
pub(crate) fn full_interval(bits: u32) -> Interval {
    let shift = 64u32.saturating_sub(bits);
    (i64::MIN >> shift, i64::MAX >> shift)
}

/// Returns the exact results of an operation on two intervals, before truncation to `width` bits.
fn arithmetic(op: BinaryOp, a: Interval, b: Interval, width: u32) -> Option<Wide> {
    let ((a, b), (c, d)) = (
        (i128::from(a.0), i128::from(a.1)),
        (i128::from(b.0), i128::from(b.1)),
    );
    let by = (c == d && (0..i128::from(width)).contains(&c)).then_some(c as u32);
    let hull = |ends: [i128; 4]| {
        let low = ends.into_iter().min()?;
        Some((low, ends.into_iter().max()?))
    };
    match op {
        BinaryOp::Add => Some((a + c, b + d)),
        BinaryOp::Sub => Some((a - d, b - c)),
        BinaryOp::Mul => hull([a * c, a * d, b * c, b * d]),
        BinaryOp::Shl => by.map(|by| (a << by, b << by)),
        BinaryOp::AShr => by.map(|by| (a >> by, b >> by)),
        BinaryOp::LShr if a >= 0 => by.map(|by| (a >> by, b >> by)),
        BinaryOp::LShr => by
            .filter(|by| *by > 0)
            .map(|by| (0, (1 << (width - by)) - 1)),
        BinaryOp::And => match (a >= 0, c >= 0) {
            (true, true) => Some((0, b.min(d))),
            (true, false) => Some((0, b)),
            (false, true) => Some((0, d)),
            (false, false) => None,
        },
        BinaryOp::Or | BinaryOp::Xor if a >= 0 && c >= 0 => {
            let top = b.max(d) as u128;
            Some((0, ((top + 1).next_power_of_two() - 1) as i128))
        }
        BinaryOp::UDiv if a >= 0 && c > 0 => Some((a / d, b / c)),
        BinaryOp::SDiv if c > 0 => hull([a / c, a / d, b / c, b / d]),
        BinaryOp::URem if c > 0 => Some((0, if a >= 0 { b.min(d - 1) } else { d - 1 })),
        BinaryOp::SRem if c > 0 => Some((if a < 0 { 1 - d } else { 0 }, d - 1)),
        _ => None,
    }
}

fn of_known(function: IntFn, args: &[Interval], width: u32) -> Option<Wide> {
    let wide = |i: usize| args.get(i).map(|(a, b)| (i128::from(*a), i128::from(*b)));
    match function {
        IntFn::Smax => {
            let ((a, b), (c, d)) = (wide(0)?, wide(1)?);
            Some((a.max(c), b.max(d)))
        }
        IntFn::Smin => {
            let ((a, b), (c, d)) = (wide(0)?, wide(1)?);
            Some((a.min(c), b.min(d)))
        }
        IntFn::Umin | IntFn::Umax => {
            let ((a, b), (c, d)) = (wide(0)?, wide(1)?);
            let both = a >= 0 && c >= 0;
            match function {
                IntFn::Umin if both => Some((a.min(c), b.min(d))),
                IntFn::Umin if a >= 0 => Some((0, b)),
                IntFn::Umin if c >= 0 => Some((0, d)),
                IntFn::Umax if both => Some((a.max(c), b.max(d))),
                _ => None,
            }
        }
        IntFn::Ctpop | IntFn::Ctlz | IntFn::Cttz => Some((0, width.into())),
        _ => None,
    }
}
