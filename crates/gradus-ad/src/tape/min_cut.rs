//! Min-cut: selects the values to save such that the total cost of saving and recomputing is minimal.
//!
//! Maximum flow by Dinic's algorithm (Dinitz 1970): level graph by breadth-first search, blocking flow by
//! depth-first search with current-arc pointers, both on explicit stacks. Capacities are saturating integers;
//! [`INFINITE`] marks arcs that no cut may contain.

/// Capacity of an arc that must not be cut.
pub const INFINITE: u64 = u64::MAX / 4;

#[derive(Clone, Debug)]
struct Arc {
    to: u32,
    left: u64,
}

/// A flow network with a source and a sink.
#[derive(Clone, Debug)]
pub struct Network {
    arcs: Vec<Arc>,
    out: Vec<Vec<u32>>,
}

/// The source of every network.
pub const SOURCE: usize = 0;
/// The sink of every network.
pub const SINK: usize = 1;

impl Default for Network {
    fn default() -> Self {
        Network {
            arcs: Vec::new(),
            out: vec![Vec::new(), Vec::new()],
        }
    }
}

impl Network {
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
            left: capacity.min(INFINITE),
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
        while let Some(level) = self.levels() {
            let mut next_arc = vec![0usize; self.out.len()];
            while self.augment(&level, &mut next_arc) {}
        }
        let mut reached = vec![false; self.out.len()];
        reached[SOURCE] = true;
        let mut stack = vec![SOURCE];
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

    /// Returns distances from the source over arcs with residual capacity; `None` once the sink is
    /// unreachable.
    fn levels(&self) -> Option<Vec<u32>> {
        let mut level = vec![u32::MAX; self.out.len()];
        level[SOURCE] = 0;
        let mut queue = std::collections::VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            for &arc in &self.out[node] {
                let Arc { to, left } = self.arcs[arc as usize];
                if left > 0 && level[to as usize] == u32::MAX {
                    level[to as usize] = level[node] + 1;
                    queue.push_back(to as usize);
                }
            }
        }
        (level[SINK] != u32::MAX).then_some(level)
    }

    /// Augments the flow along one path of the level graph; false if no path remains.
    fn augment(&mut self, level: &[u32], next_arc: &mut [usize]) -> bool {
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
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
                    let Some(arc) = path.pop() else { return false };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the capacity of the cut found, over the given arcs.
    fn cut_value(arcs: &[(usize, usize, u64)], nodes: usize) -> u64 {
        let mut network = Network::default();
        for _ in 2..nodes {
            network.add_node();
        }
        for &(from, to, capacity) in arcs {
            network.add_arc(from, to, capacity);
        }
        let side = network.source_side();
        arcs.iter()
            .filter(|(f, t, _)| side[*f] && !side[*t])
            .map(|(_, _, c)| c)
            .sum()
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
            assert_eq!(cut_value(&arcs, nodes), least_cut(&arcs, nodes), "{arcs:?}");
        }
    }
}
