//! LLVM front end and back end of Gradus: the LLVM module that hosts the user's program, import of its
//! functions into `gradus-ir`, and export back.
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
//! - [`Host`]: reads, links, verifies, prints, emits ([`host`]).
//! - [`Pipeline`]: the fixed list of LLVM pass pipelines.
//! - [`import`]: [`Host::import`] imports all functions reachable from some roots, [`Host::import_all`] all
//!   definitions. A function that cannot be restructured is listed in [`Imported::refused`], keeps
//!   `defined` without a body, and stays in the host unchanged.
//! - `Host::export`: functions of the host are rebuilt in place and keep everything except their body.
//!   Functions and globals that the unit added are declared, or defined if they have a body (`init` for
//!   globals). A new function with `derived_from` inherits target features, restrictions and personality of
//!   its origin. Its new subprogram treats the locations of its ops as inlined. Ops with a `name` keep the
//!   name. Functions rebuilt in place keep their debug records. If an arm ends with a constant that the
//!   next op tests (selectors, `a && b`, loops with several exits), control jumps directly to the selected
//!   target. The blocks thus come out nearly as imported.
//! - [`host::op_histogram`]: histogram of a module's operations, for comparing before import and after export.
//! - [`prepare`]: rewrites before import, such as the expansion of runtime library calls into IR that
//!   differentiation handles (`fortran`, `libstdcxx_containers`, `dynamic_cast`, `std_function`).
//! - [`prepare::global_registrations`]: functions that global variables register, and their protection during
//!   the pipeline.
//! - `cuda_merge`: merges the two halves of a CUDA source ([`Host::merge_device`]).
//! - [`host::jit`]: runs functions of a module in the present process, for tests.
//! - [`host::symbol_preservation`]: protects functions during the early pipeline, finds users of symbols,
//!   removes unused symbols.
//! - [`host::pristine_bodies`]: saves functions before the early pipeline and restores them.
//! - [`host::symbols`]: definitions, calls, argument names and source lines of the module.
//!
//! # LLVM in the unit
//!
//! Constants that are a symbol plus an offset are `Func` and `Global` constants; other constant
//! expressions, inline assembly and metadata operands are `Foreign` constants. An instruction without a
//! counterpart is a `Foreign` op. `!llvm.loop` and other metadata that is preserved only is in
//! [`gradus_ir::Meta::host`]. Integer attributes (`memory`, `captures`, `dereferenceable`, `align`) carry
//! LLVM's encoding in [`gradus_ir::AttrValue::Int`]. Every invoke has a private landing pad. A switch whose
//! cases share targets is imported as two: the first numbers the arms, the second selects the arm (export
//! merges the two).
#![deny(missing_docs)]

mod cuda_merge;
mod export;
pub mod host;
pub mod import;
mod opcodes;
pub mod pipeline;
pub mod prepare;
pub mod restructure;

pub use crate::host::module::{Host, Message};
pub use crate::host::target::{Emit, OptLevel};
pub use crate::pipeline::Pipeline;
pub use crate::prepare::global_registrations::{InitCell, PinnedCalls};
pub use crate::prepare::marks::{
    Bearer, MarkForm, Marked, MarkedInstructions, annotation_location,
};
pub use import::{Imported, Refusal};
