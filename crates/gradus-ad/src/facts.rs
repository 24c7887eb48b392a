//! What the derivative of one body may rely on: the analyses' answers as tables of this crate.
//!
//! Made before anything is built, so that building may change the unit.

pub mod backwards;
pub mod carried_loads;
mod early;
mod frames;
mod frees;
mod from_globals;
mod influence;
mod late;
mod loops;
mod lost;
mod make;
mod own_adds;
mod replay;
mod scratch;
pub mod snapshots;
mod worked_in;

use crate::node::Node;
use crate::word_copy::WordCopy;
use gradus_analysis::{CallActivity, CopiedWord, CopyKind, Period, ShadowState};
use gradus_ir::{
    Body, CastOp, Code, Definition, Diagnostic, FloatKind, FuncId, GlobalId, LocId, Op, OpKind,
    Type, TypeId, Unit, Value,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use early::Length;
pub(crate) use influence::influence;
pub(crate) use loops::trips;
pub(crate) use make::MakeFacts;
pub(crate) use own_adds::{is_independent, is_of_iteration};
pub use replay::Repeatable;

/// A copy of more words than this is not written out word by word, nor one period of it.
const MOST_WORDS: usize = 256;

/// A float in the bits of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatLane {
    /// Bits from the least significant one.
    pub bit: u32,
    /// Its format.
    pub kind: FloatKind,
}

/// What an earlier plan of the same derivative chose.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// The loops whose iterations are run again in the return sweep.
    pub replayed: BTreeMap<Op, Repeatable>,
    /// The allocations whose blocks are freed where the program frees them.
    pub freed_at_once: BTreeSet<Op>,
}

/// What a derivative of one body relies on.
pub struct Facts<'a> {
    /// The primal.
    pub body: &'a Body,
    /// Whose body it is.
    pub func: FuncId,
    /// Tangents or cotangents that go along at once.
    pub width: usize,
    active: Vec<bool>,
    shadows: Vec<ShadowState>,
    lanes: HashMap<Value, Vec<FloatLane>>,
    pointer_lanes: HashSet<Value>,
    shadowed: HashSet<GlobalId>,
    stable: HashSet<Op>,
    lost: HashMap<Op, lost::Lost>,
    copies: HashMap<Op, CopyKind>,
    deferred: HashMap<Op, Op>,
    /// Of allocations whose frees wait: the addresses in blocks that hold numbers only.
    of_numbers: HashMap<Op, HashSet<Value>>,
    left: HashSet<Op>,
    on_heap: HashSet<Op>,
    late: HashSet<Value>,
    varying: HashMap<Value, Vec<Op>>,
    work: HashSet<Op>,
    outer: HashMap<Op, Vec<Value>>,
    calls: HashMap<Op, CallActivity>,
    redone_calls: HashSet<Op>,
    /// Those of them that touch no memory but what they read.
    reading_calls: HashSet<Op>,
    overwritten: HashMap<Op, Vec<bool>>,
    by_address: HashMap<Op, Vec<(FuncId, bool)>>,
    unhandled_calls: HashSet<Op>,
    never_made: HashSet<Op>,
    dead_stores: HashSet<Op>,
    doomed: HashSet<Op>,
    torn: HashSet<Op>,
    own_adds: HashSet<Op>,
    from_globals: HashSet<Op>,
    /// The snapshots that may be made.
    pub snapshots: Vec<snapshots::Snapshot>,
    served: HashMap<Op, usize>,
    backwards: HashMap<Value, backwards::Backwards>,
    carried_loads: HashMap<Value, carried_loads::CarriedLoad>,
    repeatable: BTreeMap<Op, Repeatable>,
    replayed: BTreeMap<Op, Repeatable>,
}

impl Facts<'_> {
    /// Whether a number carries a derivative.
    pub fn active(&self, value: Value) -> bool {
        self.active
            .get(gradus_ir::Entity::index(value))
            .copied()
            .unwrap_or(false)
    }
    /// Whether a pointer has, or may have, a shadow other than itself.
    pub fn has_shadow(&self, value: Value) -> bool {
        self.shadow_state(value) != ShadowState::None
    }
    /// Whether a pointer's shadow may be the pointer itself.
    pub fn shadow_may_be_primal(&self, value: Value) -> bool {
        self.shadow_state(value) == ShadowState::Maybe
    }
    /// The address that a pointer was computed from: one is its own shadow where the other is, and what
    /// is asked of the first does not change with the index.
    pub fn start_of(&self, ptr: Value) -> Value {
        let mut start = ptr;
        while let Some(op) = self.body.def_op(start)
            && let OpKind::Addr { .. } = self.body.kind(op)
            && self.shadow_may_be_primal(self.body.operand(op, 0))
        {
            start = self.body.operand(op, 0);
        }
        start
    }
    fn shadow_state(&self, value: Value) -> ShadowState {
        self.shadows
            .get(gradus_ir::Entity::index(value))
            .copied()
            .unwrap_or_default()
    }
    /// The floats in the bits of an integer; `None` for other values.
    pub fn lanes(&self, value: Value) -> Option<&[FloatLane]> {
        self.lanes.get(&value).map(Vec::as_slice)
    }
    /// Whether a value carries floats.
    pub fn holds_float(&self, unit: &Unit, value: Value) -> bool {
        crate::variant::carries_float(unit, self.body.ty(value)) || self.lanes.contains_key(&value)
    }
    /// Whether a value carries pointers.
    pub fn holds_pointer(&self, unit: &Unit, value: Value) -> bool {
        unit.types.is_ptr(self.body.ty(value)) || self.pointer_lanes.contains(&value)
    }
    /// Whether a global whose address is part of a constant has a shadow.
    pub fn is_shadowed(&self, global: GlobalId) -> bool {
        self.shadowed.contains(&global)
    }
    /// Whether what a load read is still there in the return sweep.
    pub fn is_stable(&self, op: Op) -> bool {
        self.stable.contains(&op)
    }
    /// The snapshot from which a load can be done again.
    pub fn snapshot_of(&self, load: Op) -> Option<usize> {
        self.served.get(&load).copied()
    }
    /// The snapshot in which a load leaves what it read.
    pub fn filled_by(&self, load: Op) -> Option<usize> {
        let number = self.snapshot_of(load)?;
        (self.snapshots[number].filler == Some(load)).then_some(number)
    }
    /// What a copy or fill of bytes moves.
    pub fn copy_kind(&self, op: Op) -> CopyKind {
        self.copies.get(&op).cloned().unwrap_or(CopyKind::Unknown)
    }
    /// What a copy of words of several kinds moves: all its words where it is short and of constant size,
    /// else those before the first period and of one. `None` where these are too many or there is no period, or
    /// where a copy overlaps whose periods begin behind a head.
    pub fn word_copy(&self, unit: &Unit, op: Op, bytes: Value, overlap: bool) -> Option<WordCopy> {
        let CopyKind::Words { words, period } = self.copy_kind(op) else {
            return None;
        };
        let size = self.body.as_int(unit, bytes);
        let all = size.and_then(|size| written_out(&words, period, u64::try_from(size).ok()?));
        let (words, period) = match (all, period) {
            (Some(all), _) => (all, None),
            (None, Some(period)) if words.len() <= MOST_WORDS && period.bytes > 0 => {
                (words, Some(period))
            }
            _ => return None,
        };
        if overlap && period.is_some_and(|period| period.from_bytes > 0) {
            return None;
        }
        Some(WordCopy {
            words,
            period,
            overlap,
        })
    }
    /// The finding for a copy of bytes that is not understood.
    pub fn unknown_copy(&self, unit: &Unit, op: Op) -> Diagnostic {
        Diagnostic::error(
            Code::UnknownMemoryType,
            "bytes are copied of which it cannot be told whether they are numbers or pointers",
        )
        .at(unit.span(self.body.ops[op].loc), "copied here")
        .help("copy field by field, or with a type that says what the bytes are")
    }
    /// Whether a fill overwrites pointers.
    pub fn fills_pointers(&self, op: Op) -> bool {
        !matches!(self.copy_kind(op), CopyKind::Floats(_) | CopyKind::Nothing)
    }
    /// Whether undoing an op takes anything.
    pub fn has_work(&self, op: Op) -> bool {
        self.work.contains(&op)
    }
    /// The active values from outside that an op's regions use actively.
    pub fn outer_active(&self, op: Op) -> &[Value] {
        self.outer.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Whether a call's callee has a derivative of its own.
    pub fn is_active_call(&self, op: Op) -> bool {
        self.calls.contains_key(&op)
    }
    /// What a call through a pointer may lead to, and whether each works on derivatives; `None` for
    /// other calls, and for those that work on none.
    pub fn pointer_targets(&self, op: Op) -> Option<&[(FuncId, bool)]> {
        self.by_address.get(&op).map(Vec::as_slice)
    }
    /// Whether a call goes through a pointer that can only be null, and works on derivatives.
    pub fn is_never_made(&self, op: Op) -> bool {
        self.never_made.contains(&op)
    }
    /// Whether nobody reads what a store writes.
    pub fn is_dead_store(&self, op: Op) -> bool {
        self.dead_stores.contains(&op)
    }
    /// Whether an op stands on a way out of the function other than its return.
    pub fn is_doomed(&self, op: Op) -> bool {
        self.doomed.contains(&op)
    }
    /// The value that a call, or an invoke with its handler beside it, gives.
    pub fn given(&self, op: Op) -> Option<Value> {
        gradus_analysis::given(self.body, op)
    }
    /// Whether a call may throw into a handler that goes on, after it wrote what carries derivatives.
    pub fn is_torn(&self, op: Op) -> bool {
        self.torn.contains(&op)
    }
    /// The finding for such a call.
    pub fn torn_call(&self, unit: &Unit, op: Op) -> Diagnostic {
        let what = self.describe(unit, op);
        let message = format!(
            "{what} may throw after it wrote memory that carries derivatives, and the exception is caught inside the function that is differentiated"
        );
        Diagnostic::error(Code::Exceptions, message)
            .at(unit.span(self.body.ops[op].loc), "called here")
            .help("check before anything is written, or let the exception leave the function that is differentiated")
    }
    /// Whether no other iteration of the parallel loops around a load adds to its place.
    pub fn adds_alone(&self, load: Op) -> bool {
        self.own_adds.contains(&load)
    }
    /// Whether a call works on derivatives and nothing is known of its own derivative.
    pub fn is_unhandled_call(&self, op: Op) -> bool {
        self.unhandled_calls.contains(&op)
    }
    /// The finding for such a call.
    pub fn unhandled_call(&self, unit: &Unit, op: Op) -> Diagnostic {
        let code = match unit.callee(self.body, op) {
            Some(_) => Code::UnknownCallee,
            None => Code::UnknownTarget,
        };
        let what = self.describe(unit, op);
        Diagnostic::error(code, format!("the derivative of {what} is not known"))
            .at(
                unit.span(self.body.ops[op].loc),
                "it works on active values",
            )
            .help("give the source of what is called, or mark its arguments inactive")
    }
    /// The finding for a structure that has no derivative yet.
    pub fn unhandled_structure(&self, unit: &Unit, op: Op) -> Diagnostic {
        let (code, what, help) = match self.body.kind(op) {
            OpKind::Invoke(_) => (
                Code::Exceptions,
                "a call whose handler and whose way on do not part",
                "move the `try` block into a function of its own",
            ),
            _ => (
                Code::OpenMp,
                "a parallel construct",
                "build without it, or move this out of the function",
            ),
        };
        Diagnostic::error(code, format!("{what} cannot be differentiated"))
            .at(unit.span(self.body.ops[op].loc), "here")
            .help(help)
    }
    /// Whether a call is done again by its whole derivative in the return sweep: it writes nothing,
    /// and what it read is still there.
    pub fn redo_call(&self, op: Op) -> bool {
        self.redone_calls.contains(&op)
    }
    /// Whether such a call touches no memory but what it reads.
    pub(crate) fn only_reads(&self, op: Op) -> bool {
        self.reading_calls.contains(&op)
    }
    /// Whether the stack that another derivative's tape is, of this state, lives and dies in this body: then
    /// nothing is given back of it before the return sweep. Others are ordinary memory.
    pub fn stack_stays(&self, state: Value) -> bool {
        self.body.def_op(state).is_some_and(|made| {
            let in_frame = matches!(self.body.kind(made), OpKind::Alloca(_));
            in_frame || self.deferred_free_of(made).is_some()
        })
    }
    /// Whether what an allocation makes is left in memory of the caller, with its shadow.
    pub fn is_left(&self, allocation: Op) -> bool {
        self.left.contains(&allocation)
    }
    /// The source location of what gives a node: of a carried value, that of its loop.
    pub fn location(&self, node: Node) -> Option<LocId> {
        let op = match node {
            Node::Primal(value) | Node::Shadow(value) => match self.body.values[value].def {
                Definition::Param(region, _) => self.body.owner(region)?,
                _ => self.body.def_op(value)?,
            },
            Node::Count(op) | Node::CalleeTape(op) | Node::LastFrame(op) => op,
            Node::Snapshot(number) | Node::SnapshotBlock(number) => self.snapshots[number].anchor,
            Node::Base(_) | Node::Room(_) => return None,
        };
        self.body.ops[op].loc
    }
    /// The type of a node, and the number of its values: one, or one for each shadow.
    pub fn node_type(&self, unit: &mut Unit, node: Node) -> (TypeId, usize) {
        match node {
            Node::Primal(value) => (self.body.ty(value), 1),
            Node::Shadow(value) => (self.body.ty(value), self.width),
            Node::Count(_) => (unit.types.int(64), 1),
            _ => (unit.types.ptr(), 1),
        }
    }
    /// The type that a node has in memory.
    pub fn kept_type(&self, unit: &mut Unit, node: Node, width: u32) -> TypeId {
        let (ty, lanes) = self.node_type(unit, node);
        let ty = match unit.types.get(ty) {
            Type::Int(bits) if *bits < 8 => unit.types.int(8),
            _ => ty,
        };
        match lanes {
            1 => ty,
            _ => unit.types.array(ty, u64::from(width)),
        }
    }
    /// The bytes that keeping a node once takes.
    pub fn kept_bytes(&self, unit: &Unit, node: Node, width: u32) -> u64 {
        match node {
            Node::Primal(value) => unit.layout.size_bytes(unit, self.body.ty(value)),
            Node::Shadow(_) => unit.layout.pointer_bytes * u64::from(width),
            _ => 8,
        }
    }
    /// What an op is called in a message.
    pub fn describe(&self, unit: &Unit, op: Op) -> String {
        match self.body.kind(op) {
            OpKind::Call(_) | OpKind::Invoke(_) => match unit.callee(self.body, op) {
                Some(func) => format!("`{}`", unit.functions[func].name),
                None => "a call through a pointer".to_string(),
            },
            OpKind::Cast(CastOp::BitCast) => "a change of type of the same bits".to_string(),
            OpKind::Binary(op) => format!("`{op:?}`").to_lowercase(),
            OpKind::Foreign(_) => "an instruction that only LLVM understands".to_string(),
            other => {
                let text = format!("{other:?}");
                let name = text
                    .split(|c: char| !c.is_alphanumeric())
                    .next()
                    .unwrap_or_default();
                format!("`{}`", name.to_lowercase())
            }
        }
    }
}

/// The words of a copy of so many bytes, one period after the other; `None` where they are too many.
fn written_out(words: &[CopiedWord], period: Option<Period>, size: u64) -> Option<Vec<CopiedWord>> {
    let (from, period) = match period {
        Some(period) => (period.from_bytes, period.bytes.max(1)),
        None => (size, 1),
    };
    let (head, repeated) = words.split_at(words.partition_point(|word| word.offset_bytes < from));
    let there = |word: &&CopiedWord| word.offset_bytes < size;
    let mut all: Vec<CopiedWord> = head.iter().filter(there).copied().collect();
    if repeated.is_empty() {
        return Some(all);
    }
    for start in (0..size.saturating_sub(from)).step_by(period as usize) {
        for word in repeated {
            let offset_bytes = start + word.offset_bytes;
            all.extend((offset_bytes < size).then_some(CopiedWord {
                offset_bytes,
                ..*word
            }));
        }
        if all.len() > MOST_WORDS {
            return None;
        }
    }
    Some(all)
}
