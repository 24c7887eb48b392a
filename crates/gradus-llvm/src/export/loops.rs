//! Exports loops in rotated form: the body, then the test. A `for` gets a guard in front and a counting
//! index.
//!
//! A trip count `cond ? n : 0` with `n` nonzero under `cond` uses `cond` as the guard (`zero_trip_guard`). Inside the
//! loop the trip count is `n`; after the loop it is a phi of zero and `n`, as in LLVM's own loops. An index
//! that is used only in sums with a single loop-invariant value starts at that value (`induction_start`).
use super::structure::{Frame, Structure, Values};
use crate::export::induction_start::{End as Last, Start, match_index_start};
use crate::export::jump_threading::End;
use crate::export::zero_trip_guard::{GuardedTripCount, match_guarded_trip_count};
use crate::host::ffi::*;
use gradus_ir::{ConstKind, Diagnostic, Entity, Flags, Op, OpKind, Type, Value};
use llvm_sys::LLVMIntPredicate;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ptr::null_mut;

/// A loop whose body is being built.
pub(super) struct OpenLoop {
    pub(super) header: LLVMBasicBlockRef,
    /// The phi of each carried value; null if the value never changes.
    pub(super) phis: Vec<LLVMValueRef>,
    /// Set for a `for` only.
    counted: Option<Counted>,
}

struct Counted {
    index: LLVMValueRef,
    /// The index value after the last iteration, and the no-wrap flags of the increment.
    end: LLVMValueRef,
    step: Flags,
    exit: LLVMBasicBlockRef,
    guard: Option<LLVMBasicBlockRef>,
    /// The LLVM value of the trip-count operand in front of the loop, if the operand maps to a guarded
    /// count inside.
    trips: Option<LLVMValueRef>,
}

impl Structure<'_, '_, '_> {
    /// Enters a loop header and creates its phis. A carried value needs no phi if the back edge carries the
    /// parameter itself or the initial value. `next` are the operands of the terminator for the back edge.
    fn header(&mut self, params: &[Value], initial: &[Value], next: &[Value]) -> OpenLoop {
        let before = self.current_block();
        let header = self.block();
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
        OpenLoop {
            header,
            phis,
            counted: None,
        }
    }

    pub(super) fn loop_(&mut self, op: Op) {
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
        let before = self.current_block();
        let round = self.header(params, &initial, &next);
        self.enter(before);
        let made = unsafe { LLVMBuildBr(self.exporter.builder, round.header) };
        self.set_location(made, body.ops[op].loc);
        self.enter(round.header);
        self.rounds.insert(op, round);
        self.stack.push(Frame::After(op));
        self.stack.push(Frame::Ops(body.first(region)));
    }

    pub(super) fn repeat(&mut self, op: Op) -> Result<(), Diagnostic> {
        let body = self.body;
        let owner = body.parent_op(op);
        let (owner, round) = owner
            .and_then(|o| self.rounds.remove(&o).map(|r| (o, r)))
            .ok_or_else(|| self.exporter.broken_unit("a `repeat` outside of all loops"))?;
        let (again, inverted) = self.condition(body.operand(op, 0));
        self.branch_at_bottom(owner, round, op, again, inverted);
        self.skip_rest();
        Ok(())
    }

    /// Builds the branch at the bottom of a loop, in the builder's present block.
    pub(super) fn branch_at_bottom(
        &mut self,
        owner: Op,
        round: OpenLoop,
        repeat: Op,
        again: LLVMValueRef,
        inverted: bool,
    ) {
        let values = self.operands(repeat);
        let carried = round.phis.len();
        self.add_backedge_values(&round, &values[1..=carried]);
        let builder = self.exporter.builder;
        if !inverted && unsafe { is_true(again) } {
            let made = unsafe { LLVMBuildBr(builder, round.header) };
            return self.describe(owner, made);
        }
        let exit = self.block();
        let (yes, no) = if inverted {
            (exit, round.header)
        } else {
            (round.header, exit)
        };
        let made = unsafe { LLVMBuildCondBr(builder, again, yes, no) };
        self.describe(owner, made);
        let values = values[1 + carried..].iter().copied().collect();
        self.ends.entry(owner).or_default().push(End {
            block: exit,
            values,
        });
    }

    /// Adds the values of the back edge to the header's phis.
    pub(super) fn add_backedge_values(&self, round: &OpenLoop, next: &[LLVMValueRef]) {
        for (phi, value) in round
            .phis
            .iter()
            .zip(next)
            .filter(|(phi, _)| !phi.is_null())
        {
            let (mut value, mut from) = (*value, self.current_block());
            unsafe { LLVMAddIncoming(*phi, &mut value, &mut from, 1) };
        }
    }

    pub(super) fn for_(&mut self, op: Op) {
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
        let before = self.current_block();
        let mut round = self.header(&params[1..], &initial, &next);
        let always = matches!(
            body.as_const(trips).map(|c| &self.exporter.unit.consts.get(c).kind),
            Some(ConstKind::Int(n)) if *n > 0
        );
        let index = self.phi(params[0]);
        let exit = self.block();
        let guard = (!always).then_some(before);
        let tested = match_guarded_trip_count(self.exporter.unit, body, op);
        let whole = tested.as_ref().map(|_| self.get(trips));
        let begins = match_index_start(self.exporter.unit, body, op, tested.as_ref());
        let (end, step) = unsafe {
            let count = match &tested {
                Some(GuardedTripCount { count, .. }) => self.get(*count),
                None => self.get(trips),
            };
            let zero = LLVMConstNull(LLVMTypeOf(count));
            let mut first = begins.as_ref().map_or(zero, |start| self.get(start.from));
            let mut from = before;
            LLVMAddIncoming(index, &mut first, &mut from, 1);
            self.enter(before);
            let (end, step) = match &begins {
                Some(start) => (self.emit_end_index(start, count), start.flags),
                None => (count, self.index_flags(op)),
            };
            let made = match tested {
                _ if always => LLVMBuildBr(builder, round.header),
                Some(GuardedTripCount { when, holds, .. }) => {
                    let (yes, no) = match holds {
                        true => (round.header, exit),
                        false => (exit, round.header),
                    };
                    LLVMBuildCondBr(builder, self.get(when), yes, no)
                }
                None => {
                    let some =
                        LLVMBuildICmp(builder, LLVMIntPredicate::LLVMIntNE, count, zero, NO_NAME);
                    LLVMBuildCondBr(builder, some, round.header, exit)
                }
            };
            self.set_location(made, body.ops[op].loc);
            self.values[trips.index()] = count;
            (end, step)
        };
        round.counted = Some(Counted {
            index,
            end,
            step,
            exit,
            guard,
            trips: whole,
        });
        self.open_group(op);
        self.values[params[0].index()] = index;
        for sum in begins.into_iter().flat_map(|start| start.sums) {
            self.values[body.result(sum).index()] = index;
            self.counted.insert(sum);
        }
        self.enter(round.header);
        self.rounds.insert(op, round);
        self.stack.push(Frame::After(op));
        self.stack.push(Frame::Ops(body.first(region)));
    }

    /// Builds the bottom of a `for`: increment, test and exit.
    pub(super) fn finish_for(&mut self, owner: Op, end: Op) {
        let Some((round, counted)) = self.remove_counted(owner) else {
            unreachable!("a counted loop ends exactly once, after its start");
        };
        let values = self.operands(end);
        let latch = self.current_block();
        self.add_backedge_values(&round, &values);
        let count = self.get(self.body.operand(owner, 0));
        let builder = self.exporter.builder;
        unsafe {
            let one = LLVMConstInt(LLVMTypeOf(count), 1, 0);
            let mut next = LLVMBuildAdd(builder, counted.index, one, NO_NAME);
            LLVMSetNUW(next, counted.step.has(Flags::NUW).into());
            LLVMSetNSW(next, counted.step.has(Flags::NSW).into());
            let mut from = latch;
            LLVMAddIncoming(counted.index, &mut next, &mut from, 1);
            let done = LLVMBuildICmp(
                builder,
                LLVMIntPredicate::LLVMIntEQ,
                next,
                counted.end,
                NO_NAME,
            );
            let made = LLVMBuildCondBr(builder, done, counted.exit, round.header);
            self.describe(owner, made);
            self.close_group(owner, Some(made));
            self.set_scalar(owner, made);
            self.set_rolled(owner, made);
            self.set_marked(owner, made);
            self.align_short_loop(owner, made);
        }
        self.enter_at_end(counted.exit);
        if let Some((guard, _)) = counted.guard.zip(counted.trips) {
            let trips = self.body.operand(owner, 0);
            let phi = self.phi(trips);
            let zero = unsafe { LLVMConstNull(LLVMTypeOf(count)) };
            let (mut values, mut blocks) = ([zero, count], [guard, latch]);
            unsafe { LLVMAddIncoming(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), 2) };
            self.values[trips.index()] = phi;
        }
        let mut given = Values::new();
        for (i, result) in self.body.results(owner).iter().enumerate() {
            let start = self.get(self.body.operand(owner, i + 1));
            given.push(match counted.guard {
                Some(guard) if start != values[i] => {
                    let phi = self.phi(*result);
                    let (mut values, mut blocks) = ([start, values[i]], [guard, latch]);
                    unsafe { LLVMAddIncoming(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), 2) };
                    phi
                }
                _ => values[i],
            });
        }
        self.ends.insert(
            owner,
            vec![End {
                block: counted.exit,
                values: given,
            }],
        );
    }

    fn remove_counted(&mut self, owner: Op) -> Option<(OpenLoop, Counted)> {
        let mut round = self.rounds.remove(&owner)?;
        let counted = round.counted.take()?;
        Some((round, counted))
    }

    /// Exits a `for` whose body never reaches its end: only the guard leads to the exit.
    pub(super) fn exit_unfinished_for(&mut self, op: Op) {
        self.close_group(op, None);
        let Some((_, counted)) = self.remove_counted(op) else {
            // Not an error: the op is no counted loop, or its body reached its end.
            return;
        };
        if counted.guard.is_none() {
            unsafe { LLVMDeleteBasicBlock(counted.exit) };
            return;
        }
        if let Some(trips) = counted.trips {
            self.values[self.body.operand(op, 0).index()] = trips;
        }
        let values = self
            .body
            .operands(op)
            .skip(1)
            .map(|v| self.get(v))
            .collect();
        self.ends.insert(
            op,
            vec![End {
                block: counted.exit,
                values,
            }],
        );
    }

    /// Emits the index value after the last iteration, at the builder's position.
    fn emit_end_index(&self, start: &Start, count: LLVMValueRef) -> LLVMValueRef {
        let builder = self.exporter.builder;
        match start.end {
            Last::Is(to) => self.get(to),
            Last::Extended(to) => unsafe {
                LLVMBuildSExt(builder, self.get(to), LLVMTypeOf(count), NO_NAME)
            },
            Last::Sum => unsafe { LLVMBuildAdd(builder, self.get(start.from), count, NO_NAME) },
        }
    }

    /// Returns the no-wrap flags of an index that starts at zero.
    fn index_flags(&self, op: Op) -> Flags {
        match self.index_fits_signed(op) {
            true => Flags::NUW.with(Flags::NSW),
            false => Flags::NUW,
        }
    }

    /// Returns whether the increment cannot pass the signed maximum: no loop runs 2⁶³ times.
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

/// # Safety
/// `value` is a live value.
unsafe fn is_true(value: LLVMValueRef) -> bool {
    unsafe { !LLVMIsAConstantInt(value).is_null() && LLVMConstIntGetZExtValue(value) == 1 }
}
