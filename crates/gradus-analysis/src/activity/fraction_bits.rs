//! Fraction bits of floats: integers that depend on fraction bits, and conversions of such integers to
//! floats.
//!
//! The sign and the exponent of a float are step functions: `(double)(bits >> 52)` has a zero derivative.
//! The fraction is not: `(double)bits` grows with the float (nearly a logarithm), and no rule computes its
//! derivative. The result of a float-to-integer conversion is a step function too. A shift into the
//! exponent of another float preserves the property. In the fraction of that float the integer is not a
//! step function (nearly an exponential).
//!
//! Step 1 builds a graph of integer ops with one mask per value and alias set: the bits that may depend on
//! a fraction. Step 2 propagates the masks to a fixpoint; masks only grow. Step 3 finds the useful
//! conversions to floats whose mask depends on a fraction. Known approximations: the lanes of a vector
//! share a mask, and all cells of an alias set share a mask.
//!
//! Two kinds of operands are integers as a rule, and the derivative tests them:
//!
//! - A word of run-time kind (`type_analysis/run_time_words.rs`) is an integer at some times. The lower half of the word
//!   counts as an integer. The test runs where the result has an adjoint ([`MemoryActivity::converted_words`]).
//! - An integer that the program loads by its TBAA name, from memory in which it stores integers and floats: one buffer
//!   for several purposes. The test runs with the conversion ([`MemoryActivity::converted_names`]).

use crate::activity::flow_graph::{Flow, FlowNode};
use crate::activity::memory::{MemoryActivity, ShadowPresence};
use crate::activity::round_to_integer;
use crate::call_graph::Callee;
use crate::memory::value_accesses::{ValueAccess, value_accesses};
use crate::points_to::alias_sets::CellRef;
use crate::type_analysis::type_map::LaneKind;
use crate::types::lattice;
use crate::view::View;
use gradus_ir::externals::{ExternalFn, IntFn};
use gradus_ir::{
    BinaryOp, Body, CastOp, ConstKind, Definition, FloatKind, FuncId, Op, OpKind, Type, Unit, Value,
};
use std::collections::{HashMap, HashSet};

/// The effect of an edge on the bits of its source.
#[derive(Clone, Copy, Debug)]
enum BitTransfer {
    /// The bits stay at their positions, within the mask.
    Masked(u128),
    /// The bits move up.
    ShiftUp(u32, u128),
    /// The bits move down. The width is present if the sign fills the bits above.
    ShiftDown(u32, Option<u32>),
    /// The carries of a sum or a product move up, within the mask.
    CarryUp(u128),
    /// A small constant is added: the carries move up, within the mask.
    Step(u128),
    /// The sign fills the bits above.
    SignExtend(u32, u128),
    /// Every bit of the result may depend on every bit of the source.
    Mixed(u128),
}

impl BitTransfer {
    fn apply(self, bits: u128) -> u128 {
        let filled = |width: u32| match bits >> (width - 1) & 1 {
            0 => 0,
            _ => u128::MAX << (width - 1),
        };
        match self {
            _ if bits == 0 => 0,
            BitTransfer::Masked(mask) => bits & mask,
            BitTransfer::ShiftUp(by, mask) => bits.checked_shl(by).unwrap_or(0) & mask,
            BitTransfer::ShiftDown(by, None) => bits.checked_shr(by).unwrap_or(0),
            BitTransfer::ShiftDown(by, Some(width)) => {
                (bits | filled(width)).checked_shr(by).unwrap_or(0) & low_bits(width)
            }
            BitTransfer::CarryUp(mask) | BitTransfer::Step(mask) => {
                u128::MAX << bits.trailing_zeros() & mask
            }
            BitTransfer::SignExtend(width, mask) => (bits | filled(width)) & mask,
            BitTransfer::Mixed(mask) => mask,
        }
    }
    /// Returns true if the bits of a normal `double` stay beyond the integers of small magnitude.
    fn keeps_magnitude(self) -> bool {
        matches!(self, BitTransfer::Masked(u128::MAX) | BitTransfer::Step(_))
    }
    /// Returns true if a sum of step functions still grows with each summand after the change.
    fn preserves_growth(self) -> bool {
        !matches!(self, BitTransfer::Mixed(_) | BitTransfer::ShiftDown(..))
    }
}

fn low_bits(width: u32) -> u128 {
    match width {
        0..128 => (1 << width) - 1,
        _ => u128::MAX,
    }
}

/// Returns the fraction bits of a format.
fn fraction(kind: FloatKind) -> u128 {
    low_bits(match kind {
        FloatKind::F16 => 10,
        FloatKind::BF16 => 7,
        FloatKind::F32 => 23,
        FloatKind::F64 => 52,
        FloatKind::X86F80 => 64,
        FloatKind::F128 => 112,
        FloatKind::PpcF128 => 128,
    })
}

/// A use of fraction bits, or of an integer in place of fraction bits, without a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FractionUse {
    /// Bits of a float are converted to a number.
    Converted,
    /// An integer of a union is changed before the conversion.
    IntegerOfUnion,
    /// An integer converted from a float becomes the fraction of another.
    Stored,
}

/// What happens to fraction bits of varied floats in a call graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct FractionBits {
    /// Conversions and stores without a derivative.
    refused: HashMap<(FuncId, Op), FractionUse>,
    words: HashSet<(FuncId, Op)>,
    names: HashSet<(FuncId, Op)>,
    stores: HashSet<(FuncId, Op)>,
}

impl FractionBits {
    /// Computes the facts. The activity of `classes` is complete, apart from these facts.
    pub(super) fn of(facts: View<'_>, classes: &MemoryActivity) -> FractionBits {
        let mut found = FractionBits {
            stores: stores_of_changed_bits(facts, classes),
            ..FractionBits::default()
        };
        if !any_conversion(facts, classes) {
            return found;
        }
        let graph = Graph::of(facts, classes);
        let masks = Masks::of(&graph);
        for (func, body) in facts.closure.bodies(facts.unit) {
            let computes = computes_active_values(classes, func, body);
            for op in body.walk(body.root()) {
                match *body.kind(op) {
                    OpKind::Store(_) => found.store(&graph, &masks, (func, body, op)),
                    OpKind::Cast(cast) if classes.value_useful(func, body.result(op)) => {
                        found.cast(&graph, &masks, (func, body, op), cast, computes);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn store(&mut self, graph: &Graph<'_>, masks: &Masks, (func, body, op): (FuncId, &Body, Op)) {
        let mask = graph.mask(&masks.by_value, func, body.operand(op, 0));
        if mask == 0 {
            // Not an error: the integer depends on no conversion.
            return;
        }
        self.stores.insert((func, op));
        if stores_number_as_float(graph.facts, graph.classes, mask, (func, body, op)) {
            self.refused.insert((func, op), FractionUse::Stored);
        }
    }

    fn cast(
        &mut self,
        graph: &Graph<'_>,
        masks: &Masks,
        (func, body, op): (FuncId, &Body, Op),
        cast: CastOp,
        computes: bool,
    ) {
        let (from, to) = (body.operand(op, 0), body.result(op));
        let mask = |masks: &[u128]| graph.mask(masks, func, from);
        let unit = graph.facts.unit;
        match (cast, unit.types.float_kind(body.ty(to))) {
            (CastOp::BitCast, Some(kind)) => {
                if mask(&masks.by_value) & fraction(kind) != 0 {
                    self.refused.insert((func, op), FractionUse::Stored);
                }
            }
            (CastOp::SIToFP | CastOp::UIToFP, _) => {
                let is_word = graph.may_be_integer(func, from)
                    && graph.classes.value_varied(func, from)
                    && can_test_word(unit, body, op);
                let bits = if is_word {
                    &masks.by_mixed_bits
                } else {
                    &masks.by_bits
                };
                let can_test_name = computes && can_test_name(unit, body, op);
                let names = if can_test_name {
                    &masks.by_mixed_names
                } else {
                    &masks.by_names
                };
                if mask(bits) | mask(names) != 0 {
                    let what = match graph.may_be_integer(func, from) || mask(&masks.by_words) != 0
                    {
                        true => FractionUse::IntegerOfUnion,
                        false => FractionUse::Converted,
                    };
                    self.refused.insert((func, op), what);
                } else if mask(&masks.by_names) != 0 {
                    self.names.insert((func, op));
                }
                if graph.may_be_integer(func, from) && mask(&masks.by_whole_bits) != 0 {
                    self.words.insert((func, op));
                }
            }
            _ => {}
        }
    }

    /// Returns the use of fraction bits by a conversion or a store that has no derivative.
    pub(crate) fn use_without_derivative(&self, site: (FuncId, Op)) -> Option<FractionUse> {
        self.refused.get(&site).copied()
    }
}

impl MemoryActivity {
    /// Returns the conversions to floats of words of run-time kind. The derivative tests that the operand is an integer
    /// where it has an adjoint.
    pub fn converted_words(&self) -> &HashSet<(FuncId, Op)> {
        &self.fraction_bits().words
    }
    /// Returns the conversions to floats of integers by name, from memory in which the program stores floats, too. The
    /// derivative tests that the operand is an integer.
    pub fn converted_names(&self) -> &HashSet<(FuncId, Op)> {
        &self.fraction_bits().names
    }
    /// Returns the stores of integers that depend on an active float by a conversion, or on its bits by arithmetic. If the
    /// program reads the bits as a float (approximate exponentials), the derivative is unknown.
    pub fn stores_of_converted_numbers(&self) -> &HashSet<(FuncId, Op)> {
        &self.fraction_bits().stores
    }
}

/// The fixpoints of the masks (step 2), by source and by the edges that they follow.
struct Masks {
    by_bits: Vec<u128>,
    /// Along edges that keep the magnitude.
    by_whole_bits: Vec<u128>,
    /// After an edge that changes the magnitude: no test tells such bits from an integer.
    by_mixed_bits: Vec<u128>,
    /// From words of run-time kind.
    by_words: Vec<u128>,
    by_names: Vec<u128>,
    by_mixed_names: Vec<u128>,
    /// From conversions of floats, along edges that preserve growth.
    by_value: Vec<u128>,
}

impl Masks {
    fn of(graph: &Graph<'_>) -> Masks {
        let by_bits = graph.propagate_masks(&graph.of_floats, |_| true);
        let by_names = graph.propagate_masks(&graph.of_names, |_| true);
        Masks {
            by_whole_bits: graph.propagate_masks(&graph.of_floats, BitTransfer::keeps_magnitude),
            by_mixed_bits: graph.propagate_masks(&graph.mixed_bits(&by_bits), |_| true),
            by_words: graph.propagate_masks(&graph.bits_of_words(&by_bits), |_| true),
            by_bits,
            by_mixed_names: graph.propagate_masks(&graph.mixed_bits(&by_names), |_| true),
            by_names,
            by_value: graph.propagate_masks(&graph.converted, BitTransfer::preserves_growth),
        }
    }
}

/// Returns the stores of whole words that integer arithmetic computed from the bits of active floats.
fn stores_of_changed_bits(facts: View<'_>, classes: &MemoryActivity) -> HashSet<(FuncId, Op)> {
    let mut found = HashSet::new();
    for (func, body) in facts.closure.bodies(facts.unit) {
        let stores = body.walk(body.root()).filter(|op| {
            matches!(body.kind(*op), OpKind::Store(_)) && {
                let value = body.operand(*op, 0);
                let bits = facts.unit.types.int_bits(body.ty(value));
                bits == Some(FloatKind::F64.bits()) && classes.is_bitwise_tainted(func, value)
            }
        });
        found.extend(stores.map(|op| (func, op)));
    }
    found
}

/// Returns true for a store of an integer that depends on an active float by a conversion, to memory that holds floats and
/// is no word of run-time kind.
fn stores_number_as_float(
    facts: View<'_>,
    classes: &MemoryActivity,
    mask: u128,
    (func, body, op): (FuncId, &Body, Op),
) -> bool {
    let value = body.operand(op, 0);
    let lanes = facts.words.lanes(func, value).iter();
    let is_float = lanes.into_iter().any(|lane| match lane.kind {
        LaneKind::Float(kind) => mask >> lane.bit & fraction(kind) != 0,
        LaneKind::Pointer => false,
    });
    let targets = facts.memory.targets(func, body.operand(op, 1));
    let has_shadow = |place: &CellRef| classes.state(place.class) != ShadowPresence::Inactive;
    let is_word = facts
        .words
        .integer_in_words(facts.unit, facts.memory, (func, op));
    is_float && !(is_word && targets.iter().all(has_shadow))
}

/// Returns true if a body computes active values: every call of it that matters has a derivative.
fn computes_active_values(classes: &MemoryActivity, func: FuncId, body: &Body) -> bool {
    body.walk(body.root()).any(|op| {
        let is_active = |value: &Value| {
            classes.value_varied(func, *value) && classes.value_useful(func, *value)
        };
        body.results(op).iter().any(is_active)
    })
}

/// Returns true if the derivative can test the operand of a conversion: one integer of 64 bits.
fn can_test_word(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(unit.types.get(body.ty(body.operand(op, 0))), Type::Int(64))
}

/// Returns true if the derivative can test the operand of a conversion of an integer by name: it has the size of a `float`
/// or of a `double`.
fn can_test_name(unit: &Unit, body: &Body, op: Op) -> bool {
    matches!(
        unit.types.get(body.ty(body.operand(op, 0))),
        Type::Int(32 | 64)
    )
}

/// Returns true for an integer that is loaded, under its name, where the program's own memory holds floats.
fn loads_float_under_name(facts: View<'_>, func: FuncId, body: &Body, value: Value) -> bool {
    let load = body.def_op(value);
    let load = load.filter(|load| matches!(body.kind(*load), OpKind::Load(_)));
    let bits = facts.unit.types.int_bits(body.ty(value)).unwrap_or(0);
    load.is_some_and(|load| {
        let targets = facts.memory.targets(func, body.operand(load, 0));
        (targets.iter()).any(|at| facts.words.is_float_under_name(facts.memory, *at, bits))
    })
}

/// Returns true if bits of varied floats are converted to floats, or a varied float to an integer.
fn any_conversion(facts: View<'_>, classes: &MemoryActivity) -> bool {
    facts.closure.bodies(facts.unit).any(|(func, body)| {
        body.walk(body.root()).any(|op| match body.kind(op) {
            OpKind::Cast(CastOp::SIToFP | CastOp::UIToFP) => {
                let from = body.operand(op, 0);
                classes.is_bitwise_tainted(func, from)
                    || classes.value_varied(func, from)
                    || loads_float_under_name(facts, func, body, from)
            }
            OpKind::Cast(CastOp::FPToSI | CastOp::FPToUI) => {
                classes.value_varied(func, body.operand(op, 0))
            }
            _ => false,
        })
    })
}

struct Graph<'a> {
    facts: View<'a>,
    classes: &'a MemoryActivity,
    flow: &'a Flow,
    /// Integers that may be bits of varied floats.
    bits: &'a HashSet<FlowNode>,
    /// Sorted by source after step 1.
    edges: Vec<(u32, u32, BitTransfer)>,
    /// Bits of varied floats.
    of_floats: Vec<(FlowNode, u128)>,
    /// Bits of integers by name, from memory in which the program stores varied floats.
    of_names: Vec<(FlowNode, u128)>,
    /// Words of run-time kind that hold an integer at some times, and such words changed by a small constant.
    words: HashSet<FlowNode>,
    /// Integers converted from varied floats.
    converted: Vec<(FlowNode, u128)>,
}

impl<'a> Graph<'a> {
    /// Builds the graph (step 1).
    fn of(facts: View<'a>, classes: &'a MemoryActivity) -> Graph<'a> {
        let flow = classes.flow();
        let mut graph = Graph {
            facts,
            classes,
            flow,
            bits: classes.float_bit_nodes(),
            edges: Vec::new(),
            of_floats: Vec::new(),
            of_names: Vec::new(),
            words: HashSet::new(),
            converted: Vec::new(),
        };
        for (func, body) in facts.closure.bodies(facts.unit) {
            for op in body.walk(body.root()) {
                graph.op(func, body, op);
                let regions = body.op_regions(op).iter();
                let params = regions.flat_map(|region| body.region_params(*region));
                graph.note_words(func, body.results(op).iter().chain(params));
            }
            graph.note_words(func, body.params());
        }
        for &root in facts.closure.roots() {
            let body = facts.unit.functions[root].body.as_deref();
            for &param in body.map_or(&[][..], |body| body.params()) {
                graph.seed_fraction_bits(root, param);
            }
        }
        graph.copies();
        graph.follow_steps();
        graph.edges.sort_unstable_by_key(|edge| edge.0);
        graph
    }
    fn note_words<'v>(&mut self, func: FuncId, values: impl IntoIterator<Item = &'v Value>) {
        let (facts, classes) = (self.facts, self.classes);
        let words = (values.into_iter())
            .filter(|value| classes.may_be_integer_word(facts, (func, **value)));
        let nodes: Vec<FlowNode> = words.filter_map(|value| self.node(func, *value)).collect();
        self.words.extend(nodes);
    }
    /// Adds the words that differ from a word by a small constant.
    fn follow_steps(&mut self) {
        loop {
            let is_step = |edge: &&(u32, u32, BitTransfer)| {
                matches!(edge.2, BitTransfer::Step(_)) && self.words.contains(&(edge.0 as FlowNode))
            };
            let steps = self.edges.iter().filter(is_step);
            let ends: Vec<FlowNode> = steps.map(|edge| edge.1 as FlowNode).collect();
            let before = self.words.len();
            self.words.extend(ends);
            if self.words.len() == before {
                return;
            }
        }
    }
    /// Returns fraction bits after a change of magnitude: no test tells such bits from an integer.
    fn mixed_bits(&self, by_bits: &[u128]) -> Vec<(FlowNode, u128)> {
        let changes = self.edges.iter().filter(|edge| !edge.2.keeps_magnitude());
        let mixed = changes
            .map(|(from, to, change)| (*to as FlowNode, change.apply(by_bits[*from as usize])));
        mixed.filter(|(_, mask)| *mask != 0).collect()
    }
    /// Returns the bits that count as bits of floats in words of run-time kind.
    fn bits_of_words(&self, by_bits: &[u128]) -> Vec<(FlowNode, u128)> {
        let words = self.words.iter().map(|node| (*node, by_bits[*node]));
        words.filter(|(_, mask)| *mask != 0).collect()
    }
    /// Returns the mask of a value.
    fn mask(&self, masks: &[u128], func: FuncId, value: Value) -> u128 {
        self.node(func, value).map_or(0, |node| masks[node])
    }
    /// Returns true if a value is such a word, or differs from one by a small constant.
    fn may_be_integer(&self, func: FuncId, value: Value) -> bool {
        self.node(func, value)
            .is_some_and(|node| self.words.contains(&node))
    }
    /// Returns the bits of a node that count as bits of floats: the lower half of a word counts as an integer.
    fn float_part(&self, node: FlowNode, mask: u128) -> u128 {
        match self.words.contains(&node) {
            true => mask & !low_bits(32),
            false => mask,
        }
    }

    /// Propagates the masks from `start` along the edges selected by `takes` (step 2).
    fn propagate_masks(
        &self,
        start: &[(FlowNode, u128)],
        takes: impl Fn(BitTransfer) -> bool,
    ) -> Vec<u128> {
        let mut masks: Vec<u128> = vec![0; self.flow.count()];
        let mut work: Vec<u32> = Vec::new();
        for &(node, mask) in start {
            masks[node] |= self.float_part(node, mask);
            work.push(node as u32);
        }
        while let Some(node) = work.pop() {
            let mask = masks[node as usize];
            let first = self.edges.partition_point(|edge| edge.0 < node);
            let own = self.edges[first..].iter().take_while(|edge| edge.0 == node);
            for (_, to, change) in own.filter(|edge| takes(edge.2)) {
                let goal = &mut masks[*to as usize];
                let grown = *goal | self.float_part(*to as FlowNode, change.apply(mask));
                if grown != std::mem::replace(goal, grown) {
                    work.push(*to);
                }
            }
        }
        masks
    }
    /// Returns the width of an integer, or of the lanes of a vector.
    fn width(&self, body: &Body, value: Value) -> Option<u32> {
        self.facts.unit.types.int_bits(body.ty(value))
    }
    fn edge(&mut self, from: Option<FlowNode>, to: Option<FlowNode>, change: BitTransfer) {
        if let (Some(from), Some(to)) = (from, to) {
            self.edges.push((from as u32, to as u32, change));
        }
    }
    fn node(&self, func: FuncId, value: Value) -> Option<FlowNode> {
        self.flow.value_node(func, value)
    }
    fn copy_edge(&mut self, from: (FuncId, Value), to: (FuncId, Value)) {
        let (from, to) = (self.node(from.0, from.1), self.node(to.0, to.1));
        self.edge(from, to, BitTransfer::Masked(u128::MAX));
    }
    /// Records the fraction bits of a value that no op of the call graph computes.
    fn seed_fraction_bits(&mut self, func: FuncId, value: Value) {
        let mut mask = 0;
        for lane in self.facts.words.lanes(func, value) {
            if let LaneKind::Float(kind) = lane.kind {
                mask |= fraction(kind).checked_shl(lane.bit).unwrap_or(u128::MAX);
            }
        }
        let node = self.node(func, value);
        if self.classes.value_varied(func, value) {
            self.of_floats.extend(node.map(|node| (node, mask)));
        }
    }
    fn op(&mut self, func: FuncId, body: &Body, op: Op) {
        let mut copies = Vec::new();
        body.value_flows(op, |from, to| copies.push((from, to)));
        for (from, to) in copies {
            self.copy_edge((func, from), (func, to));
        }
        match body.kind(op) {
            OpKind::Cast(cast) => self.cast(func, body, op, *cast),
            OpKind::Binary(binary) if !binary.is_float() => self.binary(func, body, op, *binary),
            OpKind::ExtractElement
            | OpKind::InsertElement
            | OpKind::Shuffle(_)
            | OpKind::ExtractValue(_)
            | OpKind::InsertValue(_) => {
                for value in body.operands(op) {
                    self.copy_edge((func, value), (func, body.result(op)));
                }
            }
            OpKind::Call(_) | OpKind::Invoke(_) => self.call(func, body, op),
            _ => {}
        }
        self.accesses(func, body, op);
    }
    fn cast(&mut self, func: FuncId, body: &Body, op: Op, cast: CastOp) {
        let (from, to) = (body.operand(op, 0), body.result(op));
        let types = &self.facts.unit.types;
        let (old, new) = (self.width(body, from), self.width(body, to));
        let nodes = (self.node(func, from), self.node(func, to));
        match (cast, old, new) {
            (CastOp::BitCast, None, Some(width)) => {
                let Some(kind) = types.float_kind(body.ty(from)) else {
                    // Not an error: the bits are not the bits of a float.
                    return;
                };
                let whole = round_to_integer::has_rounding_shift(self.facts.unit, body, from);
                if self.classes.value_varied(func, from) && !whole {
                    let mask = match kind.bits() == width {
                        true => fraction(kind),
                        false => low_bits(width),
                    };
                    self.of_floats.extend(nodes.1.map(|node| (node, mask)));
                }
            }
            (CastOp::BitCast, Some(a), Some(b)) if a != b => {
                self.edge(nodes.0, nodes.1, BitTransfer::Mixed(low_bits(b)));
            }
            (CastOp::SExt, Some(a), Some(b)) => {
                self.edge(nodes.0, nodes.1, BitTransfer::SignExtend(a, low_bits(b)));
            }
            (CastOp::BitCast | CastOp::Trunc | CastOp::ZExt, Some(_), Some(b)) => {
                self.edge(nodes.0, nodes.1, BitTransfer::Masked(low_bits(b)));
            }
            (CastOp::FPToSI | CastOp::FPToUI, _, Some(width)) => {
                if self.classes.value_varied(func, from) {
                    let node = nodes.1.map(|node| (node, low_bits(width)));
                    self.converted.extend(node);
                }
            }
            _ => {}
        }
    }
    fn binary(&mut self, func: FuncId, body: &Body, op: Op, binary: BinaryOp) {
        let (a, b, result) = (body.operand(op, 0), body.operand(op, 1), body.result(op));
        let Some(width) = self.width(body, result) else {
            unreachable!("integer arithmetic yields integers");
        };
        let all = low_bits(width);
        let constant = constant(self.facts.unit, body, b);
        let by = constant.and_then(|n| u32::try_from(n).ok());
        let change = match (binary, by) {
            (BinaryOp::And, _) => BitTransfer::Masked(constant.unwrap_or(all)),
            (BinaryOp::Or | BinaryOp::Xor, _) => BitTransfer::Masked(all),
            (BinaryOp::Shl, Some(by)) => BitTransfer::ShiftUp(by, all),
            (BinaryOp::LShr, Some(by)) => BitTransfer::ShiftDown(by, None),
            (BinaryOp::AShr, Some(by)) => BitTransfer::ShiftDown(by, Some(width)),
            (BinaryOp::Add | BinaryOp::Sub, _) if constant.is_some_and(|n| is_small(n, width)) => {
                BitTransfer::Step(all)
            }
            (BinaryOp::Add | BinaryOp::Sub, _) => BitTransfer::CarryUp(all),
            (BinaryOp::Mul, _) if constant.is_some() => BitTransfer::CarryUp(all),
            _ => BitTransfer::Mixed(all),
        };
        let to = self.node(func, result);
        self.edge(self.node(func, a), to, change);
        let second = match binary {
            BinaryOp::Shl | BinaryOp::LShr | BinaryOp::AShr | BinaryOp::Mul => {
                BitTransfer::Mixed(all)
            }
            _ => change,
        };
        self.edge(self.node(func, b), to, second);
    }
    fn call(&mut self, func: FuncId, body: &Body, op: Op) {
        let facts = self.facts;
        let args = facts.unit.call_args(body, op);
        let result = body.call_result(op);
        let inside = |graph: &mut Self, callee: FuncId| {
            let Some(inner) = facts.unit.functions[callee].body.as_deref() else {
                // Not an error: an indirect call of a function without a body is refused if it has active
                // values.
                return;
            };
            for (&arg, &param) in args.iter().zip(inner.params()) {
                graph.copy_edge((func, arg), (callee, param));
            }
            let end = inner.last(inner.root());
            let end = end.filter(|end| inner.operand_count(*end) == 1);
            if let (Some(result), Some(end)) = (result, end) {
                graph.copy_edge((callee, inner.operand(end, 0)), (func, result));
            }
        };
        match facts.closure.callee(facts.unit, body, op) {
            Some(Callee::Inside(callee)) => inside(self, callee),
            Some(Callee::Indirect(_)) => {
                for &callee in facts.memory.callees(func, op) {
                    inside(self, callee);
                }
            }
            _ => {
                let Some(result) = result else {
                    // Not an error: the call has no result.
                    return;
                };
                self.seed_fraction_bits(func, result);
                let known = facts.unit.known_callee(body, op);
                let change = match known {
                    Some(ExternalFn::Integer(
                        IntFn::Smax | IntFn::Smin | IntFn::Umax | IntFn::Umin,
                    )) => BitTransfer::Masked(u128::MAX),
                    Some(ExternalFn::Integer(_)) => {
                        BitTransfer::Mixed(low_bits(self.width(body, result).unwrap_or(128)))
                    }
                    _ => return,
                };
                for &arg in &args {
                    self.edge(self.node(func, arg), self.node(func, result), change);
                }
            }
        }
    }
    /// Adds the edges of integers through memory, and the sources for integers loaded from floats.
    fn accesses(&mut self, func: FuncId, body: &Body, op: Op) {
        let facts = self.facts;
        let mut touched = Vec::new();
        value_accesses(facts.unit, body, op, |access| touched.push(access));
        for access in touched {
            let (ValueAccess::Load { ptr, value } | ValueAccess::Store { ptr, value }) = access;
            if self.width(body, value).is_none() {
                continue;
            }
            let node = self.node(func, value);
            for class in facts.memory.alias_sets_of(func, ptr) {
                let class = Some(self.flow.alias_set_node(class));
                match access {
                    ValueAccess::Load { .. } => {
                        self.edge(class, node, BitTransfer::Masked(u128::MAX));
                    }
                    ValueAccess::Store { .. } => {
                        self.edge(node, class, BitTransfer::Masked(u128::MAX));
                    }
                }
            }
            if let ValueAccess::Load { .. } = access {
                self.load_source(func, body, op, (ptr, value));
            }
        }
    }
    fn load_source(&mut self, func: FuncId, body: &Body, op: Op, (ptr, value): (Value, Value)) {
        let node = self.node(func, value).filter(|n| self.bits.contains(n));
        let (Some(node), Some(width)) = (node, self.width(body, value)) else {
            // Not an error: the value is no integer that may hold bits of a float.
            return;
        };
        let words = self.facts.words;
        let mut targets = self.facts.memory.targets(func, ptr).iter();
        let is_named = lattice::access_type(self.facts.unit, body, op).has_integer();
        let is_tested =
            is_named && targets.any(|place| self.classes.receives_integers(self.facts, *place));
        if words.carries_float(func, value) {
            let count = self.of_floats.len();
            self.seed_fraction_bits(func, value);
            if is_tested {
                self.of_names.extend(self.of_floats.drain(count..));
            }
            // Not an error: the bits of the value have been recorded.
            return;
        }
        // An object with an integer TBAA name is an integer, even in memory with floats at other offsets.
        if is_named
            && (lattice::is_integer_member(self.facts.unit, body, op)
                || lattice::is_next_to_pointers(self.facts.unit, body, op)
                || !self.is_float_under_name((func, ptr), width))
        {
            return;
        }
        // So is a member of a character type, unless the program itself stores floats there.
        let mut targets = self.facts.memory.targets(func, ptr).iter();
        let is_float = |place: &CellRef| {
            !words.is_visible(place.class) && words.has_floats_at(*place, u64::from(width / 8))
        };
        if lattice::loads_character_member(self.facts.unit, body, op) && !targets.any(is_float) {
            return;
        }
        let masks = (self.facts.memory.targets(func, ptr).iter())
            .map(|target| self.fraction_bits_at(*target, width));
        let mask = masks.reduce(|a, b| a | b).unwrap_or(low_bits(width));
        match is_tested {
            true => self.of_names.push((node, mask)),
            false => self.of_floats.push((node, mask)),
        }
    }
    /// Returns true if the program itself stores floats where it loads an integer by name.
    fn is_float_under_name(&self, (func, ptr): (FuncId, Value), width: u32) -> bool {
        let (words, memory) = (self.facts.words, self.facts.memory);
        memory.targets(func, ptr).iter().any(|place| {
            self.classes.is_varied(place.class) && words.is_float_under_name(memory, *place, width)
        })
    }
    /// Returns the bits of an integer of `width` bits at a location that may be fraction bits of a float.
    fn fraction_bits_at(&self, at: CellRef, width: u32) -> u128 {
        let mut kinds = self.facts.words.types_of_set(at.class).floats();
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return low_bits(width);
        };
        let bytes = i64::from(kind.bits() / 8);
        let mut folds = self.facts.memory.get(at.class).folds_at(at.offset_bytes);
        let even = folds.all(|fold| fold.stride.is_multiple_of(bytes as u64));
        let start = at.offset_bytes.rem_euclid(bytes) as u32 * 8;
        match even && start + width <= kind.bits() {
            true => fraction(kind) >> start & low_bits(width),
            false => low_bits(width),
        }
    }
    fn copies(&mut self) {
        for copy in self.facts.memory.copies() {
            for (from, to) in copy.flows() {
                let from = self.flow.alias_set_node(from);
                let to = self.flow.alias_set_node(to);
                self.edge(Some(from), Some(to), BitTransfer::Masked(u128::MAX));
            }
        }
    }
}

/// Returns true for a constant of a magnitude below 2^32, as a signed integer of `width` bits.
fn is_small(constant: u128, width: u32) -> bool {
    const END: u128 = 1 << 32;
    constant < END || (constant.wrapping_neg() & low_bits(width)) < END
}

/// Returns the value of an integer constant, or of a splat vector constant.
fn constant(unit: &Unit, body: &Body, value: Value) -> Option<u128> {
    let Definition::Const(id) = body.values[value].def else {
        return None;
    };
    let number = |id| match unit.constant(id).kind {
        ConstKind::Int(n) => Some(n),
        ConstKind::Zero => Some(0),
        _ => None,
    };
    match (&unit.constant(id).kind, unit.types.get(body.ty(value))) {
        (ConstKind::Aggregate(lanes), Type::Vector { .. }) => {
            let first = *lanes.first()?;
            let same = lanes.iter().all(|lane| *lane == first);
            number(first).filter(|_| same)
        }
        _ => number(id),
    }
}
