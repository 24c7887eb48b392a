//! Variadic arguments.
//!
//! The derivative forwards variadic arguments to its forward pass. The reverse pass receives none, and no
//! shadows of variadic arguments are passed. A function that reads its variadic arguments therefore has no
//! derivative, unless it only formats the arguments (`vprintf` and related functions) or reads integers of at most 32
//! bits, which hold no derivative and no address.

use crate::call_graph::CallGraph;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, SystemFn};
use gradus_ir::{Body, FuncId, Op, OpKind, Type, Unit, Use, Value};
use std::collections::HashSet;

/// Returns true if a function only formats its variadic arguments.
pub(crate) fn varargs_are_only_formatted(unit: &Unit, closure: &CallGraph, func: FuncId) -> bool {
    let Some(body) = unit.functions[func].body.as_deref() else {
        return false;
    };
    body.walk(body.root()).all(|op| {
        let callee = unit.known_callee(body, op);
        callee != Some(ExternalFn::Marker(CompilerIntrinsic::VaStart))
            || va_list_is_only_formatted(unit, closure, (func, op))
    })
}

/// Returns true if a variadic argument of this type may be a structure in registers: a narrow float, a vector or an
/// integer. A read of an integer may take the bits of its floats.
pub(crate) fn may_be_structure(ty: &Type) -> bool {
    match ty {
        Type::Float(kind) => kind.bits() < 64,
        Type::Ptr(_) => false,
        _ => true,
    }
}

/// Returns true if the list started by an op is only formatted.
pub(crate) fn va_list_is_only_formatted(
    unit: &Unit,
    closure: &CallGraph,
    (func, start): (FuncId, Op),
) -> bool {
    let Some(body) = unit.functions[func].body.as_deref() else {
        return false;
    };
    let list = unit.call_args(body, start).first().copied();
    let mut lists = VaListWalk {
        unit,
        closure,
        seen: HashSet::new(),
    };
    list.is_some_and(|list| lists.is_only_formatted(func, body, body.address_base(list)))
}

struct VaListWalk<'a> {
    unit: &'a Unit,
    closure: &'a CallGraph,
    seen: HashSet<(FuncId, Value)>,
}

impl VaListWalk<'_> {
    /// Returns true if every use of a list's address prints, starts, copies or ends the list.
    fn is_only_formatted(&mut self, func: FuncId, body: &Body, list: Value) -> bool {
        if !self.seen.insert((func, list)) {
            return true;
        }
        let ops: Vec<Op> = body.uses(list).map(|u| u.op).collect();
        ops.into_iter().all(|op| match body.kind(op) {
            OpKind::Addr { .. } => self.is_only_formatted(func, body, body.result(op)),
            OpKind::Call(_) | OpKind::Invoke(_) => self.call_only_formats(func, body, op, list),
            // `va_arg` reads the position of the next argument, and writes the position of the one after it.
            OpKind::Load(_) => {
                let read = body.result(op);
                self.is_small_integer(body, read) || self.holds_only_integers(func, body, read)
            }
            OpKind::Store(_) => body.operand(op, 1) == list && self.is_position(func, body, op),
            _ => false,
        })
    }
    /// Returns true if a store to a list writes a position: a small integer, or an address in the argument area.
    fn is_position(&mut self, func: FuncId, body: &Body, op: Op) -> bool {
        let value = body.operand(op, 0);
        self.is_small_integer(body, value) || self.holds_only_integers(func, body, value)
    }
    fn is_small_integer(&self, body: &Body, value: Value) -> bool {
        let bits = self.unit.types.int_bits(body.ty(value));
        bits.is_some_and(|bits| bits <= 32)
    }
    /// Returns true if every use of an address in the argument area moves the address, stores it in a list or reads a
    /// small integer.
    fn holds_only_integers(&mut self, func: FuncId, body: &Body, area: Value) -> bool {
        if !matches!(self.unit.types.get(body.ty(area)), Type::Ptr(_)) {
            return false;
        }
        if !self.seen.insert((func, area)) {
            return true;
        }
        let uses: Vec<Use> = body.uses(area).collect();
        uses.into_iter().all(|at| match body.kind(at.op) {
            OpKind::Addr { .. } | OpKind::Select | OpKind::Freeze => {
                self.holds_only_integers(func, body, body.result(at.op))
            }
            OpKind::Load(_) => self.is_small_integer(body, body.result(at.op)),
            OpKind::Store(_) => {
                let list = body.address_base(body.operand(at.op, 1));
                body.operand(at.op, 1) != area && self.seen.contains(&(func, list))
            }
            OpKind::ICmp(_) => true,
            // A region op or a terminator passes the address on.
            _ => {
                let targets = body.flow_targets(at);
                let passes = !targets.is_empty();
                let mut targets = targets.into_iter();
                passes && targets.all(|to| self.holds_only_integers(func, body, to))
            }
        })
    }
    fn call_only_formats(&mut self, func: FuncId, body: &Body, op: Op, list: Value) -> bool {
        let (unit, closure) = (self.unit, self.closure);
        let Some(callee) = unit.callee(body, op) else {
            return false;
        };
        let args = unit.call_args(body, op);
        match unit.known(callee) {
            Some(ExternalFn::System(SystemFn::Print | SystemFn::PrintToMemory)) => true,
            Some(ExternalFn::Marker(CompilerIntrinsic::VaCopy)) => {
                let to = args.first().map(|to| body.address_base(*to));
                to.is_some_and(|to| self.is_only_formatted(func, body, to))
            }
            Some(ExternalFn::Marker(
                CompilerIntrinsic::VaStart
                | CompilerIntrinsic::VaEnd
                | CompilerIntrinsic::LifetimeStart
                | CompilerIntrinsic::LifetimeEnd,
            )) => true,
            Some(_) => false,
            None if closure.contains(callee) => {
                let Some(inner) = unit.functions[callee].body.as_deref() else {
                    return false;
                };
                let handed = args.iter().enumerate().filter(|(_, arg)| **arg == list);
                let params: Vec<Option<Value>> = handed
                    .map(|(index, _)| inner.params().get(index).copied())
                    .collect();
                let mut params = params.into_iter();
                params.all(|p| p.is_some_and(|p| self.is_only_formatted(callee, inner, p)))
            }
            None => false,
        }
    }
}
