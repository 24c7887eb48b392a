//! Vertex min-cut: the cheapest set of vertices that separates a source from a sink.
//!
//! Maximum flow by blocking flows on level graphs (Dinic, *Algorithm for solution of a problem of maximum
//! flow in networks with power estimation*, 1970). Every vertex is split into an entry and an exit,
//! connected by an edge with the vertex's cost. The result is the minimum cut nearest to the sink.

const INFINITE: u64 = u64::MAX / 4;

/// A network of vertices with costs.
#[derive(Debug, Default)]
pub(crate) struct Network {
    edges: Vec<Edge>,
    /// Edges by node. Node `2 v + 2` is the entry of vertex `v`, `2 v + 3` its exit.
    edges_of: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct Edge {
    to: usize,
    capacity: u64,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

impl Network {
    /// Creates a network of vertices with the given costs and no edges.
    pub fn new(costs: &[u64]) -> Self {
        let mut network = Network {
            edges: Vec::new(),
            edges_of: vec![Vec::new(); 2 * costs.len() + 2],
        };
        for (vertex, &cost) in costs.iter().enumerate() {
            network.add_edge(entry(vertex), exit(vertex), cost);
        }
        network
    }
    /// Connects the source to a vertex.
    pub fn connect_source(&mut self, vertex: usize) {
        self.connect_source_at_cost(vertex, INFINITE);
    }
    /// Connects the source to a vertex by an edge that can be cut at `cost`.
    pub fn connect_source_at_cost(&mut self, vertex: usize, cost: u64) {
        self.add_edge(SOURCE, entry(vertex), cost);
    }
    /// Connects a vertex to the sink.
    pub fn connect_sink(&mut self, vertex: usize) {
        self.add_edge(exit(vertex), SINK, INFINITE);
    }
    /// Connects two vertices.
    pub fn connect(&mut self, from: usize, to: usize) {
        self.add_edge(exit(from), entry(to), INFINITE);
    }

    fn add_edge(&mut self, from: usize, to: usize, capacity: u64) {
        self.edges_of[from].push(self.edges.len());
        self.edges.push(Edge { to, capacity });
        self.edges_of[to].push(self.edges.len());
        self.edges.push(Edge {
            to: from,
            capacity: 0,
        });
    }

    /// Returns the min-cut: by vertex, whether the vertex is cut.
    pub fn min_cut(mut self) -> Vec<bool> {
        while let Some(levels) = self.levels() {
            let mut next = vec![0; self.edges_of.len()];
            while self.augment(&levels, &mut next) {}
        }
        let reaches = self.reaches_sink();
        (0..(self.edges_of.len() - 2) / 2)
            .map(|v| reaches[exit(v)] && !reaches[entry(v)])
            .collect()
    }

    /// Distances from the source over edges with residual capacity; `None` if the sink is unreachable.
    fn levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.edges_of.len()];
        levels[SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.edges_of[node] {
                let Edge { to, capacity } = self.edges[edge];
                if capacity > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        (levels[SINK] != usize::MAX).then_some(levels)
    }

    /// Augments the flow along a path of the level graph; returns whether a path exists.
    fn augment(&mut self, levels: &[usize], next: &mut [usize]) -> bool {
        let mut path: Vec<usize> = Vec::new();
        loop {
            let node = path.last().map_or(SOURCE, |edge| self.edges[*edge].to);
            if node == SINK {
                break;
            }
            let edges = &self.edges_of[node];
            let onward = (next[node]..edges.len()).find(|i| {
                let edge = &self.edges[edges[*i]];
                edge.capacity > 0 && levels[edge.to] == levels[node] + 1
            });
            match onward {
                Some(i) => {
                    next[node] = i;
                    path.push(edges[i]);
                }
                None => {
                    next[node] = edges.len();
                    let Some(back) = path.pop() else {
                        return false;
                    };
                    next[self.edges[back ^ 1].to] += 1;
                }
            }
        }
        let flow = path.iter().map(|edge| self.edges[*edge].capacity).min();
        for edge in path {
            self.edges[edge].capacity -= flow.unwrap_or(0);
            self.edges[edge ^ 1].capacity += flow.unwrap_or(0);
        }
        true
    }

    /// The nodes from which the sink is reachable in the residual graph.
    fn reaches_sink(&self) -> Vec<bool> {
        let mut reaches = vec![false; self.edges_of.len()];
        reaches[SINK] = true;
        let mut open = vec![SINK];
        while let Some(node) = open.pop() {
            for &edge in &self.edges_of[node] {
                let before = self.edges[edge].to;
                if self.edges[edge ^ 1].capacity > 0 && !reaches[before] {
                    reaches[before] = true;
                    open.push(before);
                }
            }
        }
        reaches
    }
}

fn entry(vertex: usize) -> usize {
    2 * vertex + 2
}

fn exit(vertex: usize) -> usize {
    2 * vertex + 3
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn cut_nearest_to_sink() {
        // 0 → 1 → 2, 3; 2 and 3 are used.
        let mut network = Network::new(&[8, 8, 8, 8]);
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
        let mut network = Network::new(&[4, 4, 4, 1]);
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
        let mut network = Network::new(&[8, 8, 8]);
        network.connect_source_at_cost(0, 4);
        network.connect_source_at_cost(1, 4);
        network.connect(0, 2);
        network.connect(1, 2);
        network.connect_sink(2);
        assert_eq!(network.min_cut(), [false, false, true]);
        let mut network = Network::new(&[8, 8, 8]);
        network.connect_source_at_cost(0, 4);
        network.connect(0, 2);
        network.connect_sink(2);
        assert_eq!(network.min_cut(), [false, false, false]);
    }

    #[test]
    fn no_cut_without_source() {
        let mut network = Network::new(&[4, 4]);
        network.connect(0, 1);
        network.connect_sink(1);
        assert_eq!(network.min_cut(), [false, false]);
    }
}
