//! The tree of structured regions: the result of restructuring.
//!
//! An arena with indices, so that neither dropping nor walking the tree recurses. Sequences and nodes are
//! numbered outside in: inner numbers are larger than outer numbers.

use std::fmt;

/// A sequence of a [`Tree`]: a straight list of nodes, which becomes a region of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId(pub(super) u32);

/// A node of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

/// A selector of a [`Tree`]: an integer variable that restructuring introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorId(pub(super) u32);

impl SeqId {
    /// Returns the number, below [`Tree::seq_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl NodeId {
    /// Returns the number, below [`Tree::node_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl SelectorId {
    /// Returns the number, below the length of [`Tree::selectors`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The purpose of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorKind {
    /// Selects the entry of an irreducible loop.
    Entry,
    /// Selects between the next iteration of a loop and its exits.
    Loop,
    /// Selects the continuation after a branch.
    Continue,
}

/// A selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Its purpose.
    pub kind: SelectorKind,
    /// The values are `0..values`. With two values the selector can be a truth value: every `Select` on it
    /// then has two arms, and an [`RepeatCondition::Selector`] tests for 1.
    pub values: u32,
}

/// The repeat condition of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatCondition {
    /// Always repeats: the loop leaves only by ending the function.
    Forever,
    /// Repeats if the selector has the value.
    Selector {
        /// The selector.
        selector: SelectorId,
        /// Its value for the next iteration.
        value: u32,
    },
    /// Repeats if the block's own two-way branch takes successor `slot`. At the bottom the condition is
    /// evaluated; for the next iteration the phi assignments of the edge are performed.
    Block {
        /// The block.
        block: usize,
        /// The successor of the back edge: 0 or 1.
        slot: usize,
    },
}

/// A node of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNode {
    /// The straight-line contents of a block.
    Block {
        /// The block.
        block: usize,
    },
    /// An edge with its phi assignments.
    Edge {
        /// The source block.
        block: usize,
        /// The index of the successor (the first of several equal ones); 0 for a return.
        slot: usize,
        /// The sequence of the target block; the root for a return.
        lands: SeqId,
        /// The loop of a back edge, if any: it carries the assigned variables.
        back: Option<NodeId>,
    },
    /// An assignment of a selector.
    Assign {
        /// The selector.
        selector: SelectorId,
        /// Its value.
        value: u32,
        /// The sequence of the last read of the value.
        read_in: SeqId,
        /// The loop that carries the value to the next iteration, if any.
        back: Option<NodeId>,
    },
    /// A block's own branch, directly after the block.
    Branch {
        /// The block.
        block: usize,
        /// The arm of each distinct edge.
        arms: Vec<SeqId>,
        /// The index of the arm of each successor.
        arm_of: Vec<usize>,
    },
    /// A branch on a selector.
    Select {
        /// The selector.
        selector: SelectorId,
        /// The values of all arms but the last, ascending.
        values: Vec<u32>,
        /// The arms: arm `i` for `values[i]`, the last for all remaining values.
        arms: Vec<SeqId>,
    },
    /// A loop: runs at least once, leaves at the bottom.
    Loop {
        /// The body.
        body: SeqId,
        /// The repeat condition.
        again: RepeatCondition,
    },
    /// Unreachable.
    Never,
}

impl TreeNode {
    /// Returns the sequences inside the node.
    pub fn seqs(&self) -> &[SeqId] {
        match self {
            TreeNode::Branch { arms, .. } | TreeNode::Select { arms, .. } => arms,
            TreeNode::Loop { body, .. } => std::slice::from_ref(body),
            _ => &[],
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Seq {
    nodes: Vec<NodeId>,
    owner: Option<NodeId>,
    ends: bool,
}

/// A tree of structured regions.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<TreeNode>,
    homes: Vec<SeqId>,
    seqs: Vec<Seq>,
    selectors: Vec<Selector>,
    steps: u64,
}

impl Tree {
    /// Returns the sequence of the whole body.
    pub fn root(&self) -> SeqId {
        SeqId(0)
    }
    /// Returns the nodes of a sequence, in order.
    pub fn seq(&self, seq: SeqId) -> &[NodeId] {
        &self.seqs[seq.index()].nodes
    }
    /// Returns a node.
    pub fn node(&self, node: NodeId) -> &TreeNode {
        &self.nodes[node.index()]
    }
    /// Returns the sequence that contains a node.
    pub fn home(&self, node: NodeId) -> SeqId {
        self.homes[node.index()]
    }
    /// Returns the node that contains a sequence; none for the root.
    pub fn owner(&self, seq: SeqId) -> Option<NodeId> {
        self.seqs[seq.index()].owner
    }
    /// Returns whether control never reaches the end of a sequence, so that the sequence yields nothing.
    pub fn never_completes(&self, seq: SeqId) -> bool {
        self.seqs[seq.index()].ends
    }
    /// Returns all nodes, outer before inner.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &TreeNode)> {
        (0..).map(NodeId).zip(&self.nodes)
    }
    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
    /// Returns the number of sequences.
    pub fn seq_count(&self) -> usize {
        self.seqs.len()
    }
    /// Returns the selectors, by number.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }
    /// Returns the number of elementary steps of restructuring, for tests of its growth.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn new_seq(&mut self) -> SeqId {
        self.seqs.push(Seq::default());
        SeqId(self.seqs.len() as u32 - 1)
    }
    pub(super) fn new_selector(&mut self, kind: SelectorKind, values: u32) -> SelectorId {
        self.selectors.push(Selector { kind, values });
        SelectorId(self.selectors.len() as u32 - 1)
    }
    /// Adds a value to a selector.
    pub(super) fn new_value(&mut self, selector: SelectorId) -> u32 {
        let values = &mut self.selectors[selector.index()].values;
        *values += 1;
        *values - 1
    }
    pub(super) fn push(&mut self, seq: SeqId, node: TreeNode) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        for inner in node.seqs() {
            self.seqs[inner.index()].owner = Some(id);
        }
        self.nodes.push(node);
        self.homes.push(seq);
        self.seqs[seq.index()].nodes.push(id);
        id
    }
    /// Sets the landing sequence of an edge or the reading sequence of an assignment, and the loop of a
    /// back edge.
    pub(super) fn set_target(&mut self, node: NodeId, seq: SeqId, round: Option<NodeId>) {
        if let TreeNode::Edge {
            lands: target,
            back,
            ..
        }
        | TreeNode::Assign {
            read_in: target,
            back,
            ..
        } = &mut self.nodes[node.index()]
        {
            *target = seq;
            *back = round;
        }
    }
    /// Computes which sequences end; `block_ends` decides for blocks.
    pub(super) fn finish(&mut self, steps: u64, block_ends: impl Fn(usize) -> bool) {
        self.steps = steps + self.nodes.len() as u64;
        for seq in (0..self.seqs.len()).rev() {
            let ends = match self.seqs[seq].nodes.last().map(|last| self.node(*last)) {
                Some(TreeNode::Block { block }) => block_ends(*block),
                Some(TreeNode::Never) => true,
                Some(TreeNode::Branch { arms, .. } | TreeNode::Select { arms, .. }) => {
                    arms.iter().all(|arm| self.never_completes(*arm))
                }
                _ => false,
            };
            self.seqs[seq].ends = ends;
        }
    }
}

/// Prints one line: `b1 br1[e1.0 b2 e2.0 | e1.1] b3 e3.0`.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum Item {
            Seq(SeqId),
            Node(NodeId),
            Text(String),
        }
        let mut stack = vec![Item::Seq(self.root())];
        let mut gap = false;
        while let Some(item) = stack.pop() {
            let text = match item {
                Item::Text(text) => text,
                Item::Seq(seq) => {
                    stack.extend(self.seq(seq).iter().rev().map(|node| Item::Node(*node)));
                    continue;
                }
                Item::Node(node) => {
                    let node = self.node(node);
                    if let TreeNode::Loop { again, .. } = node {
                        stack.push(Item::Text(again.to_string()));
                    } else if !node.seqs().is_empty() {
                        stack.push(Item::Text("]".into()));
                    }
                    for (i, seq) in node.seqs().iter().enumerate().rev() {
                        stack.push(Item::Seq(*seq));
                        if i > 0 {
                            stack.push(Item::Text("|".into()));
                        }
                    }
                    node.to_string()
                }
            };
            if gap && !text.starts_with(']') {
                f.write_str(" ")?;
            }
            f.write_str(&text)?;
            gap = !text.ends_with('[');
        }
        Ok(())
    }
}

impl fmt::Display for TreeNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeNode::Block { block } => write!(f, "b{block}"),
            TreeNode::Edge { block, slot, .. } => write!(f, "e{block}.{slot}"),
            TreeNode::Assign {
                selector, value, ..
            } => write!(f, "s{}={value}", selector.0),
            TreeNode::Branch { block, .. } => write!(f, "br{block}["),
            TreeNode::Select {
                selector, values, ..
            } => write!(f, "s{}{values:?}[", selector.0),
            TreeNode::Loop { .. } => write!(f, "loop["),
            TreeNode::Never => write!(f, "never"),
        }
    }
}

impl fmt::Display for RepeatCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RepeatCondition::Forever => write!(f, "]forever"),
            RepeatCondition::Selector { selector, value } => {
                write!(f, "]while s{}={value}", selector.0)
            }
            RepeatCondition::Block { block, slot } => write!(f, "]while e{block}.{slot}"),
        }
    }
}
