//! The two ends of Gradus: the LLVM module that hosts the user's program, and the way of its bodies
//! into `gradus-ir` and back.
//!
//! ```text
//! let mut host = Host::parse(&bytes, "a.bc")?;          // bitcode, text, objects with bitcode
//! host.link(&more, "b.bc")?;
//! host.run(Pipeline::EarlySerial)?;                      // before differentiation
//! let Imported { mut unit, refused, .. } = host.import(&["energy"])?;
//! …                                                      // edit bodies, add functions and globals
//! host.export(&unit, &changed_or_new)?;                  // rebuilds bodies; the unit is outdated now
//! host.verify()?;
//! host.run(Pipeline::Late(OptLevel::O3))?;
//! let object = host.emit(Emit::Object, OptLevel::O3)?;   // or to_bitcode, to_text, Jit::new
//! ```
//!
//! - [`Host`]: reads, links, verifies, prints, emits ([`host`], [`target`]).
//! - [`Pipeline`]: the fixed list of LLVM pass pipelines.
//! - [`import`]: [`Host::import`] takes the call-graph closure of some roots, [`Host::import_all`]
//!   everything. A function that cannot be brought into regions is listed in [`Imported::refused`],
//!   keeps `defined` without a body, and stays in the host as it is.
//! - `Host::export`: functions that the host has are rebuilt in place and keep everything but their
//!   body; functions and globals that the unit added are declared, or defined where they have a body
//!   (`init` for globals). A new function with `derived_from` gets its origin's target features,
//!   restrictions, personality and a subprogram of its own, in which its ops' locations count as
//!   inlined. Ops whose `name` is set keep it.
//!   Debug records of functions rebuilt in place stay with the values of their place. Where arms end
//!   with a constant that the next op tests (selectors, `a && b`, loops with several exits), control
//!   goes straight to the place tested for, so that blocks come out much as they came in.
//! - [`census`]: the multiset of a module's operations, for comparing before import and after export.
//! - `fortran`, `nodes`, `casts`, `managers`: what run-time libraries do for a program, written out or cut down, so
//!   that derivatives know it.
//! - [`jit`]: runs functions of a module in this process, for tests.
//! - `merge`: the two halves of a CUDA source ([`Host::merge_device`]).
//! - [`keep`]: functions that must survive the early pipeline, users of symbols, what may be dropped.
//! - [`originals`]: functions as they were before the early pipeline, kept and put back.
//! - [`registered`]: what variables of the program register, functions held through the pipeline.
//! - [`symbols`]: what the module defines, who calls whom, argument names, source lines.
//!
//! # How LLVM looks in the unit
//!
//! Constants that are a symbol plus bytes are `Func` and `Global` constants; other constant
//! expressions, inline assembly and metadata operands are `Foreign` constants. An instruction without
//! a counterpart is a `Foreign` op. `!llvm.loop` and other metadata that is only kept stands in
//! [`gradus_ir::Meta::host`]. Integer attributes (`memory`, `captures`, `dereferenceable`, `align`)
//! carry LLVM's encoding in [`gradus_ir::AttrValue::Int`]. Every invoke has a landing pad of its own. A
//! switch whose cases share targets comes in as two: one that numbers the arms, one that takes them
//! (export makes them one again).
#![deny(missing_docs)]

mod beside;
mod casts;
pub mod census;
mod chosen_loads;
mod closure;
mod constructs;
mod export;
mod ffi;
mod fortran;
pub mod host;
pub mod import;
mod inlining;
pub mod jit;
pub mod keep;
mod local_loops;
mod managers;
pub mod marks;
mod merge;
mod nodes;
pub mod originals;
mod own_addresses;
pub mod pipeline;
mod pointers;
pub mod registered;
pub mod restructure;
mod rounded;
mod shared_addresses;
pub mod symbols;
mod tables;
pub mod target;
mod vectors;
mod x86;

pub use host::{Host, Message};
pub use import::{Imported, Refusal};
pub use marks::{Bearer, MarkForm, Marked, MarkedInstructions, annotation_place};
pub use pipeline::{OptLevel, Pipeline};
pub use registered::{Held, Word};
pub use target::Emit;
