//! The bytecode decoder for ops without regions and for calls.

use crate::bytecode::code::{AddrInfo, CallSite, Callee, CastInfo, Clauses, Instr, Reg};
use crate::bytecode::decode::{Decoder, NotExecutable, constant};
use crate::values::cast::Conversion;
use crate::values::value::Value;
use crate::values::value_layout::{Num, Shape};
use gradus_ir::{AllocaStorage, Atomicity, ConstKind, Flags, Op, OpKind, Type, TypeId};

impl Decoder<'_> {
    /// Emits the instructions of one op.
    // table
    pub(crate) fn op(&mut self, op: Op) -> Result<(), NotExecutable> {
        use OpKind::*;
        match self.body.kind(op) {
            Binary(_) | FNeg | ICmp(_) | FCmp(_) | Cast(_) => self.number_op(op),
            Select | Freeze | ExtractElement | InsertElement | Shuffle(_) | ExtractValue(_)
            | InsertValue(_) => self.value_op(op),
            Alloca(_) | Load(_) | Store(_) | AtomicRmw(..) | CmpXchg { .. } => self.memory_op(op),
            Addr { source } => self.addr(op, *source),
            Fence { .. } => Ok(()),
            Call(_) | Invoke(_) => self.call(op),
            LandingPad(_) => self.landing_pad(op),
            If | Switch(_) | Loop { .. } | For { .. } => self.structure(op),
            Scope | Spawn { .. } | Sync | Critical(_) => self.emit_strand_event(op),
            ParFor { .. } | Spmd { .. } | Barrier(_) | ShareFor { .. } | Single { .. } => {
                self.parallel(op)
            }
            Yield | Repeat | Return | Unreachable | Resume => self.terminator(op),
            Foreign(_) => Err("a foreign LLVM instruction".into()),
        }
    }

    fn operand_shape(&self, op: Op, index: usize) -> Result<Shape, NotExecutable> {
        self.shape(self.body.ty(self.body.operand(op, index)))
    }
    pub(crate) fn operand_num(
        &self,
        op: Op,
        index: usize,
    ) -> Result<(Num, Option<usize>), NotExecutable> {
        let shape = self.operand_shape(op, index)?;
        match shape.num() {
            Some(num) => Ok((num, shape.lanes())),
            None => Err("arithmetic on an aggregate".into()),
        }
    }
    fn result_shape(&self, op: Op) -> Result<Shape, NotExecutable> {
        self.shape(self.body.ty(self.body.result(op)))
    }

    fn number_op(&mut self, op: Op) -> Result<(), NotExecutable> {
        let flags = self.body.ops[op].flags;
        let (num, lanes) = self.operand_num(op, 0)?;
        let a = self.operand(op, 0)?;
        let b = match self.body.operand_count(op) > 1 {
            true => self.operand(op, 1)?,
            false => a,
        };
        let dst = self.result(op);
        let result = self.result_shape(op)?;
        let instr = match *self.body.kind(op) {
            OpKind::Binary(kind) => Instr::Binary {
                op: kind,
                num,
                lanes,
                flags,
                a,
                b,
                dst,
            },
            OpKind::FNeg => Instr::FNeg {
                num,
                lanes,
                flags,
                a,
                dst,
            },
            OpKind::ICmp(predicate) => Instr::ICmp {
                predicate,
                bits: num.bits(),
                lanes,
                same_sign: flags.has(Flags::SAMESIGN),
                a,
                b,
                dst,
            },
            OpKind::FCmp(predicate) => Instr::FCmp {
                predicate,
                num,
                lanes,
                flags,
                a,
                b,
                dst,
            },
            OpKind::Cast(kind) => Instr::Cast(Box::new(CastInfo {
                conversion: Conversion {
                    op: kind,
                    from: num,
                    to: result.num().ok_or("a cast to an aggregate")?,
                    flags,
                    lanes: (lanes, result.lanes()),
                },
                a,
                dst,
            })),
            _ => unreachable!("`{}` is not arithmetic", self.body.kind(op).mnemonic()),
        };
        self.emit(instr);
        Ok(())
    }

    fn value_op(&mut self, op: Op) -> Result<(), NotExecutable> {
        let operands = self.operand_regs(self.body.operands(op))?;
        let dst = self.result(op);
        let len = |d: &Self, i: usize| {
            d.operand_shape(op, i)?
                .lanes()
                .ok_or(NotExecutable::from("a lane access to a non-vector"))
        };
        let instr = match self.body.kind(op) {
            OpKind::Select => Instr::Select {
                c: operands[0],
                a: operands[1],
                b: operands[2],
                dst,
                lanes: self.operand_shape(op, 1)?.lanes(),
                vector: self.operand_shape(op, 0)?.lanes().is_some(),
            },
            OpKind::Freeze => Instr::Freeze {
                a: operands[0],
                dst,
                shape: Box::new(self.result_shape(op)?),
            },
            OpKind::ExtractElement => Instr::ExtractElement {
                vector: operands[0],
                index: operands[1],
                dst,
            },
            OpKind::InsertElement => Instr::InsertElement {
                vector: operands[0],
                value: operands[1],
                index: operands[2],
                len: len(self, 0)?,
                dst,
            },
            OpKind::Shuffle(mask) => Instr::Shuffle {
                a: operands[0],
                b: operands[1],
                len: len(self, 0)?,
                mask: mask.clone(),
                dst,
            },
            OpKind::ExtractValue(path) => Instr::ExtractValue {
                aggregate: operands[0],
                path: path.clone(),
                dst,
            },
            OpKind::InsertValue(path) => Instr::InsertValue {
                aggregate: operands[0],
                member: operands[1],
                path: path.clone(),
                shape: Box::new(self.result_shape(op)?),
                dst,
            },
            _ => unreachable!("`{}` is not a value op", self.body.kind(op).mnemonic()),
        };
        self.emit(instr);
        Ok(())
    }

    // ---- memory ----------------------------------------------------------------------------

    fn memory_op(&mut self, op: Op) -> Result<(), NotExecutable> {
        let operands = self.operand_regs(self.body.operands(op))?;
        let instr = match self.body.kind(op) {
            OpKind::Alloca(info) => Instr::Alloca {
                stride: self.unit.layout.size_bytes(self.unit, info.ty),
                align: u64::from(info.align_bytes),
                count: operands[0],
                shared: info.storage == AllocaStorage::Shared,
                dst: self.result(op),
            },
            OpKind::Load(access) => {
                let shape = self.result_shape(op)?;
                let (align, ptr, dst) =
                    (u64::from(access.align_bytes), operands[0], self.result(op));
                let atomic = access.order != Atomicity::NotAtomic;
                match single_word_access(&shape) {
                    Some((bytes, mask)) => Instr::LoadBits {
                        bytes,
                        align,
                        atomic,
                        mask,
                        ptr,
                        dst,
                    },
                    None => Instr::Load {
                        shape: Box::new(shape),
                        align,
                        atomic,
                        ptr,
                        dst,
                    },
                }
            }
            OpKind::Store(access) => {
                let shape = self.operand_shape(op, 0)?;
                let (align, value, ptr) = (u64::from(access.align_bytes), operands[0], operands[1]);
                let atomic = access.order != Atomicity::NotAtomic;
                match single_word_access(&shape) {
                    Some((bytes, _)) => Instr::StoreBits {
                        bytes,
                        align,
                        atomic,
                        value,
                        ptr,
                    },
                    None => Instr::Store {
                        shape: Box::new(shape),
                        align,
                        atomic,
                        value,
                        ptr,
                    },
                }
            }
            OpKind::AtomicRmw(rmw, access) => Instr::AtomicRmw {
                op: *rmw,
                num: self.operand_num(op, 1)?.0,
                align: u64::from(access.align_bytes),
                ptr: operands[0],
                value: operands[1],
                dst: self.result(op),
            },
            OpKind::CmpXchg { access, .. } => Instr::CmpXchg {
                num: self.operand_num(op, 1)?.0,
                align: u64::from(access.align_bytes),
                ptr: operands[0],
                expected: operands[1],
                new: operands[2],
                dst: self.result(op),
            },
            _ => unreachable!("`{}` is not a memory op", self.body.kind(op).mnemonic()),
        };
        self.emit(instr);
        Ok(())
    }

    fn addr(&mut self, op: Op, source: TypeId) -> Result<(), NotExecutable> {
        let mut info = AddrInfo {
            base: self.operand(op, 0)?,
            offset: 0,
            terms: Box::default(),
            lanes: self.result_shape(op)?.lanes(),
            inbounds: self.body.ops[op].flags.has(Flags::INBOUNDS),
            dst: self.result(op),
        };
        let mut terms: Vec<(Reg, u32, i64)> = Vec::new();
        let mut ty = source;
        for depth in 1..self.body.operand_count(op) {
            let index = self.body.operand(op, depth);
            let stride = match self.unit.types.get(ty) {
                _ if depth == 1 => self.unit.layout.size_bytes(self.unit, ty),
                Type::Struct { fields, .. } => {
                    let field = self
                        .field(index)
                        .ok_or("a field index that is not constant")?;
                    let next = *fields.get(field).ok_or("a field index out of range")?;
                    let layout = &self.unit.layout;
                    let offset = layout.field_offset_bytes(self.unit, ty, field as u64);
                    info.offset = info.offset.wrapping_add(offset);
                    ty = next;
                    continue;
                }
                Type::Array { elem, .. } | Type::Vector { elem, .. } => {
                    ty = *elem;
                    self.unit.layout.size_bytes(self.unit, ty)
                }
                _ => return Err("an index into a type without members".into()),
            };
            let bits = self.operand_num(op, depth)?.0.bits();
            if bits > 64 {
                return Err("an index of more than 64 bits".into());
            }
            match self.body.as_int(self.unit, index) {
                Some(n) => {
                    let bytes = n.wrapping_mul(stride as i64) as u64;
                    info.offset = info.offset.wrapping_add(bytes);
                }
                None => terms.push((self.operand_reg(index)?, bits, stride as i64)),
            }
        }
        info.terms = terms.into();
        self.emit(Instr::Addr(Box::new(info)));
        Ok(())
    }

    /// Returns the field number of a constant or splat index.
    fn field(&self, index: gradus_ir::Value) -> Option<usize> {
        if let Some(n) = self.body.as_int(self.unit, index) {
            return usize::try_from(n).ok();
        }
        let constant = self.unit.constant(self.body.as_const(index)?);
        match &constant.kind {
            ConstKind::Zero => Some(0),
            ConstKind::Aggregate(members) => match self.unit.constant(*members.first()?).kind {
                ConstKind::Int(n) => usize::try_from(n).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    // ---- calls -----------------------------------------------------------------------------

    fn call(&mut self, op: Op) -> Result<(), NotExecutable> {
        let invoke = matches!(self.body.kind(op), OpKind::Invoke(_));
        let callee = match self.unit.callee(self.body, op) {
            Some(func) => match self.unit.known(func) {
                Some(known) if self.unit.functions[func].body.is_none() => {
                    Callee::Known(known, func)
                }
                _ => Callee::Func(func),
            },
            None => Callee::Value(self.operand(op, 0)?),
        };
        let values = self.unit.call_args(self.body, op);
        let args = self.call_values(callee, &values)?;
        let arg_shapes = values
            .iter()
            .map(|v| self.shape(self.body.ty(*v)).ok())
            .collect();
        let signature = self.body.kind(op).call_info().map(|info| info.signature);
        let result_type = signature.and_then(|ty| self.unit.result_type(ty));
        let result = match result_type.filter(|ty| !self.unit.types.is_void(*ty)) {
            None => None,
            Some(ty) => {
                let shape = self.shape(ty)?;
                let dst = match invoke {
                    false => self.result(op),
                    true => match self.params(self.body.op_regions(op)[0]).first() {
                        Some(param) => *param,
                        None => self.fresh(),
                    },
                };
                Some((dst, shape))
            }
        };
        let entry = self.emit(Instr::Call(Box::new(CallSite {
            callee,
            args: args.into(),
            arg_shapes,
            result,
            flags: self.body.ops[op].flags,
            unwind: None,
        })));
        if invoke {
            self.open_op(op, entry);
        }
        Ok(())
    }

    /// Returns the argument registers. Arguments of compiler hints (metadata) may be of any type.
    fn call_values(
        &mut self,
        callee: Callee,
        values: &[gradus_ir::Value],
    ) -> Result<Vec<Reg>, NotExecutable> {
        let marker = matches!(
            callee,
            Callee::Known(gradus_ir::externals::ExternalFn::Marker(_), _)
        );
        values
            .iter()
            .map(|v| match self.operand_reg(*v) {
                Err(_) if marker => {
                    self.code.consts.push(Value::Poison);
                    Ok((self.code.consts.len() - 1) as Reg | crate::bytecode::code::CONST)
                }
                other => other,
            })
            .collect()
    }

    fn landing_pad(&mut self, op: Op) -> Result<(), NotExecutable> {
        let OpKind::LandingPad(pad) = self.body.kind(op) else {
            unreachable!("only landing pads are decoded as landing pads");
        };
        let catches = pad.clauses.iter().filter(|(filter, _)| !filter);
        let catches: Result<Box<[Value]>, NotExecutable> = catches
            .map(|(_, id)| constant(self.unit, self.symbols, *id))
            .collect();
        if pad.clauses.iter().any(|(filter, _)| *filter) {
            return Err("an exception filter".into());
        }
        let clauses = Clauses {
            catches: catches?,
            cleanup: pad.cleanup,
        };
        let dst = self.result(op);
        self.emit(Instr::LandingPad {
            clauses: Box::new(clauses),
            dst,
        });
        Ok(())
    }
}

/// Returns size in bytes and bit mask of a number that fits one 64-bit memory access.
fn single_word_access(shape: &Shape) -> Option<(u32, u64)> {
    match shape {
        Shape::Num(num) if num.bits() <= 64 => Some((num.bits().div_ceil(8), num.mask())),
        _ => None,
    }
}
