//! Control-flow structuring: from a control-flow graph to a tree of structured regions.
//!
//! A pure graph algorithm: the input is block numbers, without instructions and independent of LLVM. The
//! steps of use are [`restructure`] (graph → [`Tree`]), then [`scope`](scope::scope) (reads and definitions
//! → the results of every region), then one walk over the tree that builds the body.
//!
//! # The tree
//!
//! A [`Tree`] is an arena of [`TreeNode`]s in [sequences](SeqId). A sequence becomes a region:
//!
//! | node | action of the importer |
//! |---|---|
//! | `Block` | emits the block's instructions without phis and without its terminator; a block that ends the function (`unreachable`, `resume`, must-tail `return`) also emits the terminator |
//! | `Edge` | performs the phi assignments of the edge (all sources read first), or, for a returning block, binds the returned value |
//! | `Assign` | binds a selector variable to a constant |
//! | `Branch` | evaluates the block's own condition (`if`, `switch`, `invoke`); arm `arm_of[k]` for successor `k` |
//! | `Select` | `if`/`switch` on a selector: arm `i` for the value `values[i]`, the last arm otherwise |
//! | `Loop` | `loop`; leaves at its bottom only, see [`RepeatCondition`] |
//! | `Never` | `unreachable`: after a loop that never ends |
//!
//! A sequence that [never completes](Tree::never_completes) yields nothing. If all arms but one end, the code after the branch
//! follows in the same sequence, not in the arm: a chain of checks that abort stays flat. A chain of
//! `if (c) goto fail` nests as deep as it is long, so a walk over the tree needs an explicit stack.
//! Sequences and nodes are numbered outside in: an outer number is smaller than all inner numbers.
//!
//! # Values
//!
//! The importer keeps an environment `variable → SSA value`; a variable is a value of the source function
//! (by number) or a selector ([`scope::Var`]). A definition and an `Edge` bind; a use reads. An arm starts
//! with the environment before its node. After the node exactly its [results](scope::Scope::results) are
//! rebound, to their values at the end of each arm that does not end (poison if unbound). A loop's body
//! starts with the environment before the loop and with the [carried](scope::Scope::carried) variables
//! rebound to the region's parameters. After the loop its results are rebound. For [`RepeatCondition::Block`] the
//! results are read at the bottom *before* the assignments of the back edge, the next carried values after
//! them; the exit edge is an ordinary `Edge` after the loop. An invoke's result is bound at the start of
//! arm `arm_of[0]`. These rules are complete: no block arguments, phis or dominance questions remain. The
//! tests of the module interpret trees by these rules.
//!
//! # The algorithm
//!
//! Bahmann, Reissmann, Jahre, Meyer: *Perfect reconstructability of control flow from demand dependence
//! graphs* (TACO 2015), as in MLIR's `CFGToSCF`, with these steps:
//!
//! 1. `graph`: drop unreachable blocks, add one `End` after all returns, duplicate small blocks that end
//!    the program, if the caller permits it.
//! 2. `cycles`, from the outside in: each strongly connected component becomes a loop node. Blocks that
//!    cannot reach the end, and landing pads, are pulled in if only the loop reaches them. Several entries:
//!    a selector at the top (`Entry`). One back edge and one exit of the same two-way branch: its own
//!    condition repeats the loop. Otherwise a selector (`Loop`) at the bottom encodes both the next
//!    iteration and the exit taken.
//! 3. `dominators`: dominators of the acyclic rest, by lowest common ancestors in one topological pass.
//! 4. `dominance_levels`: after a branch, the blocks with exactly one incoming edge are its arms; all other
//!    immediately dominated blocks are *continuations*, layered by reachability. If all control flow
//!    reaches one continuation, it follows without a selector. Otherwise edges set a selector (`Continue`),
//!    and each layer is one `Select` with an arm per continuation and an arm to pass on.
//! 5. `emit`: the tree, in one pass with a stack.
//! 6. `scope`: results and carried variables, by climbing from each assignment to its reader.
//!
//! Departures. The papers demultiplex all continuations at once and again inside each other. The cost is
//! quadratic for a switch with fall-through, and merged paths destroy the dominance of values. Layers over
//! the true dominator tree are linear and keep dominance: only phis, selectors and values that leave a loop
//! ever become results. Selectors that one edge sets together are one variable. A loop exit taken by a
//! single edge performs its phi assignments after the loop, so that their sources are not copied inside.
//!
//! Time: O((n + m) · (log n + depth of loops)); no recursion anywhere.
#![forbid(unsafe_code)]

mod cycles;
mod dominance_levels;
mod dominators;
mod emit;
mod graph;
pub mod scope;
#[cfg(test)]
mod tests;
mod tree;

pub use tree::{
    NodeId, RepeatCondition, Selector, SelectorId, SelectorKind, SeqId, Tree, TreeNode,
};

/// A control-flow graph.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    /// The blocks.
    pub nodes: Vec<Node>,
    /// The entry block.
    pub entry: usize,
}

/// A block of a [`Cfg`].
#[derive(Clone, Debug)]
pub struct Node {
    /// The kind of its terminator.
    pub kind: Kind,
    /// The successors, in the terminator's order (for an invoke: normal, unwind). A block may occur several
    /// times; such edges assign equal values and are treated as one edge with the first index.
    pub successors: Vec<usize>,
    /// True if the block begins with a landing pad and must be at the start of its invoke's arm. A pad must
    /// be the successor of exactly one invoke, once.
    pub pad: bool,
    /// True if the block may be copied, once per incoming edge. Used only if the block ends the function
    /// without returning (`Unreachable`, `Resume`). Copies of shared `abort` blocks save nesting and
    /// selectors; the block's number then occurs several times in the tree.
    pub copyable: bool,
}

impl Node {
    /// Creates a block that is no landing pad and not copyable.
    pub fn new(kind: Kind, successors: Vec<usize>) -> Node {
        Node {
            kind,
            successors,
            pad: false,
            copyable: false,
        }
    }
}

/// The kind of a block's terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Jumps to its only successor.
    Jump,
    /// Branches to one of two successors by a condition.
    Branch,
    /// Branches to one of several successors by a value.
    Switch,
    /// Calls, and continues at successor 0, or at successor 1 if the call throws.
    Invoke,
    /// Returns.
    Return,
    /// Is never reached: the end of an arm.
    Unreachable,
    /// Continues to unwind: the end of an arm.
    Resume,
    /// Returns by a must-tail call: the end of an arm.
    MustTailReturn,
}

impl Kind {
    /// Returns whether the block ends an arm: no successors, and control does not reach the end of the
    /// body.
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

/// An invalid graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfgError {
    /// The entry is not a block.
    NoEntry,
    /// A successor does not exist.
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

/// Returns the tree of structured regions of a graph, deterministically.
///
/// # Errors
/// A violated requirement of [`Node`]'s fields.
pub fn restructure(cfg: &Cfg) -> Result<Tree, CfgError> {
    let mut graph = graph::Graph::new(cfg)?;
    let mut emitter = emit::Emitter::new();
    let mut regions = vec![graph.root_region()];
    while let Some(mut region) = regions.pop() {
        let inner = cycles::contract(&mut graph, &mut region, &mut emitter);
        let dag = dominators::Dag::new(&mut graph, &region);
        let levels = dominance_levels::Levels::new(&mut graph, &dag);
        emitter.region(&graph, &region, &dag, &levels);
        regions.extend(inner);
    }
    Ok(emitter.finish(&graph))
}
