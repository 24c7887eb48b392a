//! Inclusion-based points-to analysis: the set of locations behind each pointer of a call graph.
//!
//! Andersen's analysis (thesis, DIKU 1994), field-sensitive by object and offset (Pearce, Kelly and Hankin, TOPLAS
//! 2007), with difference propagation. Objects are never merged. Steps:
//!
//! 1. `build/` translates each op into constraints over nodes. A node stands for one leaf of a value.
//! 2. `solver/` propagates locations along the constraints to a fixpoint. Memory cells become nodes on demand.
//! 3. Pointers that move by an unknown multiple of a stride ask for a fold of the object (`fold_growth.rs`). The solver runs
//!    again with the new folds until no fold changes.
//!
//! Unknown code is one object, [`EXTERNAL`], and a flag per object (*escaped*). A pointer from unknown code points to
//! [`EXTERNAL`], which stands for all memory of unknown code and for every escaped object. An escaped object keeps its
//! own cells; unknown code may store [`EXTERNAL`] in them.
//!
//! Memory of unknown content (arguments of a root, global variables that other code sets) yields one fresh object per
//! cell on the first load, see `objects.rs`.

mod build;
mod constraints;
mod contexts;
mod fold_growth;
mod layouts;
mod location_set;
mod nodes;
mod objects;
mod results;
mod solver;
#[cfg(test)]
mod tests;

use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::AliasSets;
use crate::points_to::inclusion::solver::Solver;
use gradus_ir::Unit;

/// A limit that a program exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// The number of nodes, which does not depend on tags.
    Nodes,
    /// The work of the solver.
    Work,
}

/// Computes [`AliasSets::of`]. Returns `None` for a program with more than `nodes_max` nodes, or with too much work.
///
/// A program with too much work is solved again with the aliasing rules of its language: a load reads the stores with
/// compatible TBAA tags alone. A few wrong targets of a generic container then spread less.
pub(crate) fn solve(unit: &Unit, closure: &CallGraph, nodes_max: u32) -> Option<AliasSets> {
    match solve_once(unit, closure, nodes_max, false) {
        Ok(sets) => Some(sets),
        Err(Limit::Work) => solve_by_tags(unit, closure, nodes_max),
        Err(Limit::Nodes) => None,
    }
}

/// Computes [`AliasSets::by_aliasing_rules`]. Returns `None` for a program with more than `nodes_max` nodes, or with too
/// much work.
pub(crate) fn solve_by_tags(unit: &Unit, closure: &CallGraph, nodes_max: u32) -> Option<AliasSets> {
    solve_once(unit, closure, nodes_max, true).ok()
}

fn solve_once(
    unit: &Unit,
    closure: &CallGraph,
    nodes_max: u32,
    uses_tags: bool,
) -> Result<AliasSets, Limit> {
    let builder = build::build(unit, closure, nodes_max).ok_or(Limit::Nodes)?;
    let solver = Solver::solve(builder, uses_tags);
    match solver.is_exhausted() {
        true => Err(Limit::Work),
        false => Ok(results::results(&solver)),
    }
}
