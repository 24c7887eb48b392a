//! Execution of bytecode: entry, calls, memory operations.

pub(crate) mod calls;
pub(crate) mod dispatch;
pub(crate) mod entry;
pub(crate) mod memory_ops;
