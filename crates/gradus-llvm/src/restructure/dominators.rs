//! Dominators of an acyclic region: step 3 of restructuring.
//!
//! Nodes are in reverse postorder; the immediate dominator of a node is the lowest common ancestor of its
//! predecessors in the tree built so far. Ancestors are found in O(log n) by one jump pointer per node
//! (Myers 1983, *An applicative random-access stack*). Linear searches would be too slow, because the
//! dominator tree of a long chain of early exits is as deep as the chain. The region's end is not a node
//! here.

use super::graph::{Graph, OUTSIDE, Region};

pub(super) struct Dag {
    /// The nodes of the graph, in reverse postorder. All other fields use indices into `order`.
    pub order: Vec<usize>,
    /// The index of each node's first edge in `target`, and a final sentinel.
    pub first: Vec<usize>,
    /// The target of each edge, or `OUTSIDE`.
    pub target: Vec<usize>,
    /// The sources of the edges to each node.
    pub sources: Vec<Vec<usize>>,
    /// The immediate dominator; the entry is its own.
    pub parent: Vec<usize>,
    /// The number of strict dominators.
    pub depth: Vec<usize>,
    jump: Vec<usize>,
}

impl Dag {
    /// Computes the dominators of a region with contracted cycles.
    pub fn new(graph: &mut Graph, region: &Region) -> Dag {
        graph.number(&region.members, region.end);
        let order = reverse_postorder(graph, region);
        graph.number(&order, region.end);
        let mut first = vec![0];
        let mut target = Vec::new();
        let mut sources = vec![Vec::new(); order.len()];
        for (from, &node) in order.iter().enumerate() {
            for edge in &graph.nodes[node].edges {
                let to = graph.local(edge.to);
                target.push(to);
                if to != OUTSIDE {
                    sources[to].push(from);
                }
            }
            first.push(target.len());
        }
        graph.steps += target.len() as u64;
        let count = order.len();
        let mut dag = Dag {
            order,
            first,
            target,
            sources,
            parent: vec![0; count],
            depth: vec![0; count],
            jump: vec![0; count],
        };
        for node in 1..count {
            let mut parent = dag.sources[node][0];
            for i in 1..dag.sources[node].len() {
                parent = dag.lowest_common_ancestor(parent, dag.sources[node][i], &mut graph.steps);
            }
            dag.attach(node, parent);
        }
        dag
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.order.len()
    }
    /// Returns the edges of a node, as indices into `target`.
    pub fn edges(&self, node: usize) -> std::ops::Range<usize> {
        self.first[node]..self.first[node + 1]
    }
    /// Returns the ancestor of a node at `depth`, which is at most the node's depth.
    pub fn ancestor(&self, mut node: usize, depth: usize, steps: &mut u64) -> usize {
        while self.depth[node] > depth {
            *steps += 1;
            let jump = self.jump[node];
            node = if self.depth[jump] >= depth {
                jump
            } else {
                self.parent[node]
            };
        }
        node
    }
    /// Returns the highest ancestor-or-self of `node` that is `inside`. The node itself is inside, and
    /// `inside` is monotonic: no ancestor of a node outside is inside.
    pub fn highest_ancestor(
        &self,
        mut node: usize,
        steps: &mut u64,
        inside: impl Fn(usize) -> bool,
    ) -> usize {
        while node != 0 && inside(self.parent[node]) {
            *steps += 1;
            let jump = self.jump[node];
            node = if inside(jump) {
                jump
            } else {
                self.parent[node]
            };
        }
        node
    }

    fn attach(&mut self, node: usize, parent: usize) {
        let over = self.jump[parent];
        self.parent[node] = parent;
        self.depth[node] = self.depth[parent] + 1;
        let even =
            self.depth[parent] - self.depth[over] == self.depth[over] - self.depth[self.jump[over]];
        self.jump[node] = if even { self.jump[over] } else { parent };
    }

    /// Returns the lowest common ancestor.
    fn lowest_common_ancestor(&self, a: usize, b: usize, steps: &mut u64) -> usize {
        let depth = self.depth[a].min(self.depth[b]);
        let mut a = self.ancestor(a, depth, steps);
        let mut b = self.ancestor(b, depth, steps);
        while a != b {
            *steps += 1;
            if self.jump[a] != self.jump[b] {
                (a, b) = (self.jump[a], self.jump[b]);
            } else {
                (a, b) = (self.parent[a], self.parent[b]);
            }
        }
        a
    }
}

fn reverse_postorder(graph: &Graph, region: &Region) -> Vec<usize> {
    let mut seen = vec![false; region.members.len()];
    let mut order = Vec::with_capacity(region.members.len());
    let mut frames = vec![(region.entry, 0)];
    seen[graph.local(region.entry)] = true;
    while let Some((node, next)) = frames.pop() {
        match graph.nodes[node].edges.get(next) {
            Some(edge) => {
                frames.push((node, next + 1));
                let to = graph.local(edge.to);
                if to != OUTSIDE && !std::mem::replace(&mut seen[to], true) {
                    frames.push((edge.to, 0));
                }
            }
            None => order.push(node),
        }
    }
    order.reverse();
    order
}
