//! Nodes of the solver: sets of locations and the edges between them.

use crate::points_to::inclusion::constraints::{NodeId, NodeKind, Step};
use crate::points_to::inclusion::location_set::LocationSet;
use std::collections::HashSet;

/// Movement along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Move {
    By(i64),
    Step(Step),
    /// Bits of addresses alone.
    Bits,
}

/// A set of locations with its consequences. Nodes of one cycle of copies share one set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub kind: NodeKind,
    /// Numbers of the locations (`solver/locations.rs`).
    pub set: LocationSet,
    /// The part of the set that has not been propagated.
    pub delta: LocationSet,
    pub is_queued: bool,
    pub edges: Vec<(NodeId, Move)>,
    pub known_edges: HashSet<(NodeId, Move)>,
    /// Numbers of the constraints on this pointer.
    pub uses: Vec<u32>,
    /// True if unknown code obtains the locations.
    pub escapes: bool,
    /// True for a pointer that received bits of addresses.
    pub is_assembled: bool,
    /// True for a word that stands for a cycle with a pointer.
    pub has_pointer: bool,
}

impl Node {
    /// Returns an empty node.
    pub fn of(kind: NodeKind) -> Node {
        Node {
            kind,
            ..Node::default()
        }
    }
    /// Returns true if the node holds every location unchanged.
    pub fn holds_any(&self) -> bool {
        self.kind == NodeKind::Word && !self.has_pointer
    }
}
