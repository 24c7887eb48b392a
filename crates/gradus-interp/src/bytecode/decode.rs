//! The bytecode decoder: structured control flow becomes jumps, operands become registers.
//!
//! The decoder walks a body once in program order, with the open ops on a stack. A region's terminator moves
//! the operands to the owner's registers and jumps. Forward jumps are patched when the decoder reaches the
//! target. An op that is not executable becomes [`Instr::NotExecutable`], which traps only when executed.

use crate::bytecode::code::{CONST, Code, Instr, InstrIndex, Reg};
use crate::values::value::{Address, Value};
use crate::values::value_layout::Shape;
use gradus_ir::{
    AttrValue, Body, ConstId, ConstKind, Definition, Entity, FuncId, Op, OpKind, Region, Type,
    TypeId, Unit,
};
use std::collections::{HashMap, HashSet};

/// The addresses of a unit's symbols.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    pub functions: Vec<Address>,
    pub globals: Vec<Address>,
}

/// The reason why an op is not executable.
pub(crate) type NotExecutable = String;

/// An op whose regions are being decoded.
pub(crate) struct OpenOp {
    pub op: Op,
    /// The loop header.
    pub head: InstrIndex,
    /// The instructions that jump to the end of the op.
    pub exits: Vec<InstrIndex>,
    /// The instruction that enters the regions.
    pub entry: InstrIndex,
    /// The op's private registers.
    pub scratch: Reg,
}

enum Step {
    Ops(Option<Op>),
    Region(usize),
    End,
}

pub(crate) struct Decoder<'a> {
    pub unit: &'a Unit,
    pub body: &'a Body,
    pub symbols: &'a Symbols,
    pub code: Code,
    registers: Vec<Reg>,
    constants: HashMap<ConstId, Reg>,
    pub open: Vec<OpenOp>,
    /// The op of the instructions being emitted.
    pub at: Op,
    /// True if instructions mark the ends of control edges.
    pub check_edges: bool,
}

/// Decodes a function's body.
pub(crate) fn decode(
    unit: &Unit,
    symbols: &Symbols,
    func: FuncId,
    body: &Body,
    check_edges: bool,
) -> Code {
    let variadic = matches!(
        unit.types.get(unit.functions[func].ty),
        Type::Func { variadic: true, .. }
    );
    let mut decoder = Decoder {
        unit,
        body,
        symbols,
        code: Code {
            func,
            root: body.root(),
            instrs: Vec::new(),
            ops: Vec::new(),
            consts: Vec::new(),
            registers: 0,
            params: Vec::new(),
            byval_params: byval_params(unit, func),
            variadic,
        },
        registers: vec![Reg::MAX; body.values.len()],
        constants: HashMap::new(),
        open: Vec::new(),
        at: Op::from_index(0),
        check_edges,
    };
    decoder.code.params = body.params().iter().map(|p| decoder.register(*p)).collect();
    decoder.run();
    decoder.code
}

impl<'a> Decoder<'a> {
    fn run(&mut self) {
        let mut stack = vec![Step::Ops(self.body.first(self.body.root()))];
        while let Some(step) = stack.pop() {
            match step {
                Step::Ops(None) => {}
                Step::Ops(Some(op)) => {
                    stack.push(Step::Ops(self.body.next(op)));
                    self.at = op;
                    let entry = self.next_index();
                    self.mark_before(op);
                    if let Err(why) = self.op(op) {
                        self.code.instrs.truncate(entry as usize);
                        self.code.ops.truncate(entry as usize);
                        self.emit(Instr::NotExecutable(why.into()));
                        continue;
                    }
                    if !self.body.op_regions(op).is_empty() {
                        stack.push(Step::End);
                        let count = self.body.op_regions(op).len();
                        stack.extend((0..count).rev().map(Step::Region));
                    }
                }
                Step::Region(index) => {
                    if let Some(open) = self.open.last() {
                        let op = open.op;
                        self.at = op;
                        self.begin_region(op, index);
                        let region = self.body.op_regions(op)[index];
                        self.mark_region(region);
                        stack.push(Step::Ops(self.body.first(region)));
                    }
                }
                Step::End => self.end_op(),
            }
        }
    }

    // ---- emitting --------------------------------------------------------------------------

    pub fn next_index(&self) -> InstrIndex {
        self.code.instrs.len() as InstrIndex
    }
    pub fn emit(&mut self, instr: Instr) -> InstrIndex {
        self.code.instrs.push(instr);
        self.code.ops.push(self.at);
        self.next_index() - 1
    }
    pub fn fresh(&mut self) -> Reg {
        self.code.registers += 1;
        self.code.registers - 1
    }
    pub fn register(&mut self, value: gradus_ir::Value) -> Reg {
        let known = self.registers[value.index()];
        if known != Reg::MAX {
            return known;
        }
        let fresh = self.fresh();
        self.registers[value.index()] = fresh;
        fresh
    }
    /// Returns the register of the first result.
    pub fn result(&mut self, op: Op) -> Reg {
        self.register(self.body.result(op))
    }
    /// Returns the register or constant of an operand.
    pub fn operand_reg(&mut self, value: gradus_ir::Value) -> Result<Reg, NotExecutable> {
        let Definition::Const(id) = self.body.values[value].def else {
            return Ok(self.register(value));
        };
        if let Some(&reg) = self.constants.get(&id) {
            return Ok(reg);
        }
        let constant = constant(self.unit, self.symbols, id)?;
        let reg = self.code.consts.len() as Reg | CONST;
        self.code.consts.push(constant);
        self.constants.insert(id, reg);
        Ok(reg)
    }
    pub fn operand(&mut self, op: Op, index: usize) -> Result<Reg, NotExecutable> {
        self.operand_reg(self.body.operand(op, index))
    }
    pub fn operand_regs(
        &mut self,
        values: impl IntoIterator<Item = gradus_ir::Value>,
    ) -> Result<Vec<Reg>, NotExecutable> {
        values.into_iter().map(|v| self.operand_reg(v)).collect()
    }
    pub fn shape(&self, ty: TypeId) -> Result<Shape, NotExecutable> {
        Shape::of(self.unit, ty).map_err(str::to_string)
    }

    /// Emits a parallel assignment of all sources to all destinations.
    pub fn moves(&mut self, dsts: &[Reg], srcs: &[Reg]) {
        let pairs: Vec<(Reg, Reg)> = std::iter::zip(dsts, srcs)
            .map(|(d, s)| (*d, *s))
            .filter(|(d, s)| d != s)
            .collect();
        let mut written = HashSet::new();
        let clash = pairs.iter().any(|(dst, src)| {
            let clash = written.contains(src);
            written.insert(*dst);
            clash
        });
        if clash {
            self.emit(Instr::ParallelMoves(pairs.into()));
            return;
        }
        for (dst, src) in pairs {
            self.emit(Instr::Move { dst, src });
        }
    }

    pub fn params(&mut self, region: Region) -> Vec<Reg> {
        let params = self.body.region_params(region).to_vec();
        params.into_iter().map(|p| self.register(p)).collect()
    }
    pub fn results(&mut self, op: Op) -> Vec<Reg> {
        let results = self.body.results(op).to_vec();
        results.into_iter().map(|r| self.register(r)).collect()
    }

    /// Sets the jump target of an instruction.
    pub fn patch(&mut self, at: InstrIndex, to: InstrIndex) {
        match &mut self.code.instrs[at as usize] {
            Instr::Jump(place)
            | Instr::JumpUnless { to: place, .. }
            | Instr::ForTest { exit: place, .. }
            | Instr::ShareTest { exit: place, .. }
            | Instr::ParIndex { exit: place, .. }
            | Instr::Spmd { end: place, .. }
            | Instr::Single { skip: place } => *place = to,
            _ => {}
        }
    }

    /// Opens an op with regions.
    pub fn open_op(&mut self, op: Op, entry: InstrIndex) {
        let head = self.next_index();
        self.open.push(OpenOp {
            op,
            head,
            exits: Vec::new(),
            entry,
            scratch: 0,
        });
    }

    // ---- structure -------------------------------------------------------------------------

    /// Emits the entry instructions of `if`, `switch`, `loop` or `for`.
    pub fn structure(&mut self, op: Op) -> Result<(), NotExecutable> {
        match self.body.kind(op) {
            OpKind::If => {
                let condition = self.operand(op, 0)?;
                let entry = self.emit(Instr::JumpUnless { condition, to: 0 });
                self.open_op(op, entry);
            }
            OpKind::Switch(cases) => {
                let value = self.operand(op, 0)?;
                let cases = cases.iter().map(|c| (*c, 0)).collect();
                let entry = self.emit(Instr::Switch {
                    value,
                    cases,
                    default: 0,
                });
                self.open_op(op, entry);
            }
            OpKind::Loop { .. } => {
                let initial = self.operand_regs(self.body.operands(op))?;
                let params = self.params(self.body.op_regions(op)[0]);
                self.moves(&params, &initial);
                let entry = self.next_index();
                self.open_op(op, entry);
            }
            _ => {
                let mut operands = self.operand_regs(self.body.operands(op))?;
                let params = self.params(self.body.op_regions(op)[0]);
                let count =
                    std::mem::replace(&mut operands[0], self.code.consts.len() as Reg | CONST);
                self.code.consts.push(Value::Bits(0));
                self.moves(&params, &operands);
                let entry = self.emit(Instr::ForTest {
                    index: params[0],
                    count,
                    exit: 0,
                });
                self.open_op(op, entry);
                self.add_exit(entry);
                self.set_head(entry);
            }
        }
        Ok(())
    }

    /// Records that an instruction jumps to the end of the innermost open op.
    pub fn add_exit(&mut self, at: InstrIndex) {
        if let Some(open) = self.open.last_mut() {
            open.exits.push(at);
        }
    }
    pub fn set_head(&mut self, head: InstrIndex) {
        if let Some(open) = self.open.last_mut() {
            open.head = head;
        }
    }
    pub fn set_scratch(&mut self, scratch: Reg) {
        if let Some(open) = self.open.last_mut() {
            open.scratch = scratch;
        }
    }

    fn begin_region(&mut self, op: Op, index: usize) {
        let here = self.next_index();
        let entry = self.open.last().map_or(0, |open| open.entry);
        match &mut self.code.instrs.get_mut(entry as usize) {
            Some(Instr::JumpUnless { to, .. }) if index == 1 => *to = here,
            Some(Instr::Switch { cases, default, .. }) => match cases.get_mut(index) {
                Some((_, place)) => *place = here,
                None => *default = here,
            },
            Some(Instr::Call(site)) if index == 1 => site.unwind = Some(here),
            _ => {}
        }
        if index == 0 && matches!(self.body.kind(op), OpKind::Loop { .. }) {
            self.set_head(here);
        }
    }

    fn end_op(&mut self) {
        let Some(open) = self.open.pop() else {
            unreachable!("every ended op with regions has started");
        };
        self.at = open.op;
        let here = self.next_index();
        for at in open.exits {
            self.patch(at, here);
        }
        match self.body.kind(open.op) {
            OpKind::For { .. } => {
                let params = self.params(self.body.op_regions(open.op)[0]);
                let results = self.results(open.op);
                self.moves(&results, &params[1..]);
            }
            OpKind::Single { copy: true, .. } => {
                let results: Box<[Reg]> = self.results(open.op).into();
                self.emit(Instr::Barrier { grid: false });
                self.emit(Instr::Receive(results));
            }
            OpKind::ShareFor { nowait: false, .. } | OpKind::Single { nowait: false, .. } => {
                self.emit(Instr::Barrier { grid: false });
            }
            _ => {}
        }
        self.mark_after(open.op);
    }

    /// Emits a region's terminator.
    pub fn terminator(&mut self, op: Op) -> Result<(), NotExecutable> {
        let values = self.operand_regs(self.body.operands(op))?;
        match self.body.kind(op) {
            OpKind::Return => {
                self.emit(Instr::Return(values.first().copied()));
            }
            OpKind::Resume => {
                self.emit(Instr::Resume(values[0]));
            }
            OpKind::Unreachable => {
                self.emit(Instr::Unreachable);
            }
            OpKind::Repeat => self.repeat(&values),
            _ => self.emit_yield(op, &values)?,
        }
        Ok(())
    }

    fn repeat(&mut self, values: &[Reg]) {
        let Some((owner, head)) = self.open.last().map(|open| (open.op, open.head)) else {
            unreachable!("a `repeat` is in a loop");
        };
        let again = self.emit(Instr::JumpUnless {
            condition: values[0],
            to: 0,
        });
        let params = self.params(self.body.op_regions(owner)[0]);
        let (next, results) = values[1..].split_at(params.len());
        self.moves(&params, next);
        self.emit(Instr::Jump(head));
        let here = self.next_index();
        self.patch(again, here);
        let own = self.results(owner);
        self.moves(&own, results);
    }

    fn emit_yield(&mut self, op: Op, values: &[Reg]) -> Result<(), NotExecutable> {
        let Some((owner, head, scratch)) = self
            .open
            .last()
            .map(|open| (open.op, open.head, open.scratch))
        else {
            return Err("a `yield` outside of all regions".into());
        };
        match self.body.kind(owner) {
            OpKind::For { .. } => {
                let params = self.params(self.body.op_regions(owner)[0]);
                self.moves(&params[1..], values);
                let index = params[0];
                self.emit(Instr::ForNext { index, head });
            }
            OpKind::ParFor { .. } => self.end_iteration(op, owner, values, head)?,
            OpKind::ShareFor { .. } => {
                self.emit(Instr::ShareNext {
                    state: scratch,
                    head,
                });
            }
            OpKind::Spmd { .. } => {
                self.emit(Instr::RankEnd);
            }
            OpKind::Single { copy: true, .. } => {
                let results = self.results(owner);
                self.moves(&results, values);
                self.emit(Instr::Publish(results.into()));
            }
            _ => {
                let results = self.results(owner);
                self.moves(&results, values);
                self.emit_strand_end(owner);
                let last = self.body.op_regions(owner).last().copied();
                if self.body.parent(op) != last {
                    let jump = self.emit(Instr::Jump(0));
                    self.add_exit(jump);
                }
            }
        }
        Ok(())
    }
}

/// Returns the `byval` parameters: index, size and alignment in bytes.
fn byval_params(unit: &Unit, func: FuncId) -> Vec<(usize, u64, u64)> {
    let function = &unit.functions[func];
    let attrs = unit.attrs(function.attrs);
    let count = unit.param_types(function.ty).len();
    (0..count)
        .filter_map(|i| match attrs.param(i, "byval") {
            Some(AttrValue::Type(ty)) => {
                let layout = &unit.layout;
                Some((
                    i,
                    layout.size_bytes(unit, *ty),
                    layout.align_bytes(unit, *ty).max(8),
                ))
            }
            _ => None,
        })
        .collect()
}

/// Returns the value of a constant.
pub(crate) fn constant(
    unit: &Unit,
    symbols: &Symbols,
    id: ConstId,
) -> Result<Value, NotExecutable> {
    let constant = unit.constant(id);
    Ok(match &constant.kind {
        ConstKind::Int(n) | ConstKind::Float(n) => match Shape::of(unit, constant.ty)? {
            Shape::Num(num) => Value::number(num.bits(), *n),
            _ => return Err("a constant that the type cannot represent".into()),
        },
        ConstKind::Zero => Shape::of(unit, constant.ty)?.zero(),
        ConstKind::Undef => Value::UNDEF,
        ConstKind::Poison => Value::Poison,
        ConstKind::Aggregate(members) => {
            let values = members.iter().map(|m| self::constant(unit, symbols, *m));
            Value::Elements(values.collect::<Result<_, _>>()?)
        }
        ConstKind::Func(func) => Value::ptr(symbols.functions[func.index()]),
        ConstKind::Global { global, offset } => {
            let base = symbols.globals[global.index()].0;
            Value::Bits(base.wrapping_add(*offset as u64))
        }
        ConstKind::DanglingAddress(n) => Value::Bits(u64::from(*n)),
        ConstKind::Foreign(_) => return Err("a foreign LLVM constant".into()),
    })
}
