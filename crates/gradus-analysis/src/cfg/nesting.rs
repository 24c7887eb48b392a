//! Region nesting and execution order of the ops of a body.
//!
//! Ops are numbered in program order; containment is an interval test. The deepest op that contains two
//! given ops is found by jump pointers (Myers, *An applicative random-access stack*, 1983): one jump per
//! op, logarithmic time, no recursion.

use gradus_ir::{Body, Definition, Entity, Op, OpKind, Region, Value};

/// Returns true if an op runs its region repeatedly: loops, and parallel ops with one run per iteration or
/// rank.
pub fn is_loop(kind: &OpKind) -> bool {
    use OpKind::*;
    matches!(
        kind,
        Loop { .. } | For { .. } | ParFor { .. } | Spmd { .. } | ShareFor { .. }
    )
}

/// Returns true if a region ends with `resume` or `unreachable`.
fn never_completes(body: &Body, region: Region) -> bool {
    body.last(region)
        .is_some_and(|end| matches!(body.kind(end), OpKind::Resume | OpKind::Unreachable))
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    start: u32,
    end: u32,
    depth: u32,
    loop_depth: u32,
    parent: Option<Op>,
    jump: Option<Op>,
    enclosing_loop: Option<Op>,
    outermost_loop: Option<Op>,
    doomed: Option<Region>,
}

/// The nesting tree of one body. Valid until the body's structure changes.
#[derive(Clone, Debug)]
pub struct Nest {
    nodes: Vec<Node>,
}

impl Nest {
    /// Numbers the ops of a body.
    pub fn of(body: &Body) -> Nest {
        let mut nest = Nest {
            nodes: vec![Node::default(); body.ops.len()],
        };
        let mut open: Vec<Op> = Vec::new();
        for (number, op) in body.walk(body.root()).enumerate() {
            let start = number as u32 + 1;
            let parent = body.parent_op(op);
            while let Some(&top) = open.last() {
                if Some(top) == parent {
                    break;
                }
                nest.nodes[top.index()].end = start - 1;
                open.pop();
            }
            open.push(op);
            nest.nodes[op.index()] = nest.node(body, op, start, parent);
        }
        let last = open
            .first()
            .map(|_| nest.nodes.iter().map(|n| n.start).max());
        for op in open {
            nest.nodes[op.index()].end = last.flatten().unwrap_or(0);
        }
        nest
    }

    fn node(&self, body: &Body, op: Op, start: u32, parent: Option<Op>) -> Node {
        let mut node = Node {
            start,
            end: start,
            parent,
            ..Node::default()
        };
        let Some(parent) = parent else {
            return node;
        };
        let above = self.nodes[parent.index()];
        node.depth = above.depth + 1;
        node.doomed = above
            .doomed
            .or(body.parent(op).filter(|r| never_completes(body, *r)));
        (node.enclosing_loop, node.loop_depth) = match is_loop(body.kind(parent)) {
            true => (Some(parent), above.loop_depth + 1),
            false => (above.enclosing_loop, above.loop_depth),
        };
        node.outermost_loop = above.outermost_loop.or(node.enclosing_loop);
        let far = above.jump.map(|op| self.nodes[op.index()]);
        node.jump = match far {
            Some(far)
                if above.depth - far.depth
                    == far.depth - far.jump.map_or(0, |op| self.nodes[op.index()].depth)
                    && far.jump.is_some() =>
            {
                far.jump
            }
            _ => Some(parent),
        };
        node
    }

    fn at(&self, op: Op) -> &Node {
        &self.nodes[op.index()]
    }
    /// Returns the position of an op in program order, counted from 1; 0 for an op outside the body.
    pub fn order(&self, op: Op) -> u32 {
        self.at(op).start
    }
    /// Returns the first and last position of an op and its nested ops.
    pub fn span(&self, op: Op) -> (u32, u32) {
        (self.at(op).start, self.at(op).end)
    }
    /// Returns true if `inner` is `outer` or is nested in `outer`.
    pub fn contains(&self, outer: Op, inner: Op) -> bool {
        let (first, last) = self.span(outer);
        (first..=last).contains(&self.order(inner))
    }
    /// Returns the op that owns the region of an op.
    pub fn parent(&self, op: Op) -> Option<Op> {
        self.at(op).parent
    }
    /// Returns the outermost region around an op that ends with `resume` or `unreachable`. No op outside
    /// the region runs after it.
    pub fn enclosing_noreturn_region(&self, op: Op) -> Option<Region> {
        self.at(op).doomed
    }
    /// Returns the innermost loop around an op.
    pub fn enclosing_loop(&self, op: Op) -> Option<Op> {
        self.at(op).enclosing_loop
    }
    /// Returns the outermost loop around an op.
    pub fn outermost_loop(&self, op: Op) -> Option<Op> {
        self.at(op).outermost_loop
    }
    /// Returns the number of loops around an op.
    pub fn loop_depth(&self, op: Op) -> u32 {
        self.at(op).loop_depth
    }
    /// Returns the loops around an op, innermost first.
    pub fn loops_of(&self, op: Op) -> impl Iterator<Item = Op> + '_ {
        std::iter::successors(self.enclosing_loop(op), |op| self.enclosing_loop(*op))
    }
    /// Returns the innermost loop whose iterations redefine a value; `None` if the value is defined once.
    pub fn loop_of_value(&self, body: &Body, value: Value) -> Option<Op> {
        match body.values[value].def {
            Definition::Const(_) => None,
            Definition::Result(op, _) => self.enclosing_loop(op),
            Definition::Param(region, _) => self.loop_of_region(body, region),
        }
    }
    /// Returns the innermost loop whose iterations run a region.
    pub fn loop_of_region(&self, body: &Body, region: Region) -> Option<Op> {
        let owner = body.owner(region)?;
        match is_loop(body.kind(owner)) {
            true => Some(owner),
            false => self.enclosing_loop(owner),
        }
    }
    /// Returns true if a value is invariant in one iteration of `frame` (`None`: one run of the body): the
    /// definition is outside every loop inside `frame`.
    pub fn is_invariant_in(&self, body: &Body, value: Value, frame: Option<Op>) -> bool {
        match (self.loop_of_value(body, value), frame) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(made), Some(frame)) => self.contains(made, frame),
        }
    }
    /// Returns the innermost loop that contains both ops. A loop does not contain itself.
    pub fn common_loop(&self, a: Op, b: Op) -> Option<Op> {
        match self.branch_towards(a, b) {
            None => self.enclosing_loop(a),
            Some(_) if self.contains(b, a) => self.enclosing_loop(b),
            Some(branch) => self.enclosing_loop(branch),
        }
    }
    /// Returns the outermost op that is or contains `inner` and does not contain `other`. Returns `None` if
    /// `inner` contains `other`.
    pub fn branch_towards(&self, inner: Op, other: Op) -> Option<Op> {
        let mut at = inner;
        if self.contains(at, other) {
            return None;
        }
        loop {
            let node = self.at(at);
            match (node.jump, node.parent) {
                (Some(jump), _) if !self.contains(jump, other) => at = jump,
                (_, Some(parent)) if !self.contains(parent, other) => at = parent,
                _ => return Some(at),
            }
        }
    }
    /// Returns true if `later` can run after `first` within one iteration of the outermost `outer_loops`
    /// loops (0: one run of the body). An op runs after itself: a call or copy reads before it writes.
    pub fn runs_after(&self, body: &Body, first: Op, later: Op, outer_loops: u32) -> bool {
        if first == later {
            return true;
        }
        match (
            self.branch_towards(first, later),
            self.branch_towards(later, first),
        ) {
            (None, _) => true,
            (_, None) => self.loop_depth(later) > outer_loops,
            (Some(a), Some(b)) => {
                if self.loop_depth(a).min(self.loop_depth(b)) > outer_loops {
                    true
                } else {
                    body.parent(a) == body.parent(b) && self.order(a) < self.order(b)
                }
            }
        }
    }
}
