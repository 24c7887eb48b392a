//! What a program means: runs bodies on plain memory. The yardstick of every pass.
//!
//! Flow: a [`Machine`] lays out a unit's globals in its own memory (`memory`), turns each body on
//! its first call into a flat list of instructions (`decode`, `code`), and runs them on explicit
//! stacks (`run`, `calls`, `parallel`). Outside functions that are known run in `known_*`, chosen
//! by their id.
//!
//! Everything that C or LLVM calls undefined is caught where it happens and told as a [`Trap`]:
//! access out of bounds or after free, division by zero, branches on undefined or poisoned
//! values. Undefined bits and poison are carried along as LLVM's rules say. No LLVM, no host
//! memory, no recursion over the depth of calls or regions.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arith;
mod calls;
mod cast;
mod code;
mod decode;
mod decode_op;
mod decode_parallel;
mod float;
mod known;
mod known_format;
mod known_int;
mod known_math;
mod known_memory;
mod known_openmp;
mod known_vector;
mod machine;
mod memory;
mod parallel;
mod races;
mod run;
mod run_memory;
mod shape;
#[cfg(test)]
mod tests;
mod trap;
mod value;
mod way;

pub use machine::{Machine, Options};
pub use trap::{Trap, TrapKind};
pub use value::{Address, Value};
pub use way::{Curves, Step};
