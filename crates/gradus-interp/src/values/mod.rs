//! Runtime values: representation, layout, arithmetic, casts.

pub(crate) mod arith;
pub(crate) mod cast;
pub(crate) mod float;
pub(crate) mod value;
pub(crate) mod value_layout;
