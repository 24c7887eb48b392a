//! Fortran's array descriptors (flang's `ISO_Fortran_binding.h`), for generated C code.

/// The C definitions: `gr_descriptor`, and `gr_describe` for a contiguous array.
pub(crate) const HEADER: &str = include_str!("descriptor.h");

/// Returns the descriptor's code for an element type.
pub(crate) fn type_code(elem: &str) -> u32 {
    match elem {
        "float" => 27,
        "double" => 28,
        "int8_t" => 7,
        "int16_t" => 8,
        "int32_t" => 9,
        _ => 10,
    }
}
