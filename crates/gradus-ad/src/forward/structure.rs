//! Region ops of the forward pass: cloned, with shadows and tangents as additional results and carried
//! values, and with frames and trip counts for saved iterations.

use super::{ForwardPass, Task};
use crate::analysis::body_facts::loop_info::loop_parts;
use crate::analysis::forward_value::Node;
use crate::emit::builder::Lanes;
use gradus_ir::{Op, OpKind, Region, TypeId, Value};

/// A region op whose regions are under construction.
#[derive(Debug)]
pub(super) struct OpenStructure {
    op: Op,
    new: Op,
    outside: (Region, Option<Op>),
    /// Results with shadows or tangents, by index.
    results: Vec<usize>,
    /// Carried values of a loop with shadows or tangents, by index.
    carried: Vec<usize>,
    /// The previous frame and the iteration count of a `loop`, if any: parameters of its region.
    frame: Option<Value>,
    count: Option<Value>,
    /// Original values of the roots whose in-place snapshots the region uses.
    saved_roots: Vec<(Value, Value)>,
}

impl ForwardPass<'_, '_, '_, '_> {
    pub(super) fn open_structure(&mut self, op: Op) {
        let body = self.facts.body;
        let results = self.with_companion(body.results(op));
        let mut open = OpenStructure {
            op,
            new: op,
            outside: self.out.insertion_point,
            results,
            carried: Vec::new(),
            frame: None,
            count: None,
            saved_roots: Vec::new(),
        };
        let mut operands: Vec<Value> = body.operands(op).map(|v| self.value(v)).collect();
        let mut types: Vec<TypeId> = body.results(op).iter().map(|v| body.ty(*v)).collect();
        if matches!(body.kind(op), OpKind::For { .. } | OpKind::Loop { .. }) {
            let parts = loop_parts(body, op);
            open.carried = self.with_companion(&parts.params);
            if matches!(body.kind(op), OpKind::For { .. }) {
                open.carried = merged(&open.carried, &open.results);
                open.results = open.carried.clone();
            }
            for &i in &open.carried {
                operands.extend(self.companion(parts.initial[i]));
            }
        }
        for &i in &open.results {
            types.extend(std::iter::repeat_n(
                body.ty(body.results(op)[i]),
                self.facts.width,
            ));
        }
        let (frames, counts) = self.frames_and_counts(op);
        if frames {
            let ptr = self.out.unit.types.ptr();
            operands.push(self.out.build().zero(ptr));
            types.push(ptr);
        }
        if counts {
            operands.push(self.out.build().i64(0));
            types.push(self.out.unit.types.int(64));
        }
        let regions = body.op_regions(op).len();
        open.new = self
            .out
            .build()
            .op(body.kind(op).clone(), &operands, &types, regions);
        self.out.body.ops[open.new].flags = body.ops[op].flags;
        self.open.push(open);
        self.tasks.push(Task::Leave);
        for number in (0..regions).rev() {
            self.tasks.push(Task::Enter(number));
        }
    }

    fn with_companion(&self, values: &[Value]) -> Vec<usize> {
        (0..values.len())
            .filter(|&i| self.has_companion(values[i]))
            .collect()
    }

    /// Returns whether the iterations of a `loop` push frames, and whether they are counted.
    fn frames_and_counts(&self, op: Op) -> (bool, bool) {
        let Some(tape) = &self.tape else {
            // Not an error: forward mode saves nothing.
            return (false, false);
        };
        let is_loop = matches!(self.facts.body.kind(op), OpKind::Loop { .. });
        let counts = is_loop && tape.plan.locations.contains_key(&Node::TripCount(op));
        (tape.plan.frames.contains_key(&op), counts)
    }

    pub(super) fn enter(&mut self, number: usize) {
        let Some(mut open) = self.open.pop() else {
            return self.ice(None, "a region begins outside of a region op");
        };
        self.leave_in_place(std::mem::take(&mut open.saved_roots));
        self.suppress_saves(open.op);
        let body = self.facts.body;
        let region = body.op_regions(open.op)[number];
        let new = self.out.body.op_regions(open.new)[number];
        self.out.insertion_point = (new, None);
        let mut fresh = Vec::new();
        for &param in body.region_params(region) {
            let value = self.out.body.add_param(new, body.ty(param));
            self.values.insert(param, value);
            fresh.push(param);
        }
        let skip = usize::from(matches!(body.kind(open.op), OpKind::For { .. }));
        for &i in &open.carried {
            let param = body.region_params(region)[i + skip];
            let ty = body.ty(param);
            let lanes: Lanes = (0..self.facts.width)
                .map(|_| self.out.body.add_param(new, ty))
                .collect();
            self.companions.insert(param, lanes);
        }
        let (frames, counts) = self.frames_and_counts(open.op);
        if frames {
            let ptr = self.out.unit.types.ptr();
            let previous = self.out.body.add_param(new, ptr);
            open.frame = self.push_frame(open.op, previous);
        }
        if counts {
            let long = self.out.unit.types.int(64);
            open.count = Some(self.out.body.add_param(new, long));
        }
        if let Some(&index) = self.out.body.region_params(new).first() {
            self.emit_piece_copies(index);
        }
        open.saved_roots = self.enter_in_place(region);
        self.open.push(open);
        for param in fresh {
            self.save_value(param);
        }
        self.tasks.push(Task::Ops(body.first(region)));
    }

    /// Emits the terminator of a region, with shadows and tangents.
    pub(super) fn end_region(&mut self, end: Op) {
        let Some(open) = self.open.last() else {
            return self.ice(Some(end), "a region ends outside of a region op");
        };
        let (op, carried, results) = (open.op, open.carried.clone(), open.results.clone());
        let (frame, count) = (open.frame, open.count);
        let body = self.facts.body;
        let kind = body.kind(end).clone();
        let plain: Vec<Value> = body.operands(end).collect();
        let mut extra: Vec<Value> = Vec::new();
        extra.extend(frame);
        if let Some(count) = count {
            let one = self.out.build().i64(1);
            extra.push(self.out.build().add(count, one));
        }
        let mut operands: Vec<Value> = Vec::new();
        if matches!(kind, OpKind::Repeat) {
            let parts = loop_parts(body, op);
            operands.push(self.value(plain[0]));
            self.append_with_companions(&mut operands, &parts.next, &carried);
            operands.extend(&extra);
            self.append_with_companions(&mut operands, &parts.results, &results);
            operands.extend(&extra);
        } else {
            self.append_with_companions(&mut operands, &plain, &results);
        }
        self.out.build().op(kind, &operands, &[], 0);
    }

    /// Appends values, then the shadows or tangents of the picked values.
    fn append_with_companions(
        &mut self,
        operands: &mut Vec<Value>,
        values: &[Value],
        picked: &[usize],
    ) {
        for &value in values {
            operands.push(self.value(value));
        }
        for &i in picked {
            operands.extend(self.companion(values[i]));
        }
    }

    pub(super) fn leave(&mut self) {
        let Some(mut open) = self.open.pop() else {
            return self.ice(None, "the end of a region op has no start");
        };
        self.resume_saves(open.op);
        self.leave_in_place(std::mem::take(&mut open.saved_roots));
        let body = self.facts.body;
        self.out.insertion_point = open.outside;
        let new = self.out.body.results(open.new).to_vec();
        let plain = body.results(open.op);
        for (&old, &value) in plain.iter().zip(&new) {
            self.values.insert(old, value);
        }
        let mut rest = new[plain.len()..].iter().copied();
        for &i in &open.results {
            let lanes: Lanes = rest.by_ref().take(self.facts.width).collect();
            self.companions.insert(plain[i], lanes);
        }
        self.out.copy_loc_and_flags(body, open.op);
        if open.frame.is_some() {
            self.save_forward_value(Node::LastFrame(open.op), rest.next().into_iter().collect());
        }
        if open.count.is_some() {
            self.save_forward_value(Node::TripCount(open.op), rest.next().into_iter().collect());
        }
        for &result in plain {
            self.save_value(result);
        }
    }
}

fn merged(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut all: Vec<usize> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
