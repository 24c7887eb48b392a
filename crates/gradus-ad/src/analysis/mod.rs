//! Facts about the body that is differentiated.

pub(crate) mod body_facts;
pub(crate) mod program_facts;
