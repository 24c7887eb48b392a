//! Control-flow simplifications: empty branches, merged branches, branches as selects.

pub(crate) mod branch_to_select;
pub(crate) mod control_flow;
pub(crate) mod merge_branches;
pub(crate) mod read_only_regions;
