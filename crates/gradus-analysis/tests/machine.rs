//! An interpreter for small bodies that records every access and value, as an oracle for the analyses.
//!
//! Undefined behaviour (overflow against a flag, an access outside an object, overlapping copies) ends the
//! run without a verdict.

use crate::Program;
use gradus_ir::{
    BinaryOp, Body, CastOp, Definition, Flags, IntPredicate, Op, OpKind, Region, Value,
};
use std::collections::HashMap;

/// A run-time value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Datum {
    Int(i64),
    Float,
    Null,
    /// Object number and offset in bytes.
    Ptr(usize, i64),
}

/// The enclosing loops, outermost first, with the iteration of each.
pub(crate) type Iteration = Vec<(Op, u64)>;

/// Kind of an executed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Read,
    Write,
    Free,
}

/// An executed access.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) op: Op,
    pub(crate) kind: EventKind,
    pub(crate) pointer: Value,
    pub(crate) object: usize,
    pub(crate) bytes: (i64, i64),
    pub(crate) iteration: Iteration,
}

impl Event {
    pub(crate) fn meets(&self, other: &Event) -> bool {
        self.object == other.object && self.bytes.0 < other.bytes.1 && other.bytes.0 < self.bytes.1
    }
}

/// Undefined behaviour: the run has no verdict.
#[derive(Debug)]
pub(crate) struct Undefined;

/// The record of a run.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) events: Vec<Event>,
    pub(crate) values: HashMap<Value, Vec<(Iteration, Datum)>>,
}

/// Callback for every defined value, with the values defined so far.
pub(crate) type Watch<'a> = &'a dyn Fn(Value, Datum, &HashMap<Value, Datum>);

const OBJECT_BYTES: i64 = 4096;
const MAX_EVENTS: usize = 1200;

pub(crate) struct Machine<'a> {
    program: &'a Program,
    body: &'a Body,
    watch: Watch<'a>,
    env: HashMap<Value, Datum>,
    memory: HashMap<(usize, i64), Datum>,
    objects: usize,
    iteration: Iteration,
    trace: Trace,
}

impl<'a> Machine<'a> {
    /// Runs `@f` on arguments. Objects below `objects` belong to the arguments.
    pub(crate) fn run(
        program: &'a Program,
        args: &[Datum],
        objects: usize,
        watch: Watch<'a>,
    ) -> Result<Trace, Undefined> {
        let body = program.body();
        let mut machine = Machine {
            program,
            body,
            watch,
            env: body
                .params()
                .iter()
                .copied()
                .zip(args.iter().copied())
                .collect(),
            memory: HashMap::new(),
            objects,
            iteration: Vec::new(),
            trace: Trace::default(),
        };
        machine.region(body.root())?;
        Ok(machine.trace)
    }

    fn get(&self, value: Value) -> Result<Datum, Undefined> {
        if let Some(n) = self.body.as_int(&self.program.unit, value) {
            return Ok(Datum::Int(n));
        }
        match self.body.values[value].def {
            Definition::Const(_) if self.program.unit.types.is_ptr(self.body.ty(value)) => {
                Ok(Datum::Null)
            }
            Definition::Const(_) => Ok(Datum::Float),
            _ => self.env.get(&value).copied().ok_or(Undefined),
        }
    }
    fn int(&self, value: Value) -> Result<i64, Undefined> {
        match self.get(value)? {
            Datum::Int(n) => Ok(n),
            _ => Err(Undefined),
        }
    }
    fn set(&mut self, value: Value, datum: Datum) {
        self.env.insert(value, datum);
        (self.watch)(value, datum, &self.env);
        let list = self.trace.values.entry(value).or_default();
        list.push((self.iteration.clone(), datum));
    }

    /// Runs a region and returns its terminator's operands.
    fn region(&mut self, region: Region) -> Result<Vec<Datum>, Undefined> {
        let body = self.body;
        for op in body.ops_in(region) {
            if body.kind(op).is_terminator() {
                return body.operands(op).map(|v| self.get(v)).collect();
            }
            self.op(op)?;
        }
        Err(Undefined)
    }

    fn op(&mut self, op: Op) -> Result<(), Undefined> {
        let body = self.body;
        let results = body.results(op).to_vec();
        let outcome: Vec<Datum> = match body.kind(op) {
            OpKind::If => {
                let taken = usize::from(self.int(body.operand(op, 0))? == 0);
                self.region(body.op_regions(op)[taken])?
            }
            OpKind::For { .. } => self.counted(op)?,
            OpKind::Loop { .. } => self.repeated(op)?,
            OpKind::Store(_) => {
                let (value, pointer) = (body.operand(op, 0), body.operand(op, 1));
                let bytes = self.bytes(value);
                let datum = self.get(value)?;
                let place = self.touch(op, EventKind::Write, pointer, bytes)?;
                self.forget(place, bytes);
                self.memory.insert(place, datum);
                Vec::new()
            }
            OpKind::Load(_) => {
                let bytes = self.bytes(results[0]);
                let place = self.touch(op, EventKind::Read, body.operand(op, 0), bytes)?;
                vec![self.loaded(results[0], place)?]
            }
            OpKind::Call(_) => self.call(op)?,
            OpKind::Alloca(_) => vec![self.fresh()],
            _ => vec![self.scalar(op)?],
        };
        for (result, datum) in results.into_iter().zip(outcome) {
            self.set(result, datum);
        }
        Ok(())
    }

    fn counted(&mut self, op: Op) -> Result<Vec<Datum>, Undefined> {
        let body = self.body;
        let trips = self.int(body.operand(op, 0))?;
        if !(0..=8).contains(&trips) {
            return Err(Undefined);
        }
        let mut carried: Vec<Datum> = body
            .operands(op)
            .skip(1)
            .map(|v| self.get(v))
            .collect::<Result<_, _>>()?;
        let region = body.op_regions(op)[0];
        for index in 0..trips {
            self.iteration.push((op, index as u64));
            let params = body.region_params(region).to_vec();
            self.set(params[0], Datum::Int(index));
            for (param, datum) in params[1..].iter().zip(&carried) {
                self.set(*param, *datum);
            }
            carried = self.region(region)?;
            self.iteration.pop();
        }
        Ok(carried)
    }

    fn repeated(&mut self, op: Op) -> Result<Vec<Datum>, Undefined> {
        let body = self.body;
        let region = body.op_regions(op)[0];
        let params = body.region_params(region).to_vec();
        let mut carried: Vec<Datum> = body
            .operands(op)
            .map(|v| self.get(v))
            .collect::<Result<_, _>>()?;
        for round in 0..8 {
            self.iteration.push((op, round));
            for (param, datum) in params.iter().zip(&carried) {
                self.set(*param, *datum);
            }
            let end = self.region(region)?;
            self.iteration.pop();
            carried = end[1..=params.len()].to_vec();
            if end[0] == Datum::Int(0) {
                return Ok(end[1 + params.len()..].to_vec());
            }
        }
        Err(Undefined)
    }

    // ---- memory ----------------------------------------------------------------------------

    fn fresh(&mut self) -> Datum {
        self.objects += 1;
        Datum::Ptr(self.objects - 1, 0)
    }
    fn bytes(&self, value: Value) -> i64 {
        let unit = &self.program.unit;
        unit.layout.store_bytes(unit, self.body.ty(value)) as i64
    }
    fn touch(
        &mut self,
        op: Op,
        deed: EventKind,
        pointer: Value,
        bytes: i64,
    ) -> Result<(usize, i64), Undefined> {
        let Datum::Ptr(object, start) = self.get(pointer)? else {
            return Err(Undefined);
        };
        let inside = start >= 0 && start + bytes <= OBJECT_BYTES;
        if !inside || self.trace.events.len() >= MAX_EVENTS {
            return Err(Undefined);
        }
        self.trace.events.push(Event {
            op,
            kind: deed,
            pointer,
            object,
            bytes: (start, start + bytes),
            iteration: self.iteration.clone(),
        });
        Ok((object, start))
    }
    fn forget(&mut self, (object, start): (usize, i64), bytes: i64) {
        for at in start - 7..start + bytes {
            self.memory.remove(&(object, at));
        }
    }
    fn loaded(&self, result: Value, place: (usize, i64)) -> Result<Datum, Undefined> {
        let ty = self.body.ty(result);
        let types = &self.program.unit.types;
        let found = self.memory.get(&place).copied();
        match found {
            _ if types.float_kind(ty).is_some() => Ok(Datum::Float),
            Some(Datum::Ptr(..)) if !types.is_ptr(ty) => Err(Undefined),
            Some(Datum::Ptr(..) | Datum::Null) => found.ok_or(Undefined),
            _ if types.is_ptr(ty) => Err(Undefined),
            Some(Datum::Int(n)) => Ok(Datum::Int(n)),
            _ => Ok(Datum::Int(place.1 / 8 % 4)),
        }
    }

    fn call(&mut self, op: Op) -> Result<Vec<Datum>, Undefined> {
        let unit = &self.program.unit;
        let func = unit.callee(self.body, op).ok_or(Undefined)?;
        let args = unit.call_args(self.body, op);
        match unit.functions[func].name.as_str() {
            "malloc" => Ok(vec![self.fresh()]),
            "free" => {
                let Datum::Ptr(object, 0) = self.get(args[0])? else {
                    return Err(Undefined);
                };
                self.trace.events.push(Event {
                    op,
                    kind: EventKind::Free,
                    pointer: args[0],
                    object,
                    bytes: (0, OBJECT_BYTES),
                    iteration: self.iteration.clone(),
                });
                Ok(Vec::new())
            }
            "memcpy" => {
                let bytes = self.int(args[2])?;
                if !(0..=64).contains(&bytes) {
                    return Err(Undefined);
                }
                let from = self.touch(op, EventKind::Read, args[1], bytes)?;
                let to = self.touch(op, EventKind::Write, args[0], bytes)?;
                if from.0 == to.0 && from.1 < to.1 + bytes && to.1 < from.1 + bytes {
                    return Err(Undefined);
                }
                let cells: Vec<(i64, Datum)> = (0..bytes)
                    .filter_map(|k| Some((k, *self.memory.get(&(from.0, from.1 + k))?)))
                    .filter(|(k, _)| k + 8 <= bytes)
                    .collect();
                self.forget(to, bytes);
                for (k, datum) in cells {
                    self.memory.insert((to.0, to.1 + k), datum);
                }
                self.get(args[0]).map(|d| vec![d])
            }
            _ => Err(Undefined),
        }
    }

    // ---- scalars ---------------------------------------------------------------------------

    fn scalar(&mut self, op: Op) -> Result<Datum, Undefined> {
        let body = self.body;
        let result = body.result(op);
        let flags = body.ops[op].flags;
        match body.kind(op) {
            OpKind::Select => {
                let side = if self.int(body.operand(op, 0))? != 0 {
                    1
                } else {
                    2
                };
                self.get(body.operand(op, side))
            }
            OpKind::ICmp(predicate) => {
                let (a, b) = (body.operand(op, 0), body.operand(op, 1));
                let holds = compare(*predicate, self.int(a)?, self.int(b)?);
                Ok(Datum::Int(-i64::from(holds)))
            }
            OpKind::Cast(cast) => {
                let from = body.operand(op, 0);
                let n = self.int(from)?;
                let width = self.width(if *cast == CastOp::ZExt { from } else { result });
                match cast {
                    CastOp::SExt => Ok(Datum::Int(n)),
                    CastOp::ZExt if width < 64 => Ok(Datum::Int(n & ((1 << width) - 1))),
                    CastOp::Trunc => Ok(Datum::Int(wrap(n.into(), width))),
                    _ => Err(Undefined),
                }
            }
            OpKind::Binary(binary) => {
                let (a, b) = (
                    self.int(body.operand(op, 0))?,
                    self.int(body.operand(op, 1))?,
                );
                let width = self.width(result);
                let exact = exactly(*binary, a, b).ok_or(Undefined)?;
                let wrapped = wrap(exact, width);
                match flags.has(Flags::NSW) && i128::from(wrapped) != exact {
                    true => Err(Undefined),
                    false => Ok(Datum::Int(wrapped)),
                }
            }
            OpKind::Addr { .. } => {
                let unit = &self.program.unit;
                let address = unit.layout.address(unit, body, op).ok_or(Undefined)?;
                let Datum::Ptr(object, mut at) = self.get(address.base)? else {
                    return Err(Undefined);
                };
                at = at.wrapping_add(address.offset);
                for (index, stride) in address.terms {
                    at = at.wrapping_add(self.int(index)?.wrapping_mul(stride));
                }
                match flags.has(Flags::INBOUNDS) && !(0..=OBJECT_BYTES).contains(&at) {
                    true => Err(Undefined),
                    false => Ok(Datum::Ptr(object, at)),
                }
            }
            OpKind::FNeg => Ok(Datum::Float),
            _ => Err(Undefined),
        }
    }
    fn width(&self, value: Value) -> u32 {
        let types = &self.program.unit.types;
        types.int_bits(self.body.ty(value)).unwrap_or(64)
    }
}

fn wrap(n: i128, width: u32) -> i64 {
    ((n as i64) << (64 - width)) >> (64 - width)
}

fn exactly(op: BinaryOp, a: i64, b: i64) -> Option<i128> {
    let (x, y) = (i128::from(a), i128::from(b));
    match op {
        BinaryOp::Add => Some(x + y),
        BinaryOp::Sub => Some(x - y),
        BinaryOp::Mul => Some(x * y),
        BinaryOp::Shl if (0..63).contains(&b) => Some(x << b),
        BinaryOp::AShr if (0..63).contains(&b) => Some(x >> b),
        BinaryOp::And => Some((a & b).into()),
        BinaryOp::URem if a >= 0 && b > 0 => Some(x % y),
        _ => None,
    }
}

fn compare(predicate: IntPredicate, a: i64, b: i64) -> bool {
    use IntPredicate::*;
    let (u, v) = (a as u64, b as u64);
    match predicate {
        Eq => a == b,
        Ne => a != b,
        Slt => a < b,
        Sle => a <= b,
        Sgt => a > b,
        Sge => a >= b,
        Ult => u < v,
        Ule => u <= v,
        Ugt => u > v,
        Uge => u >= v,
    }
}
