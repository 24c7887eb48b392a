//! Storage of per-thread values: each value live across a split is stored per thread or recomputed.
//!
//! Place: after [`crate::blocks::uniformity`], before the split. The choice is a vertex min-cut. Values that cross a
//! split are the sinks of a network in which values flow along cheap pure ops. Sources are values that can
//! be computed only once (results of calls, of loads from written memory, of structured ops). The minimum
//! cut is stored; values after the cut are recomputed in every segment that uses them. Ranks, uniform
//! values, and the results and parameters of skeleton branches and loops cost nothing.

use crate::Options;
use crate::blocks::skeleton::Skeleton;
use crate::blocks::uniformity::Uniformity;
use gradus_analysis::VertexNetwork;
use gradus_edit::is_pure;
use gradus_ir::externals::{ExternalFn, IntFn, MathFn};
use gradus_ir::{Body, Definition, Op, OpKind, Region, Unit, Value};
use std::collections::{HashMap, HashSet};

/// Storage plan for values that cross a split.
#[derive(Debug, Default)]
pub(crate) struct ThreadStorage {
    /// Values stored per thread, in program order.
    pub stored: Vec<Value>,
    /// Private allocations that live across segments, in program order.
    pub live_allocas: Vec<Op>,
    /// Values that cross a split and are recomputed.
    pub recomputed: Vec<Value>,
}

impl ThreadStorage {
    /// The first cross-segment allocation of unknown size.
    pub fn alloca_of_unknown_size(&self, unit: &Unit, body: &Body) -> Option<Op> {
        let mut kept = self.live_allocas.iter().copied();
        kept.find(|op| element_count(unit, body, *op).is_none())
    }
}

/// Number of elements of an allocation, if constant.
pub(crate) fn element_count(unit: &Unit, body: &Body, alloca: Op) -> Option<u64> {
    u64::try_from(body.as_int(unit, body.operand(alloca, 0))?).ok()
}

/// Plans the storage of a block's per-thread values.
pub(crate) fn plan(
    unit: &Unit,
    body: &Body,
    spine: &Skeleton,
    levels: &Uniformity,
    steady: &HashSet<Op>,
    options: &Options,
) -> ThreadStorage {
    let plan = StoragePlanner {
        unit,
        body,
        spine,
        levels,
        steady,
    };
    let mut homes = ThreadStorage::default();
    if !spine.has_split_points() {
        return homes;
    }
    let mut wanted = Vec::new();
    for &region in spine.regions() {
        for op in body.ops_in(region) {
            plan.collect_crossing_values(op, &mut homes, &mut wanted);
        }
    }
    match options.recompute {
        true => plan.choose_min_cut(&wanted, &mut homes),
        false => {
            homes.stored = wanted;
            homes.stored.sort();
        }
    }
    homes
}

struct StoragePlanner<'a> {
    unit: &'a Unit,
    body: &'a Body,
    spine: &'a Skeleton,
    levels: &'a Uniformity,
    steady: &'a HashSet<Op>,
}

impl StoragePlanner<'_> {
    /// Collects the results of `op` that are used in other segments.
    fn collect_crossing_values(&self, op: Op, homes: &mut ThreadStorage, wanted: &mut Vec<Value>) {
        let body = self.body;
        if self.spine.is_structural(op) {
            // Every iteration compares its index with the trip count.
            if matches!(body.kind(op), OpKind::For { .. }) && self.levels.is_divergent(op) {
                let trips = body.operand(op, 0);
                if self.levels.is_per_thread_value(trips) && !self.is_available(trips) {
                    wanted.push(trips);
                }
            }
            return;
        }
        if !self.levels.is_per_thread(op) {
            return;
        }
        if let OpKind::Alloca(_) = body.kind(op) {
            if self.is_live_across_segments(op) {
                homes.live_allocas.push(op);
            }
            return;
        }
        let own = self.spine.segment(op);
        for &result in body.results(op) {
            let crosses = |used: gradus_ir::Use| self.spine.segment_of(used.op) != own;
            if body.uses(result).any(crosses) {
                wanted.push(result);
            }
        }
    }

    /// Returns whether the contents of an allocation must survive the end of a segment.
    fn is_live_across_segments(&self, alloca: Op) -> bool {
        let body = self.body;
        let mut open = vec![body.result(alloca)];
        let mut seen: HashSet<Value> = HashSet::new();
        let mut segment = None;
        while let Some(pointer) = open.pop() {
            if !seen.insert(pointer) {
                continue;
            }
            for used in body.uses(pointer) {
                let derives = match body.kind(used.op) {
                    OpKind::Addr { .. } | OpKind::Select | OpKind::Freeze => true,
                    OpKind::Load(_) => false,
                    OpKind::Store(_) | OpKind::AtomicRmw(..) if used.index != 0 => false,
                    _ => return true,
                };
                if derives {
                    open.push(body.result(used.op));
                    continue;
                }
                let here = self.spine.segment_of(used.op);
                if segment.is_some_and(|known| known != here) || here.is_none() {
                    return true;
                }
                segment = Some(here);
            }
        }
        // If a skeleton loop lies between the allocation's region and the uses, each iteration ends a
        // segment.
        let region = segment.flatten().map(|s| self.spine.region_of(s));
        region.is_some_and(|region| Some(region) != body.parent(alloca))
    }

    /// Returns whether a value is available in every segment at no cost.
    fn is_available(&self, value: Value) -> bool {
        match self.body.values[value].def {
            Definition::Const(_) => true,
            Definition::Param(region, _) => self.is_of_spine(region),
            Definition::Result(op, _) => {
                self.spine.is_structural(op) || matches!(self.body.kind(op), OpKind::Alloca(_))
            }
        }
    }
    fn is_of_spine(&self, region: Region) -> bool {
        self.spine.is_in_skeleton(self.body, region)
    }

    /// The defining op, if cheap to rerun.
    fn cheap_def(&self, value: Value) -> Option<Op> {
        let op = self.body.def_op(value)?;
        is_cheap(self.unit, self.body, op, self.steady).then_some(op)
    }

    /// Chooses the min-cut from which all required values can be computed.
    fn choose_min_cut(&self, wanted: &[Value], homes: &mut ThreadStorage) {
        let mut vertices: HashMap<Value, usize> = HashMap::new();
        let mut order: Vec<Value> = Vec::new();
        let mut edges: Vec<(Value, Value)> = Vec::new();
        let mut open: Vec<Value> = wanted.to_vec();
        while let Some(value) = open.pop() {
            if vertices.contains_key(&value) {
                continue;
            }
            vertices.insert(value, order.len());
            order.push(value);
            let Some(op) = self.cheap_def(value) else {
                continue;
            };
            for operand in self.body.operands(op) {
                if self.levels.is_per_thread_value(operand) && !self.is_available(operand) {
                    edges.push((operand, value));
                    open.push(operand);
                }
            }
        }
        let costs: Vec<u64> = order.iter().map(|v| self.cost(*v)).collect();
        let mut network = VertexNetwork::new(&costs);
        for (vertex, &value) in order.iter().enumerate() {
            match self.cheap_def(value) {
                None => network.connect_source(vertex),
                // A repeated load costs half of a store and a load.
                Some(op) if matches!(self.body.kind(op), OpKind::Load(_)) => {
                    network.connect_source_at_cost(vertex, costs[vertex] / 2);
                }
                Some(_) => {}
            }
        }
        for (from, to) in edges {
            network.connect(vertices[&from], vertices[&to]);
        }
        for value in wanted {
            network.connect_sink(vertices[value]);
        }
        let cut = network.min_cut();
        let is_cut = |value: &Value| cut[vertices[value]];
        homes.stored = order.iter().copied().filter(is_cut).collect();
        homes.stored.sort();
        homes.recomputed = wanted.iter().copied().filter(|v| !is_cut(v)).collect();
    }

    /// Cost of storing and loading a value, in bytes.
    fn cost(&self, value: Value) -> u64 {
        let ty = self.body.ty(value);
        2 * self.unit.layout.store_bytes(self.unit, ty).max(1)
    }
}

/// Returns whether an op is as cheap as a load of its result, and yields the same result at any place.
pub(crate) fn is_cheap(unit: &Unit, body: &Body, op: Op, steady: &HashSet<Op>) -> bool {
    match body.kind(op) {
        // A division by a constant becomes a multiplication.
        OpKind::Binary(binary) if binary.is_slow() => {
            !binary.is_float() && body.as_const(body.operand(op, 1)).is_some()
        }
        OpKind::Load(_) => steady.contains(&op),
        OpKind::Call(_) => is_short_call(unit, body, op),
        kind => kind.is_arithmetic(),
    }
}

/// Returns whether a call lowers to one or two instructions.
fn is_short_call(unit: &Unit, body: &Body, op: Op) -> bool {
    use IntFn::{Abs, Smax, Smin, Umax, Umin};
    let known = unit.known_callee(body, op);
    let short = matches!(
        known,
        Some(
            ExternalFn::Integer(Smax | Smin | Umax | Umin | Abs)
                | ExternalFn::Math(MathFn::Fabs | MathFn::Copysign)
        )
    );
    short && is_pure(unit, body, op)
}
