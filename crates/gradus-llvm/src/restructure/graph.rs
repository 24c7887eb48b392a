//! The working graph: blocks, plus the nodes that restructuring puts between them.
//!
//! Step 1. Only blocks reachable from the entry are kept; returning blocks get an edge to one `End`;
//! blocks that end the function and may be copied get a copy for each edge. An edge keeps what
//! happens when it is taken (phi assignments of a block's edge, selector values), wherever later
//! steps lead it.

use super::tree::SelectorId;
use super::{Cfg, CfgError, Kind};

/// What a node of the graph stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In front of the entry, so that the entry can be in a loop.
    Start,
    /// A block.
    Block(usize),
    /// The top of a loop with several entries: goes where the selector says.
    Entries(SelectorId),
    /// A loop, by number; its contents are a region of their own.
    Loop(usize),
    /// Behind all returns, or the bottom of a loop.
    End,
}

/// An edge of a block, whose phi assignments happen where the edge is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub block: usize,
    pub slot: usize,
    /// The node that it leads to in the program.
    pub target: usize,
    /// The loop that it goes round, if any.
    pub back: Option<usize>,
}

/// Where the value of a selector is last read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// In the body of a loop.
    Inside(usize),
    /// Behind a loop.
    Behind(usize),
}

/// A selector gets a value on an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub selector: SelectorId,
    pub value: u32,
    pub reader: Reader,
    /// The loop that carries it round, if any.
    pub back: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub to: usize,
    pub taken: Option<Taken>,
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
    pub place: Place,
    pub edges: Vec<Edge>,
}

/// A part of the graph with one entry and one end; `end` itself is not among the members.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub members: Vec<usize>,
    pub entry: usize,
    pub end: usize,
    /// The loop whose body it is; none for the function.
    pub of: Option<usize>,
}

pub(super) struct Graph<'a> {
    pub cfg: &'a Cfg,
    pub nodes: Vec<GraphNode>,
    /// `End` of the function.
    pub end: usize,
    /// The edges of each block that are distinct: for successor `k`, the index of its edge.
    pub edge_of: Vec<Vec<usize>>,
    /// Scratch: the number of a node among the members of the region in hand; `OUTSIDE` for its end.
    local: Vec<usize>,
    /// Elementary steps so far.
    pub steps: u64,
}

/// The local number of a region's end.
pub(super) const OUTSIDE: usize = usize::MAX;

impl<'a> Graph<'a> {
    /// The graph of the blocks that control can reach.
    pub fn new(cfg: &'a Cfg) -> Result<Graph<'a>, CfgError> {
        check(cfg)?;
        let count = cfg.nodes.len();
        let mut graph = Graph {
            cfg,
            nodes: (0..count)
                .map(|block| GraphNode {
                    place: Place::Block(block),
                    edges: Vec::new(),
                })
                .collect(),
            end: 0,
            edge_of: vec![Vec::new(); count],
            local: Vec::new(),
            steps: 0,
        };
        graph.end = graph.add(Place::End);
        let reached = graph.connect();
        check_pads(cfg, &reached)?;
        Ok(graph)
    }

    pub fn add(&mut self, place: Place) -> usize {
        self.nodes.push(GraphNode {
            place,
            edges: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// The whole function as a region.
    pub fn root_region(&mut self) -> Region {
        let start = self.add(Place::Start);
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

    /// Gives the reachable blocks their edges, and says which they are.
    fn connect(&mut self) -> Vec<bool> {
        let cfg = self.cfg;
        let mut reached = vec![false; cfg.nodes.len()];
        let mut used = vec![false; cfg.nodes.len()];
        // The edge to a block from the block in hand.
        let mut edge_to = vec![(usize::MAX, 0); cfg.nodes.len()];
        let mut stack = vec![cfg.entry];
        reached[cfg.entry] = true;
        used[cfg.entry] = true;
        while let Some(block) = stack.pop() {
            let node = &cfg.nodes[block];
            let taken = |slot, target| Taken {
                block,
                slot,
                target,
                back: None,
            };
            let mut edges: Vec<Edge> = Vec::new();
            for (slot, &successor) in node.successors.iter().enumerate() {
                if edge_to[successor].0 != block {
                    edge_to[successor] = (block, edges.len());
                    let to = self.entered(successor, &mut used);
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

    /// The node for an edge to a block: a copy of it, if it was used and may be copied.
    fn entered(&mut self, block: usize, used: &mut [bool]) -> usize {
        let node = &self.cfg.nodes[block];
        let copyable = node.copyable && matches!(node.kind, Kind::Unreachable | Kind::Resume);
        if std::mem::replace(&mut used[block], true) && copyable {
            self.add(Place::Block(block))
        } else {
            block
        }
    }

    /// Numbers the nodes of a region, so that what is computed about it costs its size only.
    pub fn number(&mut self, nodes: &[usize], end: usize) {
        self.local.resize(self.nodes.len(), OUTSIDE);
        for (i, &node) in nodes.iter().enumerate() {
            self.local[node] = i;
        }
        self.local[end] = OUTSIDE;
        self.steps += nodes.len() as u64;
    }
    /// The number of a node of the region numbered last, or `OUTSIDE` for its end.
    pub fn local(&self, node: usize) -> usize {
        self.local[node]
    }

    /// Whether a node is a landing pad.
    pub fn is_pad(&self, node: usize) -> bool {
        matches!(self.nodes[node].place, Place::Block(block) if self.cfg.nodes[block].pad)
    }
    /// Whether a node is a block with a two-way branch of its own.
    pub fn is_branch(&self, node: usize) -> bool {
        matches!(self.nodes[node].place, Place::Block(block) if self.cfg.nodes[block].kind == Kind::Branch)
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

/// Every pad has one edge, from an invoke's unwind slot.
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
