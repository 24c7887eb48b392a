//! Tests that the work grows linearly and that deep nesting does not overflow the stack.

use super::super::scope::{BlockFlow, Flow, scope};
use super::super::{Cfg, Kind, Node, Tree, restructure};
use super::graph;

fn tree(cfg: &Cfg) -> Tree {
    restructure(cfg).expect("a well-formed graph")
}

/// `n` times `if (c) goto fail`, with a phi at `fail`.
fn early_exits(n: usize) -> (Cfg, Flow) {
    let mut cfg = graph(&[]);
    let mut flow = Flow {
        values: n + 1,
        blocks: vec![],
        live_out: vec![],
    };
    let phi = n as u32;
    for block in 0..n {
        let inwards = if block + 1 < n { block + 1 } else { n + 1 };
        cfg.nodes.push(Node::new(Kind::Branch, vec![n, inwards]));
        flow.blocks.push(BlockFlow {
            defines: vec![block as u32],
            edges: vec![vec![(phi, Some(block as u32))], vec![]],
            ..BlockFlow::default()
        });
    }
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    flow.blocks.push(BlockFlow {
        reads: vec![phi],
        ..BlockFlow::default()
    });
    cfg.nodes.push(Node::new(Kind::Jump, vec![n]));
    flow.blocks.push(BlockFlow {
        edges: vec![vec![(phi, None)]],
        ..BlockFlow::default()
    });
    (cfg, flow)
}

/// `n` breaks out of one loop, to `fail` or directly after the loop.
fn breaks(n: usize) -> Cfg {
    let mut cfg = graph(&[]);
    for block in 0..n {
        cfg.nodes.push(Node::new(
            Kind::Branch,
            vec![n + block % 2, (block + 1) % n],
        ));
    }
    cfg.nodes.push(Node::new(Kind::Jump, vec![n + 1]));
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    cfg
}

/// `n` nested ifs whose arms jump to two labels in turn.
fn gotos(n: usize) -> Cfg {
    let mut cfg = graph(&[]);
    for block in 0..n {
        cfg.nodes.push(Node::new(
            Kind::Switch,
            vec![n + block % 3, block + 1, n + (block + 1) % 3],
        ));
    }
    cfg.nodes[n - 1].successors[1] = n;
    cfg.nodes.push(Node::new(Kind::Branch, vec![n + 1, n + 2]));
    cfg.nodes.push(Node::new(Kind::Branch, vec![n + 2, n + 3]));
    cfg.nodes.push(Node::new(Kind::Jump, vec![n + 3]));
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    cfg
}

/// A switch of `n` cases, each of which falls through to the next.
fn fallthrough(n: usize) -> Cfg {
    let mut cfg = graph(&[]);
    cfg.nodes.push(Node::new(Kind::Switch, (1..=n).collect()));
    for case in 1..n {
        cfg.nodes.push(Node::new(Kind::Branch, vec![case + 1, n]));
    }
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    cfg
}

/// `n` consecutive loops.
fn loops(n: usize) -> Cfg {
    let mut cfg = graph(&[]);
    for block in 0..n {
        cfg.nodes
            .push(Node::new(Kind::Branch, vec![block, block + 1]));
    }
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    cfg
}

/// `n` nested short-circuit conditions, each with an else: selectors inside selectors.
fn short_circuits(n: usize) -> Cfg {
    let mut cfg = graph(&[]);
    // Level k: blocks 3k (a), 3k + 1 (b), 3k + 2 (else); both a and b branch to else; then the next level.
    let end = 3 * n;
    for level in 0..n {
        let a = 3 * level;
        let inwards = if level + 1 < n { a + 3 } else { end };
        cfg.nodes.push(Node::new(Kind::Branch, vec![a + 1, a + 2]));
        cfg.nodes
            .push(Node::new(Kind::Branch, vec![inwards, a + 2]));
        cfg.nodes.push(Node::new(Kind::Jump, vec![end]));
    }
    cfg.nodes.push(Node::new(Kind::Return, vec![]));
    cfg
}

#[test]
fn steps_grow_like_the_input() {
    let shapes: [(&str, fn(usize) -> Cfg); 6] = [
        ("early exits", |n| early_exits(n).0),
        ("breaks", breaks),
        ("gotos", gotos),
        ("fallthrough", fallthrough),
        ("loops", loops),
        ("short circuits", short_circuits),
    ];
    for (name, shape) in shapes {
        let steps = [500, 1000, 2000].map(|n| tree(&shape(n)).steps());
        for pair in steps.windows(2) {
            let growth = pair[1] as f64 / pair[0] as f64;
            assert!(growth < 2.3, "{name}: {steps:?}");
        }
        let per_block = steps[2] / 2000;
        assert!(per_block < 250, "{name}: {per_block} steps for each block");
    }
}

#[test]
fn twenty_thousand_early_exits() {
    let n = 20_000;
    let (cfg, flow) = early_exits(n);
    let tree = tree(&cfg);
    assert!(tree.selectors().is_empty());
    let scope = scope(&tree, &flow);
    let results: usize = tree.nodes().map(|(id, _)| scope.results(id).len()).sum();
    // The phi of `fail` is a result of every branch.
    assert_eq!(results, n);
    let again = super::super::restructure(&cfg).expect("the same graph");
    assert_eq!(tree.to_string(), again.to_string());
    for shape in [breaks, gotos, fallthrough, short_circuits, loops] {
        let cfg = shape(n);
        let tree = restructure(&cfg).expect("a well-formed graph");
        let flow = Flow {
            values: 0,
            blocks: vec![BlockFlow::default(); cfg.nodes.len()],
            live_out: vec![],
        };
        scope_is_small(&tree, &flow, 3 * n);
    }
}

/// Checks that selectors are results of few nodes.
fn scope_is_small(tree: &Tree, flow: &Flow, limit: usize) {
    let scope = scope(tree, flow);
    let results: usize = tree.nodes().map(|(id, _)| scope.results(id).len()).sum();
    assert!(results <= limit, "{results} results");
}
