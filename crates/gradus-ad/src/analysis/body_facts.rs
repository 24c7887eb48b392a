//! Analysis results that the derivative of one body relies on, as tables of this crate.
//!
//! The tables are filled before any emission, because emission changes the unit.

pub(crate) mod alias_assumptions;
mod build;
pub mod copied_cells;
mod deferred_frees;
mod early_availability;
mod exclusive_adds;
mod forward_slice;
mod from_globals;
mod in_place_snapshots;
pub mod invertible_inductions;
mod lazy_shadows;
pub(crate) mod loop_info;
mod loop_scratch;
mod overwritten_loads;
mod recomputable_loops;
pub mod reloadable_carried;
pub mod snapshots;
mod stack_lifetime;
pub(crate) mod word_offsets;

use crate::analysis::forward_value::Node;
use gradus_analysis::{CallActivity, CopyKind, ShadowState};
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{
    Body, CastOp, Code, Definition, Diagnostic, FloatKind, FuncId, GlobalId, LocId, Op, OpKind,
    Type, TypeId, Unit, Value,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(crate) use crate::analysis::body_facts::build::FactsBuilder;
pub use crate::analysis::body_facts::early_availability::EarlyLength;
pub(crate) use crate::analysis::body_facts::exclusive_adds::is_allocated_in_iteration;
pub(crate) use crate::analysis::body_facts::forward_slice::forward_slice;
pub(crate) use crate::analysis::body_facts::loop_info::estimate_trip_count;
pub use crate::analysis::body_facts::overwritten_loads::Clobber;
pub use crate::analysis::body_facts::recomputable_loops::RecomputableLoop;

/// A float in a bit range of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatBitRange {
    /// First bit, counted from the least significant bit.
    pub start_bit: u32,
    /// Float format.
    pub kind: FloatKind,
}

/// Choices of an earlier plan for the same derivative.
#[derive(Clone, Debug, Default)]
pub struct PlanChoices {
    /// Loops whose iterations are recomputed in the reverse pass.
    pub recomputed_loops: BTreeMap<Op, RecomputableLoop>,
    /// Allocations whose blocks are freed at the program's own `free`.
    pub freed_early: BTreeSet<Op>,
}

/// Begin of the names of the C++ runtime's functions for exceptions.
const EXCEPTION_PREFIX: &str = "__cxa_";

/// Memory that holds floats and pointers at different times, as a union does.
///
/// The shadow of a float is an adjoint, and the shadow of a pointer is an address. Each store that ends the life of an
/// address in shadow memory therefore clears the shadow: the store of a float in the forward pass, and the reversed
/// store of a pointer in the reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternatingMemory {
    /// Only the program accesses the memory.
    Own,
    /// Callers access the memory. Its shadow has the callers' adjoints, which a store must not clear. A `double` absorbs
    /// the bits of an address, which are a number below 1e-308; shorter formats do not.
    Caller,
}

/// Integers that hold addresses (Note [Address words] in gradus-analysis).
#[derive(Debug, Default)]
struct AddressWords {
    /// Terms and results of arithmetic.
    values: HashSet<Value>,
    /// Stores of integers to words that may hold an address at another time.
    clears: HashSet<Op>,
}

/// Facts about one body, read by tape plan, forward pass and reverse pass.
pub struct BodyFacts<'a> {
    /// The primal.
    pub body: &'a Body,
    /// The function of the body.
    pub func: FuncId,
    /// Number of tangents or cotangents in a batch.
    pub width: usize,
    active: Vec<bool>,
    shadows: Vec<ShadowState>,
    float_bit_ranges: HashMap<Value, Vec<FloatBitRange>>,
    aggregate_floats: HashMap<Value, Vec<FloatBitRange>>,
    pointer_bit_ranges: HashSet<Value>,
    address_words: AddressWords,
    shadowed_globals: HashSet<GlobalId>,
    stable_loads: HashSet<Op>,
    clobbered_loads: HashMap<Op, overwritten_loads::Clobber>,
    copies: HashMap<Op, CopyKind>,
    alternating_stores: HashMap<Op, AlternatingMemory>,
    integer_stores: HashSet<Op>,
    converted_numbers: HashSet<Op>,
    tested_conversions: HashSet<Op>,
    tested_names: HashSet<Op>,
    deferred_frees: HashMap<Op, Op>,
    /// Per allocation with a deferred free: the addresses in a block that holds no pointers.
    private_block_addresses: HashMap<Op, HashSet<Value>>,
    outliving_blocks: HashSet<Op>,
    heap_allocas: HashSet<Op>,
    word_offsets: HashMap<Op, u32>,
    lazy_shadow_addresses: HashSet<Value>,
    varying_loops: HashMap<Value, Vec<Op>>,
    reversed_ops: HashSet<Op>,
    outer: HashMap<Op, Vec<Value>>,
    calls: HashMap<Op, CallActivity>,
    recomputed_calls: HashSet<Op>,
    /// Subset of `recomputed_calls` whose only effect on memory is reads.
    read_only_calls: HashSet<Op>,
    overwritten: HashMap<Op, Vec<bool>>,
    pointer_targets: HashMap<Op, Vec<(FuncId, bool)>>,
    unhandled_calls: HashSet<Op>,
    null_calls: HashSet<Op>,
    dead_stores: HashSet<Op>,
    noreturn_ops: HashSet<Op>,
    unwinds_after_write: HashSet<Op>,
    exclusive_adds: HashSet<Op>,
    tested_global_loads: HashSet<Op>,
    /// Candidate snapshots.
    pub snapshots: Vec<snapshots::Snapshot>,
    serving_snapshot: HashMap<Op, usize>,
    invertible_inductions: HashMap<Value, invertible_inductions::InvertibleInduction>,
    reloadable_carried: HashMap<Value, reloadable_carried::ReloadableCarried>,
    recomputable_loops: BTreeMap<Op, RecomputableLoop>,
    recomputed_loops: BTreeMap<Op, RecomputableLoop>,
}

impl BodyFacts<'_> {
    /// Returns true if a value carries a derivative.
    pub fn is_active(&self, value: Value) -> bool {
        self.active
            .get(gradus_ir::Entity::index(value))
            .copied()
            .unwrap_or(false)
    }
    /// Returns true if a pointer has, or may have, a shadow that differs from the pointer.
    pub fn has_shadow(&self, value: Value) -> bool {
        self.shadow_state(value) != ShadowState::None
    }
    /// Returns true if the shadow of a pointer may be the pointer itself.
    pub fn shadow_may_be_primal(&self, value: Value) -> bool {
        self.shadow_state(value) == ShadowState::Maybe
    }
    /// Returns the base of a chain of address computations. An address is its own shadow exactly if its base
    /// is, and the test on the base is invariant in the index.
    pub fn address_base(&self, ptr: Value) -> Value {
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
    /// Returns the floats in an aggregate, also those in members of integer type; `None` for other values.
    pub fn aggregate_floats(&self, value: Value) -> Option<&[FloatBitRange]> {
        self.aggregate_floats.get(&value).map(Vec::as_slice)
    }
    /// Returns the floats in the bit ranges of an integer; `None` for other values.
    pub fn float_bit_ranges(&self, value: Value) -> Option<&[FloatBitRange]> {
        self.float_bit_ranges.get(&value).map(Vec::as_slice)
    }
    /// Returns true if a value carries floats.
    pub fn holds_float(&self, unit: &Unit, value: Value) -> bool {
        crate::variant::carries_float(unit, self.body.ty(value))
            || self.float_bit_ranges.contains_key(&value)
            || self.aggregate_floats.contains_key(&value)
    }
    /// Returns true if all floats of a value are doubles.
    pub fn holds_doubles(&self, unit: &Unit, value: Value) -> bool {
        match self.float_bit_ranges(value) {
            Some(ranges) => ranges.iter().all(|range| range.kind == FloatKind::F64),
            None => {
                let scalar = unit.types.scalar(self.body.ty(value));
                unit.types.float_kind(scalar) == Some(FloatKind::F64)
            }
        }
    }
    /// Returns true if a value carries pointers.
    pub fn holds_pointer(&self, unit: &Unit, value: Value) -> bool {
        unit.types.is_ptr(self.body.ty(value)) || self.pointer_bit_ranges.contains(&value)
    }
    /// Returns true for an integer that holds an address and takes part in arithmetic.
    pub fn is_address_word(&self, value: Value) -> bool {
        self.address_words.values.contains(&value)
    }
    /// Returns true for a store of an integer to a word that may hold an address at another time.
    pub fn clears_address_word(&self, op: Op) -> bool {
        self.address_words.clears.contains(&op)
    }
    /// Returns whose memory a store writes that holds floats and pointers at different times; `None` for other memory.
    pub fn alternating_memory(&self, op: Op) -> Option<AlternatingMemory> {
        self.alternating_stores.get(&op).copied()
    }
    /// Returns true for a store of an integer to words that may hold a float or an address at another time.
    pub fn is_integer_in_words(&self, op: Op) -> bool {
        self.integer_stores.contains(&op)
    }
    /// Returns true for a store of an integer that depends on an active float by a conversion.
    pub fn stores_converted_number(&self, op: Op) -> bool {
        self.converted_numbers.contains(&op)
    }
    /// Returns true for a conversion of a word of run-time kind: the derivative tests for an integer.
    pub fn is_tested_conversion(&self, op: Op) -> bool {
        self.tested_conversions.contains(&op)
    }
    /// Returns true for a conversion of an integer by name, from memory that also holds floats: the derivative tests for
    /// an integer.
    pub fn is_tested_name(&self, op: Op) -> bool {
        self.tested_names.contains(&op)
    }
    /// Returns true if the reversed store of `value` clears the shadow: the value is a pointer, and floats were there
    /// before.
    pub fn clears_shadow_in_reverse(&self, unit: &Unit, op: Op, value: Value) -> bool {
        self.alternating_memory(op) == Some(AlternatingMemory::Own)
            && self.holds_pointer(unit, value)
            && !is_planted(Mutant::PointerStoreKeepsShadow)
    }
    /// Returns the diagnostic for a store of short floats to memory of the caller that also holds pointers.
    pub fn alternating_memory_error(&self, unit: &Unit, op: Op) -> Diagnostic {
        Diagnostic::error(
            Code::UnknownMemoryType,
            "memory of the caller holds floating-point values and pointers in the same bytes",
        )
        .at(
            unit.span(self.body.ops[op].loc),
            "a floating-point value is stored here",
        )
        .help("use separate members for floating-point values and pointers, or `double` values")
    }
    /// Returns true if a global whose address is part of a constant has a shadow.
    pub fn is_shadowed(&self, global: GlobalId) -> bool {
        self.shadowed_globals.contains(&global)
    }
    /// Returns true if the memory that a load reads is unchanged in the reverse pass.
    pub fn is_stable(&self, op: Op) -> bool {
        self.stable_loads.contains(&op)
    }
    /// Returns the snapshot from which a load can be recomputed.
    pub fn snapshot_of(&self, load: Op) -> Option<usize> {
        self.serving_snapshot.get(&load).copied()
    }
    /// Returns the snapshot that a load fills with the loaded values.
    pub fn snapshot_filled_by(&self, load: Op) -> Option<usize> {
        let number = self.snapshot_of(load)?;
        (self.snapshots[number].filler == Some(load)).then_some(number)
    }
    /// Returns true if the reversal of an op emits code.
    pub fn has_reversal(&self, op: Op) -> bool {
        self.reversed_ops.contains(&op)
    }
    /// Returns the active values defined outside an op's regions and used actively inside.
    pub fn outer_active(&self, op: Op) -> &[Value] {
        self.outer.get(&op).map_or(&[], Vec::as_slice)
    }
    /// Returns true if a call is active and has a derivative variant of its callee.
    pub fn is_active_call(&self, op: Op) -> bool {
        self.calls.contains_key(&op)
    }
    /// Returns the possible callees of an indirect call, each with its activity; `None` for direct calls and
    /// for inactive calls.
    pub fn pointer_targets(&self, op: Op) -> Option<&[(FuncId, bool)]> {
        self.pointer_targets.get(&op).map(Vec::as_slice)
    }
    /// Returns true if an active call goes through a pointer that can only be null.
    pub fn is_null_call(&self, op: Op) -> bool {
        self.null_calls.contains(&op)
    }
    /// Returns true if the value that a store writes is never read.
    pub fn is_dead_store(&self, op: Op) -> bool {
        self.dead_stores.contains(&op)
    }
    /// Returns true if an op lies on a no-return path.
    pub fn is_on_noreturn_path(&self, op: Op) -> bool {
        self.noreturn_ops.contains(&op)
    }
    /// Returns the result of a call. The result of an invoke comes from its normal path.
    pub fn call_result(&self, op: Op) -> Option<Value> {
        gradus_analysis::visible_call_result(self.body, op)
    }
    /// Returns true if a call may throw after a write to active memory, and a handler in the active extent
    /// catches the exception.
    pub fn may_unwind_after_write(&self, op: Op) -> bool {
        self.unwinds_after_write.contains(&op)
    }
    /// Returns the diagnostic for a call that may throw after a write to active memory.
    pub fn torn_write_error(&self, unit: &Unit, op: Op) -> Diagnostic {
        let what = self.describe(unit, op);
        let message = format!(
            "{what} may throw after a write to active memory, and a handler in the differentiated code catches the exception"
        );
        Diagnostic::error(Code::Exceptions, message)
            .at(unit.span(self.body.ops[op].loc), "called here")
            .help("throw before the first write to active memory, or let the exception leave the differentiated function")
    }
    /// Returns true if no other iteration of the enclosing parallel loops accumulates into the location of a
    /// load.
    pub fn add_is_exclusive(&self, load: Op) -> bool {
        self.exclusive_adds.contains(&load)
    }
    /// Returns true if a call is active and its callee has no known derivative.
    pub fn is_unhandled_call(&self, op: Op) -> bool {
        self.unhandled_calls.contains(&op)
    }
    /// Returns the diagnostic for an active call without a known derivative.
    pub fn unhandled_call_error(&self, unit: &Unit, op: Op) -> Diagnostic {
        let place = unit.span(self.body.ops[op].loc);
        let callee = unit.callee(self.body, op);
        if callee.is_some_and(|func| unit.functions[func].name.starts_with(EXCEPTION_PREFIX)) {
            return Diagnostic::error(Code::Exceptions, "a thrown object carries active values")
                .at(place, "thrown here")
                .help("return the values instead of throwing them, or throw an object without active values");
        }
        let code = match unit.callee(self.body, op) {
            Some(_) => Code::UnknownCallee,
            None => Code::UnknownIndirectTarget,
        };
        let what = self.describe(unit, op);
        Diagnostic::error(code, format!("no derivative is known for {what}"))
            .at(place, "the call works on active values")
            .help("compile the source of the callee together with this file, or mark the arguments inactive")
    }
    /// Returns the diagnostic for a region op that has no derivative.
    pub fn unhandled_region_error(&self, unit: &Unit, op: Op) -> Diagnostic {
        let (code, what, help) = match self.body.kind(op) {
            OpKind::Invoke(_) => (
                Code::Exceptions,
                "a call whose normal path and exception handler are not separate",
                "move the `try` block to a separate function",
            ),
            _ => (
                Code::OpenMp,
                "a parallel construct",
                "replace the construct by serial code, or move the construct out of the differentiated function",
            ),
        };
        Diagnostic::error(code, format!("{what} cannot be differentiated"))
            .at(unit.span(self.body.ops[op].loc), "here")
            .help(help)
    }
    /// Returns true if the whole derivative of a call runs in the reverse pass: the call has no side effects,
    /// and the memory that the call reads is unchanged.
    pub fn is_recomputed_call(&self, op: Op) -> bool {
        self.recomputed_calls.contains(&op)
    }
    /// Returns true if the only effect of a recomputed call on memory is reads.
    pub(crate) fn is_read_only_call(&self, op: Op) -> bool {
        self.read_only_calls.contains(&op)
    }
    /// Returns true if the tape stack of another derivative, with the given state, is allocated and freed in
    /// this body. The derivative then pops nothing of such a stack before the reverse pass. Any other tape
    /// stack is ordinary memory.
    pub fn tape_stack_is_local(&self, state: Value) -> bool {
        self.body.def_op(state).is_some_and(|made| {
            let in_frame = matches!(self.body.kind(made), OpKind::Alloca(_));
            in_frame || self.deferred_free_of(made).is_some()
        })
    }
    /// Returns true if a block and its shadow outlive the call, because memory of the caller may hold their
    /// addresses.
    pub fn outlives_call(&self, allocation: Op) -> bool {
        self.outliving_blocks.contains(&allocation)
    }
    /// Returns the source location of the op that defines a forward value. The location of a carried value is
    /// that of its loop.
    pub fn location(&self, node: Node) -> Option<LocId> {
        let op = match node {
            Node::Primal(value) | Node::Shadow(value) => match self.body.values[value].def {
                Definition::Param(region, _) => self.body.owner(region)?,
                _ => self.body.def_op(value)?,
            },
            Node::TripCount(op) | Node::CalleeTape(op) | Node::LastFrame(op) => op,
            Node::Snapshot(number) | Node::SnapshotBlock(number) => self.snapshots[number].anchor,
            Node::ArrayBase(_) | Node::Room(_) => return None,
        };
        self.body.ops[op].loc
    }
    /// Returns the type of a forward value, and the number of values: one, or one per shadow.
    pub fn node_type(&self, unit: &mut Unit, node: Node) -> (TypeId, usize) {
        match node {
            Node::Primal(value) => (self.body.ty(value), 1),
            Node::Shadow(value) => (self.body.ty(value), self.width),
            Node::TripCount(_) => (unit.types.int(64), 1),
            _ => (unit.types.ptr(), 1),
        }
    }
    /// Returns the type of a forward value in memory.
    pub fn saved_type(&self, unit: &mut Unit, node: Node, width: u32) -> TypeId {
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
    /// Returns the bytes per save of a forward value.
    pub fn saved_bytes(&self, unit: &Unit, node: Node, width: u32) -> u64 {
        match node {
            Node::Primal(value) => unit.layout.size_bytes(unit, self.body.ty(value)),
            Node::Shadow(_) => unit.layout.pointer_bytes * u64::from(width),
            _ => 8,
        }
    }
    /// Returns the name of an op for messages.
    pub fn describe(&self, unit: &Unit, op: Op) -> String {
        match self.body.kind(op) {
            OpKind::Call(_) | OpKind::Invoke(_) => match unit.callee(self.body, op) {
                Some(func) => format!("`{}`", unit.functions[func].display_name()),
                None => "an indirect call".to_string(),
            },
            OpKind::Cast(CastOp::BitCast) => "a bitcast".to_string(),
            OpKind::Binary(op) => format!("`{op:?}`").to_lowercase(),
            OpKind::Foreign(_) => "an opaque LLVM instruction".to_string(),
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
