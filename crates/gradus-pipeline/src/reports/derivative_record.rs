//! The record of an emitted derivative, for the report and for the passes on derivatives.

use gradus_ad::{Report, Variant};
use gradus_ir::FuncId;

/// An emitted derivative.
#[derive(Clone, Debug)]
pub(crate) struct DerivativeRecord {
    /// The variant.
    pub variant: Variant,
    /// The function.
    pub func: FuncId,
    /// The decisions.
    pub report: Report,
    /// The number of scatter loops turned into gather loops.
    pub gather_loops: usize,
    /// The pairs of parameters compared by a run-time alias check ([`gradus_ad::Derived::disjoint_pairs`]).
    pub checked_pairs: Vec<(usize, usize)>,
}
