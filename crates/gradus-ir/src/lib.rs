//! The language in the middle: structured SSA bodies, their text form and their rules.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
