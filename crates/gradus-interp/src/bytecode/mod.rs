//! The bytecode of the interpreter, and its decoder from the IR.

pub(crate) mod code;
pub(crate) mod decode;
pub(crate) mod decode_edges;
pub(crate) mod decode_op;
pub(crate) mod decode_parallel;
