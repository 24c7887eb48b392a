//! Min-cut of a flow network, by arcs ([`FlowNetwork`]) or by vertices ([`VertexNetwork`]).
//!
//! The tape plan of AD selects saved values, and barrier fission selects values to store per thread. Maximum
//! flow by Dinic's algorithm (Dinitz 1970): level graph by breadth-first search, blocking flow by depth-first
//! search with current-arc pointers, both on explicit stacks. Capacities are saturating integers;
//! [`INFINITE_CAPACITY`] marks arcs that no cut may contain. The minimum cuts nearest to the source and to the
//! sink are unique, hence independent of the order of arcs.

/// Capacity of an arc that must not be cut.
pub const INFINITE_CAPACITY: u64 = u64::MAX / 4;

#[derive(Clone, Debug)]
struct Arc {
    to: u32,
    left: u64,
}

/// A flow network with a source and a sink.
#[derive(Clone, Debug)]
pub struct FlowNetwork {
    arcs: Vec<Arc>,
    out: Vec<Vec<u32>>,
}

/// The source of every network.
pub const FLOW_SOURCE: usize = 0;
/// The sink of every network.
pub const FLOW_SINK: usize = 1;

impl Default for FlowNetwork {
    fn default() -> Self {
        FlowNetwork {
            arcs: Vec::new(),
            out: vec![Vec::new(), Vec::new()],
        }
    }
}

impl FlowNetwork {
    /// Adds a node.
    pub fn add_node(&mut self) -> usize {
        self.out.push(Vec::new());
        self.out.len() - 1
    }
    /// Adds an arc of the given capacity.
    pub fn add_arc(&mut self, from: usize, to: usize, capacity: u64) {
        self.out[from].push(self.arcs.len() as u32);
        self.arcs.push(Arc {
            to: to as u32,
            left: capacity.min(INFINITE_CAPACITY),
        });
        self.out[to].push(self.arcs.len() as u32);
        self.arcs.push(Arc {
            to: from as u32,
            left: 0,
        });
    }

    /// Computes the maximum flow. Returns, per node, true if the node lies on the source side of the minimum
    /// cut nearest to the source.
    pub fn source_side(mut self) -> Vec<bool> {
        self.maximize_flow();
        let mut reached = vec![false; self.out.len()];
        reached[FLOW_SOURCE] = true;
        let mut stack = vec![FLOW_SOURCE];
        while let Some(node) = stack.pop() {
            for &arc in &self.out[node] {
                let Arc { to, left } = self.arcs[arc as usize];
                if left > 0 && !reached[to as usize] {
                    reached[to as usize] = true;
                    stack.push(to as usize);
                }
            }
        }
        reached
    }

    /// Computes the maximum flow. Returns, per node, true if the node lies on the sink side of the minimum cut
    /// nearest to the sink.
    pub fn sink_side(mut self) -> Vec<bool> {
        self.maximize_flow();
        let mut reaches = vec![false; self.out.len()];
        reaches[FLOW_SINK] = true;
        let mut stack = vec![FLOW_SINK];
        while let Some(node) = stack.pop() {
            for &arc in &self.out[node] {
                let before = self.arcs[arc as usize].to as usize;
                if self.arcs[arc as usize ^ 1].left > 0 && !reaches[before] {
                    reaches[before] = true;
                    stack.push(before);
                }
            }
        }
        reaches
    }

    fn maximize_flow(&mut self) {
        while let Some(level) = self.levels() {
            let mut next_arc = vec![0usize; self.out.len()];
            while self.augment(&level, &mut next_arc) {}
        }
    }

    /// Returns distances from the source over arcs with residual capacity; `None` once the sink is
    /// unreachable.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut level = vec![u32::MAX; self.out.len()];
        level[FLOW_SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([FLOW_SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.out[node] {
                let Arc { to, left } = self.arcs[arc as usize];
                if left > 0 && level[to as usize] == u32::MAX {
                    level[to as usize] = level[node] + 1;
                    queue.push_back(to as usize);
                }
            }
        }
        (level[FLOW_SINK] != u32::MAX).then_some(level)
    }

    /// Augments the flow along one path of the level graph; false if no path remains.
    fn augment(&mut self, level: &[u32], next_arc: &mut [usize]) -> bool {
        let mut path: Vec<u32> = Vec::new();
        let mut node = FLOW_SOURCE;
        while node != FLOW_SINK {
            let step = self.out[node][next_arc[node]..].iter().position(|&arc| {
                let Arc { to, left } = self.arcs[arc as usize];
                left > 0 && level[to as usize] == level[node].saturating_add(1)
            });
            match step {
                Some(skip) => {
                    next_arc[node] += skip;
                    let arc = self.out[node][next_arc[node]];
                    path.push(arc);
                    node = self.arcs[arc as usize].to as usize;
                }
                None => {
                    next_arc[node] = self.out[node].len();
                    let Some(arc) = path.pop() else {
                        // Not an error: no path is left.
                        return false;
                    };
                    node = self.arcs[arc as usize ^ 1].to as usize;
                    next_arc[node] += 1;
                }
            }
        }
        let room = path
            .iter()
            .map(|a| self.arcs[*a as usize].left)
            .min()
            .unwrap_or(0);
        for arc in path {
            self.arcs[arc as usize].left -= room;
            let back = &mut self.arcs[arc as usize ^ 1].left;
            *back = back.saturating_add(room);
        }
        true
    }
}

/// A network of vertices with costs, of which a cut removes vertices. Every vertex is an arc from an entry to an
/// exit with the vertex's cost as capacity.
#[derive(Debug)]
pub struct VertexNetwork {
    flow: FlowNetwork,
    /// Entry and exit by vertex.
    ends: Vec<[usize; 2]>,
}

impl VertexNetwork {
    /// Creates a network of vertices with the given costs and no edges.
    pub fn new(costs: &[u64]) -> Self {
        let mut flow = FlowNetwork::default();
        let ends = costs.iter().map(|&cost| {
            let ends = [flow.add_node(), flow.add_node()];
            flow.add_arc(ends[0], ends[1], cost);
            ends
        });
        let ends = ends.collect();
        VertexNetwork { flow, ends }
    }
    /// Connects the source to a vertex.
    pub fn connect_source(&mut self, vertex: usize) {
        self.connect_source_at_cost(vertex, INFINITE_CAPACITY);
    }
    /// Connects the source to a vertex by an edge that can be cut at `cost`.
    pub fn connect_source_at_cost(&mut self, vertex: usize, cost: u64) {
        self.flow.add_arc(FLOW_SOURCE, self.ends[vertex][0], cost);
    }
    /// Connects a vertex to the sink.
    pub fn connect_sink(&mut self, vertex: usize) {
        let exit = self.ends[vertex][1];
        self.flow.add_arc(exit, FLOW_SINK, INFINITE_CAPACITY);
    }
    /// Connects two vertices.
    pub fn connect(&mut self, from: usize, to: usize) {
        let (exit, entry) = (self.ends[from][1], self.ends[to][0]);
        self.flow.add_arc(exit, entry, INFINITE_CAPACITY);
    }
    /// Returns the min-cut nearest to the sink: by vertex, whether the vertex is cut.
    pub fn min_cut(self) -> Vec<bool> {
        let reaches = self.flow.sink_side();
        let is_cut = |[entry, exit]: &[usize; 2]| reaches[*exit] && !reaches[*entry];
        self.ends.iter().map(is_cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the capacities of the cuts nearest to the source and to the sink, over the given arcs.
    fn cut_values(arcs: &[(usize, usize, u64)], nodes: usize) -> [u64; 2] {
        let mut network = FlowNetwork::default();
        for _ in 2..nodes {
            network.add_node();
        }
        for &(from, to, capacity) in arcs {
            network.add_arc(from, to, capacity);
        }
        let other = network.clone().sink_side();
        let side = network.source_side();
        let total = |is_cut: &dyn Fn(usize, usize) -> bool| {
            let cut = arcs.iter().filter(|(f, t, _)| is_cut(*f, *t));
            cut.map(|(_, _, c)| c).sum()
        };
        [
            total(&|f, t| side[f] && !side[t]),
            total(&|f, t| !other[f] && other[t]),
        ]
    }

    /// Returns the least capacity over all cuts, by enumeration of all subsets.
    fn least_cut(arcs: &[(usize, usize, u64)], nodes: usize) -> u64 {
        (0..1usize << nodes)
            .filter(|s| s & 1 == 1 && s & 2 == 0)
            .map(|s| {
                arcs.iter()
                    .filter(|(f, t, _)| s >> f & 1 == 1 && s >> t & 1 == 0)
                    .map(|(_, _, c)| *c)
                    .sum()
            })
            .min()
            .unwrap_or(0)
    }

    #[test]
    fn equals_the_least_of_all_cuts_on_random_networks() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let nodes = 3 + random(7) as usize;
            let arcs: Vec<_> = (0..3 * nodes)
                .map(|_| {
                    (
                        random(nodes as u64) as usize,
                        random(nodes as u64) as usize,
                        random(20),
                    )
                })
                .collect();
            let least = least_cut(&arcs, nodes);
            assert_eq!(cut_values(&arcs, nodes), [least; 2], "{arcs:?}");
        }
    }

    #[test]
    fn cut_nearest_to_sink() {
        // 0 → 1 → 2, 3; 2 and 3 are used.
        let mut network = VertexNetwork::new(&[8, 8, 8, 8]);
        network.connect_source(0);
        network.connect(0, 1);
        network.connect(1, 2);
        network.connect(1, 3);
        network.connect_sink(2);
        network.connect_sink(3);
        assert_eq!(network.min_cut(), [false, true, false, false]);
    }

    #[test]
    fn cut_at_common_value() {
        let mut network = VertexNetwork::new(&[4, 4, 4, 1]);
        network.connect_source(0);
        network.connect_source(1);
        network.connect(0, 2);
        network.connect(1, 2);
        network.connect(2, 3);
        network.connect_sink(2);
        network.connect_sink(3);
        assert_eq!(network.min_cut(), [false, false, true, false]);
    }

    #[test]
    fn cut_at_source_edge() {
        let mut network = VertexNetwork::new(&[8, 8, 8]);
        network.connect_source_at_cost(0, 4);
        network.connect_source_at_cost(1, 4);
        network.connect(0, 2);
        network.connect(1, 2);
        network.connect_sink(2);
        assert_eq!(network.min_cut(), [false, false, true]);
        let mut network = VertexNetwork::new(&[8, 8, 8]);
        network.connect_source_at_cost(0, 4);
        network.connect(0, 2);
        network.connect_sink(2);
        assert_eq!(network.min_cut(), [false, false, false]);
    }

    #[test]
    fn no_cut_without_source() {
        let mut network = VertexNetwork::new(&[4, 4]);
        network.connect(0, 1);
        network.connect_sink(1);
        assert_eq!(network.min_cut(), [false, false]);
    }
}
