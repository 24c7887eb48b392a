//! Analysis tables of a call graph: call graph, alias sets and cell types.
//!
//! [`View`] passes the tables to the analyses that build on points-to and type analysis: `lifetime/`, `activity/`
//! and `checks/`.

use crate::call_graph::CallGraph;
use crate::points_to::alias_sets::AliasSets;
use crate::type_analysis::type_map::TypeMap;
use gradus_ir::Unit;

/// The analyses of a call graph on which activity analysis builds.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The unit.
    pub unit: &'a Unit,
    /// The call graph.
    pub closure: &'a CallGraph,
    /// The alias sets.
    pub memory: &'a AliasSets,
    /// The types of memory cells and integers.
    pub words: &'a TypeMap,
}
