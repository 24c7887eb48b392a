//! State of a run: machine, strands, groups of ranks, race detector, recorded operations, traced edges.

pub(crate) mod access_trace;
pub(crate) mod edge_trace;
pub(crate) mod linearized_replay;
pub(crate) mod machine;
pub(crate) mod races;
pub(crate) mod rank_groups;
pub(crate) mod strand;
