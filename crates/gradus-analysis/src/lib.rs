//! Facts about bodies; nothing here edits.
//!
//! An analysis takes a unit, or one body, and gives a table that is valid until the first edit. What
//! reaches over calls is computed over a [`Closure`], bottom-up over its strongly connected
//! components. Every summary is conservative where a callee is not known: it reads and writes all, or
//! the finding is a diagnostic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alias;
mod attributes;
mod bounds;
mod clobber;
mod closure;
mod effects;
mod linear;
mod nest;
mod points_to;
mod summary;
mod tbaa;

pub use alias::{Alias, AliasOptions};
pub use clobber::{AfterEnd, Clobbers, Fate};
pub use closure::{CallSite, Callee, Closure, Component};
pub use effects::{
    AccessKind, Effects, Extent, FunctionEffects, MemoryAccess, ParamEffects, Place, Touch,
};
pub use linear::{Linear, LinearForms, Monomial, Root, StartAndOffset};
pub use nest::{Nest, is_loop};
pub use points_to::{Object, ObjectId, PointsTo, Target, Targets, UNKNOWN};
