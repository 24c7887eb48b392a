//! Jump threading: the continuation after an op with arms is a join block, or a jump past the next test.
//!
//! Structured code encodes the successor in a value and tests the value at once: a selector, the truth
//! value of `a && b`, the flag of a loop with several exits. If an arm ends with a constant for that value,
//! its end jumps directly to the target that the test selects; the blocks thus come out nearly as imported.
//! Ends with an unknown value join at the test. The remaining values of the arms are merged at each target,
//! and again after the test if they are used there (`extras`). A loop that repeats while the condition of
//! the preceding `if` holds is also such a test, because each arm determines the condition.
use super::structure::{Frame, Structure, Values};
use crate::host::ffi::*;
use crate::import::SELECTOR_NAME;
use gradus_ir::{ConstKind, Entity, IntPredicate, Op, OpKind, Region, Value};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use smallvec::SmallVec;
use std::rc::Rc;

/// The end of an arm: a block without a terminator, and the values that the arm yields there.
pub(super) struct End {
    pub(super) block: LLVMBasicBlockRef,
    pub(super) values: Values,
}

/// The most ends that are forwarded to the next outer op. Without the limit, each of very many nested arms
/// would forward all its inner ends.
const FORWARDED_ENDS_MAX: usize = 64;

/// A test of a value that the preceding op yielded.
struct Test {
    /// The op that branches on the value.
    by: Op,
    /// The index of the tested value among the yielded values.
    index: usize,
    holds: TestKind,
}

/// The form of a test.
#[derive(Clone, Copy)]
enum TestKind {
    /// Tests the value itself.
    Is,
    /// Tests the negated truth value.
    Not,
    /// Tests for equality with a number.
    Equals(u128),
}

impl Structure<'_, '_, '_> {
    /// Continues after an op from the ends of its arms.
    pub(super) fn continue_after(&mut self, op: Op) {
        self.exit_unfinished_for(op);
        let ends = self.ends.remove(&op).unwrap_or_default();
        let mut given = self.body.results(op).to_vec();
        given.extend(self.extras.remove(&op).unwrap_or_default());
        given.extend(self.repeat_condition(op));
        if ends.is_empty() {
            return self.skip_rest();
        }
        if ends.len() > 1
            && let Some(next) = self.next_op()
        {
            if matches!(self.body.kind(next), OpKind::Yield) && ends.len() < FORWARDED_ENDS_MAX {
                if let Some(owner) = self.owner_with_arms(next) {
                    return self.forward_ends(next, owner, &given, ends);
                }
            } else if let Some(test) = self.match_test(next, &given)
                && ends
                    .iter()
                    .any(|end| constant_value(end.values[test.index]).is_some())
            {
                return match self.body.kind(test.by) {
                    OpKind::Repeat => self.thread_repeat(&test, given, ends),
                    _ => self.thread_branch(&test, given, ends),
                };
            }
        }
        let behind = self.order.start(op);
        self.join_ends(ends, &given, behind);
    }

    /// Returns the next op of the walk.
    fn next_op(&self) -> Option<Op> {
        match self.stack.last() {
            Some(Frame::Ops(next)) => *next,
            _ => None,
        }
    }

    fn owner_with_arms(&self, end: Op) -> Option<Op> {
        let owner = self.body.parent_op(end)?;
        let arms = matches!(
            self.body.kind(owner),
            OpKind::If | OpKind::Switch(_) | OpKind::Invoke(_)
        );
        arms.then_some(owner)
    }

    /// Forwards ends to the enclosing arm, if the arm yields right after the op.
    fn forward_ends(&mut self, end: Op, owner: Op, given: &[Value], ends: Vec<End>) {
        for from in ends {
            self.bind_values(given, &from.values);
            let values = self.end_values(end, owner);
            self.ends.entry(owner).or_default().push(End {
                block: from.block,
                values,
            });
        }
        self.skip_rest();
    }

    /// Returns the values at the end of an arm: the operands of its `yield`, the extras of its op, then the
    /// value of the condition that is tested again.
    pub(super) fn end_values(&self, end: Op, owner: Op) -> Values {
        let mut values = self.operands(end);
        if let Some(extras) = self.extras.get(&owner) {
            values.extend(extras.iter().map(|v| self.get(*v)));
        }
        if let Some(condition) = self.repeat_condition(owner) {
            let first = self.body.op_regions(owner).first().copied();
            let holds = self.body.parent(end) == first;
            let ty = self.exporter.ty(self.body.ty(condition));
            values.push(unsafe { LLVMConstInt(ty, holds.into(), 0) });
        }
        values
    }

    /// Returns the condition of an `if`, if the enclosing loop repeats on the same condition right after
    /// the `if`.
    fn repeat_condition(&self, op: Op) -> Option<Value> {
        let body = self.body;
        let next = body.next(op)?;
        if !matches!(
            (body.kind(op), body.kind(next)),
            (OpKind::If, OpKind::Repeat)
        ) {
            return None;
        }
        let condition = body.operand(op, 0);
        let made_here =
            body.def_op(condition)? != op && body.region_of(condition) == body.parent(op);
        (made_here && body.operand(next, 0) == condition).then_some(condition)
    }

    fn bind_values(&mut self, given: &[Value], values: &[LLVMValueRef]) {
        for (value, made) in given.iter().zip(values) {
            self.values[value.index()] = *made;
        }
    }

    /// Joins ends in one block and continues there. Values without a use after position `behind` need no
    /// phi.
    pub(super) fn join_ends(&mut self, ends: Vec<End>, given: &[Value], behind: u32) {
        if let [end] = ends.as_slice() {
            self.enter_at_end(end.block);
            self.bind_values(given, &end.values);
            return;
        }
        let join = self.block();
        for end in &ends {
            self.enter_at_end(end.block);
            unsafe { LLVMBuildBr(self.exporter.builder, join) };
        }
        self.enter_at_end(join);
        let mut blocks: Vec<LLVMBasicBlockRef> = ends.iter().map(|end| end.block).collect();
        for (i, value) in given.iter().enumerate() {
            if !self.order.is_used_after(*value, behind) {
                continue;
            }
            let mut incoming: SmallVec<[LLVMValueRef; 8]> =
                ends.iter().map(|end| end.values[i]).collect();
            let mut made = incoming[0];
            if incoming.iter().any(|v| *v != made) {
                made = self.phi(*value);
                let count = incoming.len() as u32;
                unsafe { LLVMAddIncoming(made, incoming.as_mut_ptr(), blocks.as_mut_ptr(), count) };
            }
            self.values[value.index()] = made;
        }
    }

    // ---- tests -----------------------------------------------------------------------------

    /// Returns the test right after an op, if it tests a yielded value.
    fn match_test(&self, next: Op, given: &[Value]) -> Option<Test> {
        let body = self.body;
        let (by, on, holds) = match body.kind(next) {
            OpKind::If | OpKind::Switch(_) if self.numbered_switch(next).is_none() => {
                (next, body.operand(next, 0), TestKind::Is)
            }
            OpKind::Repeat => (next, body.operand(next, 0), TestKind::Is),
            OpKind::Binary(_) if self.is_folded_negation(next) => {
                (body.next(next)?, body.operand(next, 0), TestKind::Not)
            }
            OpKind::ICmp(IntPredicate::Eq)
                if body.ops[next].name.as_deref() == Some(SELECTOR_NAME) =>
            {
                let id = body.as_const(body.operand(next, 1))?;
                let ConstKind::Int(number) = self.exporter.unit.consts.get(id).kind else {
                    return None;
                };
                (
                    body.next(next)?,
                    body.operand(next, 0),
                    TestKind::Equals(number),
                )
            }
            _ => return None,
        };
        if by != next {
            let mut uses = body.uses(body.result(next));
            let only = uses.next()?;
            if only.op != by || only.index != 0 || uses.next().is_some() {
                return None;
            }
        }
        if matches!(holds, TestKind::Equals(_)) && !matches!(body.kind(by), OpKind::Repeat) {
            return None;
        }
        let index = given.iter().position(|v| *v == on)?;
        Some(Test { by, index, holds })
    }

    /// Connects ends to the arms of an `if` or `switch` that tests a yielded value.
    fn thread_branch(&mut self, test: &Test, given: Vec<Value>, ends: Vec<End>) {
        let body = self.body;
        let regions: Vec<Region> = body.op_regions(test.by).to_vec();
        let mut entries: Vec<Vec<End>> = regions.iter().map(|_| Vec::new()).collect();
        let mut unknown = Vec::new();
        for end in ends {
            match constant_value(end.values[test.index]) {
                Some(number) => entries[self.arm(test, number)].push(end),
                None => unknown.push(end),
            }
        }
        let position = self.order.start(test.by);
        if !unknown.is_empty() {
            self.join_ends(unknown, &given, position.saturating_sub(2));
            let on = self.get(given[test.index]);
            let values: Values = given.iter().map(|v| self.get(*v)).collect();
            for (block, entries) in self.branch(test, on).into_iter().zip(&mut entries) {
                entries.push(End {
                    block,
                    values: values.clone(),
                });
            }
        }
        if let Some(Frame::Ops(next)) = self.stack.last_mut() {
            *next = body.next(test.by);
        }
        let extras = given
            .iter()
            .copied()
            .filter(|v| self.order.outlives(*v, test.by))
            .collect();
        self.extras.insert(test.by, extras);
        self.stack.push(Frame::After(test.by));
        let given = Rc::new(given);
        for (region, ends) in regions
            .into_iter()
            .zip(entries)
            .rev()
            .filter(|(_, ends)| !ends.is_empty())
        {
            self.stack.push(Frame::Entry {
                region,
                ends,
                given: given.clone(),
                behind: position,
            });
        }
    }

    fn arm(&self, test: &Test, number: u128) -> usize {
        match self.body.kind(test.by) {
            OpKind::Switch(cases) => cases
                .iter()
                .position(|c| *c == number)
                .unwrap_or(cases.len()),
            _ => usize::from((number == 1) == matches!(test.holds, TestKind::Not)),
        }
    }

    /// Builds the branch of a test; returns the block of each arm.
    fn branch(&mut self, test: &Test, on: LLVMValueRef) -> Vec<LLVMBasicBlockRef> {
        let builder = self.exporter.builder;
        let blocks: Vec<LLVMBasicBlockRef> = self
            .body
            .op_regions(test.by)
            .iter()
            .map(|_| self.block())
            .collect();
        let made = match self.body.kind(test.by) {
            OpKind::Switch(cases) => {
                let targets: Vec<(u128, LLVMBasicBlockRef)> =
                    cases.iter().copied().zip(blocks.iter().copied()).collect();
                self.make_switch(on, blocks[blocks.len() - 1], &targets)
            }
            _ => {
                let inverted = matches!(test.holds, TestKind::Not);
                let (yes, no) = if inverted {
                    (blocks[1], blocks[0])
                } else {
                    (blocks[0], blocks[1])
                };
                unsafe { LLVMBuildCondBr(builder, on, yes, no) }
            }
        };
        self.describe(test.by, made);
        blocks
    }

    /// Connects ends to the header or the exit of a loop whose `repeat` tests a yielded value.
    fn thread_repeat(&mut self, test: &Test, given: Vec<Value>, ends: Vec<End>) {
        let owner = self.body.parent_op(test.by);
        let Some((owner, round)) = owner.and_then(|o| self.rounds.remove(&o).map(|r| (o, r)))
        else {
            return self.join_ends(ends, &given, 0);
        };
        let carried = round.phis.len();
        let mut unknown = Vec::new();
        for end in ends {
            let Some(number) = constant_value(end.values[test.index]) else {
                unknown.push(end);
                continue;
            };
            self.enter_at_end(end.block);
            self.bind_values(&given, &end.values);
            let values = self.operands(test.by);
            let again = match test.holds {
                TestKind::Is => number == 1,
                TestKind::Not => number == 0,
                TestKind::Equals(n) => number == n,
            };
            if again {
                self.add_backedge_values(&round, &values[1..=carried]);
                let made = unsafe { LLVMBuildBr(self.exporter.builder, round.header) };
                self.describe(owner, made);
            } else {
                let values = values[1 + carried..].iter().copied().collect();
                self.ends.entry(owner).or_default().push(End {
                    block: end.block,
                    values,
                });
            }
        }
        if !unknown.is_empty() {
            self.join_ends(unknown, &given, self.order.start(test.by).saturating_sub(2));
            let on = self.get(given[test.index]);
            let (again, inverted) = match test.holds {
                TestKind::Is => (on, false),
                TestKind::Not => (on, true),
                TestKind::Equals(n) => (self.equals(on, n), false),
            };
            self.branch_at_bottom(owner, round, test.by, again, inverted);
        }
        self.skip_rest();
    }

    fn equals(&self, on: LLVMValueRef, number: u128) -> LLVMValueRef {
        unsafe {
            let number = LLVMConstInt(LLVMTypeOf(on), number as u64, 0);
            let equal = llvm_sys::LLVMIntPredicate::LLVMIntEQ;
            let made = LLVMBuildICmp(self.exporter.builder, equal, on, number, NO_NAME);
            LLVMSetValueName2(made, SELECTOR_NAME.as_ptr().cast(), SELECTOR_NAME.len());
            made
        }
    }
}

/// Returns the number of a constant integer of at most 64 bits.
fn constant_value(value: LLVMValueRef) -> Option<u128> {
    unsafe {
        let constant = LLVMIsAConstantInt(value);
        let narrow = !constant.is_null()
            && LLVMGetTypeKind(LLVMTypeOf(constant)) == llvm_sys::LLVMTypeKind::LLVMIntegerTypeKind
            && LLVMGetIntTypeWidth(LLVMTypeOf(constant)) <= 64;
        narrow.then(|| u128::from(LLVMConstIntGetZExtValue(constant)))
    }
}
