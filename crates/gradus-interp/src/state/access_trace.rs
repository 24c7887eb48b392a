//! The trace of memory accesses and indirect calls: an oracle of points-to analyses.
//!
//! With [`crate::Options::trace_accesses`], a machine records the object and the offset of each executed access,
//! and the callee of each indirect call. Equal records are kept once.

use crate::memory::ObjectKind;
use crate::state::machine::Machine;
use crate::values::value::Address;
use gradus_ir::{Entity, FuncId, GlobalId, Op, Value};
use std::collections::{BTreeSet, HashMap};

/// The allocation site of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationSite {
    /// An `alloca`.
    Alloca(FuncId, Op),
    /// A call of an allocator.
    Heap(FuncId, Op),
    /// The callee's copy of a `byval` argument, with the index of the parameter.
    ByValue(FuncId, u32),
    /// A global variable.
    Global(GlobalId),
    /// A function.
    Function(FuncId),
    /// Memory of an external function (`errno`).
    External,
    /// Memory allocated by the machine's user.
    User,
}

/// An access of an op through a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TracedAccess {
    /// The function that executes the op.
    pub func: FuncId,
    /// The load, store, atomic access or call.
    pub op: Op,
    /// The operand of `op` with the address.
    pub pointer: Value,
    /// The allocation site of the accessed object.
    pub site: AllocationSite,
    /// Offset of the pointer in the object, in bytes.
    pub offset_bytes: i64,
}

/// The accesses and indirect calls of a machine's runs.
#[derive(Clone, Debug, Default)]
pub struct AccessTrace {
    accesses: BTreeSet<TracedAccess>,
    calls: BTreeSet<(FuncId, Op, FuncId)>,
    /// The sites of objects that the program allocates, by start address.
    sites: HashMap<u64, AllocationSite>,
}

impl AccessTrace {
    /// Iterates over the distinct accesses.
    pub fn accesses(&self) -> impl ExactSizeIterator<Item = &TracedAccess> {
        self.accesses.iter()
    }
    /// Iterates over the distinct indirect calls: caller, op and callee.
    pub fn indirect_calls(&self) -> impl ExactSizeIterator<Item = &(FuncId, Op, FuncId)> {
        self.calls.iter()
    }
}

impl Machine<'_> {
    /// Returns the recorded accesses; `None` without [`crate::Options::trace_accesses`].
    pub fn access_trace(&self) -> Option<&AccessTrace> {
        self.trace.as_deref()
    }
    /// Records an access through the current op's operand `operand`.
    #[inline(always)]
    pub(crate) fn trace_access(&mut self, operand: usize, address: u64) {
        if self.trace.is_some() {
            self.record_traced(operand, address);
        }
    }
    /// Records an access through the current call's argument `argument`.
    #[inline(always)]
    pub(crate) fn trace_argument(&mut self, argument: usize, address: u64) {
        // The callee is operand 0.
        self.trace_access(argument + 1, address);
    }
    /// Records an access of `size_bytes` bytes through the current call's argument `argument`.
    pub(crate) fn trace_range(&mut self, argument: usize, address: u64, size_bytes: u64) {
        if size_bytes > 0 {
            self.trace_argument(argument, address);
        }
    }

    #[inline(never)]
    fn record_traced(&mut self, operand: usize, address: u64) {
        let Some((func, op)) = self.current_op() else {
            unreachable!("only ops access memory");
        };
        let Some(body) = &self.unit.functions[func].body else {
            unreachable!("a running function has a body");
        };
        let pointer = body.operand(op, operand);
        let Some((base, kind)) = self.memory.object_around(address) else {
            unreachable!("the access has succeeded");
        };
        let site = self.site(base, kind);
        if let Some(trace) = &mut self.trace {
            trace.accesses.insert(TracedAccess {
                func,
                op,
                pointer,
                site,
                offset_bytes: address.wrapping_sub(base) as i64,
            });
        }
    }
    fn site(&self, base: u64, kind: ObjectKind) -> AllocationSite {
        let trace = self.trace.as_deref();
        if let Some(site) = trace.and_then(|trace| trace.sites.get(&base)) {
            return *site;
        }
        if let ObjectKind::Function(func) = kind {
            return AllocationSite::Function(func);
        }
        let mut globals = self.symbols.globals.iter();
        match globals.position(|address| address.0 == base) {
            Some(index) => AllocationSite::Global(GlobalId::from_index(index)),
            None => AllocationSite::User,
        }
    }
    /// Records the site of a new object. The address of a dead object may be reused.
    pub(crate) fn trace_object(&mut self, object: Address, site: AllocationSite) {
        if let Some(trace) = &mut self.trace {
            trace.sites.insert(object.0, site);
        }
    }
    /// Records the current op as the site of a new stack object.
    pub(crate) fn trace_alloca(&mut self, object: Address) {
        if self.trace.is_some()
            && let Some((func, op)) = self.current_op()
        {
            self.trace_object(object, AllocationSite::Alloca(func, op));
        }
    }
    /// Records the current op as the site of a new heap block.
    pub(crate) fn trace_block(&mut self, object: Address) {
        if self.trace.is_some()
            && let Some((func, op)) = self.current_op()
        {
            self.trace_object(object, AllocationSite::Heap(func, op));
        }
    }
    /// Records the callee of the current op, an indirect call.
    pub(crate) fn trace_indirect_call(&mut self, callee: FuncId) {
        if self.trace.is_some()
            && let Some((func, op)) = self.current_op()
            && let Some(trace) = &mut self.trace
        {
            trace.calls.insert((func, op, callee));
        }
    }
    /// Returns the function and op of the current instruction.
    fn current_op(&self) -> Option<(FuncId, Op)> {
        let code = &self.strand.frames.last()?.code;
        let op = code.ops.get(self.pc as usize)?;
        Some((code.func, *op))
    }
}
