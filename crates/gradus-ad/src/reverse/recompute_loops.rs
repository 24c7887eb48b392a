//! Loop recomputation in the reverse pass: the tape of a recomputed iteration, and the request of the recomputation.
//!
//! `driver/recomputation_rounds.rs` selects the recomputed loops. A forward pass over one iteration recomputes the
//! iteration ([`crate::context::iteration`]).

use crate::analysis::body_facts::snapshots::SnapshotExtent;
use crate::analysis::forward_value::Node;
use crate::context::iteration::{IterationInputs, IterationState};
use crate::emit::builder::Lanes;
use crate::reverse::restore::Recall;
use crate::reverse::reverse_pass::ReversePass;
use crate::tape::layout::TapeLayout;
use crate::tape::plan::{ArrayElement, TAIL_SLOT_BYTES, missing_value_error};
use gradus_ir::{Op, Value};
use std::collections::HashMap;

impl ReversePass<'_, '_, '_, '_> {
    /// Requests, before a recomputed loop, the values that an iteration uses from outside, and allocates the
    /// arrays of the iterations' tape. Returns `None` if the loop is not recomputed.
    pub(super) fn enter_recomputed_loop(&mut self, op: Op) -> Option<IterationState> {
        let repeatable = self.facts.recomputed_loop(op)?;
        let (mut values, mut shadows) = (HashMap::new(), HashMap::new());
        let more = self.facts.snapshot_inputs(op);
        for &value in repeatable.inputs.iter().chain(&more) {
            values.insert(value, self.primal(value));
            if self.facts.has_shadow(value) {
                shadows.insert(value, self.shadows_of(value));
            }
        }
        Some(IterationState {
            values,
            shadows,
            arrays: self.allocate_hoisted_arrays(op),
        })
    }

    fn allocate_hoisted_arrays(&mut self, op: Op) -> HashMap<Node, Lanes> {
        let mut made = HashMap::new();
        let Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run allocates no arrays.
            return made;
        };
        let (plan, layout) = (replay.plan, replay.layout);
        for &number in plan.hoisted.get(&op).map_or(&[][..], Vec::as_slice) {
            let array = &plan.arrays[number];
            let mut trips = Vec::new();
            for length in &array.lengths {
                let count = self.hoisted_trip_count(op, length.of);
                trips.push(layout.length(self.out, count, *length));
            }
            let bytes = match array.element {
                ArrayElement::Value(ty) => {
                    let one = layout.value_bytes(self.out, ty);
                    layout.array_bytes(self.out, one, &trips)
                }
                ArrayElement::Snapshot(number) => self.all_copies_bytes(op, number, layout, &trips),
                ArrayElement::Room => {
                    let one = self.out.build().i64(TAIL_SLOT_BYTES);
                    layout.array_bytes(self.out, one, &trips)
                }
            };
            let base = crate::emit::libc::private_block(&mut self.out.build(), bytes);
            let base = Lanes::from_elem(base, 1);
            made.insert(Node::ArrayBase(number), base);
        }
        made
    }

    /// Emits the size in bytes of all copies of a snapshot in loops with the given trip counts, within a
    /// recomputed loop.
    fn all_copies_bytes(
        &mut self,
        replayed: Op,
        number: usize,
        layout: &TapeLayout,
        trips: &[Value],
    ) -> Value {
        let snapshot = &self.facts.snapshots[number];
        let bytes = match snapshot.extent {
            SnapshotExtent::Block(size) => self.primal(size),
            SnapshotExtent::Bytes(bytes) => self.out.build().i64(bytes as i64),
            SnapshotExtent::Addresses(_) => {
                self.findings
                    .push(missing_value_error(Node::Snapshot(number)));
                self.out.build().i64(0)
            }
        };
        let one = layout.copy_stride_bytes(self.out, bytes);
        let all = layout.array_bytes(self.out, one, trips);
        self.zero_if_unreached(all, replayed, snapshot.anchor)
    }

    /// Emits the trip count of a loop within a recomputed loop, before the latter. The trip count is 0 if
    /// control does not reach the inner loop, because the count may be meaningless.
    fn hoisted_trip_count(&mut self, replayed: Op, at: Op) -> Value {
        let trips = self.primal(self.facts.body.operand(at, 0));
        self.zero_if_unreached(trips, replayed, at)
    }

    /// Emits `number`, or zero if control does not reach `at` within a recomputed loop, as far as the guards
    /// are known beforehand.
    fn zero_if_unreached(&mut self, number: Value, replayed: Op, at: Op) -> Value {
        let body = self.facts.body;
        let inside = body.op_regions(replayed)[0];
        let mut number = number;
        for (condition, when) in self.facts.guards_known_at(at, replayed) {
            if body.is_defined_in(condition, inside) {
                continue;
            }
            let condition = self.primal(condition);
            let ty = self.out.body.ty(number);
            let none = self.out.build().zero(ty);
            number = match when {
                true => self.out.build().select(condition, number, none),
                false => self.out.build().select(condition, none, number),
            };
        }
        number
    }

    /// Emits the recomputation of an iteration at the start of its reversal; the iteration's values are
    /// available from there on.
    pub(super) fn recompute_iteration(&mut self, op: Op, index: Value, entry: IterationState) {
        let Recall::Replay(replay) = &mut self.recall else {
            // Not an error: the dry run recomputes no iteration.
            return;
        };
        replay.available.extend(entry.arrays.clone());
        let inputs = IterationInputs {
            facts: self.facts,
            variant: self.variant,
            out: self.out,
            plan: replay.plan,
            layout: replay.layout,
            entry,
            needs: self.needs,
            findings: self.findings,
        };
        let at_hand = (replay.recompute_iteration)(inputs, op, index);
        replay.available.extend(at_hand);
    }

    /// Frees the arrays of the iterations' tape after the loop.
    pub(super) fn leave_recomputed_loop(&mut self, op: Op) {
        let Recall::Replay(replay) = &self.recall else {
            // Not an error: the dry run allocates no arrays.
            return;
        };
        let bases: Vec<Value> = (replay.plan.hoisted.get(&op).into_iter().flatten())
            .filter_map(|number| replay.available.get(&Node::ArrayBase(*number)))
            .map(|lanes| lanes[0])
            .collect();
        for base in bases {
            let free = gradus_edit::declare_free(self.out.unit);
            self.out.build().call(free, &[base]);
        }
    }
}
