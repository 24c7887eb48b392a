//! Execution of bytecode: the machine, calls, memory operations, linearised replay.

pub(crate) mod calls;
pub(crate) mod dispatch;
pub(crate) mod linearized_replay;
pub(crate) mod machine;
pub(crate) mod memory_ops;
