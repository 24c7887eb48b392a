//! Tape layout: memory locations of slots, frames and arrays, and their reads and writes.
//!
//! Slots are allocas of a combined derivative, which LLVM promotes to registers if possible, or fields of one
//! heap block. The block is the tape that an augmented primal passes to its reverse pass, or private memory
//! of a combined derivative with very many slots. LLVM's compile time is quadratic in the number of registers
//! that are live from forward pass to reverse pass: each of them has a phi at every merge point, and long
//! live ranges.
//!
//! Frames are structs `{previous frame, fields…}` on the tape stack. All tape memory is ordinary memory,
//! which keeps derivatives differentiable. Fields are addressed by byte offset, because LLVM would traverse a
//! struct type with thousands of fields for each access.

use super::plan::TapePlan;
use crate::analysis::body_facts::EarlyLength;
use crate::emit::builder::{DerivativeBuilder, Lanes, MemorySpace, widen};
use crate::tape::segments;
use crate::tape::segments::StackFunctions;
use crate::variant::{TapeOwner, Variant};
use gradus_ir::{CastOp, Flags, Op, TypeId, Unit, Value};
use std::collections::HashMap;

/// Limit on the number of slots in the stack frame of a combined derivative.
const FRAME_SLOTS_MAX: usize = 128;

/// Field offsets of a struct.
#[derive(Debug, Default)]
struct FieldLayout {
    offsets_bytes: Vec<i64>,
    size_bytes: i64,
}

impl FieldLayout {
    /// Lays out fields in order, each at the alignment of its type.
    fn of(unit: &Unit, types: impl Iterator<Item = TypeId>) -> Self {
        let mut record = FieldLayout::default();
        let mut end = 0;
        for ty in types {
            let start = u64::next_multiple_of(end, unit.layout.align_bytes(unit, ty));
            record.offsets_bytes.push(start as i64);
            end = start + unit.layout.size_bytes(unit, ty);
        }
        record.size_bytes = end.next_multiple_of(16) as i64;
        record
    }

    /// Emits the address of a field.
    fn field(&self, out: &mut DerivativeBuilder<'_>, base: Value, number: usize) -> Value {
        let offset = out.build().i64(self.offsets_bytes[number]);
        out.build().byte_addr(base, offset)
    }
}

/// Tape layout of one function.
#[derive(Debug, Default)]
pub struct TapeLayout {
    slots: Vec<Value>,
    /// The block that holds the slots, in place of allocas.
    block: Option<(FieldLayout, Value)>,
    frames: HashMap<Op, FieldLayout>,
    state: Option<Value>,
    stack: Option<StackFunctions>,
}

impl TapeLayout {
    /// Creates the layout of a combined derivative: slots and the stack's state are allocas at the insertion
    /// point.
    pub fn in_frame(out: &mut DerivativeBuilder<'_>, plan: &TapePlan) -> Self {
        let mut layout = TapeLayout::common(out, plan);
        for &(_, ty) in &plan.slots {
            let slot = out.build().alloca(ty);
            layout.slots.push(slot);
        }
        if plan.uses_stack() {
            let ty = segments::state_type(out.unit);
            let state = out.build().alloca(ty);
            segments::initialise(out, state);
            layout.state = Some(state);
        }
        layout
    }

    /// Returns true if a combined derivative has too many slots for its stack frame and requires a block.
    pub fn needs_block(plan: &TapePlan) -> bool {
        plan.slots.len() > FRAME_SLOTS_MAX
    }

    /// Creates a layout with slots and the stack's state in the block at `block`: for split derivatives, and
    /// for combined derivatives with very many slots.
    pub fn in_block(
        out: &mut DerivativeBuilder<'_>,
        variant: &Variant,
        plan: &TapePlan,
        block: Value,
    ) -> Self {
        let mut layout = TapeLayout::common(out, plan);
        layout.block = Some((block_record(out.unit, variant, plan), block));
        layout.state = plan.uses_stack().then_some(block);
        layout
    }

    /// Emits the address of the tag in a block that passes through the program.
    pub fn mark(
        out: &mut DerivativeBuilder<'_>,
        variant: &Variant,
        plan: &TapePlan,
        block: Value,
    ) -> Value {
        block_record(out.unit, variant, plan).field(out, block, plan.slots.len() + 1)
    }

    fn common(out: &mut DerivativeBuilder<'_>, plan: &TapePlan) -> Self {
        let ptr = out.unit.types.ptr();
        let frames = plan.frames.iter().map(|(&at, fields)| {
            let types = std::iter::once(ptr).chain(fields.iter().map(|(_, ty)| *ty));
            (at, FieldLayout::of(out.unit, types))
        });
        let frames = frames.collect();
        let stack = plan.uses_stack().then(|| segments::functions(out.unit));
        TapeLayout {
            frames,
            stack,
            ..TapeLayout::default()
        }
    }

    /// Emits the address of a slot.
    pub fn slot(&self, out: &mut DerivativeBuilder<'_>, number: usize) -> Value {
        match &self.block {
            Some((record, block)) => record.field(out, *block, number + 1),
            None => self.slots[number],
        }
    }
    /// Emits the address of a field of a frame.
    pub fn frame_field(
        &self,
        out: &mut DerivativeBuilder<'_>,
        at: Op,
        frame: Value,
        number: usize,
    ) -> Value {
        self.frames[&at].field(out, frame, number + 1)
    }
    /// Pushes a frame of a `loop` and links the frame to the previous one.
    pub fn push_frame(
        &self,
        out: &mut DerivativeBuilder<'_>,
        at: Op,
        previous: Value,
    ) -> Option<Value> {
        let bytes = out.build().i64(self.frames[&at].size_bytes);
        let frame = self.push(out, bytes)?;
        out.store(previous, frame, MemorySpace::Tape, None);
        Some(frame)
    }
    /// Loads the link to the previous frame.
    pub fn previous_frame(&self, out: &mut DerivativeBuilder<'_>, frame: Value) -> Value {
        let ptr = out.unit.types.ptr();
        out.load(ptr, frame, MemorySpace::Tape, None)
    }
    /// Allocates bytes on the tape stack, or as a heap block if the function has no stack.
    pub fn push(&self, out: &mut DerivativeBuilder<'_>, bytes: Value) -> Option<Value> {
        Some(match (self.stack.as_ref(), self.state) {
            (Some(functions), Some(state)) => {
                let call = out.build().call(functions.push, &[state, bytes]);
                out.body.result(call)
            }
            _ => crate::emit::libc::private_block(&mut out.build(), bytes),
        })
    }
    /// Releases the allocation at `at` and all younger allocations.
    pub fn release(&self, out: &mut DerivativeBuilder<'_>, at: Value) {
        match (self.stack.as_ref(), self.state) {
            (Some(functions), Some(state)) => out.build().call(functions.release, &[state, at]),
            _ => {
                let free = gradus_edit::declare_free(out.unit);
                out.build().call(free, &[at])
            }
        };
    }

    /// Emits the address of a value in an array, from its indices.
    pub fn element(
        &self,
        out: &mut DerivativeBuilder<'_>,
        element: TypeId,
        base: Value,
        numbers: &[(Value, Option<Value>)],
    ) -> Value {
        let index = self.linear_index(out, numbers);
        let ty = stored_type(out, element);
        out.build().addr(ty, base, index)
    }

    /// Emits the address of an element of `bytes` bytes, from its indices.
    pub fn block(
        &self,
        out: &mut DerivativeBuilder<'_>,
        bytes: Value,
        base: Value,
        numbers: &[(Value, Option<Value>)],
    ) -> Value {
        let index = self.linear_index(out, numbers);
        let offset = exact_arithmetic(out, gradus_ir::BinaryOp::Mul, index, bytes);
        out.build().byte_addr(base, offset)
    }

    /// Emits the linear index of an element, from indices and the trip counts of all loops except the
    /// outermost one.
    fn linear_index(
        &self,
        out: &mut DerivativeBuilder<'_>,
        numbers: &[(Value, Option<Value>)],
    ) -> Value {
        let mut linear = None;
        for &(index, trips) in numbers {
            let index = widen(out, index);
            linear = Some(match (linear, trips) {
                (Some(outer), Some(trips)) => {
                    let trips = widen(out, trips);
                    let row = exact_arithmetic(out, gradus_ir::BinaryOp::Mul, outer, trips);
                    exact_arithmetic(out, gradus_ir::BinaryOp::Add, row, index)
                }
                _ => index,
            });
        }
        linear.unwrap_or_else(|| out.build().i64(0))
    }

    /// Emits the length of a dimension, from the trip count that the length depends on.
    pub fn length(
        &self,
        out: &mut DerivativeBuilder<'_>,
        trips: Value,
        length: EarlyLength,
    ) -> Value {
        if length.plus == 0 {
            return trips;
        }
        let trips = widen(out, trips);
        let more = out.build().i64(length.plus);
        exact_arithmetic(out, gradus_ir::BinaryOp::Add, trips, more)
    }

    /// Emits the size in bytes of a value in an array.
    pub fn value_bytes(&self, out: &mut DerivativeBuilder<'_>, ty: TypeId) -> Value {
        let ty = stored_type(out, ty);
        let size = out.unit.layout.size_bytes(out.unit, ty);
        out.build().i64(size as i64)
    }

    /// Emits the distance in bytes between copies of `bytes` bytes in an array: each copy is aligned like a
    /// heap block.
    pub fn copy_stride_bytes(&self, out: &mut DerivativeBuilder<'_>, bytes: Value) -> Value {
        let bytes = widen(out, bytes);
        let (more, mask) = (out.build().i64(15), out.build().i64(-16));
        let up = exact_arithmetic(out, gradus_ir::BinaryOp::Add, bytes, more);
        out.build().binary(gradus_ir::BinaryOp::And, up, mask)
    }

    /// Emits the size in bytes of an array over loops with the given trip counts, for elements of `element`
    /// bytes.
    pub fn array_bytes(
        &self,
        out: &mut DerivativeBuilder<'_>,
        element: Value,
        trips: &[Value],
    ) -> Value {
        let mut bytes = element;
        for &trips in trips {
            let trips = widen(out, trips);
            bytes = exact_arithmetic(out, gradus_ir::BinaryOp::Mul, trips, bytes);
        }
        bytes
    }

    /// Reads a forward value, one value per batch element.
    pub fn read(
        &self,
        out: &mut DerivativeBuilder<'_>,
        address: Value,
        ty: TypeId,
        lanes: usize,
    ) -> Lanes {
        let stored = stored_type(out, ty);
        (0..lanes)
            .map(|lane| {
                let at = batch_element_address(out, stored, address, lane);
                let value = out.load(stored, at, MemorySpace::Tape, None);
                out.build().cast(CastOp::Trunc, value, ty)
            })
            .collect()
    }
    /// Writes a forward value, one value per batch element.
    pub fn write(&self, out: &mut DerivativeBuilder<'_>, address: Value, lanes: &[Value]) {
        for (lane, &value) in lanes.iter().enumerate() {
            let ty = out.body.ty(value);
            let stored = stored_type(out, ty);
            let at = batch_element_address(out, stored, address, lane);
            let value = out.build().cast(CastOp::ZExt, value, stored);
            out.store(value, at, MemorySpace::Tape, None);
        }
    }
}

/// Returns the layout of a block: the stack's state, the slots, and a tag if the block passes through the
/// program.
fn block_record(unit: &mut Unit, variant: &Variant, plan: &TapePlan) -> FieldLayout {
    let mut fields = vec![segments::state_type(unit)];
    fields.extend(plan.slots.iter().map(|(_, ty)| *ty));
    if variant.tape != TapeOwner::Derivative {
        fields.push(unit.types.int(64));
    }
    FieldLayout::of(unit, fields.into_iter())
}

/// Returns the size of a block in bytes.
pub fn block_bytes(unit: &mut Unit, variant: &Variant, plan: &TapePlan) -> u64 {
    block_record(unit, variant, plan).size_bytes as u64
}

/// Returns the type of a value in memory: a boolean occupies a byte.
pub fn stored_type(out: &mut DerivativeBuilder<'_>, ty: TypeId) -> TypeId {
    match out.unit.types.get(ty) {
        gradus_ir::Type::Int(bits) if *bits < 8 => out.unit.types.int(8),
        _ => ty,
    }
}

fn batch_element_address(
    out: &mut DerivativeBuilder<'_>,
    ty: TypeId,
    base: Value,
    lane: usize,
) -> Value {
    if lane == 0 {
        return base;
    }
    let lane = out.build().i64(lane as i64);
    out.build().addr(ty, base, lane)
}

/// Emits integer arithmetic on sizes, which cannot overflow because the memory exists.
fn exact_arithmetic(
    out: &mut DerivativeBuilder<'_>,
    op: gradus_ir::BinaryOp,
    a: Value,
    b: Value,
) -> Value {
    let value = out.build().binary(op, a, b);
    out.build().set_flags(value, Flags::NUW.with(Flags::NSW));
    value
}
