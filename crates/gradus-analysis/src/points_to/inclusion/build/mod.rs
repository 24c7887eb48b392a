//! Builds the constraints of a call graph: one pass over the ops of each instance of a function.
//!
//! Integers of pointer width are nodes like pointers, because an optimised `memcpy` of a pointer is an integer load
//! and store. An integer without an address in its set never matters. Narrower integers and floating-point numbers are
//! nodes for bits of addresses ([`NodeKind::Part`]).

mod accesses;
mod arithmetic;
mod calls;
mod external_calls;
mod globals;
mod index_bounds;
mod null_tests;

use crate::call_graph::{CallGraph, Callee};
use crate::cfg::no_return::NoReturnRegions;
use crate::points_to::inclusion::build::null_tests::NonNullParams;
use crate::points_to::inclusion::constraints::{Constraint, NodeId, NodeKind, Program};
use crate::points_to::inclusion::contexts::Instances;
use crate::points_to::inclusion::objects::{Context, EXTERNAL, ObjectId, ObjectKey, Objects};
use crate::points_to::leaf_tables::Slots;
use crate::types::flat_aggregates::FlatTypes;
use gradus_ir::{
    Body, ConstId, ConstKind, Definition, FuncId, Op, OpKind, POINTEE_ATTR, Point, Type, TypeId,
    Unit, Value,
};

/// Constraints under construction.
pub(crate) struct Builder<'a> {
    pub unit: &'a Unit,
    pub closure: &'a CallGraph,
    pub leaves: FlatTypes,
    pub instances: Instances,
    non_null: NonNullParams,
    pub objects: Objects,
    pub program: Program,
    /// Per instance: the node of each leaf of each value.
    pub slots: Vec<Slots<NodeId>>,
    /// Per instance: the node of each leaf of the result.
    pub returns: Vec<Vec<Option<NodeId>>>,
    /// Per instance: the addresses among the variadic arguments.
    pub variadic: Vec<NodeId>,
    /// Per indirect call: the context of its body.
    call_contexts: Vec<Context>,
}

/// Builds the constraints of all bodies. Returns `None` for a program with more than `nodes_max` nodes.
pub(crate) fn build<'a>(
    unit: &'a Unit,
    closure: &'a CallGraph,
    nodes_max: u32,
) -> Option<Builder<'a>> {
    let instances = Instances::of(unit, closure);
    let mut builder = Builder {
        unit,
        closure,
        leaves: FlatTypes::of(unit),
        non_null: NonNullParams::of(unit, closure, &instances),
        instances,
        objects: Objects::new(),
        program: Program::default(),
        slots: Vec::new(),
        returns: Vec::new(),
        variadic: Vec::new(),
        call_contexts: Vec::new(),
    };
    for instance in builder.instances.list.clone() {
        builder.add_slots(instance.func);
    }
    builder.add_globals();
    for &func in closure.roots() {
        builder.add_root(func);
    }
    for index in 0..builder.instances.list.len() {
        builder.add_body(Context(index as u32));
        if builder.has_more_nodes_than(nodes_max) {
            return None;
        }
    }
    builder.add_guarded_calls();
    (!builder.has_more_nodes_than(nodes_max)).then_some(builder)
}

impl<'a> Builder<'a> {
    fn has_more_nodes_than(&self, nodes_max: u32) -> bool {
        self.program.kinds.len() > nodes_max as usize
    }
    fn add_slots(&mut self, func: FuncId) {
        let body = self.body(func);
        let slots = body.map(|body| Slots::new(body, &self.leaves));
        let Some(slots) = slots else {
            unreachable!("the functions of the call graph have bodies");
        };
        self.slots.push(slots);
        let result = self.unit.result_type(self.unit.functions[func].ty);
        let kinds = result.map_or(Vec::new(), |ty| self.leaf_kinds(ty));
        let program = &mut self.program;
        let nodes = kinds.into_iter().map(|kind| Some(program.node_of(kind?)));
        self.returns.push(nodes.collect());
        self.variadic.push(program.node());
    }
    /// Returns the body of a function.
    pub fn body(&self, func: FuncId) -> Option<&'a Body> {
        self.unit.functions[func].body.as_deref()
    }
    /// Returns the kind of node of a leaf of this type; `None` if the leaf has no bits of addresses.
    pub fn kind(&self, ty: TypeId) -> Option<NodeKind> {
        let word = self.unit.layout.pointer_bytes * 8;
        match self.unit.types.get(self.unit.types.scalar(ty)) {
            Type::Ptr(_) => Some(NodeKind::Pointer),
            Type::Array { .. } | Type::Struct { .. } => Some(NodeKind::Word),
            Type::Int(bits) if u64::from(*bits) >= word => Some(NodeKind::Word),
            Type::Int(8..) | Type::Float(_) => Some(NodeKind::Part),
            _ => None,
        }
    }
    /// Returns true if a leaf of this type may hold an address.
    pub fn holds_address(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), Some(NodeKind::Pointer | NodeKind::Word))
    }
    /// Returns the kind of node of each leaf of a type.
    pub fn leaf_kinds(&self, ty: TypeId) -> Vec<Option<NodeKind>> {
        let leaves = self.leaves.get(ty).iter();
        leaves.map(|leaf| self.kind(leaf.ty)).collect()
    }
    /// The caller of a root passes memory of its own.
    fn add_root(&mut self, func: FuncId) {
        let (Some(body), Some(context)) = (self.body(func), self.instances.shared_of(func)) else {
            // Not an error: the parameters of a function without a body have no uses.
            return;
        };
        let variadic = self.variadic[context.0 as usize];
        self.program.address(variadic, EXTERNAL, 0);
        for (number, &param) in body.params().iter().enumerate() {
            let object = self.objects.of(ObjectKey::Argument(func, number as u32));
            let is_number = self.kind(body.ty(param)) != Some(NodeKind::Pointer);
            let attrs = self.unit.attrs(self.unit.functions[func].attrs);
            let data = self.objects.get_mut(object);
            data.is_number = is_number;
            data.is_declared_floats = attrs.param(number, POINTEE_ATTR).is_some();
            let mut reader = BodyBuilder {
                builder: self,
                context,
                func,
                body,
            };
            reader.point_to(param, object);
        }
    }
    fn add_body(&mut self, context: Context) {
        let func = self.instances.list[context.0 as usize].func;
        let Some(body) = self.body(func) else {
            unreachable!("the functions of the call graph have bodies");
        };
        let (unit, closure) = (self.unit, self.closure);
        let dead = self.non_null.dead_regions(unit, body, context);
        let mut reader = BodyBuilder {
            builder: self,
            context,
            func,
            body,
        };
        reader.params();
        let lost = NoReturnRegions::of(unit, body);
        for op in body.walk(body.root()) {
            let handed = matches!(body.kind(op), OpKind::Store(_))
                || matches!(closure.callee(unit, body, op), Some(Callee::Outside(_)));
            // Nobody observes stores and external calls on paths that never return.
            let is_lost = handed && lost.contains(body, op);
            if !is_lost && !null_tests::is_dead(body, &dead, op) {
                reader.op(op);
            }
        }
    }
}

/// Adds the constraints of one instance of a body.
pub(crate) struct BodyBuilder<'r, 'a> {
    pub builder: &'r mut Builder<'a>,
    pub context: Context,
    pub func: FuncId,
    pub body: &'a Body,
}

impl<'a> BodyBuilder<'_, 'a> {
    fn unit(&self) -> &'a Unit {
        self.builder.unit
    }
    /// Returns the nodes of a value's leaves; `None` for leaves without bits of addresses.
    pub fn nodes(&mut self, value: Value) -> Vec<Option<NodeId>> {
        let index = self.context.0 as usize;
        let range = self.builder.slots[index].range(value);
        let is_new = self.builder.slots[index]
            .of(value)
            .iter()
            .all(Option::is_none);
        if is_new {
            let kinds = self.builder.leaf_kinds(self.body.ty(value));
            for (position, kind) in range.clone().zip(kinds) {
                let program = &mut self.builder.program;
                *self.builder.slots[index].at(position) = kind.map(|kind| program.node_of(kind));
            }
            if let Definition::Const(id) = self.body.values[value].def {
                self.constant(id, range.start);
            }
        }
        self.builder.slots[index].of(value).to_vec()
    }
    /// Returns the node of a pointer: the first leaf with an address.
    pub fn node(&mut self, value: Value) -> Option<NodeId> {
        self.nodes(value).into_iter().flatten().next()
    }
    /// Adds the addresses in a constant. `position` is the position of the constant's first leaf.
    fn constant(&mut self, id: ConstId, position: usize) {
        let unit = self.unit();
        let mut work = vec![(id, position)];
        while let Some((id, position)) = work.pop() {
            let constant = unit.constant(id);
            let (object, offset) = match &constant.kind {
                ConstKind::Func(func) => (self.builder.objects.of(ObjectKey::Function(*func)), 0),
                ConstKind::Global { global, offset } => {
                    (self.builder.objects.of(ObjectKey::Global(*global)), *offset)
                }
                ConstKind::Foreign(_) => (EXTERNAL, 0),
                ConstKind::Aggregate(parts) => {
                    let split = self.builder.leaves.get(constant.ty).len();
                    let mut at = position;
                    for &part in parts {
                        work.push((part, at));
                        let step = self.builder.leaves.get(unit.constant(part).ty).len();
                        at = (at + step).min(position + split.saturating_sub(1));
                    }
                    continue;
                }
                _ => continue,
            };
            if let Some(node) = *self.builder.slots[self.context.0 as usize].at(position) {
                self.builder.program.address(node, object, offset);
            }
        }
    }
    /// Copies the locations of `from`, starting at leaf `skip_from`, to `to`, starting at leaf `skip_to`.
    fn copy_leaves(&mut self, from: Value, skip_from: usize, to: Value, skip_to: usize) {
        let (from, to) = (self.nodes(from), self.nodes(to));
        let pairs = from
            .into_iter()
            .skip(skip_from)
            .zip(to.into_iter().skip(skip_to));
        for (from, to) in pairs {
            if let (Some(from), Some(to)) = (from, to) {
                self.builder.program.copy(to, from);
            }
        }
    }
    /// Copies the locations of `from` to `to`, leaf by leaf.
    pub fn copy(&mut self, from: Value, to: Value) {
        self.copy_leaves(from, 0, to, 0);
    }
    /// Copies every location of `from` to every leaf of `to`.
    pub fn copy_any(&mut self, from: Value, to: Value) {
        let (from, to) = (self.nodes(from), self.nodes(to));
        for &from in from.iter().flatten() {
            for &to in to.iter().flatten() {
                self.builder.program.copy(to, from);
            }
        }
    }
    /// Lets every address leaf of `value` point to an object.
    pub fn point_to(&mut self, value: Value, object: ObjectId) {
        for node in self.nodes(value).into_iter().flatten() {
            if self.builder.program.kinds[node.0 as usize] != NodeKind::Part {
                self.builder.program.address(node, object, 0);
            }
        }
    }
    /// Lets `to` contain the bits of the addresses in `from`.
    pub fn copy_bits(&mut self, from: Value, to: Value) {
        let (from, to) = (self.nodes(from), self.nodes(to));
        let part = self.builder.program.node_of(NodeKind::Part);
        for &from in from.iter().flatten() {
            self.builder.program.copy(part, from);
        }
        for &to in to.iter().flatten() {
            self.builder.program.copy(to, part);
        }
    }
    /// Lets the memory behind a value escape to unknown code.
    pub fn escape(&mut self, value: Value) {
        for node in self.nodes(value).into_iter().flatten() {
            self.builder.program.push(Constraint::Escape { node });
        }
    }
    /// Lets the operands of an op from index `skip` on escape. The results come from unknown code.
    pub fn escape_operands(&mut self, op: Op, skip: usize) {
        for value in self.body.operands(op).skip(skip) {
            self.escape(value);
        }
        for &value in self.body.results(op) {
            self.point_to(value, EXTERNAL);
        }
        if let OpKind::Invoke(_) = self.body.kind(op)
            && let Some(value) = self.body.call_result(op)
        {
            self.point_to(value, EXTERNAL);
        }
    }
    fn op(&mut self, op: Op) {
        let body = self.body;
        for value in body.operands(op) {
            // An address has targets also if no constraint reads it, such as the operand of `memset`.
            if let Definition::Const(_) = body.values[value].def
                && self.builder.kind(body.ty(value)) != Some(NodeKind::Part)
            {
                self.nodes(value);
            }
        }
        self.flows(op);
        match body.kind(op) {
            OpKind::Alloca(info) => {
                let key = ObjectKey::Alloca(self.func, op, self.context);
                let object = self.builder.objects.of(key);
                self.builder.declare(object, info.ty);
                self.point_to(body.result(op), object);
            }
            OpKind::Load(_) => self.load(op, body.operand(op, 0), body.result(op)),
            OpKind::Store(_) => self.store(op, body.operand(op, 1), body.operand(op, 0)),
            OpKind::AtomicRmw(..) => {
                self.store(op, body.operand(op, 0), body.operand(op, 1));
                self.load(op, body.operand(op, 0), body.result(op));
            }
            OpKind::CmpXchg { .. } => {
                self.store(op, body.operand(op, 0), body.operand(op, 2));
                self.copy(body.operand(op, 1), body.result(op));
                self.copy(body.operand(op, 2), body.result(op));
                self.load(op, body.operand(op, 0), body.result(op));
            }
            OpKind::Addr { .. } => self.addr(op),
            OpKind::Cast(cast) => self.cast(op, *cast),
            OpKind::Binary(binary) => self.binary(op, *binary),
            OpKind::ExtractValue(path) => {
                let from = body.operand(op, 0);
                let unit = self.unit();
                let range = self.builder.leaves.member(unit, body.ty(from), path);
                self.copy_leaves(from, range.start, body.result(op), 0);
            }
            OpKind::InsertValue(path) => {
                let (whole, part) = (body.operand(op, 0), body.operand(op, 1));
                let unit = self.unit();
                let range = self.builder.leaves.member(unit, body.ty(whole), path);
                self.copy(whole, body.result(op));
                self.copy_leaves(part, 0, body.result(op), range.start);
            }
            OpKind::ExtractElement | OpKind::InsertElement | OpKind::Shuffle(_) => {
                for value in body.operands(op) {
                    self.copy(value, body.result(op));
                }
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(op),
            OpKind::LandingPad(_) => self.point_to(body.result(op), EXTERNAL),
            OpKind::Return => self.return_(op),
            OpKind::Foreign(_) => self.escape_operands(op, 0),
            // `value_flows` has the flows of region ops and of their terminators.
            OpKind::If
            | OpKind::Switch(_)
            | OpKind::Loop { .. }
            | OpKind::For { .. }
            | OpKind::Scope
            | OpKind::Spawn { .. }
            | OpKind::ParFor { .. }
            | OpKind::Spmd { .. }
            | OpKind::ShareFor { .. }
            | OpKind::Single { .. }
            | OpKind::Critical(_)
            | OpKind::Select
            | OpKind::Freeze
            | OpKind::Yield
            | OpKind::Repeat => {}
            // No address flows through these ops.
            OpKind::FNeg
            | OpKind::ICmp(_)
            | OpKind::FCmp(_)
            | OpKind::Fence { .. }
            | OpKind::Sync
            | OpKind::Barrier(_)
            | OpKind::Unreachable
            | OpKind::Resume => {}
        }
    }
    /// Adds the flows of an op, but those of an arm that never runs.
    fn flows(&mut self, op: Op) {
        let (unit, body, context) = (self.unit(), self.body, self.context);
        let dead = match body.kind(op) {
            OpKind::If | OpKind::Select => {
                let condition = body.operand(op, 0);
                self.builder
                    .non_null
                    .dead_arm(unit, body, context, condition)
            }
            _ => None,
        };
        let Some(dead) = dead else {
            return body.value_flows(op, |from, to| self.copy(from, to));
        };
        if let OpKind::Select = body.kind(op) {
            return self.copy(body.operand(op, 2 - dead), body.result(op));
        }
        let dead = body.op_regions(op).get(dead).copied();
        for edge in body.control_edges(op) {
            if !matches!(edge.from, Point::RegionEnd(region) if Some(region) == dead) {
                for flow in edge.flows {
                    flow.pairs(body).for_each(|(from, to)| self.copy(from, to));
                }
            }
        }
    }
    fn return_(&mut self, op: Op) {
        if self.body.operand_count(op) == 0 {
            return;
        }
        let own = self.builder.returns[self.context.0 as usize].clone();
        let value = self.nodes(self.body.operand(op, 0));
        for (from, to) in value.into_iter().zip(own) {
            if let (Some(from), Some(to)) = (from, to) {
                self.builder.program.copy(to, from);
            }
        }
    }
}
