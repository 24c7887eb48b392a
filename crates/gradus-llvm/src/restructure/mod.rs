//! From a control-flow graph to a tree of structured regions.
//!
//! A pure graph algorithm: it knows block numbers, not instructions, and nothing of LLVM. The way of
//! use is [`restructure`] (graph → [`Tree`]), then [`scope`](scope::scope) (who reads what → the
//! results of every region), then one walk over the tree that builds the body.
//!
//! # What comes out
//!
//! A [`Tree`] is an arena of [`TreeNode`]s in [sequences](SeqId). A sequence becomes a region:
//!
//! | node | what the importer does |
//! |---|---|
//! | `Block` | emits the block's instructions without phis and without its terminator; a block that ends the function here (`unreachable`, `resume`, must-tail `return`) emits the terminator too |
//! | `Edge` | performs the phi assignments of that edge (all sources read first), or, for a returning block, binds the returned value |
//! | `Assign` | binds a selector variable to a constant |
//! | `Branch` | evaluates the block's own condition (`if`, `switch`, `invoke`); arm `arm_of[k]` for successor `k` |
//! | `Select` | `if`/`switch` on a selector: arm `i` where it equals `values[i]`, the last arm otherwise |
//! | `Loop` | `loop`; leaves at its bottom only, see [`Again`] |
//! | `Never` | `unreachable`: after a loop that never ends |
//!
//! A sequence that [ends](Tree::ends) yields nothing. Where all arms but one end, the code after the
//! branch stands behind it in the same sequence, not in the arm: a chain of checks that abort stays
//! flat. A chain of `if (c) goto fail` nests as deep as it is long: walk the tree with a stack of your
//! own. Sequences and nodes are numbered so that an outer one is smaller than those inside it.
//!
//! # Values
//!
//! The importer keeps an environment `variable → SSA value`, where a variable is a value of the
//! source function (by number) or a selector ([`scope::Var`]). A definition and an `Edge` bind; a use
//! reads. An arm starts from the environment before its node, and when the node ends, exactly its
//! [results](scope::Scope::results) are rebound, to what each arm that does not end had for them at its
//! end (poison where it had nothing). A loop's body starts from the environment before it with the
//! [carried](scope::Scope::carried) variables rebound to the region's parameters. After the loop its
//! results are rebound. For [`Again::Block`] the results are read at the bottom *before* the edge
//! that goes round is taken, the next carried values after it; the edge that leaves is an ordinary
//! `Edge` behind the loop. An invoke's result is bound at the start of arm `arm_of[0]`.
//! That is all: there is no block argument, phi or dominance question left. The test of this module
//! interprets trees by these very rules.
//!
//! # The algorithm
//!
//! Bahmann, Reissmann, Jahre, Meyer: *Perfect reconstructability of control flow from demand
//! dependence graphs* (TACO 2015), as in MLIR's `CFGToSCF`, with these steps:
//!
//! 1. `graph`: drop what is not reachable, one `End` behind all returns, private copies of small blocks
//!    that end the program, where the caller allows it.
//! 2. `cycles`, from the outside in: each strongly connected component becomes a loop node. Blocks
//!    that cannot reach the end, and landing pads, are pulled in where only the loop leads to them.
//!    Several entries: a selector at the top (`Entry`). One edge back and one out of the same two-way
//!    branch: its own condition repeats the loop. Otherwise a selector (`Loop`) says at the bottom
//!    *again* or *which exit*: one variable for both.
//! 3. `dag`: dominators of the acyclic rest, by lowest common ancestors in one topological pass.
//! 4. `levels`: below a branch, the blocks entered by exactly one edge are its arms; all other blocks
//!    that it dominates directly are *continuations*, in layers by who leads to whom. If everything
//!    meets in one, it just follows. Otherwise a selector (`Continue`) is set on the edges, and each
//!    layer is one `Select` with an arm per continuation and one to pass on.
//! 5. `emit`: the tree, in one pass with a stack.
//! 6. `scope`: results and carried variables, by climbing from each assignment to its reader.
//!
//! Where we differ. The papers demultiplex all continuations at once and again inside each other,
//! which is quadratic for a switch that falls through and merges paths, so that values dominated
//! before are not any more; layers over the true dominator tree are linear and keep dominance: only
//! phis, selectors and values that leave a loop ever become results. Selectors that one edge
//! sets together are one variable. An exit of a loop taken by one edge performs its
//! phi assignments behind the loop, so that what it reads is not copied inside.
//!
//! Time: O((n + m) · (log n + depth of loops)); no recursion anywhere.
#![forbid(unsafe_code)]

mod cycles;
mod dag;
mod emit;
mod graph;
mod levels;
pub mod scope;
#[cfg(test)]
mod tests;
mod tree;

pub use tree::{Again, NodeId, Selector, SelectorId, SelectorKind, SeqId, Tree, TreeNode};

/// A control-flow graph.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    /// The blocks.
    pub nodes: Vec<Node>,
    /// The block that control enters.
    pub entry: usize,
}

/// A block of a [`Cfg`].
#[derive(Clone, Debug)]
pub struct Node {
    /// How it ends.
    pub kind: Kind,
    /// Where it goes, in the terminator's order (for an invoke: normal, unwind). The same block may
    /// stand here several times; such edges assign the same values and are taken as one, known by the first.
    pub successors: Vec<usize>,
    /// Whether it begins with a landing pad and must therefore stand at the start of its invoke's arm.
    /// It must be the successor of one invoke only, once.
    pub pad: bool,
    /// Whether it may be copied, once for each edge to it. Looked at only where the block ends the
    /// function without returning (`Unreachable`, `Resume`). Copies keep shared `abort` blocks from
    /// costing nesting and selectors; the block's number then stands in the tree several times.
    pub copyable: bool,
}

impl Node {
    /// A block that is no landing pad and is not copied.
    pub fn new(kind: Kind, successors: Vec<usize>) -> Node {
        Node {
            kind,
            successors,
            pad: false,
            copyable: false,
        }
    }
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes to its one successor.
    Jump,
    /// Goes to one of two successors by a condition.
    Branch,
    /// Goes to one of several successors by a value.
    Switch,
    /// Calls, and goes to successor 0, or to successor 1 when the call throws.
    Invoke,
    /// Returns.
    Return,
    /// Never gets here: the end of an arm.
    Unreachable,
    /// Continues to unwind: the end of an arm.
    Resume,
    /// Returns by a must-tail call: the end of an arm.
    MustTailReturn,
}

impl Kind {
    /// Whether it ends an arm: no successors, and control does not reach the end of the body.
    pub fn ends(self) -> bool {
        matches!(
            self,
            Kind::Unreachable | Kind::Resume | Kind::MustTailReturn
        )
    }
    fn arity_fits(self, successors: usize) -> bool {
        match self {
            Kind::Jump => successors == 1,
            Kind::Branch | Kind::Invoke => successors == 2,
            Kind::Switch => successors >= 1,
            Kind::Return | Kind::Unreachable | Kind::Resume | Kind::MustTailReturn => {
                successors == 0
            }
        }
    }
}

/// Why a graph is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfgError {
    /// The entry is not a block.
    NoEntry,
    /// A block goes to a block that does not exist.
    NoSuchSuccessor {
        /// The block.
        block: usize,
    },
    /// A block's number of successors does not fit its kind.
    Arity {
        /// The block.
        block: usize,
    },
    /// A landing pad is not the unwind successor of exactly one invoke.
    SharedPad {
        /// The landing pad.
        block: usize,
    },
}

/// The tree of structured regions of a graph: same blocks in the same order on every run.
///
/// # Errors
/// What breaks the promises of [`Node`]'s fields.
pub fn restructure(cfg: &Cfg) -> Result<Tree, CfgError> {
    let mut graph = graph::Graph::new(cfg)?;
    let mut emitter = emit::Emitter::new();
    let mut regions = vec![graph.root_region()];
    while let Some(mut region) = regions.pop() {
        let inner = cycles::contract(&mut graph, &mut region, &mut emitter);
        let dag = dag::Dag::new(&mut graph, &region);
        let levels = levels::Levels::new(&mut graph, &dag);
        emitter.region(&graph, &region, &dag, &levels);
        regions.extend(inner);
    }
    Ok(emitter.finish(&graph))
}
