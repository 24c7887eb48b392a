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
use std::collections::{BTreeSet, HashSet};

/// Size of a word in bytes.
const WORD_BYTES: i64 = 8;

/// Maximal number of periods of the destination that a copy is followed into.
const PERIODS_MAX: i64 = 64;

/// Where integers of the program may be.
#[derive(Clone, Debug, Default)]
pub(super) struct IntegerWords {
    /// Bits of values at which such an integer begins.
    values: BTreeSet<(FlowNode, u32)>,
    /// Cells with floats, by normalised offset.
    cells: HashSet<(AliasSetId, i64)>,
}

impl IntegerWords {
    /// Computes the values and cells that integers reach.
    pub(super) fn of(facts: View<'_>, classes: &MemoryActivity) -> IntegerWords {
        let mut found = IntegerWords::default();
        if !(facts.closure.bodies(facts.unit))
            .any(|(func, body)| any_use(facts, classes, func, body))
        {
            return found;
        }
        let mut flow = IntegerFlow {
            facts,
            classes,
            found: &mut found,
            grown: true,
        };
        flow.seed();
        while std::mem::take(&mut flow.grown) {
            for (func, body) in facts.closure.bodies(facts.unit) {
                for op in body.walk(body.root()) {
                    flow.op(func, body, op);
                }
            }
            for copy in facts.memory.copies() {
                flow.copy(copy);
            }
        }
        found
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

/// The fixpoint of the flow.
struct IntegerFlow<'a> {
    facts: View<'a>,
    classes: &'a MemoryActivity,
    found: &'a mut IntegerWords,
    grown: bool,
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
                    self.add_value(func, value, 0);
                }
            }
        }
    }
    fn add_value(&mut self, func: FuncId, value: Value, bit: u32) {
        let node = self.classes.flow().value_node(func, value);
        if let Some(node) = node {
            self.grown |= self.found.values.insert((node, bit));
        }
    }
    /// Marks the floats that an integer at a location overlaps, or begins at.
    fn add_cell(&mut self, place: CellRef) {
        let facts = self.facts;
        for word in words_of(facts, place) {
            self.grown |= self.found.cells.insert(word);
        }
    }
    /// Returns the bits of a value at which integers begin.
    fn bits(&self, func: FuncId, value: Value) -> Vec<u32> {
        let Some(node) = self.classes.flow().value_node(func, value) else {
            // Not an error: the value is outside the call graph.
            return Vec::new();
        };
        let range = self.found.values.range((node, 0)..=(node, u32::MAX));
        range.map(|(_, bit)| *bit).collect()
    }
    /// Moves the integers of `from` to `to`, by a function on their first bits.
    fn moves(
        &mut self,
        from: (FuncId, Value),
        to: (FuncId, Value),
        shift: impl Fn(u32) -> Option<u32>,
    ) {
        for bit in self.bits(from.0, from.1) {
            if let Some(bit) = shift(bit) {
                self.add_value(to.0, to.1, bit);
            }
        }
    }
    fn op(&mut self, func: FuncId, body: &Body, op: Op) {
        let unit = self.facts.unit;
        let mut whole = Vec::new();
        body.value_flows(op, |from, to| whole.push((from, to)));
        let size = |value: Value| image_bits(unit, body.ty(value));
        match body.kind(op) {
            OpKind::Cast(CastOp::BitCast) => whole.push((body.operand(op, 0), body.result(op))),
            OpKind::ExtractValue(path) => {
                let (from, to) = (body.operand(op, 0), body.result(op));
                let start = member_bit(unit, body.ty(from), path);
                let end = start.saturating_add(size(to));
                self.moves((func, from), (func, to), |bit| {
                    (start..end).contains(&bit).then(|| bit - start)
                });
            }
            OpKind::InsertValue(path) => {
                let (old, part, to) = (body.operand(op, 0), body.operand(op, 1), body.result(op));
                let start = member_bit(unit, body.ty(old), path);
                let end = start.saturating_add(size(part));
                self.moves((func, old), (func, to), |bit| {
                    (!(start..end).contains(&bit)).then_some(bit)
                });
                self.moves((func, part), (func, to), |bit| Some(bit + start));
            }
            OpKind::Load(_) => self.load(func, body, op),
            OpKind::Store(_) => self.store(func, body, op),
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(func, body, op),
            _ => {}
        }
        for (from, to) in whole {
            self.moves((func, from), (func, to), Some);
        }
    }
    fn load(&mut self, func: FuncId, body: &Body, op: Op) {
        let (ptr, value) = (body.operand(op, 0), body.result(op));
        for leaf in self.facts.memory.leaves_of(body.ty(value)) {
            let is_integer = |place: &CellRef| {
                let at = offset(*place, leaf.offset_bytes);
                self.found.cells.contains(&cell(self.facts, at))
            };
            if (self.facts.memory.targets(func, ptr).iter()).any(is_integer) {
                self.add_value(func, value, leaf.offset_bytes as u32 * 8);
            }
        }
    }
    fn store(&mut self, func: FuncId, body: &Body, op: Op) {
        let (value, ptr) = (body.operand(op, 0), body.operand(op, 1));
        for bit in self.bits(func, value) {
            for place in self.facts.memory.targets(func, ptr) {
                self.add_cell(offset(*place, u64::from(bit / 8)));
            }
        }
    }
    fn call(&mut self, func: FuncId, body: &Body, op: Op) {
        let unit = self.facts.unit;
        let callees = match self.facts.closure.callee(unit, body, op) {
            Some(Callee::Inside(callee)) => vec![callee],
            Some(Callee::Indirect(_)) => self.facts.memory.callees(func, op).to_vec(),
            _ => return,
        };
        let args = unit.call_args(body, op);
        for callee in callees {
            let Some(inner) = unit.functions[callee].body.as_deref() else {
                continue;
            };
            for (&arg, &param) in args.iter().zip(inner.params()) {
                self.moves((func, arg), (callee, param), Some);
            }
            let end = inner.last(inner.root());
            let end = end.filter(|end| inner.operand_count(*end) == 1);
            if let (Some(result), Some(end)) = (body.call_result(op), end) {
                self.moves((callee, inner.operand(end, 0)), (func, result), Some);
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
                        self.found.cells.contains(&cell(facts, source))
                    })
                });
                if is_integer {
                    self.grown |= self.found.cells.insert((to.class, at));
                }
            }
        }
    }
}

/// Returns the cells of the doubles that cover a location.
fn words_of(facts: View<'_>, place: CellRef) -> Vec<(AliasSetId, i64)> {
    let (set, at) = cell(facts, place);
    let starts = facts.words.float_offsets(set);
    let covering = starts.filter(|start| (*start..start.saturating_add(WORD_BYTES)).contains(&at));
    covering.map(|start| (set, start)).collect()
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
        is_word && self.integer_words().values.contains(&(node, 0))
    }
}
