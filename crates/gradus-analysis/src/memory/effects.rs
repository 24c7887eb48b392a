//! Memory effects (mod/ref) and control effects of ops and functions.
//!
//! [`Effects::of_op`] lists the memory accesses of one op. Calls use function summaries. A function with a
//! body is summarised bottom-up over the call graph; a function without one uses the table of known
//! functions and the host's attributes. An unknown function reads and writes all memory reachable by the
//! program. `errno` and memory without pointers are separate locations.

use crate::call_graph::CallGraph;
use crate::memory::external_effects::{self, ExternalState};
use crate::memory::summaries;
use gradus_ir::externals::{CompilerIntrinsic, ExternalFn, MemoryFn, SystemFn, is_stream_variable};
use gradus_ir::{
    Access, Body, ConstKind, FuncId, GlobalId, MetaId, Op, OpKind, Type, TypeId, Unit, Value,
    scalar_ops,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Deallocation (`free`, `realloc`, `delete`, a stack restore).
    Free,
    /// Start or end of a lifetime (lifetime markers): the contents become undefined.
    Lifetime,
}

/// The memory accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryRegion {
    /// The memory behind a pointer.
    At(Value),
    /// A global variable.
    Global(GlobalId),
    /// Any memory except memory provably private to the function.
    Reachable,
    /// Stack memory of dynamic size.
    Frame,
    /// `errno`.
    Errno,
    /// Memory without pointers in the program: allocator state, files, clocks, the floating-point
    /// environment.
    Inaccessible,
}

/// A memory access by an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The op.
    pub op: Op,
    /// Kind of the access.
    pub kind: AccessKind,
    /// The memory accessed.
    pub place: MemoryRegion,
    /// Offset in bytes from the start of the place to the first accessed byte.
    pub offset: i64,
    /// Maximal number of accessed bytes. `None`: any part of the object, including bytes before the start.
    pub size: Option<u64>,
    /// Number of accessed bytes, if only a run-time value determines it.
    pub count: Option<Value>,
    /// The host's metadata of the access.
    pub meta: Option<MetaId>,
}

impl MemoryAccess {
    /// Returns the pointer of the access.
    pub fn ptr(&self) -> Option<Value> {
        match self.place {
            MemoryRegion::At(value) => Some(value),
            _ => None,
        }
    }
    /// Returns true for writes, frees and lifetime changes.
    pub fn is_clobber(&self) -> bool {
        self.kind != AccessKind::Read
    }
}

/// Byte range accessed behind a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// No byte.
    #[default]
    Nothing,
    /// Bytes from the first offset up to, excluding, the second, relative to the pointer.
    Bytes(i64, i64),
    /// Any byte of the object.
    Object,
}

impl Extent {
    /// Returns true if no byte is accessed.
    pub fn is_nothing(self) -> bool {
        self == Extent::Nothing
    }
    /// Returns the hull of both ranges.
    #[must_use]
    pub fn or(self, other: Extent) -> Extent {
        match (self, other) {
            (Extent::Nothing, e) | (e, Extent::Nothing) => e,
            (Extent::Bytes(a, b), Extent::Bytes(c, d)) => Extent::Bytes(a.min(c), b.max(d)),
            _ => Extent::Object,
        }
    }
    pub(crate) fn if_any(any: bool) -> Extent {
        if any { Extent::Object } else { Extent::Nothing }
    }
}

/// Effects of a function on one pointer argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamEffects {
    /// Bytes read through the argument.
    pub reads: Extent,
    /// Bytes written through the argument.
    pub writes: Extent,
    /// True if the function may free the memory.
    pub frees: bool,
    /// True if the function captures the pointer, or exposes pointers stored behind it, beyond the call. A
    /// returned pointer is no capture.
    pub captures: bool,
    /// True if the result may be the argument or point into the same object.
    pub returned: bool,
}

/// Reads and writes of one location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessSummary {
    /// True if the location may be read.
    pub reads: bool,
    /// True if the location may be written.
    pub writes: bool,
}

impl AccessSummary {
    /// No access.
    pub const NONE: AccessSummary = AccessSummary {
        reads: false,
        writes: false,
    };
    /// Read and write.
    pub const BOTH: AccessSummary = AccessSummary {
        reads: true,
        writes: true,
    };
    /// Returns the union.
    #[must_use]
    pub fn or(self, other: AccessSummary) -> AccessSummary {
        AccessSummary {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
        }
    }
    /// Returns the intersection.
    #[must_use]
    pub fn and(self, other: AccessSummary) -> AccessSummary {
        AccessSummary {
            reads: self.reads && other.reads,
            writes: self.writes && other.writes,
        }
    }
}

/// Summary of the effects of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionEffects {
    /// Effects per argument.
    pub params: Vec<ParamEffects>,
    /// Effects on arguments beyond [`FunctionEffects::params`] (variadic arguments).
    pub variadic: ParamEffects,
    /// Accesses to globals by name.
    pub globals: BTreeMap<GlobalId, AccessSummary>,
    /// Accesses to other reachable memory: through loaded or unknown pointers.
    pub reachable: AccessSummary,
    /// True if the function may free memory not behind its arguments.
    pub frees_other: bool,
    /// Accesses to `errno`.
    pub errno: AccessSummary,
    /// Accesses to memory without pointers in the program.
    pub inaccessible: AccessSummary,
    /// True if the result may be fresh memory, to which no other pointer exists (or null).
    pub returns_fresh: bool,
    /// True if the fresh memory may hold pointers.
    pub fresh_holds_pointers: bool,
    /// True if pointers in the fresh memory may point back into it. The caller's result is then not its
    /// only address.
    pub fresh_may_be_cyclic: bool,
    /// True if the result may be a pointer that is neither an argument nor fresh.
    pub returns_other: bool,
    /// True if an exception may leave the function.
    pub may_throw: bool,
    /// True if the function may not return: it ends the program or runs forever.
    pub may_not_return: bool,
    /// True if unknown code may run.
    pub calls_unknown: bool,
    /// True if ranks of an enclosing `spmd` may synchronise inside the function, as far as its code is
    /// known.
    pub may_sync_ranks: bool,
    /// True if writes of other threads become visible during the call: the function acquires, releases, or
    /// is unknown.
    pub synchronizes: bool,
}

impl FunctionEffects {
    /// Returns the contribution of an op, except a call, to [`FunctionEffects::synchronizes`]. Every atomic load
    /// counts, because a spin loop may use any memory ordering.
    pub(crate) fn is_ordering(kind: &OpKind) -> bool {
        match kind {
            OpKind::Load(access) => !access.is_plain(),
            OpKind::Store(access)
            | OpKind::AtomicRmw(_, access)
            | OpKind::CmpXchg { access, .. } => access.is_ordering(),
            OpKind::Fence { .. } | OpKind::Foreign(_) => true,
            _ => false,
        }
    }
    /// Returns the summary of an unknown function: all effects.
    pub fn unknown() -> FunctionEffects {
        FunctionEffects {
            params: Vec::new(),
            variadic: ParamEffects {
                reads: Extent::Object,
                writes: Extent::Object,
                frees: true,
                captures: true,
                returned: true,
            },
            globals: BTreeMap::new(),
            reachable: AccessSummary::BOTH,
            frees_other: true,
            errno: AccessSummary::BOTH,
            inaccessible: AccessSummary::BOTH,
            returns_fresh: false,
            fresh_holds_pointers: true,
            fresh_may_be_cyclic: true,
            returns_other: true,
            may_throw: true,
            may_not_return: true,
            calls_unknown: true,
            may_sync_ranks: false,
            synchronizes: true,
        }
    }
    /// Returns the effects on argument `index`.
    pub fn param(&self, index: usize) -> ParamEffects {
        self.params.get(index).copied().unwrap_or(self.variadic)
    }
    /// Returns a mutable reference to the effects on argument `index` and extends `params` up to `index`.
    pub(crate) fn param_mut(&mut self, index: usize) -> &mut ParamEffects {
        if index >= self.params.len() {
            self.params.resize(index + 1, self.variadic);
        }
        &mut self.params[index]
    }
    fn any_param(&self, what: impl Fn(&ParamEffects) -> bool) -> bool {
        self.params.iter().any(&what) || what(&self.variadic)
    }
    /// Returns true if the function writes or frees memory reachable by the program, except `errno`.
    pub fn writes_memory(&self) -> bool {
        self.reachable.writes
            || self.synchronizes
            || self.frees_other
            || self.globals.values().any(|t| t.writes)
            || self.any_param(|p| !p.writes.is_nothing() || p.frees)
    }
    /// Returns true if the function reads memory reachable by the program, except `errno`.
    pub fn reads_memory(&self) -> bool {
        self.reachable.reads
            || self.synchronizes
            || self.globals.values().any(|t| t.reads)
            || self.any_param(|p| !p.reads.is_nothing())
    }
    /// Returns true if the result depends on the arguments' values alone and repeated calls change only
    /// `errno`. The function may still throw or not return.
    pub fn is_pure(&self) -> bool {
        !self.writes_memory()
            && !self.reads_memory()
            && !self.errno.reads
            && self.inaccessible == AccessSummary::NONE
            && !self.returns_fresh
    }
}

/// Effects of all functions of a call graph and of their external callees. Valid until the first edit of a
/// body. Functions created later are answered from their attributes.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    summaries: HashMap<FuncId, FunctionEffects>,
    /// The effects of external functions that were asked for.
    external: RefCell<HashMap<FuncId, (ExternalState, FunctionEffects)>>,
}

impl PartialEq for Effects {
    fn eq(&self, other: &Effects) -> bool {
        self.summaries == other.summaries
    }
}

impl Eq for Effects {}

impl Effects {
    /// Computes the summaries of a call graph's bodies, callees before callers.
    pub fn of(unit: &Unit, closure: &CallGraph) -> Effects {
        let mut effects = Effects::default();
        for component in closure.components() {
            summaries::component(unit, closure, &mut effects, component);
        }
        effects
    }
    /// Returns the summary of a function with a body in the call graph.
    pub fn of_function(&self, func: FuncId) -> Option<&FunctionEffects> {
        self.summaries.get(&func)
    }
    pub(crate) fn set(&mut self, func: FuncId, summary: FunctionEffects) {
        self.summaries.insert(func, summary);
    }

    /// Returns the effects of a function without a summary, computed again only if the function has changed.
    fn of_external(&self, unit: &Unit, func: FuncId) -> FunctionEffects {
        let mut known = self.external.borrow_mut();
        match known.get(&func) {
            Some((state, found)) if state.holds(unit, func) => found.clone(),
            _ => {
                let found = external_effects::outside_function(unit, func);
                let state = ExternalState::of(unit, func);
                known.insert(func, (state, found.clone()));
                found
            }
        }
    }

    /// Returns the effects of a `call` or `invoke`: the callee's summary, refined by the attributes of the
    /// call site.
    pub fn of_call(&self, unit: &Unit, body: &Body, op: Op) -> FunctionEffects {
        let seen = unit
            .callee(body, op)
            .and_then(|func| self.of_function(func));
        let mut found = match (unit.callee(body, op), seen) {
            (None, _) => FunctionEffects::unknown(),
            (Some(_), Some(summary)) => summary.clone(),
            (Some(func), None) => self.of_external(unit, func),
        };
        if let Some(attrs) = body.kind(op).call_info().and_then(|info| info.attrs) {
            match seen {
                Some(_) => external_effects::refine(&mut found, unit.attrs(attrs)),
                None => external_effects::refine_external(&mut found, unit.attrs(attrs)),
            }
        }
        let callee = unit.known_callee(body, op);
        if callee == Some(ExternalFn::System(SystemFn::Print)) {
            let args = unit.call_args(body, op).into_iter();
            for (param, arg) in found.params.iter_mut().zip(args) {
                if is_standard_stream(unit, body, arg) {
                    param.writes = Extent::Nothing;
                }
            }
        }
        found
    }

    /// Returns the memory accesses of an op, without the ops in its regions.
    pub fn of_op(&self, unit: &Unit, body: &Body, op: Op) -> Vec<MemoryAccess> {
        let mut list = AccessList {
            unit,
            body,
            op,
            found: Vec::new(),
        };
        match body.kind(op) {
            OpKind::Load(access) => {
                let size = list.size_of(body.ty(body.result(op)));
                list.at(AccessKind::Read, body.operand(op, 0), size);
                list.add_ordering(access);
            }
            OpKind::Store(access) => {
                let size = list.size_of(body.ty(body.operand(op, 0)));
                list.at(AccessKind::Write, body.operand(op, 1), size);
                list.add_ordering(access);
            }
            OpKind::AtomicRmw(_, access) | OpKind::CmpXchg { access, .. } => {
                let size = list.size_of(body.ty(body.operand(op, 1)));
                list.at(AccessKind::Read, body.operand(op, 0), size);
                list.at(AccessKind::Write, body.operand(op, 0), size);
                list.add_ordering(access);
            }
            OpKind::Fence { .. } => list.place(AccessKind::Write, MemoryRegion::Reachable),
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(&mut list),
            OpKind::Resume => list.place(AccessKind::Read, MemoryRegion::Reachable),
            OpKind::Foreign(_) => {
                list.place(AccessKind::Read, MemoryRegion::Reachable);
                list.place(AccessKind::Write, MemoryRegion::Reachable);
                list.place(AccessKind::Free, MemoryRegion::Reachable);
                list.place(AccessKind::Write, MemoryRegion::Errno);
                list.place(AccessKind::Write, MemoryRegion::Inaccessible);
            }
            scalar_ops!()
            | OpKind::Freeze
            | OpKind::Alloca(_)
            | OpKind::Addr { .. }
            | OpKind::LandingPad(_) => {}
            // The walk visits the ops in their regions one by one.
            OpKind::If
            | OpKind::Switch(_)
            | OpKind::Loop { .. }
            | OpKind::For { .. }
            | OpKind::Scope
            | OpKind::Spawn { .. }
            | OpKind::ParFor { .. }
            | OpKind::Spmd { .. }
            | OpKind::ShareFor { .. }
            | OpKind::Single { .. }
            | OpKind::Critical(_) => {}
            // Synchronisation ops order accesses of other ops and access no program memory themselves.
            OpKind::Sync | OpKind::Barrier(_) => {}
            OpKind::Yield | OpKind::Repeat | OpKind::Return | OpKind::Unreachable => {}
        }
        list.found
    }

    fn call(&self, list: &mut AccessList) {
        let known = list.unit.known_callee(list.body, list.op);
        match known {
            Some(ExternalFn::Memory(id)) if list.add_copy_or_fill(id) => return,
            Some(ExternalFn::Marker(
                CompilerIntrinsic::LifetimeStart | CompilerIntrinsic::LifetimeEnd,
            )) => {
                return list.lifetime();
            }
            Some(ExternalFn::Marker(CompilerIntrinsic::StackRestore)) => {
                return list.place(AccessKind::Free, MemoryRegion::Frame);
            }
            _ => {}
        }
        list.summary(&self.of_call(list.unit, list.body, list.op));
    }
}

/// Returns true if a pointer is loaded from a standard stream variable. A write to a standard stream
/// changes only memory of the C library, like `printf` without a stream argument.
fn is_standard_stream(unit: &Unit, body: &Body, pointer: Value) -> bool {
    let variable = body
        .def_op(pointer)
        .filter(|op| matches!(body.kind(*op), OpKind::Load(_)))
        .and_then(|load| body.as_const(body.operand(load, 0)));
    let Some(ConstKind::Global { global, .. }) = variable.map(|id| &unit.constant(id).kind) else {
        return false;
    };
    let variable = &unit.globals[*global];
    !variable.defined && is_stream_variable(&variable.name)
}

/// Collects the accesses of one op.
struct AccessList<'a> {
    unit: &'a Unit,
    body: &'a Body,
    op: Op,
    found: Vec<MemoryAccess>,
}

impl AccessList<'_> {
    fn push(&mut self, kind: AccessKind, place: MemoryRegion, offset: i64, size: Option<u64>) {
        self.found.push(MemoryAccess {
            op: self.op,
            kind,
            place,
            offset,
            size,
            count: None,
            meta: self.body.ops[self.op].meta,
        });
    }
    fn at(&mut self, kind: AccessKind, ptr: Value, size: Option<u64>) {
        self.push(kind, MemoryRegion::At(ptr), 0, size);
    }
    fn place(&mut self, kind: AccessKind, place: MemoryRegion) {
        self.push(kind, place, 0, None);
    }
    /// Returns the store size of a type in bytes; `None` for scalable vectors.
    fn size_of(&self, ty: TypeId) -> Option<u64> {
        match self.unit.types.get(ty) {
            Type::Vector { scalable: true, .. } => None,
            _ => Some(self.unit.layout.store_bytes(self.unit, ty)),
        }
    }
    /// Adds the ordering effects of an access. Volatile accesses stay in order among themselves. An acquire
    /// or release makes writes of other threads visible.
    fn add_ordering(&mut self, access: &Access) {
        if access.volatile {
            self.place(AccessKind::Write, MemoryRegion::Inaccessible);
        }
        if access.is_ordering() {
            self.place(AccessKind::Write, MemoryRegion::Reachable);
        }
    }
    /// Adds the accesses of memory copies and fills, sized by the size argument. Returns false for other
    /// functions.
    fn add_copy_or_fill(&mut self, id: MemoryFn) -> bool {
        use MemoryFn::*;
        let (to, from, size) = match id {
            Memcpy | MemcpyIntrinsic | Memmove | MemmoveIntrinsic | Mempcpy => (0, Some(1), 2),
            Memset | MemsetIntrinsic => (0, None, 2),
            Bcopy => (1, Some(0), 2),
            Bzero => (0, None, 1),
            _ => return false,
        };
        let args = self.unit.call_args(self.body, self.op);
        let (Some(&to), Some(&count)) = (args.get(to), args.get(size)) else {
            return false;
        };
        let bytes = self.body.as_int(self.unit, count).map(|n| n as u64);
        if let Some(&from) = from.and_then(|i| args.get(i)) {
            self.at(AccessKind::Read, from, bytes);
        }
        self.at(AccessKind::Write, to, bytes);
        if bytes.is_none() {
            self.found.iter_mut().for_each(|a| a.count = Some(count));
        }
        true
    }
    fn lifetime(&mut self) {
        for arg in self.unit.call_args(self.body, self.op) {
            if self.unit.types.is_ptr(self.body.ty(arg)) {
                self.at(AccessKind::Lifetime, arg, None);
            }
        }
    }
    fn touch(&mut self, place: MemoryRegion, touch: AccessSummary) {
        if touch.reads {
            self.place(AccessKind::Read, place);
        }
        if touch.writes {
            self.place(AccessKind::Write, place);
        }
    }
    fn summary(&mut self, summary: &FunctionEffects) {
        for (index, arg) in (self.unit.call_args(self.body, self.op).into_iter()).enumerate() {
            if !self.unit.types.is_ptr(self.body.ty(arg)) {
                continue;
            }
            let param = summary.param(index);
            self.extent(AccessKind::Read, arg, param.reads);
            self.extent(AccessKind::Write, arg, param.writes);
            if param.frees {
                self.at(AccessKind::Free, arg, None);
            }
        }
        for (&global, &touch) in &summary.globals {
            self.touch(MemoryRegion::Global(global), touch);
        }
        self.touch(MemoryRegion::Reachable, summary.reachable);
        if summary.frees_other {
            self.place(AccessKind::Free, MemoryRegion::Reachable);
        }
        self.touch(MemoryRegion::Errno, summary.errno);
        self.touch(MemoryRegion::Inaccessible, summary.inaccessible);
        // Attributes describe accesses of the function itself, not writes of other threads before it
        // returns.
        if summary.synchronizes {
            self.touch(MemoryRegion::Reachable, AccessSummary::BOTH);
        }
    }
    fn extent(&mut self, kind: AccessKind, ptr: Value, extent: Extent) {
        match extent {
            Extent::Nothing => {}
            Extent::Bytes(from, to) => {
                let size = u64::try_from(to.saturating_sub(from)).ok();
                self.push(kind, MemoryRegion::At(ptr), from, size);
            }
            Extent::Object => self.at(kind, ptr, None),
        }
    }
}
