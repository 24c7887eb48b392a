//! Facts about the body that is differentiated.

pub(crate) mod body_facts;
pub(crate) mod forward_value;
pub(crate) mod program_facts;
