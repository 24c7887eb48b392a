//! Flags of a compiler's command line that apply to the link.

/// Returns true for a library, a library folder, or an option of the linker.
pub(crate) fn is_for_the_linker(flag: &str) -> bool {
    ["-l", "-L", "-Wl,"]
        .iter()
        .any(|start| flag.starts_with(start))
}
