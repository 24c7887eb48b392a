//! Working graph of restructuring: blocks, and the nodes that restructuring inserts.
//!
//! Step 1. Only blocks reachable from the entry are included; returning blocks get an edge to one `End`
//! node; copyable blocks that end the function are duplicated per edge. An edge keeps its assignments (phis
//! of the block's edge, selector values) when later steps redirect it.

use super::tree::SelectorId;
use super::{Cfg, CfgError, Kind};

/// The role of a graph node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeRole {
    /// Precedes the entry, so that the entry can be in a loop.
    Start,
    /// A block.
    Block(usize),
    /// The top of a loop with several entries: branches on the selector.
    Entries(SelectorId),
    /// A loop, by number; its body is a separate region.
    Loop(usize),
    /// Follows all returns, or the bottom of a loop.
    End,
}

/// A block's edge with its phi assignments.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockEdge {
    pub block: usize,
    pub slot: usize,
    /// The original target of the edge.
    pub target: usize,
    /// The loop of a back edge.
    pub back: Option<usize>,
}

/// The last reader of a selector value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// In the body of a loop.
    Inside(usize),
    /// After a loop.
    Behind(usize),
}

/// An assignment of a selector on an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub selector: SelectorId,
    pub value: u32,
    pub reader: Reader,
    /// The loop that carries the value to the next iteration, if any.
    pub back: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub to: usize,
    pub taken: Option<BlockEdge>,
    pub settings: Vec<Setting>,
}

impl Edge {
    pub fn to(to: usize) -> Edge {
        Edge {
            to,
            taken: None,
            settings: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct GraphNode {
    pub place: NodeRole,
    pub edges: Vec<Edge>,
}

/// A single-entry single-end subgraph; `end` itself is not a member.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub members: Vec<usize>,
    pub entry: usize,
    pub end: usize,
    /// The loop whose body the region is; none for the function.
    pub of: Option<usize>,
}

pub(super) struct Graph<'a> {
    pub cfg: &'a Cfg,
    pub nodes: Vec<GraphNode>,
    /// `End` of the function.
    pub end: usize,
    /// The index of the distinct edge of each successor of each block.
    pub edge_of: Vec<Vec<usize>>,
    /// Scratch: the number of a node within the present region; `OUTSIDE` for its end.
    local: Vec<usize>,
    /// Elementary steps so far.
    pub steps: u64,
}

/// The local number of a region's end.
pub(super) const OUTSIDE: usize = usize::MAX;

impl<'a> Graph<'a> {
    /// Builds the graph of all reachable blocks.
    pub fn new(cfg: &'a Cfg) -> Result<Graph<'a>, CfgError> {
        check(cfg)?;
        let count = cfg.nodes.len();
        let mut graph = Graph {
            cfg,
            nodes: (0..count)
                .map(|block| GraphNode {
                    place: NodeRole::Block(block),
                    edges: Vec::new(),
                })
                .collect(),
            end: 0,
            edge_of: vec![Vec::new(); count],
            local: Vec::new(),
            steps: 0,
        };
        graph.end = graph.add(NodeRole::End);
        let reached = graph.connect();
        check_pads(cfg, &reached)?;
        Ok(graph)
    }

    pub fn add(&mut self, place: NodeRole) -> usize {
        self.nodes.push(GraphNode {
            place,
            edges: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// Returns the whole function as a region.
    pub fn root_region(&mut self) -> Region {
        let start = self.add(NodeRole::Start);
        self.nodes[start].edges.push(Edge::to(self.cfg.entry));
        let mut seen = vec![false; self.nodes.len()];
        let mut members = vec![start];
        seen[start] = true;
        seen[self.end] = true;
        let mut next = 0;
        while let Some(&node) = members.get(next) {
            next += 1;
            for edge in &self.nodes[node].edges {
                if !std::mem::replace(&mut seen[edge.to], true) {
                    members.push(edge.to);
                }
            }
        }
        Region {
            members,
            entry: start,
            end: self.end,
            of: None,
        }
    }

    /// Adds the edges of the reachable blocks; returns reachability per block.
    fn connect(&mut self) -> Vec<bool> {
        let cfg = self.cfg;
        let mut reached = vec![false; cfg.nodes.len()];
        let mut used = vec![false; cfg.nodes.len()];
        // The latest block with an edge to each block, and the index of that edge.
        let mut edge_to = vec![(usize::MAX, 0); cfg.nodes.len()];
        let mut stack = vec![cfg.entry];
        reached[cfg.entry] = true;
        used[cfg.entry] = true;
        while let Some(block) = stack.pop() {
            let node = &cfg.nodes[block];
            let taken = |slot, target| BlockEdge {
                block,
                slot,
                target,
                back: None,
            };
            let mut edges: Vec<Edge> = Vec::new();
            for (slot, &successor) in node.successors.iter().enumerate() {
                if edge_to[successor].0 != block {
                    edge_to[successor] = (block, edges.len());
                    let to = self.edge_target(successor, &mut used);
                    edges.push(Edge {
                        taken: Some(taken(slot, to)),
                        ..Edge::to(to)
                    });
                }
                self.edge_of[block].push(edge_to[successor].1);
                if !std::mem::replace(&mut reached[successor], true) {
                    stack.push(successor);
                }
            }
            if node.kind == Kind::Return {
                edges.push(Edge {
                    taken: Some(taken(0, self.end)),
                    ..Edge::to(self.end)
                });
            }
            self.steps += 1 + edges.len() as u64;
            self.nodes[block].edges = edges;
        }
        reached
    }

    /// Returns the target node of an edge to a block: a copy, if the block is copyable and already used.
    fn edge_target(&mut self, block: usize, used: &mut [bool]) -> usize {
        let node = &self.cfg.nodes[block];
        let copyable = node.copyable && matches!(node.kind, Kind::Unreachable | Kind::Resume);
        if std::mem::replace(&mut used[block], true) && copyable {
            self.add(NodeRole::Block(block))
        } else {
            block
        }
    }

    /// Numbers the nodes of a region, so that the cost of computations on it depends on its size only.
    pub fn number(&mut self, nodes: &[usize], end: usize) {
        self.local.resize(self.nodes.len(), OUTSIDE);
        for (i, &node) in nodes.iter().enumerate() {
            self.local[node] = i;
        }
        self.local[end] = OUTSIDE;
        self.steps += nodes.len() as u64;
    }
    /// Returns the number of a node within the last numbered region, or `OUTSIDE` for its end.
    pub fn local(&self, node: usize) -> usize {
        self.local[node]
    }

    /// Returns whether a node is a landing pad.
    pub fn is_pad(&self, node: usize) -> bool {
        matches!(self.nodes[node].place, NodeRole::Block(block) if self.cfg.nodes[block].pad)
    }
    /// Returns whether a node is a block with a two-way branch.
    pub fn is_branch(&self, node: usize) -> bool {
        matches!(self.nodes[node].place, NodeRole::Block(block) if self.cfg.nodes[block].kind == Kind::Branch)
    }
}

fn check(cfg: &Cfg) -> Result<(), CfgError> {
    if cfg.entry >= cfg.nodes.len() {
        return Err(CfgError::NoEntry);
    }
    for (block, node) in cfg.nodes.iter().enumerate() {
        if !node.kind.arity_fits(node.successors.len()) {
            return Err(CfgError::Arity { block });
        }
        if node.successors.iter().any(|to| *to >= cfg.nodes.len()) {
            return Err(CfgError::NoSuchSuccessor { block });
        }
    }
    Ok(())
}

/// Checks that every pad has a single incoming edge, from an invoke's unwind successor.
fn check_pads(cfg: &Cfg, reached: &[bool]) -> Result<(), CfgError> {
    let mut edges = vec![0; cfg.nodes.len()];
    let live = || {
        cfg.nodes
            .iter()
            .zip(reached)
            .filter(|(_, reached)| **reached)
    };
    for (node, _) in live() {
        for (slot, &to) in node.successors.iter().enumerate() {
            edges[to] += if (node.kind, slot) == (Kind::Invoke, 1) {
                1
            } else {
                2
            };
        }
    }
    edges[cfg.entry] += 2;
    match (0..cfg.nodes.len()).find(|&b| reached[b] && cfg.nodes[b].pad && edges[b] != 1) {
        Some(block) => Err(CfgError::SharedPad { block }),
        None => Ok(()),
    }
}
