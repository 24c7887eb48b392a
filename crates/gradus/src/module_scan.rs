//! Scan of bitcode for names: what a module requests, without parsing the module.
//!
//! The symbol table contains the names of all external symbols. A name may also occur elsewhere in the bytes, and the
//! pipeline then finds no request.

/// Returns true if a module calls the OpenMP runtime.
pub(crate) fn calls_openmp(bitcode: &[u8]) -> bool {
    holds(bitcode, b"__kmpc_")
}

/// Returns true if a module uses the undefined parallel intrinsics of `gradus/parallel.h`.
pub(crate) fn has_markers(bitcode: &[u8]) -> bool {
    holds(bitcode, b"__gr_")
}

/// Returns true if a module has parallel code to raise.
pub(crate) fn is_parallel(bitcode: &[u8]) -> bool {
    calls_openmp(bitcode) || has_markers(bitcode)
}

/// Returns true if a module's bytes contain a name.
pub(crate) fn holds(bitcode: &[u8], key: &[u8]) -> bool {
    memchr::memmem::find(bitcode, key).is_some()
}

/// Returns true if a module's symbol table has a name of the differentiation interface.
pub fn has_interface_symbol(bitcode: &[u8]) -> bool {
    let keys: [&[u8]; 4] = [b"__enzyme_", b"__gradus_", b"gradus_vjp_", b"gradus_jvp_"];
    keys.iter().any(|key| holds(bitcode, key))
}

/// Returns true if an object has a symbol of the differentiation interface, of the parallel intrinsics or of OpenMP.
pub(crate) fn asks_for_gradus(object: &[u8]) -> bool {
    has_interface_symbol(object) || is_parallel(object)
}

/// Returns true if a source text has a name of the interface's families.
pub(crate) fn names_gradus(text: &[u8]) -> bool {
    let keys: [&[u8]; 3] = [b"enzyme", b"gradus", b"__gr_"];
    keys.iter().any(|key| holds(text, key))
}
