//! Inputs of the forward pass and of the reverse pass of a derivative.
//!
//! The driver computes the inputs from facts and options, and passes them to both passes.

use crate::Options;
use crate::analysis::body_facts::BodyFacts;
use crate::shadow::global_pointers::GlobalPointerShadow;
use crate::shadow::globals::ClearedShadow;
use crate::shadow::owned_blocks::OwnedShadow;
use crate::shadow::pointer_witness::StridedPointers;
use crate::variant::Variant;
use gradus_ir::Diagnostic;

/// Inputs of a derivative.
pub(crate) struct Inputs<'a, 'f> {
    /// Facts about the primal.
    pub facts: &'a BodyFacts<'f>,
    /// Shadows of global variables that the derivative clears at its start.
    pub cleared: &'a [ClearedShadow],
    /// Pointers in global variables whose shadows the derivative rebinds at its start.
    pub global_pointers: &'a [GlobalPointerShadow],
    /// Pointers that are compared with their witnesses.
    pub checked_pointers: &'a [StridedPointers],
    /// Owning pointers in global variables whose blocks get a shadow at the start.
    pub owned_blocks: &'a [OwnedShadow],
    /// The derivative.
    pub variant: &'a Variant,
    /// Options of differentiation.
    pub options: &'a Options,
    /// Variants of callees that the derivative calls; each pass appends.
    pub needs: &'a mut Vec<Variant>,
    /// Diagnostics; each pass appends.
    pub findings: &'a mut Vec<Diagnostic>,
}
