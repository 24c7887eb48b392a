//! Regions as blocks: one walk over a body with a stack of its own.
//!
//! An op with arms becomes a branch, its arms, and a join with a phi per result that is used and in
//! which the arms differ. Loops come out rotated, the way LLVM likes them: the body, then the test. A
//! `for` gets a guard before it and an index that counts up. What follows an op that never lets control
//! through is left out.
use super::Exporter;
use crate::ffi::*;
use crate::import::SELECTOR_NAME;
use gradus_ir::{
    BinaryOp, Body, CallInfo, ConstKind, Definition, Diagnostic, Entity, FuncId, Op, OpKind,
    Region, Type, Value,
};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMTypeKind};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ptr::null_mut;

type Values = SmallVec<[LLVMValueRef; 4]>;

/// What is left to do in the walk.
enum Frame {
    /// The ops of a region from one on.
    Ops(Option<Op>),
    /// An arm: its block is entered.
    Arm {
        region: Region,
        block: LLVMBasicBlockRef,
    },
    /// After the arms or the body of an op: joins.
    After(Op),
}

/// A loop whose body is being built.
struct Round {
    header: LLVMBasicBlockRef,
    /// The block that a `for`'s guard leaves, where it has one.
    guard: Option<LLVMBasicBlockRef>,
    exit: LLVMBasicBlockRef,
    /// The phi of each carried value; null where it never changes.
    phis: Vec<LLVMValueRef>,
    index: LLVMValueRef,
}

/// The state of a body's export.
pub(super) struct Structure<'x, 'h, 'u> {
    pub(super) exporter: &'x mut Exporter<'h, 'u>,
    pub(super) id: FuncId,
    pub(super) function: LLVMValueRef,
    pub(super) body: &'u Body,
    pub(super) values: Vec<LLVMValueRef>,
    /// The instruction that each op became; null where it became none.
    pub(super) made: Vec<LLVMValueRef>,
    /// The subprogram of the function, and where ops without a location are said to stand.
    pub(super) subprogram: LLVMMetadataRef,
    pub(super) nowhere: LLVMMetadataRef,
    stack: Vec<Frame>,
    ends: HashMap<Op, Vec<(LLVMBasicBlockRef, Values)>>,
    rounds: HashMap<Op, Round>,
    /// Switches that only number the arms of the next one.
    merged: HashMap<Op, Op>,
}

/// Builds the body of a function as fresh blocks.
///
/// # Errors
/// An op that LLVM has no counterpart for.
pub(super) fn build<'u>(
    exporter: &mut Exporter<'_, 'u>,
    id: FuncId,
    function: LLVMValueRef,
    body: &'u Body,
) -> Result<(), Diagnostic> {
    let mut structure = Structure {
        exporter,
        id,
        function,
        body,
        values: vec![null_mut(); body.values.len()],
        made: vec![null_mut(); body.ops.len()],
        subprogram: null_mut(),
        nowhere: null_mut(),
        stack: Vec::new(),
        ends: HashMap::new(),
        rounds: HashMap::new(),
        merged: HashMap::new(),
    };
    structure.find_subprogram();
    structure.constants();
    for (i, param) in (0..).zip(body.params()) {
        structure.values[param.index()] = unsafe { LLVMGetParam(function, i) };
    }
    let entry = structure.block();
    structure.enter(entry);
    structure.stack.push(Frame::Ops(body.first(body.root())));
    while let Some(frame) = structure.stack.pop() {
        structure.step(frame)?;
    }
    structure.copy_debug_records();
    Ok(())
}

impl Structure<'_, '_, '_> {
    fn block(&self) -> LLVMBasicBlockRef {
        unsafe { LLVMAppendBasicBlockInContext(self.exporter.host.ctx, self.function, NO_NAME) }
    }
    fn enter(&self, block: LLVMBasicBlockRef) {
        unsafe { LLVMPositionBuilderAtEnd(self.exporter.builder, block) }
    }
    fn here(&self) -> LLVMBasicBlockRef {
        unsafe { LLVMGetInsertBlock(self.exporter.builder) }
    }

    fn constants(&mut self) {
        let consts = &self.exporter.consts;
        for (value, data) in self.body.values.iter() {
            if let Definition::Const(id) = data.def {
                self.values[value.index()] = consts[id.index()];
            }
        }
    }

    /// LLVM's value; poison where its definition was left out as unreachable.
    fn get(&self, value: Value) -> LLVMValueRef {
        let made = self.values[value.index()];
        if made.is_null() {
            unsafe { LLVMGetPoison(self.exporter.ty(self.body.ty(value))) }
        } else {
            made
        }
    }

    fn operands(&self, op: Op) -> Values {
        self.body.operands(op).map(|v| self.get(v)).collect()
    }

    // ---- the walk --------------------------------------------------------------------------

    fn step(&mut self, frame: Frame) -> Result<(), Diagnostic> {
        match frame {
            Frame::Ops(None) => Ok(()),
            Frame::Ops(Some(op)) => {
                self.stack.push(Frame::Ops(self.body.next(op)));
                self.op(op)
            }
            Frame::Arm { region, block } => {
                self.enter(block);
                self.stack.push(Frame::Ops(self.body.first(region)));
                Ok(())
            }
            Frame::After(op) => {
                self.after(op);
                Ok(())
            }
        }
    }

    /// Leaves out what follows in the region that is being walked: control does not get there.
    fn skip_rest(&mut self) {
        if let Some(Frame::Ops(rest)) = self.stack.last_mut() {
            *rest = None;
        }
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        let body = self.body;
        let kind = body.kind(op);
        match kind {
            OpKind::If => self.if_(op),
            OpKind::Switch(cases) => self.switch(op, cases),
            OpKind::Invoke(info) => self.invoke(op, info)?,
            OpKind::Loop { .. } => self.loop_(op),
            OpKind::For { .. } => self.for_(op),
            OpKind::Yield => self.yield_(op)?,
            OpKind::Repeat => self.repeat(op)?,
            OpKind::Return => self.terminate(op, |b, a| unsafe {
                if a.is_empty() {
                    LLVMBuildRetVoid(b)
                } else {
                    LLVMBuildRet(b, a[0])
                }
            }),
            OpKind::Unreachable => self.terminate(op, |b, _| unsafe { LLVMBuildUnreachable(b) }),
            OpKind::Resume => self.terminate(op, |b, a| unsafe { LLVMBuildResume(b, a[0]) }),
            OpKind::Binary(BinaryOp::Xor) if self.is_folded_negation(op) => {}
            _ => self.plain(op, kind)?,
        }
        Ok(())
    }

    fn plain(&mut self, op: Op, kind: &OpKind) -> Result<(), Diagnostic> {
        let operands = self.operands(op);
        let result = self.body.results(op).first().copied();
        let ty = result.map(|r| self.body.ty(r));
        let flags = self.body.ops[op].flags;
        let made = self.exporter.instruction(kind, flags, &operands, ty)?;
        self.describe(op, made);
        if let Some(result) = result {
            self.values[result.index()] = made;
        }
        Ok(())
    }

    fn terminate(
        &mut self,
        op: Op,
        make: impl Fn(LLVMBuilderRef, &[LLVMValueRef]) -> LLVMValueRef,
    ) {
        let operands = self.operands(op);
        let made = make(self.exporter.builder, &operands);
        self.describe(op, made);
        self.skip_rest();
    }

    /// Gives an instruction the name, location and metadata of its op.
    fn describe(&mut self, op: Op, made: LLVMValueRef) {
        if unsafe { LLVMIsAInstruction(made) }.is_null() {
            return;
        }
        self.made[op.index()] = made;
        let data = &self.body.ops[op];
        self.set_location(made, data.loc);
        if let Some(meta) = data.meta {
            self.exporter.set_meta(made, meta);
        }
        if let Some(name) = &data.name
            && unsafe { LLVMGetTypeKind(LLVMTypeOf(made)) } != LLVMTypeKind::LLVMVoidTypeKind
        {
            unsafe { LLVMSetValueName2(made, name.as_ptr().cast(), name.len()) };
        }
    }

    // ---- branches --------------------------------------------------------------------------

    /// A condition and whether it counts the other way round.
    fn condition(&self, value: Value) -> (LLVMValueRef, bool) {
        match self.body.def_op(value) {
            Some(op) if self.is_folded_negation(op) => (self.get(self.body.operand(op, 0)), true),
            _ => (self.get(value), false),
        }
    }

    /// Whether an op is a negation that import put in for a branch, and can go into that branch.
    fn is_folded_negation(&self, op: Op) -> bool {
        let body = self.body;
        let marked = body.ops[op].name.as_deref() == Some(SELECTOR_NAME);
        if !marked || !matches!(body.kind(op), OpKind::Binary(BinaryOp::Xor)) {
            return false;
        }
        let one = body
            .as_const(body.operand(op, 1))
            .map(|c| &self.exporter.unit.consts.get(c).kind);
        let mut uses = body.uses(body.result(op));
        let fits = uses.next().is_some_and(|u| {
            u.index == 0 && matches!(body.kind(u.op), OpKind::Repeat | OpKind::If)
        });
        fits && uses.next().is_none() && matches!(one, Some(ConstKind::Int(1)))
    }

    fn arms(&mut self, op: Op, blocks: &[LLVMBasicBlockRef]) {
        self.stack.push(Frame::After(op));
        for (region, block) in self.body.op_regions(op).iter().zip(blocks).rev() {
            self.stack.push(Frame::Arm {
                region: *region,
                block: *block,
            });
        }
    }

    fn if_(&mut self, op: Op) {
        let (condition, inverted) = self.condition(self.body.operand(op, 0));
        let blocks = [self.block(), self.block()];
        let (yes, no) = if inverted {
            (blocks[1], blocks[0])
        } else {
            (blocks[0], blocks[1])
        };
        let made = unsafe { LLVMBuildCondBr(self.exporter.builder, condition, yes, no) };
        self.describe(op, made);
        self.arms(op, &blocks);
    }

    fn switch(&mut self, op: Op, cases: &[u128]) {
        if let Some(next) = self.numbers_arms_of(op) {
            self.merged.insert(next, op);
            return;
        }
        let blocks: Vec<LLVMBasicBlockRef> = self
            .body
            .op_regions(op)
            .iter()
            .map(|_| self.block())
            .collect();
        let (source, targets) = match self.merged.get(&op) {
            Some(&numbering) => (numbering, self.merged_cases(numbering, cases, &blocks)),
            None => (
                op,
                cases.iter().copied().zip(blocks.iter().copied()).collect(),
            ),
        };
        let on = self.get(self.body.operand(source, 0));
        let other = match self.merged.get(&op) {
            Some(&numbering) => {
                let regions = self.body.op_regions(numbering);
                arm_block(
                    self.yielded_number(regions[regions.len() - 1]),
                    cases,
                    &blocks,
                )
            }
            None => blocks[blocks.len() - 1],
        };
        unsafe {
            let ty = LLVMTypeOf(on);
            let wide = if LLVMGetIntTypeWidth(ty) > 64 { 2 } else { 1 };
            let made = LLVMBuildSwitch(self.exporter.builder, on, other, targets.len() as u32);
            for (case, block) in targets {
                let words = [case as u64, (case >> 64) as u64];
                LLVMAddCase(
                    made,
                    LLVMConstIntOfArbitraryPrecision(ty, wide, words.as_ptr()),
                    block,
                );
            }
            self.describe(source, made);
        }
        self.arms(op, &blocks);
    }

    /// The switch whose arms this one only numbers: then both come out as one.
    fn numbers_arms_of(&self, op: Op) -> Option<Op> {
        let body = self.body;
        if body.ops[op].name.as_deref() != Some(SELECTOR_NAME) {
            return None;
        }
        let next = body.next(op)?;
        let mut uses = body.uses(body.result(op));
        let only = uses.next()?;
        let fits = only.op == next
            && uses.next().is_none()
            && matches!(body.kind(next), OpKind::Switch(_));
        let numbered = body
            .op_regions(op)
            .iter()
            .all(|r| body.first(*r) == body.last(*r) && self.yielded_constant(*r).is_some());
        (fits && numbered).then_some(next)
    }

    fn yielded_constant(&self, region: Region) -> Option<u128> {
        let end = self.body.last(region)?;
        let id = self.body.as_const(self.body.operands(end).next()?)?;
        match self.exporter.unit.consts.get(id).kind {
            ConstKind::Int(n) => Some(n),
            _ => None,
        }
    }

    fn yielded_number(&self, region: Region) -> u128 {
        self.yielded_constant(region).unwrap_or_default()
    }

    fn merged_cases(
        &self,
        numbering: Op,
        cases: &[u128],
        blocks: &[LLVMBasicBlockRef],
    ) -> Vec<(u128, LLVMBasicBlockRef)> {
        let OpKind::Switch(values) = self.body.kind(numbering) else {
            return Vec::new();
        };
        let regions = self.body.op_regions(numbering);
        let target = |region: &Region| arm_block(self.yielded_number(*region), cases, blocks);
        values
            .iter()
            .copied()
            .zip(regions.iter().map(target))
            .collect()
    }

    fn invoke(&mut self, op: Op, info: &CallInfo) -> Result<(), Diagnostic> {
        let operands = self.operands(op);
        let (args, mut bundles) = self.exporter.call_operands(info, &operands);
        let blocks = [self.block(), self.block()];
        let signature = self.exporter.ty(info.signature);
        let made = unsafe {
            LLVMBuildInvokeWithOperandBundles(
                self.exporter.builder,
                signature,
                operands[0],
                args.as_ptr().cast_mut(),
                args.len() as u32,
                blocks[0],
                blocks[1],
                bundles.as_mut_ptr(),
                bundles.len() as u32,
                NO_NAME,
            )
        };
        self.exporter.finish_call(made, info, bundles)?;
        self.describe(op, made);
        if let Some(result) = self.body.region_params(self.body.op_regions(op)[0]).first() {
            self.values[result.index()] = made;
        }
        self.arms(op, &blocks);
        Ok(())
    }

    // ---- the ends of regions ---------------------------------------------------------------

    fn yield_(&mut self, op: Op) -> Result<(), Diagnostic> {
        let owner = self.body.parent(op).and_then(|r| self.body.owner(r));
        let owner = owner.ok_or_else(|| self.exporter.broken("a yield outside of every op"))?;
        match self.body.kind(owner) {
            OpKind::If | OpKind::Switch(_) | OpKind::Invoke(_) => {
                let end = (self.here(), self.operands(op));
                self.ends.entry(owner).or_default().push(end);
            }
            OpKind::For { .. } => self.next_round(owner, op),
            kind => {
                return Err(self
                    .exporter
                    .broken(format!("{kind:?} has no counterpart in LLVM")));
            }
        }
        self.skip_rest();
        Ok(())
    }

    /// Joins the arms of an op, or goes on after a loop.
    fn after(&mut self, op: Op) {
        let ends = self.ends.remove(&op).unwrap_or_default();
        let body = self.body;
        match ends.as_slice() {
            [] => self.skip_rest(),
            [(block, values)] => {
                self.enter(*block);
                for (result, value) in body.results(op).iter().zip(values) {
                    self.values[result.index()] = *value;
                }
            }
            _ => {
                let join = self.block();
                for (block, _) in &ends {
                    self.enter(*block);
                    let made = unsafe { LLVMBuildBr(self.exporter.builder, join) };
                    self.set_location(made, body.ops[op].loc);
                }
                self.enter(join);
                for (i, result) in body.results(op).iter().enumerate() {
                    if body.has_uses(*result) {
                        self.values[result.index()] = self.join(*result, i, &ends);
                    }
                }
            }
        }
    }

    fn join(&self, result: Value, i: usize, ends: &[(LLVMBasicBlockRef, Values)]) -> LLVMValueRef {
        let first = ends[0].1[i];
        if ends.iter().all(|(_, values)| values[i] == first) {
            return first;
        }
        let mut blocks: Vec<LLVMBasicBlockRef> = ends.iter().map(|(block, _)| *block).collect();
        let mut values: Vec<LLVMValueRef> = ends.iter().map(|(_, values)| values[i]).collect();
        let phi = self.phi(result);
        unsafe {
            LLVMAddIncoming(
                phi,
                values.as_mut_ptr(),
                blocks.as_mut_ptr(),
                values.len() as u32,
            )
        };
        phi
    }

    fn phi(&self, value: Value) -> LLVMValueRef {
        let ty = self.exporter.ty(self.body.ty(value));
        unsafe { LLVMBuildPhi(self.exporter.builder, ty, NO_NAME) }
    }

    // ---- loops -----------------------------------------------------------------------------

    /// Enters a loop's header and makes its phis. A carried value that comes back as it went in, or as
    /// it started, needs none; `next` are the operands of the terminator that come back.
    fn header(&mut self, params: &[Value], initial: &[Value], next: &[Value]) -> Round {
        let before = self.here();
        let (header, exit) = (self.block(), self.block());
        self.enter(header);
        let mut phis = Vec::new();
        for (i, (param, start)) in params.iter().zip(initial).enumerate() {
            let mut value = self.get(*start);
            if next.get(i).is_some_and(|n| n == param || n == start) || !self.body.has_uses(*param)
            {
                self.values[param.index()] = value;
                phis.push(null_mut());
                continue;
            }
            let phi = self.phi(*param);
            let mut from = before;
            unsafe { LLVMAddIncoming(phi, &mut value, &mut from, 1) };
            self.values[param.index()] = phi;
            phis.push(phi);
        }
        Round {
            header,
            guard: None,
            exit,
            phis,
            index: null_mut(),
        }
    }

    fn loop_(&mut self, op: Op) {
        let body = self.body;
        let region = body.op_regions(op)[0];
        let initial: Vec<Value> = body.operands(op).collect();
        let params = body.region_params(region);
        let next: Vec<Value> = match body.last(region) {
            Some(end) if matches!(body.kind(end), OpKind::Repeat) => {
                body.operands(end).skip(1).take(params.len()).collect()
            }
            _ => Vec::new(),
        };
        let before = self.here();
        let round = self.header(params, &initial, &next);
        self.enter(before);
        let made = unsafe { LLVMBuildBr(self.exporter.builder, round.header) };
        self.set_location(made, body.ops[op].loc);
        self.enter(round.header);
        self.rounds.insert(op, round);
        self.stack.push(Frame::After(op));
        self.stack.push(Frame::Ops(body.first(region)));
    }

    fn repeat(&mut self, op: Op) -> Result<(), Diagnostic> {
        let body = self.body;
        let owner = body.parent(op).and_then(|r| body.owner(r));
        let (owner, round) = owner
            .and_then(|o| self.rounds.remove(&o).map(|r| (o, r)))
            .ok_or_else(|| self.exporter.broken("a repeat outside of every loop"))?;
        let (again, inverted) = self.condition(body.operand(op, 0));
        let values = self.operands(op);
        let carried = round.phis.len();
        self.come_back(&round, &values[1..=carried]);
        let (yes, no) = if inverted {
            (round.exit, round.header)
        } else {
            (round.header, round.exit)
        };
        let forever = !inverted && unsafe { is_true(again) };
        let builder = self.exporter.builder;
        let made = unsafe {
            if forever {
                LLVMBuildBr(builder, round.header)
            } else {
                LLVMBuildCondBr(builder, again, yes, no)
            }
        };
        self.describe(owner, made);
        if forever {
            unsafe { LLVMDeleteBasicBlock(round.exit) };
        } else {
            let results: Values = values[1 + carried..].iter().copied().collect();
            self.ends.insert(owner, vec![(round.exit, results)]);
        }
        self.skip_rest();
        Ok(())
    }

    /// Adds what comes back to the phis of a header.
    fn come_back(&self, round: &Round, next: &[LLVMValueRef]) {
        for (phi, value) in round
            .phis
            .iter()
            .zip(next)
            .filter(|(phi, _)| !phi.is_null())
        {
            let (mut value, mut from) = (*value, self.here());
            unsafe { LLVMAddIncoming(*phi, &mut value, &mut from, 1) };
        }
    }

    fn for_(&mut self, op: Op) {
        let body = self.body;
        let region = body.op_regions(op)[0];
        let initial: Vec<Value> = body.operands(op).skip(1).collect();
        let params = body.region_params(region).to_vec();
        let next: Vec<Value> = match body.last(region) {
            Some(end) if matches!(body.kind(end), OpKind::Yield) => body.operands(end).collect(),
            _ => Vec::new(),
        };
        let trips = body.operand(op, 0);
        let builder = self.exporter.builder;
        let before = self.here();
        let mut round = self.header(&params[1..], &initial, &next);
        let runs = matches!(
            body.as_const(trips).map(|c| &self.exporter.unit.consts.get(c).kind),
            Some(ConstKind::Int(n)) if *n > 0
        );
        unsafe {
            round.index = self.phi(params[0]);
            let count = self.get(trips);
            let mut zero = LLVMConstNull(LLVMTypeOf(count));
            let mut from = before;
            LLVMAddIncoming(round.index, &mut zero, &mut from, 1);
            self.enter(before);
            let made = if runs {
                LLVMBuildBr(builder, round.header)
            } else {
                round.guard = Some(before);
                let some =
                    LLVMBuildICmp(builder, LLVMIntPredicate::LLVMIntNE, count, zero, NO_NAME);
                LLVMBuildCondBr(builder, some, round.header, round.exit)
            };
            self.set_location(made, body.ops[op].loc);
        }
        self.values[params[0].index()] = round.index;
        self.enter(round.header);
        self.rounds.insert(op, round);
        self.stack.push(Frame::After(op));
        self.stack.push(Frame::Ops(body.first(region)));
    }

    /// The bottom of a `for`: counts up, tests, and leaves.
    fn next_round(&mut self, owner: Op, end: Op) {
        let Some(round) = self.rounds.remove(&owner) else {
            return;
        };
        let values = self.operands(end);
        let latch = self.here();
        self.come_back(&round, &values);
        let count = self.get(self.body.operand(owner, 0));
        let builder = self.exporter.builder;
        unsafe {
            let one = LLVMConstInt(LLVMTypeOf(count), 1, 0);
            let mut next = LLVMBuildAdd(builder, round.index, one, NO_NAME);
            LLVMSetNUW(next, 1);
            LLVMSetNSW(next, i32::from(self.index_fits_signed(owner)));
            let mut from = latch;
            LLVMAddIncoming(round.index, &mut next, &mut from, 1);
            let done = LLVMBuildICmp(builder, LLVMIntPredicate::LLVMIntEQ, next, count, NO_NAME);
            let made = LLVMBuildCondBr(builder, done, round.exit, round.header);
            self.describe(owner, made);
        }
        self.enter(round.exit);
        let results = self.body.results(owner);
        let mut given = Values::new();
        for (i, result) in results.iter().enumerate() {
            let start = self.get(self.body.operand(owner, i + 1));
            given.push(match round.guard {
                Some(guard) if start != values[i] => {
                    let phi = self.phi(*result);
                    let (mut values, mut blocks) = ([start, values[i]], [guard, latch]);
                    unsafe { LLVMAddIncoming(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), 2) };
                    phi
                }
                _ => values[i],
            });
        }
        self.ends.insert(owner, vec![(round.exit, given)]);
    }

    /// Whether counting up by one cannot pass the signed maximum: no loop runs 2⁶³ times.
    fn index_fits_signed(&self, op: Op) -> bool {
        let ty = self.body.ty(self.body.operand(op, 0));
        let Type::Int(bits) = *self.exporter.unit.types.get(ty) else {
            return false;
        };
        let bounded = |max: u64| bits >= 64 || max >> (bits - 1) == 0;
        match self.body.kind(op) {
            OpKind::For {
                trip_max: Some(max),
            } => bounded(*max),
            _ => bits >= 64,
        }
    }
}

/// The block of the arm with a number.
fn arm_block(number: u128, cases: &[u128], blocks: &[LLVMBasicBlockRef]) -> LLVMBasicBlockRef {
    let position = cases
        .iter()
        .position(|c| *c == number)
        .unwrap_or(cases.len());
    blocks[position]
}

/// # Safety
/// `value` is a live value.
unsafe fn is_true(value: LLVMValueRef) -> bool {
    unsafe { !LLVMIsAConstantInt(value).is_null() && LLVMConstIntGetZExtValue(value) == 1 }
}
