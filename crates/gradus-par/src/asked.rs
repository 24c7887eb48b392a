//! Loops that rely on what the program was told of the number of threads.
//!
//! A derivative's program is told of one thread, as its teams have one. With that answer it may take a way that is
//! right on one thread only (`if (threads > 1) own[i] = …; else shared[list[i]] += …;`), and so a loop that looks at
//! the answer, or runs because of it, is serial in the derivative. Where the answer goes to memory, to a function or to
//! a caller, it may come to any loop, and all are. Numbers in floating point are results, not answers.

use gradus_ir::known::{Known, OpenMpFn};
use gradus_ir::{Body, FuncId, LocId, Op, OpKind, Unit, Value};
use std::collections::HashSet;

/// Whether an op asks how many threads there may be.
pub(crate) fn asks(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = unit.callee(body, op).and_then(|f| unit.known(f));
    known == Some(Known::OpenMp(OpenMpFn::MaxThreads)) && matches!(body.kind(op), OpKind::Call(_))
}

/// Which parallel loops rely on the answer.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    anywhere: bool,
    loops: HashSet<(FuncId, Op)>,
}

impl Asked {
    /// Looks through functions, before they are answered.
    pub(crate) fn of(unit: &Unit, functions: &[FuncId]) -> Asked {
        let mut asked = Asked::default();
        for &func in functions {
            if let Some(body) = unit.functions[func].body.as_deref() {
                asked.follow(unit, func, body);
            }
        }
        asked
    }

    /// Whether a loop of a function relies on it.
    pub(crate) fn relies(&self, func: FuncId, op: Op) -> bool {
        self.anywhere || self.loops.contains(&(func, op))
    }

    /// The functions of those loops that do, and where they stand.
    pub(crate) fn places(&self, unit: &Unit, functions: &[FuncId]) -> Vec<(FuncId, Option<LocId>)> {
        let of = |&func: &FuncId| {
            let body = unit.functions[func].body.as_deref();
            body.into_iter().flat_map(move |body| {
                let loops = body.walk(body.root()).filter(move |op| {
                    matches!(body.kind(*op), OpKind::ParFor { .. }) && self.relies(func, *op)
                });
                loops.map(move |op| (func, body.ops[op].loc))
            })
        };
        functions.iter().flat_map(of).collect()
    }

    fn follow(&mut self, unit: &Unit, func: FuncId, body: &Body) {
        let calls = body.walk(body.root()).filter(|op| asks(unit, body, *op));
        let mut work: Vec<Value> = calls.map(|op| body.result(op)).collect();
        let mut seen: HashSet<Value> = work.iter().copied().collect();
        while let Some(value) = work.pop() {
            let mut ops: Vec<Op> = body.uses(value).map(|at| at.op).collect();
            ops.extend(body.def_op(value));
            for op in ops {
                self.note(func, body, op);
                self.anywhere |= self.hands_on(unit, body, op, value);
                let mut reached: Vec<Value> = match leads_elsewhere(unit, body, op) {
                    true => Vec::new(),
                    false => body.results(op).to_vec(),
                };
                // The end of a region hands on to the results of what owns it, and to its next run.
                if let Some(around) = body.parent(op).and_then(|region| body.owner(region))
                    && body.kind(op).is_terminator()
                {
                    reached.extend(body.results(around));
                    let regions = body.op_regions(around).iter();
                    reached.extend(regions.flat_map(|region| body.region_params(*region)));
                }
                let regions = body.op_regions(op).iter();
                reached.extend(regions.flat_map(|region| body.region_params(*region)));
                reached.retain(|value| !is_float(unit, body, *value));
                work.extend(reached.into_iter().filter(|value| seen.insert(*value)));
            }
        }
    }

    /// An op has to do with the answer: so have the loops around it and inside of it.
    fn note(&mut self, func: FuncId, body: &Body, op: Op) {
        let is_loop = |op: &Op| matches!(body.kind(*op), OpKind::ParFor { .. });
        let around = |op: &Op| body.owner(body.parent(*op)?);
        let outside = std::iter::successors(Some(op), around);
        let inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
        let loops: Vec<Op> = outside.chain(inside).filter(is_loop).collect();
        self.loops.extend(loops.into_iter().map(|op| (func, op)));
    }

    /// Whether an op takes a value that has to do with the answer to where it is not followed.
    fn hands_on(&self, unit: &Unit, body: &Body, op: Op, value: Value) -> bool {
        match body.kind(op) {
            OpKind::Store(_) | OpKind::AtomicRmw(..) | OpKind::CmpXchg { .. } => {
                body.operands(op).any(|v| v == value) && !is_place(body, op, value)
            }
            OpKind::If | OpKind::Switch(_) => {
                let decides = body.operand(op, 0) == value;
                let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
                decides && inside.any(|op| leaves_a_sign(unit, body, op))
            }
            OpKind::Return => true,
            kind if kind.call_info().is_some() => {
                let known = unit.callee(body, op).and_then(|func| unit.known(func));
                let followed = matches!(
                    known,
                    Some(Known::Memory(_) | Known::Integer(_) | Known::Math(_) | Known::Marker(_))
                );
                !followed && !asks(unit, body, op)
            }
            _ => false,
        }
    }
}

/// Whether what an op gives is what is in memory, or new memory: what is there was stored, which is looked at by itself.
fn leads_elsewhere(unit: &Unit, body: &Body, op: Op) -> bool {
    let known = || unit.callee(body, op).and_then(|func| unit.known(func));
    match body.kind(op) {
        OpKind::Load(_) | OpKind::Alloca(_) => true,
        kind if kind.call_info().is_some() => matches!(known(), Some(Known::Memory(_))),
        _ => false,
    }
}

/// Whether a value is only the place at which an op writes.
fn is_place(body: &Body, op: Op, value: Value) -> bool {
    let place = match body.kind(op) {
        OpKind::Store(_) => 1,
        _ => 0,
    };
    let at = |number: usize| body.operands(op).nth(number) == Some(value);
    at(place) && (0..body.operand_count(op)).all(|number| number == place || !at(number))
}

fn is_float(unit: &Unit, body: &Body, value: Value) -> bool {
    let scalar = unit.types.scalar(body.ty(value));
    unit.types.float_kind(scalar).is_some()
}

/// Whether an op that is only reached with some answers leaves what a later branch may look at.
fn leaves_a_sign(unit: &Unit, body: &Body, op: Op) -> bool {
    match body.kind(op) {
        OpKind::Store(_) => !is_float(unit, body, body.operand(op, 0)),
        OpKind::Return => true,
        _ => false,
    }
}
