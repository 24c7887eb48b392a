//! Recognises reductions among the carried values of loops.
//!
//! A carried value is a reduction if every path to its next value combines the value with one operation (add,
//! multiply, maximum and so on). Paths lead through combining ops, through merges and selects whose arms all
//! combine or forward the value, and through inner loops that carry the value in the same manner. No other op
//! may use the intermediate values. With the identity element as initial value, the loop's region then
//! computes the contribution of an iteration.

use crate::facts::reduction_ops::{MinMax, identity, integer_min_max};
use gradus_ir::externals::{ExternalFn, IntFn, MathFn};
use gradus_ir::{
    BinaryOp, Body, Builder, Definition, Flags, FloatKind, FloatPredicate, Op, OpKind, ReduceOp,
    Unit, Use, Value,
};
use std::collections::HashSet;

/// Maximum number of values visited to prove a carried value constant.
const VALUES_MAX: usize = 64;

/// Classification of a carried value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedValue {
    /// The value is loop-invariant.
    Constant,
    /// The value is a reduction.
    Reduced(ReductionKind),
}

/// Combining operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionKind {
    /// Named reduction operation.
    By(ReduceOp),
    /// Select by a floating-point comparison, see [`MinMax`].
    Choice {
        /// Predicate of the comparison.
        predicate: FloatPredicate,
        /// True if the carried value is the first operand.
        carried_first: bool,
        /// True if flags exclude infinite operands.
        finite: bool,
    },
}

impl ReductionKind {
    /// Returns the identity element, the initial value of a partial reduction.
    pub fn identity(self, b: &mut Builder<'_>, like: Value) -> Option<Value> {
        let ty = b.body.ty(like);
        match self {
            ReductionKind::By(op) => identity(b, op, ty),
            ReductionKind::Choice {
                predicate, finite, ..
            } => {
                use FloatPredicate::{Ole, Olt};
                let kind = b.unit.types.float_kind(ty);
                let most = match (finite, kind) {
                    (true, Some(FloatKind::F64)) => f64::MAX,
                    (true, Some(FloatKind::F32)) => f32::MAX.into(),
                    _ => f64::INFINITY,
                };
                let is_least = matches!(predicate, Olt | Ole);
                let bound = if is_least { most } else { -most };
                Some(b.float(ty, bound))
            }
        }
    }

    /// Returns the reduction operation; [`ReduceOp::Custom`] for a select.
    pub fn op(self) -> ReduceOp {
        match self {
            ReductionKind::By(op) => op,
            ReductionKind::Choice { .. } => ReduceOp::Custom,
        }
    }

    /// Adds the combiner region to loop `lp` for an operation without a name.
    pub fn add_combiner_region(self, b: &mut Builder<'_>, lp: Op, like: Value) {
        let ReductionKind::Choice {
            predicate,
            carried_first,
            ..
        } = self
        else {
            // Not an error: a named operation needs no combiner region.
            return;
        };
        let ty = b.body.ty(like);
        let region = b.body.add_region(lp);
        let (total, given) = (b.body.add_param(region, ty), b.body.add_param(region, ty));
        let (first, second) = if carried_first {
            (total, given)
        } else {
            (given, total)
        };
        let back = b.set_insertion_end(region);
        let test = b.fcmp(predicate, first, second);
        let chosen = b.select(test, first, second);
        b.yield_(&[chosen]);
        b.restore_insertion_point(back);
    }
}

/// Classifies carried value `index` of a `for`; `None` if the value is neither invariant nor a reduction.
pub fn carried_value(unit: &Unit, body: &Body, op: Op, index: usize) -> Option<CarriedValue> {
    let region = body.op_regions(op)[0];
    let end = body.yield_of(region)?;
    let param = body.region_params(region)[1 + index];
    let (initial, next) = (body.operand(op, 1 + index), body.operand(end, index));
    match is_always_one_of(body, next, vec![initial, param]) {
        true => Some(CarriedValue::Constant),
        false => Chain::new(unit, body, end, index)
            .follow_uses(param)
            .map(CarriedValue::Reduced),
    }
}

/// Returns whether `value` always equals a member of `same`, assuming all members equal. Looks through
/// branches, selects and inner loops.
pub fn is_always_one_of(body: &Body, value: Value, mut same: Vec<Value>) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if same.contains(&value) {
            continue;
        }
        if same.len() > VALUES_MAX {
            return false;
        }
        same.push(value);
        let Definition::Result(op, index) = body.values[value].def else {
            return false;
        };
        let index = index as usize;
        match body.kind(op) {
            OpKind::Select => open.extend([body.operand(op, 1), body.operand(op, 2)]),
            OpKind::If | OpKind::Switch(_) => {
                let mut given = 0;
                for &arm in body.op_regions(op) {
                    let last = body
                        .last(arm)
                        .filter(|&l| matches!(body.kind(l), OpKind::Yield));
                    if let Some(last) = last {
                        open.push(body.operand(last, index));
                        given += 1;
                    }
                }
                if given == 0 {
                    return false;
                }
            }
            OpKind::For { .. } => {
                let region = body.op_regions(op)[0];
                let last = body.last(region);
                // Control may never reach the end of an iteration.
                let last = last.filter(|last| matches!(body.kind(*last), OpKind::Yield));
                same.push(body.region_params(region)[1 + index]);
                open.push(body.operand(op, 1 + index));
                open.extend(last.map(|last| body.operand(last, index)));
            }
            _ => return false,
        }
    }
    true
}

/// Use-def chains of a carried value through a region, to operand `index` of the region's terminator.
struct Chain<'a> {
    unit: &'a Unit,
    body: &'a Body,
    end: Op,
    index: usize,
    /// Combining operation, once known.
    kind: Option<ReductionKind>,
    /// Intersection of the fast-math flags of the combining ops.
    fast_math: Option<Flags>,
    /// Values that equal the carried value combined with independent values.
    dependent: HashSet<Value>,
    pending: Vec<Value>,
    /// Visited ops whose other operands are checked by [`Chain::operands_fit`].
    visited: Vec<Op>,
}

impl<'a> Chain<'a> {
    fn new(unit: &'a Unit, body: &'a Body, end: Op, index: usize) -> Self {
        Chain {
            unit,
            body,
            end,
            index,
            kind: None,
            fast_math: None,
            dependent: HashSet::new(),
            pending: Vec::new(),
            visited: Vec::new(),
        }
    }

    /// Returns the combining operation if the carried value is a reduction.
    fn follow_uses(mut self, param: Value) -> Option<ReductionKind> {
        self.add(param);
        while let Some(value) = self.pending.pop() {
            for at in self.body.uses(value) {
                self.follow_use(at)?;
            }
        }
        let whole = self
            .dependent
            .contains(&self.body.operand(self.end, self.index))
            && self.visited.iter().all(|op| self.operands_fit(*op));
        if whole {
            self.kind.map(|kind| self.with_fast_math(kind))
        } else {
            None
        }
    }

    /// Applies the fast-math flags. Without NaN operands, a maximum or minimum is a select, whose identity
    /// element is a number.
    fn with_fast_math(&self, kind: ReductionKind) -> ReductionKind {
        let has = |flag| self.fast_math.is_some_and(|stated| stated.has(flag));
        let finite = has(Flags::NINF);
        let predicate = match kind {
            ReductionKind::By(ReduceOp::FMax) if has(Flags::NNAN) => FloatPredicate::Ogt,
            ReductionKind::By(ReduceOp::FMin) if has(Flags::NNAN) => FloatPredicate::Olt,
            ReductionKind::Choice {
                predicate,
                carried_first,
                ..
            } => {
                return ReductionKind::Choice {
                    predicate,
                    carried_first,
                    finite,
                };
            }
            other => return other,
        };
        ReductionKind::Choice {
            predicate,
            carried_first: false,
            finite,
        }
    }

    fn add(&mut self, value: Value) {
        if self.dependent.insert(value) {
            self.pending.push(value);
        }
    }

    /// Follows a value through a use; `None` if the use is illegal in a reduction.
    fn follow_use(&mut self, at: Use) -> Option<()> {
        let body = self.body;
        let index = at.index as usize;
        match body.kind(at.op) {
            OpKind::Binary(op) => {
                self.combine(at.op, ReductionKind::By(reduction_of_binary(*op, index)?))?
            }
            OpKind::Call(_) => self.combine(
                at.op,
                ReductionKind::By(self.reduction_of_call(at.op, body.operand(at.op, index))?),
            )?,
            // The comparison of a min/max select.
            OpKind::ICmp(_) | OpKind::FCmp(_) => {
                let choice = self.only_use(body.result(at.op)).filter(|u| u.index == 0)?;
                self.min_max_reduction(choice.op, body.operand(at.op, index))?;
                return Some(());
            }
            OpKind::Select if index > 0 && self.is_min_max(at.op) => {
                let kind = self.min_max_reduction(at.op, body.operand(at.op, index))?;
                self.combine(at.op, kind)?;
            }
            OpKind::Select if index > 0 => self.add(body.result(at.op)),
            OpKind::For { .. } if index > 0 => {
                let inner = body.op_regions(at.op)[0];
                self.add(body.region_params(inner)[index]);
                self.add(body.results(at.op)[index - 1]);
            }
            OpKind::Loop { .. } => {
                let inner = body.op_regions(at.op)[0];
                self.add(body.region_params(inner)[index]);
            }
            OpKind::Repeat => self.follow_repeat(at.op, index)?,
            OpKind::Yield if at.op == self.end => (index == self.index).then_some(())?,
            OpKind::Yield => {
                let owner = body.parent_op(at.op)?;
                match body.kind(owner) {
                    OpKind::If | OpKind::Switch(_) => self.add(body.results(owner)[index]),
                    // [`Chain::operands_fit`] checks the loop.
                    OpKind::For { .. } => {}
                    _ => return None,
                }
                self.visited.push(owner);
            }
            _ => return None,
        }
        self.visited.push(at.op);
        Some(())
    }

    /// Follows a value to operand `index` of a `repeat`. The loop condition must not depend on the value;
    /// [`Chain::operands_fit`] checks the carried values.
    fn follow_repeat(&mut self, end: Op, index: usize) -> Option<()> {
        let body = self.body;
        let region = body.parent(end)?;
        let owner = body.owner(region)?;
        let carried = body.region_params(region).len();
        if let Some(result) = index.checked_sub(1)?.checked_sub(carried) {
            self.add(body.results(owner)[result]);
        }
        self.visited.push(owner);
        Some(())
    }

    /// Records the result of `op` as the carried value combined with another value.
    fn combine(&mut self, op: Op, kind: ReductionKind) -> Option<()> {
        (*self.kind.get_or_insert(kind) == kind).then_some(())?;
        let test = match self.body.kind(op) {
            OpKind::Select => self.body.def_op(self.body.operand(op, 0))?,
            _ => op,
        };
        let flags = self.body.ops[test].flags;
        self.fast_math = Some(self.fast_math.map_or(flags, |stated| stated.and(flags)));
        self.add(self.body.result(op));
        Some(())
    }

    /// Returns the reduction operation of a call that uses the carried value.
    fn reduction_of_call(&self, op: Op, carried: Value) -> Option<ReduceOp> {
        let callee = self.unit.callee(self.body, op)?;
        Some(match self.unit.known(callee)? {
            // `s + x * y`, rounded once or twice.
            ExternalFn::Math(MathFn::Fmuladd | MathFn::Fma) => {
                let args = self.unit.call_args(self.body, op);
                (args.get(2) == Some(&carried)).then_some(ReduceOp::FAdd)?
            }
            ExternalFn::Integer(IntFn::Smax) => ReduceOp::Max,
            ExternalFn::Integer(IntFn::Smin) => ReduceOp::Min,
            ExternalFn::Integer(IntFn::Umax) => ReduceOp::UMax,
            ExternalFn::Integer(IntFn::Umin) => ReduceOp::UMin,
            ExternalFn::Math(MathFn::Maxnum) => ReduceOp::FMax,
            ExternalFn::Math(MathFn::Minnum) => ReduceOp::FMin,
            ExternalFn::Math(MathFn::Maximum) => ReduceOp::FMaximum,
            ExternalFn::Math(MathFn::Minimum) => ReduceOp::FMinimum,
            _ => return None,
        })
    }

    fn only_use(&self, value: Value) -> Option<Use> {
        let mut uses = self.body.uses(value);
        let first = uses.next();
        first.filter(|_| uses.next().is_none())
    }

    /// Returns whether a select is a min/max idiom whose comparison has no other use.
    fn is_min_max(&self, select: Op) -> bool {
        let result = self.body.result(select);
        self.only_use(self.body.operand(select, 0)).is_some()
            && (integer_min_max(self.body, result).is_some()
                || MinMax::of(self.body, result).is_some())
    }

    /// Returns the combining operation if `select` is the minimum or maximum of `carried` and another value.
    fn min_max_reduction(&self, select: Op, carried: Value) -> Option<ReductionKind> {
        if !matches!(self.body.kind(select), OpKind::Select) || !self.is_min_max(select) {
            return None;
        }
        let result = self.body.result(select);
        match integer_min_max(self.body, result) {
            Some((op, arms)) => arms.contains(&carried).then_some(ReductionKind::By(op)),
            None => {
                let choice = MinMax::of(self.body, result)?;
                let carried_first = choice.first == carried;
                let test = self.body.def_op(self.body.operand(select, 0))?;
                // The select returns its second operand if either operand is a NaN. The carried value is then
                // lost, and the result depends on the grouping of iterations.
                let is_exact = !carried_first || self.body.ops[test].flags.has(Flags::NNAN);
                is_exact.then_some(ReductionKind::Choice {
                    predicate: choice.predicate,
                    carried_first,
                    finite: false,
                })
            }
        }
    }

    /// Returns whether the operands of a visited op fit a reduction: exactly one operand of a combining op
    /// depends on the carried value; for a merge, all arms do.
    fn operands_fit(&self, op: Op) -> bool {
        let body = self.body;
        let on_it = |value: &Value| self.dependent.contains(value);
        match body.kind(op) {
            OpKind::Binary(_) | OpKind::Call(_) => body.operands(op).filter(on_it).count() == 1,
            OpKind::Select if self.is_min_max(op) => {
                body.operands(op).skip(1).filter(on_it).count() == 1
            }
            OpKind::Select => body.operands(op).skip(1).all(|v| on_it(&v)),
            OpKind::If | OpKind::Switch(_) => (0..body.results(op).len()).all(|i| {
                let yields = self.yields(op, i);
                !on_it(&body.results(op)[i]) && !yields.iter().any(on_it)
                    || yields.iter().all(on_it)
            }),
            OpKind::For { .. } => (0..body.results(op).len()).all(|i| {
                let parts = [
                    body.operand(op, i + 1),
                    body.region_params(body.op_regions(op)[0])[i + 1],
                    body.results(op)[i],
                ];
                let yields = self.yields(op, i);
                let mut all = parts.iter().chain(&yields);
                !on_it(&parts[1]) && !all.clone().any(on_it) || all.all(on_it)
            }),
            OpKind::Loop { .. } => {
                let region = body.op_regions(op)[0];
                let params = body.region_params(region);
                let end =
                    (body.last(region)).filter(|end| matches!(body.kind(*end), OpKind::Repeat));
                let next = |i| end.map(|end| body.operand(end, i + 1));
                params.iter().enumerate().all(|(i, param)| {
                    let begun = on_it(&body.operand(op, i));
                    begun == on_it(param) && next(i).is_some_and(|next| begun == on_it(&next))
                })
            }
            _ => true,
        }
    }

    /// Returns the values that the regions of an op yield for result `index`; regions without a yield are
    /// skipped.
    fn yields(&self, op: Op, index: usize) -> Vec<Value> {
        let body = self.body;
        let ends = body.op_regions(op).iter().filter_map(|r| body.last(*r));
        ends.filter(|end| matches!(body.kind(*end), OpKind::Yield))
            .map(|end| body.operand(end, index))
            .collect()
    }
}

/// Returns the reduction operation of a binary op with the carried value as operand `index`.
fn reduction_of_binary(op: BinaryOp, index: usize) -> Option<ReduceOp> {
    Some(match op {
        BinaryOp::FAdd => ReduceOp::FAdd,
        BinaryOp::FSub if index == 0 => ReduceOp::FAdd,
        BinaryOp::FMul => ReduceOp::FMul,
        BinaryOp::Add => ReduceOp::Add,
        BinaryOp::Sub if index == 0 => ReduceOp::Add,
        BinaryOp::Mul => ReduceOp::Mul,
        BinaryOp::And => ReduceOp::And,
        BinaryOp::Or => ReduceOp::Or,
        BinaryOp::Xor => ReduceOp::Xor,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classifies the carried value of a loop that combines it with two numbers, by calls with these flags.
    fn maximum_of_two(first: &str, second: &str) -> Option<CarriedValue> {
        let text = format!(
            "declare @llvm.maxnum.f64(f64, f64) -> f64
             func @f(%x: ptr, %n: i64) -> f64 {{
               %s = for %i < %n iter(%m = 0.0) {{
                 %p = addr f64, %x, %i %a = load %p -> f64
                 %b = call {first} @llvm.maxnum.f64(%m, %a)
                 %c = call {second} @llvm.maxnum.f64(%b, 3.0)
                 yield %c }}
               return %s }}"
        );
        let unit = gradus_ir::parse(&text, "program")
            .unwrap_or_else(|e| panic!("{e} {:?}\n{text}", e.labels));
        let func = unit.function("f")?;
        let body = unit.functions[func].body.as_deref()?;
        let is_for = |op: &Op| matches!(body.kind(*op), OpKind::For { .. });
        carried_value(&unit, body, body.walk(body.root()).find(is_for)?, 0)
    }

    /// A flag states a property of one operation. A reduction has the flags of all its operations.
    #[test]
    fn reductions_have_the_flags_common_to_their_operations() {
        let named = Some(CarriedValue::Reduced(ReductionKind::By(ReduceOp::FMax)));
        let choice = |finite| {
            Some(CarriedValue::Reduced(ReductionKind::Choice {
                predicate: FloatPredicate::Ogt,
                carried_first: false,
                finite,
            }))
        };
        assert_eq!(maximum_of_two("", ""), named);
        assert_eq!(maximum_of_two("nnan", ""), named);
        assert_eq!(maximum_of_two("", "nnan"), named);
        assert_eq!(maximum_of_two("nnan", "nnan"), choice(false));
        assert_eq!(maximum_of_two("nnan ninf", "nnan"), choice(false));
        assert_eq!(maximum_of_two("nnan ninf", "nnan ninf"), choice(true));
    }
}
