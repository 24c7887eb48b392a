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
    from: Vec<Vec<usize>>,
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
            from: vec![Vec::new(); 2 * costs.len() + 2],
        };
        for (vertex, &cost) in costs.iter().enumerate() {
            network.edge(entry(vertex), exit(vertex), cost);
        }
        network
    }
    /// Connects the source to a vertex.
    pub fn begins(&mut self, vertex: usize) {
        self.begins_at(vertex, INFINITE);
    }
    /// Connects the source to a vertex by an edge that can be cut at `cost`.
    pub fn begins_at(&mut self, vertex: usize, cost: u64) {
        self.edge(SOURCE, entry(vertex), cost);
    }
    /// Connects a vertex to the sink.
    pub fn ends(&mut self, vertex: usize) {
        self.edge(exit(vertex), SINK, INFINITE);
    }
    /// Connects two vertices.
    pub fn connect(&mut self, from: usize, to: usize) {
        self.edge(exit(from), entry(to), INFINITE);
    }

    fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        self.from[from].push(self.edges.len());
        self.edges.push(Edge { to, capacity });
        self.from[to].push(self.edges.len());
        self.edges.push(Edge {
            to: from,
            capacity: 0,
        });
    }

    /// Returns the min-cut: by vertex, whether the vertex is cut.
    pub fn cut(mut self) -> Vec<bool> {
        while let Some(levels) = self.levels() {
            let mut next = vec![0; self.from.len()];
            while self.augment(&levels, &mut next) {}
        }
        let reaches = self.reaches_sink();
        (0..(self.from.len() - 2) / 2)
            .map(|v| reaches[exit(v)] && !reaches[entry(v)])
            .collect()
    }

    /// Distances from the source over edges with residual capacity; `None` if the sink is unreachable.
    fn levels(&self) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.from.len()];
        levels[SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.from[node] {
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
            let edges = &self.from[node];
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
        let mut reaches = vec![false; self.from.len()];
        reaches[SINK] = true;
        let mut open = vec![SINK];
        while let Some(node) = open.pop() {
            for &edge in &self.from[node] {
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
    fn the_cheapest_set_nearest_to_the_sink() {
        // 0 → 1 → 2, 3; 2 and 3 are used.
        let mut network = Network::new(&[8, 8, 8, 8]);
        network.begins(0);
        network.connect(0, 1);
        network.connect(1, 2);
        network.connect(1, 3);
        network.ends(2);
        network.ends(3);
        assert_eq!(network.cut(), [false, true, false, false]);
    }

    #[test]
    fn two_sources_meet_in_one_value() {
        let mut network = Network::new(&[4, 4, 4, 1]);
        network.begins(0);
        network.begins(1);
        network.connect(0, 2);
        network.connect(1, 2);
        network.connect(2, 3);
        network.ends(2);
        network.ends(3);
        assert_eq!(network.cut(), [false, false, true, false]);
    }

    #[test]
    fn a_source_may_be_had_again() {
        let mut network = Network::new(&[8, 8, 8]);
        network.begins_at(0, 4);
        network.begins_at(1, 4);
        network.connect(0, 2);
        network.connect(1, 2);
        network.ends(2);
        assert_eq!(network.cut(), [false, false, true]);
        let mut network = Network::new(&[8, 8, 8]);
        network.begins_at(0, 4);
        network.connect(0, 2);
        network.ends(2);
        assert_eq!(network.cut(), [false, false, false]);
    }

    #[test]
    fn what_comes_from_nowhere_costs_nothing() {
        let mut network = Network::new(&[4, 4]);
        network.connect(0, 1);
        network.ends(1);
        assert_eq!(network.cut(), [false, false]);
    }
}
