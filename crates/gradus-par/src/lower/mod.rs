//! Lowering of parallel operations to runtime calls.

pub(crate) mod abi;
pub(crate) mod cooperative;
pub(crate) mod deterministic;
pub(crate) mod exceptions;
pub(crate) mod fork_clones;
pub(crate) mod intrinsics;
pub(crate) mod loops;
pub(crate) mod orphaned_tasks;
pub(crate) mod outline_alias_scopes;
pub(crate) mod outlined;
pub(crate) mod pointer_facts;
pub(crate) mod reduction_combine;
pub(crate) mod serial;
pub(crate) mod serial_fallback;
pub(crate) mod tasks;
pub(crate) mod team;
