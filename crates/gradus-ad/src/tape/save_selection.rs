//! Selection of the saved forward values: a min-cut between saving and recomputing.
//!
//! Project selection (Picard 1976). Each forward value has two nodes, "available" and "recomputed". The arc between
//! them has the cost of saving as its capacity, the arc to the sink the cost of the op. The inputs of a recomputed
//! value must be available. The cut arcs are the saved values. [`crate::tape::plan`] assigns save locations.

use crate::analysis::body_facts::BodyFacts;
use crate::analysis::forward_value::{Availability, Node, defining_region};
use crate::tape::plan::PlanOptions;
use crate::tape::remat::{cost_of_op, source};
use gradus_analysis::{FLOW_SINK, FLOW_SOURCE, FlowNetwork, INFINITE_CAPACITY};
use gradus_ir::{Op, Unit};
use std::collections::{HashMap, HashSet};

/// The forward values that the reverse pass requires, with the inputs of their possible recomputations.
pub(super) struct SaveGraph {
    nodes: Vec<(Node, Availability)>,
    /// Position in `nodes` per forward value.
    pub(super) index: HashMap<Node, usize>,
    /// Forward values that the reverse pass reads as SSA values.
    pub(super) ssa_values: Vec<Node>,
}

impl SaveGraph {
    /// Returns the graph of a reverse pass that requires `needed`.
    pub(super) fn of(
        unit: &Unit,
        facts: &BodyFacts<'_>,
        needed: &[Node],
        options: PlanOptions,
    ) -> SaveGraph {
        let mut graph = SaveGraph {
            nodes: Vec::new(),
            index: HashMap::new(),
            ssa_values: Vec::new(),
        };
        let mut work: Vec<Node> = needed.iter().rev().copied().collect();
        while let Some(node) = work.pop() {
            if graph.index.contains_key(&node) {
                continue;
            }
            let from = source(unit, facts, node);
            if from == Availability::Available {
                continue;
            }
            graph.index.insert(node, graph.nodes.len());
            let direct =
                defining_region(facts, node).is_some_and(|r| options.is_ssa_region(facts, r));
            let made_here =
                matches!(node, Node::Snapshot(_)) || PlanOptions::cannot_be_saved(facts, &node);
            if direct && !made_here {
                graph.ssa_values.push(node);
                graph.nodes.push((node, Availability::Available));
                continue;
            }
            if let Availability::Recompute { from, .. } = &from {
                work.extend(from.iter().rev());
            }
            graph.nodes.push((node, from));
        }
        graph
    }

    /// Returns the forward values to save, in the order of discovery.
    pub(super) fn cut(
        &self,
        unit: &Unit,
        facts: &BodyFacts<'_>,
        needed: &[Node],
        options: PlanOptions,
    ) -> Vec<Node> {
        let asked: HashSet<&Node> = needed.iter().collect();
        let mut network = FlowNetwork::default();
        let pairs: Vec<(usize, usize)> = self
            .nodes
            .iter()
            .map(|_| (network.add_node(), network.add_node()))
            .collect();
        for (at, (node, from)) in self.nodes.iter().enumerate() {
            let (available, recomputed) = pairs[at];
            let redo = match from {
                Availability::Available => continue,
                Availability::MustSave => INFINITE_CAPACITY,
                Availability::Recompute { .. }
                    if options.must_be_saved(node)
                        && asked.contains(node)
                        && !PlanOptions::cannot_be_saved(facts, node) =>
                {
                    INFINITE_CAPACITY
                }
                Availability::Recompute { cost, .. } => {
                    weigh(*cost as f64 * facts.save_count(unit, *node))
                }
            };
            let keep = match from {
                _ if PlanOptions::cannot_be_saved(facts, node) => INFINITE_CAPACITY,
                Availability::Recompute { .. }
                    if options.recompute
                        && !options.conditions
                        && is_condition(unit, facts, *node) =>
                {
                    INFINITE_CAPACITY
                }
                _ => saving_capacity(unit, facts, *node, options),
            };
            network.add_arc(available, recomputed, keep);
            network.add_arc(recomputed, FLOW_SINK, redo);
            if let Availability::Recompute { from, .. } = from {
                for dependency in from {
                    if let Some(&on) = self.index.get(dependency) {
                        network.add_arc(recomputed, pairs[on].0, INFINITE_CAPACITY);
                    }
                }
            }
        }
        for node in needed {
            if let Some(&at) = self.index.get(node) {
                network.add_arc(FLOW_SOURCE, pairs[at].0, INFINITE_CAPACITY);
            }
        }
        let side = network.source_side();
        let kept = |at: usize| {
            self.nodes[at].1 != Availability::Available && side[pairs[at].0] && !side[pairs[at].1]
        };
        (0..self.nodes.len())
            .filter(|&at| kept(at))
            .map(|at| self.nodes[at].0)
            .collect()
    }
}

/// Returns the cost of saving a forward value, in units of one addition.
pub fn saving_cost(unit: &Unit, facts: &BodyFacts<'_>, node: Node, width: u32) -> f64 {
    if let Node::Snapshot(number) = node {
        return SNAPSHOT_COST * facts.snapshot_float_count(unit, number);
    }
    cost_per_save(unit, facts, node, width) * facts.save_count(unit, node)
}

/// Returns the cost of executing all iterations of a loop, in units of one addition.
pub fn execution_cost(unit: &Unit, facts: &BodyFacts<'_>, lp: Op) -> f64 {
    let body = facts.body;
    let inside = body.walk(body.op_regions(lp)[0]);
    inside
        .map(|op| cost_of_op(unit, facts, op) as f64 * facts.executions(unit, body.parent(op)))
        .sum()
}

fn is_condition(unit: &Unit, facts: &BodyFacts<'_>, node: Node) -> bool {
    match node {
        Node::Primal(value) => unit.types.int_bits(facts.body.ty(value)) == Some(1),
        _ => false,
    }
}

fn weigh(cost: f64) -> u64 {
    (cost.min(1e15) as u64).min(INFINITE_CAPACITY / 1024)
}

/// Cost per float of a snapshot, which is copied in bulk.
const SNAPSHOT_COST: f64 = 9.0;

/// Returns the capacity of a forward value's saving arc.
fn saving_capacity(unit: &Unit, facts: &BodyFacts<'_>, node: Node, options: PlanOptions) -> u64 {
    if let Node::Snapshot(number) = node {
        return weigh(SNAPSHOT_COST * facts.snapshot_float_count(unit, number)).max(1);
    }
    let times = match options.variance_cost {
        true => facts.save_count(unit, node),
        false => facts.executions(unit, defining_region(facts, node)),
    };
    weigh(cost_per_save(unit, facts, node, options.width) * times).max(1)
}

/// Returns the cost of saving one value: memory traffic of write and read.
fn cost_per_save(unit: &Unit, facts: &BodyFacts<'_>, node: Node, width: u32) -> f64 {
    2.5 * facts.saved_bytes(unit, node, width) as f64 + 2.0
}
