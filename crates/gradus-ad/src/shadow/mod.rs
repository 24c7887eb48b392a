//! Shadow values and shadow memory.

pub(crate) mod constants;
pub(crate) mod dependency_sets;
pub(crate) mod descriptors;
pub(crate) mod global_pointers;
pub(crate) mod globals;
pub(crate) mod indirect_calls;
pub(crate) mod integer_words;
pub(crate) mod owned_blocks;
pub(crate) mod pointer_witness;
pub(crate) mod reverse_copy;
pub(crate) mod tangent_ops;
pub(crate) mod typed_copy;
pub(crate) mod word_copy;
