//! Nodes of the solver: sets of locations and the edges between them.

use crate::points_to::inclusion::constraints::{NodeId, NodeKind, Step};
use crate::points_to::inclusion::objects::Location;
use std::collections::{BTreeSet, HashSet};

/// Movement along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    By(i64),
    Step(Step),
    /// Bits of addresses alone.
    Bits,
}

/// A set of locations with its consequences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub set: BTreeSet<Location>,
    pub delta: Vec<Location>,
    pub is_queued: bool,
    pub edges: Vec<(NodeId, Move)>,
    pub known_edges: HashSet<(NodeId, Move)>,
    /// Numbers of the constraints on this pointer.
    pub uses: Vec<u32>,
    /// True if unknown code obtains the locations.
    pub escapes: bool,
    /// True for a pointer that received bits of addresses.
    pub is_assembled: bool,
}

impl Node {
    /// Returns an empty node.
    pub fn of(kind: NodeKind) -> Node {
        Node {
            kind,
            ..Node::default()
        }
    }
}
