//! Dense dataflow analysis: a state at each op, as the fixed point over the control edges of region ops
//! ([`gradus_ir::Body::control_edges`]).
//!
//! An analysis states a lattice, a direction, a transfer function per op and, if values on edges matter, a function
//! per edge. The driver stores one state per *node*: the start of a straight run of ops, where edges join. A
//! worklist in program order (reverse postorder of the structured graph; Kam and Ullman, 1976) reruns the ops
//! behind a node whose state has changed. The names follow rustc's dataflow framework and MLIR's dense analyses.
//!
//! Complexity: with lattice height h, each node is rerun at most h times, hence at most h · (ops + edges) transfers
//! and joins, and one stored state per region and per region op. Nesting depth costs no recursion, and no node is
//! rerun because of its depth: the state of an inner loop is kept when an outer loop runs again.

use gradus_ir::{Body, ControlEdge, Op, Point, Region};
use std::collections::{BTreeSet, HashMap};

/// The states of an analysis. Joins must form a lattice of finite height.
pub trait Lattice: Clone {
    /// Joins the state of another path; returns whether the state has changed.
    fn join(&mut self, other: &Self) -> bool;
}

/// The direction in which states flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With control: a state describes the paths that lead to a point.
    Forward,
    /// Against control: a state describes the paths that follow a point.
    Backward,
}

/// A dense dataflow analysis.
pub trait Dataflow {
    /// The state at a point.
    type State: Lattice;
    /// The direction.
    const DIRECTION: Direction;

    /// Returns the state at the start of the analysed region; for a backward analysis, at the region's end and at
    /// every end behind which no op of the region runs.
    fn boundary(&self) -> Self::State;

    /// Moves a state over an op, in the analysis's direction. The transfer of a region op happens at the op's
    /// entry, before or after all regions; the edges describe the rest.
    fn transfer(&self, op: Op, state: &mut Self::State);

    /// Moves a state over a control edge.
    fn edge(&self, _edge: &ControlEdge<'_>, _state: &mut Self::State) {}
}

/// The fixed point of an analysis over one region. Valid until the first edit.
#[derive(Debug)]
pub struct Solution<'a, A: Dataflow> {
    body: &'a Body,
    analysis: &'a A,
    root: Region,
    /// The nodes in program order: for a forward analysis the starts of regions and the exits of region ops, for a
    /// backward analysis the ends of regions and the entries of region ops.
    nodes: Vec<Point>,
    numbers: HashMap<Point, usize>,
    /// The edges by end, for a backward analysis.
    incoming: HashMap<Point, Vec<ControlEdge<'a>>>,
    /// The states by node; `None` for a node that no path reaches.
    states: Vec<Option<A::State>>,
}

impl<'a, A: Dataflow> Solution<'a, A> {
    /// Solves an analysis over one execution of `region`. Edges that leave the region, or that lead from the end
    /// of the region to the start, are not followed.
    pub fn of(body: &'a Body, region: Region, analysis: &'a A) -> Solution<'a, A> {
        let mut solution = Solution {
            body,
            analysis,
            root: region,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            incoming: HashMap::new(),
            states: Vec::new(),
        };
        solution.number_nodes();
        let nodes = solution.nodes.iter().enumerate();
        let starts = nodes.filter(|(_, node)| solution.is_boundary(**node));
        let mut queue: BTreeSet<usize> = starts.map(|(number, _)| number).collect();
        for &number in &queue {
            solution.states[number] = Some(analysis.boundary());
        }
        let next = |queue: &mut BTreeSet<usize>| match A::DIRECTION {
            Direction::Forward => queue.pop_first(),
            Direction::Backward => queue.pop_last(),
        };
        while let Some(number) = next(&mut queue) {
            let Some(mut state) = solution.states[number].clone() else {
                unreachable!("a queued node has a state");
            };
            let end = solution.run(number, &mut state, |op, state| {
                analysis.transfer(op, state);
                Ok::<(), std::convert::Infallible>(())
            });
            let Ok(end) = end;
            queue.extend(solution.propagate(end, &state));
        }
        solution
    }

    /// Visits the ops that a path reaches, in program order (a backward analysis: in reverse), with the state in
    /// front of the op in the analysis's direction. Stops at the first error.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub fn visit<E>(&self, mut visit: impl FnMut(Op, &A::State) -> Result<(), E>) -> Result<(), E> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        if A::DIRECTION == Direction::Backward {
            order.reverse();
        }
        for number in order {
            let Some(mut state) = self.states[number].clone() else {
                continue;
            };
            self.run(number, &mut state, |op, state| {
                visit(op, state)?;
                self.analysis.transfer(op, state);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Numbers the nodes in program order.
    fn number_nodes(&mut self) {
        enum Step {
            Region(Region),
            Ops(Option<Op>),
            Point(Point),
        }
        let body = self.body;
        let forward = A::DIRECTION == Direction::Forward;
        let mut stack = vec![Step::Region(self.root)];
        while let Some(step) = stack.pop() {
            match step {
                Step::Region(region) => {
                    let own = match forward {
                        true => Point::RegionEntry(region),
                        false => Point::RegionEnd(region),
                    };
                    let ops = Step::Ops(body.first(region));
                    let (first, second) = match forward {
                        true => (Step::Point(own), ops),
                        false => (ops, Step::Point(own)),
                    };
                    stack.extend([second, first]);
                }
                Step::Ops(None) => {}
                Step::Ops(Some(op)) => {
                    stack.push(Step::Ops(body.next(op)));
                    if body.op_regions(op).is_empty() {
                        continue;
                    }
                    let regions = body.op_regions(op).iter().rev();
                    let regions = regions.map(|r| Step::Region(*r));
                    if forward {
                        stack.push(Step::Point(Point::OpExit(op)));
                        stack.extend(regions);
                    } else {
                        stack.extend(regions);
                        stack.push(Step::Point(Point::OpEntry(op)));
                        for edge in body.control_edges(op) {
                            self.incoming.entry(edge.to).or_default().push(edge);
                        }
                    }
                }
                Step::Point(point) => {
                    self.numbers.insert(point, self.nodes.len());
                    self.nodes.push(point);
                    self.states.push(None);
                }
            }
        }
    }

    /// Returns whether the analysis starts at a node.
    fn is_boundary(&self, node: Point) -> bool {
        match node {
            Point::RegionEntry(region) => region == self.root,
            Point::RegionEnd(region) => {
                let inside =
                    |point: Point| matches!(point, Point::RegionEntry(_) | Point::OpExit(_));
                let edges = self.body.edges_from(node);
                region == self.root || !edges.iter().any(|edge| inside(edge.to))
            }
            Point::OpEntry(_) | Point::OpExit(_) | Point::Return | Point::Unwind => false,
        }
    }

    /// Moves a state from a node to the end of the straight run of ops. Returns the point at the end.
    fn run<E>(
        &self,
        number: usize,
        state: &mut A::State,
        mut step: impl FnMut(Op, &mut A::State) -> Result<(), E>,
    ) -> Result<Point, E> {
        let body = self.body;
        let forward = A::DIRECTION == Direction::Forward;
        let (region, mut at) = match self.nodes[number] {
            Point::RegionEntry(region) => (Some(region), body.first(region)),
            Point::RegionEnd(region) => (Some(region), body.last(region)),
            Point::OpExit(op) => (body.parent(op), body.next(op)),
            Point::OpEntry(op) => {
                step(op, state)?;
                (body.parent(op), body.prev(op))
            }
            Point::Return | Point::Unwind => unreachable!("no node"),
        };
        while let Some(op) = at {
            let owner = !body.op_regions(op).is_empty();
            if owner && !forward {
                return Ok(Point::OpExit(op));
            }
            step(op, state)?;
            if owner {
                return Ok(Point::OpEntry(op));
            }
            at = if forward {
                body.next(op)
            } else {
                body.prev(op)
            };
        }
        let Some(region) = region else {
            unreachable!("an analysed op is in a region");
        };
        Ok(match forward {
            true => Point::RegionEnd(region),
            false => Point::RegionEntry(region),
        })
    }

    /// Joins a state into the nodes behind a point. Returns the changed nodes.
    fn propagate(&mut self, end: Point, state: &A::State) -> Vec<usize> {
        let mut changed = Vec::new();
        if matches!(end, Point::RegionEnd(r) | Point::RegionEntry(r) if r == self.root) {
            return changed;
        }
        let outgoing = self.body.edges_from(end);
        let edges = match A::DIRECTION {
            Direction::Forward => &outgoing[..],
            Direction::Backward => self.incoming.get(&end).map_or(&[][..], |edges| edges),
        };
        for edge in edges {
            let node = match A::DIRECTION {
                Direction::Forward => edge.to,
                Direction::Backward => edge.from,
            };
            let Some(&number) = self.numbers.get(&node) else {
                // Not an error: the edge leaves the function.
                continue;
            };
            let mut carried = state.clone();
            self.analysis.edge(edge, &mut carried);
            let new = match &mut self.states[number] {
                Some(known) => known.join(&carried),
                unreached => {
                    *unreached = Some(carried);
                    true
                }
            };
            changed.extend(new.then_some(number));
        }
        changed
    }
}
