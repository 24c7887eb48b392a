//! Translates regions to basic blocks: one walk over a body with an explicit stack.
//!
//! An op with arms becomes a branch and its arms. [`crate::export::jump_threading`] builds the continuation,
//! [`super::loops`] the loops. Ops after an op that never lets control through are left out.
use super::Exporter;
use super::loops::OpenLoop;
use crate::export::jump_threading::End;
use crate::export::live_ranges::Order;
use crate::host::ffi::*;
use crate::import::SELECTOR_NAME;
use gradus_ir::{
    BinaryOp, Body, CallInfo, ConstKind, Definition, Diagnostic, Entity, FuncId, Op, OpKind,
    Region, Value,
};
use llvm_sys::LLVMTypeKind;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ptr::null_mut;
use std::rc::Rc;

pub(super) type Values = SmallVec<[LLVMValueRef; 4]>;

/// A work item of the walk.
pub(super) enum Frame {
    /// The ops of a region, from the given op on.
    Ops(Option<Op>),
    /// An arm whose block is entered.
    Arm {
        region: Region,
        block: LLVMBasicBlockRef,
    },
    /// An arm with several predecessors.
    Entry {
        region: Region,
        ends: Vec<End>,
        given: Rc<Vec<Value>>,
        behind: u32,
    },
    /// The continuation after the arms or the body of an op.
    After(Op),
}

/// The state of a body's export.
pub(super) struct Structure<'x, 'h, 'u> {
    pub(super) exporter: &'x mut Exporter<'h, 'u>,
    pub(super) id: FuncId,
    pub(super) function: LLVMValueRef,
    pub(super) body: &'u Body,
    pub(super) values: Vec<LLVMValueRef>,
    /// The instruction of each op; null if the op has none.
    pub(super) made: Vec<LLVMValueRef>,
    /// The subprogram of the function, and the call site of locations that count as inlined.
    pub(super) subprogram: LLVMMetadataRef,
    pub(super) call_site: LLVMMetadataRef,
    /// LLVM's numbers of the metadata kinds `prof`, `DIAssignID` and `llvm.loop`.
    pub(super) kinds: Option<(u32, u32, u32)>,
    pub(super) order: Order,
    pub(super) stack: Vec<Frame>,
    /// The finished ends of the arms of an op.
    pub(super) ends: HashMap<Op, Vec<End>>,
    /// Values beside the results that the arms of an op yield.
    pub(super) extras: HashMap<Op, Vec<Value>>,
    pub(super) rounds: HashMap<Op, OpenLoop>,
    /// Sums that are a loop's index (see [`crate::export::induction_start`]).
    pub(super) counted: HashSet<Op>,
    /// The enclosing loops with independent iterations, and their access groups.
    pub(super) groups: Vec<(Op, LLVMMetadataRef)>,
    /// Switches that only number the arms of the next switch.
    merged: HashMap<Op, Op>,
}

/// Builds the body of a function as fresh blocks.
///
/// # Errors
/// An op without an LLVM counterpart.
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
        call_site: null_mut(),
        kinds: None,
        order: Order::new(body),
        stack: Vec::new(),
        ends: HashMap::new(),
        extras: HashMap::new(),
        rounds: HashMap::new(),
        counted: HashSet::new(),
        groups: Vec::new(),
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
    structure.describe_parameters();
    Ok(())
}

impl Structure<'_, '_, '_> {
    pub(super) fn block(&self) -> LLVMBasicBlockRef {
        unsafe { LLVMAppendBasicBlockInContext(self.exporter.host.ctx, self.function, NO_NAME) }
    }
    pub(super) fn enter(&self, block: LLVMBasicBlockRef) {
        unsafe { LLVMPositionBuilderAtEnd(self.exporter.builder, block) }
    }
    /// Enters a block. An empty block moves to the end of the function: blocks follow the order of the
    /// code, regardless of the order of branches, and LLVM preserves much of that order.
    pub(super) fn enter_at_end(&self, block: LLVMBasicBlockRef) {
        unsafe {
            let last = LLVMGetLastBasicBlock(self.function);
            if last != block && LLVMGetFirstInstruction(block).is_null() {
                LLVMMoveBasicBlockAfter(block, last);
            }
        }
        self.enter(block);
    }
    pub(super) fn current_block(&self) -> LLVMBasicBlockRef {
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

    /// Returns LLVM's value; poison if the definition was left out as unreachable.
    pub(super) fn get(&self, value: Value) -> LLVMValueRef {
        let made = self.values[value.index()];
        if made.is_null() {
            unsafe { LLVMGetPoison(self.exporter.ty(self.body.ty(value))) }
        } else {
            made
        }
    }

    pub(super) fn operands(&self, op: Op) -> Values {
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
                self.enter_at_end(block);
                self.stack.push(Frame::Ops(self.body.first(region)));
                Ok(())
            }
            Frame::Entry {
                region,
                ends,
                given,
                behind,
            } => {
                self.join_ends(ends, &given, behind);
                self.stack.push(Frame::Ops(self.body.first(region)));
                Ok(())
            }
            Frame::After(op) => {
                self.continue_after(op);
                Ok(())
            }
        }
    }

    /// Leaves out the rest of the present region, because control does not reach it.
    pub(super) fn skip_rest(&mut self) {
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
            OpKind::Binary(BinaryOp::Add) if self.counted.contains(&op) => {}
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

    /// Sets the name, location and metadata of an op on its instruction.
    pub(super) fn describe(&mut self, op: Op, made: LLVMValueRef) {
        if unsafe { LLVMIsAInstruction(made) }.is_null() {
            return;
        }
        self.copy_debug_records(op, made);
        self.made[op.index()] = made;
        let data = &self.body.ops[op];
        self.set_location(made, data.loc);
        if let Some(meta) = data.meta {
            self.set_meta(op, made, meta);
        }
        self.set_groups(made);
        if let Some(name) = &data.name
            && unsafe { LLVMGetTypeKind(LLVMTypeOf(made)) } != LLVMTypeKind::LLVMVoidTypeKind
        {
            unsafe { LLVMSetValueName2(made, name.as_ptr().cast(), name.len()) };
        }
    }

    // ---- branches --------------------------------------------------------------------------

    /// Returns a condition without its folded negation, and whether a negation was folded.
    pub(super) fn condition(&self, value: Value) -> (LLVMValueRef, bool) {
        match self.body.def_op(value) {
            Some(op) if self.is_folded_negation(op) => (self.get(self.body.operand(op, 0)), true),
            _ => (self.get(value), false),
        }
    }

    /// Returns whether an op is a negation that import inserted for a branch and that folds into the
    /// branch.
    pub(super) fn is_folded_negation(&self, op: Op) -> bool {
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
        if let Some(next) = self.numbered_switch(op) {
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
        let made = self.make_switch(on, other, &targets);
        self.describe(source, made);
        self.arms(op, &blocks);
    }

    pub(super) fn make_switch(
        &self,
        on: LLVMValueRef,
        other: LLVMBasicBlockRef,
        targets: &[(u128, LLVMBasicBlockRef)],
    ) -> LLVMValueRef {
        unsafe {
            let ty = LLVMTypeOf(on);
            let wide = if LLVMGetIntTypeWidth(ty) > 64 { 2 } else { 1 };
            let made = LLVMBuildSwitch(self.exporter.builder, on, other, targets.len() as u32);
            for (case, block) in targets {
                let words = [*case as u64, (*case >> 64) as u64];
                LLVMAddCase(
                    made,
                    LLVMConstIntOfArbitraryPrecision(ty, wide, words.as_ptr()),
                    *block,
                );
            }
            made
        }
    }

    /// Returns the switch whose arms the switch `op` only numbers: both become one LLVM switch.
    pub(super) fn numbered_switch(&self, op: Op) -> Option<Op> {
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
        let Some(number) = self.yielded_constant(region) else {
            unreachable!("every arm of a switch that numbers arms yields a constant");
        };
        number
    }

    fn merged_cases(
        &self,
        numbering: Op,
        cases: &[u128],
        blocks: &[LLVMBasicBlockRef],
    ) -> Vec<(u128, LLVMBasicBlockRef)> {
        let OpKind::Switch(values) = self.body.kind(numbering) else {
            unreachable!("only a switch numbers the arms of another switch");
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
        let owner = self.body.parent_op(op);
        let owner =
            owner.ok_or_else(|| self.exporter.broken_unit("a `yield` outside of all ops"))?;
        match self.body.kind(owner) {
            OpKind::If | OpKind::Switch(_) | OpKind::Invoke(_) => {
                let end = End {
                    block: self.current_block(),
                    values: self.end_values(op, owner),
                };
                self.ends.entry(owner).or_default().push(end);
            }
            OpKind::For { .. } => self.finish_for(owner, op),
            kind => {
                return Err(self.exporter.broken_unit(format!(
                    "{kind:?} has no LLVM control flow; a lowering pass is missing"
                )));
            }
        }
        self.skip_rest();
        Ok(())
    }

    pub(super) fn phi(&self, value: Value) -> LLVMValueRef {
        let ty = self.exporter.ty(self.body.ty(value));
        unsafe { LLVMBuildPhi(self.exporter.builder, ty, NO_NAME) }
    }
}

/// Returns the block of the arm with a number.
fn arm_block(number: u128, cases: &[u128], blocks: &[LLVMBasicBlockRef]) -> LLVMBasicBlockRef {
    let position = cases
        .iter()
        .position(|c| *c == number)
        .unwrap_or(cases.len());
    blocks[position]
}
