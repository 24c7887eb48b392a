//! Forward values: the values of the forward pass that the reverse pass may require, and their availability.
//!
//! A [`Node`] is saved on the tape, recomputed from other forward values, or available anyway. `tape/remat.rs`
//! determines the possibilities; the tape plan chooses.

use crate::analysis::body_facts::BodyFacts;
use gradus_ir::{Op, Region, Value};
use smallvec::SmallVec;

/// A value of the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// An SSA value of the primal.
    Primal(Value),
    /// The shadow of a pointer.
    Shadow(Value),
    /// Trip count of a `loop`, a 64-bit integer.
    TripCount(Op),
    /// The tape that the callee of a call returned.
    CalleeTape(Op),
    /// Address of the first element of a tape array, by number in the plan.
    ArrayBase(usize),
    /// Tail slot of a tape array, by number in the plan: memory of a short array.
    Room(usize),
    /// The frame of a loop's last iteration.
    LastFrame(Op),
    /// A snapshot, by number in the facts: the address of its block, moved such that offsets relative to the
    /// snapshot's root apply unchanged.
    Snapshot(usize),
    /// Address of the block of a snapshot.
    SnapshotBlock(usize),
}

/// Availability of a forward value in the reverse pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Available without tape: a constant, a parameter, or the index of a reversed loop.
    Available,
    /// Available only if saved.
    MustSave,
    /// Recomputable; the cost is in units of one addition.
    Recompute {
        /// Inputs of the recomputation.
        from: SmallVec<[Node; 4]>,
        /// Cost of the recomputation.
        cost: u64,
    },
}

/// Returns the region in which a forward value is defined; `None` for constants.
pub fn defining_region(facts: &BodyFacts<'_>, node: Node) -> Option<Region> {
    match node {
        Node::Primal(value) | Node::Shadow(value) => facts.body.region_of(value),
        Node::TripCount(op) | Node::CalleeTape(op) | Node::LastFrame(op) => facts.body.parent(op),
        Node::Snapshot(number) | Node::SnapshotBlock(number) => {
            facts.body.parent(facts.snapshots[number].anchor)
        }
        Node::ArrayBase(_) | Node::Room(_) => None,
    }
}
