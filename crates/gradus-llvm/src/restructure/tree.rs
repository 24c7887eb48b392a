//! The tree of structured regions: what restructuring gives.
//!
//! An arena with indices, so that neither dropping nor walking it recurses. Sequences and nodes are
//! numbered outside in: what stands inside a node has a larger number than it.

use std::fmt;

/// A sequence of a [`Tree`]: one straight list of nodes, a region of the body to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId(pub(super) u32);

/// A node of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

/// A selector of a [`Tree`]: an integer variable that restructuring introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorId(pub(super) u32);

impl SeqId {
    /// The number: below [`Tree::seq_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl NodeId {
    /// The number: below [`Tree::node_count`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
impl SelectorId {
    /// The number: below the length of [`Tree::selectors`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a selector selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorKind {
    /// By which of its entries an irreducible loop is entered.
    Entry,
    /// Whether a loop goes round again, or which exit it takes.
    Loop,
    /// Which continuation follows a branch.
    Continue,
}

/// A selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// What it selects.
    pub kind: SelectorKind,
    /// It takes the values `0..values`. With two it can be a truth value: every `Select` on it then has
    /// two arms, and an [`Again::Selector`] tests for 1.
    pub values: u32,
}

/// When a loop goes round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Always: it leaves only by ending the function.
    Forever,
    /// Where the selector has the value.
    Selector {
        /// The selector.
        selector: SelectorId,
        /// Its value for another round.
        value: u32,
    },
    /// Where the block's own two-way branch goes to successor `slot`. At the bottom: the condition is
    /// evaluated; for another round the phi assignments of that edge are performed.
    Block {
        /// The block.
        block: usize,
        /// The successor that goes round: 0 or 1.
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
    /// An edge is taken: its phi assignments happen here.
    Edge {
        /// The block that it leaves.
        block: usize,
        /// Which of the block's successors (the first, where several are the same block); 0 for a return.
        slot: usize,
        /// The sequence in which the block that it goes to stands; the root for a return.
        lands: SeqId,
        /// The loop that it goes round, if any: the assigned variables are carried by it.
        back: Option<NodeId>,
    },
    /// A selector gets a value.
    Assign {
        /// The selector.
        selector: SelectorId,
        /// Its value.
        value: u32,
        /// The sequence in which the value is last read.
        read_in: SeqId,
        /// The loop that carries the value to its next round, if any.
        back: Option<NodeId>,
    },
    /// A block's own branch, right behind the block.
    Branch {
        /// The block.
        block: usize,
        /// What follows on each distinct edge.
        arms: Vec<SeqId>,
        /// The arm of each successor.
        arm_of: Vec<usize>,
    },
    /// A branch on a selector.
    Select {
        /// The selector.
        selector: SelectorId,
        /// The values of all arms but the last, ascending.
        values: Vec<u32>,
        /// What follows: arm `i` for `values[i]`, the last for all others.
        arms: Vec<SeqId>,
    },
    /// A loop: runs at least once, leaves at the bottom.
    Loop {
        /// The body.
        body: SeqId,
        /// When it goes round again.
        again: Again,
    },
    /// Control never gets here.
    Never,
}

impl TreeNode {
    /// The sequences inside the node.
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
    /// The sequence of the whole body.
    pub fn root(&self) -> SeqId {
        SeqId(0)
    }
    /// The nodes of a sequence, in order.
    pub fn seq(&self, seq: SeqId) -> &[NodeId] {
        &self.seqs[seq.index()].nodes
    }
    /// A node.
    pub fn node(&self, node: NodeId) -> &TreeNode {
        &self.nodes[node.index()]
    }
    /// The sequence that a node stands in.
    pub fn home(&self, node: NodeId) -> SeqId {
        self.homes[node.index()]
    }
    /// The node that a sequence stands in; none for the root.
    pub fn owner(&self, seq: SeqId) -> Option<NodeId> {
        self.seqs[seq.index()].owner
    }
    /// Whether control never reaches the end of a sequence, so that it yields nothing.
    pub fn ends(&self, seq: SeqId) -> bool {
        self.seqs[seq.index()].ends
    }
    /// All nodes, outer before inner.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &TreeNode)> {
        (0..).map(NodeId).zip(&self.nodes)
    }
    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
    /// The number of sequences.
    pub fn seq_count(&self) -> usize {
        self.seqs.len()
    }
    /// The selectors, by number.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }
    /// How many elementary steps restructuring took, for tests of its growth.
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
    /// One more value of a selector.
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
    /// Says of an edge where it lands, of an assignment where it is read, and which loop they go round.
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
    /// Fills in which sequences end; `block_ends` says it of blocks.
    pub(super) fn finish(&mut self, steps: u64, block_ends: impl Fn(usize) -> bool) {
        self.steps = steps + self.nodes.len() as u64;
        for seq in (0..self.seqs.len()).rev() {
            let ends = match self.seqs[seq].nodes.last().map(|last| self.node(*last)) {
                Some(TreeNode::Block { block }) => block_ends(*block),
                Some(TreeNode::Never) => true,
                Some(TreeNode::Branch { arms, .. } | TreeNode::Select { arms, .. }) => {
                    arms.iter().all(|arm| self.ends(*arm))
                }
                _ => false,
            };
            self.seqs[seq].ends = ends;
        }
    }
}

/// One line: `b1 br1[e1.0 b2 e2.0 | e1.1] b3 e3.0`.
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

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Again::Forever => write!(f, "]forever"),
            Again::Selector { selector, value } => write!(f, "]while s{}={value}", selector.0),
            Again::Block { block, slot } => write!(f, "]while e{block}.{slot}"),
        }
    }
}
