//! Bit ranges: floats and pointers at bit offsets of values, and the ops that move them unchanged.
//!
//! Every value of the call graph is a node. Nodes of float and pointer type have bit ranges from the start.
//! Integers receive bit ranges from equations: loads, stores, region results, casts, shifts by constants,
//! `or` of disjoint bits, vector and aggregate ops, calls. An equation equates bits of two nodes in both
//! directions. Constants receive no bit ranges, because a constant is shared between uses. Only
//! little-endian targets are supported.

use crate::call_graph::{CallGraph, Callee};
use crate::points_to::alias_sets::{AliasSets, CellRef};
use crate::type_analysis::address_words::{address_terms, may_hold_address};
use crate::type_analysis::type_map::{BitRange, LaneKind};
use crate::type_analysis::whole_float_moves::{
    bit_moves, element_bit, member_bit, resizes_vector, runs,
};
use crate::types::lattice;
use crate::types::lattice::CellType;
use gradus_ir::externals::ExternalFn;
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Definition, Entity, Flags, FloatKind, FuncId, Op, OpKind,
    Type, TypeId, Unit, Value,
};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::num::FpCategory;

/// Index of a value in the call graph.
pub(crate) type Node = u32;

/// A time, counted in changes of bit ranges and cells. The initial state is later than the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u32);

/// The time of the initial state.
pub(crate) const START: Stamp = Stamp(1);

/// Size of the shortest float that an integer may hold the bits of.
const WORD_BITS_MIN: u32 = 32;

/// Equates bits `from_bit..from_bit + bits` of `from` with bits `to_bit..` of `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub from: Node,
    pub to: Node,
    pub from_bit: u32,
    pub to_bit: u32,
    pub bits: u32,
}

impl Link {
    /// Returns true if the link equates the first bits of both values.
    fn is_whole(self) -> bool {
        self.from_bit == 0 && self.to_bit == 0
    }
}

/// A constraint on bit ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Equation {
    /// A movement between values.
    Link(Link),
    /// A load or store of an integer at a location; `tagged` is the type from the TBAA tag. An access through a
    /// pointer with several targets has one equation per target.
    Access {
        node: Node,
        place: CellRef,
        tagged: CellType,
        /// The address of a named integer, unless the integer is a member of a structure: that name is believed in all
        /// memory.
        doubted: Option<(FuncId, Value)>,
        /// True for a store of an integer that may hold an address.
        stores_address: bool,
    },
    /// Arithmetic with a term that may hold the address in the result.
    Address { result: Node, term: Node },
}

#[derive(Clone, Debug, Default)]
struct NodeData {
    lanes: SmallVec<[BitRange; 1]>,
    bits: u32,
    /// True if some bits have integer type and may receive bit ranges.
    accepts_ranges: bool,
    confused: bool,
    /// True if the value takes part in integer arithmetic, comparisons or addressing.
    integral: bool,
    /// True if the value is a term or the result of arithmetic with addresses.
    has_address_arithmetic: bool,
    /// True if a word that no use shows to be an integer reaches the value: an integer that reaches it on another path
    /// does not make it an integer (Note [Merged words]).
    merges_words: bool,
    /// The time of the last change of `lanes` or `integral`.
    changed_at: Stamp,
}

/// The bit ranges of all values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    first: HashMap<FuncId, (u32, u32)>,
    data: Vec<NodeData>,
    now: Stamp,
}

/// Returns the size of a bit range in bytes of memory.
pub(crate) fn kind_bytes(kind: LaneKind) -> u32 {
    match kind {
        LaneKind::Float(kind) => kind.bits() / 8,
        LaneKind::Pointer => 8,
    }
}

impl Nodes {
    /// Creates the nodes of all values, with the bit ranges implied by their types.
    pub fn of(unit: &Unit, closure: &CallGraph, memory: &AliasSets) -> Nodes {
        let mut nodes = Nodes {
            now: START,
            ..Nodes::default()
        };
        let mut by_type: HashMap<TypeId, NodeData> = HashMap::new();
        for (func, body) in closure.bodies(unit) {
            let start = nodes.data.len() as u32;
            nodes.first.insert(func, (start, body.values.len() as u32));
            for (_, value) in body.values.iter() {
                let data = by_type
                    .entry(value.ty)
                    .or_insert_with(|| type_ranges(unit, memory, value.ty));
                let mut data = data.clone();
                data.accepts_ranges &= !matches!(value.def, Definition::Const(_));
                data.changed_at = START;
                nodes.data.push(data);
            }
        }
        nodes
    }
    /// Returns the node of a value.
    pub fn of_value(&self, func: FuncId, value: Value) -> Option<Node> {
        let &(start, count) = self.first.get(&func)?;
        let index = value.index() as u32;
        (index < count).then_some(start + index)
    }
    /// Returns the time of the last change.
    pub fn now(&self) -> Stamp {
        self.now
    }
    /// Returns the time of a change that happens now.
    pub fn tick(&mut self) -> Stamp {
        self.now.0 += 1;
        self.now
    }
    /// Returns the time of the last change of a node.
    pub fn changed_at(&self, node: Node) -> Stamp {
        self.data[node as usize].changed_at
    }
    /// Returns the bit ranges of a node, by offset.
    pub fn lanes(&self, node: Node) -> &[BitRange] {
        &self.data[node as usize].lanes
    }
    /// Returns the size of a node in bits.
    pub fn bits(&self, node: Node) -> u32 {
        self.data[node as usize].bits
    }
    /// Returns true if bits of the node have conflicting types.
    pub fn is_conflicting(&self, node: Node) -> bool {
        self.data[node as usize].confused
    }
    /// Marks the node's bits as conflicting.
    pub fn mark_conflicting(&mut self, node: Node) {
        self.data[node as usize].confused = true;
    }
    /// Returns true if the node takes part in integer arithmetic, comparisons or addressing.
    pub fn is_integral(&self, node: Node) -> bool {
        self.data[node as usize].integral
    }
    /// Marks the node as used in integer arithmetic. Returns true if the mark is new.
    pub fn set_integral(&mut self, node: Node) -> bool {
        let data = &mut self.data[node as usize];
        let is_new = data.accepts_ranges && !std::mem::replace(&mut data.integral, true);
        if is_new {
            self.data[node as usize].changed_at = self.tick();
        }
        is_new
    }
    /// Returns true if the node is a term or the result of arithmetic with addresses.
    pub fn has_address_arithmetic(&self, node: Node) -> bool {
        self.data[node as usize].has_address_arithmetic
    }
    /// Marks the terms and results of arithmetic with addresses, and the values to which the results flow.
    pub fn mark_address_arithmetic(&mut self, equations: &[Equation]) {
        let mut flows: HashMap<Node, Vec<Node>> = HashMap::new();
        let mut work = Vec::new();
        for equation in equations {
            match *equation {
                Equation::Address { result, term } => {
                    self.data[term as usize].has_address_arithmetic = true;
                    work.push(result);
                }
                Equation::Link(link) if link.is_whole() => {
                    flows.entry(link.from).or_default().push(link.to);
                }
                _ => {}
            }
        }
        let mut seen = HashSet::new();
        while let Some(node) = work.pop() {
            if self.accepts_ranges(node) && seen.insert(node) {
                self.data[node as usize].has_address_arithmetic = true;
                work.extend(flows.get(&node).into_iter().flatten());
            }
        }
    }
    /// Marks the values that words of unknown type reach.
    ///
    /// Note [Merged words]: `Result<[f64; 4], Error>` holds a number or a count in one word. A merge of both kinds, from
    /// two paths, is no integer, and its sources are none either; only the uses of the merge decide. A word is a value from
    /// memory, a call or the caller that does not flow to integer arithmetic.
    pub fn mark_merged_words(&mut self, system: &BitRangeSystem) {
        let count = self.data.len();
        let (mut sources, mut results) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for equation in &system.equations {
            if let Equation::Link(link) = equation
                && link.is_whole()
            {
                sources[link.to as usize].push(link.from);
                results[link.from as usize].push(link.to);
            }
        }
        let mut used = vec![false; count];
        let mut work = system.integral.clone();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut used[node as usize], true) {
                work.extend(&sources[node as usize]);
            }
        }
        let is_first = |node: &&Node| sources[**node as usize].is_empty();
        work.extend(system.words.iter().filter(is_first));
        while let Some(node) = work.pop() {
            let is_used = used[node as usize];
            let data = &mut self.data[node as usize];
            if !is_used && !std::mem::replace(&mut data.merges_words, true) {
                work.extend(&results[node as usize]);
            }
        }
    }
    /// Gives a constant the bit range that it overwrites, if the constant is wide enough.
    pub fn seed_constant(&mut self, node: Node, bit: u32, kind: LaneKind) {
        let data = &mut self.data[node as usize];
        data.accepts_ranges = true;
        self.add(node, bit, kind);
        self.data[node as usize].accepts_ranges = false;
    }
    /// Adds a bit range. Returns true if the range is new. An overlapping or truncated range marks the node
    /// as conflicting. A range entirely beyond the node is ignored.
    pub fn add(&mut self, node: Node, bit: u32, kind: LaneKind) -> bool {
        let data = &mut self.data[node as usize];
        let lane = BitRange { bit, kind };
        if bit >= data.bits || data.lanes.contains(&lane) {
            return false;
        }
        let end = bit + kind_bytes(kind) * 8;
        if end > data.bits {
            data.confused = true;
            return false;
        }
        let meets = |l: &BitRange| l.bit < end && bit < l.bit + kind_bytes(l.kind) * 8;
        if data.lanes.iter().any(meets) {
            data.confused = true;
            return false;
        }
        if !data.accepts_ranges {
            return false;
        }
        let at = data.lanes.partition_point(|l| *l < lane);
        data.lanes.insert(at, lane);
        self.data[node as usize].changed_at = self.tick();
        true
    }
    /// Propagates bit ranges in both directions of a link.
    pub fn join(&mut self, link: Link) -> bool {
        let there = self.propagate(link.from, link.to, link.from_bit, link.to_bit, link.bits);
        let back = self.propagate(link.to, link.from, link.to_bit, link.from_bit, link.bits);
        let integral = match (self.is_integral(link.from), self.is_integral(link.to)) {
            (true, false) if !self.data[link.to as usize].merges_words => {
                link.is_whole() && self.set_integral(link.to)
            }
            (false, true) => link.is_whole() && self.set_integral(link.from),
            _ => false,
        };
        there || back || integral
    }
    fn propagate(&mut self, from: Node, to: Node, from_bit: u32, to_bit: u32, bits: u32) -> bool {
        let mut news = false;
        let lanes = self.data[from as usize].lanes.clone();
        for lane in lanes {
            let end = lane.bit + kind_bytes(lane.kind) * 8;
            if lane.bit >= from_bit && end <= from_bit + bits {
                news |= self.add(to, lane.bit - from_bit + to_bit, lane.kind);
            }
        }
        news
    }
    /// Returns true if some bits of the node have integer type.
    pub fn accepts_ranges(&self, node: Node) -> bool {
        self.data[node as usize].accepts_ranges
    }
}

/// Returns the bit ranges implied by a type.
fn type_ranges(unit: &Unit, memory: &AliasSets, ty: TypeId) -> NodeData {
    let mut data = NodeData {
        bits: image_bits(unit, ty),
        ..NodeData::default()
    };
    for leaf in memory.leaves_of(ty) {
        let (elem, count) = match *unit.types.get(leaf.ty) {
            Type::Vector { elem, len, .. } => (elem, len),
            _ => (leaf.ty, 1),
        };
        let kind = match unit.types.get(elem) {
            Type::Float(kind) => LaneKind::Float(*kind),
            Type::Ptr(_) => LaneKind::Pointer,
            Type::Int(_) => {
                data.accepts_ranges = true;
                continue;
            }
            _ => continue,
        };
        for k in 0..count {
            let bit = leaf.offset_bytes as u32 * 8 + k * image_bits(unit, elem);
            data.lanes.push(BitRange { bit, kind });
        }
    }
    data
}

/// Returns the size of a value in bits, as stored in memory; exact for integers.
pub(crate) fn image_bits(unit: &Unit, ty: TypeId) -> u32 {
    match *unit.types.get(ty) {
        Type::Int(bits) => bits,
        Type::Vector { elem, len, .. } => image_bits(unit, elem).saturating_mul(len),
        _ => u32::try_from(unit.layout.store_bytes(unit, ty).saturating_mul(8)).unwrap_or(u32::MAX),
    }
}

/// The constraints of all bodies.
#[derive(Debug, Default)]
pub(crate) struct BitRangeSystem {
    /// The equations, in program order.
    pub equations: Vec<Equation>,
    /// Nodes used in integer arithmetic.
    pub integral: Vec<Node>,
    /// Nodes that receive a value from memory, a call or the caller.
    pub words: Vec<Node>,
    /// Stored integer constants.
    pub constants: Vec<StoredConstant>,
}

/// An integer constant that is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredConstant {
    pub node: Node,
    pub place: CellRef,
    /// Float format in which the constant's bits are zero, normal or infinite. `None` if TBAA names the
    /// stored type an integer.
    pub number: Option<FloatKind>,
}

/// Returns the constraints of all bodies.
pub(crate) fn equations(
    unit: &Unit,
    closure: &CallGraph,
    memory: &AliasSets,
    nodes: &Nodes,
) -> BitRangeSystem {
    let mut reader = BitRangeBuilder {
        unit,
        closure,
        memory,
        nodes,
        found: BitRangeSystem::default(),
        returns: HashMap::new(),
    };
    if !unit.layout.little_endian {
        return BitRangeSystem::default();
    }
    for (func, body) in closure.bodies(unit) {
        let end = body.last(body.root());
        if let Some(end) = end.filter(|op| matches!(body.kind(*op), OpKind::Return))
            && body.operand_count(end) == 1
        {
            reader.returns.insert(func, body.operand(end, 0));
        }
    }
    for (func, body) in closure.bodies(unit) {
        for &param in body.params() {
            reader.word(func, param);
        }
        for op in body.walk(body.root()) {
            reader.op(func, body, op);
            reader.arithmetic(func, body, op);
            reader.words(func, body, op);
        }
    }
    reader.found
}

struct BitRangeBuilder<'a> {
    unit: &'a Unit,
    closure: &'a CallGraph,
    memory: &'a AliasSets,
    nodes: &'a Nodes,
    found: BitRangeSystem,
    returns: HashMap<FuncId, Value>,
}

impl BitRangeBuilder<'_> {
    fn link(
        &mut self,
        from: Option<Node>,
        to: Option<Node>,
        from_bit: u32,
        to_bit: u32,
        bits: u32,
    ) {
        let (Some(from), Some(to)) = (from, to) else {
            // Not an error: the value is outside the call graph.
            return;
        };
        if self.nodes.accepts_ranges(from) || self.nodes.accepts_ranges(to) {
            self.found.equations.push(Equation::Link(Link {
                from,
                to,
                from_bit,
                to_bit,
                bits,
            }));
        }
    }
    fn link_whole(&mut self, func: FuncId, from: Value, to: Value) {
        let (a, b) = (
            self.nodes.of_value(func, from),
            self.nodes.of_value(func, to),
        );
        self.link(a, b, 0, 0, u32::MAX / 2);
    }
    fn access(&mut self, func: FuncId, body: &Body, op: Op, ptr: Value, value: Value) {
        let Some(node) = self.nodes.of_value(func, value) else {
            // Not an error: the value is outside the call graph.
            return;
        };
        let tagged = lattice::access_type(self.unit, body, op);
        let is_trusted = lattice::is_integer_member(self.unit, body, op)
            || lattice::is_next_to_pointers(self.unit, body, op);
        let doubted = (tagged.has_integer() && !is_trusted).then_some((func, ptr));
        let is_constant = is_integer_constant(self.unit, body, value);
        let number = number_format(self.unit, body, value).filter(|_| !tagged.has_integer());
        let stores_address = matches!(body.kind(op), OpKind::Store(_))
            && may_hold_address(self.unit, self.memory, (func, value), body);
        for &place in self.memory.targets(func, ptr) {
            if is_constant {
                self.found.constants.push(StoredConstant {
                    node,
                    place,
                    number,
                });
            }
            if self.nodes.accepts_ranges(node) {
                self.found.equations.push(Equation::Access {
                    node,
                    place,
                    tagged,
                    doubted,
                    stores_address,
                });
            }
        }
    }
    /// Records integers with arithmetic uses or definitions. Shifts, masks and disjoint sums may merely
    /// assemble cells and are no evidence.
    fn arithmetic(&mut self, func: FuncId, body: &Body, op: Op) {
        let mut note = |value: Value| self.found.integral.extend(self.nodes.of_value(func, value));
        match body.kind(op) {
            OpKind::Binary(binary) if !binary.is_float() => match binary {
                BinaryOp::Add if body.ops[op].flags.has(Flags::DISJOINT) => {}
                BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr => {
                    note(body.operand(op, 1));
                    sign_extended(self.unit, body, op)
                        .into_iter()
                        .for_each(note);
                }
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {}
                _ => {
                    body.operands(op).for_each(&mut note);
                    note(body.result(op));
                }
            },
            OpKind::ICmp(_) => body.operands(op).for_each(note),
            OpKind::Addr { .. } => body.operands(op).skip(1).for_each(note),
            OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP) => note(body.operand(op, 0)),
            OpKind::Cast(CastOp::FPToSI | CastOp::FPToUI) => note(body.result(op)),
            OpKind::Cast(CastOp::SExt) => note(body.operand(op, 0)),
            OpKind::Switch(_) => note(body.operand(op, 0)),
            OpKind::For { .. } => {
                note(body.operand(op, 0));
                let region = body.op_regions(op)[0];
                body.region_params(region)
                    .iter()
                    .take(1)
                    .copied()
                    .for_each(note);
            }
            OpKind::Call(_) | OpKind::Invoke(_) => {
                let known = self.unit.known_callee(body, op);
                if known
                    .is_some_and(|k| !matches!(k, ExternalFn::Masked(_) | ExternalFn::Marker(_)))
                {
                    self.unit
                        .call_args(body, op)
                        .into_iter()
                        .for_each(&mut note);
                    body.results(op).iter().copied().for_each(note);
                }
            }
            _ => {}
        }
    }

    /// Records a value that may be a word of unknown type, if it is long enough for a float.
    fn word(&mut self, func: FuncId, value: Value) {
        let node = self.nodes.of_value(func, value);
        let long = node.filter(|node| self.nodes.bits(*node) >= WORD_BITS_MIN);
        self.found.words.extend(long);
    }
    /// Records the values that an op reads from memory, receives from a callee or takes out of an aggregate.
    fn words(&mut self, func: FuncId, body: &Body, op: Op) {
        let named = || lattice::access_type(self.unit, body, op).has_integer();
        match body.kind(op) {
            OpKind::Load(_) if named() && lattice::is_integer_member(self.unit, body, op) => {}
            OpKind::Load(_)
            | OpKind::Call(_)
            | OpKind::ExtractValue(_)
            | OpKind::ExtractElement => {
                for &result in body.results(op) {
                    self.word(func, result);
                }
            }
            OpKind::Invoke(_) => {
                let result = body.region_params(body.op_regions(op)[0]).first();
                result.into_iter().for_each(|value| self.word(func, *value));
            }
            _ => {}
        }
    }

    fn op(&mut self, func: FuncId, body: &Body, op: Op) {
        body.value_flows(op, |from, to| self.link_whole(func, from, to));
        match body.kind(op) {
            OpKind::Load(_) => self.access(func, body, op, body.operand(op, 0), body.result(op)),
            OpKind::Store(_) => {
                self.access(func, body, op, body.operand(op, 1), body.operand(op, 0))
            }
            OpKind::AtomicRmw(..) => {
                self.access(func, body, op, body.operand(op, 0), body.operand(op, 1));
            }
            OpKind::Cast(
                CastOp::Trunc
                | CastOp::ZExt
                | CastOp::SExt
                | CastOp::BitCast
                | CastOp::PtrToInt
                | CastOp::IntToPtr,
            ) if !resizes_vector(self.unit, body, op) => {
                self.link_whole(func, body.operand(op, 0), body.result(op));
            }
            OpKind::Binary(_) => self.binary(func, body, op),
            OpKind::ExtractValue(path) => {
                let whole = body.operand(op, 0);
                let start = member_bit(self.unit, body.ty(whole), path);
                self.link_part(func, whole, body.result(op), start);
            }
            OpKind::InsertValue(path) => {
                let start = member_bit(self.unit, body.ty(body.operand(op, 0)), path);
                self.insert(func, body, op, start);
            }
            OpKind::ExtractElement => {
                let whole = body.operand(op, 0);
                let bits = image_bits(self.unit, body.ty(body.result(op)));
                if let Some(index) = body.as_int(self.unit, body.operand(op, 1)) {
                    self.link_part(func, whole, body.result(op), element_bit(index, bits));
                }
            }
            OpKind::InsertElement => {
                let bits = image_bits(self.unit, body.ty(body.operand(op, 1)));
                if let Some(index) = body.as_int(self.unit, body.operand(op, 2)) {
                    self.insert(func, body, op, element_bit(index, bits));
                }
            }
            OpKind::Shuffle(mask) => self.shuffle(func, body, op, mask),
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(func, body, op),
            _ => {}
        }
    }
    /// Equates `part` with the bits of `whole` from `start` on.
    fn link_part(&mut self, func: FuncId, whole: Value, part: Value, start: u32) {
        let (a, b) = (
            self.nodes.of_value(func, whole),
            self.nodes.of_value(func, part),
        );
        let bits = b.map_or(0, |node| self.nodes.bits(node));
        self.link(a, b, start, 0, bits);
    }
    /// Equates the result with operand 0, with operand 1 inserted at bit `start`.
    fn insert(&mut self, func: FuncId, body: &Body, op: Op, start: u32) {
        let (whole, part, result) = (body.operand(op, 0), body.operand(op, 1), body.result(op));
        self.link_part(func, result, part, start);
        let (a, b) = (
            self.nodes.of_value(func, whole),
            self.nodes.of_value(func, result),
        );
        let bits = self
            .nodes
            .of_value(func, part)
            .map_or(0, |n| self.nodes.bits(n));
        self.link(a, b, 0, 0, start);
        self.link(a, b, start + bits, start + bits, u32::MAX / 4);
    }
    fn shuffle(&mut self, func: FuncId, body: &Body, op: Op, mask: &[i32]) {
        let (a, b) = (body.operand(op, 0), body.operand(op, 1));
        let result = self.nodes.of_value(func, body.result(op));
        let bits = image_bits(self.unit, self.unit.types.scalar(body.ty(a)));
        let count = image_bits(self.unit, body.ty(a)) / bits.max(1);
        for run in runs(mask, count) {
            let source = self.nodes.of_value(func, if run.second { b } else { a });
            self.link(
                source,
                result,
                run.from * bits,
                run.to * bits,
                run.len * bits,
            );
        }
    }
    fn binary(&mut self, func: FuncId, body: &Body, op: Op) {
        let to = self.nodes.of_value(func, body.result(op));
        for m in bit_moves(self.unit, body, op) {
            let from = self.nodes.of_value(func, m.from);
            self.link(from, to, m.from_bit, m.to_bit, m.bits);
        }
        for term in address_terms(self.unit, self.memory, func, body, op) {
            if let (Some(term), Some(result)) = (self.nodes.of_value(func, term), to) {
                let equation = Equation::Address { result, term };
                self.found.equations.push(equation);
            }
        }
    }
    fn call(&mut self, func: FuncId, body: &Body, op: Op) {
        let args = self.unit.call_args(body, op);
        let result = match body.kind(op) {
            OpKind::Invoke(_) => body.region_params(body.op_regions(op)[0]).first().copied(),
            _ => body.results(op).first().copied(),
        };
        let callees: Vec<FuncId> = match self.closure.callee(self.unit, body, op) {
            Some(Callee::Inside(callee)) => vec![callee],
            Some(Callee::Indirect(_)) => self.memory.callees(func, op).to_vec(),
            _ => return,
        };
        for callee in callees {
            let Some(inner) = self.unit.functions[callee].body.as_deref() else {
                continue;
            };
            for (&arg, &param) in args.iter().zip(inner.params()) {
                let (a, b) = (
                    self.nodes.of_value(func, arg),
                    self.nodes.of_value(callee, param),
                );
                self.link(a, b, 0, 0, u32::MAX / 2);
            }
            if let (Some(result), Some(&own)) = (result, self.returns.get(&callee)) {
                let from = self.nodes.of_value(callee, own);
                let to = self.nodes.of_value(func, result);
                self.link(from, to, 0, 0, u32::MAX / 2);
            }
        }
    }
}

/// Returns true if a value is an integer constant or an all-zero vector of integers.
fn is_integer_constant(unit: &Unit, body: &Body, value: Value) -> bool {
    body.as_int(unit, value).is_some()
        || body.as_const(value).is_some_and(|id| {
            let zero = matches!(unit.constant(id).kind, ConstKind::Zero);
            zero && unit.types.int_bits(body.ty(value)).is_some()
        })
}

/// Returns the float format in which an integer constant's bits are zero, a normal number or an infinity.
fn number_format(unit: &Unit, body: &Body, value: Value) -> Option<FloatKind> {
    let bits = image_bits(unit, body.ty(value));
    let Some(constant) = body.as_int(unit, value) else {
        return bits.is_multiple_of(64).then_some(FloatKind::F64);
    };
    let (kind, class) = match bits {
        32 => (FloatKind::F32, f32::from_bits(constant as u32).classify()),
        64 => (FloatKind::F64, f64::from_bits(constant as u64).classify()),
        _ => return None,
    };
    // Small integers have the bits of subnormal numbers, and small negative integers the bits of a NaN.
    matches!(
        class,
        FpCategory::Zero | FpCategory::Normal | FpCategory::Infinite
    )
    .then_some(kind)
}

/// Returns the value whose low bits an arithmetic right shift sign-extends, if its operand is a left shift
/// by an equal constant. The result is an integer, as for [`CastOp::SExt`].
fn sign_extended(unit: &Unit, body: &Body, op: Op) -> Option<Value> {
    let shift = body.def_op(body.operand(op, 0))?;
    let by = |op| body.as_int(unit, body.operand(op, 1));
    let extends = matches!(body.kind(op), OpKind::Binary(BinaryOp::AShr))
        && matches!(body.kind(shift), OpKind::Binary(BinaryOp::Shl))
        && by(op).is_some()
        && by(op) == by(shift);
    extends.then(|| body.operand(shift, 0))
}
