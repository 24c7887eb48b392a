//! The bytecode decoder for parallel ops, with serial semantics.

use crate::bytecode::code::{Instr, ParForInfo, Reg, StrandEvent};
use crate::bytecode::decode::{Decoder, NotExecutable};
use gradus_ir::{BarrierScope, Op, OpKind, ReduceOp, SpmdKind};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Decoder<'_> {
    /// Emits the entry instructions of a parallel op.
    pub(crate) fn parallel(&mut self, op: Op) -> Result<(), NotExecutable> {
        match self.body.kind(op) {
            OpKind::Barrier(scope) => {
                let grid = *scope == BarrierScope::Grid;
                self.emit(Instr::Barrier { grid });
                Ok(())
            }
            OpKind::Single { .. } => {
                let others = self.operand_regs(self.body.operands(op))?;
                let results = self.results(op);
                self.moves(&results, &others);
                let entry = self.emit(Instr::Single { skip: 0 });
                self.open_op(op, entry);
                self.add_exit(entry);
                Ok(())
            }
            OpKind::ShareFor {
                schedule, chunked, ..
            } => {
                let count = self.operand(op, 0)?;
                let chunk = match chunked {
                    true => Some(self.operand(op, 1)?),
                    false => None,
                };
                let index = self.params(self.body.op_regions(op)[0])[0];
                let state = self.fresh();
                for _ in 0..3 {
                    self.fresh();
                }
                self.emit(Instr::ShareStart {
                    schedule: *schedule,
                    count,
                    chunk,
                    state,
                });
                let entry = self.emit(Instr::ShareTest {
                    state,
                    index,
                    exit: 0,
                });
                self.open_op(op, entry);
                self.add_exit(entry);
                self.set_head(entry);
                self.set_scratch(state);
                Ok(())
            }
            OpKind::Spmd { kind, .. } => {
                let team = *kind == SpmdKind::Team;
                let extents = self.operand_regs(self.body.operands(op))?;
                let params = self.params(self.body.op_regions(op)[0]);
                let entry = self.emit(Instr::Spmd {
                    team,
                    extents: extents.into(),
                    params: params.into(),
                    end: 0,
                });
                self.open_op(op, entry);
                self.add_exit(entry);
                Ok(())
            }
            _ => self.par_for(op),
        }
    }

    /// Emits the event of a scope, a task, a critical region or a sync.
    pub(crate) fn emit_strand_event(&mut self, op: Op) -> Result<(), NotExecutable> {
        let event = match self.body.kind(op) {
            OpKind::Scope => StrandEvent::Scope,
            OpKind::Spawn {
                has_condition: when,
                has_final: serial,
            } => {
                let operands = self.operand_regs(self.body.operands(op))?;
                StrandEvent::Task {
                    condition: operands.first().copied().filter(|_| *when),
                    serial: operands.last().copied().filter(|_| *serial),
                }
            }
            OpKind::Critical(name) => StrandEvent::Lock(lock_number(name)),
            _ => {
                self.emit(Instr::Strands(StrandEvent::Sync));
                return Ok(());
            }
        };
        let entry = self.emit(Instr::Strands(event));
        self.open_op(op, entry);
        Ok(())
    }

    /// Emits the event at the end of a scope, task or critical region.
    pub(crate) fn emit_strand_end(&mut self, owner: Op) {
        let event = match self.body.kind(owner) {
            OpKind::Scope => StrandEvent::ScopeEnd,
            OpKind::Spawn { .. } => StrandEvent::TaskEnd,
            OpKind::Critical(_) => StrandEvent::Unlock,
            _ => return,
        };
        self.emit(Instr::Strands(event));
    }

    fn par_for(&mut self, op: Op) -> Result<(), NotExecutable> {
        let operands = self.operand_regs(self.body.operands(op))?;
        let indices = self.params(self.body.op_regions(op)[0]);
        let (extents, initial) = operands.split_at(indices.len());
        let results = self.results(op);
        self.moves(&results, initial);
        let (counter, total) = (self.fresh(), self.fresh());
        let info = || {
            Box::new(ParForInfo {
                extents: extents.into(),
                indices: indices.clone().into(),
                counter,
                total,
            })
        };
        self.emit(Instr::ParStart(info()));
        let entry = self.emit(Instr::ParIndex {
            info: info(),
            exit: 0,
        });
        self.open_op(op, entry);
        self.add_exit(entry);
        self.set_head(entry);
        Ok(())
    }

    /// Ends an iteration of a `par.for` or a combiner region: combines the contributions, enters the
    /// following combiner regions, and after the last region jumps to the next iteration.
    pub(crate) fn end_iteration(
        &mut self,
        end: Op,
        op: Op,
        values: &[Reg],
        head: u32,
    ) -> Result<(), NotExecutable> {
        let OpKind::ParFor {
            reductions, dims, ..
        } = self.body.kind(op)
        else {
            unreachable!("only parallel loops have reductions");
        };
        let (totals, regions) = (self.results(op), self.body.op_regions(op));
        let custom: Vec<usize> = (0..reductions.len())
            .filter(|i| reductions[*i] == ReduceOp::Custom)
            .collect();
        let here = regions
            .iter()
            .position(|r| self.body.parent(end) == Some(*r));
        match here.and_then(|n| n.checked_sub(1)) {
            Some(n) => self.moves(&[totals[custom[n]]], values),
            None => {
                for (i, &reduction) in reductions.iter().enumerate() {
                    if reduction == ReduceOp::Custom {
                        continue;
                    }
                    let (num, lanes) = self.operand_num(op, *dims as usize + i)?;
                    self.emit(Instr::Combine {
                        op: reduction,
                        num,
                        lanes,
                        total: totals[i],
                        value: values[i],
                    });
                }
                for (&region, &i) in std::iter::zip(&regions[1..], &custom) {
                    let params = self.params(region);
                    self.moves(&params, &[totals[i], values[i]]);
                }
            }
        }
        if regions.last().copied() == self.body.parent(end) {
            self.emit(Instr::Jump(head));
        }
        Ok(())
    }
}

/// Returns the hash of a lock's name, equal in all functions.
fn lock_number(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
