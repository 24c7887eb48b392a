//! Random graphs, reducible and irreducible, are interpreted and compared with their trees.

use super::super::scope::{BlockFlow, Flow, scope};
use super::super::{Cfg, Kind, Node, Selector, SelectorKind, restructure};
use super::side_by_side::{Event, mix, run_graph, run_tree};

/// A pseudo-random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = mix(&[self.0, 1]);
        (self.0 >> 20) as usize % bound.max(1)
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Returns a random graph. `near` prefers close successors, which yields nested loops.
fn random_cfg(random: &mut Random) -> Cfg {
    let most = if random.chance(10) { 70 } else { 24 };
    let count = 2 + random.below(most);
    let near = random.chance(50);
    let mut nodes = Vec::new();
    for block in 0..count {
        let arity = [0, 1, 1, 2, 2, 2, 2, 3, 4][random.below(9)];
        let target = |random: &mut Random| {
            if near {
                (block + 5).saturating_sub(random.below(8)).min(count - 1)
            } else {
                random.below(count)
            }
        };
        let successors: Vec<usize> = (0..arity).map(|_| target(random)).collect();
        let ends = [
            Kind::Return,
            Kind::Return,
            Kind::Unreachable,
            Kind::MustTailReturn,
        ];
        let kind = match arity {
            0 => ends[random.below(4)],
            1 => Kind::Jump,
            2 => Kind::Branch,
            _ => Kind::Switch,
        };
        nodes.push(Node {
            copyable: random.chance(50),
            ..Node::new(kind, successors)
        });
    }
    add_pads(random, &mut nodes);
    Cfg { nodes, entry: 0 }
}

/// Turns some branches into invokes with a private landing pad.
fn add_pads(random: &mut Random, nodes: &mut Vec<Node>) {
    for block in 0..nodes.len() {
        if nodes[block].kind == Kind::Branch && random.chance(20) {
            let pad = nodes.len();
            let handler = std::mem::replace(&mut nodes[block].successors[1], pad);
            nodes[block].kind = Kind::Invoke;
            nodes.push(Node {
                pad: true,
                ..Node::new(Kind::Jump, vec![handler])
            });
        }
    }
}

/// Computes dominance by removing each block in turn: slow and independent of the tested code.
fn dominates(cfg: &Cfg) -> Vec<Vec<bool>> {
    let count = cfg.nodes.len();
    let reach = |without: usize| {
        let mut seen = vec![false; count];
        let mut stack = if without == cfg.entry {
            vec![]
        } else {
            vec![cfg.entry]
        };
        while let Some(block) = stack.pop() {
            if !std::mem::replace(&mut seen[block], true) {
                let next = cfg.nodes[block].successors.iter().copied();
                stack.extend(next.filter(|to| *to != without));
            }
        }
        seen
    };
    let all = reach(usize::MAX);
    (0..count)
        .map(|a| {
            let without = reach(a);
            (0..count).map(|b| all[b] && !without[b]).collect()
        })
        .collect()
}

/// Returns random definitions, phis, and reads of dominating values.
fn random_flow(random: &mut Random, cfg: &Cfg) -> Flow {
    let count = cfg.nodes.len();
    let dominates = dominates(cfg);
    let mut flow = Flow {
        values: 2,
        blocks: vec![BlockFlow::default(); count],
        live_out: vec![1],
    };
    let fresh = |flow: &mut Flow| {
        flow.values += 1;
        flow.values as u32 - 1
    };
    let mut phis = vec![Vec::new(); count];
    for block in 0..count {
        for _ in 0..random.below(3) {
            let value = fresh(&mut flow);
            flow.blocks[block].defines.push(value);
        }
        if block != cfg.entry {
            phis[block] = (0..random.below(3)).map(|_| fresh(&mut flow)).collect();
        }
        if cfg.nodes[block].kind == Kind::Invoke {
            flow.blocks[block].branch_defines = vec![fresh(&mut flow)];
        }
    }
    for block in 0..count {
        let mut visible = vec![0];
        for other in (0..count).filter(|other| dominates[*other][block]) {
            visible.extend(&phis[other]);
            if other != block {
                visible.extend(&flow.blocks[other].defines);
                let node = &cfg.nodes[other];
                if node.kind == Kind::Invoke && only_through(cfg, &dominates, other, block) {
                    visible.extend(&flow.blocks[other].branch_defines);
                }
            }
        }
        let pick = |random: &mut Random, visible: &[u32]| visible[random.below(visible.len())];
        flow.blocks[block].reads = (0..random.below(4))
            .map(|_| pick(random, &visible))
            .collect();
        visible.extend(&flow.blocks[block].defines);
        flow.blocks[block].branch_reads = (0..random.below(3))
            .map(|_| pick(random, &visible))
            .collect();
        let node = &cfg.nodes[block];
        flow.blocks[block].edges = node
            .successors
            .iter()
            .enumerate()
            .map(|(slot, to)| {
                let mut visible = visible.clone();
                if slot == 0 {
                    visible.extend(&flow.blocks[block].branch_defines);
                }
                phis[*to]
                    .iter()
                    .map(|phi| (*phi, Some(pick(random, &visible))))
                    .collect()
            })
            .collect();
        if node.kind == Kind::Return {
            flow.blocks[block].edges = vec![vec![(1, Some(pick(random, &visible)))]];
        }
    }
    flow
}

/// Returns whether a block is reached only after `invoke` returned normally.
fn only_through(cfg: &Cfg, dominates: &[Vec<bool>], invoke: usize, block: usize) -> bool {
    let normal = cfg.nodes[invoke].successors[0];
    let edges = cfg.nodes.iter().flat_map(|node| &node.successors);
    normal != cfg.entry
        && edges.filter(|to| **to == normal).count() == 1
        && dominates[normal][block]
}

/// Statistics of the runs.
#[derive(Default)]
struct Tally {
    events: usize,
    returns: usize,
    irreducible: usize,
    landing_pads: usize,
}

fn compare(seed: u64, tally: &mut Tally) {
    let mut random = Random(seed);
    let cfg = random_cfg(&mut random);
    let flow = random_flow(&mut random, &cfg);
    let tree = restructure(&cfg).expect("a well-formed graph");
    let scope = scope(&tree, &flow);
    let entries = |s: &Selector| s.kind == SelectorKind::Entry;
    tally.irreducible += usize::from(tree.selectors().iter().any(entries));
    for run in 0..4 {
        let fuel = 150;
        let graph = run_graph(&cfg, &flow, seed * 7 + run, fuel);
        let structured = run_tree(&cfg, &flow, &tree, &scope, seed * 7 + run, fuel);
        // When the fuel ends, one of the two runs may be a branch ahead.
        assert!(
            graph.len().abs_diff(structured.len()) <= 1,
            "seed {seed}: {tree}"
        );
        let differs = graph.iter().zip(&structured).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}: {tree}");
        let is_pad = |e: &&Event| matches!(e, Event::Block(block, _) if cfg.nodes[*block].pad);
        tally.events += graph.len();
        tally.landing_pads += graph.iter().filter(is_pad).count();
        if matches!(graph.last(), Some(Event::End(_))) {
            tally.returns += 1;
            assert_eq!(graph, structured, "seed {seed}");
        }
    }
}

#[test]
fn graph_and_tree_have_equal_traces() {
    let mut tally = Tally::default();
    for seed in 0..6000 {
        compare(seed, &mut tally);
    }
    assert!(tally.events > 400_000, "{} events", tally.events);
    assert!(tally.returns > 4_000, "{} returns", tally.returns);
    assert!(
        tally.irreducible > 1_000,
        "{} irreducible",
        tally.irreducible
    );
    assert!(
        tally.landing_pads > 10_000,
        "{} landing pads",
        tally.landing_pads
    );
}

#[test]
fn comparison_detects_missing_results() {
    // If the reads of a block are withheld from `scope`, some results are missing.
    let mut noticed = 0;
    for seed in 0..200 {
        let mut random = Random(seed);
        let cfg = random_cfg(&mut random);
        let flow = random_flow(&mut random, &cfg);
        let tree = restructure(&cfg).expect("a well-formed graph");
        for block in 0..cfg.nodes.len() {
            let mut less = flow.clone();
            less.blocks[block].reads.clear();
            let scope = scope(&tree, &less);
            let graph = run_graph(&cfg, &flow, seed, 150);
            let structured = run_tree(&cfg, &flow, &tree, &scope, seed, 150);
            noticed += usize::from(graph.iter().zip(&structured).any(|(a, b)| a != b));
        }
    }
    assert!(noticed > 100, "{noticed}");
}

/// Emits a random program of nested ifs, loops and switches; returns its last block.
fn structured(random: &mut Random, nodes: &mut Vec<Node>, first: usize) -> usize {
    let mut block = first;
    // The block that opened an if, or that precedes a loop, and the loop's header.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for _ in 0..random.below(30) {
        let next = nodes.len();
        match random.below(5) {
            // Opens `if (c) { … }`; closed below.
            0 => {
                nodes.push(Node::new(Kind::Jump, vec![0]));
                nodes[block] = Node::new(Kind::Branch, vec![next, usize::MAX]);
                open.push((block, usize::MAX));
                block = next;
            }
            // Opens `do { … } while (c)`.
            1 => {
                nodes.push(Node::new(Kind::Jump, vec![0]));
                nodes[block] = Node::new(Kind::Jump, vec![next]);
                open.push((block, next));
                block = next;
            }
            // Closes the construct opened last.
            2 | 3 if !open.is_empty() => {
                block = close(nodes, open.pop().expect("not empty"), block);
            }
            // A switch with breaks.
            _ => {
                let cases = 3 + random.below(3);
                nodes[block] = Node::new(Kind::Switch, (next..next + cases).collect());
                for _ in 0..cases {
                    nodes.push(Node::new(Kind::Jump, vec![next + cases]));
                }
                nodes.push(Node::new(Kind::Jump, vec![0]));
                block = next + cases;
            }
        }
    }
    while let Some(construct) = open.pop() {
        block = close(nodes, construct, block);
    }
    block
}

/// Ends an if or a loop at a block; returns the next block.
fn close(nodes: &mut Vec<Node>, (opener, head): (usize, usize), block: usize) -> usize {
    let next = nodes.len();
    nodes.push(Node::new(Kind::Jump, vec![0]));
    if head == usize::MAX {
        nodes[opener].successors[1] = next;
        nodes[block] = Node::new(Kind::Jump, vec![next]);
    } else {
        nodes[block] = Node::new(Kind::Branch, vec![head, next]);
    }
    next
}

#[test]
fn structured_programs_need_no_selector() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let mut nodes = vec![Node::new(Kind::Jump, vec![0])];
        let last = structured(&mut random, &mut nodes, 0);
        nodes[last] = Node::new(Kind::Return, vec![]);
        let cfg = Cfg { nodes, entry: 0 };
        let tree = restructure(&cfg).expect("a well-formed graph");
        assert!(tree.selectors().is_empty(), "seed {seed}: {cfg:?}\n{tree}");
    }
}
