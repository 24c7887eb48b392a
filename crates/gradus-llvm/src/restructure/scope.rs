//! Computes the results of every region and the variables that loops carry: step 6 of restructuring.
//!
//! Input: a [`Tree`], and for each block its definitions, reads, and edge assignments ([`Flow`]). Output:
//! for every `Branch`, `Select` and `Loop` the variables that outlive it, and for every `Loop` the
//! variables that its body passes to the next iteration.
//!
//! The tree preserves dominance (see `levels`). A value is thus read in its defining sequence or inside
//! later nodes of that sequence, except after the exit of a loop. A phi is assigned on edges and read in
//! their landing sequences. No data-flow iteration is necessary: a climb from each assignment to the
//! sequence of the reader adds the variable to the results of every node that it leaves. A variable is
//! carried by a loop exactly if an edge marked as back edge assigns it. Phis that are read only by unread
//! phis are left out.
//!
//! Each (node, variable) pair is found once: climbs for a variable skip the nodes already left
//! (union-find). Time: almost linear in the input plus the output.

use super::tree::{NodeId, RepeatCondition, SelectorId, SeqId, Tree, TreeNode};

/// A variable: a possible result of a region or a variable carried by a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Var {
    /// A value of the source function.
    Value(u32),
    /// A selector of the tree.
    Selector(SelectorId),
}

/// Definitions and uses of a function's blocks. Values are numbered by the caller. A value without a
/// definition or assignment (an argument, a constant) is visible everywhere and may be left out.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The number of values.
    pub values: usize,
    /// By block.
    pub blocks: Vec<BlockFlow>,
    /// The values read after the body, assigned by returning edges.
    pub live_out: Vec<u32>,
}

/// Definitions and uses of a block.
#[derive(Clone, Debug, Default)]
pub struct BlockFlow {
    /// Defined by its instructions (without phis and the terminator).
    pub defines: Vec<u32>,
    /// Read by its instructions; also by its terminator, if the terminator ends the function without a
    /// return (`unreachable`, `resume`, must-tail).
    pub reads: Vec<u32>,
    /// Read by its branch: the condition; an invoke's operands.
    pub branch_reads: Vec<u32>,
    /// Defined by its branch: an invoke's result, bound in the arm of successor 0.
    pub branch_defines: Vec<u32>,
    /// By successor (one for a return): the phis, or the returned value, assigned by the edge, and the
    /// source value, if it is not a constant. Parallel edges use the first entry.
    pub edges: Vec<Vec<(u32, Option<u32>)>>,
}

/// The results of nodes and the variables that loops carry; lists are ascending.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    results: Lists,
    carried: Lists,
    needed: Vec<bool>,
}

impl Scope {
    /// Returns the results of a `Branch` or `Select`; for a `Loop` the variables read after it. Empty for
    /// other nodes.
    pub fn results(&self, node: NodeId) -> &[Var] {
        self.results.of(node)
    }
    /// Returns the variables that a loop carries to the next iteration; each starts with its value before
    /// the loop (poison if undefined there).
    pub fn carried(&self, node: NodeId) -> &[Var] {
        self.carried.of(node)
    }
    /// Returns whether a phi is read. An unread phi needs no assignment and is in no list.
    pub fn is_read(&self, phi: u32) -> bool {
        self.needed[phi as usize]
    }
}

/// A list for each node of a tree.
#[derive(Clone, Debug, Default)]
struct Lists {
    first: Vec<u32>,
    vars: Vec<Var>,
}

impl Lists {
    fn new(nodes: usize, mut pairs: Vec<(NodeId, Var)>) -> Lists {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0; nodes + 1];
        for (node, _) in &pairs {
            first[node.index() + 1] += 1;
        }
        for i in 0..nodes {
            first[i + 1] += first[i];
        }
        Lists {
            first,
            vars: pairs.into_iter().map(|(_, var)| var).collect(),
        }
    }
    fn of(&self, node: NodeId) -> &[Var] {
        let bound = |i: usize| self.first[i] as usize;
        &self.vars[bound(node.index())..bound(node.index() + 1)]
    }
}

/// Computes the results and carried variables of a tree. `flow` has a [`BlockFlow`] for every block of the
/// tree's graph.
pub fn scope(tree: &Tree, flow: &Flow) -> Scope {
    let facts = Facts::new(tree, flow);
    let mut climb = Climb::new(tree);
    let mut carried = Vec::new();
    // Phis: climb from the assignment to the landing sequence of the edge.
    for (phi, assignments) in facts.assignments.iter().enumerate() {
        let var = Var::Value(phi as u32);
        climb.start();
        for assignment in assignments.iter().filter(|_| facts.needed[phi]) {
            climb.climb_to(var, assignment.seq, assignment.read_in);
            carried.extend(assignment.back.map(|node| (node, var)));
        }
    }
    // All values: climb from the definition to reads after the enclosing loops.
    for (value, reads) in facts.reads.iter().enumerate() {
        let Some(seq) = facts.defined_in[value] else {
            continue;
        };
        climb.start();
        for read in reads.iter().filter(|_| !facts.copied[value]) {
            climb.climb_to(Var::Value(value as u32), seq, *read);
        }
    }
    for (selector, settings) in facts.settings.iter().enumerate() {
        let var = Var::Selector(SelectorId(selector as u32));
        climb.start();
        for (seq, read_in, back) in settings {
            climb.climb_to(var, *seq, *read_in);
            carried.extend(back.map(|node| (node, var)));
        }
    }
    Scope {
        results: Lists::new(tree.node_count(), climb.found),
        carried: Lists::new(tree.node_count(), carried),
        needed: facts.needed,
    }
}

/// An assignment of a phi.
struct Assignment {
    seq: SeqId,
    /// The sequence to reach: the landing sequence of the edge, or the body of the loop of a back edge.
    read_in: SeqId,
    back: Option<NodeId>,
    from: Option<u32>,
}

/// Definitions, reads and assignments in the tree, by variable.
struct Facts {
    /// The sequence that defines each value; none for values visible everywhere.
    defined_in: Vec<Option<SeqId>>,
    /// True if the value's block was copied: then only the block itself reads the value.
    copied: Vec<bool>,
    /// The sequences that read each value.
    reads: Vec<Vec<SeqId>>,
    assignments: Vec<Vec<Assignment>>,
    needed: Vec<bool>,
    /// The sequence that sets each selector, the sequence of its last read, and the loop that carries it.
    settings: Vec<Vec<(SeqId, SeqId, Option<NodeId>)>>,
}

impl Facts {
    fn new(tree: &Tree, flow: &Flow) -> Facts {
        let mut facts = Facts {
            defined_in: vec![None; flow.values],
            copied: vec![false; flow.values],
            reads: vec![Vec::new(); flow.values],
            assignments: (0..flow.values).map(|_| Vec::new()).collect(),
            needed: vec![false; flow.values],
            settings: vec![Vec::new(); tree.selectors().len()],
        };
        for (id, node) in tree.nodes() {
            facts.node(tree, flow, id, node);
        }
        for &value in &flow.live_out {
            facts.reads[value as usize].push(tree.root());
        }
        facts.mark_read_phis();
        facts
    }

    fn node(&mut self, tree: &Tree, flow: &Flow, id: NodeId, node: &TreeNode) {
        let seq = tree.home(id);
        match node {
            TreeNode::Block { block } => {
                let block = &flow.blocks[*block];
                self.define(&block.defines, seq);
                self.read(&block.reads, seq);
            }
            TreeNode::Branch {
                block,
                arms,
                arm_of,
            } => {
                let block = &flow.blocks[*block];
                self.read(&block.branch_reads, seq);
                self.define(&block.branch_defines, arms[arm_of[0]]);
            }
            TreeNode::Edge {
                block,
                slot,
                lands,
                back,
            } => {
                let body = back.and_then(|node| tree.node(node).seqs().first());
                let read_in = *body.unwrap_or(lands);
                self.assign(flow, (*block, *slot), *lands, (seq, read_in, *back));
            }
            TreeNode::Assign {
                selector,
                read_in,
                back,
                ..
            } => self.settings[selector.index()].push((seq, *read_in, *back)),
            TreeNode::Loop {
                body,
                again: RepeatCondition::Block { block, slot },
            } => {
                self.read(&flow.blocks[*block].branch_reads, *body);
                self.assign(flow, (*block, *slot), *body, (*body, *body, Some(id)));
            }
            TreeNode::Loop { .. } | TreeNode::Select { .. } | TreeNode::Never => {}
        }
    }

    fn define(&mut self, values: &[u32], seq: SeqId) {
        for &value in values {
            let before = self.defined_in[value as usize].replace(seq);
            self.copied[value as usize] |= before.is_some_and(|other| other != seq);
        }
    }
    fn read(&mut self, values: &[u32], seq: SeqId) {
        for &value in values {
            self.reads[value as usize].push(seq);
        }
    }
    fn assign(
        &mut self,
        flow: &Flow,
        (block, slot): (usize, usize),
        lands: SeqId,
        (seq, read_in, back): (SeqId, SeqId, Option<NodeId>),
    ) {
        let assigned = flow.blocks[block]
            .edges
            .get(slot)
            .map_or(&[][..], |edge| edge);
        for &(phi, from) in assigned {
            // A phi is defined in the landing sequence of its edges.
            self.define(&[phi], lands);
            self.assignments[phi as usize].push(Assignment {
                seq,
                read_in,
                back,
                from,
            });
        }
    }

    /// Marks the phis that are read, except by unread phis only; the sources of marked phis are reads.
    fn mark_read_phis(&mut self) {
        let mut stack: Vec<usize> = (0..self.reads.len())
            .filter(|value| !self.reads[*value].is_empty())
            .collect();
        for &value in &stack {
            self.needed[value] = true;
        }
        while let Some(phi) = stack.pop() {
            for assignment in &self.assignments[phi] {
                let Some(from) = assignment.from else {
                    continue;
                };
                self.reads[from as usize].push(assignment.seq);
                if !std::mem::replace(&mut self.needed[from as usize], true) {
                    stack.push(from as usize);
                }
            }
        }
    }
}

/// Climbs from sequences to enclosing sequences.
struct Climb<'a> {
    tree: &'a Tree,
    /// Entry and exit times of each sequence in a depth-first walk.
    span: Vec<(u32, u32)>,
    /// The sequence reached by earlier climbs of the present variable; valid if `mark` equals `round`.
    skip: Vec<SeqId>,
    mark: Vec<u32>,
    round: u32,
    /// The nodes left, with the variable.
    found: Vec<(NodeId, Var)>,
}

impl<'a> Climb<'a> {
    fn new(tree: &'a Tree) -> Climb<'a> {
        // Sequences are numbered outside in: sizes from the inside out, then entry times from the outside
        // in.
        let count = tree.seq_count();
        let mut size = vec![1; count];
        let parent = |seq: usize| {
            tree.owner(SeqId(seq as u32))
                .map(|node| tree.home(node).index())
        };
        for seq in (0..count).rev() {
            if let Some(parent) = parent(seq) {
                size[parent] += size[seq];
            }
        }
        let mut free = vec![0; count];
        let mut span = Vec::with_capacity(count);
        for (seq, &size) in size.iter().enumerate() {
            let start = match parent(seq) {
                Some(parent) => {
                    let start = free[parent];
                    free[parent] += size;
                    start
                }
                None => 0,
            };
            free[seq] = start + 1;
            span.push((start, start + size));
        }
        Climb {
            tree,
            span,
            skip: (0..count).map(|seq| SeqId(seq as u32)).collect(),
            mark: vec![0; count],
            round: 0,
            found: Vec::new(),
        }
    }

    /// Begins the climbs of another variable.
    fn start(&mut self) {
        self.round += 1;
    }

    /// Records every node left on the path from a sequence to an enclosing sequence of `to`.
    fn climb_to(&mut self, var: Var, from: SeqId, to: SeqId) {
        let mut seq = self.skip_climbed(from);
        while !self.holds(seq, to) {
            let Some(node) = self.tree.owner(seq) else {
                break;
            };
            self.found.push((node, var));
            self.skip[seq.index()] = self.tree.home(node);
            self.mark[seq.index()] = self.round;
            seq = self.skip_climbed(self.tree.home(node));
        }
    }

    fn holds(&self, outer: SeqId, inner: SeqId) -> bool {
        let (start, end) = self.span[outer.index()];
        (start..end).contains(&self.span[inner.index()].0)
    }

    /// Returns the enclosing sequence at which earlier climbs of the variable stopped.
    fn skip_climbed(&mut self, mut seq: SeqId) -> SeqId {
        while self.mark[seq.index()] == self.round {
            let next = self.skip[seq.index()];
            if self.mark[next.index()] == self.round {
                self.skip[seq.index()] = self.skip[next.index()];
            }
            seq = next;
        }
        seq
    }
}
