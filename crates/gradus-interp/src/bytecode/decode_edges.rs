//! The bytecode decoder for traced runs ([`crate::Options::check_edges`]): instructions that mark the points at
//! which control enters or leaves a region, with the control edges that the IR states from the point on.

use crate::bytecode::code::{EdgePoint, EdgeValues, Instr, Reg, RunningTotal};
use crate::bytecode::decode::Decoder;
use gradus_ir::{ControlEdge, Op, OpKind, Point, ReduceOp, Region, Transfer, ValueFlow};

impl Decoder<'_> {
    /// Marks the point before an op: the entry of an op with regions, or the end of a region.
    pub(crate) fn mark_before(&mut self, op: Op) {
        let Some(region) = self.body.parent(op).filter(|_| self.check_edges) else {
            // Not an error: the run is not traced.
            return;
        };
        match self.body.kind(op) {
            OpKind::Yield | OpKind::Repeat => self.mark(Point::RegionEnd(region), region),
            OpKind::Return => {
                self.mark(Point::RegionEnd(region), region);
                self.mark(Point::Return, region);
            }
            OpKind::Resume => {
                self.mark(Point::RegionEnd(region), region);
                self.mark(Point::Unwind, region);
            }
            _ if self.body.op_regions(op).is_empty() => {}
            _ => self.mark(Point::OpEntry(op), region),
        }
    }

    /// Marks the start of a region.
    pub(crate) fn mark_region(&mut self, region: Region) {
        if self.check_edges {
            self.mark(Point::RegionEntry(region), region);
        }
    }

    /// Marks the point behind an op with regions.
    pub(crate) fn mark_after(&mut self, op: Op) {
        if let Some(region) = self.body.parent(op).filter(|_| self.check_edges) {
            self.mark(Point::OpExit(op), region);
        }
    }

    fn mark(&mut self, point: Point, region: Region) {
        let body = self.body;
        let edges = body.edges_from(point);
        let edges = edges.iter().map(|edge| self.edge_values(edge)).collect();
        let mark = EdgePoint {
            point,
            region,
            edges,
            totals: self.running_totals(point),
            broadcast: self.broadcast(point),
        };
        self.emit(Instr::EdgePoint(Box::new(mark)));
    }

    fn edge_values(&mut self, edge: &ControlEdge<'_>) -> EdgeValues {
        let mut values = EdgeValues {
            to: edge.to,
            copies: Vec::new(),
            received: Vec::new(),
        };
        for flow in &edge.flows {
            match flow.transfer {
                Transfer::Copy => values.copies.extend(self.registers_of(*flow)),
                Transfer::Broadcast => {
                    let targets = flow.targets.iter();
                    values.received = targets.map(|t| self.register(*t)).collect();
                }
                // Checked after each contribution, see `running_totals`.
                Transfer::Combine => {}
            }
        }
        values
    }

    /// Returns pairs of target and source. A constant that the interpreter cannot represent is left out: the op
    /// is not executable.
    fn registers_of(&mut self, flow: ValueFlow<'_>) -> Vec<(Reg, Reg)> {
        let pairs: Vec<_> = flow.pairs(self.body).collect();
        let registers = pairs.into_iter().filter_map(|(source, target)| {
            let source = self.operand_reg(source).ok()?;
            Some((self.register(target), source))
        });
        registers.collect()
    }

    /// Returns the totals that the operands at a point start or change, by the combining flows of the edges.
    fn running_totals(&mut self, point: Point) -> Vec<RunningTotal> {
        let body = self.body;
        let (from, owner) = match point {
            Point::OpEntry(op) => (Some(op), Some(op)),
            Point::RegionEnd(region) => (body.last(region), body.owner(region)),
            Point::RegionEntry(_) | Point::OpExit(_) | Point::Return | Point::Unwind => {
                (None, None)
            }
        };
        let (Some(from), Some(owner)) = (from, owner) else {
            // Not an error: only entries and ends have operands.
            return Vec::new();
        };
        let OpKind::ParFor {
            reductions, dims, ..
        } = body.kind(owner)
        else {
            // Not an error: only parallel loops have reductions.
            return Vec::new();
        };
        let edges = body.control_edges(owner).flat_map(|edge| edge.flows);
        let flows = edges.filter(|flow| flow.transfer == Transfer::Combine && flow.op == from);
        let pairs: Vec<_> = flows.flat_map(|flow| self.registers_of(flow)).collect();
        let results = self.results(owner);
        let mut totals = Vec::new();
        for (total, value) in pairs {
            let Some(number) = results.iter().position(|r| *r == total) else {
                unreachable!("a combining flow reaches a result");
            };
            let numbers = self.operand_num(owner, *dims as usize + number);
            let combine = match (from == owner, reductions[number]) {
                (true, _) => None,
                // The combiner region computes the total.
                (false, ReduceOp::Custom) => continue,
                (false, op) => match numbers {
                    Ok((num, lanes)) => Some((op, num, lanes)),
                    Err(_) => continue,
                },
            };
            totals.push(RunningTotal {
                total,
                value,
                combine,
            });
        }
        totals
    }

    /// Returns the values that the end of a region broadcasts to other ranks.
    fn broadcast(&mut self, point: Point) -> Vec<Reg> {
        let Point::RegionEnd(region) = point else {
            // Not an error: only the end of a region broadcasts.
            return Vec::new();
        };
        let owner = self.body.owner(region).map(|op| self.body.kind(op));
        let (Some(OpKind::Single { copy: true, .. }), Some(end)) = (owner, self.body.last(region))
        else {
            // Not an error: other ops do not broadcast.
            return Vec::new();
        };
        self.operand_regs(self.body.operands(end))
            .unwrap_or_default()
    }
}
