//! Dead-code elimination including structured ops.
//!
//! Marks and sweeps the whole body (Cytron et al., TOPLAS 13, 1991, on regions instead of CFG edges). An op
//! is live if it has an effect or a live op uses its results. A live result of a branch keeps the values that
//! the arms yield for the result. A live carried value keeps its initial and next value. A live task keeps
//! the syncs of its scope. Dead results, parameters and carried values of live ops are removed.

use gradus_analysis::PassContext;
use gradus_edit::is_removable;
use gradus_ir::{Body, Definition, Entity, Op, OpKind, Region, Unit, Value};

/// Erases dead ops, results and carried values.
pub(crate) fn run(unit: &mut Unit, body: &mut Body, facts: &PassContext) -> bool {
    let mut marks = LiveSet::roots(unit, body, facts);
    marks.propagate(body);
    erase_dead(body, &marks)
}

struct LiveSet {
    ops: Vec<bool>,
    values: Vec<bool>,
    open: Vec<Value>,
    open_ops: Vec<Op>,
}

impl LiveSet {
    /// Marks the ops with effects.
    fn roots(unit: &Unit, body: &Body, facts: &PassContext) -> LiveSet {
        let mut marks = LiveSet {
            ops: vec![false; body.ops.len()],
            values: vec![false; body.values.len()],
            open: Vec::new(),
            open_ops: Vec::new(),
        };
        let ends = loops_terminate(unit, facts);
        for op in body.walk(body.root()) {
            let does = match body.kind(op) {
                OpKind::If | OpKind::Switch(_) | OpKind::For { .. } => false,
                OpKind::ParFor { .. } | OpKind::Scope | OpKind::Spawn { .. } | OpKind::Sync => {
                    false
                }
                OpKind::Loop { trip_max } => trip_max.is_none() && !ends,
                OpKind::Yield | OpKind::Repeat => false,
                _ => body.results(op).is_empty() || !is_removable(unit, body, op),
            };
            if does {
                marks.mark_op(op);
            }
        }
        marks
    }

    fn mark_op(&mut self, op: Op) {
        if !std::mem::replace(&mut self.ops[op.index()], true) {
            self.open_ops.push(op);
        }
    }
    fn mark_value(&mut self, value: Value) {
        if !std::mem::replace(&mut self.values[value.index()], true) {
            self.open.push(value);
        }
    }

    /// Marks the values and ops required by marked ops and values.
    fn propagate(&mut self, body: &Body) {
        loop {
            if let Some(op) = self.open_ops.pop() {
                self.mark_op_inputs(body, op);
            } else if let Some(value) = self.open.pop() {
                self.mark_definition(body, value);
            } else {
                // Not an error: the worklist is empty.
                return;
            }
        }
    }

    /// Marks the values that a live op requires: its operands, or only the condition of a structured op. Also
    /// marks the enclosing op.
    fn mark_op_inputs(&mut self, body: &Body, op: Op) {
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) | OpKind::For { .. } => {
                self.mark_value(body.operand(op, 0))
            }
            OpKind::Loop { .. } => {
                if let Some(end) = body.last(body.op_regions(op)[0]) {
                    self.mark_value(body.operand(end, 0));
                }
            }
            _ => {
                for value in body.operands(op) {
                    self.mark_value(value);
                }
                // Other structured ops keep all values that they yield.
                for &region in body.op_regions(op) {
                    let last = body.last(region);
                    for value in last.into_iter().flat_map(|l| body.operands(l)) {
                        self.mark_value(value);
                    }
                }
            }
        }
        if matches!(body.kind(op), OpKind::Spawn { .. }) {
            self.mark_syncs(body, op);
        }
        if let Some(owner) = body.parent_op(op) {
            self.mark_op(owner);
        }
    }

    /// Marks the syncs in the scope of a live task.
    fn mark_syncs(&mut self, body: &Body, spawn: Op) {
        let mut around = body.ancestors(spawn);
        let Some(scope) = around.find(|&op| matches!(body.kind(op), OpKind::Scope)) else {
            unreachable!("a verified task is in a scope");
        };
        for op in body.walk(body.op_regions(scope)[0]) {
            if matches!(body.kind(op), OpKind::Sync) {
                self.mark_op(op);
            }
        }
    }

    fn mark_definition(&mut self, body: &Body, value: Value) {
        match body.values[value].def {
            Definition::Const(_) => {}
            Definition::Result(op, index) => {
                self.mark_op(op);
                self.mark_result(body, op, index as usize);
            }
            Definition::Param(region, index) => {
                if let Some(op) = body.owner(region) {
                    self.mark_op(op);
                    self.mark_param(body, op, region, index as usize);
                }
            }
        }
    }

    fn mark_result(&mut self, body: &Body, op: Op, index: usize) {
        match body.kind(op) {
            OpKind::If | OpKind::Switch(_) => {
                for &region in body.op_regions(op) {
                    self.mark_terminator_operand(body, region, index, &OpKind::Yield);
                }
            }
            OpKind::For { .. } => self.mark_carried(body, op, index),
            OpKind::Loop { .. } => {
                let at = 1 + body.operand_count(op) + index;
                self.mark_terminator_operand(body, body.op_regions(op)[0], at, &OpKind::Repeat);
            }
            _ => {}
        }
    }

    fn mark_param(&mut self, body: &Body, op: Op, region: Region, index: usize) {
        match body.kind(op) {
            OpKind::For { .. } if index > 0 => self.mark_carried(body, op, index - 1),
            OpKind::Loop { .. } => {
                self.mark_value(body.operand(op, index));
                self.mark_terminator_operand(body, region, 1 + index, &OpKind::Repeat);
            }
            _ => {}
        }
    }

    /// Marks a carried value of a `for`: initial value, next value, parameter and result live together.
    fn mark_carried(&mut self, body: &Body, op: Op, k: usize) {
        let region = body.op_regions(op)[0];
        self.mark_value(body.operand(op, 1 + k));
        self.mark_value(body.region_params(region)[1 + k]);
        self.mark_value(body.results(op)[k]);
        self.mark_terminator_operand(body, region, k, &OpKind::Yield);
    }

    fn mark_terminator_operand(&mut self, body: &Body, region: Region, at: usize, kind: &OpKind) {
        if let Some(end) = body.last(region).filter(|&e| body.kind(e) == kind) {
            self.mark_value(body.operand(end, at));
        }
    }
}

/// Returns whether function attributes guarantee termination of loops.
fn loops_terminate(unit: &Unit, facts: &PassContext) -> bool {
    facts.function.is_some_and(|func| {
        let attrs = unit.attrs(unit.functions[func].attrs);
        ["mustprogress", "willreturn"]
            .iter()
            .any(|name| attrs.function(name).is_some())
    })
}

fn erase_dead(body: &mut Body, marks: &LiveSet) -> bool {
    let ops: Vec<Op> = body.walk(body.root()).collect();
    let mut changed = false;
    for &op in ops.iter().rev() {
        if marks.ops[op.index()] {
            changed |= remove_dead_results(body, marks, op);
        }
    }
    for &op in ops.iter().rev() {
        let stays = marks.ops[op.index()] || body.kind(op).is_terminator();
        if !stays && body.parent(op).is_some() {
            body.erase(op);
            changed = true;
        }
    }
    changed
}

/// Removes dead results and carried values of a live op.
fn remove_dead_results(body: &mut Body, marks: &LiveSet, op: Op) -> bool {
    let lives = |v: &Value| marks.values[v.index()];
    let results: Vec<bool> = body.results(op).iter().map(lives).collect();
    let all = results.iter().all(|&l| l);
    match body.kind(op) {
        OpKind::If | OpKind::Switch(_) => {
            if all {
                return false;
            }
            for region in body.op_regions(op).to_vec() {
                retain_terminator_operands(body, region, &OpKind::Yield, &results);
            }
        }
        OpKind::For { .. } => {
            if all {
                return false;
            }
            let region = body.op_regions(op)[0];
            retain_terminator_operands(body, region, &OpKind::Yield, &results);
            let with_first: Vec<bool> = [true].into_iter().chain(results.iter().copied()).collect();
            retain_operands(body, op, &with_first);
            body.retain_params(region, &with_first);
        }
        OpKind::Loop { .. } => {
            let region = body.op_regions(op)[0];
            let params: Vec<bool> = body.region_params(region).iter().map(lives).collect();
            if all && params.iter().all(|&l| l) {
                return false;
            }
            let end: Vec<bool> = [true].into_iter().chain(params.iter().copied()).collect();
            let end: Vec<bool> = end.into_iter().chain(results.iter().copied()).collect();
            retain_terminator_operands(body, region, &OpKind::Repeat, &end);
            retain_operands(body, op, &params);
            body.retain_params(region, &params);
        }
        _ => return false,
    }
    // Dead ops may still use the removed results; the caller erases these ops next.
    body.retain_results(op, &results);
    true
}

fn retain_terminator_operands(body: &mut Body, region: Region, kind: &OpKind, keep: &[bool]) {
    if let Some(end) = body.last(region).filter(|&e| body.kind(e) == kind) {
        retain_operands(body, end, keep);
    }
}

fn retain_operands(body: &mut Body, op: Op, keep: &[bool]) {
    let kept: Vec<Value> = body
        .operands(op)
        .zip(keep)
        .filter(|(_, keep)| **keep)
        .map(|(v, _)| v)
        .collect();
    body.set_operands(op, &kept);
}
