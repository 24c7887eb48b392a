//! Cycles of copies: the nodes of a cycle have equal sets, and become one node.
//!
//! Strongly connected components by Tarjan (SIAM J. Comput. 1972) over the unmoved copies, as in wave propagation
//! (Pereira and Berlin, CGO 2009). The search runs again when the number of edges has grown by half. The order of the
//! components is the order in which the worklist propagates.
//!
//! A cycle may contain words and pointers. Bits of addresses in such a cycle reach a pointer, which then holds
//! [`EXTERNAL`]: the whole cycle does. The words of the cycle therefore share the bits, too.
//!
//! [`EXTERNAL`]: crate::points_to::inclusion::objects::EXTERNAL

use crate::points_to::inclusion::constraints::{NodeId, NodeKind};
use crate::points_to::inclusion::nodes::{Move, Node};
use crate::points_to::inclusion::solver::Solver;
use std::collections::HashSet;

/// Number of new edges before the first search.
const EDGES_MIN: usize = 64;

/// Representatives of nodes, and their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Representatives {
    of: Vec<NodeId>,
    /// Position of a representative in the topological order of copies.
    rank: Vec<u32>,
    edges: usize,
    edges_at_search: usize,
}

impl Representatives {
    /// Returns a table in which `count` nodes stand for themselves.
    pub fn new(count: usize) -> Representatives {
        Representatives {
            of: (0..count as u32).map(NodeId).collect(),
            rank: vec![u32::MAX; count],
            ..Representatives::default()
        }
    }
    pub fn push(&mut self) {
        self.of.push(NodeId(self.of.len() as u32));
        self.rank.push(u32::MAX);
    }
    /// Returns the node that stands for `node`.
    pub fn get(&self, node: NodeId) -> NodeId {
        self.of[node.0 as usize]
    }
    pub fn rank(&self, node: NodeId) -> u32 {
        self.rank[node.0 as usize]
    }
    pub fn count_edge(&mut self) {
        self.edges += 1;
    }
    pub fn is_search_due(&self) -> bool {
        self.edges - self.edges_at_search > EDGES_MIN.max(self.edges_at_search / 2)
    }
}

/// State of Tarjan's algorithm.
struct Search {
    /// Number of each node in the order of visits, plus one; 0 for an unvisited node.
    number: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<NodeId>,
    visited: u32,
    /// Components; a component comes after every component that it leads to.
    components: Vec<Vec<NodeId>>,
}

impl Search {
    fn open(&mut self, node: NodeId) {
        self.visited += 1;
        self.number[node.0 as usize] = self.visited;
        self.low[node.0 as usize] = self.visited;
        self.on_stack[node.0 as usize] = true;
        self.stack.push(node);
    }
    fn close(&mut self, node: NodeId) {
        if self.low[node.0 as usize] != self.number[node.0 as usize] {
            return;
        }
        let start = self.stack.iter().rposition(|&open| open == node);
        let start = start.unwrap_or_else(|| unreachable!("an open node is on the stack"));
        let component = self.stack.split_off(start);
        for member in &component {
            self.on_stack[member.0 as usize] = false;
        }
        self.components.push(component);
    }
    fn lower(&mut self, node: NodeId, to: u32) {
        let low = &mut self.low[node.0 as usize];
        *low = (*low).min(to);
    }
}

impl Solver<'_> {
    /// Merges the nodes of each cycle of copies, and orders the nodes.
    pub(super) fn merge_cycles(&mut self) {
        let components = self.components();
        let count = components.len() as u32;
        let mut has_merged = false;
        for (index, members) in components.into_iter().enumerate() {
            let first = members[0];
            self.representatives.rank[first.0 as usize] = count - index as u32;
            has_merged |= members.len() > 1;
            for &member in &members[1..] {
                self.merge(first, member);
            }
        }
        if has_merged {
            self.update_representatives();
        }
        let edges = self.nodes.iter().map(|node| node.edges.len()).sum();
        self.representatives.edges = edges;
        self.representatives.edges_at_search = edges;
        let queued = self.work.drain().map(|entry| entry.0.1).collect::<Vec<_>>();
        for node in queued {
            let node = self.representatives.get(node);
            self.node(node).is_queued = false;
            self.enqueue(node);
        }
    }
    /// Returns the strongly connected components of the unmoved copies between words and pointers.
    fn components(&self) -> Vec<Vec<NodeId>> {
        let count = self.nodes.len();
        let mut search = Search {
            number: vec![0; count],
            low: vec![0; count],
            on_stack: vec![false; count],
            stack: Vec::new(),
            visited: 0,
            components: Vec::new(),
        };
        for start in 0..count as u32 {
            let start = self.representatives.get(NodeId(start));
            if search.number[start.0 as usize] == 0 {
                self.visit(start, &mut search);
            }
        }
        search.components
    }
    fn visit(&self, start: NodeId, search: &mut Search) {
        let mut path = vec![(start, 0)];
        search.open(start);
        while let Some((node, next)) = path.last_mut() {
            let (node, edges) = (*node, &self.nodes[node.0 as usize].edges);
            let Some(&(to, movement)) = edges.get(*next) else {
                search.close(node);
                path.pop();
                if let Some(&(outer, _)) = path.last() {
                    search.lower(outer, search.low[node.0 as usize]);
                }
                continue;
            };
            *next += 1;
            let to = self.representatives.get(to);
            if movement != Move::By(0) || self.is_part(node) || self.is_part(to) {
                continue;
            }
            if search.number[to.0 as usize] == 0 {
                search.open(to);
                path.push((to, 0));
            } else if search.on_stack[to.0 as usize] {
                search.lower(node, search.number[to.0 as usize]);
            }
        }
    }
    fn is_part(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].kind == NodeKind::Part
    }
    /// Lets `first` stand for `member`, too.
    fn merge(&mut self, first: NodeId, member: NodeId) {
        let from = std::mem::take(self.raw_node(member));
        self.representatives.of[member.0 as usize] = first;
        let node = self.raw_node(first);
        let done = (node.set.minus(&node.delta)).common(&from.set.minus(&from.delta));
        let has_pointer = node.has_pointer || from.has_pointer || node.kind != from.kind;
        node.set.extend(&from.set);
        node.delta = node.set.minus(&done);
        node.has_pointer = has_pointer;
        if from.kind == NodeKind::Word {
            node.kind = NodeKind::Word;
        }
        node.edges.extend(from.edges);
        node.uses.extend(from.uses);
        node.is_assembled |= from.is_assembled;
        let escapes = node.escapes || from.escapes;
        if escapes && !(node.escapes && from.escapes) {
            node.delta = node.set.clone();
        }
        node.escapes = escapes;
    }
    /// Resolves chains of representatives; each node keeps its edges to other representatives once.
    fn update_representatives(&mut self) {
        for index in 0..self.nodes.len() {
            let mut root = self.representatives.of[index];
            while self.representatives.of[root.0 as usize] != root {
                root = self.representatives.of[root.0 as usize];
            }
            self.representatives.of[index] = root;
        }
        for index in 0..self.nodes.len() {
            let id = NodeId(index as u32);
            if self.representatives.get(id) == id {
                self.update_edges(id);
            }
        }
    }
    fn update_edges(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0 as usize];
        let representatives = &self.representatives;
        let (mut edges, mut known) = (Vec::new(), HashSet::new());
        for &(to, movement) in &node.edges {
            let to = representatives.get(to);
            let is_idle = to == id && movement == Move::By(0);
            if !is_idle && known.insert((to, movement)) {
                edges.push((to, movement));
            }
        }
        node.edges = edges;
        node.known_edges = known;
        node.uses.sort_unstable();
        node.uses.dedup();
        if node.has_pointer {
            self.assemble(id);
        }
        if !self.nodes[id.0 as usize].delta.is_empty() {
            self.enqueue(id);
        }
    }
    /// Lets the pointers of a merged node receive the bits of its words.
    fn assemble(&mut self, id: NodeId) {
        let bits = self.nodes[id.0 as usize].set.common(&self.locations.bits);
        for at in self.locations.list(&bits) {
            self.add(id, at);
        }
    }
    fn raw_node(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }
}
