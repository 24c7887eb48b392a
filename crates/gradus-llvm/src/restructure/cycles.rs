//! Contracts cycles to loop nodes: step 2 of restructuring.
//!
//! Works on one region at a time, from the outside in. The strongly connected components of the region
//! (Tarjan 1972) are contracted to loop nodes; the nodes of a component become a region whose end is the
//! bottom of the loop. All edges to an entry of the component (*back edges*) and all edges out of it
//! (*exits*) are redirected to that bottom. The inner region thus loses the cycle: an entry is never again
//! in a cycle. The result is Steensgaard's loop nesting forest.
//!
//! A component reachable only from the loop is pulled into the loop in two cases. Either it cannot reach
//! the region's end (a no-return call, an endless loop), or it is a landing pad, which must stay with its
//! invoke.
//!
//! Afterwards no member of the region is in a cycle.

use super::emit::Emitter;
use super::graph::{Edge, Graph, NodeRole, OUTSIDE, Reader, Region, Setting};
use super::tree::{RepeatCondition, SelectorId, SelectorKind};
use std::collections::HashMap;

const NONE: usize = usize::MAX;

/// The strongly connected components of a region. Nodes are identified by their numbers in the region.
struct Components {
    /// The component of each node.
    component_of: Vec<usize>,
    /// The nodes of each component, by graph number; a component precedes its predecessors.
    nodes: Vec<Vec<usize>>,
    /// True for a component with a cycle.
    cyclic: Vec<bool>,
    /// True for a component that reaches the region's end.
    alive: Vec<bool>,
    /// The number of edges from other components.
    edges_in: Vec<usize>,
    /// True for a node with an incoming edge from another component.
    is_entry: Vec<bool>,
}

/// A loop under construction.
struct Cycle {
    number: usize,
    nodes: Vec<usize>,
    entries: Vec<usize>,
    /// The selector of its entries, if there are several.
    selector: Option<SelectorId>,
    bottom: usize,
}

/// Contracts the cycles of a region and returns the regions of the loop bodies.
pub(super) fn contract(
    graph: &mut Graph,
    region: &mut Region,
    emitter: &mut Emitter,
) -> Vec<Region> {
    graph.number(&region.members, region.end);
    let components = components(graph, region);
    if !components.cyclic.contains(&true) {
        return Vec::new();
    }
    let mut owner = vec![NONE; region.members.len()];
    let mut pulled = vec![false; components.nodes.len()];
    let mut seen = vec![0; components.nodes.len()];
    let mut cycles: Vec<Cycle> = Vec::new();
    for component in (0..components.nodes.len()).rev() {
        if !components.cyclic[component] || pulled[component] {
            continue;
        }
        let set = pull_in_components(graph, &components, component, &mut pulled, &mut seen);
        let number = emitter.new_loop();
        let nodes: Vec<usize> = set
            .into_iter()
            .flat_map(|c| components.nodes[c].iter().copied())
            .collect();
        for &node in &nodes {
            owner[graph.local(node)] = number;
        }
        let entries: Vec<usize> = components.nodes[component]
            .iter()
            .copied()
            .filter(|node| components.is_entry[graph.local(*node)])
            .collect();
        let selector = (entries.len() > 1)
            .then(|| emitter.new_selector(SelectorKind::Entry, entries.len() as u32));
        let bottom = graph.add(NodeRole::End);
        cycles.push(Cycle {
            number,
            nodes,
            entries,
            selector,
            bottom,
        });
    }
    region
        .members
        .retain(|node| owner[graph.local(*node)] == NONE);
    let mut bodies = Vec::new();
    for cycle in &cycles {
        let node = graph.add(NodeRole::Loop(cycle.number));
        region.members.push(node);
        bodies.push(close_loop(graph, cycle, node, &owner, emitter));
    }
    let first = graph.nodes.len() - cycles.len();
    redirect_entries(graph, region, &cycles, first);
    // Tops of loops with several entries are added last, so that loop nodes are numbered consecutively.
    for (cycle, body) in cycles.iter().zip(&mut bodies) {
        if let Some(selector) = cycle.selector {
            let top = graph.add(NodeRole::Entries(selector));
            graph.nodes[top].edges = cycle.entries.iter().map(|to| Edge::to(*to)).collect();
            body.members.push(top);
            body.entry = top;
        }
    }
    bodies
}

/// Returns the component and the components pulled into its loop.
fn pull_in_components(
    graph: &Graph,
    components: &Components,
    component: usize,
    pulled: &mut [bool],
    seen: &mut [usize],
) -> Vec<usize> {
    let mut set = vec![component];
    let mut touched = Vec::new();
    pulled[component] = true;
    let mut next = 0;
    while let Some(&from) = set.get(next) {
        next += 1;
        for &node in &components.nodes[from] {
            for edge in &graph.nodes[node].edges {
                let to = graph.local(edge.to);
                if to == OUTSIDE || pulled[components.component_of[to]] {
                    continue;
                }
                let to = components.component_of[to];
                touched.push(to);
                seen[to] += 1;
                let first = components.nodes[to][0];
                let leaf = graph.nodes[first].edges.is_empty();
                let stays = graph.is_pad(first)
                    || !components.alive[to] && (components.alive[component] || leaf);
                if seen[to] == components.edges_in[to] && stays {
                    pulled[to] = true;
                    set.push(to);
                }
            }
        }
    }
    for component in touched {
        seen[component] = 0;
    }
    set
}

/// Redirects the back edges and exits of a loop to its bottom, and returns the region of its body.
fn close_loop(
    graph: &mut Graph,
    cycle: &Cycle,
    node: usize,
    owner: &[usize],
    emitter: &mut Emitter,
) -> Region {
    let inside = |graph: &Graph, node| match graph.local(node) {
        OUTSIDE => false,
        local => owner[local] == cycle.number,
    };
    let entry_index: HashMap<usize, u32> =
        (0..).zip(&cycle.entries).map(|(i, e)| (*e, i)).collect();
    // Exits: target, number of edges.
    let mut exits: Vec<(usize, usize)> = Vec::new();
    let mut exit_index: HashMap<usize, usize> = HashMap::new();
    let mut back = Vec::new();
    let mut last_exit = NONE;
    for &from in &cycle.nodes {
        for edge in &graph.nodes[from].edges {
            graph.steps += 1;
            if entry_index.contains_key(&edge.to) {
                back.push(from);
            } else if !inside(graph, edge.to) {
                let index = *exit_index.entry(edge.to).or_insert(exits.len());
                if index == exits.len() {
                    exits.push((edge.to, 0));
                }
                exits[index].1 += 1;
                last_exit = from;
            }
        }
    }
    let one_branch = cycle.selector.is_none()
        && matches!(exits[..], [(_, 1)])
        && back == [last_exit]
        && graph.is_branch(last_exit);
    if one_branch {
        repeat_on_latch_condition(graph, cycle, node, last_exit, emitter);
    } else {
        let selected = select_at_bottom(cycle, exits.len(), emitter);
        let mut out: Vec<Edge> = exits.iter().map(|(to, _)| Edge::to(*to)).collect();
        for &from in &cycle.nodes {
            let mut edges = std::mem::take(&mut graph.nodes[from].edges);
            for edge in &mut edges {
                if let Some(&entry) = entry_index.get(&edge.to) {
                    redirect_backedge(edge, cycle, entry, selected);
                } else if let Some(&exit) = exit_index.get(&edge.to) {
                    redirect_exit(edge, cycle, exits[exit].1, &mut out, exit, selected);
                }
            }
            graph.nodes[from].edges = edges;
        }
        graph.nodes[node].edges = out;
    }
    Region {
        members: cycle.nodes.clone(),
        entry: cycle.entries[0],
        end: cycle.bottom,
        of: Some(cycle.number),
    }
}

/// Builds a loop whose only back edge and only exit belong to one branch.
fn repeat_on_latch_condition(
    graph: &mut Graph,
    cycle: &Cycle,
    node: usize,
    latch: usize,
    emitter: &mut Emitter,
) {
    let edges = std::mem::replace(&mut graph.nodes[latch].edges, vec![Edge::to(cycle.bottom)]);
    for edge in edges {
        match edge.taken {
            Some(taken) if edge.to == cycle.entries[0] => {
                let again = RepeatCondition::Block {
                    block: taken.block,
                    slot: taken.slot,
                };
                emitter.set_again(cycle.number, again, None);
            }
            _ => graph.nodes[node].edges.push(edge),
        }
    }
}

/// Creates the selector at the bottom of a loop; returns its setting for the next iteration, if the loop
/// has an exit.
fn select_at_bottom(cycle: &Cycle, exits: usize, emitter: &mut Emitter) -> Option<Setting> {
    if exits == 0 {
        emitter.set_again(cycle.number, RepeatCondition::Forever, None);
        return None;
    }
    let selector = emitter.new_selector(SelectorKind::Loop, exits as u32 + 1);
    // With one exit the selector is the condition; with several, exit `k` has the value `k + 1`.
    let value = u32::from(exits == 1);
    let again = RepeatCondition::Selector { selector, value };
    emitter.set_again(cycle.number, again, (exits > 1).then_some(selector));
    let reader = if exits > 1 {
        Reader::Behind(cycle.number)
    } else {
        Reader::Inside(cycle.number)
    };
    Some(Setting {
        selector,
        value,
        reader,
        back: None,
    })
}

/// Redirects a back edge to the bottom.
fn redirect_backedge(edge: &mut Edge, cycle: &Cycle, entry: u32, selected: Option<Setting>) {
    if let Some(taken) = &mut edge.taken {
        taken.back = Some(cycle.number);
    }
    if let Some(selector) = cycle.selector {
        edge.settings.push(Setting {
            selector,
            value: entry,
            reader: Reader::Inside(cycle.number),
            back: Some(cycle.number),
        });
    }
    edge.settings.extend(selected);
    edge.to = cycle.bottom;
}

/// Redirects an exit to the bottom. The assignments of an edge move after the loop, if no other edge takes
/// the exit.
fn redirect_exit(
    edge: &mut Edge,
    cycle: &Cycle,
    edges: usize,
    out: &mut [Edge],
    exit: usize,
    selected: Option<Setting>,
) {
    if edges == 1 {
        out[exit].taken = edge.taken.take();
        out[exit].settings = std::mem::take(&mut edge.settings);
    }
    edge.settings.extend(selected.map(|again| Setting {
        value: if again.value == 1 { 0 } else { exit as u32 + 1 },
        ..again
    }));
    edge.to = cycle.bottom;
}

/// Redirects edges to loop entries to the loop nodes, which are numbered from `first`.
fn redirect_entries(graph: &mut Graph, region: &Region, cycles: &[Cycle], first: usize) {
    let mut entry_of = HashMap::new();
    for (i, cycle) in cycles.iter().enumerate() {
        for (value, &entry) in (0..).zip(&cycle.entries) {
            entry_of.insert(entry, (i, value));
        }
    }
    for &from in &region.members {
        for edge in &mut graph.nodes[from].edges {
            let Some(&(cycle, value)) = entry_of.get(&edge.to) else {
                continue;
            };
            if let Some(selector) = cycles[cycle].selector {
                edge.settings.push(Setting {
                    selector,
                    value,
                    reader: Reader::Inside(cycles[cycle].number),
                    back: None,
                });
            }
            edge.to = first + cycle;
        }
    }
}

/// Computes the components by Tarjan's algorithm with an explicit stack.
fn components(graph: &mut Graph, region: &Region) -> Components {
    let count = region.members.len();
    let mut of = vec![NONE; count];
    let mut nodes: Vec<Vec<usize>> = Vec::new();
    let mut number = vec![NONE; count];
    let mut low = vec![0; count];
    let mut open = Vec::new();
    let mut numbered = 0;
    // All members are reachable from the entry. A frame: node, next edge.
    let mut frames = vec![(graph.local(region.entry), 0)];
    while let Some((node, next)) = frames.pop() {
        graph.steps += 1;
        if next == 0 {
            number[node] = numbered;
            low[node] = numbered;
            numbered += 1;
            open.push(node);
        }
        if let Some(edge) = graph.nodes[region.members[node]].edges.get(next) {
            frames.push((node, next + 1));
            let to = graph.local(edge.to);
            if to != OUTSIDE && number[to] == NONE {
                frames.push((to, 0));
            } else if to != OUTSIDE && of[to] == NONE {
                low[node] = low[node].min(number[to]);
            }
            continue;
        }
        if let Some(&(parent, _)) = frames.last() {
            low[parent] = low[parent].min(low[node]);
        }
        if low[node] == number[node] {
            let mut members = Vec::new();
            while let Some(member) = open.pop() {
                of[member] = nodes.len();
                members.push(region.members[member]);
                if member == node {
                    break;
                }
            }
            members.sort_unstable();
            nodes.push(members);
        }
    }
    describe_components(graph, of, nodes)
}

fn describe_components(graph: &Graph, of: Vec<usize>, nodes: Vec<Vec<usize>>) -> Components {
    let count = nodes.len();
    let mut cyclic: Vec<bool> = nodes.iter().map(|nodes| nodes.len() > 1).collect();
    let mut alive = vec![false; count];
    let mut edges_in = vec![0; count];
    let mut is_entry = vec![false; of.len()];
    for from in 0..count {
        for &node in &nodes[from] {
            for edge in &graph.nodes[node].edges {
                let local = graph.local(edge.to);
                if local == OUTSIDE {
                    alive[from] = true;
                } else if of[local] == from {
                    cyclic[from] |= edge.to == node;
                } else {
                    alive[from] |= alive[of[local]];
                    edges_in[of[local]] += 1;
                    is_entry[local] = true;
                }
            }
        }
    }
    Components {
        component_of: of,
        nodes,
        cyclic,
        alive,
        edges_in,
        is_entry,
    }
}
