//! Assigns the nodes after a branch to levels and layers: step 4 of restructuring.
//!
//! The *level* of a node is the set of its immediately dominated nodes. A node with exactly one incoming
//! edge is an arm of its dominator's branch (layer 0). Any other node is a continuation of its dominator's
//! level. The layer is 1 if all predecessors are the branch or in the arms; otherwise one above the highest
//! continuation whose subtree reaches the node. Each layer becomes one selection among its continuations.
//! Edges to a later layer, or out of the level, *pass* the selections in between. If nothing remains to
//! select (all control flow that continues reaches one node), the node follows in the same sequence. An
//! edge sets a selector if it passes or chooses in a selection; levels passed by one edge share their
//! selector.

use super::graph::{Graph, OUTSIDE};
use crate::restructure::dominators::Dag;

const NONE: usize = usize::MAX;

/// A selection after a branch.
pub(super) struct Layer {
    /// The continuations to select from.
    pub targets: Vec<usize>,
    /// True if an edge passes all continuations.
    pub passes: bool,
}

/// The assignment of a selector on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Representative of all levels with the selector.
    pub class: usize,
    /// The outermost level with a selection on the value.
    pub read_by: usize,
}

/// The levels of a region. Nodes and edges are indices into the [`Dag`].
pub(super) struct Levels {
    /// True for an arm.
    pub is_arm: Vec<bool>,
    /// The selections after a node.
    pub layers: Vec<Vec<Layer>>,
    /// The node after a node and its selections in one sequence.
    pub follows: Vec<Option<usize>>,
    /// The selector that each edge sets.
    pub choices: Vec<Option<Choice>>,
    /// The representative of the levels with a common selector.
    pub class: Vec<usize>,
}

impl Levels {
    /// Computes the levels of a region.
    pub fn new(graph: &mut Graph, dag: &Dag) -> Levels {
        let mut work = Work::new(dag);
        work.assign_layers(&mut graph.steps);
        work.find_escapes();
        let mut layers = Vec::with_capacity(dag.len());
        let mut follows = Vec::with_capacity(dag.len());
        let mut children = vec![Vec::new(); dag.len()];
        for node in 1..dag.len() {
            children[dag.parent[node]].push(node);
        }
        for (node, mut children) in children.into_iter().enumerate() {
            children.sort_by_key(|child| work.layer[*child]);
            let next = work.common_continuation(graph, node, &children);
            layers.push(work.selections(node, &children, next));
            follows.push(next);
            work.last_select[node] = layers[node].len();
        }
        let mut choices = Choices::new(&work).all(&mut graph.steps);
        let class: Vec<usize> = (0..dag.len()).map(|node| choices.1.find(node)).collect();
        for choice in choices.0.iter_mut().flatten() {
            choice.class = class[choice.class];
        }
        Levels {
            is_arm: work.is_arm,
            layers,
            follows,
            choices: choices.0,
            class,
        }
    }
}

struct Work<'a> {
    dag: &'a Dag,
    is_arm: Vec<bool>,
    layer: Vec<usize>,
    /// The first layer after which an edge to the node may be pending.
    pending: Vec<usize>,
    /// The least depth of an edge target of the node; 0 for the region's end. An edge leaves a level of
    /// depth `d` if its target has depth `d` or less.
    own_escape: Vec<usize>,
    /// The minimum of `own_escape` over all dominated nodes.
    escape: Vec<usize>,
    /// The number of the last layer with a selection.
    last_select: Vec<usize>,
}

impl<'a> Work<'a> {
    fn new(dag: &'a Dag) -> Work<'a> {
        let count = dag.len();
        Work {
            dag,
            is_arm: dag
                .sources
                .iter()
                .map(|sources| sources.len() == 1)
                .collect(),
            layer: vec![0; count],
            pending: vec![0; count],
            own_escape: vec![usize::MAX; count],
            escape: Vec::new(),
            last_select: vec![0; count],
        }
    }

    /// Returns the depth of an edge's target; 0 for the region's end.
    fn target_depth(&self, edge: usize) -> usize {
        match self.dag.target[edge] {
            OUTSIDE => 0,
            to => self.dag.depth[to],
        }
    }

    fn assign_layers(&mut self, steps: &mut u64) {
        let dag = self.dag;
        for node in 1..dag.len() {
            if self.is_arm[node] {
                continue;
            }
            let (mut low, mut high) = (usize::MAX, 0);
            for &from in &dag.sources[node] {
                let layer = if from == dag.parent[node] {
                    0
                } else {
                    self.layer[dag.ancestor(from, dag.depth[node], steps)]
                };
                low = low.min(layer);
                high = high.max(layer);
            }
            self.layer[node] = high + 1;
            self.pending[node] = low + 1;
        }
    }

    fn find_escapes(&mut self) {
        for node in 0..self.dag.len() {
            for edge in self.dag.edges(node) {
                self.own_escape[node] = self.own_escape[node].min(self.target_depth(edge));
            }
        }
        self.escape = self.own_escape.clone();
        for node in (1..self.dag.len()).rev() {
            let parent = self.dag.parent[node];
            self.escape[parent] = self.escape[parent].min(self.escape[node]);
        }
    }

    fn escapes_level(&self, level: usize, child: usize) -> bool {
        self.escape[child] <= self.dag.depth[level]
    }
    fn edge_escapes_level(&self, level: usize) -> bool {
        self.own_escape[level] <= self.dag.depth[level]
    }

    /// Returns the only child that all control flow reaches in the end, if any.
    fn common_continuation(&self, graph: &Graph, node: usize, children: &[usize]) -> Option<usize> {
        let highest = self.layer[*children.last()?];
        let (last, before): (Vec<usize>, Vec<usize>) = children
            .iter()
            .partition(|child| self.layer[**child] == highest);
        if self.edge_escapes_level(node)
            || before.iter().any(|child| self.escapes_level(node, *child))
        {
            return None;
        }
        let open: Vec<usize> = last
            .iter()
            .copied()
            .filter(|child| self.escapes_level(node, *child))
            .collect();
        let only_way = highest > 0 || self.dag.edges(node).len() == 1;
        match (&open[..], &last[..]) {
            // A landing pad stays in the arm of its invoke.
            ([one], _) if highest > 0 || !graph.is_pad(self.dag.order[*one]) => Some(*one),
            ([], [one]) if only_way => Some(*one),
            _ => None,
        }
    }

    /// Returns the selections after a node, given its children by layer.
    fn selections(&self, node: usize, children: &[usize], follows: Option<usize>) -> Vec<Layer> {
        let left_from = children
            .iter()
            .filter(|child| self.escapes_level(node, **child))
            .map(|child| self.layer[*child])
            .chain(self.edge_escapes_level(node).then_some(0))
            .min()
            .unwrap_or(NONE);
        let mut layers = Vec::new();
        // From the last layer to the first; `behind` is the first layer after which an edge to a later
        // layer is pending.
        let mut behind = follows.map_or(NONE, |next| self.pending[next]);
        let mut rest = children;
        while let Some(&last) = rest.last() {
            let number = self.layer[last];
            if number == 0 {
                break;
            }
            let start = rest.partition_point(|child| self.layer[*child] < number);
            let targets: Vec<usize> = rest[start..]
                .iter()
                .copied()
                .filter(|child| Some(*child) != follows)
                .collect();
            let passes = left_from < number || behind <= number;
            behind = rest[start..]
                .iter()
                .map(|child| self.pending[*child])
                .fold(behind, usize::min);
            rest = &rest[..start];
            if !targets.is_empty() {
                layers.push(Layer { targets, passes });
            }
        }
        layers.reverse();
        layers
    }
}

/// Computes the selector of each edge.
struct Choices<'a> {
    work: &'a Work<'a>,
    classes: Sets,
    /// Nodes whose parent's level has a later selection, linked to the next such ancestor if both levels
    /// are known to share a selector.
    runs: Sets,
    /// The nearest such ancestor-or-self; 0 for none.
    near: Vec<usize>,
    /// The number of such ancestors, including the node itself.
    count: Vec<usize>,
}

impl<'a> Choices<'a> {
    fn new(work: &'a Work<'a>) -> Choices<'a> {
        let dag = work.dag;
        let mut near = vec![0; dag.len()];
        let mut count = vec![0; dag.len()];
        for node in 1..dag.len() {
            let parent = dag.parent[node];
            let passed = work.layer[node] < work.last_select[parent];
            near[node] = if passed { node } else { near[parent] };
            count[node] = count[parent] + usize::from(passed);
        }
        Choices {
            work,
            classes: Sets::new(dag.len()),
            runs: Sets::new(dag.len()),
            near,
            count,
        }
    }

    fn all(mut self, steps: &mut u64) -> (Vec<Option<Choice>>, Sets) {
        let mut choices = Vec::with_capacity(self.work.dag.target.len());
        for node in 0..self.work.dag.len() {
            for edge in self.work.dag.edges(node) {
                choices.push(self.choice(node, edge, steps));
            }
        }
        (choices, self.classes)
    }

    fn choice(&mut self, from: usize, edge: usize, steps: &mut u64) -> Option<Choice> {
        let work = self.work;
        let dag = work.dag;
        let to = dag.target[edge];
        // The last layer of the target's level that the edge passes or chooses in.
        let chosen_in = match to {
            OUTSIDE => 0,
            _ if work.is_arm[to] => return None,
            _ => work.layer[to].min(work.last_select[dag.parent[to]]),
        };
        if to != OUTSIDE && dag.parent[to] == from {
            return (chosen_in > 0).then_some(Choice {
                class: from,
                read_by: from,
            });
        }
        let reach = work.target_depth(edge);
        // The child of the target's level that contains the source of the edge.
        let child = dag.ancestor(from, reach, steps);
        let mut passed = (work.last_select[from] > 0).then_some(from);
        let mut read_by = passed;
        if self.count[from] > self.count[child] {
            self.merge_passed_levels(from, reach, &mut passed, steps);
            let limit = self.count[child];
            let top = dag.highest_ancestor(from, steps, |node| self.count[node] > limit);
            read_by = Some(dag.parent[top]);
        }
        if to != OUTSIDE && work.layer[child] < chosen_in {
            let level = dag.parent[to];
            self.join(&mut passed, level);
            read_by = Some(level);
        }
        Some(Choice {
            class: passed?,
            read_by: read_by?,
        })
    }

    fn join(&mut self, passed: &mut Option<usize>, level: usize) {
        if let Some(other) = *passed {
            self.classes.merge(other, level);
        }
        *passed = Some(level);
    }

    /// Merges the selectors of all levels that an edge passes up to depth `reach`.
    fn merge_passed_levels(
        &mut self,
        from: usize,
        reach: usize,
        passed: &mut Option<usize>,
        steps: &mut u64,
    ) {
        let depth = &self.work.dag.depth;
        let mut node = self.near[from];
        while depth[node] > reach {
            *steps += 1;
            let parent = self.work.dag.parent[node];
            self.join(passed, parent);
            let top = self.runs.find(node);
            let next = self.near[self.work.dag.parent[top]];
            if depth[top] <= reach || depth[next] <= reach {
                break;
            }
            self.runs.chain(top, next);
            node = next;
        }
    }
}

/// Union-find.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Sets {
        Sets((0..count).collect())
    }
    fn find(&mut self, mut one: usize) -> usize {
        while self.0[one] != one {
            self.0[one] = self.0[self.0[one]];
            one = self.0[one];
        }
        one
    }
    fn merge(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
    /// Makes `to` the representative of the set of `from`.
    fn chain(&mut self, from: usize, to: usize) {
        self.0[from] = to;
    }
}
