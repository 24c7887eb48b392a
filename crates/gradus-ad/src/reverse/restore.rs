//! Restoration of forward values in the reverse pass: from the tape, by recomputation, or directly if still
//! available.
//!
//! The code of the reverse pass runs twice. The dry run records the required forward values and uses
//! placeholders; the tape plan is made from the record. In the second run, a forward value is read from its
//! save location or recomputed from other forward values. Each value is emitted once per reverse region,
//! before its first use. A region of the forward pass and its reverse region are executed equally often, and
//! no op is executed that the primal did not execute.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::body_facts::snapshots::SnapshotExtent;
use crate::analysis::forward_value::{Availability, Node, defining_region};
use crate::calculus::math_call_with_result;
use crate::context::iteration::RecomputeIteration;
use crate::emit::builder::{DerivativeBuilder, Lanes, MemorySpace};
use crate::emit::libc;
use crate::reverse::region_map::RegionMap;
use crate::shadow::constants::shadow_constant;
use crate::tape::layout::TapeLayout;
use crate::tape::plan::{
    ArrayElement, SaveLocation, TAIL_SLOT_BYTES, TapePlan, missing_value_error,
};
use crate::tape::remat::{
    address_chain, match_branch_choice, shadow_inputs, shadowed_operands, source,
};
use gradus_ir::externals::ExternalFn;
use gradus_ir::mutant::{Mutant, is_planted};
use gradus_ir::{Definition, Diagnostic, Op, OpKind, Value};
use std::collections::{HashMap, HashSet};

/// Source of the forward values that the reverse pass requests.
pub enum Recall<'p> {
    /// Dry run: records the forward values in order.
    Record {
        /// Recorded forward values.
        nodes: Vec<Node>,
        /// Recorded forward values, for look-up.
        seen: HashSet<Node>,
    },
    /// Emission: the tape and recomputation.
    Replay(Replay<'p>),
}

/// State of the emission run.
pub struct Replay<'p> {
    /// The plan.
    pub plan: &'p TapePlan,
    /// Memory locations of tape block, frames and stack.
    pub layout: &'p TapeLayout,
    /// Forward values available as SSA values: parameters, and outermost values of the forward pass in a
    /// combined derivative.
    pub available: HashMap<Node, Lanes>,
    /// Forward values restored up to now.
    pub restored: HashMap<Node, Lanes>,
    /// Recomputes one iteration of a loop.
    pub recompute_iteration: RecomputeIteration,
}

impl<'p> Recall<'p> {
    /// Creates the state of a dry run.
    pub fn dry_run() -> Self {
        Recall::Record {
            nodes: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Returns the forward value: one SSA value, or one per batch element.
    ///
    /// # Errors
    /// A forward value that the plan does not provide: an internal error of Gradus.
    pub fn get(
        &mut self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
        mirrors: &mut RegionMap,
    ) -> Result<Lanes, Diagnostic> {
        match self {
            Recall::Record { nodes, seen } => {
                if seen.insert(node) {
                    nodes.push(node);
                }
                let (ty, lanes) = facts.node_type(out.unit, node);
                let value = out.build().poison(ty);
                Ok(std::iter::repeat_n(value, lanes).collect())
            }
            Recall::Replay(replay) => replay.get(node, facts, out, mirrors),
        }
    }
}

impl Replay<'_> {
    fn get(
        &mut self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
        mirrors: &mut RegionMap,
    ) -> Result<Lanes, Diagnostic> {
        let mut work = vec![node];
        while let Some(&next) = work.last() {
            if self.restored.contains_key(&next) {
                work.pop();
                continue;
            }
            let waiting = self.required_before(next, facts, out)?;
            let before = work.len();
            work.extend(
                waiting
                    .into_iter()
                    .filter(|n| !self.restored.contains_key(n)),
            );
            if work.len() == before {
                let lanes = self.emit(next, facts, out, mirrors)?;
                self.restored.insert(next, lanes);
                work.pop();
            }
        }
        self.restored
            .get(&node)
            .cloned()
            .ok_or_else(|| missing_value_error(node))
    }

    /// Returns the forward values that must be restored before `node`.
    fn required_before(
        &self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &DerivativeBuilder<'_>,
    ) -> Result<Vec<Node>, Diagnostic> {
        if self.available.contains_key(&node) {
            return Ok(Vec::new());
        }
        match self.plan.locations.get(&node) {
            Some(SaveLocation::Array(number) | SaveLocation::BlockElement(number)) => {
                let array = &self.plan.arrays[*number];
                let mut nodes = vec![Node::ArrayBase(*number)];
                if let ArrayElement::Snapshot(number) = array.element {
                    nodes.extend(facts.snapshots[number].size().map(Node::Primal));
                }
                for (depth, (&at, length)) in array.loops.iter().zip(&array.lengths).enumerate() {
                    let index = facts.body.region_params(facts.body.op_regions(at)[0])[0];
                    nodes.push(Node::Primal(index));
                    if depth > 0 {
                        nodes.push(Node::Primal(facts.body.operand(length.of, 0)));
                    }
                }
                Ok(nodes)
            }
            Some(_) => Ok(Vec::new()),
            None => match source(out.unit, facts, node) {
                Availability::Available => Ok(Vec::new()),
                Availability::Recompute { from, .. } => Ok(from.to_vec()),
                Availability::MustSave => Err(missing_value_error(node)),
            },
        }
    }

    fn emit(
        &mut self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
        mirrors: &mut RegionMap,
    ) -> Result<Lanes, Diagnostic> {
        if let Some(lanes) = self.available.get(&node) {
            return Ok(lanes.clone());
        }
        let home = self.plan.locations.get(&node).copied();
        let region = match node {
            Node::ArrayBase(number) | Node::Room(number) => {
                facts.body.parent(self.plan.arrays[number].anchor)
            }
            _ => defining_region(facts, node),
        };
        let Some(region) = region else {
            return self.constant(node, facts, out);
        };
        let back = mirrors.enter_reverse_region(region, out);
        out.loc = facts.location(node);
        let lanes = match home {
            Some(home) => self.load(node, home, facts, out, mirrors),
            None => self.recompute(node, facts, out),
        };
        mirrors.leave(out, back);
        lanes
    }

    fn constant(
        &self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Lanes, Diagnostic> {
        match node {
            Node::Primal(value) => {
                let id = facts
                    .body
                    .as_const(value)
                    .ok_or_else(|| missing_value_error(node))?;
                Ok(std::iter::once(out.body.constant(out.unit, id)).collect())
            }
            Node::Shadow(value) => {
                let id = facts
                    .body
                    .as_const(value)
                    .ok_or_else(|| missing_value_error(node))?;
                match facts.has_shadow(value) {
                    true => shadow_constant(out, facts, false, id),
                    false => {
                        let plain = out.body.constant(out.unit, id);
                        Ok(std::iter::repeat_n(plain, facts.width).collect())
                    }
                }
            }
            _ => Err(missing_value_error(node)),
        }
    }

    /// Reads a forward value from its save location.
    fn load(
        &self,
        node: Node,
        home: SaveLocation,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
        mirrors: &RegionMap,
    ) -> Result<Lanes, Diagnostic> {
        let (ty, lanes) = facts.node_type(out.unit, node);
        let address = match home {
            SaveLocation::SsaValue => return Err(missing_value_error(node)),
            SaveLocation::Slot(number) => self.layout.slot(out, number),
            SaveLocation::Frame(at, field) => {
                let frame = mirrors.frame(at).ok_or_else(|| missing_value_error(node))?;
                self.layout.frame_field(out, at, frame, field)
            }
            SaveLocation::Array(number) | SaveLocation::BlockElement(number) => {
                let numbers = self.array_indices(number, facts, out)?;
                let base = self.restored_value(Node::ArrayBase(number))?;
                match self.plan.arrays[number].element {
                    ArrayElement::Value(element) => {
                        self.layout.element(out, element, base, &numbers)
                    }
                    element => {
                        let bytes = match element {
                            ArrayElement::Snapshot(snapshot) => {
                                self.copy_stride_bytes(snapshot, facts, out)?
                            }
                            _ => out.build().i64(TAIL_SLOT_BYTES),
                        };
                        let block = self.layout.block(out, bytes, base, &numbers);
                        return Ok(Lanes::from_elem(block, 1));
                    }
                }
            }
        };
        Ok(self.layout.read(out, address, ty, lanes))
    }

    /// Returns the indices of an array's loops, and the lengths of all dimensions except the outermost one.
    fn array_indices(
        &self,
        number: usize,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Vec<(Value, Option<Value>)>, Diagnostic> {
        let array = &self.plan.arrays[number];
        let mut numbers = Vec::new();
        for (&at, length) in array.loops.iter().zip(&array.lengths) {
            let index = facts.body.region_params(facts.body.op_regions(at)[0])[0];
            let index = self.restored_value(Node::Primal(index))?;
            let trips = match numbers.is_empty() {
                true => None,
                false => {
                    let trips =
                        self.restored_value(Node::Primal(facts.body.operand(length.of, 0)))?;
                    Some(self.layout.length(out, trips, *length))
                }
            };
            numbers.push((index, trips));
        }
        Ok(numbers)
    }

    /// Returns the distance in bytes between the copies of a snapshot in an array.
    fn copy_stride_bytes(
        &self,
        snapshot: usize,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Value, Diagnostic> {
        let bytes = match facts.snapshots[snapshot].extent {
            SnapshotExtent::Bytes(bytes) => out.build().i64(bytes as i64),
            SnapshotExtent::Block(size) => self.restored_value(Node::Primal(size))?,
            SnapshotExtent::Addresses(_) => {
                return Err(missing_value_error(Node::Snapshot(snapshot)));
            }
        };
        Ok(self.layout.copy_stride_bytes(out, bytes))
    }

    fn restored_value(&self, node: Node) -> Result<Value, Diagnostic> {
        self.restored
            .get(&node)
            .map(|lanes| lanes[0])
            .ok_or_else(|| missing_value_error(node))
    }

    /// Recomputes a forward value.
    fn recompute(
        &self,
        node: Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Lanes, Diagnostic> {
        match node {
            Node::Primal(value) => {
                if let Some(found) = facts.reloadable_carried(value) {
                    let kind = facts.body.kind(found.addr).clone();
                    let base = self.restored_value(Node::Primal(found.base))?;
                    let mut index = self.restored_value(Node::Primal(found.index))?;
                    if is_planted(Mutant::CarriedReloadOffByOne) {
                        let mut b = out.build();
                        let one = b.i64(1);
                        index = b.add(index, one);
                    }
                    let ty = out.body.ty(base);
                    let address = out.build().value(kind, &[base, index], ty);
                    let value = clone_op(facts, out, found.load, &[address]);
                    return Ok(Lanes::from_elem(value, 1));
                }
                let op = facts
                    .body
                    .def_op(value)
                    .ok_or_else(|| missing_value_error(node))?;
                if matches!(facts.body.kind(op), OpKind::If) {
                    return self.emit_branch_choice(op, value, Node::Primal, facts, out);
                }
                if matches!(facts.body.kind(op), OpKind::Load(_)) && !facts.is_stable(op) {
                    return self.recompute_from_snapshot(op, facts, out);
                }
                let operands = facts
                    .body
                    .operands(op)
                    .map(|v| self.restored_value(Node::Primal(v)))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(std::iter::once(clone_op(facts, out, op, &operands)).collect())
            }
            Node::Shadow(value) if !facts.has_shadow(value) => {
                let plain = self.restored_value(Node::Primal(value))?;
                Ok(std::iter::repeat_n(plain, facts.width).collect())
            }
            Node::Shadow(value) => {
                let op = facts
                    .body
                    .def_op(value)
                    .ok_or_else(|| missing_value_error(node))?;
                if let Some(size) = facts.lazy_shadow_size(out.unit, value) {
                    let factors = size
                        .into_iter()
                        .map(|v| self.restored_value(Node::Primal(v)));
                    let factors = factors.collect::<Result<Vec<_>, _>>()?;
                    let bytes = libc::emit_product(out, &factors);
                    let blocks = (0..facts.width).map(|_| libc::zeroed_private_block(out, bytes));
                    return Ok(blocks.collect());
                }
                if matches!(facts.body.kind(op), OpKind::If) {
                    return self.emit_branch_choice(op, value, Node::Shadow, facts, out);
                }
                self.recompute_shadow(op, facts, out)
            }
            _ => Err(missing_value_error(node)),
        }
    }

    /// Recomputes a load from a snapshot, by the same chain of address computations on the copy.
    fn recompute_from_snapshot(
        &self,
        load: Op,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Lanes, Diagnostic> {
        let value = facts.body.result(load);
        let number = facts
            .snapshot_of(load)
            .ok_or_else(|| missing_value_error(Node::Primal(value)))?;
        let mut address = self.restored_value(Node::Snapshot(number))?;
        for op in address_chain(facts, load, number) {
            let mut operands = vec![address];
            for index in facts.body.operands(op).skip(1) {
                operands.push(self.restored_value(Node::Primal(index))?);
            }
            let kind = facts.body.kind(op).clone();
            let ty = out.body.ty(address);
            address = out.build().value(kind, &operands, ty);
        }
        let ty = facts.body.ty(value);
        let loaded = out.load(ty, address, MemorySpace::Tape, None);
        if let (OpKind::Load(access), Some(new)) = (facts.body.kind(load), out.body.def_op(loaded))
        {
            out.set_align(new, access.align_bytes);
        }
        Ok(Lanes::from_elem(loaded, 1))
    }

    fn recompute_shadow(
        &self,
        op: Op,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Lanes, Diagnostic> {
        let of_shadow = shadowed_operands(out.unit, facts.body, op).unwrap_or_default();
        let mut lanes = Lanes::new();
        for lane in 0..facts.width {
            let mut operands = Vec::new();
            for node in shadow_inputs(facts.body, op, of_shadow) {
                let known = self
                    .restored
                    .get(&node)
                    .ok_or_else(|| missing_value_error(node))?;
                operands.push(*known.get(lane).unwrap_or(&known[0]));
            }
            let value = clone_op(facts, out, op, &operands);
            if let (OpKind::Load(access), Some(new)) = (facts.body.kind(op), out.body.def_op(value))
            {
                out.mark_access(new, facts.body.ops[op].meta, MemorySpace::Shadow);
                out.set_align(new, access.align_bytes);
            }
            lanes.push(value);
        }
        Ok(lanes)
    }

    /// Emits a select for an `if` that chooses between values defined outside.
    fn emit_branch_choice(
        &self,
        op: Op,
        value: Value,
        node: fn(Value) -> Node,
        facts: &BodyFacts<'_>,
        out: &mut DerivativeBuilder<'_>,
    ) -> Result<Lanes, Diagnostic> {
        let Definition::Result(_, index) = facts.body.values[value].def else {
            return Err(missing_value_error(node(value)));
        };
        let (condition, [yes, no]) = match_branch_choice(facts, op, index)
            .ok_or_else(|| missing_value_error(node(value)))?;
        let condition = self.restored_value(Node::Primal(condition))?;
        let get = |v| {
            self.restored
                .get(&node(v))
                .cloned()
                .ok_or_else(|| missing_value_error(node(v)))
        };
        let (yes, no): (Lanes, Lanes) = (get(yes)?, get(no)?);
        Ok(yes
            .iter()
            .zip(&no)
            .map(|(y, n)| out.build().select(condition, *y, *n))
            .collect())
    }
}

/// Clones an op on other operands. Poison-generating flags are preserved, because the result is unchanged.
fn clone_op(
    facts: &BodyFacts<'_>,
    out: &mut DerivativeBuilder<'_>,
    op: Op,
    operands: &[Value],
) -> Value {
    let data = &facts.body.ops[op];
    let ty = facts.body.ty(facts.body.result(op));
    let callee = out.unit.callee(facts.body, op);
    if let Some(ExternalFn::Math(function)) = callee.and_then(|f| out.unit.known(f))
        && function.intrinsic().is_some()
        && !callee.is_some_and(|f| out.unit.is_user_declared(f))
    {
        let mut builder = out.build();
        builder.fast_math = data.flags;
        return math_call_with_result(&mut builder, function, &operands[1..], ty);
    }
    let value = out.build().value(data.kind.clone(), operands, ty);
    out.build().set_flags(value, data.flags);
    if let (OpKind::Load(_), Some(new)) = (&data.kind, out.body.def_op(value)) {
        let tbaa = data.meta.and_then(|id| out.unit.meta(id).tbaa);
        let meta = out.unit.intern_meta(gradus_ir::Meta {
            tbaa,
            ..Default::default()
        });
        out.mark_access(new, meta, MemorySpace::Primal);
    }
    value
}
