//! The interpreter loop.

use crate::bytecode::code::{Instr, Reg};
use crate::state::linearized_replay::SmoothOp;
use crate::state::machine::Machine;
use crate::state::races::AccessKind;
use crate::state::strand::{At, Flow};
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{
    apply_reduction, binary, float_compare, int_compare, map_lanes, negate, zip_lanes,
};
use crate::values::cast::cast;
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::{BinaryOp, FloatKind};
use std::rc::Rc;

impl Machine<'_> {
    /// Runs until the outermost call returns.
    pub(crate) fn run(&mut self) -> Eval<Option<Value>> {
        loop {
            let Some(frame) = self.strand.frames.last() else {
                return fault(TrapKind::BadCall, "the call stack is empty");
            };
            let code = Rc::clone(&frame.code);
            let at = At {
                code: &code,
                base: frame.base,
            };
            let mut pc = frame.pc;
            loop {
                self.pc = pc;
                self.steps += 1;
                if self.steps > self.options.max_steps {
                    return fault(TrapKind::Limit, "the program exceeds the step limit");
                }
                let Some(instr) = code.instrs.get(pc as usize) else {
                    return fault(
                        TrapKind::Unreachable,
                        "control reaches the end of the body without a terminator",
                    );
                };
                match self.step(&at, instr)? {
                    Flow::Next => pc += 1,
                    Flow::To(place) => pc = place,
                    Flow::Switch => break,
                    Flow::Done(value) => return Ok(value),
                }
            }
        }
    }

    // ---- instructions ----------------------------------------------------------------------

    // table
    #[inline(always)]
    fn step(&mut self, at: &At, instr: &Instr) -> Eval<Flow> {
        match instr {
            Instr::Move { dst, src } => {
                let value = self.get(at, *src).clone();
                self.set(at, *dst, value)
            }
            Instr::ParallelMoves(pairs) => {
                let values: Vec<Value> = pairs
                    .iter()
                    .map(|(_, src)| self.get(at, *src).clone())
                    .collect();
                for ((dst, _), value) in std::iter::zip(pairs, values) {
                    self.strand.regs[at.base + *dst as usize] = value;
                }
                Ok(Flow::Next)
            }
            Instr::Jump(place) => Ok(Flow::To(*place)),
            Instr::JumpUnless { condition, to } => {
                match self.defined(at, *condition, "a condition")? & 1 {
                    0 => Ok(Flow::To(*to)),
                    _ => Ok(Flow::Next),
                }
            }
            Instr::ForTest { index, count, exit } => {
                let count = self.defined(at, *count, "a trip count")?;
                match self.get(at, *index) {
                    Value::Bits(i) if *i < count => Ok(Flow::Next),
                    _ => Ok(Flow::To(*exit)),
                }
            }
            Instr::ForNext { index, head } => {
                if let Value::Bits(i) = &mut self.strand.regs[at.base + *index as usize] {
                    *i += 1;
                }
                Ok(Flow::To(*head))
            }
            Instr::Binary {
                op: BinaryOp::FMul | BinaryOp::FDiv,
                num: Num::Float(FloatKind::F64),
                ..
            } if !self.replay.is_off() => self.smooth_arithmetic(at, instr),
            Instr::Binary {
                op,
                num,
                lanes: None,
                flags,
                a,
                b,
                dst,
            } => {
                let value = binary(*op, *num, *flags, self.get(at, *a), self.get(at, *b))?;
                self.set(at, *dst, value)
            }
            Instr::LoadBits {
                bytes,
                align,
                atomic,
                mask,
                ptr,
                dst,
            } => {
                let address = self.address(at, *ptr, *align)?;
                self.check_access(address, u64::from(*bytes), AccessKind::load(*atomic))?;
                let value = match self.memory.read(address, *bytes as usize)? {
                    Value::Bits(bits) => Value::Bits(bits & mask),
                    value => value,
                };
                self.trace_access(0, address);
                self.set(at, *dst, value)
            }
            Instr::StoreBits {
                bytes,
                align,
                atomic,
                value,
                ptr,
            } => {
                let address = self.address(at, *ptr, *align)?;
                let value = match self.get(at, *value) {
                    Value::Bits(bits) => Value::Bits(*bits),
                    value => value.clone(),
                };
                self.check_access(address, u64::from(*bytes), AccessKind::store(*atomic))?;
                self.memory.write(address, *bytes as usize, &value)?;
                self.trace_access(1, address);
                Ok(Flow::Next)
            }
            Instr::Addr(info) => self.addr(at, info),
            Instr::ICmp {
                predicate,
                bits,
                lanes: None,
                same_sign,
                a,
                b,
                dst,
            } => {
                let (a, b) = (self.get(at, *a), self.get(at, *b));
                let value = int_compare(*predicate, *bits, *same_sign, a, b);
                self.set(at, *dst, value)
            }
            Instr::Call(site) => self.execute_call(at, site),
            Instr::Return(value) => {
                let value = value.map(|reg| self.get(at, reg).clone());
                self.return_from_call(value)
            }
            _ => self.step_uncommon(at, instr),
        }
    }

    // table
    #[inline(never)]
    fn step_uncommon(&mut self, at: &At, instr: &Instr) -> Eval<Flow> {
        match instr {
            Instr::Switch {
                value,
                cases,
                default,
            } => {
                let key = match self.get(at, *value) {
                    Value::Wide(bits) => **bits,
                    _ => u128::from(self.defined(at, *value, "the operand of a `switch`")?),
                };
                let place = cases.iter().find(|(case, _)| *case == key);
                Ok(Flow::To(place.map_or(*default, |(_, place)| *place)))
            }
            Instr::Unreachable => fault(TrapKind::Unreachable, "execution reaches `unreachable`"),
            Instr::NotExecutable(why) => fault(TrapKind::Unsupported, format!("cannot run {why}")),
            Instr::Resume(value) => match self.get(at, *value).lane(0) {
                Value::Bits(object) => self.unwind(object),
                _ => fault(TrapKind::Undefined, "the exception is undefined"),
            },
            Instr::LandingPad { dst, .. } => {
                let Some((object, selector)) = self.strand.pending.take() else {
                    return fault(TrapKind::Unreachable, "a landing pad without an exception");
                };
                let value = Value::Elements([Value::Bits(object), Value::Bits(selector)].into());
                self.set(at, *dst, value)
            }
            Instr::Alloca { .. }
            | Instr::Load { .. }
            | Instr::Store { .. }
            | Instr::AtomicRmw { .. }
            | Instr::CmpXchg { .. } => self.memory_instr(at, instr),
            Instr::EdgePoint(mark) => self.check_edge(at, mark),
            Instr::Strands(event) => self.strand_event(at, *event),
            Instr::ParStart(_)
            | Instr::ParIndex { .. }
            | Instr::Spmd { .. }
            | Instr::RankEnd
            | Instr::Barrier { .. }
            | Instr::ShareStart { .. }
            | Instr::ShareTest { .. }
            | Instr::ShareNext { .. }
            | Instr::Single { .. }
            | Instr::Publish(_)
            | Instr::Receive(_) => self.parallel_instr(at, instr),
            Instr::ICmp { .. } | Instr::FCmp { .. } => {
                let (dst, own) = self.evaluate(at, instr)?;
                let value = self.replay.comparison_result(own)?;
                self.set(at, dst, value)
            }
            _ => {
                let (dst, value) = self.evaluate(at, instr)?;
                self.set(at, dst, value)
            }
        }
    }

    /// Evaluates a product or quotient of a recorded or replayed run.
    fn smooth_arithmetic(&mut self, at: &At, instr: &Instr) -> Eval<Flow> {
        let Instr::Binary {
            op,
            num,
            lanes,
            flags,
            a,
            b,
            dst,
        } = instr
        else {
            return fault(TrapKind::BadCall, "not a binary operation");
        };
        let (a, b) = (self.get(at, *a).clone(), self.get(at, *b).clone());
        let value = zip_lanes(*lanes, &a, &b, |a, b| {
            let own = binary(*op, *num, *flags, a, b)?;
            let (Some(x), Some(y), Some(_)) = (a.as_f64(), b.as_f64(), own.as_f64()) else {
                return Ok(own);
            };
            let function = |x: [f64; 3]| match op {
                BinaryOp::FMul => Some(x[0] * x[1]),
                _ => Some(x[0] / x[1]),
            };
            let bend = SmoothOp::Arithmetic(*op);
            let value = self.replay.smooth_result(bend, [x, y, 0.0], &function)?;
            Ok(value.map_or(own, Value::f64))
        })?;
        self.set(at, *dst, value)
    }

    /// Evaluates an instruction without side effects.
    // table
    fn evaluate(&mut self, at: &At, instr: &Instr) -> Eval<(Reg, Value)> {
        let get = |reg: &Reg| self.get(at, *reg);
        Ok(match instr {
            Instr::Binary {
                op,
                num,
                lanes,
                flags,
                a,
                b,
                dst,
            } => {
                let one = |a: &Value, b: &Value| binary(*op, *num, *flags, a, b);
                (*dst, zip_lanes(*lanes, get(a), get(b), one)?)
            }
            Instr::FNeg {
                num,
                lanes,
                flags,
                a,
                dst,
            } => (
                *dst,
                map_lanes(*lanes, get(a), |a| negate(*num, *flags, a))?,
            ),
            Instr::ICmp {
                predicate,
                bits,
                lanes,
                same_sign,
                a,
                b,
                dst,
            } => {
                let one =
                    |a: &Value, b: &Value| Ok(int_compare(*predicate, *bits, *same_sign, a, b));
                (*dst, zip_lanes(*lanes, get(a), get(b), one)?)
            }
            Instr::FCmp {
                predicate,
                num,
                lanes,
                flags,
                a,
                b,
                dst,
            } => {
                let Num::Float(kind) = *num else {
                    return fault(TrapKind::BadCall, "a floating-point comparison of integers");
                };
                let one = |a: &Value, b: &Value| float_compare(*predicate, kind, *flags, a, b);
                (*dst, zip_lanes(*lanes, get(a), get(b), one)?)
            }
            Instr::Cast(info) => (info.dst, cast(&info.conversion, get(&info.a))?),
            Instr::Select {
                c,
                a,
                b,
                dst,
                lanes,
                vector,
            } => {
                let (c, a, b) = (get(c), get(a), get(b));
                let value = match (vector, lanes) {
                    (true, Some(len)) => Value::Elements(
                        (0..*len)
                            .map(|i| select_value(&c.lane(i), &a.lane(i), &b.lane(i)))
                            .collect(),
                    ),
                    _ => select_value(c, a, b),
                };
                (*dst, value)
            }
            Instr::Freeze { a, dst, shape } => (*dst, freeze_value(shape, get(a))),
            Instr::ExtractElement { vector, index, dst } => {
                let value = match get(index) {
                    Value::Bits(i) => get(vector).lane(usize::try_from(*i).unwrap_or(usize::MAX)),
                    _ => Value::Poison,
                };
                (*dst, value)
            }
            Instr::InsertElement {
                vector,
                value,
                index,
                len,
                dst,
            } => {
                let mut lanes = get(vector).to_lanes(*len);
                let slot = get(index)
                    .bits()
                    .and_then(|i| lanes.get_mut(usize::try_from(i).ok()?));
                let result = match slot {
                    Some(slot) => {
                        *slot = get(value).clone();
                        Value::Elements(lanes.into())
                    }
                    None => Value::Poison,
                };
                (*dst, result)
            }
            Instr::Shuffle {
                a,
                b,
                len,
                mask,
                dst,
            } => {
                let lane = |m: &i32| match usize::try_from(*m) {
                    Ok(m) if m < *len => get(a).lane(m),
                    Ok(m) => get(b).lane(m - *len),
                    Err(_) => Value::Poison,
                };
                (*dst, Value::Elements(mask.iter().map(lane).collect()))
            }
            Instr::ExtractValue {
                aggregate,
                path,
                dst,
            } => {
                let start = get(aggregate).clone();
                (
                    *dst,
                    path.iter().fold(start, |value, i| value.lane(*i as usize)),
                )
            }
            Instr::InsertValue {
                aggregate,
                member,
                path,
                shape,
                dst,
            } => (
                *dst,
                insert_member(shape, get(aggregate), get(member), path),
            ),
            Instr::Combine {
                op,
                num,
                lanes,
                total,
                value,
            } => {
                let one = |a: &Value, b: &Value| apply_reduction(*op, *num, a, b);
                (*total, zip_lanes(*lanes, get(total), get(value), one)?)
            }
            _ => {
                return fault(
                    TrapKind::Unsupported,
                    "an instruction outside of this group",
                );
            }
        })
    }
}

/// Evaluates `c ? a : b`. An undefined condition yields an undefined result, unless both operands are equal.
fn select_value(c: &Value, a: &Value, b: &Value) -> Value {
    match c {
        Value::Bits(bits) if bits & 1 == 1 => a.clone(),
        Value::Bits(_) => b.clone(),
        Value::Poison => Value::Poison,
        _ if a == b => a.clone(),
        _ => Value::UNDEF,
    }
}

/// Evaluates `fold_freeze`: undefined and poison bits become zero.
fn freeze_value(shape: &Shape, value: &Value) -> Value {
    match (shape, value) {
        (Shape::Num(_), Value::Bits(_) | Value::Wide(_)) => value.clone(),
        (Shape::Num(num), Value::Undef { bits, .. }) => {
            Value::number(num.bits(), u128::from(*bits & num.mask()))
        }
        (Shape::Vector(num, len), Value::Elements(_)) => {
            let shape = Shape::Num(*num);
            let lanes = (0..*len as usize).map(|i| freeze_value(&shape, &value.lane(i)));
            Value::Elements(lanes.collect())
        }
        (Shape::Aggregate(members), Value::Elements(_)) => {
            let members = members.iter().enumerate();
            Value::Elements(
                members
                    .map(|(i, (_, m))| freeze_value(m, &value.lane(i)))
                    .collect(),
            )
        }
        _ => shape.zero(),
    }
}

/// Returns an aggregate with one member replaced. The recursion depth is the length of the path.
fn insert_member(shape: &Shape, aggregate: &Value, member: &Value, path: &[u32]) -> Value {
    let (Some((first, rest)), Shape::Aggregate(members)) = (path.split_first(), shape) else {
        return member.clone();
    };
    let mut values = aggregate.to_lanes(members.len());
    let index = *first as usize;
    if let (Some(slot), Some((_, inner))) = (values.get_mut(index), members.get(index)) {
        *slot = insert_member(inner, slot, member, rest);
    }
    Value::Elements(values.into())
}
