//! `cargo gradus`: Cargo with derivatives in Rust programs.
//!
//! Flow: [`command`] runs Cargo with a wrapper around rustc and rustdoc, below a target folder of its own. The wrapper
//! changes the options of rustc ([`rustc_options`]): all crates for the target become bitcode, and Gradus becomes the
//! linker. The linker merges the bitcode of the program, runs the passes, and calls the real linker
//! ([`rust_link`]). Crates for the host (build scripts, procedural macros) are compiled unchanged.

pub mod command;
pub mod rust_link;
pub mod rustc_options;
