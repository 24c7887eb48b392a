//! Words of run-time kind that hold an integer at some times: an integer of the program reaches them, and none of its bits
//! come from an active float.
//!
//! Sources are the integers that depend on no active float. They flow through moves (region values, casts of equal size, members of
//! aggregates, calls), through loads and stores by cell, and through byte copies. Only cells with floats count. The result
//! is empty if no integer that may hold bits of an active float is converted or truncated.

use crate::activity::flow_graph::FlowNode;
use crate::activity::memory::MemoryActivity;
use crate::call_graph::Callee;
use crate::points_to::alias_sets::{AliasSetId, CellRef, CopyBytes};
use crate::type_analysis::bit_ranges::image_bits;
use crate::type_analysis::whole_float_moves::member_bit;
use crate::view::View;
use gradus_ir::{Body, CastOp, FuncId, Op, OpKind, Type, Value};
use std::collections::{HashMap, HashSet};

/// Size of a word in bytes.
const WORD_BYTES: i64 = 8;

/// Maximal number of periods of the destination that a copy is followed into.
const PERIODS_MAX: i64 = 64;

/// Where integers of the program may be.
#[derive(Clone, Debug, Default)]
pub(super) struct IntegerWords {
    /// By node: true for a value that begins with such an integer.
    values: Vec<bool>,
    /// Cells with floats, by normalised offset.
    cells: HashSet<(AliasSetId, i64)>,
}

impl IntegerWords {
    /// Computes the values and cells that integers reach.
    pub(super) fn of(facts: View<'_>, classes: &MemoryActivity) -> IntegerWords {
        if !(facts.closure.bodies(facts.unit))
            .any(|(func, body)| any_use(facts, classes, func, body))
        {
            return IntegerWords::default();
        }
        let mut flow = IntegerFlow {
            facts,
            classes,
            edges: Vec::new(),
            loads: HashMap::new(),
            whole: vec![false; classes.flow().count()],
            members: HashSet::new(),
            cells: HashSet::new(),
            has_new_cells: false,
            work: Vec::new(),
        };
        for (func, body) in facts.closure.bodies(facts.unit) {
            for op in body.walk(body.root()) {
                flow.op(func, body, op);
            }
        }
        flow.seed();
        flow.solve();
        IntegerWords {
            values: flow.whole,
            cells: flow.cells,
        }
    }
}

/// Returns true if a body converts an integer that may hold bits of an active float, or takes its lower half.
fn any_use(facts: View<'_>, classes: &MemoryActivity, func: FuncId, body: &Body) -> bool {
    body.walk(body.root()).any(|op| {
        let uses = matches!(
            body.kind(op),
            OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP | CastOp::Trunc)
        );
        uses && {
            let from = body.operand(op, 0);
            facts.unit.types.int_bits(body.ty(from)).is_some()
                && (classes.value_varied(func, from)
                    || classes.is_bitwise_tainted(func, from)
                    || classes.may_be_float_bits(func, from))
        }
    })
}

/// A movement of integers from a value to another, by their first bits.
#[derive(Clone, Copy)]
enum Shift {
    /// The whole value moves.
    Whole,
    /// The bits from the first to the last one move to the start.
    Member(u32, u32),
    /// The bits outside of a range stay.
    Around(u32, u32),
    /// The value moves to a bit.
    To(u32),
}

impl Shift {
    fn apply(self, bit: u32) -> Option<u32> {
        match self {
            Shift::Whole => Some(bit),
            Shift::Member(start, end) => (start..end).contains(&bit).then(|| bit - start),
            Shift::Around(start, end) => (!(start..end).contains(&bit)).then_some(bit),
            Shift::To(start) => Some(bit + start),
        }
    }
}

/// An edge of the flow.
#[derive(Clone, Copy)]
enum Edge {
    /// A movement to the value of a node.
    Move(FlowNode, Shift),
    /// A store through a pointer.
    Store(FuncId, Value),
}

/// The fixpoint of the flow: a worklist of the bits of values at which integers begin. The result is the least one, in
/// whatever order.
struct IntegerFlow<'a> {
    facts: View<'a>,
    classes: &'a MemoryActivity,
    edges: Vec<(FlowNode, Edge)>,
    /// Per cell: the bits of loaded values that begin in the cell.
    loads: HashMap<(AliasSetId, i64), Vec<(FlowNode, u32)>>,
    /// By node: true for a value that begins with an integer.
    whole: Vec<bool>,
    /// The other bits of values at which integers begin.
    members: HashSet<(FlowNode, u32)>,
    cells: HashSet<(AliasSetId, i64)>,
    /// True if a cell is new since the last walk over the byte copies began.
    has_new_cells: bool,
    work: Vec<(FlowNode, u32)>,
}

impl IntegerFlow<'_> {
    /// Adds the integers that depend on no active float. A zero may belong to a float.
    fn seed(&mut self) {
        let (facts, classes) = (self.facts, self.classes);
        for (func, body) in facts.closure.bodies(facts.unit) {
            for value in body.values.ids() {
                let is_integer = matches!(facts.unit.types.get(body.ty(value)), Type::Int(_))
                    && !classes.value_varied(func, value)
                    && !classes.is_bitwise_tainted(func, value)
                    && !classes.may_be_float_bits(func, value);
                if is_integer && body.as_int(facts.unit, value) != Some(0) {
                    self.add_value(classes.flow().value_node(func, value), 0);
                }
            }
        }
    }
    /// Propagates to the fixpoint.
    fn solve(&mut self) {
        let mut edges = std::mem::take(&mut self.edges);
        edges.sort_unstable_by_key(|(from, _)| *from);
        loop {
            while let Some((node, bit)) = self.work.pop() {
                let first = edges.partition_point(|(from, _)| *from < node);
                let own = edges[first..].iter().take_while(|(from, _)| *from == node);
                for (_, edge) in own {
                    self.follow(*edge, bit);
                }
            }
            self.has_new_cells = false;
            for copy in self.facts.memory.copies() {
                self.copy(copy);
            }
            if self.work.is_empty() && !self.has_new_cells {
                return;
            }
        }
    }
    fn follow(&mut self, edge: Edge, bit: u32) {
        match edge {
            Edge::Move(to, shift) => {
                if let Some(bit) = shift.apply(bit) {
                    self.add_value(Some(to), bit);
                }
            }
            Edge::Store(func, ptr) => {
                for place in self.facts.memory.targets(func, ptr) {
                    self.add_cells(offset(*place, u64::from(bit / 8)));
                }
            }
        }
    }
    fn add_value(&mut self, node: Option<FlowNode>, bit: u32) {
        let Some(node) = node else {
            // Not an error: the value is outside the call graph.
            return;
        };
        let is_new = match bit {
            0 => !std::mem::replace(&mut self.whole[node], true),
            _ => self.members.insert((node, bit)),
        };
        if is_new {
            self.work.push((node, bit));
        }
    }
    /// Marks the floats that an integer at a location overlaps, or begins at.
    fn add_cells(&mut self, place: CellRef) {
        for word in words_of(self.facts, place) {
            self.add_cell(word);
        }
    }
    fn add_cell(&mut self, word: (AliasSetId, i64)) {
        if self.cells.insert(word) {
            self.has_new_cells = true;
            for (node, bit) in self.loads.get(&word).cloned().unwrap_or_default() {
                self.add_value(Some(node), bit);
            }
        }
    }
    fn moves(&mut self, from: (FuncId, Value), to: (FuncId, Value), shift: Shift) {
        let node = |(func, value)| self.classes.flow().value_node(func, value);
        if let (Some(from), Some(to)) = (node(from), node(to)) {
            self.edges.push((from, Edge::Move(to, shift)));
        }
    }
    /// Adds the edges of an op.
    fn op(&mut self, func: FuncId, body: &Body, op: Op) {
        let unit = self.facts.unit;
        let size = |value: Value| image_bits(unit, body.ty(value));
        body.value_flows(op, |from, to| {
            self.moves((func, from), (func, to), Shift::Whole);
        });
        match body.kind(op) {
            OpKind::Cast(CastOp::BitCast) => {
                let (from, to) = (body.operand(op, 0), body.result(op));
                self.moves((func, from), (func, to), Shift::Whole);
            }
            OpKind::ExtractValue(path) => {
                let (from, to) = (body.operand(op, 0), body.result(op));
                let start = member_bit(unit, body.ty(from), path);
                let end = start.saturating_add(size(to));
                self.moves((func, from), (func, to), Shift::Member(start, end));
            }
            OpKind::InsertValue(path) => {
                let (old, part, to) = (body.operand(op, 0), body.operand(op, 1), body.result(op));
                let start = member_bit(unit, body.ty(old), path);
                let end = start.saturating_add(size(part));
                self.moves((func, old), (func, to), Shift::Around(start, end));
                self.moves((func, part), (func, to), Shift::To(start));
            }
            OpKind::Load(_) => self.load(func, body, op),
            OpKind::Store(_) => {
                let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
                let node = self.classes.flow().value_node(func, value);
                let edge = |node| (node, Edge::Store(func, ptr));
                self.edges.extend(node.map(edge));
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(func, body, op),
            _ => {}
        }
    }
    fn load(&mut self, func: FuncId, body: &Body, op: Op) {
        let (facts, value) = (self.facts, body.result(op));
        let Some(node) = self.classes.flow().value_node(func, value) else {
            // Not an error: the value is outside the call graph.
            return;
        };
        for leaf in facts.memory.leaves_of(body.ty(value)) {
            for place in facts.memory.targets(func, body.operand(op, 0)) {
                let at = cell(facts, offset(*place, leaf.offset_bytes));
                let bit = leaf.offset_bytes as u32 * 8;
                if facts.words.begins_float(at) {
                    self.loads.entry(at).or_default().push((node, bit));
                }
            }
        }
    }
    fn call(&mut self, func: FuncId, body: &Body, op: Op) {
        let (facts, unit) = (self.facts, self.facts.unit);
        let direct;
        let callees = match facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(callee)) => {
                direct = [callee];
                &direct[..]
            }
            Some(Callee::Indirect(_)) => facts.memory.callees(func, op),
            _ => return,
        };
        let args = unit.call_args(body, op);
        for &callee in callees {
            let Some(inner) = unit.functions[callee].body.as_deref() else {
                continue;
            };
            for (&arg, &param) in args.iter().zip(inner.params()) {
                self.moves((func, arg), (callee, param), Shift::Whole);
            }
            let end = inner.last(inner.root());
            let end = end.filter(|end| inner.operand_count(*end) == 1);
            if let (Some(result), Some(end)) = (body.call_result(op), end) {
                let returned = (callee, inner.operand(end, 0));
                self.moves(returned, (func, result), Shift::Whole);
            }
        }
    }
    /// Follows a byte copy: each cell with floats in the destination asks its source.
    fn copy(&mut self, copy: &CopyBytes) {
        let facts = self.facts;
        let size = copy.size_bytes.and_then(|size| i64::try_from(size).ok());
        for to in &copy.to {
            let set = facts.memory.get(to.class);
            let period = set.block_period(to.offset_bytes, copy.size_bytes);
            let period = period.and_then(|period| i64::try_from(period).ok());
            for at in facts.words.float_offsets(to.class) {
                let first = at.saturating_sub(to.offset_bytes);
                let first = period.map_or(first, |period| first.rem_euclid(period));
                let count = period.map_or(1, |_| PERIODS_MAX);
                let distances = (0..count).map(|k| first + k * period.unwrap_or(0));
                let mut inside = distances
                    .take_while(|distance| size.is_none_or(|size| *distance < size))
                    .filter(|distance| *distance >= 0);
                let is_integer = inside.any(|distance| {
                    (copy.from.iter()).any(|from| {
                        let source = offset(*from, distance as u64);
                        self.cells.contains(&cell(facts, source))
                    })
                });
                if is_integer {
                    self.add_cell((to.class, at));
                }
            }
        }
    }
}

/// Returns the cells of the doubles that cover a location.
fn words_of(facts: View<'_>, place: CellRef) -> Vec<(AliasSetId, i64)> {
    let (set, at) = cell(facts, place);
    let first = at.saturating_sub(WORD_BYTES - 1);
    let starts = facts.words.float_offsets_in(set, first..=at);
    starts.map(|start| (set, start)).collect()
}

fn cell(facts: View<'_>, place: CellRef) -> (AliasSetId, i64) {
    let class = facts.memory.get(place.class);
    (place.class, class.normalize_offset(place.offset_bytes))
}

fn offset(place: CellRef, bytes: u64) -> CellRef {
    CellRef {
        offset_bytes: place.offset_bytes.saturating_add_unsigned(bytes),
        ..place
    }
}

impl MemoryActivity {
    /// Returns true if integers of the program may reach a cell with floats.
    pub(crate) fn receives_integers(&self, facts: View<'_>, place: CellRef) -> bool {
        let mut words = words_of(facts, place).into_iter();
        words.any(|word| self.integer_words().cells.contains(&word))
    }
    /// Returns true for a value that holds a double at some times, and an integer of the program at others.
    pub(crate) fn may_be_integer_word(
        &self,
        facts: View<'_>,
        (func, value): (FuncId, Value),
    ) -> bool {
        let body = facts.unit.functions[func].body.as_deref();
        let Some((body, node)) = body.zip(self.flow().value_node(func, value)) else {
            // Not an error: the value is outside the call graph.
            return false;
        };
        let load = body
            .def_op(value)
            .filter(|op| matches!(body.kind(*op), OpKind::Load(_)));
        let words = facts.words;
        let is_word = load.is_none_or(|op| {
            let targets = facts.memory.targets(func, body.operand(op, 0));
            words.integer_in_words(facts.unit, facts.memory, (func, op))
                && (targets.iter()).all(|place| words.begins_word(facts.memory, *place))
        });
        is_word && self.integer_words().values.get(node) == Some(&true)
    }
}
