//! The reference interpreter: defines the semantics of the IR and serves as the oracle of every pass.
//!
//! A [`Machine`] allocates a unit's globals in its own memory (`memory`). On first call the decoder turns a
//! body into a flat list of instructions (`bytecode`). The machine runs the instructions on explicit stacks
//! (`state`, `run`, `parallel`). External functions are executed by id (`externals`).
//!
//! The machine detects undefined behaviour of C and LLVM at the op that causes it and reports a [`Trap`]:
//! access out of bounds or after free, division by zero, branches on undefined or poison values. Undefined
//! bits and poison propagate by LLVM's rules. The machine uses neither LLVM nor host memory and never
//! recurses over call or region depth.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bytecode;
mod externals;
mod memory;
mod parallel;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod trap;
mod values;

pub use crate::externals::math::math_value;
pub use crate::state::access_trace::{AccessTrace, AllocationSite, TracedAccess};
pub use crate::state::linearized_replay::{ReplayMode, ReplayStep};
pub use crate::state::machine::{Machine, Options};
pub use crate::values::arith::float_value;
pub use crate::values::value::{Address, Value};
pub use trap::{Trap, TrapKind};
