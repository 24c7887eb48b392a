//! The two ends of Gradus: the LLVM module that hosts the user's program, and the way of its bodies
//! into `gradus-ir` and back.
#![deny(missing_docs)]

pub mod restructure;
