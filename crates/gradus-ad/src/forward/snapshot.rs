//! Snapshots in the forward pass: copies of memory to the tape just before the loop that reads the memory.
//!
//! A long copy is limited by memory bandwidth, while the loop computes. If a snapshot serves one loop nest
//! that writes nothing to the memory, the nest copies one piece per iteration of its outer loop, and copy and
//! computation overlap.

use super::ForwardPass;
use crate::analysis::body_facts::snapshots::{Snapshot, SnapshotExtent, TouchedRange};
use crate::analysis::forward_value::Node;
use crate::emit::builder::{Lanes, MemorySpace, widen};
use crate::emit::libc;
use crate::tape::plan::missing_value_error;
use crate::tape::remat::address_chain;
use gradus_analysis::Affine;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{BinaryOp, CastOp, IntPredicate, Op, OpKind, Region, Value};

/// Limit in bytes below which a copy is made at once.
const LONG_BYTES: i64 = 64 << 10;

/// A piecewise copy within a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct PiecewiseCopy {
    to: Value,
    from: Value,
    /// Total number of bytes; zero if everything was copied before the loop.
    bytes: Value,
    /// Bytes per iteration.
    piece_bytes: Value,
}

impl ForwardPass<'_, '_, '_, '_> {
    /// Takes the snapshots that the plan requests before an op.
    pub(super) fn take_snapshots(&mut self, op: Op) {
        let Some(tape) = &self.tape else {
            // Not an error: forward mode saves nothing.
            return;
        };
        let (plan, layout) = (tape.plan, tape.layout);
        for &number in plan.snapshots_at(op) {
            if self.in_place.get(&self.facts.snapshots[number].root) == Some(&number) {
                continue;
            }
            let snapshot = &self.facts.snapshots[number];
            let (low, bytes) = self.copied_range(snapshot);
            let array = plan.array_of(number);
            let block = match plan.snapshot_on_heap(self.facts, number) {
                _ if array.is_some() => array.and_then(|array| self.current_block(array)),
                true => Some(libc::private_block(&mut self.out.build(), bytes)),
                false => layout.push(self.out, bytes),
            };
            let Some(block) = block else {
                let fault = missing_value_error(Node::Snapshot(number));
                self.findings.push(fault);
                continue;
            };
            let root = self.value(snapshot.root);
            let start = match low {
                Some(low) => self.out.build().byte_addr(root, low),
                None => root,
            };
            match self.can_copy_piecewise(op, snapshot) {
                _ if snapshot.filler.is_some() => {}
                true => {
                    let pieces = self.plan_piecewise_copy(op, [block, start, bytes]);
                    self.piecewise_copies.push(pieces);
                }
                false => self.copy_to_tape(block, start, bytes),
            }
            let shifted = match low {
                Some(low) => {
                    let zero = self.out.build().i64(0);
                    let back = self.out.build().sub(zero, low);
                    let byte = self.out.unit.types.int(8);
                    let ptr = self.out.body.ty(block);
                    let kind = OpKind::Addr { source: byte };
                    self.out.build().value(kind, &[block, back], ptr)
                }
                None => block,
            };
            self.save_forward_value(Node::Snapshot(number), Lanes::from_elem(shifted, 1));
            self.save_forward_value(Node::SnapshotBlock(number), Lanes::from_elem(block, 1));
        }
    }

    /// Returns true if a loop can copy a snapshot piecewise, and contains a loop that hides the copy.
    fn can_copy_piecewise(&self, op: Op, snapshot: &Snapshot) -> bool {
        let body = self.facts.body;
        let short =
            matches!(snapshot.extent, SnapshotExtent::Bytes(bytes) if bytes < LONG_BYTES as u64);
        let counted = |op: Op| matches!(body.kind(op), OpKind::For { .. });
        let mut inside = body.op_regions(op).iter().flat_map(|r| body.walk(*r));
        !short && snapshot.serves_one_loop && counted(op) && inside.any(counted)
    }

    /// Copies short snapshots at once, and returns the piecewise copy of the loop.
    fn plan_piecewise_copy(&mut self, op: Op, [to, from, bytes]: [Value; 3]) -> PiecewiseCopy {
        let trips = self.facts.body.operand(op, 0);
        let trips = self.value(trips);
        let trips = widen(self.out, trips);
        let long = self.out.unit.types.int(64);
        let least = self.out.build().i64(LONG_BYTES);
        let is_long = self.out.build().icmp(IntPredicate::Uge, bytes, least);
        let (choice, yes, no) = self.out.build().if_(is_long, &[long, long]);
        let outside = self.out.insertion_point;
        self.out.insertion_point = (yes, None);
        let mut b = self.out.build();
        let one = b.i64(1);
        let none = b.icmp(IntPredicate::Ult, trips, one);
        let runs = b.select(none, one, trips);
        let each = b.binary(BinaryOp::UDiv, bytes, runs);
        // Rounded up to 64 bytes.
        let (line, mask) = (b.i64(64), b.i64(-64));
        let each = b.add(each, line);
        let each = b.binary(BinaryOp::And, each, mask);
        b.yield_(&[bytes, each]);
        self.out.insertion_point = (no, None);
        self.copy_to_tape(to, from, bytes);
        let zero = self.out.build().i64(0);
        self.out.build().yield_(&[zero, zero]);
        self.out.insertion_point = outside;
        let results = self.out.body.results(choice);
        let (bytes, each) = (results[0], results[1]);
        PiecewiseCopy {
            to,
            from,
            bytes,
            piece_bytes: each,
        }
    }

    /// Emits the piecewise copies at the start of a loop iteration.
    pub(super) fn emit_piece_copies(&mut self, index: Value) {
        for pieces in std::mem::take(&mut self.piecewise_copies) {
            let index = widen(self.out, index);
            let start = self.out.build().mul(index, pieces.piece_bytes);
            let left = self
                .out
                .build()
                .icmp(IntPredicate::Ult, start, pieces.bytes);
            let (_, yes, no) = self.out.build().if_(left, &[]);
            let outside = self.out.insertion_point;
            self.out.insertion_point = (yes, None);
            let rest = self.out.build().sub(pieces.bytes, start);
            let bytes = self.choice(IntPredicate::Ult, rest, pieces.piece_bytes);
            let to = self.out.build().byte_addr(pieces.to, start);
            let from = self.out.build().byte_addr(pieces.from, start);
            self.copy_to_tape(to, from, bytes);
            self.out.build().yield_(&[]);
            self.out.insertion_point = (no, None);
            self.out.build().yield_(&[]);
            self.out.insertion_point = outside;
        }
    }

    /// Replaces, at the start of a region, the objects of its in-place snapshots by the tape memory. Returns
    /// the original values of their roots.
    pub(super) fn enter_in_place(&mut self, region: Region) -> Vec<(Value, Value)> {
        let Some(tape) = &self.tape else {
            // Not an error: forward mode saves nothing.
            return Vec::new();
        };
        let plan = tape.plan;
        let mut before = Vec::new();
        for &number in plan.in_place_snapshots.get(&region).into_iter().flatten() {
            let root = self.facts.snapshots[number].root;
            let block = (plan.array_of(number)).and_then(|array| self.current_block(array));
            let Some(block) = block else {
                let fault = missing_value_error(Node::Snapshot(number));
                self.findings.push(fault);
                continue;
            };
            before.push((root, self.value(root)));
            self.values.insert(root, block);
            self.in_place.insert(root, number);
        }
        before
    }

    /// Restores the roots at the end of the region.
    pub(super) fn leave_in_place(&mut self, before: Vec<(Value, Value)>) {
        for (root, value) in before {
            self.values.insert(root, value);
            self.in_place.remove(&root);
        }
    }

    /// Returns the memory space of a plain load or store: an in-place snapshot lies on the tape.
    pub(super) fn space_of(&self, op: Op) -> MemorySpace {
        let body = self.facts.body;
        let at = match body.kind(op) {
            _ if self.in_place.is_empty() => return MemorySpace::Primal,
            OpKind::Load(_) => body.operand(op, 0),
            OpKind::Store(_) => body.operand(op, 1),
            _ => return MemorySpace::Primal,
        };
        match self.in_place.contains_key(&body.address_base(at)) {
            true => MemorySpace::Tape,
            false => MemorySpace::Primal,
        }
    }

    /// Stores the value of a load in the snapshot that the load fills.
    pub(super) fn fill_snapshot(&mut self, load: Op) {
        let (Some(tape), Some(number)) = (&self.tape, self.facts.snapshot_filled_by(load)) else {
            // Not an error: the load fills no snapshot.
            return;
        };
        if !tape.plan.locations.contains_key(&Node::Snapshot(number)) {
            // Not an error: the plan does not use the snapshot.
            return;
        }
        let Some(at) = self.other_forward_values.get(&Node::Snapshot(number)) else {
            return self.ice(Some(load), "a load fills a snapshot without memory");
        };
        let mut address = at[0];
        for op in address_chain(self.facts, load, number) {
            let mut operands = vec![address];
            let indices = self.facts.body.operands(op).skip(1);
            operands.extend(indices.map(|index| self.value(index)));
            let (kind, ty) = (self.facts.body.kind(op).clone(), self.out.body.ty(address));
            address = self.out.build().value(kind, &operands, ty);
        }
        let value = self.value(self.facts.body.result(load));
        // LLVM would turn a loop of loads and stores into one `memcpy` per row; the `fold_freeze` prevents the
        // conversion.
        let ty = self.out.body.ty(value);
        let value = self.out.build().value(OpKind::Freeze, &[value], ty);
        let stored = self.out.store(value, address, MemorySpace::Tape, None);
        if let OpKind::Load(access) = self.facts.body.kind(load) {
            self.out.set_align(stored, access.align_bytes);
        }
    }

    fn copy_to_tape(&mut self, to: Value, from: Value, bytes: Value) {
        let memcpy = gradus_edit::declare_memcpy(self.out.unit);
        let bit = self.out.unit.types.int(1);
        let no = self.out.build().zero(bit);
        self.out.build().call(memcpy, &[to, from, bytes, no]);
    }

    /// Returns the size in bytes of a copy of a whole block.
    pub(super) fn copy_size(&mut self, number: usize) -> Value {
        let (_, bytes) = self.copied_range(&self.facts.snapshots[number]);
        bytes
    }

    /// Returns the offset from the root to the first copied byte (`None` for zero), and the number of copied
    /// bytes.
    fn copied_range(&mut self, snapshot: &Snapshot) -> (Option<Value>, Value) {
        match &snapshot.extent {
            SnapshotExtent::Bytes(bytes) => (None, self.out.build().i64(*bytes as i64)),
            SnapshotExtent::Block(size) => {
                let size = self.value(*size);
                (None, widen(self.out, size))
            }
            SnapshotExtent::Addresses(all) => {
                let (low, bytes) = self.touched_range(all);
                (Some(low), bytes)
            }
        }
    }

    /// Returns offset and length of the range from the lowest to the highest touched byte. Loads whose loops
    /// are not executed do not contribute.
    fn touched_range(&mut self, all: &[TouchedRange]) -> (Value, Value) {
        let mut stretches: Vec<(&[Op], Value, Value)> = Vec::new();
        for touched in all {
            let (first, last) = self.ends(&touched.form);
            let size = self.out.build().i64(touched.bytes as i64);
            let end = self.out.build().add(last, size);
            match stretches.iter_mut().find(|s| s.0 == touched.loops) {
                Some(same) => {
                    same.1 = self.choice(IntPredicate::Slt, same.1, first);
                    same.2 = self.choice(IntPredicate::Sgt, same.2, end);
                }
                None => stretches.push((&touched.loops, first, end)),
            }
        }
        let zero = self.out.build().i64(0);
        let (mut any, mut low, mut high) = (self.out.build().bool(false), zero, zero);
        for (loops, first, end) in stretches {
            let runs = self.all_loops_execute(loops);
            let lowest = self.choice(IntPredicate::Slt, low, first);
            let highest = self.choice(IntPredicate::Sgt, high, end);
            let (first, end) = match is_planted(Mutant::SnapshotOfLastLoop) {
                true => (first, end),
                false => (
                    self.out.build().select(any, lowest, first),
                    self.out.build().select(any, highest, end),
                ),
            };
            low = self.out.build().select(runs, first, low);
            high = self.out.build().select(runs, end, high);
            any = self.out.build().binary(BinaryOp::Or, any, runs);
        }
        (low, self.out.build().sub(high, low))
    }

    /// Emits a minimum or maximum of two integers, according to the predicate.
    fn choice(&mut self, order: IntPredicate, a: Value, b: Value) -> Value {
        let first = self.out.build().icmp(order, a, b);
        self.out.build().select(first, a, b)
    }

    /// Emits the minimum and the maximum of an affine form, if all its loops are executed.
    fn ends(&mut self, form: &Affine) -> (Value, Value) {
        let mut sum = self.out.build().i64(form.constant);
        for (product, coefficient) in &form.invariant {
            let part = self.product(*coefficient, product);
            sum = self.out.build().add(sum, part);
        }
        let (mut low, mut high) = (sum, sum);
        let zero = self.out.build().i64(0);
        for term in &form.terms {
            let step = self.product(term.coefficient, &term.factors);
            let trips = self.facts.body.operand(term.lp, 0);
            let trips = self.early_value(trips);
            let trips = widen(self.out, trips);
            let one = self.out.build().i64(1);
            let last = self.out.build().sub(trips, one);
            let way = self.out.build().mul(step, last);
            let falls = self.out.build().icmp(IntPredicate::Slt, way, zero);
            let down = self.out.build().select(falls, way, zero);
            let up = self.out.build().select(falls, zero, way);
            low = self.out.build().add(low, down);
            high = self.out.build().add(high, up);
        }
        (low, high)
    }

    fn product(&mut self, coefficient: i64, factors: &[Value]) -> Value {
        let long = self.out.unit.types.int(64);
        let mut product = self.out.build().i64(coefficient);
        for &factor in factors {
            let factor = self.value(factor);
            let factor = self.out.build().cast(CastOp::SExt, factor, long);
            product = self.out.build().mul(product, factor);
        }
        product
    }

    /// Emits the test that all loops are executed.
    fn all_loops_execute(&mut self, loops: &[Op]) -> Value {
        let mut all = self.out.build().bool(true);
        for &at in loops {
            let trips = self.facts.body.operand(at, 0);
            let trips = self.early_value(trips);
            let ty = self.out.body.ty(trips);
            let zero = self.out.build().zero(ty);
            let runs = self.out.build().icmp(IntPredicate::Ne, trips, zero);
            all = self.out.build().binary(BinaryOp::And, all, runs);
        }
        all
    }
}
