//! Where the tape's parts lie in memory, and how they are read and written.
//!
//! Slots are allocas of a combined derivative, which LLVM turns into registers where it can, or
//! fields of one heap block: of the block that an augmented run hands to its return sweep, or of a
//! combined derivative's own where there are very many. Thousands of registers that live from one
//! sweep to the other cost LLVM time that grows with their square: a phi for each of them wherever
//! paths meet, and their live ranges. Frames are
//! structures `{previous frame, fields…}` on the tape's stack. All are ordinary memory, so that
//! derivatives of derivatives see nothing special; fields are addressed by their bytes, as a type of
//! thousands of fields would be walked for each of them.

use super::plan::Plan;
use super::stack::{self, StackFunctions};
use crate::facts::Length;
use crate::out::{Lanes, Out, Space};
use crate::variant::{TapeOwner, Variant};
use gradus_ir::{CastOp, Flags, Op, TypeId, Unit, Value};
use std::collections::HashMap;

/// Most slots that a combined derivative has in its own frame.
const FRAME_SLOTS_MAX: usize = 128;

/// Where the fields of a structure lie.
#[derive(Debug, Default)]
struct Record {
    offsets_bytes: Vec<i64>,
    size_bytes: i64,
}

impl Record {
    /// Fields one after the other, each aligned as its type asks for.
    fn of(unit: &Unit, types: impl Iterator<Item = TypeId>) -> Self {
        let mut record = Record::default();
        let mut end = 0;
        for ty in types {
            let start = u64::next_multiple_of(end, unit.layout.align_bytes(unit, ty));
            record.offsets_bytes.push(start as i64);
            end = start + unit.layout.size_bytes(unit, ty);
        }
        record.size_bytes = end.next_multiple_of(16) as i64;
        record
    }

    /// The address of a field.
    fn field(&self, out: &mut Out<'_>, base: Value, number: usize) -> Value {
        let offset = out.build().i64(self.offsets_bytes[number]);
        out.build().byte_addr(base, offset)
    }
}

/// Where the tape's parts lie in one function.
#[derive(Debug, Default)]
pub struct TapeLayout {
    slots: Vec<Value>,
    /// The block that holds the slots instead.
    block: Option<(Record, Value)>,
    frames: HashMap<Op, Record>,
    state: Option<Value>,
    stack: Option<StackFunctions>,
}

impl TapeLayout {
    /// In a combined derivative: slots and the stack's state are allocas, made at the current place.
    pub fn in_frame(out: &mut Out<'_>, plan: &Plan) -> Self {
        let mut layout = TapeLayout::common(out, plan);
        for &(_, ty) in &plan.slots {
            let slot = out.build().alloca(ty);
            layout.slots.push(slot);
        }
        if plan.uses_stack() {
            let ty = stack::state_type(out.unit);
            let state = out.build().alloca(ty);
            stack::initialise(out, state);
            layout.state = Some(state);
        }
        layout
    }

    /// Whether a combined derivative has more slots than its frame should hold, and so a block.
    pub fn needs_block(plan: &Plan) -> bool {
        plan.slots.len() > FRAME_SLOTS_MAX
    }

    /// Slots and the stack's state are fields of the block at `block`: in a split derivative, and in a
    /// combined one of very many slots.
    pub fn in_block(out: &mut Out<'_>, variant: &Variant, plan: &Plan, block: Value) -> Self {
        let mut layout = TapeLayout::common(out, plan);
        layout.block = Some((block_record(out.unit, variant, plan), block));
        layout.state = plan.uses_stack().then_some(block);
        layout
    }

    /// The address of the mark in a block that goes through the program's hands.
    pub fn mark(out: &mut Out<'_>, variant: &Variant, plan: &Plan, block: Value) -> Value {
        block_record(out.unit, variant, plan).field(out, block, plan.slots.len() + 1)
    }

    fn common(out: &mut Out<'_>, plan: &Plan) -> Self {
        let ptr = out.unit.types.ptr();
        let frames = plan.frames.iter().map(|(&at, fields)| {
            let types = std::iter::once(ptr).chain(fields.iter().map(|(_, ty)| *ty));
            (at, Record::of(out.unit, types))
        });
        let frames = frames.collect();
        let stack = plan.uses_stack().then(|| stack::functions(out.unit));
        TapeLayout {
            frames,
            stack,
            ..TapeLayout::default()
        }
    }

    /// The address of a slot.
    pub fn slot(&self, out: &mut Out<'_>, number: usize) -> Value {
        match &self.block {
            Some((record, block)) => record.field(out, *block, number + 1),
            None => self.slots[number],
        }
    }
    /// The address of a field of a frame.
    pub fn frame_field(&self, out: &mut Out<'_>, at: Op, frame: Value, number: usize) -> Value {
        self.frames[&at].field(out, frame, number + 1)
    }
    /// Pushes a frame of a `loop` and links it to the one before.
    pub fn push_frame(&self, out: &mut Out<'_>, at: Op, previous: Value) -> Option<Value> {
        let bytes = out.build().i64(self.frames[&at].size_bytes);
        let frame = self.push(out, bytes)?;
        out.store(previous, frame, Space::Tape, None);
        Some(frame)
    }
    /// The frame before.
    pub fn previous_frame(&self, out: &mut Out<'_>, frame: Value) -> Value {
        let ptr = out.unit.types.ptr();
        out.load(ptr, frame, Space::Tape, None)
    }
    /// Takes bytes off the tape's stack; a block of the heap where there is none.
    pub fn push(&self, out: &mut Out<'_>, bytes: Value) -> Option<Value> {
        Some(match (self.stack.as_ref(), self.state) {
            (Some(functions), Some(state)) => {
                let call = out.build().call(functions.push, &[state, bytes]);
                out.body.result(call)
            }
            _ => crate::alloc::block(&mut out.build(), bytes),
        })
    }
    /// Gives back what was pushed at `at` and since.
    pub fn release(&self, out: &mut Out<'_>, at: Value) {
        match (self.stack.as_ref(), self.state) {
            (Some(functions), Some(state)) => out.build().call(functions.release, &[state, at]),
            _ => {
                let free = crate::alloc::free_function(out.unit);
                out.build().call(free, &[at])
            }
        };
    }

    /// The address of a value in an array, by where it stands.
    pub fn element(
        &self,
        out: &mut Out<'_>,
        element: TypeId,
        base: Value,
        numbers: &[(Value, Option<Value>)],
    ) -> Value {
        let index = self.position(out, numbers);
        let ty = stored_type(out, element);
        out.build().addr(ty, base, index)
    }

    /// The address of an element of so many bytes, by where it stands.
    pub fn block(
        &self,
        out: &mut Out<'_>,
        bytes: Value,
        base: Value,
        numbers: &[(Value, Option<Value>)],
    ) -> Value {
        let index = self.position(out, numbers);
        let offset = exact(out, gradus_ir::BinaryOp::Mul, index, bytes);
        out.build().byte_addr(base, offset)
    }

    /// Where an element stands: of indices, and the trip counts of all but the outermost loop.
    fn position(&self, out: &mut Out<'_>, numbers: &[(Value, Option<Value>)]) -> Value {
        let mut linear = None;
        for &(index, trips) in numbers {
            let index = widen(out, index);
            linear = Some(match (linear, trips) {
                (Some(outer), Some(trips)) => {
                    let trips = widen(out, trips);
                    let row = exact(out, gradus_ir::BinaryOp::Mul, outer, trips);
                    exact(out, gradus_ir::BinaryOp::Add, row, index)
                }
                _ => index,
            });
        }
        linear.unwrap_or_else(|| out.build().i64(0))
    }

    /// A dimension's length, of the trip count that it depends on.
    pub fn length(&self, out: &mut Out<'_>, trips: Value, length: Length) -> Value {
        if length.more == 0 {
            return trips;
        }
        let trips = widen(out, trips);
        let more = out.build().i64(length.more);
        exact(out, gradus_ir::BinaryOp::Add, trips, more)
    }

    /// The bytes of a value in an array.
    pub fn value_bytes(&self, out: &mut Out<'_>, ty: TypeId) -> Value {
        let ty = stored_type(out, ty);
        let size = out.unit.layout.size_bytes(out.unit, ty);
        out.build().i64(size as i64)
    }

    /// The bytes from one copy of so many bytes to the next one in an array: each lies as a block of the heap
    /// would.
    pub fn copy_bytes(&self, out: &mut Out<'_>, bytes: Value) -> Value {
        let bytes = widen(out, bytes);
        let (more, mask) = (out.build().i64(15), out.build().i64(-16));
        let up = exact(out, gradus_ir::BinaryOp::Add, bytes, more);
        out.build().binary(gradus_ir::BinaryOp::And, up, mask)
    }

    /// The bytes of an array over loops with these trip counts, of elements of so many bytes.
    pub fn array_bytes(&self, out: &mut Out<'_>, element: Value, trips: &[Value]) -> Value {
        let mut bytes = element;
        for &trips in trips {
            let trips = widen(out, trips);
            bytes = exact(out, gradus_ir::BinaryOp::Mul, trips, bytes);
        }
        bytes
    }

    /// Reads a node's lanes.
    pub fn read(&self, out: &mut Out<'_>, address: Value, ty: TypeId, lanes: usize) -> Lanes {
        let stored = stored_type(out, ty);
        (0..lanes)
            .map(|lane| {
                let at = lane_address(out, stored, address, lane);
                let value = out.load(stored, at, Space::Tape, None);
                out.build().cast(CastOp::Trunc, value, ty)
            })
            .collect()
    }
    /// Writes a node's lanes.
    pub fn write(&self, out: &mut Out<'_>, address: Value, lanes: &[Value]) {
        for (lane, &value) in lanes.iter().enumerate() {
            let ty = out.body.ty(value);
            let stored = stored_type(out, ty);
            let at = lane_address(out, stored, address, lane);
            let value = out.build().cast(CastOp::ZExt, value, stored);
            out.store(value, at, Space::Tape, None);
        }
    }
}

/// A block: the stack's state, the slots, and a mark where it goes through the program's hands.
fn block_record(unit: &mut Unit, variant: &Variant, plan: &Plan) -> Record {
    let mut fields = vec![stack::state_type(unit)];
    fields.extend(plan.slots.iter().map(|(_, ty)| *ty));
    if variant.tape != TapeOwner::Derivative {
        fields.push(unit.types.int(64));
    }
    Record::of(unit, fields.into_iter())
}

/// The bytes of a block.
pub fn block_bytes(unit: &mut Unit, variant: &Variant, plan: &Plan) -> u64 {
    block_record(unit, variant, plan).size_bytes as u64
}

/// The type in which a value lies in memory: a truth value takes a byte.
pub fn stored_type(out: &mut Out<'_>, ty: TypeId) -> TypeId {
    match out.unit.types.get(ty) {
        gradus_ir::Type::Int(bits) if *bits < 8 => out.unit.types.int(8),
        _ => ty,
    }
}

fn lane_address(out: &mut Out<'_>, ty: TypeId, base: Value, lane: usize) -> Value {
    if lane == 0 {
        return base;
    }
    let lane = out.build().i64(lane as i64);
    out.build().addr(ty, base, lane)
}

/// An unsigned number as 64 bits.
pub fn widen(out: &mut Out<'_>, value: Value) -> Value {
    let wide = out.unit.types.int(64);
    let ty = out.body.ty(value);
    let op = match out.unit.types.int_bits(ty) {
        Some(bits) if bits > 64 => CastOp::Trunc,
        _ => CastOp::ZExt,
    };
    out.build().cast(op, value, wide)
}

/// Integer arithmetic on sizes, which cannot overflow as the memory exists.
fn exact(out: &mut Out<'_>, op: gradus_ir::BinaryOp, a: Value, b: Value) -> Value {
    let value = out.build().binary(op, a, b);
    out.build().set_flags(value, Flags::NUW.with(Flags::NSW));
    value
}
