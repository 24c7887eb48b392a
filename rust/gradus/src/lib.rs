//! Derivatives of Rust functions and closures, on stable Rust.
//!
//! A program with derivatives is compiled by `cargo gradus build`, with the options of `cargo build`; `run`, `test`,
//! `check` and others work alike. The attributes and functions below state the requests. Gradus differentiates the
//! compiled program.
//!
//! | request | result |
//! |---|---|
//! | [`grad`], [`value_and_grad`], [`jvp`], [`hvp`], [`jacobian`] | derivatives of a closure or function of a slice |
//! | [`macro@reverse`], [`macro@forward`] | a derivative function beside a function of any signature |
//!
//! ```no_run
//! let spring = |x: &[f64]| x.windows(2).map(|w| (1.0 + (w[1] - w[0]).powi(2)).sqrt()).sum();
//! let gradient = gradus::grad(&spring, &[1.0, 4.0, 8.0]);
//! ```
//!
//! Without `cargo gradus`, a request is a compile error; with the feature `stub`, a call of a derivative panics.
#![deny(missing_docs)]

mod closures;
#[doc(hidden)]
pub mod internal;

pub use closures::{grad, hvp, jacobian, jvp, value_and_grad};
pub use gradus_macros::{forward, reverse};
pub use internal::Float;
