//! Emits the region tree from the levels: step 5 of restructuring.
//!
//! One pass over a region with a stack of (node, sequence). A node is emitted, its branch, the selections
//! after it, then the node that follows in the same sequence; arms and selected continuations are pushed on
//! the stack with new sequences. References to later nodes (the landing sequence of an edge, loops) are
//! filled in at the end.

use super::graph::{Edge, Graph, NodeRole, Reader, Region};
use super::tree::{NodeId, RepeatCondition, SelectorId, SelectorKind, SeqId, Tree, TreeNode};
use crate::restructure::dominance_levels::{Choice, Levels};
use crate::restructure::dominators::Dag;
use std::collections::HashMap;

/// The known facts of a loop.
struct LoopPlan {
    again: RepeatCondition,
    /// The selector of its exits, if there are several.
    exits: Option<SelectorId>,
    node: NodeId,
    body: SeqId,
    home: SeqId,
}

/// Builds the tree.
pub(super) struct Emitter {
    tree: Tree,
    loops: Vec<LoopPlan>,
    /// Edges of the tree: target in the graph, loop of a back edge.
    edges: Vec<(NodeId, usize, Option<usize>)>,
    /// Selector assignments of loops and entries: reader, loop that carries the value.
    settings: Vec<(NodeId, Reader, Option<usize>)>,
    /// The sequence of each graph node.
    placed: Vec<SeqId>,
}

impl Emitter {
    /// Creates a tree with an empty root.
    pub fn new() -> Emitter {
        let mut tree = Tree::default();
        tree.new_seq();
        Emitter {
            tree,
            loops: Vec::new(),
            edges: Vec::new(),
            settings: Vec::new(),
            placed: Vec::new(),
        }
    }
    /// Adds a loop; returns its number.
    pub fn new_loop(&mut self) -> usize {
        let root = self.tree.root();
        self.loops.push(LoopPlan {
            again: RepeatCondition::Forever,
            exits: None,
            node: NodeId(0),
            body: root,
            home: root,
        });
        self.loops.len() - 1
    }
    /// Adds a selector.
    pub fn new_selector(&mut self, kind: SelectorKind, values: u32) -> SelectorId {
        self.tree.new_selector(kind, values)
    }
    /// Sets the repeat condition of a loop, and the selector of its exits.
    pub fn set_again(&mut self, number: usize, again: RepeatCondition, exits: Option<SelectorId>) {
        self.loops[number].again = again;
        self.loops[number].exits = exits;
    }

    /// Emits a region. Loop nodes are emitted; their bodies are regions to emit later.
    pub fn region(&mut self, graph: &Graph, region: &Region, dag: &Dag, levels: &Levels) {
        let seq = region
            .of
            .map_or(self.tree.root(), |number| self.loops[number].body);
        self.placed.resize(graph.nodes.len(), seq);
        let mut emission = Emission {
            emitter: self,
            graph,
            dag,
            levels,
            selectors: HashMap::new(),
            values: HashMap::new(),
            stack: vec![(0, seq)],
        };
        while let Some((node, seq)) = emission.stack.pop() {
            emission.emit_sequence(node, seq);
        }
    }

    /// Fills in all references and returns the tree.
    pub fn finish(mut self, graph: &Graph) -> Tree {
        for (node, target, back) in self.edges {
            let lands = if target == graph.end {
                self.tree.root()
            } else {
                self.placed[target]
            };
            let back = back.map(|number| self.loops[number].node);
            self.tree.set_target(node, lands, back);
        }
        for (node, reader, back) in self.settings {
            let read_in = match reader {
                Reader::Inside(number) => self.loops[number].body,
                Reader::Behind(number) => self.loops[number].home,
            };
            let back = back.map(|number| self.loops[number].node);
            self.tree.set_target(node, read_in, back);
        }
        self.tree
            .finish(graph.steps, |block| graph.cfg.nodes[block].kind.ends());
        self.tree
    }
}

/// The emission of a region.
struct Emission<'a, 'g> {
    emitter: &'a mut Emitter,
    graph: &'a Graph<'g>,
    dag: &'a Dag,
    levels: &'a Levels,
    /// The selector of each class of levels.
    selectors: HashMap<usize, SelectorId>,
    /// The selector value of each target.
    values: HashMap<(SelectorId, usize), u32>,
    stack: Vec<(usize, SeqId)>,
}

impl Emission<'_, '_> {
    /// Emits a node and all following nodes of the same sequence.
    fn emit_sequence(&mut self, node: usize, seq: SeqId) {
        let mut next = Some(node);
        while let Some(node) = next {
            self.emitter.placed[self.dag.order[node]] = seq;
            self.emit_node(node, seq);
            let edges = self.dag.edges(node);
            match edges.len() {
                0 => self.dead_end(node, seq),
                1 => self.edge(node, edges.start, seq),
                _ => self.branch(node, seq),
            }
            for layer in 0..self.levels.layers[node].len() {
                self.selection(node, layer, seq);
            }
            next = self.levels.follows[node];
        }
    }

    fn emit_node(&mut self, node: usize, seq: SeqId) {
        let tree = &mut self.emitter.tree;
        match self.graph.nodes[self.dag.order[node]].place {
            NodeRole::Block(block) => {
                tree.push(seq, TreeNode::Block { block });
            }
            NodeRole::Loop(number) => {
                let plan = &mut self.emitter.loops[number];
                plan.home = seq;
                plan.body = tree.new_seq();
                let (body, again) = (plan.body, plan.again);
                plan.node = tree.push(seq, TreeNode::Loop { body, again });
            }
            NodeRole::Start | NodeRole::Entries(_) | NodeRole::End => {}
        }
    }

    /// Emits a node without edges: a block terminates itself, a loop without exit never ends.
    fn dead_end(&mut self, node: usize, seq: SeqId) {
        if let NodeRole::Loop(_) = self.graph.nodes[self.dag.order[node]].place {
            self.emitter.tree.push(seq, TreeNode::Never);
        }
    }

    /// Emits the branch of a block, or a branch on the selector of a loop's exits or entries.
    fn branch(&mut self, node: usize, seq: SeqId) {
        let edges = self.dag.edges(node);
        let tree = &mut self.emitter.tree;
        let arms: Vec<SeqId> = edges.clone().map(|_| tree.new_seq()).collect();
        let select = |selector, first| TreeNode::Select {
            selector,
            values: (first..).take(arms.len() - 1).collect(),
            arms: arms.clone(),
        };
        let branch = match self.graph.nodes[self.dag.order[node]].place {
            NodeRole::Block(block) => TreeNode::Branch {
                block,
                arms: arms.clone(),
                arm_of: self.graph.edge_of[block].clone(),
            },
            NodeRole::Entries(selector) => select(selector, 0),
            // Value 0 means the next iteration.
            NodeRole::Loop(number) => match self.emitter.loops[number].exits {
                Some(selector) => select(selector, 1),
                None => return,
            },
            NodeRole::Start | NodeRole::End => return,
        };
        tree.push(seq, branch);
        for (edge, arm) in edges.zip(arms) {
            self.edge(node, edge, arm);
            let to = self.dag.target[edge];
            let starts_here = self.levels.is_arm.get(to) == Some(&true);
            if starts_here && self.levels.follows[node] != Some(to) {
                self.stack.push((to, arm));
            }
        }
    }

    /// Emits a selection after a node.
    fn selection(&mut self, node: usize, layer: usize, seq: SeqId) {
        let layer = &self.levels.layers[node][layer];
        let selector = self.selector(self.levels.class[node]);
        let mut cases: Vec<(u32, usize)> = layer
            .targets
            .iter()
            .map(|to| (self.value(selector, *to), *to))
            .collect();
        cases.sort_unstable();
        let tree = &mut self.emitter.tree;
        let mut arms: Vec<SeqId> = cases.iter().map(|_| tree.new_seq()).collect();
        self.stack
            .extend(cases.iter().map(|(_, to)| *to).zip(arms.iter().copied()));
        let mut values: Vec<u32> = cases.iter().map(|(value, _)| *value).collect();
        if layer.passes {
            arms.push(tree.new_seq());
        } else {
            values.pop();
        }
        let select = TreeNode::Select {
            selector,
            values,
            arms,
        };
        tree.push(seq, select);
    }

    /// Emits the assignments of an edge.
    fn edge(&mut self, node: usize, edge: usize, seq: SeqId) {
        let number = edge - self.dag.first[node];
        let Edge {
            taken, settings, ..
        } = &self.graph.nodes[self.dag.order[node]].edges[number];
        if let Some(taken) = taken {
            let id = self.emitter.tree.push(
                seq,
                TreeNode::Edge {
                    block: taken.block,
                    slot: taken.slot,
                    lands: seq,
                    back: None,
                },
            );
            self.emitter.edges.push((id, taken.target, taken.back));
        }
        for setting in settings {
            let id = self.assign(seq, setting.selector, setting.value, seq);
            self.emitter
                .settings
                .push((id, setting.reader, setting.back));
        }
        if let Some(Choice { class, read_by }) = self.levels.choices[edge] {
            let selector = self.selector(class);
            let value = self.value(selector, self.dag.target[edge]);
            let read_in = self.emitter.placed[self.dag.order[read_by]];
            self.assign(seq, selector, value, read_in);
        }
    }

    fn assign(&mut self, seq: SeqId, selector: SelectorId, value: u32, read_in: SeqId) -> NodeId {
        self.emitter.tree.push(
            seq,
            TreeNode::Assign {
                selector,
                value,
                read_in,
                back: None,
            },
        )
    }

    fn selector(&mut self, class: usize) -> SelectorId {
        let tree = &mut self.emitter.tree;
        *self
            .selectors
            .entry(class)
            .or_insert_with(|| tree.new_selector(SelectorKind::Continue, 0))
    }

    fn value(&mut self, selector: SelectorId, target: usize) -> u32 {
        let tree = &mut self.emitter.tree;
        *self
            .values
            .entry((selector, target))
            .or_insert_with(|| tree.new_value(selector))
    }
}
