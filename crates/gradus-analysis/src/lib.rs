//! Facts about bodies; nothing here edits.
//!
//! An analysis takes a unit, or one body, and gives a table that is valid until the first edit. What
//! reaches over calls is computed over a [`Closure`], bottom-up over its strongly connected
//! components. Every summary is conservative where a callee is not known: it reads and writes all, or
//! the finding is a diagnostic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod closure;

pub use closure::{CallSite, Callee, Closure, Component};
