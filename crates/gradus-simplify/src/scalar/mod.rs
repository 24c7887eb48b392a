//! Scalar simplifications: folding, common subexpressions, dead code, float bit idioms, known conditions.

pub(crate) mod constants;
pub(crate) mod cse;
pub(crate) mod dce;
pub(crate) mod float_bit_idioms;
pub(crate) mod fold;
pub(crate) mod fold_float;
pub(crate) mod fold_integer;
pub(crate) mod known_conditions;
pub(crate) mod sign_masks;
pub(crate) mod signs;
