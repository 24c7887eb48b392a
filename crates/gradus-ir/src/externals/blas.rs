//! Routines of BLAS and LAPACK with derivatives: the names of the Fortran and the C interface.
//!
//! The bodies and the rules of the routines are C sources in `crates/gradus-llvm/semantics/blas`. A core routine
//! is a level-3 routine with column-major matrices and arguments by value: the rules are expressed by calls of
//! core routines.

/// Prefix of all functions that serve calls of BLAS.
pub const BLAS_PREFIX: &str = "__gr_blas_";
/// Prefix of the body of a routine.
pub const BLAS_BODY_PREFIX: &str = "__gr_blas_body_";

/// An interface of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlasInterface {
    /// `dgemm_`: arguments by address, with the lengths of characters last.
    Fortran,
    /// `cblas_dgemm`.
    C,
}

/// Routines in single and double precision, without the letter of the precision.
const ROUTINES: &[&str] = &[
    "dot", "axpy", "scal", "copy", "swap", "asum", "nrm2", "rot", "gemv", "gbmv", "ger", "symv",
    "sbmv", "spmv", "syr", "spr", "syr2", "spr2", "trmv", "tbmv", "tpmv", "trsv", "tbsv", "tpsv",
    "gemm", "symm", "syrk", "syr2k", "trmm", "trsm",
];

/// Routines of LAPACK in single and double precision, with names of the Fortran interface only.
const LAPACK_ROUTINES: &[&str] = &[
    "potrf", "potrs", "potri", "posv", "trtrs", "trtri", "getrf", "getrs", "getri", "gesv",
];

/// The routine that returns a position.
const POSITION: &str = "amax";

/// Routines of BLAS and LAPACK without derivatives, without the letter of the precision.
const WITHOUT_DERIVATIVES: &[&str] = &[
    "rotg", "rotm", "rotmg", "dotc", "dotu", "gerc", "geru", "hemv", "her", "her2", "hemm", "herk",
    "her2k", "axpby", "geqrf", "orgqr", "ormqr", "gels", "syev", "syevd", "gesvd", "gesdd", "sysv",
    "sytrf", "sytrs", "gtsv", "pttrf", "pttrs", "gbsv", "pbsv", "geev", "lacpy", "lange",
];

/// The letter of a precision and a stem.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.split_at_checked(1)
}

/// Returns the interface of a routine with a derivative.
pub fn blas_interface(name: &str) -> Option<BlasInterface> {
    let (stem, interface) = match name.strip_prefix("cblas_") {
        Some(stem) => (stem, BlasInterface::C),
        None => (name.strip_suffix('_')?, BlasInterface::Fortran),
    };
    let is_known = |stem: &str, list: &[&str]| {
        parts(stem).is_some_and(|(kind, stem)| matches!(kind, "s" | "d") && list.contains(&stem))
    };
    let position = stem.strip_prefix('i');
    let known = is_known(stem, ROUTINES)
        || interface == BlasInterface::Fortran && is_known(stem, LAPACK_ROUTINES)
        || position.is_some_and(|stem| is_known(stem, &[POSITION]));
    known.then_some(interface)
}

/// Returns the advice for a call of a BLAS or LAPACK routine without a derivative; `None` for other functions.
pub fn blas_advice(name: &str) -> Option<String> {
    const REMEDY: &str =
        "compile the source of the library together with this file, or register a derivative";
    if blas_interface(name).is_some() {
        return Some(format!(
            "declare `{name}` with the parameters of the library's header and 32-bit integers, {REMEDY}"
        ));
    }
    let stem = match name.strip_prefix("cblas_") {
        Some(stem) => stem,
        None => name.strip_suffix('_')?,
    };
    let (kind, rest) = parts(stem)?;
    let is_one = name.starts_with("cblas_")
        || matches!(kind, "s" | "d" | "c" | "z")
            && [ROUTINES, LAPACK_ROUTINES, WITHOUT_DERIVATIVES]
                .iter()
                .any(|list| list.contains(&rest));
    is_one.then(|| {
        format!(
            "Gradus knows the derivatives of BLAS in single and double precision ({}) and of LAPACK's {}, but not of `{name}`: {REMEDY}",
            ROUTINES.join(", "),
            LAPACK_ROUTINES.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{BlasInterface, blas_advice, blas_interface};

    #[test]
    fn interfaces_are_told_by_the_spelling() {
        assert_eq!(blas_interface("dgemm_"), Some(BlasInterface::Fortran));
        assert_eq!(blas_interface("dpotrf_"), Some(BlasInterface::Fortran));
        assert_eq!(blas_interface("cblas_sdot"), Some(BlasInterface::C));
        assert_eq!(blas_interface("idamax_"), Some(BlasInterface::Fortran));
        for name in [
            "dgemm",
            "zgemm_",
            "cblas_zdotu_sub",
            "damax_",
            "_",
            "",
            "é_",
        ] {
            assert_eq!(blas_interface(name), None, "{name}");
        }
    }

    #[test]
    fn advice_covers_relatives_only() {
        for name in ["zgemm_", "dgesvd_", "cblas_zgemm"] {
            let advice = blas_advice(name).unwrap_or_default();
            assert!(advice.contains("gemm, symm"), "{name}: {advice}");
        }
        assert!(blas_advice("dgemm_").unwrap_or_default().contains("32-bit"));
        assert_eq!(blas_advice("solve_"), None);
    }
}
