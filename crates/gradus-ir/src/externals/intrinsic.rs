//! Names of LLVM intrinsics: a stem (`sin`, `vector.reduce.fadd`) and overload types.

/// Returns the possible stems of an intrinsic's name without `llvm.`, the longest first. Type suffixes are
/// stripped one by one.
pub(super) fn stems(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |stem| {
        let (head, last) = stem.rsplit_once('.')?;
        names_a_type(last).then_some(head)
    })
}

/// Returns whether a name component is a mangled LLVM type: `f64`, `i1`, `p0`, `v4f32`, `nxv2i64`, `bf16`,
/// `ppcf128`, `a4i8`, `s_…`, `sl_…`.
fn names_a_type(part: &str) -> bool {
    let digit_after = |head: &str| {
        part.strip_prefix(head)
            .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
    };
    ["f", "i", "p", "v", "nxv", "bf", "ppcf", "a"]
        .into_iter()
        .any(digit_after)
        || part.starts_with("s_")
        || part.starts_with("sl_")
}
