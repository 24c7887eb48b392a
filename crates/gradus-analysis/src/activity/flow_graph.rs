//! Derivative flow graph over the values and alias sets of a call graph.
//!
//! An edge means that the derivative of the target may depend on the derivative of the source. Nodes are
//! values, alias sets and function results, plus one node per call of an unknown function. Only values with
//! floats have edges. Forward reachability yields varied nodes, backward reachability useful nodes.
//!
//! A second set of edges over the same nodes tracks the bits of floats through integer arithmetic. A float
//! reachable from a varied float over such edges has a derivative that no rule computes.

use crate::activity::round_to_integer;
use crate::call_graph::Callee;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::AliasSetId;
use crate::type_analysis::whole_float_moves;
use crate::view::View;
use gradus_ir::externals::{Effects, ExternalFn};
use gradus_ir::{Body, Entity, FuncId, Op, OpKind, Type, Unit, Value};
use std::collections::HashMap;

/// A node of a [`Flow`].
pub(crate) type FlowNode = usize;

/// Visits the value-to-value derivative flows of an op, without flows through memory and callee bodies. The
/// caller filters for values with floats.
pub(crate) fn value_flows(unit: &Unit, body: &Body, op: Op, mut flow: impl FnMut(Value, Value)) {
    body.value_flows(op, &mut flow);
    match body.kind(op) {
        OpKind::Select
        | OpKind::Freeze
        | OpKind::Load(_)
        | OpKind::Store(_)
        | OpKind::AtomicRmw(..)
        | OpKind::CmpXchg { .. }
        | OpKind::LandingPad(_)
        | OpKind::Alloca(_)
        | OpKind::Addr { .. }
        | OpKind::ICmp(_)
        | OpKind::FCmp(_) => {}
        OpKind::Call(_) | OpKind::Invoke(_) => {
            let Some(result) = body.call_result(op) else {
                // Not an error: the call has no result.
                return;
            };
            let Some(func) = unit.callee(body, op) else {
                // Not an error: an indirect call flows through its possible callees.
                return;
            };
            if unit.functions[func].body.is_some() {
                return;
            }
            let effects = unit.known_effects(func).unwrap_or(Effects::UNKNOWN);
            if !effects.inactive {
                for value in unit.call_args(body, op) {
                    flow(value, result);
                }
            }
        }
        OpKind::Binary(_) if round_to_integer::undoes_rounding_shift(unit, body, op) => {}
        _ if body.op_regions(op).is_empty() => {
            for value in body.operands(op) {
                for &result in body.results(op) {
                    flow(value, result);
                }
            }
        }
        _ => {}
    }
}

/// The derivative flow graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    first: HashMap<FuncId, FlowNode>,
    results: HashMap<FuncId, FlowNode>,
    classes: FlowNode,
    count: usize,
    forward: Edges,
    backward: Edges,
    bits: Edges,
}

/// Adjacency lists in compressed sparse row form.
#[derive(Clone, Debug, Default)]
struct Edges {
    start: Vec<u32>,
    to: Vec<u32>,
}

impl Edges {
    fn of(count: usize, list: &[(u32, u32)]) -> Edges {
        let mut start = vec![0u32; count + 1];
        for (from, _) in list {
            start[*from as usize + 1] += 1;
        }
        for i in 0..count {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut to = vec![0; list.len()];
        for (from, target) in list {
            to[next[*from as usize] as usize] = *target;
            next[*from as usize] += 1;
        }
        Edges { start, to }
    }
    fn from(&self, node: usize) -> &[u32] {
        &self.to[self.start[node] as usize..self.start[node + 1] as usize]
    }
}

impl Flow {
    /// Builds the flow graph of a call graph.
    pub fn of(facts: View<'_>) -> Flow {
        let mut flow = Flow::default();
        for (func, body) in facts.closure.bodies(facts.unit) {
            flow.first.insert(func, flow.count);
            flow.count += body.values.len();
        }
        flow.classes = flow.count;
        flow.count += facts.memory.alias_sets().len();
        for &func in facts.closure.functions() {
            flow.results.insert(func, flow.count);
            flow.count += 1;
        }
        let mut maker = FlowBuilder {
            facts,
            flow: &mut flow,
            list: Vec::new(),
            bits: Vec::new(),
        };
        for (func, body) in facts.closure.bodies(facts.unit) {
            for op in body.walk(body.root()) {
                maker.op(func, body, op);
            }
        }
        maker.copies();
        maker.unknown_memory();
        let (mut list, bits) = (maker.list, maker.bits);
        flow.bits = Edges::of(flow.count, &bits);
        flow.forward = Edges::of(flow.count, &list);
        for edge in &mut list {
            *edge = (edge.1, edge.0);
        }
        flow.backward = Edges::of(flow.count, &list);
        flow
    }
    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        self.count
    }
    /// Returns the node of a value.
    pub fn value_node(&self, func: FuncId, value: Value) -> Option<FlowNode> {
        Some(self.first.get(&func)? + value.index())
    }
    /// Returns the node of an alias set.
    pub fn alias_set_node(&self, class: AliasSetId) -> FlowNode {
        self.classes + class.index()
    }
    /// Returns the node of a function's result.
    pub fn result_node(&self, func: FuncId) -> Option<FlowNode> {
        self.results.get(&func).copied()
    }
    /// Returns the nodes reachable from `start`, along the edges or against them.
    pub fn reach(&self, start: &[FlowNode], forward: bool) -> Vec<bool> {
        let edges = if forward {
            &self.forward
        } else {
            &self.backward
        };
        self.search(edges, start)
    }
    /// Returns the results of integer arithmetic on the bits of the floats at `start`, plus the partial
    /// floats `pieces` and all values derived from them. A node of `start` is included only if it is such a
    /// result.
    pub fn bitwise_tainted(&self, start: &[FlowNode], pieces: Vec<FlowNode>) -> Vec<bool> {
        let next = start.iter().flat_map(|node| self.bits.from(*node));
        let next = next.map(|node| *node as usize).chain(pieces);
        self.search(&self.bits, &next.collect::<Vec<FlowNode>>())
    }
    fn search(&self, edges: &Edges, start: &[FlowNode]) -> Vec<bool> {
        let mut seen = vec![false; self.count];
        let mut work = start.to_vec();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                work.extend(edges.from(node).iter().map(|n| *n as usize));
            }
        }
        seen
    }
}

struct FlowBuilder<'a, 'f> {
    facts: View<'a>,
    flow: &'f mut Flow,
    list: Vec<(u32, u32)>,
    bits: Vec<(u32, u32)>,
}

impl FlowBuilder<'_, '_> {
    fn edge(&mut self, from: Option<FlowNode>, to: Option<FlowNode>) {
        if let (Some(from), Some(to)) = (from, to) {
            self.list.push((from as u32, to as u32));
        }
    }
    /// Returns the node of a value with floats.
    fn value(&self, func: FuncId, value: Value) -> Option<FlowNode> {
        let carries = self.facts.words.carries_float(func, value);
        carries.then(|| self.flow.value_node(func, value)).flatten()
    }
    /// Returns true if a value is an integer or may contain integers.
    fn is_integer(&self, body: &Body, value: Value) -> bool {
        let types = &self.facts.unit.types;
        let ty = types.get(types.scalar(body.ty(value)));
        matches!(ty, Type::Int(_) | Type::Struct { .. } | Type::Array { .. })
    }
    /// Returns true if a value is an integer without floats.
    fn is_plain_integer(&self, func: FuncId, body: &Body, value: Value) -> bool {
        self.is_integer(body, value) && !self.facts.words.carries_float(func, value)
    }
    fn bit_edge(&mut self, from: (FuncId, Value), to: (FuncId, Value)) {
        let (from, to) = (
            self.flow.value_node(from.0, from.1),
            self.flow.value_node(to.0, to.1),
        );
        if let (Some(from), Some(to)) = (from, to) {
            self.bits.push((from as u32, to as u32));
        }
    }
    /// Returns the nodes of the alias sets into which a value points.
    fn classes(&self, func: FuncId, value: Value) -> Vec<FlowNode> {
        let sets = self.facts.memory.alias_sets_of(func, value).into_iter();
        sets.map(|class| self.flow.alias_set_node(class)).collect()
    }

    fn op(&mut self, func: FuncId, body: &Body, op: Op) {
        let facts = self.facts;
        value_flows(facts.unit, body, op, |from, to| {
            self.edge(self.value(func, from), self.value(func, to));
            if self.is_integer(body, from) && self.is_integer(body, to) {
                let lanes = facts.words.lanes(func, to);
                let moved = whole_float_moves::moves_whole_ranges(facts.unit, body, op, lanes);
                if !(moved && facts.words.carries_float(func, to)) {
                    self.bit_edge((func, from), (func, to));
                }
            }
        });
        value_accesses(facts.unit, body, op, |touch| match touch {
            ValueAccess::Load { ptr, value } => {
                for class in self.classes(func, ptr) {
                    self.edge(Some(class), self.value(func, value));
                    if self.is_plain_integer(func, body, value)
                        && !crate::types::lattice::is_next_to_pointers(facts.unit, body, op)
                    {
                        let to = self.flow.value_node(func, value);
                        self.bits.extend(to.map(|to| (class as u32, to as u32)));
                    }
                }
            }
            ValueAccess::Store { ptr, value } => {
                for class in self.classes(func, ptr) {
                    self.edge(self.value(func, value), Some(class));
                    if self.is_plain_integer(func, body, value) {
                        let from = self.flow.value_node(func, value);
                        self.bits
                            .extend(from.map(|from| (from as u32, class as u32)));
                    }
                }
            }
        });
        match body.kind(op) {
            OpKind::Return if body.operand_count(op) == 1 => {
                let value = self.value(func, body.operand(op, 0));
                self.edge(value, self.flow.result_node(func));
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(func, body, op),
            _ => {}
        }
    }
    fn call(&mut self, func: FuncId, body: &Body, op: Op) {
        let facts = self.facts;
        let args = facts.unit.call_args(body, op);
        if let Some(to) = body.call_result(op)
            && let Some(ExternalFn::Integer(_)) = facts.unit.known_callee(body, op)
        {
            let integers = args.iter().filter(|arg| self.is_integer(body, **arg));
            let integers: Vec<Value> = integers.copied().collect();
            integers
                .into_iter()
                .for_each(|arg| self.bit_edge((func, arg), (func, to)));
        }
        let result = body.call_result(op).and_then(|v| self.value(func, v));
        match facts.closure.callee(facts.unit, body, op) {
            Some(Callee::Inside(callee)) => {
                let inner = facts.unit.functions[callee].body.as_deref();
                for (&arg, &param) in args.iter().zip(inner.map_or(&[][..], |b| b.params())) {
                    self.edge(self.value(func, arg), self.flow.value_node(callee, param));
                    if self.is_plain_integer(func, body, arg) {
                        self.bit_edge((func, arg), (callee, param));
                    }
                }
                self.edge(self.flow.result_node(callee), result);
                let own = inner.and_then(|b| Some((b, b.last(b.root())?)));
                if let (Some(to), Some((inner, end))) = (body.call_result(op), own)
                    && inner.operand_count(end) == 1
                    && self.is_plain_integer(func, body, to)
                {
                    self.bit_edge((callee, inner.operand(end, 0)), (func, to));
                }
            }
            Some(Callee::Indirect(_)) => {
                for &callee in facts.memory.callees(func, op) {
                    let Some(inner) = facts.unit.functions[callee].body.as_deref() else {
                        self.external_call(func, body, op, callee, &args);
                        args.iter()
                            .for_each(|arg| self.edge(self.value(func, *arg), result));
                        continue;
                    };
                    for (&arg, &param) in args.iter().zip(inner.params()) {
                        self.edge(self.value(func, arg), self.value(callee, param));
                    }
                    self.edge(self.flow.result_node(callee), result);
                }
                if facts.memory.may_call_unknown(func, op) {
                    args.iter()
                        .for_each(|arg| self.edge(self.value(func, *arg), result));
                }
            }
            Some(Callee::Outside(callee)) => self.external_call(func, body, op, callee, &args),
            _ => {}
        }
    }
    /// Adds the edges of a call of an external function. An unknown function may read and rewrite all
    /// memory behind its pointers.
    fn external_call(&mut self, func: FuncId, body: &Body, op: Op, callee: FuncId, args: &[Value]) {
        let unit = self.facts.unit;
        if let (Some(ExternalFn::Integer(_)), Some(result)) =
            (unit.known(callee), body.call_result(op))
        {
            for &arg in args {
                if self.is_integer(body, arg) {
                    self.bit_edge((func, arg), (func, result));
                }
            }
        }
        let effects = match unit.known(callee) {
            Some(ExternalFn::Memory(_) | ExternalFn::Masked(_) | ExternalFn::MathOut(_)) => return,
            _ => unit.known_effects(callee).unwrap_or(Effects::UNKNOWN),
        };
        if effects.inactive || effects.is_pure() {
            return;
        }
        let result = body.call_result(op).and_then(|v| self.value(func, v));
        let hub = self.flow.count;
        self.flow.count += 1;
        for &arg in args {
            self.edge(self.value(func, arg), Some(hub));
            for class in self.classes(func, arg) {
                self.edge(Some(class), Some(hub));
                self.edge(Some(hub), Some(class));
            }
        }
        self.edge(Some(hub), result);
    }
    /// A pointer from unknown code may point into every escaped alias set.
    fn unknown_memory(&mut self) {
        let Some((unknown, escaped)) = self.facts.memory.unknown_memory() else {
            // Not an error: no pointer comes from unknown code.
            return;
        };
        let unknown = self.flow.alias_set_node(unknown);
        for set in escaped {
            let set = self.flow.alias_set_node(set);
            self.edge(Some(unknown), Some(set));
            self.edge(Some(set), Some(unknown));
        }
    }
    fn copies(&mut self) {
        let facts = self.facts;
        for copy in facts.memory.copies() {
            let (func, op) = copy.at;
            let Some(body) = facts.unit.functions[func].body.as_deref() else {
                continue;
            };
            let kind = facts
                .words
                .copy_kind(facts.unit, facts.memory, body, func, op);
            let moves_floats = kind.may_hold_floats();
            for (from, to) in copy.flows() {
                let from = self.flow.alias_set_node(from);
                let to = self.flow.alias_set_node(to);
                match moves_floats {
                    true => self.edge(Some(from), Some(to)),
                    false => self.bits.push((from as u32, to as u32)),
                }
            }
        }
    }
}
