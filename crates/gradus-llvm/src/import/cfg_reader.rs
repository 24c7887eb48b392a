//! CFG reader: numbered values, decoded instructions, phi assignments per edge, and the control-flow graph
//! for restructuring.
//!
//! Every invoke gets a private landing pad: a block with a copy of the landing pad that jumps to the shared
//! handler; the exception becomes an additional assignment of the edge. The returned value is an additional
//! variable, assigned on the returning edges.
use super::Importer;
use super::instructions::Operands;
use super::refusal::Refusal;
use crate::host::ffi::operands_of;
use crate::host::handle_map::PointerMap;
use crate::restructure::scope::{BlockFlow, Flow, Scope, scope};
use crate::restructure::{Cfg, Kind, Node, Tree};
use gradus_ir::{ConstId, Flags, OpKind, TypeId};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTailCallKind, LLVMTypeKind};
use smallvec::SmallVec;
use std::collections::HashMap;

/// An operand: a value of the function by its number, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ref {
    /// An argument, an instruction's result or the returned value.
    Local(u32),
    /// A constant.
    Const(ConstId),
}

/// An instruction that becomes an op.
#[derive(Clone)]
pub(super) struct Inst {
    pub(super) raw: LLVMValueRef,
    pub(super) kind: OpKind,
    pub(super) flags: Flags,
    pub(super) operands: SmallVec<[Ref; 3]>,
    /// The number of its result; none for `void`.
    pub(super) result: Option<u32>,
}

/// The terminator of a block.
pub(super) enum End {
    /// `br` or `switch`, conditional or not, with the case values of successors 1….
    Branch {
        condition: Option<Ref>,
        cases: Vec<u128>,
    },
    /// A call that may throw.
    Invoke(Box<Inst>),
    /// A return; the value is assigned on the edge.
    Return,
    /// An op that ends the function.
    Stop(Box<Inst>),
}

/// A block: an LLVM block, or the private landing pad of an invoke.
pub(super) struct Block {
    pub(super) insts: Vec<Inst>,
    pub(super) end: End,
    /// LLVM's terminator; null for private landing pads.
    pub(super) terminator: LLVMValueRef,
    /// The phi assignments of each edge, by successor. Parallel edges to one block share the assignments of
    /// the first.
    pub(super) edges: Vec<Vec<(u32, Ref)>>,
}

/// A decoded function.
pub(super) struct Source {
    pub(super) blocks: Vec<Block>,
    pub(super) cfg: Cfg,
    /// The type of each value, by number; arguments come first.
    pub(super) types: Vec<TypeId>,
    /// The number of the returned value, if the function returns a value.
    pub(super) returned: Option<u32>,
    /// The number of LLVM instructions.
    pub(super) size: usize,
    /// The number of each LLVM value, for debug records.
    pub(super) numbers: PointerMap<Ref>,
}

struct Reader<'i, 'h> {
    importer: &'i mut Importer<'h>,
    numbers: PointerMap<Ref>,
    block_numbers: PointerMap<usize>,
    types: Vec<TypeId>,
    /// Phi assignments by edge: from, to.
    assigned: HashMap<(usize, usize), Vec<(u32, Ref)>>,
}

/// Reads a function.
///
/// # Errors
/// A construct that cannot be restructured.
pub(super) fn read(importer: &mut Importer<'_>, function: LLVMValueRef) -> Result<Source, Refusal> {
    let mut reader = Reader {
        importer,
        numbers: PointerMap::default(),
        block_numbers: PointerMap::default(),
        types: Vec::new(),
        assigned: HashMap::new(),
    };
    let raw_blocks = reader.number(function)?;
    let returned = reader.returned(function);
    let mut source = Source {
        blocks: Vec::with_capacity(raw_blocks.len()),
        cfg: Cfg {
            nodes: Vec::with_capacity(raw_blocks.len()),
            entry: 0,
        },
        types: Vec::new(),
        returned,
        size: 0,
        numbers: PointerMap::default(),
    };
    for block in &raw_blocks {
        reader.block(*block, &mut source)?;
    }
    for (number, block) in raw_blocks.iter().enumerate() {
        reader.phis(number, *block);
    }
    for number in 0..raw_blocks.len() {
        reader.connect(number, &mut source)?;
    }
    source.types = reader.types;
    source.numbers = reader.numbers;
    Ok(source)
}

impl Reader<'_, '_> {
    /// Numbers arguments, blocks and results.
    fn number(&mut self, function: LLVMValueRef) -> Result<Vec<LLVMBasicBlockRef>, Refusal> {
        let mut blocks = Vec::new();
        unsafe {
            for i in 0..LLVMCountParams(function) {
                self.define(LLVMGetParam(function, i));
            }
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                if has_address(block) {
                    return Err(Refusal::BlockAddress);
                }
                self.block_numbers.insert(block.cast(), blocks.len());
                blocks.push(block);
                let mut inst = LLVMGetFirstInstruction(block);
                while !inst.is_null() {
                    if !is_void(inst) {
                        self.define(inst);
                    }
                    inst = LLVMGetNextInstruction(inst);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
        Ok(blocks)
    }

    fn define(&mut self, value: LLVMValueRef) -> u32 {
        let ty = self.importer.ty(unsafe { LLVMTypeOf(value) });
        let number = self.fresh(ty);
        self.numbers.insert(value.cast(), Ref::Local(number));
        number
    }

    fn fresh(&mut self, ty: TypeId) -> u32 {
        self.types.push(ty);
        self.types.len() as u32 - 1
    }

    fn returned(&mut self, function: LLVMValueRef) -> Option<u32> {
        let t = unsafe { LLVMGetReturnType(LLVMGlobalGetValueType(function)) };
        if unsafe { LLVMGetTypeKind(t) } == LLVMTypeKind::LLVMVoidTypeKind {
            return None;
        }
        let ty = self.importer.ty(t);
        Some(self.fresh(ty))
    }

    fn reference(&mut self, value: LLVMValueRef) -> Ref {
        if let Some(known) = self.numbers.get(&value.cast()) {
            return *known;
        }
        let made = Ref::Const(self.importer.constant(value));
        self.numbers.insert(value.cast(), made);
        made
    }

    fn local(&self, value: LLVMValueRef) -> Option<u32> {
        match self.numbers.get(&value.cast()) {
            Some(Ref::Local(n)) => Some(*n),
            _ => None,
        }
    }

    fn inst(&mut self, raw: LLVMValueRef, kind: OpKind, flags: Flags, values: Operands) -> Inst {
        let operands = values.into_iter().map(|v| self.reference(v)).collect();
        Inst {
            raw,
            kind,
            flags,
            operands,
            result: self.local(raw),
        }
    }

    /// Decodes a block's instructions; its edges follow after all blocks are numbered.
    fn block(&mut self, block: LLVMBasicBlockRef, source: &mut Source) -> Result<(), Refusal> {
        let mut insts = Vec::new();
        let mut must_tail = false;
        let mut raw = unsafe { LLVMGetFirstInstruction(block) };
        let terminator = unsafe { LLVMGetBasicBlockTerminator(block) };
        while !raw.is_null() && raw != terminator {
            source.size += 1;
            let opcode = unsafe { LLVMGetInstructionOpcode(raw) };
            let is_pad = opcode == LLVMOpcode::LLVMLandingPad;
            if opcode != LLVMOpcode::LLVMPHI && !is_pad {
                self.importer.check(raw, opcode)?;
                must_tail |= opcode == LLVMOpcode::LLVMCall && is_must_tail(raw);
                let (kind, flags, values) = self.importer.instruction(raw);
                insts.push(self.inst(raw, kind, flags, values));
            }
            raw = unsafe { LLVMGetNextInstruction(raw) };
        }
        source.size += 1;
        let (kind, end) = self.end(terminator, must_tail)?;
        let copyable = kind.ends() && insts.is_empty();
        source.cfg.nodes.push(Node {
            copyable,
            ..Node::new(kind, Vec::new())
        });
        source.blocks.push(Block {
            insts,
            end,
            terminator,
            edges: Vec::new(),
        });
        Ok(())
    }

    fn end(&mut self, t: LLVMValueRef, must_tail: bool) -> Result<(Kind, End), Refusal> {
        use LLVMOpcode::*;
        let stop = |kind| (kind, Flags::NONE);
        Ok(match unsafe { LLVMGetInstructionOpcode(t) } {
            LLVMBr if unsafe { LLVMIsConditional(t) } != 0 => {
                let condition = Some(self.reference(unsafe { LLVMGetCondition(t) }));
                (
                    Kind::Branch,
                    End::Branch {
                        condition,
                        cases: Vec::new(),
                    },
                )
            }
            LLVMBr => (
                Kind::Jump,
                End::Branch {
                    condition: None,
                    cases: Vec::new(),
                },
            ),
            LLVMSwitch => {
                let condition = Some(self.reference(unsafe { LLVMGetOperand(t, 0) }));
                let count = unsafe { LLVMGetNumSuccessors(t) };
                let case = |i| super::constants::integer(unsafe { LLVMGetSwitchCaseValue(t, i) });
                let cases: Option<Vec<u128>> = (1..count).map(case).collect();
                let cases = cases.ok_or(Refusal::WideSwitch)?;
                (Kind::Switch, End::Branch { condition, cases })
            }
            LLVMInvoke => {
                self.importer.check(t, LLVMInvoke)?;
                let (kind, flags, values) = self.importer.call(t);
                (
                    Kind::Invoke,
                    End::Invoke(Box::new(self.inst(t, kind, flags, values))),
                )
            }
            LLVMRet if must_tail => {
                let (kind, flags) = stop(OpKind::Return);
                let inst = self.inst(t, kind, flags, operands_of(t));
                (Kind::MustTailReturn, End::Stop(Box::new(inst)))
            }
            LLVMRet => (Kind::Return, End::Return),
            LLVMUnreachable => {
                let (kind, flags) = stop(OpKind::Unreachable);
                (
                    Kind::Unreachable,
                    End::Stop(Box::new(self.inst(t, kind, flags, Operands::new()))),
                )
            }
            LLVMResume => {
                let (kind, flags) = stop(OpKind::Resume);
                (
                    Kind::Resume,
                    End::Stop(Box::new(self.inst(t, kind, flags, operands_of(t)))),
                )
            }
            LLVMIndirectBr => return Err(Refusal::IndirectBranch),
            LLVMCallBr => return Err(Refusal::AsmGoto),
            _ => return Err(Refusal::Funclet),
        })
    }

    /// Adds the successors of a block and the assignments of its edges.
    fn connect(&mut self, number: usize, source: &mut Source) -> Result<(), Refusal> {
        let t = source.blocks[number].terminator;
        if let End::Return = source.blocks[number].end {
            let assigned = source
                .returned
                .map(|r| (r, self.reference(unsafe { LLVMGetOperand(t, 0) })));
            source.blocks[number]
                .edges
                .push(assigned.into_iter().collect());
            return Ok(());
        }
        let is_invoke = matches!(source.blocks[number].end, End::Invoke(_));
        for slot in 0..unsafe { LLVMGetNumSuccessors(t) } {
            let target = unsafe { LLVMGetSuccessor(t, slot) };
            let mut to = self.block_numbers[&target.cast()];
            let mut assigned = self.assigned.remove(&(number, to)).unwrap_or_default();
            if is_invoke && slot == 1 {
                let (pad, exception) = self.add_private_pad(target, to, assigned, source)?;
                source.blocks[pad].edges[0].extend(exception);
                assigned = Vec::new();
                to = pad;
            }
            source.blocks[number].edges.push(assigned);
            source.cfg.nodes[number].successors.push(to);
        }
        Ok(())
    }

    /// Reads the phis of a block into the assignments of its incoming edges.
    fn phis(&mut self, number: usize, block: LLVMBasicBlockRef) {
        let mut phi = unsafe { LLVMGetFirstInstruction(block) };
        while !phi.is_null() && unsafe { LLVMGetInstructionOpcode(phi) } == LLVMOpcode::LLVMPHI {
            for i in 0..unsafe { LLVMCountIncoming(phi) } {
                let from = self
                    .block_numbers
                    .get(&unsafe { LLVMGetIncomingBlock(phi, i) }.cast());
                let (Some(&from), Some(assigned)) = (from, self.local(phi)) else {
                    continue;
                };
                let value = self.reference(unsafe { LLVMGetIncomingValue(phi, i) });
                let list = self.assigned.entry((from, number)).or_default();
                if list.last().is_none_or(|(last, _)| *last != assigned) {
                    list.push((assigned, value));
                }
            }
            phi = unsafe { LLVMGetNextInstruction(phi) };
        }
    }

    /// Adds a private landing pad that jumps to the handler `target`; returns its block and the assignment
    /// of the exception.
    #[allow(clippy::type_complexity)]
    fn add_private_pad(
        &mut self,
        target: LLVMBasicBlockRef,
        to: usize,
        assigned: Vec<(u32, Ref)>,
        source: &mut Source,
    ) -> Result<(usize, Option<(u32, Ref)>), Refusal> {
        let mut raw = unsafe { LLVMGetFirstInstruction(target) };
        while !raw.is_null() && unsafe { LLVMGetInstructionOpcode(raw) } == LLVMOpcode::LLVMPHI {
            raw = unsafe { LLVMGetNextInstruction(raw) };
        }
        if raw.is_null() || unsafe { LLVMGetInstructionOpcode(raw) } != LLVMOpcode::LLVMLandingPad {
            return Err(Refusal::Funclet);
        }
        let (kind, flags, _) = self.importer.instruction(raw);
        let shared = self.local(raw);
        let own = shared.map(|n| self.fresh(self.types[n as usize]));
        let inst = Inst {
            raw,
            kind,
            flags,
            operands: SmallVec::new(),
            result: own,
        };
        let pad = source.blocks.len();
        source.blocks.push(Block {
            insts: vec![inst],
            end: End::Branch {
                condition: None,
                cases: Vec::new(),
            },
            terminator: std::ptr::null_mut(),
            edges: vec![assigned],
        });
        source.cfg.nodes.push(Node {
            pad: true,
            ..Node::new(Kind::Jump, vec![to])
        });
        Ok((pad, shared.zip(own).map(|(s, o)| (s, Ref::Local(o)))))
    }
}

fn is_void(inst: LLVMValueRef) -> bool {
    unsafe { LLVMGetTypeKind(LLVMTypeOf(inst)) == LLVMTypeKind::LLVMVoidTypeKind }
}

fn is_must_tail(call: LLVMValueRef) -> bool {
    unsafe { LLVMGetTailCallKind(call) == LLVMTailCallKind::LLVMTailCallKindMustTail }
}

/// Returns whether a block's address is taken.
fn has_address(block: LLVMBasicBlockRef) -> bool {
    unsafe extern "C" {
        fn gr_has_block_address(block: LLVMBasicBlockRef) -> i32;
    }
    unsafe { gr_has_block_address(block) != 0 }
}

impl Source {
    /// Computes the results of every branch and the carried variables of every loop in the tree.
    pub(super) fn scope(&self, tree: &Tree) -> Scope {
        let flow = Flow {
            values: self.types.len(),
            blocks: self.blocks.iter().map(Block::flow).collect(),
            live_out: self.returned.into_iter().collect(),
        };
        scope(tree, &flow)
    }
}

impl Block {
    fn flow(&self) -> BlockFlow {
        let mut flow = BlockFlow::default();
        for inst in &self.insts {
            flow.defines.extend(inst.result);
            flow.reads.extend(inst.locals());
        }
        match &self.end {
            End::Branch {
                condition: Some(Ref::Local(n)),
                ..
            } => flow.branch_reads.push(*n),
            End::Invoke(inst) => {
                flow.branch_reads.extend(inst.locals());
                flow.branch_defines.extend(inst.result);
            }
            End::Stop(inst) => flow.reads.extend(inst.locals()),
            _ => {}
        }
        let local = |r: Ref| match r {
            Ref::Local(n) => Some(n),
            Ref::Const(_) => None,
        };
        let edge = |e: &Vec<(u32, Ref)>| e.iter().map(|(to, from)| (*to, local(*from))).collect();
        flow.edges = self.edges.iter().map(edge).collect();
        flow
    }
}

impl Inst {
    fn locals(&self) -> impl Iterator<Item = u32> + '_ {
        self.operands.iter().filter_map(|r| match r {
            Ref::Local(n) => Some(*n),
            Ref::Const(_) => None,
        })
    }
}
