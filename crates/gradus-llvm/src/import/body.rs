//! Builds a body from the region tree.
//!
//! One walk over the tree with a stack of frames and an environment `variable → value`, by the rules stated
//! in [`crate::restructure`]: definitions and edges bind, operands read. An arm starts with the environment
//! before its node, and only the node's results stay bound after it. Bindings of an arm are undone from a
//! log, so the cost of the walk is linear in the number of bindings.
use super::Importer;
use super::refusal::Refusal;
use crate::host::handle_tables::Records;
use crate::import::cfg_reader::{Block, End, Inst, Ref, Source};
use crate::restructure::scope::{Scope, Var};
use crate::restructure::{NodeId, RepeatCondition, SelectorId, SeqId, Tree, TreeNode};
use gradus_ir::{
    BinaryOp, Body, ConstKind, Entity, FuncId, IntPredicate, Meta, Op, OpKind, Region, Type,
    TypeId, Value,
};
use llvm_sys::prelude::*;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Name of the ops that compare or negate selectors; export folds them away.
pub(crate) const SELECTOR_NAME: &str = "gradus.selector";

/// A work item of the walk.
enum Frame {
    /// The nodes of a sequence, from a position on.
    Seq {
        seq: SeqId,
        at: usize,
        region: Region,
    },
    /// The end of an arm: emits the yield, and undoes the arm's bindings.
    EndArm {
        seq: SeqId,
        node: NodeId,
        region: Region,
        mark: usize,
    },
    /// The end of a loop's body.
    EndLoop {
        node: NodeId,
        region: Region,
        mark: usize,
    },
    /// The start of an invoke's normal arm: binds the call's result.
    Bind { variable: usize, value: Value },
    /// The end of a node, after all arms: binds the results.
    EndNode { node: NodeId, op: Op },
}

struct BodyBuilder<'a, 'h> {
    importer: &'a mut Importer<'h>,
    source: &'a Source,
    tree: &'a Tree,
    scope: &'a Scope,
    body: Body,
    env: Vec<Option<Value>>,
    log: Vec<(usize, Option<Value>)>,
    stack: Vec<Frame>,
    origins: Vec<LLVMValueRef>,
    /// The function, and whether its instructions may carry debug records.
    id: FuncId,
    has_records: bool,
    /// Debug records in front of a jump, which becomes no op: attached to the next op of the region.
    pending: Option<(Region, Records)>,
    /// A latch block of each loop.
    latches: HashMap<NodeId, usize>,
    bit: TypeId,
    int: TypeId,
}

/// Builds the body of a restructured function; returns the body and the LLVM instruction of each op.
///
/// # Errors
/// A token that would become a region's result.
pub(super) fn build_body(
    importer: &mut Importer<'_>,
    source: &Source,
    tree: &Tree,
    scope: &Scope,
    (id, has_records): (FuncId, bool),
) -> Result<(Body, Vec<LLVMValueRef>), Refusal> {
    let params = importer
        .unit
        .param_types(importer.unit.functions[id].ty)
        .to_vec();
    let body = Body::new(&params);
    let bit = importer.unit.types.int(1);
    let int = importer.unit.types.int(32);
    let mut env = vec![None; source.types.len() + tree.selectors().len()];
    for (slot, param) in env.iter_mut().zip(body.params()) {
        *slot = Some(*param);
    }
    let root = body.root();
    let stack = vec![Frame::Seq {
        seq: tree.root(),
        at: 0,
        region: root,
    }];
    let mut maker = BodyBuilder {
        latches: latches(tree),
        log: Vec::new(),
        origins: Vec::new(),
        id,
        has_records,
        pending: None,
        importer,
        source,
        tree,
        scope,
        body,
        env,
        stack,
        bit,
        int,
    };
    while let Some(frame) = maker.stack.pop() {
        maker.step(frame)?;
    }
    if tree.never_completes(tree.root()) {
        maker.terminate(root);
    } else {
        let returned = maker.source.returned.map(|r| maker.read(r as usize));
        let op = maker.op(root, OpKind::Return, returned.as_slice(), &[], 0);
        let mut returns = source
            .blocks
            .iter()
            .filter(|b| matches!(b.end, End::Return));
        if let (Some(only), None) = (returns.next(), returns.next()) {
            maker.copy_instruction_info(op, only.terminator);
        }
    }
    Ok((maker.body, maker.origins))
}

unsafe extern "C" {
    fn gr_has_debug_records(instruction: LLVMValueRef) -> i32;
    fn gr_is_marked(branch: LLVMValueRef) -> i32;
    fn gr_debug_operands(
        instruction: LLVMValueRef,
        sink: extern "C" fn(*mut c_void, LLVMValueRef),
        data: *mut c_void,
    );
}

extern "C" fn push_operand(operands: *mut c_void, value: LLVMValueRef) {
    unsafe { &mut *operands.cast::<Vec<LLVMValueRef>>() }.push(value);
}

/// Returns a latch block for each loop.
fn latches(tree: &Tree) -> HashMap<NodeId, usize> {
    let round = tree.nodes().filter_map(|(_, node)| match node {
        TreeNode::Edge {
            block,
            back: Some(round),
            ..
        } => Some((*round, *block)),
        _ => None,
    });
    round.collect()
}

impl BodyBuilder<'_, '_> {
    // ---- the environment -------------------------------------------------------------------

    fn variable(&self, var: Var) -> usize {
        match var {
            Var::Value(number) => number as usize,
            Var::Selector(selector) => self.selector(selector),
        }
    }

    fn selector(&self, selector: SelectorId) -> usize {
        self.source.types.len() + selector.index()
    }

    fn bind(&mut self, variable: usize, value: Value) {
        let old = self.env[variable].replace(value);
        self.log.push((variable, old));
    }

    fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            if let Some((variable, old)) = self.log.pop() {
                self.env[variable] = old;
            }
        }
    }

    fn read(&mut self, variable: usize) -> Value {
        match self.env[variable] {
            Some(value) => value,
            None => {
                let ty = self.type_of(variable);
                let id = self.importer.unit.consts.intern(ty, ConstKind::Poison);
                self.body.constant(&self.importer.unit, id)
            }
        }
    }

    fn type_of(&self, variable: usize) -> TypeId {
        match self.source.types.get(variable) {
            Some(ty) => *ty,
            None => self.selector_type(variable - self.source.types.len()),
        }
    }

    fn selector_type(&self, selector: usize) -> TypeId {
        if self.tree.selectors()[selector].values <= 2 {
            self.bit
        } else {
            self.int
        }
    }

    fn value(&mut self, operand: Ref) -> Value {
        match operand {
            Ref::Local(number) => self.read(number as usize),
            Ref::Const(id) => self.body.constant(&self.importer.unit, id),
        }
    }

    fn number(&mut self, ty: TypeId, value: u128) -> Value {
        let id = self.importer.unit.consts.intern(ty, ConstKind::Int(value));
        self.body.constant(&self.importer.unit, id)
    }

    fn read_all(&mut self, vars: &[Var]) -> Vec<Value> {
        vars.iter().map(|v| self.read(self.variable(*v))).collect()
    }

    fn types(&self, vars: &[Var]) -> Result<Vec<TypeId>, Refusal> {
        let types: Vec<TypeId> = vars
            .iter()
            .map(|v| self.type_of(self.variable(*v)))
            .collect();
        match types
            .iter()
            .any(|t| matches!(self.importer.unit.types.get(*t), Type::Opaque(_)))
        {
            true => Err(Refusal::Token),
            false => Ok(types),
        }
    }

    // ---- ops -------------------------------------------------------------------------------

    fn op(
        &mut self,
        region: Region,
        kind: OpKind,
        operands: &[Value],
        results: &[TypeId],
        regions: usize,
    ) -> Op {
        let takes_records = !matches!(kind, OpKind::Loop { .. } | OpKind::Yield | OpKind::Repeat);
        let op = self.body.new_op(kind, operands, results, regions);
        self.body.append(region, op);
        if let Some((at, records)) = self.pending.take()
            && at == region
            && takes_records
        {
            self.add_records(op, records);
        }
        op
    }

    /// Copies location, metadata and debug records of a host instruction to an op.
    fn copy_instruction_info(&mut self, op: Op, raw: LLVMValueRef) {
        if raw.is_null() {
            return;
        }
        let loc = self.importer.location(raw);
        let meta = self.importer.meta(raw);
        let data = &mut self.body.ops[op];
        (data.loc, data.meta) = (loc, meta);
        if self.origins.len() <= op.index() {
            self.origins.resize(op.index() + 1, null_mut());
        }
        self.origins[op.index()] = raw;
        if self.has_records && unsafe { gr_has_debug_records(raw) } != 0 {
            let records = self.records(raw);
            self.add_records(op, records);
        }
    }

    /// Returns the debug records in front of an instruction, with the bound values of their operands.
    fn records(&self, before: LLVMValueRef) -> Records {
        let mut spoken: Vec<LLVMValueRef> = Vec::new();
        unsafe { gr_debug_operands(before, push_operand, (&raw mut spoken).cast()) };
        let value_of = |old: LLVMValueRef| match self.source.numbers.get(&old.cast()) {
            Some(Ref::Local(number)) => self.env[*number as usize].map(|value| (old, value)),
            _ => None,
        };
        Records {
            before,
            values: spoken.into_iter().filter_map(value_of).collect(),
        }
    }

    fn add_records(&mut self, op: Op, records: Records) {
        let described = &mut self.importer.host.tables.debug_records;
        described.entry((self.id, op)).or_default().push(records);
    }

    fn inst(&mut self, region: Region, inst: &Inst) -> Op {
        let operands: SmallVec<[Value; 4]> = inst.operands.iter().map(|o| self.value(*o)).collect();
        let result = inst.result.map(|r| self.source.types[r as usize]);
        let op = self.op(region, inst.kind.clone(), &operands, result.as_slice(), 0);
        self.body.ops[op].flags = inst.flags;
        self.body.ops[op].name = self.importer.value_name(inst.raw);
        self.copy_instruction_info(op, inst.raw);
        if let Some(number) = inst.result {
            let value = self.body.result(op);
            self.bind(number as usize, value);
        }
        op
    }

    // ---- the walk --------------------------------------------------------------------------

    fn step(&mut self, frame: Frame) -> Result<(), Refusal> {
        match frame {
            Frame::Seq { seq, at, region } => {
                let Some(&node) = self.tree.seq(seq).get(at) else {
                    // Not an error: the end of the sequence.
                    return Ok(());
                };
                self.stack.push(Frame::Seq {
                    seq,
                    at: at + 1,
                    region,
                });
                self.node(node, region)?;
            }
            Frame::EndArm {
                seq,
                node,
                region,
                mark,
            } => {
                if self.tree.never_completes(seq) {
                    self.terminate(region);
                } else {
                    let values = self.read_all(self.scope.results(node));
                    self.op(region, OpKind::Yield, &values, &[], 0);
                }
                self.undo(mark);
            }
            Frame::EndLoop { node, region, mark } => self.end_loop(node, region, mark),
            Frame::Bind { variable, value } => self.bind(variable, value),
            Frame::EndNode { node, op } => {
                let results: Vec<Value> = self.body.results(op).to_vec();
                for (var, value) in self.scope.results(node).iter().zip(results) {
                    self.bind(self.variable(*var), value);
                }
            }
        }
        Ok(())
    }

    /// Terminates a region whose last op never lets control through.
    fn terminate(&mut self, region: Region) {
        let ended = self
            .body
            .last(region)
            .is_some_and(|op| self.body.kind(op).is_terminator());
        if !ended {
            self.op(region, OpKind::Unreachable, &[], &[], 0);
        }
    }

    fn node(&mut self, node: NodeId, region: Region) -> Result<(), Refusal> {
        let tree = self.tree;
        match tree.node(node) {
            TreeNode::Block { block } => self.block(*block, region),
            TreeNode::Edge { block, slot, .. } => self.bind_edge(*block, *slot),
            TreeNode::Assign {
                selector, value, ..
            } => {
                let ty = self.selector_type(selector.index());
                let value = self.number(ty, u128::from(*value));
                self.bind(self.selector(*selector), value);
            }
            TreeNode::Branch {
                block,
                arms,
                arm_of,
            } => self.branch(node, *block, arms, arm_of, region)?,
            TreeNode::Select {
                selector,
                values,
                arms,
            } => {
                self.select(node, *selector, values, arms, region)?;
            }
            TreeNode::Loop { body, .. } => self.start_loop(node, *body, region)?,
            TreeNode::Never => self.terminate(region),
        }
        Ok(())
    }

    fn block(&mut self, block: usize, region: Region) {
        let source = self.source;
        for inst in &source.blocks[block].insts {
            self.inst(region, inst);
        }
        match &source.blocks[block].end {
            End::Stop(inst) => {
                self.inst(region, inst);
            }
            End::Branch {
                condition: None, ..
            } => {
                let jump = source.blocks[block].terminator;
                let has = |raw| unsafe { gr_has_debug_records(raw) } != 0;
                if self.has_records && !jump.is_null() && has(jump) {
                    self.pending = Some((region, self.records(jump)));
                }
            }
            _ => {}
        }
    }

    /// Walks a CFG edge: all sources of its assignments are read before any target is bound.
    fn bind_edge(&mut self, block: usize, slot: usize) {
        let source = self.source;
        let Some(assigned) = source.blocks[block].edges.get(slot) else {
            unreachable!("every successor of a block has an edge");
        };
        let scope = self.scope;
        let needed = assigned.iter().filter(|(target, _)| scope.is_read(*target));
        let values: SmallVec<[(u32, Value); 8]> = needed
            .map(|(target, from)| (*target, self.value(*from)))
            .collect();
        for (target, value) in values {
            self.bind(target as usize, value);
        }
    }

    // ---- branches --------------------------------------------------------------------------

    /// Pushes the arms of a node on the stack: `arms` are sequences with their regions, in order.
    fn walk_arms(&mut self, node: NodeId, op: Op, arms: &[(SeqId, Region)]) {
        let mark = self.log.len();
        self.stack.push(Frame::EndNode { node, op });
        for &(seq, region) in arms.iter().rev() {
            self.stack.push(Frame::EndArm {
                seq,
                node,
                region,
                mark,
            });
            self.stack.push(Frame::Seq { seq, at: 0, region });
        }
    }

    fn branch(
        &mut self,
        node: NodeId,
        block: usize,
        arms: &[SeqId],
        arm_of: &[usize],
        region: Region,
    ) -> Result<(), Refusal> {
        let source: &Block = &self.source.blocks[block];
        let types = self.types(self.scope.results(node))?;
        match &source.end {
            End::Invoke(inst) => self.invoke(
                node,
                inst,
                [arms[arm_of[0]], arms[arm_of[1]]],
                region,
                &types,
            ),
            End::Branch { .. } if arms.len() == 1 => {
                self.stack.push(Frame::Seq {
                    seq: arms[0],
                    at: 0,
                    region,
                });
            }
            End::Branch {
                condition: Some(condition),
                cases,
            } => {
                let on = self.value(*condition);
                if !cases.is_empty() {
                    self.switch(node, source, on, (cases, arms, arm_of), region, &types);
                } else {
                    let op = self.op(region, OpKind::If, &[on], &types, 2);
                    self.copy_instruction_info(op, source.terminator);
                    let regions = self.body.op_regions(op);
                    let filled = [(arms[arm_of[0]], regions[0]), (arms[arm_of[1]], regions[1])];
                    self.walk_arms(node, op, &filled);
                }
            }
            _ => return Err(Refusal::ControlFlow),
        }
        Ok(())
    }

    fn invoke(
        &mut self,
        node: NodeId,
        inst: &Inst,
        arms: [SeqId; 2],
        region: Region,
        types: &[TypeId],
    ) {
        let operands: SmallVec<[Value; 4]> = inst.operands.iter().map(|o| self.value(*o)).collect();
        let op = self.op(region, inst.kind.clone(), &operands, types, 2);
        self.body.ops[op].flags = inst.flags;
        self.copy_instruction_info(op, inst.raw);
        let regions = [self.body.op_regions(op)[0], self.body.op_regions(op)[1]];
        self.walk_arms(node, op, &[(arms[0], regions[0]), (arms[1], regions[1])]);
        if let Some(number) = inst.result {
            let value = self
                .body
                .add_param(regions[0], self.source.types[number as usize]);
            self.stack.push(Frame::Bind {
                variable: number as usize,
                value,
            });
        }
    }

    /// Emits a switch. If several cases share an arm, a first switch maps the value to the arm's number,
    /// because an op has one region per case.
    fn switch(
        &mut self,
        node: NodeId,
        block: &Block,
        on: Value,
        (cases, arms, arm_of): (&[u128], &[SeqId], &[usize]),
        region: Region,
        types: &[TypeId],
    ) {
        let other = arm_of[0];
        let listed: Vec<(u128, usize)> = cases
            .iter()
            .copied()
            .zip(arm_of[1..].iter().copied())
            .filter(|(_, arm)| *arm != other)
            .collect();
        let shared = listed.len() >= arms.len();
        let (on, listed) = match shared {
            false => (on, listed),
            true => {
                let number = self.arm_number(on, &listed, other, block, region);
                let direct = (0..arms.len()).filter(|arm| *arm != other);
                (number, direct.map(|arm| (arm as u128, arm)).collect())
            }
        };
        let values: Box<[u128]> = listed.iter().map(|(value, _)| *value).collect();
        let op = self.op(
            region,
            OpKind::Switch(values),
            &[on],
            types,
            listed.len() + 1,
        );
        match shared {
            true => self.body.ops[op].loc = self.importer.location(block.terminator),
            false => self.copy_instruction_info(op, block.terminator),
        }
        let order = listed
            .iter()
            .map(|(_, arm)| *arm)
            .chain(std::iter::once(other));
        let filled: Vec<(SeqId, Region)> = order
            .map(|arm| arms[arm])
            .zip(self.body.op_regions(op).iter().copied())
            .collect();
        self.walk_arms(node, op, &filled);
    }

    /// Emits the switch that computes the number of the selected arm.
    fn arm_number(
        &mut self,
        on: Value,
        listed: &[(u128, usize)],
        other: usize,
        block: &Block,
        region: Region,
    ) -> Value {
        let values: Box<[u128]> = listed.iter().map(|(value, _)| *value).collect();
        let op = self.op(
            region,
            OpKind::Switch(values),
            &[on],
            &[self.int],
            listed.len() + 1,
        );
        self.body.ops[op].name = Some(SELECTOR_NAME.into());
        self.copy_instruction_info(op, block.terminator);
        let regions = self.body.op_regions(op).to_vec();
        let order = listed
            .iter()
            .map(|(_, arm)| *arm)
            .chain(std::iter::once(other));
        for (arm, region) in order.zip(regions) {
            let number = self.number(self.int, arm as u128);
            self.op(region, OpKind::Yield, &[number], &[], 0);
        }
        self.body.result(op)
    }

    fn select(
        &mut self,
        node: NodeId,
        selector: SelectorId,
        values: &[u32],
        arms: &[SeqId],
        region: Region,
    ) -> Result<(), Refusal> {
        let types = self.types(self.scope.results(node))?;
        let on = self.read(self.selector(selector));
        let is_bit = self.selector_type(selector.index()) == self.bit;
        if let (true, &[value]) = (is_bit, values) {
            let op = self.op(region, OpKind::If, &[on], &types, 2);
            let regions = self.body.op_regions(op);
            let (yes, no) = if value == 1 {
                (arms[0], arms[1])
            } else {
                (arms[1], arms[0])
            };
            let filled = [(yes, regions[0]), (no, regions[1])];
            self.walk_arms(node, op, &filled);
            return Ok(());
        }
        let cases: Box<[u128]> = values.iter().map(|v| u128::from(*v)).collect();
        let op = self.op(region, OpKind::Switch(cases), &[on], &types, arms.len());
        let filled: Vec<(SeqId, Region)> = arms
            .iter()
            .copied()
            .zip(self.body.op_regions(op).iter().copied())
            .collect();
        self.walk_arms(node, op, &filled);
        Ok(())
    }

    // ---- loops -----------------------------------------------------------------------------

    fn start_loop(&mut self, node: NodeId, body: SeqId, region: Region) -> Result<(), Refusal> {
        let carried = self.scope.carried(node);
        let initial = self.read_all(carried);
        let types = self.types(self.scope.results(node))?;
        self.types(carried)?;
        let op = self.op(region, OpKind::Loop { trip_max: None }, &initial, &types, 1);
        let inner = self.body.op_regions(op)[0];
        let mark = self.log.len();
        for var in carried {
            let variable = self.variable(*var);
            let param = self.body.add_param(inner, self.type_of(variable));
            self.bind(variable, param);
        }
        self.copy_latch_info(op, node);
        self.stack.push(Frame::EndNode { node, op });
        self.stack.push(Frame::EndLoop {
            node,
            region: inner,
            mark,
        });
        self.stack.push(Frame::Seq {
            seq: body,
            at: 0,
            region: inner,
        });
        Ok(())
    }

    /// Copies the location and the loop metadata of a loop's latch to its op.
    fn copy_latch_info(&mut self, op: Op, node: NodeId) {
        let latch = match self.tree.node(node) {
            TreeNode::Loop {
                again: RepeatCondition::Block { block, .. },
                ..
            } => Some(*block),
            _ => self.latches.get(&node).copied(),
        };
        let Some(latch) = latch else {
            // Not an error: no block repeats the loop.
            return;
        };
        let terminator = self.source.blocks[latch].terminator;
        if terminator.is_null() {
            return;
        }
        self.body.ops[op].loc = self.importer.location(terminator);
        if unsafe { gr_is_marked(terminator) } != 0 {
            self.body.ops[op].flags = gradus_ir::Flags::HAS_PARALLEL_INTRINSIC;
        }
        if let Some(id) = self.importer.meta(terminator) {
            let mut host = self.importer.unit.meta(id).host.clone();
            host.retain(|(kind, _)| kind == "llvm.loop");
            self.body.ops[op].meta = self.importer.unit.intern_meta(Meta {
                host,
                ..Meta::default()
            });
        }
    }

    fn end_loop(&mut self, node: NodeId, region: Region, mark: usize) {
        let TreeNode::Loop { body, again } = self.tree.node(node) else {
            unreachable!("only loops end with a loop exit");
        };
        if self.tree.never_completes(*body) {
            self.terminate(region);
            self.undo(mark);
            return;
        }
        let (scope, source) = (self.scope, self.source);
        let (again, results) = match *again {
            RepeatCondition::Forever => {
                let again = self.number(self.bit, 1);
                (again, self.read_all(scope.results(node)))
            }
            RepeatCondition::Selector { selector, value } => {
                let again = self.selector_is(selector, value, region);
                (again, self.read_all(scope.results(node)))
            }
            RepeatCondition::Block { block, slot } => {
                let condition = match &source.blocks[block].end {
                    End::Branch {
                        condition: Some(c), ..
                    } => self.value(*c),
                    _ => self.number(self.bit, 1),
                };
                let results = self.read_all(scope.results(node));
                self.attach_latch_records(region, source.blocks[block].terminator);
                self.bind_edge(block, slot);
                let again = if slot == 0 {
                    condition
                } else {
                    self.negated(condition, region)
                };
                (again, results)
            }
        };
        let mut operands = vec![again];
        operands.extend(self.read_all(scope.carried(node)));
        operands.extend(results);
        self.op(region, OpKind::Repeat, &operands, &[], 0);
        self.undo(mark);
    }

    /// Attaches the debug records in front of a latch to the loop's op, whose back branch is exported in
    /// place of the latch.
    fn attach_latch_records(&mut self, region: Region, latch: LLVMValueRef) {
        let owner = self.body.owner(region);
        if let Some(op) =
            owner.filter(|_| self.has_records && unsafe { gr_has_debug_records(latch) } != 0)
        {
            let records = self.records(latch);
            self.add_records(op, records);
        }
    }

    fn selector_is(&mut self, selector: SelectorId, value: u32, region: Region) -> Value {
        let ty = self.selector_type(selector.index());
        let on = self.read(self.selector(selector));
        match (ty == self.bit, value) {
            (true, 1) => on,
            (true, _) => self.negated(on, region),
            _ => {
                let value = self.number(ty, u128::from(value));
                let kind = OpKind::ICmp(IntPredicate::Eq);
                let op = self.op(region, kind, &[on, value], &[self.bit], 0);
                self.body.ops[op].name = Some(SELECTOR_NAME.into());
                self.body.result(op)
            }
        }
    }

    fn negated(&mut self, condition: Value, region: Region) -> Value {
        let one = self.number(self.bit, 1);
        let op = self.op(
            region,
            OpKind::Binary(BinaryOp::Xor),
            &[condition, one],
            &[self.bit],
            0,
        );
        self.body.ops[op].name = Some(SELECTOR_NAME.into());
        self.body.result(op)
    }
}
