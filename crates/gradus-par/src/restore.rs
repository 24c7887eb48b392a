//! Parallel loops found again: a `for` whose iterations are independent becomes a `par.for` where what
//! it carries from one to the next are sums and products that can be taken in any order.
//!
//! A carried value is such a reduction if every way to its next value only adds to it (or multiplies
//! it, and so on with one operation): directly, through merges and selections of which all arms do so
//! or hand it on, and through inner loops that carry it on in the same way. Nothing else may look at it
//! on the way. With the neutral value in its place, the region then computes what its iteration
//! contributes.

use crate::forks::Fork;
use crate::own_memory;
use gradus_edit::neutral;
use gradus_ir::{BinaryOp, Body, Builder, Flags, Op, OpKind, ReduceOp, Unit, Use, Value};
use std::collections::HashSet;

/// Turns the independent loops of a body into parallel loops and tasks, where that keeps their meaning; gives those
/// that stay, as they carry what is no reduction. What iterations have to themselves goes on the stack.
pub fn restore(unit: &mut Unit, body: &mut Body) -> Vec<Op> {
    own_memory::to_stack(unit, body);
    let mut stay = Vec::new();
    while let Some(op) = next(body, &stay) {
        let reduced = |index: usize| match carried_one(body, op, index) {
            Some(Carried::Reduced(kind)) => Some(kind),
            _ => None,
        };
        if let Some(fork) = Fork::of(unit, body, op, reduced) {
            fork.to_task(unit, body);
        } else if let Some(carried) = carried(body, op) {
            rebuild(unit, body, op, &carried);
        } else {
            stay.push(op);
        }
    }
    stay
}

/// The next independent loop from outside in, as inner ones are copied with forks.
fn next(body: &Body, stay: &[Op]) -> Option<Op> {
    let marked = |op: &Op| {
        let is_loop = matches!(body.kind(*op), OpKind::For { .. });
        is_loop && body.ops[*op].flags.has(Flags::INDEPENDENT) && !stay.contains(op)
    };
    body.walk(body.root()).find(marked)
}

/// What becomes of a carried value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carried {
    /// It never changes.
    Constant,
    /// It is a reduction.
    Reduced(ReduceOp),
}

/// How the carried values of a loop change; `None` where one of them is no reduction.
fn carried(body: &Body, op: Op) -> Option<Vec<Carried>> {
    let count = body.operand_count(op) - 1;
    (0..count)
        .map(|index| carried_one(body, op, index))
        .collect()
}

/// How a carried value changes.
fn carried_one(body: &Body, op: Op, index: usize) -> Option<Carried> {
    let region = body.op_regions(op)[0];
    let end = body.last(region)?;
    if !matches!(body.kind(end), OpKind::Yield) {
        return None;
    }
    let param = body.region_params(region)[1 + index];
    match body.operand(end, index) == param {
        true => Some(Carried::Constant),
        false => Chain::new(body, end, index)
            .follow(param)
            .map(Carried::Reduced),
    }
}

/// The way of one carried value through a region, to operand `index` of the region's end.
struct Chain<'a> {
    body: &'a Body,
    end: Op,
    index: usize,
    /// The operation that combines.
    kind: Option<ReduceOp>,
    /// The values that are the carried one combined with something that does not depend on it.
    on_it: HashSet<Value>,
    pending: Vec<Value>,
    /// Ops whose further operands must be such values too, or must not.
    passed: Vec<Op>,
}

impl<'a> Chain<'a> {
    fn new(body: &'a Body, end: Op, index: usize) -> Self {
        Chain {
            body,
            end,
            index,
            kind: None,
            on_it: HashSet::new(),
            pending: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// The operation, if the carried value is a reduction.
    fn follow(mut self, param: Value) -> Option<ReduceOp> {
        self.add(param);
        while let Some(value) = self.pending.pop() {
            for at in self.body.uses(value) {
                self.pass(at)?;
            }
        }
        let whole = self
            .on_it
            .contains(&self.body.operand(self.end, self.index))
            && self.passed.iter().all(|op| self.is_whole(*op));
        if whole { self.kind } else { None }
    }

    fn add(&mut self, value: Value) {
        if self.on_it.insert(value) {
            self.pending.push(value);
        }
    }

    /// Follows a value through one use of it; `None` where that is no way for a reduction.
    fn pass(&mut self, at: Use) -> Option<()> {
        let body = self.body;
        let index = at.index as usize;
        match body.kind(at.op) {
            OpKind::Binary(op) => {
                let kind = combining(*op, index)?;
                (*self.kind.get_or_insert(kind) == kind).then_some(())?;
                self.add(body.result(at.op));
            }
            OpKind::Select if index > 0 => self.add(body.result(at.op)),
            OpKind::For { .. } if index > 0 => {
                let inner = body.op_regions(at.op)[0];
                self.add(body.region_params(inner)[index]);
                self.add(body.results(at.op)[index - 1]);
            }
            OpKind::Yield if at.op == self.end => (index == self.index).then_some(())?,
            OpKind::Yield => {
                let owner = body.parent(at.op).and_then(|r| body.owner(r))?;
                match body.kind(owner) {
                    OpKind::If | OpKind::Switch(_) => self.add(body.results(owner)[index]),
                    // Checked with the loop's other parts.
                    OpKind::For { .. } => {}
                    _ => return None,
                }
                self.passed.push(owner);
            }
            _ => return None,
        }
        self.passed.push(at.op);
        Some(())
    }

    /// Whether all that an op joins fits: one operand of an operation depends on the carried value,
    /// and every arm of a choice.
    fn is_whole(&self, op: Op) -> bool {
        let body = self.body;
        let on_it = |value: &Value| self.on_it.contains(value);
        match body.kind(op) {
            OpKind::Binary(_) => body.operands(op).filter(on_it).count() == 1,
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
            _ => true,
        }
    }

    /// What the regions of an op yield for its result `index`; regions that never end yield nothing.
    fn yields(&self, op: Op, index: usize) -> Vec<Value> {
        let body = self.body;
        let ends = body.op_regions(op).iter().filter_map(|r| body.last(*r));
        ends.filter(|end| matches!(body.kind(*end), OpKind::Yield))
            .map(|end| body.operand(end, index))
            .collect()
    }
}

/// The reduction that an operation on the carried value as operand `index` is part of.
fn combining(op: BinaryOp, index: usize) -> Option<ReduceOp> {
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

fn rebuild(unit: &mut Unit, body: &mut Body, op: Op, carried: &[Carried]) {
    let region = body.op_regions(op)[0];
    let operands: Vec<Value> = body.operands(op).collect();
    let params = body.region_params(region).to_vec();
    let results = body.results(op).to_vec();
    let b = &mut Builder::new(unit, body);
    b.loc = b.body.ops[op].loc;
    b.at_op(op);
    let (mut begun, mut taken) = (Vec::new(), Vec::new());
    for (i, how) in carried.iter().enumerate() {
        let (start, param) = (operands[i + 1], params[i + 1]);
        let Carried::Reduced(kind) = *how else {
            b.body.replace_uses(param, start);
            b.body.replace_uses(results[i], start);
            continue;
        };
        let ty = b.body.ty(start);
        if let Some(neutral) = neutral(b, kind, ty) {
            b.body.replace_uses(param, neutral);
        }
        begun.push((kind, start));
        taken.push(i);
    }
    let (new, into) = b.par_for(operands[0], &begun, None);
    let index = b.body.region_params(into)[0];
    b.body.replace_uses(params[0], index);
    b.body.move_ops(region, into);
    if let Some(end) = b.body.last(into) {
        let given: Vec<Value> = taken.iter().map(|i| b.body.operand(end, *i)).collect();
        b.body.set_operands(end, &given);
    }
    for (at, i) in taken.into_iter().enumerate() {
        let value = b.body.results(new)[at];
        b.body.replace_uses(results[i], value);
    }
    b.body.erase(op);
}
