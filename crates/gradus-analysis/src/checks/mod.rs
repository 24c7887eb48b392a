//! Checks that refuse programs: one subject a file.

pub(crate) mod external_writes;
pub(crate) mod findings;
pub(crate) mod flang_advice;
pub(crate) mod fraction;
pub(crate) mod integer_stores;
pub(crate) mod kept_values;
pub(crate) mod memory_findings;
pub(crate) mod openmp_queries;
pub(crate) mod persistent_memory;
pub(crate) mod stored_formats;
pub(crate) mod text_digits;
pub(crate) mod text_in_lists;
pub(crate) mod text_over_floats;
pub(crate) mod text_roundtrip;
pub(crate) mod unknown_callees;
pub(crate) mod unshadowed;
pub(crate) mod variadic_structures;
