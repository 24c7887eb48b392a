//! Exceptions: one that leaves a task or an iteration waits at the sync, and leaves from there.
//!
//! What is called by the run-time library must not unwind through it, and what tasks share must not go
//! while they run. So where something may throw:
//!
//! 1. A task, and a range of iterations, is called by a function that catches whatever comes and keeps it
//!    with the group ([`caught`]). The first one kept is the one that arrives.
//! 2. The code of a scope is a function of its own, called in one place: an exception on its way out of
//!    it waits for the tasks there ([`guarded`]). LLVM's inliner takes the function in again.
//! 3. Behind a sync what was kept is thrown again ([`rethrow`]).
//!
//! C has none of it, and neither has C++ where no callee may throw.

use crate::Lowering;
use crate::abi::Entry;
use gradus_analysis::{Closure, Effects};
use gradus_edit::member;
use gradus_ir::{
    AttrSet, Body, Builder, CallInfo, ConstId, ConstKind, FuncId, IntPredicate, LandingPad, Op,
    OpKind, Region, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// Which functions may be left by an exception.
#[derive(Default)]
pub(crate) struct Throws {
    /// Those whose bodies were read.
    read: HashSet<FuncId>,
    throwing: HashSet<FuncId>,
}

impl Throws {
    /// Reads all that `functions` reach.
    pub(crate) fn of(unit: &Unit, functions: &[FuncId]) -> Throws {
        let closure = Closure::of(unit, functions);
        let mut found = Throws::default();
        for component in closure.components() {
            // In a cycle of calls nothing throws unless something in it does.
            found.read.extend(&component.functions);
            let mut known = None;
            while known != Some(found.throwing.len()) {
                known = Some(found.throwing.len());
                for &func in &component.functions {
                    if let Some(body) = unit.functions[func].body.as_deref() {
                        found.function(unit, func, body);
                    }
                }
            }
        }
        found
    }

    fn function(&mut self, unit: &Unit, func: FuncId, body: &Body) {
        if !is_quiet(unit, func) && self.region(unit, body, body.root()) {
            self.throwing.insert(func);
        }
    }

    /// Takes in a function that was made.
    fn add(&mut self, unit: &Unit, func: FuncId) -> bool {
        self.read.insert(func);
        if let Some(body) = unit.functions[func].body.as_deref() {
            self.function(unit, func, body);
        }
        self.throwing.contains(&func)
    }

    /// Whether an exception may leave a region.
    fn region(&self, unit: &Unit, body: &Body, region: Region) -> bool {
        body.walk(region).any(|op| match body.kind(op) {
            OpKind::Resume | OpKind::Foreign(_) => true,
            OpKind::Call(info) => match unit.callee(body, op) {
                Some(func) if self.read.contains(&func) => {
                    let attrs = info.attrs.map(|attrs| unit.attrs(attrs));
                    self.throwing.contains(&func)
                        && !attrs.is_some_and(|a| a.function("nounwind").is_some())
                }
                _ => Effects::default().of_call(unit, body, op).may_throw,
            },
            _ => false,
        })
    }
}

/// Whether the source function that one belongs to is stated to throw nothing.
fn is_quiet(unit: &Unit, func: FuncId) -> bool {
    let mut around = std::iter::successors(Some(func), |func| unit.functions[*func].derived_from);
    around.any(|func| {
        let attrs = unit.attrs(unit.functions[func].attrs);
        attrs.function("nounwind").is_some()
    })
}

impl Lowering<'_> {
    /// Whether an exception may leave a region of the body that is lowered.
    pub(crate) fn may_throw(&self, body: &Body, region: Region) -> bool {
        !is_quiet(self.unit, self.func) && self.throws.region(self.unit, body, region)
    }

    /// Whether a function made of a part of the body may be left by an exception.
    pub(crate) fn made_throws(&mut self, func: FuncId) -> bool {
        self.throws.add(self.unit, func)
    }
}

/// A call that is never left by an exception: `group` keeps it. `returned` writes what follows the
/// call where it comes back.
pub(crate) fn caught(
    b: &mut Builder<'_>,
    callee: FuncId,
    args: &[Value],
    group: Value,
    returned: impl FnOnce(&mut Builder<'_>, Option<Value>),
) {
    let (_, normal, unwind) = invoke(b, callee, args, &[]);
    let outside = b.at_end(normal);
    let given = b.body.region_params(normal).first().copied();
    returned(b, given);
    b.yield_(&[]);
    b.at_end(unwind);
    let ptr = b.unit.types.ptr();
    let everything = b.unit.consts.intern(ptr, ConstKind::Zero);
    let exception = landing_pad(b, false, vec![(false, everything)]);
    let object = b.extract(exception, &[0]);
    let keep = Entry::Keep.declare(b.unit);
    b.call(keep, &[group, object]);
    b.yield_(&[]);
    b.restore(outside);
}

/// A call that `clean` follows where an exception leaves it, which goes on. Gives its result.
pub(crate) fn guarded(
    b: &mut Builder<'_>,
    callee: FuncId,
    args: &[Value],
    clean: impl FnOnce(&mut Builder<'_>),
) -> Op {
    let result = result(b.unit, callee);
    let (op, normal, unwind) = invoke(b, callee, args, result.as_slice());
    let outside = b.at_end(normal);
    let given = b.body.region_params(normal).to_vec();
    b.yield_(&given);
    b.at_end(unwind);
    let exception = landing_pad(b, true, Vec::new());
    clean(b);
    b.op(OpKind::Resume, &[exception], &[], 0);
    b.restore(outside);
    op
}

fn result(unit: &Unit, callee: FuncId) -> Option<TypeId> {
    let result = unit.result_type(unit.functions[callee].ty);
    result.filter(|ty| !unit.types.is_void(*ty))
}

/// An invoke with empty regions, the first of which takes the call's result.
fn invoke(
    b: &mut Builder<'_>,
    callee: FuncId,
    args: &[Value],
    results: &[TypeId],
) -> (Op, Region, Region) {
    let info = CallInfo::plain(b.unit.functions[callee].ty);
    let mut operands = vec![b.func(callee)];
    operands.extend(args);
    let op = b.op(OpKind::Invoke(Box::new(info)), &operands, results, 2);
    let [normal, unwind] = [0, 1].map(|i| b.body.op_regions(op)[i]);
    if let Some(ty) = result(b.unit, callee) {
        b.body.add_param(normal, ty);
    }
    (op, normal, unwind)
}

fn landing_pad(b: &mut Builder<'_>, cleanup: bool, clauses: Vec<(bool, ConstId)>) -> Value {
    let (ptr, word) = (b.unit.types.ptr(), b.unit.types.int(32));
    let exception = b.unit.types.tuple(vec![ptr, word]);
    let pad = OpKind::LandingPad(Box::new(LandingPad { cleanup, clauses }));
    let op = b.op(pad, &[], &[exception], 0);
    b.body.result(op)
}

/// The type of a group that may keep an exception: the tasks that have not ended, and what is kept.
pub(crate) fn keeping_group(unit: &mut Unit) -> TypeId {
    let (long, ptr) = (unit.types.int(64), unit.types.ptr());
    unit.types.tuple(vec![long, ptr])
}

/// Throws what a group keeps, if anything.
pub(crate) fn rethrow(b: &mut Builder<'_>, group: Value) {
    let (ptr, word) = (b.unit.types.ptr(), b.unit.types.int(32));
    let ty = keeping_group(b.unit);
    let kept = member(b, ty, group, 1);
    let kept = b.load(ptr, kept);
    let nothing = b.zero(ptr);
    let thrown = b.icmp(IntPredicate::Ne, kept, nothing);
    let (_, throw, go_on) = b.if_(thrown, &[]);
    let outside = b.at_end(throw);
    let take = Entry::Thrown.declare(b.unit);
    let exception = b.call(take, &[group]);
    let exception = b.body.result(exception);
    let signature = b.unit.types.func(word, vec![ptr]);
    let raise = b
        .unit
        .declare("_Unwind_RaiseException", signature, AttrSet::default());
    b.call(raise, &[exception]);
    // It comes back where nobody catches.
    let end = Entry::Uncaught.declare(b.unit);
    b.call(end, &[exception]);
    b.op(OpKind::Unreachable, &[], &[], 0);
    b.at_end(go_on);
    b.yield_(&[]);
    b.restore(outside);
}
