//! Derivatives: the primal in, its JVP or VJP out.
//!
//! The formulas of single ops stand in [`calculus`] and nowhere else.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod calculus;
