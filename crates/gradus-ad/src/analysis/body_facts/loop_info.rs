//! Loop information: operands by role, enclosing loops, estimated trip counts, and the loops in which a value varies.

use super::BodyFacts;
use super::snapshots::SnapshotExtent;
use crate::analysis::forward_value::{Node, defining_region};
use gradus_ir::externals::{ExternalFn, MathFn};
use gradus_ir::{BinaryOp, Body, Flags, Op, OpKind, Region, Unit, Value};

/// Assumed trip count of a loop without a known bound.
const TRIPS_DEFAULT: f64 = 1000.0;

/// Returns the loops that enclose a region, outermost first.
pub(crate) fn loops_around(body: &Body, region: Region) -> Vec<Op> {
    let owners = body.regions_around(region).filter_map(|at| body.owner(at));
    let mut loops: Vec<Op> = owners.filter(|op| body.kind(*op).is_loop()).collect();
    loops.reverse();
    loops
}

/// Operands and terminator operands of a loop, by role.
pub(crate) struct LoopParts {
    /// Initial carried values.
    pub initial: Vec<Value>,
    /// Region parameters that hold the carried values.
    pub params: Vec<Value>,
    /// Next carried values.
    pub next: Vec<Value>,
    /// Values that become the results of a `loop`; the results of a `for` are its carried values.
    pub results: Vec<Value>,
}

/// Decomposes the operands of a `for` or `loop`.
pub(crate) fn loop_parts(body: &Body, op: Op) -> LoopParts {
    let region = body.op_regions(op)[0];
    let counted = matches!(body.kind(op), OpKind::For { .. });
    let skip = usize::from(counted);
    let initial: Vec<Value> = body.operands(op).skip(skip).collect();
    let params = body.region_params(region)[skip..].to_vec();
    let end: Vec<Value> = body
        .last(region)
        .map_or(Vec::new(), |end| body.operands(end).collect());
    let start = usize::from(!counted).min(end.len());
    let middle = (start + initial.len()).min(end.len());
    LoopParts {
        initial,
        params,
        next: end[start..middle].to_vec(),
        results: end[middle..].to_vec(),
    }
}

/// Returns true if a counted loop has a serial sum: a float addition to a carried value, without
/// reassociation.
pub(super) fn has_serial_reduction(unit: &Unit, body: &Body, lp: Op) -> bool {
    let region = body.op_regions(lp)[0];
    let (OpKind::For { .. }, Some(end)) = (body.kind(lp), body.last(region)) else {
        return false;
    };
    let params = body.region_params(region);
    let adds_to = |(param, next): (&Value, Value)| {
        let Some(op) = body.def_op(next) else {
            return false;
        };
        let known = unit.known_callee(body, op);
        let adds = matches!(body.kind(op), OpKind::Binary(BinaryOp::FAdd))
            || matches!(known, Some(ExternalFn::Math(MathFn::Fmuladd | MathFn::Fma)));
        let ordered = !body.ops[op].flags.has(Flags::REASSOC);
        adds && ordered && body.operands(op).any(|v| v == *param)
    };
    params.iter().skip(1).zip(body.operands(end)).any(adds_to)
}

impl BodyFacts<'_> {
    /// Returns the loops that enclose a region, outermost first.
    pub fn loops_around(&self, region: Region) -> Vec<Op> {
        loops_around(self.body, region)
    }
    /// Returns the loops in which a forward value varies, outermost first.
    pub fn varying_loops(&self, node: Node) -> Vec<Op> {
        match node {
            Node::Primal(value) | Node::Shadow(value) => {
                self.varying_loops.get(&value).cloned().unwrap_or_default()
            }
            Node::TripCount(op) | Node::CalleeTape(op) | Node::LastFrame(op) => self
                .body
                .parent(op)
                .map_or(Vec::new(), |region| self.loops_around(region)),
            Node::Snapshot(number) | Node::SnapshotBlock(number) => {
                let region = self.body.parent(self.snapshots[number].anchor);
                region.map_or(Vec::new(), |region| self.loops_around(region))
            }
            Node::ArrayBase(_) | Node::Room(_) => Vec::new(),
        }
    }
    /// Estimates the trip count of a loop.
    pub fn estimated_trip_count(&self, unit: &Unit, op: Op) -> f64 {
        estimate_trip_count(unit, self.body, op)
    }
    /// Estimates the number of saves of a forward value.
    pub fn save_count(&self, unit: &Unit, node: Node) -> f64 {
        let varying = self.varying_loops(node);
        let kept = match defining_region(self, node) {
            Some(region) => self.saving_loops(region, &varying),
            None => varying,
        };
        kept.iter()
            .map(|l| self.estimated_trip_count(unit, *l))
            .product()
    }
    /// Returns the loops that contribute a dimension to the saves of a forward value defined in `region`.
    /// Such a loop varies the value, or is independent and does not reach `region` equally often in all
    /// iterations. If all iterations reach the region, one iteration can save the value for all.
    pub fn saving_loops(&self, region: Region, varying: &[Op]) -> Vec<Op> {
        let kept = |lp: &Op| {
            varying.contains(lp)
                || self.body.is_independent(*lp) && !self.all_iterations_reach(*lp, region)
        };
        self.loops_around(region).into_iter().filter(kept).collect()
    }
    /// Returns true if every iteration of a loop reaches an inner region equally often.
    fn all_iterations_reach(&self, lp: Op, mut region: Region) -> bool {
        let body = self.body;
        while body.owner(region) != Some(lp) {
            let Some(owner) = body.owner(region) else {
                return false;
            };
            if !matches!(body.kind(owner), OpKind::For { .. }) {
                return false;
            }
            let trips = Node::Primal(body.operand(owner, 0));
            let Some(outer) = body
                .parent(owner)
                .filter(|_| !self.varying_loops(trips).contains(&lp))
            else {
                return false;
            };
            region = outer;
        }
        true
    }
    /// Estimates the number of floats in all copies of a snapshot. For a whole block, the load with the
    /// smallest estimate decides, because the other loads may visit elements repeatedly.
    pub fn snapshot_float_count(&self, unit: &Unit, number: usize) -> f64 {
        let snapshot = &self.snapshots[number];
        let region = self.body.parent(snapshot.anchor);
        let inside = |load: &Op| -> f64 {
            let around = self.loops_around(self.body.parent(*load).unwrap_or(self.body.root()));
            let varying = self.varying_loops(Node::Primal(self.body.operand(*load, 0)));
            let outer = region.map_or(0, |region| self.loops_around(region).len());
            let inner = &around[outer..];
            inner
                .iter()
                .filter(|l| varying.contains(l))
                .map(|l| self.estimated_trip_count(unit, *l))
                .product()
        };
        let sizes = snapshot.loads.iter().map(inside);
        let size = match snapshot.extent {
            SnapshotExtent::Addresses(_) => sizes.fold(1.0, f64::max),
            SnapshotExtent::Bytes(bytes) => bytes as f64 / 8.0,
            // A load from a single location does not indicate the size of the block.
            SnapshotExtent::Block(_) => match sizes.fold(f64::INFINITY, f64::min) {
                size if size <= 1.0 => TRIPS_DEFAULT,
                size => size,
            },
        };
        size.max(1.0) * self.executions(unit, region)
    }
    /// Estimates the number of executions of a region.
    pub fn executions(&self, unit: &Unit, region: Option<Region>) -> f64 {
        let Some(region) = region else { return 1.0 };
        self.loops_around(region)
            .iter()
            .map(|l| self.estimated_trip_count(unit, *l))
            .product()
    }
    /// Returns the outermost loop within `outer` that encloses `inner`, or `inner` itself.
    pub fn outermost_below(&self, inner: Op, outer: Option<Op>) -> Op {
        self.loops_between(inner, outer)
            .first()
            .copied()
            .unwrap_or(inner)
    }
    /// Returns the loops strictly between two loops, outermost first.
    pub fn loops_between(&self, inner: Op, outer: Option<Op>) -> Vec<Op> {
        let around = self
            .body
            .parent(inner)
            .map_or(Vec::new(), |r| self.loops_around(r));
        match outer.and_then(|outer| around.iter().position(|l| *l == outer)) {
            Some(at) => around[at + 1..].to_vec(),
            None => around,
        }
    }
}

/// Estimates how often the regions of an op run per execution of the op.
pub(crate) fn estimate_trip_count(unit: &Unit, body: &Body, op: Op) -> f64 {
    match body.kind(op) {
        OpKind::For { trip_max } => {
            let known = body.as_int(unit, body.operand(op, 0));
            match (known, trip_max) {
                (Some(n), _) => n.max(1) as f64,
                (None, Some(max)) if (*max as f64) < TRIPS_DEFAULT => (*max).max(1) as f64,
                _ => TRIPS_DEFAULT,
            }
        }
        OpKind::Loop {
            trip_max: Some(max),
        } if (*max as f64) < TRIPS_DEFAULT => (*max).max(1) as f64,
        OpKind::Loop { .. } => TRIPS_DEFAULT,
        _ => 1.0,
    }
}
