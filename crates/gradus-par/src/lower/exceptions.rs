//! Exceptions in tasks and iterations: an exception is stored in the group and rethrown after the sync.
//!
//! The runtime must not be unwound by its callbacks, and memory shared with running tasks must not be released.
//! If code may throw:
//!
//! 1. A function with a catch-all handler calls the task or range of iterations and stores the exception in the
//!    group ([`call_with_catch_all`]). The first stored exception is rethrown.
//! 2. The code of a scope is outlined and called once: an exception leaving the scope waits for the tasks at
//!    the call ([`call_with_cleanup`]). LLVM inlines the function again.
//! 3. After a sync, a stored exception is rethrown ([`rethrow`]).
//!
//! C code, and C++ code whose callees never throw, has none of the three.

use crate::emit::abi::Entry;
use crate::lower::Lowering;
use gradus_analysis::{CallGraph, Effects};
use gradus_edit::field_address;
use gradus_ir::{
    AttrSet, Body, Builder, CallInfo, ConstId, ConstKind, FuncId, IntPredicate, LandingPad, Op,
    OpKind, Region, TypeId, Unit, Value,
};
use std::collections::HashSet;

/// The functions that may unwind.
#[derive(Default)]
pub(crate) struct UnwindAnalysis {
    /// Analysed functions.
    read: HashSet<FuncId>,
    throwing: HashSet<FuncId>,
}

impl UnwindAnalysis {
    /// Analyses the functions of a call graph.
    pub(crate) fn of(unit: &Unit, closure: &CallGraph) -> UnwindAnalysis {
        let mut found = UnwindAnalysis::default();
        for component in closure.components() {
            // Within a call cycle, a fixpoint from "nothing throws".
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
        if !is_nounwind(unit, func) && self.region(unit, body, body.root()) {
            self.throwing.insert(func);
        }
    }

    /// Adds an outlined function; returns true if the function may throw.
    fn add_function(&mut self, unit: &Unit, func: FuncId) -> bool {
        self.read.insert(func);
        if let Some(body) = unit.functions[func].body.as_deref() {
            self.function(unit, func, body);
        }
        self.throwing.contains(&func)
    }

    /// Returns true if an exception may leave `region`.
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

/// Returns true if the function, or the source function of an outlined function, is `nounwind`.
fn is_nounwind(unit: &Unit, func: FuncId) -> bool {
    unit.origin_has_attribute(func, "nounwind")
}

impl Lowering<'_> {
    /// Returns true if an exception may leave a region of the lowered body.
    pub(crate) fn may_throw(&self, body: &Body, region: Region) -> bool {
        !is_nounwind(self.unit, self.func) && self.throws.region(self.unit, body, region)
    }

    /// Analyses an outlined function; returns true if the function may throw.
    pub(crate) fn outlined_may_throw(&mut self, func: FuncId) -> bool {
        self.throws.add_function(self.unit, func)
    }
}

/// Emits a call with a catch-all handler that stores the exception in `group`. `returned` emits the code after
/// a normal return.
pub(crate) fn call_with_catch_all(
    b: &mut Builder<'_>,
    callee: FuncId,
    args: &[Value],
    group: Value,
    returned: impl FnOnce(&mut Builder<'_>, Option<Value>),
) {
    let (_, normal, unwind) = invoke(b, callee, args, &[]);
    let outside = b.set_insertion_end(normal);
    let given = b.body.region_params(normal).first().copied();
    returned(b, given);
    b.yield_(&[]);
    b.set_insertion_end(unwind);
    let ptr = b.unit.types.ptr();
    let everything = b.unit.consts.intern(ptr, ConstKind::Zero);
    let exception = landing_pad(b, false, vec![(false, everything)]);
    let object = b.extract(exception, &[0]);
    let keep = Entry::Keep.declare(b.unit);
    b.call(keep, &[group, object]);
    b.yield_(&[]);
    b.restore_insertion_point(outside);
}

/// Emits a call with a cleanup handler: `clean` runs on unwinding, which continues. Returns the invoke.
pub(crate) fn call_with_cleanup(
    b: &mut Builder<'_>,
    callee: FuncId,
    args: &[Value],
    clean: impl FnOnce(&mut Builder<'_>),
) -> Op {
    let result = result(b.unit, callee);
    let (op, normal, unwind) = invoke(b, callee, args, result.as_slice());
    let outside = b.set_insertion_end(normal);
    let given = b.body.region_params(normal).to_vec();
    b.yield_(&given);
    b.set_insertion_end(unwind);
    let exception = landing_pad(b, true, Vec::new());
    clean(b);
    b.op(OpKind::Resume, &[exception], &[], 0);
    b.restore_insertion_point(outside);
    op
}

fn result(unit: &Unit, callee: FuncId) -> Option<TypeId> {
    let result = unit.result_type(unit.functions[callee].ty);
    result.filter(|ty| !unit.types.is_void(*ty))
}

/// Emits an invoke with empty regions; the normal region's parameter is the call's result.
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

/// Returns the type of a group with an exception slot: the number of unfinished tasks and the exception object.
pub(crate) fn exception_group_type(unit: &mut Unit) -> TypeId {
    let (long, ptr) = (unit.types.int(64), unit.types.ptr());
    unit.types.tuple(vec![long, ptr])
}

/// Emits the rethrow of a stored exception, if any.
pub(crate) fn rethrow(b: &mut Builder<'_>, group: Value) {
    let (ptr, word) = (b.unit.types.ptr(), b.unit.types.int(32));
    let ty = exception_group_type(b.unit);
    let kept = field_address(b, ty, group, 1);
    let kept = b.load(ptr, kept);
    let nothing = b.zero(ptr);
    let thrown = b.icmp(IntPredicate::Ne, kept, nothing);
    let (_, throw, go_on) = b.if_(thrown, &[]);
    let outside = b.set_insertion_end(throw);
    let take = Entry::Thrown.declare(b.unit);
    let exception = b.call(take, &[group]);
    let exception = b.body.result(exception);
    let signature = b.unit.types.func(word, vec![ptr]);
    let raise = b
        .unit
        .declare("_Unwind_RaiseException", signature, AttrSet::default());
    b.call(raise, &[exception]);
    // Returns if no handler exists.
    let end = Entry::Uncaught.declare(b.unit);
    b.call(end, &[exception]);
    b.op(OpKind::Unreachable, &[], &[], 0);
    b.set_insertion_end(go_on);
    b.yield_(&[]);
    b.restore_insertion_point(outside);
}
