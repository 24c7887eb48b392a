//! Checks of region transitions against the IR's control edges, for traced runs
//! ([`crate::Options::check_edges`]).
//!
//! The bytecode of a traced run marks the points at which control enters and leaves regions
//! (`bytecode/decode_edges.rs`). A frame remembers the last point. At the next point the machine checks that an
//! edge connects both points, and that each target of the edge holds the value that a source had at the first
//! point. A `par.for` combines in place: its totals are checked after each contribution.

use crate::bytecode::code::{EdgePoint, Reg};
use crate::state::machine::Machine;
use crate::state::strand::{At, Flow};
use crate::trap::{Eval, TrapKind, fault};
use crate::values::arith::{apply_reduction, zip_lanes};
use crate::values::value::Value;
use gradus_ir::{Point, Region};

/// The position of a frame between two points.
#[derive(Clone, Debug)]
pub(crate) enum EdgeTrace {
    /// Control is in the ops of a region.
    Inside(Region),
    /// Control is on one of the edges from a point.
    Leaving {
        from: Point,
        edges: Vec<OpenEdge>,
        /// The totals after the contribution at the point.
        totals: Vec<(Reg, Value)>,
    },
}

/// An edge that control may take.
#[derive(Clone, Debug)]
pub(crate) struct OpenEdge {
    to: Point,
    /// Targets with the values of their sources. Several values of one target are alternatives.
    copies: Vec<(Reg, Value)>,
    /// The results that receive the values of another rank.
    received: Vec<Reg>,
}

impl Machine<'_> {
    /// Checks the transition to a point.
    pub(crate) fn check_edge(&mut self, at: &At, mark: &EdgePoint) -> Eval<Flow> {
        let trace = self.strand.frames.last_mut().and_then(|f| f.trace.take());
        let Some(trace) = trace else {
            return fault(TrapKind::ControlEdge, "a frame without a position");
        };
        match *trace {
            EdgeTrace::Inside(region) => {
                if !matches!(mark.point, Point::OpEntry(_) | Point::RegionEnd(_))
                    || region != mark.region
                {
                    let text = format!("{:?} follows the inside of {region:?}", mark.point);
                    return fault(TrapKind::ControlEdge, text);
                }
            }
            EdgeTrace::Leaving {
                from,
                edges,
                totals,
            } => {
                let Some(edge) = edges.iter().find(|edge| edge.to == mark.point) else {
                    let text = format!("no edge from {from:?} to {:?}", mark.point);
                    return fault(TrapKind::ControlEdge, text);
                };
                let taken = (at.code.func, from, mark.point);
                self.edges_taken.insert(taken);
                let carried = totals
                    .iter()
                    .all(|(reg, value)| self.get(at, *reg) == value)
                    && edge.copies.iter().all(|(reg, _)| {
                        let mut own = edge.copies.iter().filter(|(other, _)| other == reg);
                        own.any(|(_, value)| self.get(at, *reg) == value)
                    })
                    && self.has_received(at, &edge.received);
                if !carried {
                    let text = format!("other values from {from:?} to {:?}", mark.point);
                    return fault(TrapKind::ControlEdge, text);
                }
            }
        }
        let next = match mark.point {
            Point::OpEntry(_) | Point::RegionEnd(_) => self.leave(at, mark)?,
            Point::RegionEntry(_) | Point::OpExit(_) | Point::Return | Point::Unwind => {
                EdgeTrace::Inside(mark.region)
            }
        };
        if let Some(frame) = self.strand.frames.last_mut() {
            frame.trace = Some(Box::new(next));
        }
        Ok(Flow::Next)
    }

    /// Reads the sources of all edges from a point.
    fn leave(&mut self, at: &At, mark: &EdgePoint) -> Eval<EdgeTrace> {
        if !mark.broadcast.is_empty() {
            let values = mark.broadcast.iter().map(|r| self.get(at, *r).clone());
            let values = values.collect();
            let key = (self.groups.len(), self.strand.singles);
            self.broadcasts.insert(key, values);
        }
        let read = |(reg, source): &(Reg, Reg)| (*reg, self.get(at, *source).clone());
        let edges = mark.edges.iter().map(|edge| OpenEdge {
            to: edge.to,
            copies: edge.copies.iter().map(read).collect(),
            received: edge.received.clone(),
        });
        let edges = edges.collect();
        let mut totals = Vec::new();
        for total in &mark.totals {
            let (old, value) = (self.get(at, total.total), self.get(at, total.value));
            let new = match total.combine {
                None => value.clone(),
                Some((op, num, lanes)) => {
                    zip_lanes(lanes, old, value, |a, b| apply_reduction(op, num, a, b))?
                }
            };
            totals.push((total.total, new));
        }
        Ok(EdgeTrace::Leaving {
            from: mark.point,
            edges,
            totals,
        })
    }

    /// Returns whether results hold the values that another rank's `single` broadcast.
    fn has_received(&self, at: &At, results: &[Reg]) -> bool {
        let key = (self.groups.len(), self.strand.singles);
        let sent = self.broadcasts.get(&key);
        results.is_empty()
            || sent.is_some_and(|sent| {
                let own = results.iter().map(|r| self.get(at, *r));
                own.eq(sent)
            })
    }
}
