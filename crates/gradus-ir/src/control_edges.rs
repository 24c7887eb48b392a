//! Control edges of region ops: every transition between an op, its regions and the code behind the op, with the
//! values that the transition carries.
//!
//! Place: read by analyses, which walk edges and need no match over region ops (the driver of dense analyses is
//! `cfg/dataflow.rs` of gradus-analysis). The form follows MLIR's `RegionBranchOpInterface`; the table of this
//! file replaces the interface, because the enumeration of ops is closed.
//!
//! The edges describe the serial execution of a strand, as the interpreter executes the op: iterations and ranks
//! follow each other in any order. One edge goes beyond: the code behind a `spawn` may run before the task. An op
//! without regions has no edges.
//!
//! # Invariants
//!
//! - The interpreter takes no transition without an edge, and the transition carries the stated values
//!   (`state/edge_trace.rs` of gradus-interp checks both).
//! - The flows of an edge to an op's exit reach all results. The flows of an edge to a region reach all region
//!   parameters, except for the parameters that the op computes: indices, ranks, sizes and the result of a call.
//! - The source of each flow is an operand of the op or of a terminator in the op's regions.

use crate::{Body, Op, OpKind, ReduceOp, Region, Use, Value, scalar_ops};
use smallvec::{SmallVec, smallvec};

/// A program point at which a control edge begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// Before an op with regions; the operands are computed.
    OpEntry(Op),
    /// The start of a region.
    RegionEntry(Region),
    /// The end of a region; the operands of the terminator are computed.
    RegionEnd(Region),
    /// Behind an op with regions; the results are set.
    OpExit(Op),
    /// The function returns.
    Return,
    /// An exception leaves the function.
    Unwind,
}

/// The relation of a flow's sources and targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// The target becomes the source. Several copies to one target are alternatives.
    Copy,
    /// The target is a reduction of the sources of all such flows, in all iterations.
    Combine,
    /// The target becomes the source in another rank.
    Broadcast,
}

/// Values that a control edge carries: operands of one op and the values that receive the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFlow<'b> {
    /// The op with the operands: the region op or a terminator in a region of the op.
    pub op: Op,
    /// The number of the operand that flows to the first target. The following operands flow to the following
    /// targets.
    pub first_operand: usize,
    /// The region parameters or results that receive the operands.
    pub targets: &'b [Value],
    /// The relation of operands and targets.
    pub transfer: Transfer,
}

impl<'b> ValueFlow<'b> {
    /// Returns the pairs of source and target.
    pub fn pairs(self, body: &'b Body) -> impl Iterator<Item = (Value, Value)> + 'b {
        let sources = body.operands(self.op).skip(self.first_operand);
        sources.zip(self.targets.iter().copied())
    }
}

/// A transition of control from `from` to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlEdge<'b> {
    /// The start: [`Point::OpEntry`] or [`Point::RegionEnd`].
    pub from: Point,
    /// The end: [`Point::RegionEntry`], [`Point::OpExit`], [`Point::Return`] or [`Point::Unwind`].
    pub to: Point,
    /// The values that the transition carries.
    pub flows: Flows<'b>,
}

type Flows<'b> = SmallVec<[ValueFlow<'b>; 1]>;

/// The edges that begin at one point.
pub type ControlEdges<'b> = SmallVec<[ControlEdge<'b>; 2]>;

/// Returns the copy of an op's operands from number `first_operand` on to `targets`.
fn copy(op: Op, first_operand: usize, targets: &[Value]) -> Flows<'_> {
    smallvec![ValueFlow {
        op,
        first_operand,
        targets,
        transfer: Transfer::Copy,
    }]
}

impl Body {
    /// Returns all edges of a region op: from the op's entry and from the end of each region.
    pub fn control_edges(&self, op: Op) -> impl Iterator<Item = ControlEdge<'_>> {
        let ends = self.op_regions(op).iter().map(|r| Point::RegionEnd(*r));
        std::iter::once(Point::OpEntry(op))
            .chain(ends)
            .flat_map(|point| self.edges_from(point))
    }

    /// Returns the edges that begin at a point. No edge begins at a region's start or behind an op: control
    /// continues with the next op.
    pub fn edges_from(&self, from: Point) -> ControlEdges<'_> {
        let ends = match from {
            Point::OpEntry(op) => self.entry_ends(op),
            Point::RegionEnd(region) => self.region_ends(region),
            Point::RegionEntry(_) | Point::OpExit(_) | Point::Return | Point::Unwind => Ends::new(),
        };
        let edge = |(to, flows)| ControlEdge { from, to, flows };
        ends.into_iter().map(edge).collect()
    }

    /// Visits the values that an op copies or combines, as pairs of source and target: the flows of all control
    /// edges of the op, and the operands of `select` and `freeze`. The flows of a terminator belong to the op
    /// that owns the region.
    pub fn value_flows(&self, op: Op, mut visit: impl FnMut(Value, Value)) {
        match self.kind(op) {
            OpKind::Select => {
                visit(self.operand(op, 1), self.result(op));
                visit(self.operand(op, 2), self.result(op));
            }
            OpKind::Freeze => visit(self.operand(op, 0), self.result(op)),
            _ if self.op_regions(op).is_empty() => {}
            _ => {
                for flow in self.control_edges(op).flat_map(|edge| edge.flows) {
                    flow.pairs(self).for_each(|(from, to)| visit(from, to));
                }
            }
        }
    }

    /// Returns the region parameters and results that receive an operand of a region op or of a terminator, each
    /// once.
    pub fn flow_targets(&self, at: Use) -> SmallVec<[Value; 2]> {
        let mut targets = SmallVec::new();
        let mut add = |edge: ControlEdge<'_>| {
            for flow in edge.flows.iter().filter(|flow| flow.op == at.op) {
                let number = (at.index as usize).checked_sub(flow.first_operand);
                let target = number.and_then(|n| flow.targets.get(n));
                targets.extend(target.copied().filter(|t| !targets.contains(t)));
            }
        };
        let (owner, from) = match (self.kind(at.op).is_terminator(), self.parent(at.op)) {
            (true, Some(region)) => (self.owner(region), Point::RegionEnd(region)),
            _ => (Some(at.op), Point::OpEntry(at.op)),
        };
        match owner.filter(|op| self.has_distant_flows(*op)) {
            Some(op) => self.control_edges(op).for_each(&mut add),
            None => self.edges_from(from).into_iter().for_each(&mut add),
        }
        targets
    }

    /// Returns whether operands of an op or of a terminator flow along edges that begin elsewhere.
    fn has_distant_flows(&self, op: Op) -> bool {
        matches!(
            self.kind(op),
            OpKind::ParFor { .. } | OpKind::Single { copy: true, .. }
        )
    }

    /// Returns the ends of the edges from an op's entry.
    // table
    fn entry_ends(&self, op: Op) -> Ends<'_> {
        use OpKind::*;
        let regions = self.op_regions(op);
        let start = |n: usize| Point::RegionEntry(regions[n]);
        let exit = Point::OpExit(op);
        let results = self.results(op);
        match self.kind(op) {
            If | Switch(_) | Invoke(_) => self.to_each_region(op).collect(),
            Scope | Critical(_) => smallvec![(start(0), Flows::new())],
            Loop { .. } => smallvec![(start(0), copy(op, 0, self.region_params(regions[0])))],
            For { .. } => smallvec![
                (start(0), copy(op, 1, &self.region_params(regions[0])[1..])),
                (exit, copy(op, 1, results)),
            ],
            ParFor { dims, .. } => smallvec![
                (start(0), Flows::new()),
                (exit, copy(op, *dims as usize, results)),
            ],
            // The code behind a task need not wait for the task. A team, or a rank's part of a loop, may be empty.
            Spawn { .. } | Spmd { .. } | ShareFor { .. } => {
                smallvec![(start(0), Flows::new()), (exit, Flows::new())]
            }
            Single { copy: false, .. } => {
                smallvec![(start(0), Flows::new()), (exit, copy(op, 0, results))]
            }
            Single { copy: true, .. } => {
                let broadcast = |end| ValueFlow {
                    transfer: Transfer::Broadcast,
                    ..copy(end, 0, results)[0]
                };
                let others = self.yield_of(regions[0]).map(broadcast);
                let others = others.map(|flow| (exit, smallvec![flow]));
                std::iter::once((start(0), Flows::new()))
                    .chain(others)
                    .collect()
            }
            Foreign(_) if regions.is_empty() => Ends::new(),
            // Any region may run, in any order.
            Foreign(_) => self
                .to_each_region(op)
                .chain([(exit, Flows::new())])
                .collect(),
            scalar_ops!()
            | Freeze
            | Alloca(_)
            | Load(_)
            | Store(_)
            | Addr { .. }
            | AtomicRmw(..)
            | CmpXchg { .. }
            | Fence { .. }
            | Call(_)
            | LandingPad(_)
            | Sync
            | Barrier(_)
            | Yield
            | Repeat
            | Return
            | Unreachable
            | Resume => Ends::new(),
        }
    }

    fn to_each_region(&self, op: Op) -> impl Iterator<Item = (Point, Flows<'_>)> {
        let regions = self.op_regions(op).iter();
        regions.map(|r| (Point::RegionEntry(*r), Flows::new()))
    }

    /// Returns the ends of the edges from a region's end.
    fn region_ends(&self, region: Region) -> Ends<'_> {
        let Some(end) = self.last(region) else {
            unreachable!("a verified region has a terminator");
        };
        match (self.kind(end), self.owner(region)) {
            (OpKind::Return, _) => smallvec![(Point::Return, Flows::new())],
            (OpKind::Resume, _) => smallvec![(Point::Unwind, Flows::new())],
            (OpKind::Unreachable, _) => Ends::new(),
            (OpKind::Repeat, Some(owner)) => {
                let params = self.region_params(region);
                smallvec![
                    (Point::RegionEntry(region), copy(end, 1, params)),
                    (
                        Point::OpExit(owner),
                        copy(end, 1 + params.len(), self.results(owner))
                    ),
                ]
            }
            (OpKind::Yield, Some(owner)) => self.yield_ends(owner, region, end),
            _ => unreachable!("a verified region ends in a terminator of the region's owner"),
        }
    }

    /// Returns the ends of the edges from a `yield`.
    // table
    fn yield_ends(&self, owner: Op, region: Region, end: Op) -> Ends<'_> {
        use OpKind::*;
        let (again, exit) = (Point::RegionEntry(region), Point::OpExit(owner));
        let results = self.results(owner);
        match self.kind(owner) {
            If | Switch(_) | Invoke(_) | Scope | Critical(_) | Single { .. } => {
                smallvec![(exit, copy(end, 0, results))]
            }
            Spawn { .. } => smallvec![(exit, Flows::new())],
            Spmd { .. } | ShareFor { .. } => {
                smallvec![(again, Flows::new()), (exit, Flows::new())]
            }
            For { .. } => smallvec![
                (again, copy(end, 0, &self.region_params(region)[1..])),
                (exit, copy(end, 0, results)),
            ],
            ParFor {
                dims, reductions, ..
            } => self.reduction_ends(owner, region, *dims as usize, reductions),
            Foreign(_) => self
                .to_each_region(owner)
                .chain([(exit, copy(end, 0, results))])
                .collect(),
            Loop { .. } => unreachable!("the region of a `loop` ends in `repeat`"),
            scalar_ops!()
            | Freeze
            | Alloca(_)
            | Load(_)
            | Store(_)
            | Addr { .. }
            | AtomicRmw(..)
            | CmpXchg { .. }
            | Fence { .. }
            | Call(_)
            | LandingPad(_)
            | Sync
            | Barrier(_)
            | Yield
            | Repeat
            | Return
            | Unreachable
            | Resume => unreachable!("the op has no regions"),
        }
    }

    /// Returns the ends of the edges from a region of a `par.for`. Behind the body the combiner regions follow in
    /// order; behind the last region the next iteration follows, or the op ends.
    ///
    /// A combiner runs in any order and grouping: each parameter is the initial value, a contribution of an
    /// iteration or an earlier combination.
    fn reduction_ends(
        &self,
        op: Op,
        region: Region,
        dims: usize,
        reductions: &[ReduceOp],
    ) -> Ends<'_> {
        let regions = self.op_regions(op);
        let custom = |(n, r): (usize, &ReduceOp)| (*r == ReduceOp::Custom).then_some(n);
        let custom = || reductions.iter().enumerate().filter_map(custom);
        let yields = |region: usize| self.yield_of(regions[region]);
        let Some(here) = regions.iter().position(|r| *r == region) else {
            unreachable!("the op owns the region");
        };
        let next = here + 1;
        if let (Some(&combiner), Some(number)) = (regions.get(next), custom().nth(next - 1)) {
            let sources = [
                Some((op, dims + number)),
                yields(0).map(|end| (end, number)),
                yields(next).map(|end| (end, 0)),
            ];
            let params = self.region_params(combiner);
            let flows = sources.into_iter().flatten().flat_map(|(from, operand)| {
                params
                    .chunks(1)
                    .flat_map(move |param| copy(from, operand, param))
            });
            return smallvec![(Point::RegionEntry(combiner), flows.collect())];
        }
        let results = self.results(op);
        let combine = |(from, first)| ValueFlow {
            transfer: Transfer::Combine,
            ..copy(from, first, results)[0]
        };
        let sources = [Some((op, dims)), yields(0).map(|end| (end, 0))];
        let totals = custom().zip(1..).filter_map(|(number, region)| {
            let end = yields(region)?;
            Some(copy(end, 0, &results[number..=number])[0])
        });
        let flows = sources.into_iter().flatten().map(combine).chain(totals);
        smallvec![
            (Point::RegionEntry(regions[0]), Flows::new()),
            (Point::OpExit(op), flows.collect()),
        ]
    }
}

type Ends<'b> = SmallVec<[(Point, Flows<'b>); 2]>;
