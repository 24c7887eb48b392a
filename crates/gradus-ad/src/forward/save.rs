//! Saving values to the tape according to the plan.

use super::ForwardPass;
use crate::analysis::forward_value::Node;
use crate::emit::builder::Lanes;
use crate::tape::layout::TapeLayout;
use crate::tape::plan::{
    ArrayElement, SaveLocation, TAIL_SLOT_BYTES, TapeArray, TapePlan, missing_value_error,
};
use crate::tape::segments::choose;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, IntPredicate, Op, Value};
use std::collections::HashMap;

/// The plan and the tape layout.
pub struct TapeWriter<'p> {
    /// The plan.
    pub plan: &'p TapePlan,
    /// The layout.
    pub layout: &'p TapeLayout,
    /// Frames of the current iterations.
    pub frames: HashMap<Op, Value>,
}

impl ForwardPass<'_, '_, '_, '_> {
    /// Saves a value and its shadow, if the plan requests the save.
    pub(super) fn save_value(&mut self, value: Value) {
        let Some(tape) = &self.tape else {
            // Not an error: forward mode saves nothing.
            return;
        };
        let (primal, shadow) = (Node::Primal(value), Node::Shadow(value));
        let kept = |node| tape.plan.locations.contains_key(&node);
        let (keep_primal, keep_shadow) = (kept(primal), kept(shadow));
        if keep_primal {
            let lanes = Lanes::from_elem(self.value(value), 1);
            self.write_once(primal, lanes);
        }
        if keep_shadow {
            let lanes = self.companion(value);
            self.write_once(shadow, lanes);
        }
    }

    /// Records a forward value other than an SSA value or shadow, and saves it if the plan requests the save.
    pub(super) fn save_forward_value(&mut self, node: Node, lanes: Lanes) {
        self.other_forward_values.insert(node, lanes.clone());
        let kept = self
            .tape
            .as_ref()
            .is_some_and(|t| t.plan.locations.contains_key(&node));
        if kept {
            self.write_once(node, lanes);
        }
    }

    /// Writes a forward value to its save location. If all iterations of a concurrent loop have an equal
    /// value, only the first iteration writes.
    fn write_once(&mut self, node: Node, lanes: Lanes) {
        let loops = self
            .tape
            .as_ref()
            .and_then(|t| t.plan.first_iteration_saves.get(&node));
        let loops: Vec<Op> = loops.cloned().unwrap_or_default();
        let mut first: Option<Value> = None;
        for at in loops {
            let index = self
                .facts
                .body
                .region_params(self.facts.body.op_regions(at)[0])[0];
            let index = self.value(index);
            let ty = self.out.body.ty(index);
            let zero = self.out.build().zero(ty);
            let here = self.out.build().icmp(IntPredicate::Eq, index, zero);
            first = Some(match first {
                Some(outer) => self.out.build().binary(BinaryOp::And, outer, here),
                None => here,
            });
        }
        let Some(first) = first else {
            return self.write_to_location(node, lanes);
        };
        let (_, yes, no) = self.out.build().if_(first, &[]);
        let outside = std::mem::replace(&mut self.out.insertion_point, (yes, None));
        self.write_to_location(node, lanes);
        self.out.build().yield_(&[]);
        self.out.insertion_point = (no, None);
        self.out.build().yield_(&[]);
        self.out.insertion_point = outside;
    }

    fn write_to_location(&mut self, node: Node, lanes: Lanes) {
        let Some(tape) = &self.tape else {
            return self.ice(None, "a value is saved without a tape");
        };
        let layout = tape.layout;
        let address = match tape.plan.locations[&node] {
            SaveLocation::SsaValue | SaveLocation::BlockElement(_) => return,
            SaveLocation::Slot(number) => layout.slot(self.out, number),
            SaveLocation::Frame(at, field) => match tape.frames.get(&at) {
                Some(&frame) => layout.frame_field(self.out, at, frame, field),
                None => {
                    return self.findings.push(missing_value_error(node));
                }
            },
            SaveLocation::Array(number) => {
                let array = &tape.plan.arrays[number];
                let ArrayElement::Value(ty) = array.element else {
                    return self.findings.push(missing_value_error(node));
                };
                let mut numbers = self.array_indices(layout, array);
                let Some(base) = self
                    .other_forward_values
                    .get(&Node::ArrayBase(number))
                    .map(|lanes| lanes[0])
                else {
                    return self.findings.push(missing_value_error(node));
                };
                if is_planted(Mutant::TapeIndicesReversed) && numbers.len() == 2 {
                    let (first, second) = (numbers[0].0, numbers[1].0);
                    (numbers[0].0, numbers[1].0) = (second, first);
                }
                layout.element(self.out, ty, base, &numbers)
            }
        };
        layout.write(self.out, address, &lanes);
    }

    /// Returns the current indices of an array's loops, and the lengths of all dimensions except the
    /// outermost one.
    fn array_indices(
        &mut self,
        layout: &TapeLayout,
        array: &TapeArray,
    ) -> Vec<(Value, Option<Value>)> {
        let body = self.facts.body;
        let mut numbers = Vec::new();
        for (&at, length) in array.loops.iter().zip(&array.lengths) {
            let index = self.value(body.region_params(body.op_regions(at)[0])[0]);
            let trips = match numbers.is_empty() {
                true => None,
                false => {
                    let trips = self.value(body.operand(length.of, 0));
                    Some(layout.length(self.out, trips, *length))
                }
            };
            numbers.push((index, trips));
        }
        numbers
    }

    /// Returns the address of the current element in an array of snapshots or tail slots.
    pub(super) fn current_block(&mut self, array: usize) -> Option<Value> {
        let tape = self.tape.as_ref()?;
        let (plan, layout) = (tape.plan, tape.layout);
        let base = self.other_forward_values.get(&Node::ArrayBase(array))?[0];
        let numbers = self.array_indices(layout, &plan.arrays[array]);
        let bytes = self.element_bytes(layout, plan.arrays[array].element);
        Some(layout.block(self.out, bytes, base, &numbers))
    }

    fn element_bytes(&mut self, layout: &TapeLayout, element: ArrayElement) -> Value {
        match element {
            ArrayElement::Value(ty) => layout.value_bytes(self.out, ty),
            ArrayElement::Snapshot(number) => {
                let bytes = self.copy_size(number);
                layout.copy_stride_bytes(self.out, bytes)
            }
            ArrayElement::Room => self.out.build().i64(TAIL_SLOT_BYTES),
        }
    }

    /// Allocates the arrays that the plan requests before an op.
    pub(super) fn allocate_arrays(&mut self, op: Op) {
        let Some(tape) = &self.tape else {
            // Not an error: forward mode saves nothing.
            return;
        };
        let (plan, layout) = (tape.plan, tape.layout);
        for &number in plan.anchored.get(&op).map_or(&[][..], Vec::as_slice) {
            let array = &plan.arrays[number];
            let mut trips = Vec::new();
            for length in &array.lengths {
                let count = self.early_trip_count(length.of, op);
                trips.push(layout.length(self.out, count, *length));
            }
            let element = self.element_bytes(layout, array.element);
            let mut bytes = layout.array_bytes(self.out, element, &trips);
            if let ArrayElement::Snapshot(number) = array.element {
                bytes = self.zero_if_unreached(bytes, self.facts.snapshots[number].anchor, op);
            }
            let base = match plan.locations.get(&Node::Room(number)) {
                Some(SaveLocation::BlockElement(rooms)) => self.tail_slot_or_block(*rooms, bytes),
                _ if array.on_heap => Some(crate::emit::libc::private_block(
                    &mut self.out.build(),
                    bytes,
                )),
                _ => layout.push(self.out, bytes),
            };
            match base {
                Some(base) => {
                    self.save_forward_value(Node::ArrayBase(number), Lanes::from_elem(base, 1))
                }
                None => self.ice(Some(op), "a tape array has no memory"),
            }
        }
    }

    /// Returns memory of `bytes` bytes: the current tail slot of an array, or a heap block.
    fn tail_slot_or_block(&mut self, rooms: usize, bytes: Value) -> Option<Value> {
        let room = self.current_block(rooms)?;
        let ptr = self.out.unit.types.ptr();
        let mut b = self.out.build();
        let most = b.i64(TAIL_SLOT_BYTES);
        let short = b.icmp(IntPredicate::Ule, bytes, most);
        choose(&mut b, short, &[ptr], |b, short| {
            Some(match short {
                true => room,
                false => crate::emit::libc::private_block(b, bytes),
            })
        })
    }

    /// Emits the trip count of a `for` loop within `anchor`, just before `anchor`. The trip count is zero if
    /// a branch that encloses the loop is not taken: under `if (n > 0)`, the count may have been computed as
    /// `n - 1` plus one.
    fn early_trip_count(&mut self, at: Op, anchor: Op) -> Value {
        let count = self.facts.body.operand(at, 0);
        let trips = self.early_value(count);
        self.zero_if_unreached(trips, at, anchor)
    }

    /// Emits `number`, or zero if control does not reach `at` within `anchor`, as far as the guards are known
    /// beforehand.
    fn zero_if_unreached(&mut self, number: Value, at: Op, anchor: Op) -> Value {
        let mut number = number;
        let ty = self.out.body.ty(number);
        for (condition, truth) in self.facts.guards_known_at(at, anchor) {
            let condition = self.early_value(condition);
            let none = self.out.build().zero(ty);
            number = match truth {
                true => self.out.build().select(condition, number, none),
                false => self.out.build().select(condition, none, number),
            };
        }
        number
    }

    /// Emits a value before control reaches its op, by recomputation from available values.
    pub(super) fn early_value(&mut self, value: Value) -> Value {
        let mut early: HashMap<Value, Value> = HashMap::new();
        for op in self
            .facts
            .early_ops(value, &|v| self.values.contains_key(&v))
        {
            let operands: Vec<Value> = self
                .facts
                .body
                .operands(op)
                .map(|v| early.get(&v).copied().unwrap_or_else(|| self.value(v)))
                .collect();
            let result = self.facts.body.result(op);
            let ty = self.facts.body.ty(result);
            let kind = self.facts.body.kind(op).clone();
            let new = self.out.build().value(kind, &operands, ty);
            early.insert(result, new);
        }
        early
            .get(&value)
            .copied()
            .unwrap_or_else(|| self.value(value))
    }

    /// Pushes the frame of an iteration.
    pub(super) fn push_frame(&mut self, op: Op, previous: Value) -> Option<Value> {
        let tape = self.tape.as_mut()?;
        let frame = tape.layout.push_frame(self.out, op, previous)?;
        tape.frames.insert(op, frame);
        Some(frame)
    }
}
