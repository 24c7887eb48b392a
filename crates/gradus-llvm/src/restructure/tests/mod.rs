//! Tests of restructuring: shapes with their expected trees, random graphs against an interpreter, growth.

mod growth;
mod random;
mod shapes;
mod side_by_side;

use super::{Cfg, Kind, Node};

/// Builds a graph from successor lists: no successor returns, one jumps, two branch, more switch.
fn graph(successors: &[&[usize]]) -> Cfg {
    let nodes = successors
        .iter()
        .map(|list| {
            let kind = match list.len() {
                0 => Kind::Return,
                1 => Kind::Jump,
                2 => Kind::Branch,
                _ => Kind::Switch,
            };
            Node::new(kind, list.to_vec())
        })
        .collect();
    Cfg { nodes, entry: 0 }
}
