//! What ops and functions do to memory and control.
//!
//! [`Effects::of_op`] lists the accesses of one op. Calls are answered from summaries of functions:
//! computed for bodies, bottom-up over the call graph; read off the table of known functions and the
//! host's attributes for the others. What is not known reads and writes all that the program can
//! reach. `errno` and memory that the program has no pointer to are places of their own.

use crate::attributes;
use crate::closure::Closure;
use crate::summary;
use gradus_ir::known::{Known, MarkerFn, MemoryFn, SystemFn, is_stream_variable};
use gradus_ir::{
    Access, Body, ConstKind, FuncId, GlobalId, MetaId, Op, OpKind, Type, TypeId, Unit, Value,
};
use std::collections::{BTreeMap, HashMap};

/// How memory is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is given back (`free`, `realloc`, `delete`, a stack restore).
    Free,
    /// It begins or ceases to live (lifetime markers): its contents are lost.
    Lifetime,
}

/// Which memory is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The memory that a pointer points to.
    At(Value),
    /// A global variable.
    Global(GlobalId),
    /// Any memory that is not provably the function's own.
    Reachable,
    /// Stack memory of dynamic size.
    Frame,
    /// `errno`.
    Errno,
    /// Memory that the program has no pointer to: the allocator's state, files, clocks, the
    /// floating-point environment.
    Inaccessible,
}

/// One touch of memory by an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The op.
    pub op: Op,
    /// How.
    pub kind: AccessKind,
    /// Which memory.
    pub place: Place,
    /// Bytes from the place's start to the first byte touched.
    pub offset: i64,
    /// The number of bytes touched, at most; `None`: any part of the object, before the start too.
    pub size: Option<u64>,
    /// The number of bytes touched from there on, where only a value tells it.
    pub count: Option<Value>,
    /// What the host stated about the access.
    pub meta: Option<MetaId>,
}

impl MemoryAccess {
    /// The pointer accessed through.
    pub fn ptr(&self) -> Option<Value> {
        match self.place {
            Place::At(value) => Some(value),
            _ => None,
        }
    }
    /// Whether it changes or ends what was there.
    pub fn destroys(&self) -> bool {
        self.kind != AccessKind::Read
    }
}

/// Which bytes behind a pointer are touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// None.
    #[default]
    Nothing,
    /// Those from the first number up to the second, counted from where the pointer points.
    Bytes(i64, i64),
    /// Any of the object.
    Object,
}

impl Extent {
    /// Whether no byte is touched.
    pub fn is_nothing(self) -> bool {
        self == Extent::Nothing
    }
    /// The hull of both.
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

/// What a function does with one pointer argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamEffects {
    /// What it reads through it.
    pub reads: Extent,
    /// What it writes through it.
    pub writes: Extent,
    /// Whether it may free what it points to.
    pub frees: bool,
    /// Whether it keeps the pointer, or hands out pointers that lie behind it, beyond the call
    /// other than by returning it.
    pub captures: bool,
    /// Whether its result may be this pointer, or point into the same object.
    pub returned: bool,
}

/// Reading and writing of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Whether it is read.
    pub reads: bool,
    /// Whether it is written.
    pub writes: bool,
}

impl Touch {
    /// Neither.
    pub const NONE: Touch = Touch {
        reads: false,
        writes: false,
    };
    /// Both.
    pub const BOTH: Touch = Touch {
        reads: true,
        writes: true,
    };
    /// The touches of both.
    #[must_use]
    pub fn or(self, other: Touch) -> Touch {
        Touch {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
        }
    }
    /// The touches that both allow.
    #[must_use]
    pub fn and(self, other: Touch) -> Touch {
        Touch {
            reads: self.reads && other.reads,
            writes: self.writes && other.writes,
        }
    }
}

/// What a function may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionEffects {
    /// By argument.
    pub params: Vec<ParamEffects>,
    /// With further arguments, those that [`FunctionEffects::params`] does not list.
    pub further: ParamEffects,
    /// With global variables by name.
    pub globals: BTreeMap<GlobalId, Touch>,
    /// With other memory that the program can reach: through loaded pointers, or unknown.
    pub other: Touch,
    /// Whether it may free memory other than its arguments'.
    pub frees_other: bool,
    /// With `errno`.
    pub errno: Touch,
    /// With memory that the program has no pointer to.
    pub inaccessible: Touch,
    /// Whether its result, if not null, is memory that nobody else knows of.
    pub returns_fresh: bool,
    /// Whether the fresh memory may hold pointers.
    pub fresh_holds_pointers: bool,
    /// Whether such pointers may lead back into it: then others than the caller's copy of its address point there.
    pub fresh_leads_back: bool,
    /// Whether its result may be a pointer that is neither an argument's nor fresh.
    pub returns_other: bool,
    /// Whether an exception may leave it.
    pub may_throw: bool,
    /// Whether it may fail to come back: by ending the program, or by running for ever.
    pub may_not_return: bool,
    /// Whether code that is not known may run.
    pub calls_unknown: bool,
    /// Whether ranks of an `spmd` around the call wait for each other in it, as far as its code is known.
    pub waits: bool,
    /// Whether what other threads wrote is seen behind it: it acquires, releases, or is not known.
    pub orders: bool,
}

impl FunctionEffects {
    /// What an op itself adds to [`FunctionEffects::orders`], calls apart. A loop that waits may read in any order.
    pub(crate) fn is_ordering(kind: &OpKind) -> bool {
        match kind {
            OpKind::Load(access) => !access.is_plain(),
            OpKind::Store(access)
            | OpKind::AtomicRmw(_, access)
            | OpKind::CmpXchg { access, .. } => access.orders(),
            OpKind::Fence { .. } | OpKind::Foreign(_) => true,
            _ => false,
        }
    }
    /// Everything.
    pub fn unknown() -> FunctionEffects {
        FunctionEffects {
            params: Vec::new(),
            further: ParamEffects {
                reads: Extent::Object,
                writes: Extent::Object,
                frees: true,
                captures: true,
                returned: true,
            },
            globals: BTreeMap::new(),
            other: Touch::BOTH,
            frees_other: true,
            errno: Touch::BOTH,
            inaccessible: Touch::BOTH,
            returns_fresh: false,
            fresh_holds_pointers: true,
            fresh_leads_back: true,
            returns_other: true,
            may_throw: true,
            may_not_return: true,
            calls_unknown: true,
            waits: false,
            orders: true,
        }
    }
    /// What it does with argument `index`.
    pub fn param(&self, index: usize) -> ParamEffects {
        self.params.get(index).copied().unwrap_or(self.further)
    }
    /// What it does with argument `index`, to be changed; lists the arguments up to there.
    pub(crate) fn param_mut(&mut self, index: usize) -> &mut ParamEffects {
        if index >= self.params.len() {
            self.params.resize(index + 1, self.further);
        }
        &mut self.params[index]
    }
    fn any_param(&self, what: impl Fn(&ParamEffects) -> bool) -> bool {
        self.params.iter().any(&what) || what(&self.further)
    }
    /// Whether it writes or frees memory that the program can reach, `errno` apart.
    pub fn writes_memory(&self) -> bool {
        self.other.writes
            || self.orders
            || self.frees_other
            || self.globals.values().any(|t| t.writes)
            || self.any_param(|p| !p.writes.is_nothing() || p.frees)
    }
    /// Whether it reads memory that the program can reach, `errno` apart.
    pub fn reads_memory(&self) -> bool {
        self.other.reads
            || self.orders
            || self.globals.values().any(|t| t.reads)
            || self.any_param(|p| !p.reads.is_nothing())
    }
    /// Whether its result depends on its arguments' values alone and a second call changes nothing,
    /// except for `errno`; it may still throw or not return.
    pub fn is_pure(&self) -> bool {
        !self.writes_memory()
            && !self.reads_memory()
            && !self.errno.reads
            && self.inaccessible == Touch::NONE
            && !self.returns_fresh
    }
}

/// The effects of all functions of a closure and of those that it calls. Valid until the first
/// edit of a body; functions made later are answered from their attributes.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    summaries: HashMap<FuncId, FunctionEffects>,
}

impl Effects {
    /// Summaries for the bodies of a closure, callees before callers.
    pub fn of(unit: &Unit, closure: &Closure) -> Effects {
        let mut effects = Effects::default();
        for component in closure.components() {
            summary::component(unit, closure, &mut effects, component);
        }
        effects
    }
    /// The summary of a function with a body in the closure.
    pub fn of_function(&self, func: FuncId) -> Option<&FunctionEffects> {
        self.summaries.get(&func)
    }
    pub(crate) fn set(&mut self, func: FuncId, summary: FunctionEffects) {
        self.summaries.insert(func, summary);
    }

    /// What a `call` or `invoke` does: the callee's summary, narrowed by what the host states about
    /// this call.
    pub fn of_call(&self, unit: &Unit, body: &Body, op: Op) -> FunctionEffects {
        let seen = unit
            .callee(body, op)
            .and_then(|func| self.of_function(func));
        let mut found = match (unit.callee(body, op), seen) {
            (None, _) => FunctionEffects::unknown(),
            (Some(_), Some(summary)) => summary.clone(),
            (Some(func), None) => attributes::outside_function(unit, func),
        };
        if let Some(attrs) = body.kind(op).call_info().and_then(|info| info.attrs) {
            match seen {
                Some(_) => attributes::narrow(&mut found, unit.attrs(attrs)),
                None => attributes::narrow_unseen(&mut found, unit.attrs(attrs)),
            }
        }
        let callee = unit.callee(body, op).and_then(|func| unit.known(func));
        if callee == Some(Known::System(SystemFn::Print)) {
            let args = unit.call_args(body, op).into_iter();
            for (param, arg) in found.params.iter_mut().zip(args) {
                if is_standard_stream(unit, body, arg) {
                    param.writes = Extent::Nothing;
                }
            }
        }
        found
    }

    /// The memory that an op itself touches, without the ops in its regions.
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
                list.order(access);
            }
            OpKind::Store(access) => {
                let size = list.size_of(body.ty(body.operand(op, 0)));
                list.at(AccessKind::Write, body.operand(op, 1), size);
                list.order(access);
            }
            OpKind::AtomicRmw(_, access) | OpKind::CmpXchg { access, .. } => {
                let size = list.size_of(body.ty(body.operand(op, 1)));
                list.at(AccessKind::Read, body.operand(op, 0), size);
                list.at(AccessKind::Write, body.operand(op, 0), size);
                list.order(access);
            }
            OpKind::Fence { .. } => list.place(AccessKind::Write, Place::Reachable),
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(&mut list),
            OpKind::Resume => list.place(AccessKind::Read, Place::Reachable),
            OpKind::Foreign(_) => {
                list.place(AccessKind::Read, Place::Reachable);
                list.place(AccessKind::Write, Place::Reachable);
                list.place(AccessKind::Free, Place::Reachable);
                list.place(AccessKind::Write, Place::Errno);
                list.place(AccessKind::Write, Place::Inaccessible);
            }
            OpKind::Binary(_)
            | OpKind::FNeg
            | OpKind::Cast(_)
            | OpKind::ICmp(_)
            | OpKind::FCmp(_)
            | OpKind::Select
            | OpKind::Freeze
            | OpKind::ExtractElement
            | OpKind::InsertElement
            | OpKind::Shuffle(_)
            | OpKind::ExtractValue(_)
            | OpKind::InsertValue(_)
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
            // They order the accesses of other ops, and access no memory of the program themselves.
            OpKind::Sync | OpKind::Barrier(_) => {}
            OpKind::Yield | OpKind::Repeat | OpKind::Return | OpKind::Unreachable => {}
        }
        list.found
    }

    fn call(&self, list: &mut AccessList) {
        let known = list
            .unit
            .callee(list.body, list.op)
            .and_then(|func| list.unit.known(func));
        match known {
            Some(Known::Memory(id)) if list.copies_or_fills(id) => return,
            Some(Known::Marker(MarkerFn::LifetimeStart | MarkerFn::LifetimeEnd)) => {
                return list.lifetime();
            }
            Some(Known::Marker(MarkerFn::StackRestore)) => {
                return list.place(AccessKind::Free, Place::Frame);
            }
            _ => {}
        }
        list.summary(&self.of_call(list.unit, list.body, list.op));
    }
}

/// Whether a pointer is that of a standard stream, as its variable holds it. Writing to such a stream changes
/// memory of the C library alone, as `printf`, which names none, does.
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

/// The accesses of one op, as they are found.
struct AccessList<'a> {
    unit: &'a Unit,
    body: &'a Body,
    op: Op,
    found: Vec<MemoryAccess>,
}

impl AccessList<'_> {
    fn push(&mut self, kind: AccessKind, place: Place, offset: i64, size: Option<u64>) {
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
        self.push(kind, Place::At(ptr), 0, size);
    }
    fn place(&mut self, kind: AccessKind, place: Place) {
        self.push(kind, place, 0, None);
    }
    /// The bytes of a value in memory; `None` where the target's vector length decides.
    fn size_of(&self, ty: TypeId) -> Option<u64> {
        match self.unit.types.get(ty) {
            Type::Vector { scalable: true, .. } => None,
            _ => Some(self.unit.layout.store_bytes(self.unit, ty)),
        }
    }
    /// Volatile accesses stay in order among themselves; what acquires or releases lets other
    /// threads' writes in.
    fn order(&mut self, access: &Access) {
        if access.volatile {
            self.place(AccessKind::Write, Place::Inaccessible);
        }
        if access.orders() {
            self.place(AccessKind::Write, Place::Reachable);
        }
    }
    /// Copies and fills touch as many bytes as their size argument says.
    fn copies_or_fills(&mut self, id: MemoryFn) -> bool {
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
    fn touch(&mut self, place: Place, touch: Touch) {
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
            self.touch(Place::Global(global), touch);
        }
        self.touch(Place::Reachable, summary.other);
        if summary.frees_other {
            self.place(AccessKind::Free, Place::Reachable);
        }
        self.touch(Place::Errno, summary.errno);
        self.touch(Place::Inaccessible, summary.inaccessible);
        // Attributes say what the function itself accesses, not what others did before it comes back.
        if summary.orders {
            self.touch(Place::Reachable, Touch::BOTH);
        }
    }
    fn extent(&mut self, kind: AccessKind, ptr: Value, extent: Extent) {
        match extent {
            Extent::Nothing => {}
            Extent::Bytes(from, to) => {
                let size = u64::try_from(to.saturating_sub(from)).ok();
                self.push(kind, Place::At(ptr), from, size);
            }
            Extent::Object => self.at(kind, ptr, None),
        }
    }
}
