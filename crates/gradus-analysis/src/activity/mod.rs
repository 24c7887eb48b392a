//! Activity analysis: values and memory that carry derivatives.

pub(crate) mod exception_objects;
pub(crate) mod flow_graph;
pub(crate) mod fraction_bits;
pub(crate) mod indirect_outputs;
mod integer_words;
pub(crate) mod local_outputs;
pub(crate) mod memory;
pub(crate) mod partial_floats;
pub(crate) mod round_to_integer;
pub(crate) mod shadow_groups;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod torn_writes;
pub(crate) mod values;
