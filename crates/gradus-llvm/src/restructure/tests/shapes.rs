//! Control-flow shapes and their expected trees.

use super::super::scope::{BlockFlow, Flow, Var, scope};
use super::super::{
    Cfg, CfgError, Kind, Node, SelectorId, SelectorKind, Tree, TreeNode, restructure,
};
use super::graph;

fn tree(cfg: &Cfg) -> Tree {
    restructure(cfg).expect("a well-formed graph")
}
fn text(successors: &[&[usize]]) -> String {
    tree(&graph(successors)).to_string()
}
fn kinds(tree: &Tree) -> Vec<(SelectorKind, u32)> {
    tree.selectors()
        .iter()
        .map(|s| (s.kind, s.values))
        .collect()
}

#[test]
fn straight_line() {
    assert_eq!(text(&[&[1], &[2], &[]]), "b0 e0.0 b1 e1.0 b2 e2.0");
}

#[test]
fn diamond_and_triangle() {
    assert_eq!(
        text(&[&[1, 2], &[3], &[3], &[]]),
        "b0 br0[e0.0 b1 e1.0 | e0.1 b2 e2.0] b3 e3.0"
    );
    assert_eq!(
        text(&[&[1, 2], &[2], &[]]),
        "b0 br0[e0.0 b1 e1.0 | e0.1] b2 e2.0"
    );
}

#[test]
fn returns_are_merged() {
    let tree = tree(&graph(&[&[1, 2], &[], &[]]));
    assert_eq!(tree.to_string(), "b0 br0[e0.0 b1 e1.0 | e0.1 b2 e2.0]");
    assert!(!tree.never_completes(tree.root()));
}

#[test]
fn branch_to_equal_targets_vanishes() {
    assert_eq!(text(&[&[1, 1, 1], &[]]), "b0 e0.0 b1 e1.0");
}

#[test]
fn do_while_keeps_its_condition() {
    let tree = tree(&graph(&[&[1], &[1, 2], &[]]));
    assert_eq!(tree.to_string(), "b0 e0.0 loop[b1]while e1.0 e1.1 b2 e2.0");
    assert!(tree.selectors().is_empty());
}

#[test]
fn rotated_nest_needs_no_selector() {
    // for { for { } } after rotation.
    let tree = tree(&graph(&[&[1], &[2], &[2, 3], &[1, 4], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 e1.0 loop[b2]while e2.0 e2.1 b3]while e3.0 e3.1 b4 e4.0"
    );
    assert!(tree.selectors().is_empty());
}

#[test]
fn break_in_the_middle() {
    // A; if (c) break; B.
    let tree = tree(&graph(&[&[1], &[2, 3], &[1], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[e1.0 b2 e2.0 s0=1 | s0=0]]while s0=1 e1.1 b3 e3.0"
    );
    assert_eq!(kinds(&tree), [(SelectorKind::Loop, 2)]);
}

#[test]
fn two_exits_share_the_selector_of_the_loop() {
    // 1: if (..) goto 4; 2: if (..) continue else 3.
    let tree = tree(&graph(&[&[1], &[2, 4], &[1, 3], &[5], &[5], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[e1.0 b2 br2[e2.0 s0=0 | s0=2] | s0=1]]while s0=0 \
         s0[1][e1.1 b4 e4.0 | e2.1 b3 e3.0] b5 e5.0"
    );
    assert_eq!(kinds(&tree), [(SelectorKind::Loop, 3)]);
}

#[test]
fn goto_fail_nests_without_selectors() {
    let tree = tree(&graph(&[&[1, 4], &[2, 4], &[3, 4], &[4], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 br0[e0.0 b1 br1[e1.0 b2 br2[e2.0 b3 e3.0 | e2.1] | e1.1] | e0.1] b4 e4.0"
    );
    assert!(tree.selectors().is_empty());
}

#[test]
fn short_circuit_has_one_truth_value() {
    // if (a && b) 2 else 3.
    let tree = tree(&graph(&[&[1, 3], &[2, 3], &[4], &[4], &[]]));
    assert_eq!(kinds(&tree), [(SelectorKind::Continue, 2)]);
    assert_eq!(
        tree.to_string(),
        "b0 br0[e0.0 b1 br1[e1.0 b2 e2.0 s0=1 | e1.1 s0=0] | e0.1 s0=0] s0[0][b3 e3.0 |] b4 e4.0"
    );
}

#[test]
fn fallthrough_is_linear() {
    // switch: case k falls through to case k + 1.
    let sizes: Vec<usize> = [20, 40]
        .iter()
        .map(|&n| {
            let mut cfg = graph(&[]);
            cfg.nodes.push(Node::new(Kind::Switch, (1..=n).collect()));
            for k in 1..n {
                cfg.nodes.push(Node::new(Kind::Jump, vec![k + 1]));
            }
            cfg.nodes.push(Node::new(Kind::Return, vec![]));
            let tree = tree(&cfg);
            assert_eq!(tree.selectors().len(), 1);
            tree.node_count()
        })
        .collect();
    assert!(sizes[1] < 2 * sizes[0] + 5, "{sizes:?}");
}

#[test]
fn irreducible_pair() {
    let tree = tree(&graph(&[&[1, 2], &[2, 3], &[1, 3], &[]]));
    assert_eq!(
        kinds(&tree),
        [(SelectorKind::Entry, 2), (SelectorKind::Loop, 2)]
    );
    assert_eq!(
        tree.to_string(),
        "b0 br0[e0.0 s0=0 | e0.1 s0=1] \
         loop[s0[0][b1 br1[e1.0 s0=1 s1=1 | e1.1 s1=0] | b2 br2[e2.0 s0=0 s1=1 | e2.1 s1=0]]]while s1=1 b3 e3.0"
    );
}

#[test]
fn endless_loops() {
    let tree = tree(&graph(&[&[1], &[2], &[2, 1]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 e1.0 loop[b2]while e2.0 e2.1]forever never"
    );
    assert!(tree.never_completes(tree.root()));
}

#[test]
fn endless_loop_inside_a_loop_is_in_its_arm() {
    // 1: if (fatal) for (;;); 2: if (again) 1.
    let tree = tree(&graph(&[&[1], &[3, 2], &[1, 4], &[3], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[e1.0 loop[b3 e3.0]forever never | e1.1] b2]while e2.0 e2.1 b4 e4.0"
    );
}

fn checks(copyable: bool) -> Cfg {
    let mut cfg = graph(&[&[1, 3], &[2, 3], &[], &[]]);
    cfg.nodes[3].kind = Kind::Unreachable;
    cfg.nodes[3].copyable = copyable;
    cfg
}

#[test]
fn checks_that_abort_stay_flat_where_the_abort_is_copied() {
    assert_eq!(
        tree(&checks(true)).to_string(),
        "b0 br0[e0.0 | e0.1 b3] b1 br1[e1.0 | e1.1 b3] b2 e2.0"
    );
    let shared = tree(&checks(false));
    assert_eq!(kinds(&shared), [(SelectorKind::Continue, 2)]);
}

#[test]
fn abort_in_a_loop_stays_inside() {
    let mut cfg = graph(&[&[1], &[2, 3], &[1, 4], &[], &[]]);
    cfg.nodes[3].kind = Kind::Unreachable;
    let tree = tree(&cfg);
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[e1.0 | e1.1 b3] b2]while e2.0 e2.1 b4 e4.0"
    );
}

fn invoke(normal: usize, pad: usize) -> Node {
    Node::new(Kind::Invoke, vec![normal, pad])
}
fn pad(kind: Kind, successors: &[usize]) -> Node {
    Node {
        pad: true,
        ..Node::new(kind, successors.to_vec())
    }
}

#[test]
fn landing_pads_stay_in_their_arm() {
    // A cleanup that resumes; a catch inside a loop that leaves the loop; a pad on the only path onwards.
    let cleanup = Cfg {
        nodes: vec![
            invoke(1, 2),
            Node::new(Kind::Return, vec![]),
            pad(Kind::Resume, &[]),
        ],
        entry: 0,
    };
    assert_eq!(tree(&cleanup).to_string(), "b0 br0[e0.0 | e0.1 b2] b1 e1.0");
    let leaves = Cfg {
        nodes: vec![
            invoke(1, 2),
            Node::new(Kind::Branch, vec![0, 3]),
            pad(Kind::Jump, &[3]),
            Node::new(Kind::Return, vec![]),
        ],
        entry: 0,
    };
    assert_eq!(
        tree(&leaves).to_string(),
        "loop[b0 br0[e0.0 b1 br1[e1.0 s0=1 | e1.1 s0=0] | e0.1 b2 e2.0 s0=0]]while s0=1 b3 e3.0"
    );
    let only = Cfg {
        nodes: vec![
            invoke(1, 2),
            Node::new(Kind::Unreachable, vec![]),
            pad(Kind::Jump, &[3]),
            Node::new(Kind::Return, vec![]),
        ],
        entry: 0,
    };
    let only = tree(&only);
    let inside = only
        .nodes()
        .find(|(_, node)| **node == TreeNode::Block { block: 2 });
    let (id, _) = inside.expect("the pad stands in the tree");
    assert_ne!(only.home(id), only.root());
}

#[test]
fn must_tail_ends_an_arm() {
    let mut cfg = graph(&[&[1, 2], &[], &[]]);
    cfg.nodes[1].kind = Kind::MustTailReturn;
    let tree = tree(&cfg);
    assert_eq!(tree.to_string(), "b0 br0[e0.0 b1 | e0.1] b2 e2.0");
}

#[test]
fn unreachable_blocks_are_dropped() {
    assert_eq!(text(&[&[2], &[2], &[]]), "b0 e0.0 b2 e2.0");
}

#[test]
fn malformed_graphs_are_refused() {
    let refused = |cfg: &Cfg| restructure(cfg).expect_err("malformed");
    assert_eq!(refused(&graph(&[])), CfgError::NoEntry);
    assert_eq!(
        refused(&graph(&[&[7]])),
        CfgError::NoSuchSuccessor { block: 0 }
    );
    let mut cfg = graph(&[&[1, 2], &[2], &[]]);
    cfg.nodes[0].kind = Kind::Jump;
    assert_eq!(refused(&cfg), CfgError::Arity { block: 0 });
    cfg.nodes[0].kind = Kind::Invoke;
    cfg.nodes[2].pad = true;
    assert_eq!(refused(&cfg), CfgError::SharedPad { block: 2 });
}

/// Builds a flow with phi assignments: (block, slot, phi, source).
fn flow(blocks: usize, values: usize, phis: &[(usize, usize, u32, u32)]) -> Flow {
    let mut flow = Flow {
        values,
        blocks: vec![BlockFlow::default(); blocks],
        live_out: vec![],
    };
    for &(block, slot, phi, source) in phis {
        let edges = &mut flow.blocks[block].edges;
        edges.resize(edges.len().max(slot + 1), vec![]);
        edges[slot].push((phi, Some(source)));
    }
    flow
}

#[test]
fn counted_loop_carries_only_its_phi() {
    // i = phi(0, i + 1); sum read after the loop: 0 = i, 1 = i + 1, 2 = sum, 3 = sum + i, 4 = dead phi.
    let tree = tree(&graph(&[&[1], &[1, 2], &[]]));
    let mut flow = flow(
        3,
        7,
        &[
            (0, 0, 0, 5),
            (0, 0, 2, 5),
            (0, 0, 4, 6),
            (1, 0, 0, 1),
            (1, 0, 2, 3),
            (1, 0, 4, 4),
        ],
    );
    flow.blocks[1].defines = vec![1, 3];
    flow.blocks[1].reads = vec![0, 2];
    flow.blocks[1].branch_reads = vec![1];
    flow.blocks[2].reads = vec![3];
    let scope = scope(&tree, &flow);
    let (id, _) = tree
        .nodes()
        .find(|(_, n)| matches!(n, TreeNode::Loop { .. }))
        .expect("a loop");
    assert_eq!(scope.carried(id), [Var::Value(0), Var::Value(2)]);
    assert_eq!(scope.results(id), [Var::Value(3)]);
    assert!(!scope.is_read(4) && scope.is_read(0));
}

#[test]
fn join_yields_its_phi_only() {
    // 0 = phi(1 from block 1, 2 from block 2) in block 3; 1 and 2 defined in the arms.
    let tree = tree(&graph(&[&[1, 2], &[3], &[3], &[]]));
    let mut flow = flow(4, 3, &[(1, 0, 0, 1), (2, 0, 0, 2)]);
    flow.blocks[1].defines = vec![1];
    flow.blocks[2].defines = vec![2];
    flow.blocks[3].reads = vec![0];
    let scope = scope(&tree, &flow);
    let results: Vec<_> = tree.nodes().flat_map(|(id, _)| scope.results(id)).collect();
    assert_eq!(results, [&Var::Value(0)]);
}

#[test]
fn value_leaves_through_arm_and_loop() {
    // 1: if (a) { 2: 0 = load; if (b) goto 4 } else { 3: if (c) goto 4 } goto 1; 4: 1 = phi(0 from 2, undef
    // from 3).
    let tree = tree(&graph(&[&[1], &[2, 3], &[1, 4], &[1, 4], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[e1.0 b2 br2[e2.0 s0=1 | e2.1 s0=0] \
         | e1.1 b3 br3[e3.0 s0=1 | e3.1 s0=0]]]while s0=1 b4 e4.0"
    );
    let mut flow = flow(5, 2, &[(2, 1, 1, 0)]);
    flow.blocks[2].defines = vec![0];
    flow.blocks[4].reads = vec![1];
    let scope = scope(&tree, &flow);
    let (phi, again) = (Var::Value(1), Var::Selector(SelectorId(0)));
    let mut lists = Vec::new();
    for (id, node) in tree.nodes().filter(|(_, node)| !node.seqs().is_empty()) {
        assert!(scope.carried(id).is_empty());
        lists.push((node.to_string(), scope.results(id).to_vec()));
    }
    let both = vec![phi, again];
    let expected = [
        ("loop[", vec![phi]),
        ("br1[", both.clone()),
        ("br3[", vec![again]),
        ("br2[", both),
    ];
    lists.sort();
    let mut expected = expected.map(|(name, vars)| (name.to_string(), vars));
    expected.sort();
    assert_eq!(lists, expected);
}

#[test]
fn exit_code_is_emitted_after_loop() {
    // 1: if (hit) { 2; goto 4 } 3: if (more) 1; 4.
    let tree = tree(&graph(&[&[1], &[2, 3], &[4], &[1, 4], &[]]));
    assert_eq!(
        tree.to_string(),
        "b0 e0.0 loop[b1 br1[s0=1 | e1.1 b3 br3[e3.0 s0=0 | s0=2]]]while s0=0 \
         s0[1][e1.0 b2 e2.0 | e3.1] b4 e4.0"
    );
}
